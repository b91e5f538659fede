"""Conditions that end a run before its epochs are over, on live clusters."""
import pathlib
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
POLICIES = ("hardsync", "softsync", "async")


class StopConditionsTest(unittest.TestCase):
    def test_max_steps_is_met_exactly_by_every_policy(self):
        for policy in POLICIES:
            with self.subTest(policy=policy):
                # An epoch has 200 mini-batches, so the limit lies within the second epoch.
                summary = cluster.run(CONFIG, {"consistency.policy": policy,
                                               "training.epochs": 3, "training.max_steps": 310})
                self.assertEqual(summary["ended_by"], "max_steps")
                self.assertEqual(summary["pushes"], 310)
                self.assertEqual(len(summary["weights_sha256"]), 64)

    def test_hardsync_ended_by_steps_gives_the_same_weights_again(self):
        settings = {"consistency.policy": "hardsync", "training.max_steps": 101}
        first = cluster.run(CONFIG, settings)
        again = cluster.run(CONFIG, {**settings, "testing.push_delay_max": "10ms"})
        self.assertEqual(first["weights_sha256"], again["weights_sha256"])
        self.assertEqual(first["updates"], again["updates"])

    def test_max_seconds_ends_a_run_that_would_go_on(self):
        for policy in POLICIES:
            with self.subTest(policy=policy):
                summary = cluster.run(CONFIG, {"consistency.policy": policy,
                                               "training.epochs": 100000,
                                               "training.max_seconds": 2,
                                               "evaluation.every_epochs": 0})
                self.assertEqual(summary["ended_by"], "max_seconds")
                self.assertGreaterEqual(summary["seconds"], 2)
                self.assertGreater(summary["pushes"], 0)
                self.assertTrue(summary["evaluations"][-1]["final"])
                self.assertEqual({worker["state"] for worker in summary["workers"]}, {"left"})

    def test_every_push_counts_on_every_shard_when_time_is_over(self):
        with cluster.scratch() as directory:
            summary = cluster.run(CONFIG, {"consistency.policy": "async",
                                           "training.epochs": 100000, "training.max_seconds": 1,
                                           "evaluation.every_epochs": 0},
                                  run_dir=pathlib.Path(directory) / "run", extra=["--push-log"])
            logs = sorted((pathlib.Path(directory) / "run").glob("push-log-*.csv"))
            counts = [log.read_text(encoding="utf-8").count("APPLIED") for log in logs]
            dropped = [log.read_text(encoding="utf-8").count("DROPPED") for log in logs]
        self.assertEqual(counts, [summary["pushes"]] * 2)
        self.assertEqual(dropped, [0, 0])

    def test_reaching_the_target_accuracy_ends_the_run_as_a_success(self):
        for policy in POLICIES:
            with self.subTest(policy=policy):
                summary = cluster.run(CONFIG, {"consistency.policy": policy,
                                               "training.epochs": 100000,
                                               "training.target_accuracy": 0.5})
                self.assertEqual(summary["ended_by"], "target_accuracy")
                reached = [evaluation["test_accuracy"] for evaluation in summary["evaluations"]]
                self.assertGreaterEqual(max(reached), 0.5)
                self.assertTrue(summary["evaluations"][-1]["final"])

    def test_an_operator_ends_training_and_the_weights_are_saved(self):
        for policy in POLICIES:
            with self.subTest(policy=policy), cluster.scratch() as directory:
                settings = {"consistency.policy": policy, "training.epochs": 100000,
                            "evaluation.every_epochs": 0, "model.save_dir": directory}
                with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                    early = cluster.psctl("stop", "--coordinator", live.coordinator, check=False)
                    live.wait_for(lambda status: int(status["updates"]) >= 10, "some updates")
                    cluster.psctl("stop", "--coordinator", live.coordinator)
                    status = live.wait_finished()
                    codes = {worker.wait(timeout=cluster.DEADLINE_S)
                             for worker in live.workers.values()}
                    again = cluster.psctl("stop", "--coordinator", live.coordinator).stdout
                    self.assertTrue((pathlib.Path(directory) / "model.safetensors").exists())
                if early.returncode != 0:  # If it is 0, training had already begun.
                    self.assertIn("training has not begun", early.stderr)
                self.assertEqual(status["ended_by"], "interrupted")
                self.assertEqual(codes, {0})
                self.assertEqual(again, "the run has finished already\n")

    def test_a_run_to_its_last_epoch_says_so(self):
        self.assertEqual(cluster.run(CONFIG)["ended_by"], "epochs")


if __name__ == "__main__":
    unittest.main()
