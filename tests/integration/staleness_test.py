"""Staleness on a live cluster agrees with the theory and with the push log."""
import csv
import pathlib
import unittest

import cluster
import recompute_staleness

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"


class StalenessTest(unittest.TestCase):
    def test_mean_staleness_follows_the_conservation_law(self):
        # The mean is (λ − 1)/c with c = λ/n, whatever the speeds, where each worker always has one
        # gradient in flight. The delay makes steps long beside what else a busy machine does.
        for n in (1, 2, 4):
            with self.subTest(n=n):
                summary = cluster.run(CONFIG, {"consistency.n": n, "data.train_examples": 19200,
                                               "training.epochs": 6, "evaluation.every_epochs": 0,
                                               "testing.workers": "[" + "{delay: 3ms}, " * 4 + "]"})
                expected = 3 / (4 // n)
                measured = summary["staleness"]["mean"]
                print(f"n={n}: mean staleness {measured:.3f}, expected {expected:.3f}")
                self.assertLess(abs(measured - expected), 0.1 * expected)

    def test_the_staleness_of_each_worker_follows_its_share_of_the_pushes(self):
        # A worker with the share r/R of an asynchronous run's pushes has the mean R/r − 1.
        summary = cluster.run(CONFIG, {
            "consistency.policy": "async", "data.train_examples": 19200, "training.epochs": 4,
            "evaluation.every_epochs": 0,
            "testing.workers": "[{delay: 4ms}, {delay: 4ms}, {delay: 4ms}, {delay: 16ms}]"})
        pushes = [worker["pushes"] for worker in summary["workers"]]
        for worker, own in zip(summary["workers"], pushes):
            expected = sum(pushes) / own - 1
            measured = worker["staleness_mean"]
            print(f"{own} of {sum(pushes)} pushes: mean staleness {measured:.3f}, "
                  f"expected {expected:.3f}")
            self.assertLess(abs(measured - expected), 0.1 * expected)
        self.assertLess(min(pushes), 0.75 * max(pushes), "the delay has had no effect")

    def test_hardsync_has_no_staleness(self):
        summary = cluster.run(CONFIG, {"consistency.policy": "hardsync",
                                       "data.train_examples": 1600})
        self.assertEqual(summary["staleness"]["mean"], 0)
        self.assertEqual(summary["staleness"]["max"], 0)

    def test_status_says_what_the_push_log_says(self):
        for policy in ("hardsync", "softsync", "async", "hogwild"):
            with self.subTest(policy=policy), cluster.scratch() as directory:
                settings = {"consistency.policy": policy, "log.push_log": directory,
                            "optimizer.kind": "sgd",
                            "data.train_examples": 3200}
                with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                    status = live.wait_finished()
                logs = sorted(pathlib.Path(directory).glob("push-log-*.csv"))
                self.assertEqual(len(logs), 2)
                differences = recompute_staleness.compare(logs, status)
                self.assertEqual(differences, [])
                self.assert_every_batch_counts_once(logs)

    def assert_every_batch_counts_once(self, logs):
        for log in logs:
            with open(log, encoding="utf-8") as lines:
                batches = sorted(int(row["batch"]) for row in csv.DictReader(lines)
                                 if int(row["examples"]) > 0)
            self.assertEqual(batches, list(range(100)), log.name)


if __name__ == "__main__":
    unittest.main()
