"""Connections between honest processes break again and again: no push is lost or counts twice, and
under hardsync the weights are the same to the bit."""
import collections
import csv
import pathlib
import random
import subprocess
import sys
import unittest

import cluster
import cut_links

HERE = pathlib.Path(__file__).parent
CONFIG = HERE / "small_run.yaml"
CUTS = 60
CUTS_MIN = 30  # The number of cuts that must happen during a run.
BATCHES = 1000
# The lease is long, so that nobody is taken for dead because of the cuts.
SETTINGS = {"cluster.lease": "60s", "data.train_examples": 32 * BATCHES, "evaluation.every_epochs": 0,
            "wire.chunk_bytes": 65536,  # So that many cuts fall within a message.
            "testing.push_delay_max": "10ms"}  # So that fast machines are not done before the cuts.


@unittest.skipUnless(cut_links.is_allowed(), "this system does not let us cut connections of others")
class CutLinksTest(unittest.TestCase):
    def run_cut(self, settings, directory):
        """Cuts connections during a run. Checks that its workers exit with 0. Returns the last
        status and the seed."""
        seed = random.randrange(1 << 32)
        with cluster.Cluster(CONFIG, {**SETTINGS, **settings}, directory, workers=4) as live:
            live.wait_for(lambda status: int(status["updates"]) >= 20, "some updates")
            with cut_links.Cutter([*live.workers.values(), *live.servers], seed, CUTS, 0.05) as cutter:
                status = live.wait_finished()
                codes = [worker.wait(timeout=cluster.DEADLINE_S) for worker in live.workers.values()]
            self.assertGreaterEqual(cutter.done, CUTS_MIN, f"seed {seed}")
            self.assertEqual(codes, [0] * 4, f"seed {seed}\n{live.log_texts()}")
            (pathlib.Path(directory) / "status.json").write_text(
                cluster.psctl("status", "--coordinator", live.coordinator, "-o", "json").stdout)
        return status, seed

    def test_hardsync_gives_the_same_weights(self):
        settings = {"consistency.policy": "hardsync", "training.epochs": 2}
        alone = cluster.run(CONFIG, {**SETTINGS, **settings})
        for transport in ("tcp", "unix", "auto"):
            with self.subTest(transport=transport), cluster.scratch() as directory:
                status, seed = self.run_cut({**settings, "wire.transport": transport}, directory)
                self.assertEqual(status["weights_sha256"], alone["weights_sha256"],
                                 f"seed {seed}")

    def test_every_mini_batch_counts_once(self):
        for policy in ("async", "softsync"):
            with self.subTest(policy=policy), cluster.scratch() as directory:
                _, seed = self.run_cut({"consistency.policy": policy, "training.epochs": 2,
                                        "log.push_log": directory, "wire.transport": "tcp"}, directory)
                logs = sorted(pathlib.Path(directory).glob("push-log-*.csv"))
                self.assertEqual(len(logs), 2)
                for log in logs:
                    self.expect_each_once(log, seed)
                done = subprocess.run(
                    [sys.executable, HERE / "recompute_staleness.py", f"{directory}/status.json", *logs],
                    text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                self.assertEqual(done.returncode, 0, f"seed {seed}\n{done.stdout}")

    def expect_each_once(self, log, seed):
        with open(log, encoding="utf-8") as lines:
            rows = [row for row in csv.DictReader(lines)
                    if row["outcome"] in ("APPLIED", "BUFFERED") and int(row["examples"]) > 0]
        batches = collections.Counter(int(row["batch"]) for row in rows)
        self.assertEqual(batches, collections.Counter(range(2 * BATCHES)), f"seed {seed}")
        incarnations = {(row["worker"], row["incarnation"]) for row in rows}
        self.assertEqual(len(incarnations), 4, f"nobody was fenced; seed {seed}")


if __name__ == "__main__":
    unittest.main()
