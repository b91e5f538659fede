"""Overlap does not change results, and a pipeline changes staleness as expected."""
import json
import pathlib
import unittest

import cluster
import recompute_staleness

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"

# These settings cut each shard of the small model into dozens of chunks, so that transfers can
# overlap.
CUT = {"wire.chunk_bytes": "16KiB"}


def lanes_of(run_dir):
    """Returns the lane records of a run, by worker, in order of steps."""
    by_worker = {}
    with open(pathlib.Path(run_dir) / "metrics.jsonl", encoding="utf-8") as lines:
        for line in lines:
            for step in json.loads(line).get("lanes", []):
                by_worker.setdefault(step["worker"], []).append(step)
    return by_worker


class OverlapTest(unittest.TestCase):
    def test_one_worker_equals_a_plain_loop_to_the_bit_also_in_many_chunks(self):
        for policy in ("hardsync", "softsync", "async"):
            for preset in ("mlp", "lenet5"):
                settings = {**CUT, "consistency.policy": policy, "cluster.workers": 1,
                            "model.preset": preset, "data.train_examples": 1000,
                            "training.batch_size": 48, "training.epochs": 2}
                with self.subTest(policy=policy, preset=preset):
                    trained = cluster.run(CONFIG, settings)
                    plain = cluster.plain_loop(CONFIG, settings)
                    self.assertEqual(trained["weights_sha256"], plain["weights_sha256"])

    def test_hardsync_gives_the_same_weights_however_the_gradients_travel(self):
        settings = {"consistency.policy": "hardsync", "data.train_examples": 2000}
        whole = cluster.run(CONFIG, settings)
        for changed in (CUT, {**CUT, "testing.push_delay_max": "20ms"}):
            with self.subTest(changed=changed):
                again = cluster.run(CONFIG, {**settings, **changed})
                self.assertEqual(again["weights_sha256"], whole["weights_sha256"])

    def test_a_pipeline_of_two_follows_the_conservation_law(self):
        # The mean staleness is (2λ − 1)/c, as each worker has two gradients in flight.
        for consistency, c in (({"consistency.policy": "async"}, 1),
                               ({"consistency.policy": "softsync", "consistency.n": 2}, 2)):
            with self.subTest(consistency=consistency):
                summary = cluster.run(CONFIG, {**consistency, "training.pipeline_depth": 2,
                                               "data.train_examples": 19200,
                                               "training.epochs": 12,
                                               "evaluation.every_epochs": 0})
                expected = 7 / c
                measured = summary["staleness"]["mean"]
                print(f"{consistency}: mean staleness {measured:.3f}, expected {expected:.3f}")
                self.assertLess(abs(measured - expected), 0.1 * expected)

    def test_with_a_pipeline_every_batch_counts_once_and_status_says_what_the_log_says(self):
        with cluster.scratch() as directory:
            settings = {**CUT, "consistency.policy": "async", "training.pipeline_depth": 2,
                        "log.push_log": directory, "data.train_examples": 3200}
            with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                status = live.wait_finished()
            recompute_staleness.expect_each_batch_once(self, directory, status, 100)

    def test_the_death_of_a_worker_with_two_gradients_under_way_ends_nothing(self):
        status = cluster.outlive_one(CONFIG, {**CUT, "consistency.policy": "async",
                                              "training.pipeline_depth": 2})
        self.assertEqual(int(status["batches_done"]), int(status["batches_total"]))

    def test_lanes_do_things_in_order(self):
        for depth in (1, 2):
            with self.subTest(depth=depth), cluster.scratch() as directory:
                run_dir = pathlib.Path(directory) / "run"
                summary = cluster.run(CONFIG, {**CUT, "consistency.policy": "async",
                                               "training.pipeline_depth": depth,
                                               "training.epochs": 4}, run_dir=run_dir)
                lanes = lanes_of(run_dir)
                self.assertEqual(sorted(lanes), [0, 1, 2, 3])
                for steps in lanes.values():
                    self.check_lanes(steps, depth)
                for worker in summary["workers"]:
                    self.assertGreaterEqual(worker["communication_hidden"], 0)
                    self.assertLessEqual(worker["communication_hidden"], 1)
                    self.assertGreater(worker["overlap"], 0)

    def check_lanes(self, steps, depth):
        numbers = [step["step"] for step in steps]
        self.assertEqual(numbers, sorted(set(numbers)), "each step is told once")
        by_number = {step["step"]: step for step in steps}
        for step in steps:
            self.assertEqual(len(step["push"]), 2)
            moments = [*step["forward"], *step["backward"]]
            self.assertEqual(moments, sorted(moments))
            for push, pull in zip(step["push"], step["pull"]):
                moments = [step["backward"][0], *push, *pull]
                self.assertEqual(moments, sorted(moments))
                self.assertLessEqual(step["backward"][1], push[1], "it counted too early")
            following = by_number.get(step["step"] + depth)
            if following:
                arrived = max(end for _, end in step["pull"])
                self.assertLessEqual(arrived, following["forward"][1],
                                     "computed from weights that had not come")


if __name__ == "__main__":
    unittest.main()
