"""Tests of the staleness guard on a cluster in which one worker is about four times slower."""
import pathlib
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
BOUND = 4


class GuardTest(unittest.TestCase):
    def run_with(self, action, shards=2, depth=1):
        """Runs to the end. Returns its largest staleness, the guard's figures and the status."""
        servers = ",".join(f"localhost:{7070 + shard}" for shard in range(shards))
        settings = {"consistency.policy": "async", "consistency.max_staleness.action": action,
                    "consistency.max_staleness.bound": BOUND, "cluster.servers": servers,
                    "training.pipeline_depth": depth, "data.train_examples": 12800,
                    "testing.push_delay_max": "5ms",
                    "testing.workers": "[{}, {}, {}, {delay: 10ms}]"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
            status = live.wait_finished()
        self.assertEqual(int(status["batches_done"]), int(status["batches_total"]))
        guard = {key: value if key == "action" else int(value)
                 for key, value in status["guard"].items() if key != "held_back_by"}
        self.assertEqual((guard["action"], guard["bound"]), (action, BOUND))
        return int(status["staleness"]["max"]), guard, status

    def test_reject_refuses_what_is_beyond_the_bound(self):
        largest, guard, status = self.run_with("reject")
        self.assertGreater(guard["rejected"], 0)
        self.assertLessEqual(largest, BOUND)
        refused = sum(int(shard["outcomes"].get("TOO_STALE", 0)) for shard in status["shards"])
        self.assertEqual(refused, guard["rejected"])

    def test_drop_ignores_what_is_beyond_the_bound(self):
        largest, guard, _ = self.run_with("drop")
        self.assertGreater(guard["dropped"], 0)
        self.assertLessEqual(largest, BOUND)

    def test_scale_takes_it_all(self):
        largest, guard, _ = self.run_with("scale")
        self.assertGreater(guard["scaled"], 0)
        self.assertGreater(largest, BOUND)

    def test_block_lets_nothing_get_there(self):
        for shards, depth in ((1, 1), (2, 1), (1, 2), (2, 2)):
            with self.subTest(shards=shards, depth=depth):
                largest, guard, _ = self.run_with("block", shards, depth)
                self.assertGreater(guard["rounds_held_back"], 0)
                self.assertLessEqual(largest, BOUND)
                self.assertEqual(guard["rejected"], 0)


if __name__ == "__main__":
    unittest.main()
