"""One worker is stopped for a while: the others do its work, and no mini-batch counts twice or is
lost. The push log of each shard is the evidence."""
import collections
import csv
import pathlib
import signal
import time
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
STOPPED = 3
BATCHES = 600
EPOCHS = 4


class StoppedWorkerTest(unittest.TestCase):
    def stop_one(self, lease, stop_s):
        """Stops a worker for `stop_s` seconds. Returns the last status, the rows of the push logs
        by shard, the pushes of each worker at the moment when it was let go on, and the exit
        codes."""
        settings = {"consistency.policy": "softsync", "cluster.lease": lease,
                    "data.train_examples": 32 * BATCHES, "training.epochs": EPOCHS,
                    "evaluation.every_epochs": 0, "testing.push_delay_max": "40ms"}
        with cluster.scratch() as directory:
            settings["log.push_log"] = directory
            with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                live.wait_for(lambda status: int(status["updates"]) >= 20, "some updates")
                live.workers[STOPPED].send_signal(signal.SIGSTOP)
                time.sleep(stop_s)
                pushed = self.pushes(live.status())
                live.workers[STOPPED].send_signal(signal.SIGCONT)
                status = live.wait_finished()
                ends = {worker: process.wait(timeout=cluster.DEADLINE_S)
                        for worker, process in live.workers.items()}
            rows = []
            for log in sorted(pathlib.Path(directory).glob("push-log-*.csv")):
                with open(log, encoding="utf-8") as lines:
                    rows.append([row for row in csv.DictReader(lines)
                                 if row["outcome"] in ("APPLIED", "BUFFERED")])
        return status, rows, pushed, ends

    @staticmethod
    def pushes(status):
        return {int(worker["worker"]): int(worker["pushes"]) for worker in status["workers"]}

    def test_shorter_than_the_lease_the_others_process_more_and_it_goes_on(self):
        status, rows, pushed, ends = self.stop_one(lease="30s", stop_s=10)
        for shard in rows:
            batches = collections.Counter(int(row["batch"]) for row in shard)
            self.assertEqual(batches, collections.Counter(range(BATCHES * EPOCHS)))
        others = [count for worker, count in pushed.items() if worker != STOPPED]
        self.assertGreater(min(others), pushed[STOPPED])
        self.assertGreater(self.pushes(status)[STOPPED], pushed[STOPPED], "it goes on afterwards")
        self.assertEqual(set(ends.values()), {0})

    def test_longer_than_the_lease_its_work_is_done_by_others(self):
        status, rows, _, ends = self.stop_one(lease=cluster.LEASE, stop_s=10)
        states = {int(worker["worker"]): worker["state"] for worker in status["workers"]}
        self.assertEqual(states[STOPPED], "dead")
        # The worker was fenced, and the work that it had not pushed was handed out again. Its push
        # in flight may have reached one shard and not the other, which then lacks this mini-batch.
        every = set(range(BATCHES * EPOCHS))
        shards = [collections.Counter(int(row["batch"]) for row in shard) for shard in rows]
        for batches in shards:
            self.assertEqual(max(batches.values()), 1, "a mini-batch counted twice")
            self.assertLessEqual(len(every - set(batches)), 1)
        self.assertEqual(set().union(*shards), every)
        for worker, code in ends.items():
            self.assertEqual(code, 75 if worker == STOPPED else 0)


if __name__ == "__main__":
    unittest.main()
