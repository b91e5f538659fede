"""Workers whose computing waits for no weights: the servers' accounts stay exact."""
import pathlib
import unittest

import cluster
import recompute_staleness

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"

FREE = {"worker.lanes": "free", "cluster.workers": 3, "wire.chunk_bytes": "16KiB"}


class FreeLanesTest(unittest.TestCase):
    def test_every_batch_counts_once_and_status_says_what_the_log_says(self):
        for consistency in ({"consistency.policy": "softsync", "consistency.n": 1},
                            {"consistency.policy": "async"}):
            with self.subTest(consistency=consistency), cluster.scratch() as directory:
                settings = {**FREE, **consistency, "log.push_log": directory,
                            "training.epochs": 2}
                with cluster.Cluster(CONFIG, settings, directory, workers=3) as live:
                    status = live.wait_finished()
                    codes = [worker.wait(timeout=cluster.DEADLINE_S)
                             for worker in live.workers.values()]
                    self.assertEqual(codes, [0, 0, 0], live.log_texts())
                self.assertEqual(int(status["batches_done"]), int(status["batches_total"]))
                self.assertGreater(status["staleness"]["mean"], 0)
                recompute_staleness.expect_each_batch_once(self, directory, status, 400)

    def test_a_worker_that_is_killed_comes_back_and_the_run_ends_cleanly(self):
        settings = {**FREE, "consistency.policy": "async", "cluster.lease": cluster.LEASE,
                    "data.train_examples": 12800, "testing.push_delay_max": "20ms"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=3) as live:
            before = live.wait_for(
                lambda status: cluster.line_of(status, 2).get("last_sequence", 0) > 1,
                "worker 2 to push")
            old = cluster.line_of(before, 2)["incarnation"]
            live.kill_worker(2)
            live.start_worker(2)

            def is_back(status):
                line = cluster.line_of(status, 2)
                return line.get("incarnation", old) != old and line["last_sequence"] > 3

            live.wait_for(is_back, "the new incarnation to push")
            status = live.wait_finished()
            self.assertEqual(int(status["batches_done"]), int(status["batches_total"]))
            codes = [live.workers[worker].wait(timeout=cluster.DEADLINE_S)
                     for worker in (0, 1, 2)]
            self.assertEqual(codes, [0, 0, 0], live.log_texts())

    def test_refused_gradients_end_nothing_and_none_beyond_the_bound_counts(self):
        summary = cluster.run(CONFIG, {**FREE, "consistency.policy": "async",
                                       "consistency.max_staleness.action": "reject",
                                       "consistency.max_staleness.bound": 1})
        self.assertLessEqual(int(summary["staleness"]["max"]), 1)
        self.assertEqual(summary["ended_by"], "epochs")

    def test_a_policy_can_take_over_while_the_run_trains(self):
        settings = {**FREE, "consistency.policy": "softsync", "data.train_examples": 12800,
                    "testing.push_delay_max": "20ms"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=3) as live:
            live.wait_for(lambda status: int(status["updates"]) >= 5, "some updates")
            refused = cluster.psctl("policy", "set", "ssp", "--coordinator", live.coordinator,
                                    check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("workers wait for others", refused.stderr)
            cluster.psctl("policy", "set", "async", "--coordinator", live.coordinator)
            status = live.wait_finished()
            self.assertEqual(int(status["batches_done"]), int(status["batches_total"]))


if __name__ == "__main__":
    unittest.main()
