"""The death of a worker does not end a run."""
import pathlib
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
        settings = {"consistency.policy": "hardsync", "cluster.lease": cluster.LEASE,
                    "data.train_examples": 12800, "testing.push_delay_max": "20ms"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
            before = live.wait_for(lambda status: int(status["updates"]) >= 5, "some updates")
            old = cluster.line_of(before, 2)["incarnation"]
            live.kill_worker(2)
            live.start_worker(2)

            # Check the incarnation: a late report of the old one's pushes would also raise
            # last_sequence.
            def is_back(status):
                line = cluster.line_of(status, 2)
                return line["incarnation"] != old and line["last_sequence"] > 3

            live.wait_for(is_back, "the new incarnation to push")
            live.wait_finished()
            self.assertEqual(live.workers[2].wait(timeout=cluster.DEADLINE_S), 0, live.log_texts())

    def test_of_two_workers_of_one_id_the_older_ends_for_good_and_says_why(self):
        settings = {"consistency.policy": "async", "data.train_examples": 12800,
                    "testing.push_delay_max": "20ms"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
            live.wait_for(lambda status: int(status["updates"]) >= 5, "some updates")
            older = live.workers[1]
            live.start_worker(1)
            self.assertEqual(older.wait(timeout=cluster.DEADLINE_S), 78, live.log_texts())
            self.assertIn("another process has registered as worker 1", live.log_text("worker-1"))
            live.wait_finished()
            self.assertEqual(live.workers[1].wait(timeout=cluster.DEADLINE_S), 0, live.log_texts())


if __name__ == "__main__":
    unittest.main()
