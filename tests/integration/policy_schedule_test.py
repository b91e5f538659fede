"""Runs whose first epochs have other policies: each mini-batch counts once, by the policy of its
epoch, and the cluster survives a worker's death at the change."""
import csv
import pathlib
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
PER_EPOCH = 200


def pushes_of(log):
    """Returns (mini-batch, staleness, outcome) of each gradient in a push log."""
    with open(log, encoding="utf-8") as lines:
        return [(int(row["batch"]), int(row["staleness"]), row["outcome"])
                for row in csv.DictReader(lines) if int(row["examples"]) > 0]


class PolicyScheduleTest(unittest.TestCase):
    def test_each_epoch_is_trained_by_its_policy(self):
        before = ("[{policy: hardsync, until_epoch: 1}, {policy: backup, backups: 1, until_epoch: 2}"
                  ", {policy: ssp, slack: 1, until_epoch: 3}]")
        with cluster.scratch() as directory:
            settings = {"consistency.policy": "async", "consistency.before": before,
                        "training.epochs": 4, "log.push_log": directory}
            with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                status = live.wait_finished()
            self.assertEqual(status["policy"], "async")
            self.assertEqual(status["phase"], "FINISHED")
            logs = sorted(pathlib.Path(directory).glob("push-log-*.csv"))
            self.assertEqual(len(logs), 2)
            for log in logs:
                taken = [push for push in pushes_of(log) if push[2] in ("APPLIED", "BUFFERED")]
                in_step = [push for push in taken if push[0] < 2 * PER_EPOCH]
                self.assertEqual({staleness for _, staleness, _ in in_step}, {0}, log.name)
                self.assertGreater(max(staleness for _, staleness, _ in taken), 0, log.name)
                # Epochs do not mix: the change waits for the last mini-batch.
                epochs = [batch // PER_EPOCH for batch, _, _ in taken]
                self.assertEqual(epochs, sorted(epochs), log.name)
            # Under backup a shard may drop what another takes; the first decides what is done.
            done = sorted(batch for batch, _, outcome in pushes_of(logs[0])
                          if outcome in ("APPLIED", "BUFFERED"))
            self.assertEqual(done, list(range(4 * PER_EPOCH)))

    def test_workers_come_and_go_at_the_change(self):
        with cluster.scratch() as directory:
            settings = {"consistency.policy": "softsync", "training.epochs": 3,
                        "consistency.before": "[{policy: hardsync, until_epoch: 1}]",
                        "log.push_log": directory, "cluster.lease": cluster.LEASE}
            with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                live.wait_for(lambda status: int(status["batches_done"]) > PER_EPOCH // 2,
                              "half of the first epoch")
                live.kill_worker(3)
                live.wait_for(lambda status: status["policy"] == "softsync", "the second policy")
                live.start_worker(3)
                status = live.wait_finished()
            self.assertEqual(int(status["batches_done"]), 3 * PER_EPOCH)
            for log in pathlib.Path(directory).glob("push-log-*.csv"):
                # The coordinator may have heard less of the dead worker than a shard took.
                done = {batch for batch, _, outcome in pushes_of(log)
                        if outcome in ("APPLIED", "BUFFERED")}
                self.assertLessEqual(len(set(range(3 * PER_EPOCH)) - done), 1, log.name)


if __name__ == "__main__":
    unittest.main()
