"""Runs that an operator changes while they train: the policy and the learning rate change on all shards,
work goes on, and each mini-batch counts once."""
import csv
import pathlib
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
PER_EPOCH = 200
SLOW = {"testing.push_delay_max": "20ms", "evaluation.every_epochs": 0}


def change(live, *words):
    return cluster.psctl(*words, "--coordinator", live.coordinator)


def gradients(log):
    with open(log, encoding="utf-8") as lines:
        return [row for row in csv.DictReader(lines) if int(row["examples"]) > 0]


class LiveChangeTest(unittest.TestCase):
    def test_policies_and_rate_change_while_work_goes_on(self):
        with cluster.scratch() as directory:
            settings = {**SLOW, "consistency.policy": "async", "training.epochs": 16,
                        "optimizer.learning_rate": 0.05, "log.push_log": directory}
            with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                live.wait_for(lambda status: int(status["batches_done"]) > PER_EPOCH // 2, "work")
                said = change(live, "policy", "set", "softsync", "--n", "2")
                self.assertIn("from the next version of each shard on", said.stdout)
                for stage, words, policy, rate in (
                        (1, None, "softsync", 0.05),
                        (2, ("policy", "set", "ssp", "--slack", "1"), "ssp", 0.05),
                        (3, ("set", "optimizer.learning_rate=0.025"), "ssp", 0.025)):
                    if words is not None:
                        change(live, *words)
                    status = live.wait_for(
                        lambda status, stage=stage: all(int(shard.get("stage", 0)) == stage
                                                        for shard in status["shards"]),
                        f"stage {stage} on both shards")
                    self.assertEqual(status["policy"], policy)
                    done = int(status["batches_done"])
                    live.wait_for(lambda status, done=done:
                                  int(status["batches_done"]) > done + PER_EPOCH // 2, "more work")
                    self.assertAlmostEqual(live.status()["learning_rate"], rate)
                refused = cluster.psctl("policy", "set", "hardsync", "--coordinator",
                                        live.coordinator, check=False)
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn("need all shards at one version", refused.stderr)
                status = live.wait_finished()
            self.assertEqual(int(status["batches_done"]), 16 * PER_EPOCH)
            self.assertEqual([stage["policy"] for stage in status["stages"]],
                             ["async", "softsync", "ssp", "ssp"])
            logs = sorted(pathlib.Path(directory).glob("push-log-*.csv"))
            self.assertEqual(len(logs), 2)
            for log in logs:
                rows = gradients(log)
                self.assertEqual({row["outcome"] for row in rows} - {"APPLIED", "BUFFERED"}, set())
                self.assertEqual(sorted(int(row["batch"]) for row in rows),
                                 list(range(16 * PER_EPOCH)), log.name)
                stages = [int(row["stage"]) for row in rows]
                self.assertEqual(stages, sorted(stages), log.name)
                self.assertEqual(set(stages), {0, 1, 2, 3}, log.name)

    def test_rounds_end_with_an_epoch(self):
        with cluster.scratch() as directory:
            settings = {**SLOW, "consistency.policy": "hardsync", "training.epochs": 6,
                        "log.push_log": directory}
            with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                live.wait_for(lambda status: int(status["batches_done"]) > PER_EPOCH // 2, "work")
                said = change(live, "policy", "set", "async")
                self.assertIn("from the end of epoch", said.stdout)
                status = live.wait_finished()
            self.assertEqual(status["policy"], "async")
            self.assertEqual(int(status["batches_done"]), 6 * PER_EPOCH)
            for log in pathlib.Path(directory).glob("push-log-*.csv"):
                rows = gradients(log)
                self.assertEqual(sorted(int(row["batch"]) for row in rows),
                                 list(range(6 * PER_EPOCH)), log.name)
                of_rounds = [int(row["batch"]) for row in rows if row["stage"] == "0"]
                self.assertEqual(len(of_rounds) % PER_EPOCH, 0, log.name)
                self.assertEqual(sorted(of_rounds), list(range(len(of_rounds))), log.name)


if __name__ == "__main__":
    unittest.main()
