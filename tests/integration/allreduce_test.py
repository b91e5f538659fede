"""Workers that add up their gradients themselves make the weights that hardsync makes."""
import math
import pathlib
import unittest

import cluster
import safetensors_reader

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
# 200 mini-batches an epoch: in the last round one of three workers has none.
THREE = {"cluster.workers": 3, "training.epochs": 2}


def trained(policy, settings):
    """Returns the summary of a run and its final weights."""
    with cluster.scratch() as directory:
        summary = cluster.run(CONFIG, {"consistency.policy": policy, **THREE, **settings},
                              run_dir=pathlib.Path(directory) / "run")
        values = safetensors_reader.Model(summary["model"]).values
    return summary, [value for name in sorted(values) for value in values[name]]


def distance(a, b):
    """Returns the distance between two vectors, relative to the length of the second."""
    difference = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)))
    return difference / math.sqrt(sum(y * y for y in b))


class AllReduceTest(unittest.TestCase):
    def test_the_weights_are_those_of_hardsync_up_to_rounding(self):
        for settings in ({}, {"optimizer.kind": "adam", "optimizer.learning_rate": 0.002},
                         {"optimizer.clip_norm": 0.5, "optimizer.weight_decay": 0.001}):
            with self.subTest(settings=settings):
                summary, weights = trained("allreduce", settings)
                expected, of_hardsync = trained("hardsync", settings)
                self.assertEqual(len(weights), len(of_hardsync))
                self.assertLess(distance(weights, of_hardsync), 1e-3)
                self.assertAlmostEqual(summary["test_accuracy"], expected["test_accuracy"],
                                       delta=0.01)
                self.assertEqual(summary["ended_by"], "epochs")

    def test_the_death_of_a_worker_ends_the_run_and_is_named(self):
        settings = {"consistency.policy": "allreduce", **THREE, "cluster.lease": cluster.LEASE,
                    "testing.push_delay_max": "20ms"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=3) as live:
            live.wait_for(lambda status: int(status["batches_done"]) > 10, "some steps")
            live.kill_worker(2)
            for worker in (0, 1):
                code = live.workers[worker].wait(timeout=cluster.DEADLINE_S)
                self.assertNotEqual(code, 0, live.log_texts())
                self.assertIn("worker 2 on ", live.log_text(f"worker-{worker}"))

    def test_max_steps_counts_the_mini_batches_of_all_workers(self):
        summary, _ = trained("allreduce", {"training.max_steps": 100})
        self.assertEqual(summary["ended_by"], "max_steps")


if __name__ == "__main__":
    unittest.main()
