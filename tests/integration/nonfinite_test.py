"""A mini-batch whose gradient is not finite is left out; many of them in a row end the run."""
import json
import pathlib
import unittest

import numpy

import cluster

CONFIG = """
version: 1
name: nonfinite
model: {input: [40, 1, 1], layers: [dense: {units: 1}], loss: mse}
data: {format: npy, path: .}
training: {batch_size: 20, epochs: 6}
consistency: {policy: softsync, n: 1}
optimizer: {kind: momentum, learning_rate: 0.02, momentum: 0.9, schedule: {kind: cosine}}
cluster: {servers: ["localhost:7070", "localhost:7071"], workers: 3}
"""


class NonfiniteTest(unittest.TestCase):
    def setUp(self):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        chance = numpy.random.RandomState(3)
        x = chance.uniform(-1, 1, (2400, 40)).astype("f4")
        y = (x @ chance.normal(0, 0.3, 40) + chance.normal(0, 0.1, 2400)).astype("f4")
        # The squared error of this example exceeds the range of fp32.
        x[777] = 1e30
        for name, part in (("train", slice(0, 2000)), ("test", slice(2000, 2400))):
            numpy.save(self.directory / f"X_{name}.npy", x[part])
            numpy.save(self.directory / f"y_{name}.npy", y[part])
        self.config = cluster.write_config(self.directory, CONFIG)

    def run_with(self, settings):
        settings = {"data.path": self.directory, **settings}
        return cluster.psctl("run", str(self.config), "-o", "json", *cluster.overrides(settings),
                             check=False)

    def test_one_bad_example_costs_its_mini_batches_and_nothing_else(self):
        # Under the guard, rounds wait for gradients in flight. They must not wait for one that is
        # left out.
        guard = {"consistency.max_staleness.bound": 2, "consistency.max_staleness.action": "block"}
        for policy, more in (("hardsync", {}), ("softsync", {}), ("async", {}), ("async", guard)):
            with self.subTest(policy=policy, **more):
                summary = cluster.run(self.config, {"data.path": self.directory,
                                                    "consistency.policy": policy, **more})
                # The example is in one of the 100 mini-batches of each of the six epochs.
                self.assertEqual(sum(worker["nonfinite"] for worker in summary["workers"]), 6)
                self.assertEqual(summary["pushes"], 594)
                self.assertLess(summary["test_loss"], 0.012)

    def test_many_in_a_row_end_the_run_and_say_what_to_do(self):
        for policy in ("hardsync", "softsync"):
            with self.subTest(policy=policy):
                done = self.run_with({"consistency.policy": policy, "training.nonfinite_max": 4,
                                      "optimizer.learning_rate": 1e30})
                self.assertEqual(done.returncode, cluster.DIVERGED, done.stderr)
                self.assertRegex(done.stderr, "worker [0-2]: training diverged: 4 mini-batches in "
                                 "a row gave no finite numbers; the last, mini-batch [0-9]+, gave "
                                 "a .*(inf|nan).*Lower optimizer.learning_rate")
                summary = json.loads(done.stdout)
                self.assertEqual(summary["ended_by"], "diverged")
                divergence = summary["divergence"]
                self.assertEqual(divergence["epoch"], 1)
                # A worker that ends at once has not told its figures, and has told why it ends.
                self.assertRegex(divergence["reason"], "mini-batch [0-9]+, gave")
                self.assertLessEqual(divergence["staleness_mean"], divergence["staleness_max"])
                self.assertEqual(divergence["test_accuracy"], "not finite")


if __name__ == "__main__":
    unittest.main()
