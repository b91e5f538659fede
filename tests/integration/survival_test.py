"""The death of a worker does not end a run."""
import pathlib
import signal
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"


class SurvivalTest(unittest.TestCase):
    def kill_one(self, policy):
        status = cluster.outlive_one(CONFIG, {"consistency.policy": policy})
        self.assertGreater(status["evaluations"][-1]["test_accuracy"], 0.3)
        return status

    def test_the_others_finish_all_the_work_under_async(self):
        status = self.kill_one("async")
        self.assertEqual(int(status["batches_done"]), int(status["batches_total"]))

    def test_the_others_finish_all_the_work_under_softsync(self):
        status = self.kill_one("softsync")
        self.assertEqual(int(status["batches_done"]), int(status["batches_total"]))

    def test_hardsync_rounds_go_on_without_it(self):
        status = self.kill_one("hardsync")
        self.assertEqual(status["staleness"]["max"] and int(status["staleness"]["max"]), 0)

    def test_a_worker_that_comes_back_under_its_old_id_is_taken_in(self):
        settings = {"consistency.policy": "hardsync", "cluster.lease": "1s",
                    "data.train_examples": 12800, "testing.push_delay_max": "20ms"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=3 + 1) as live:
            live.wait_for(lambda status: int(status["updates"]) >= 5, "some updates")
            live.workers[2].send_signal(signal.SIGKILL)
            live.workers[2].wait()
            before = live.status()
            live.start_worker(2)
            pushed = {int(w["worker"]): int(w["pushes"]) for w in before["shards"][0]["workers"]}
            live.wait_for(lambda status: any(
                int(w["worker"]) == 2 and int(w["pushes"]) > pushed[2] + 3
                for w in status["shards"][0]["workers"]), "the new incarnation to push")
            live.wait_finished()


if __name__ == "__main__":
    unittest.main()
