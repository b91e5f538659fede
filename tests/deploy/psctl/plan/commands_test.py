"""Tests of psctl plan, and of ps_lab measure, which it calls, as a user calls them."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).absolute().parents[3] / "support"))
from programs import DEADLINE_S, program, scratch

RUN = """
name: digits
model: {preset: mlp}
data: {format: synthetic, train_examples: 6400}
training: {batch_size: 32, epochs: 10}
consistency: {policy: softsync, n: 1}
cluster: {workers: 4, servers: [ADDRESS]}
"""
COSTS = ["--compute-fixed", "0s", "--compute-per-example", "1ms", "--compute-spread", "0.1",
         "--update-time", "100us", "--fold-time", "50us"]
LINK = ["--link-bandwidth", "1Gbit", "--link-latency", "50us"]

# A ps_lab that measures at once, and says what it was called with.
FAKE_LAB = """#!/bin/sh
echo "$@" >called
echo '{"compute": {"fixed": 0.001, "per_example": 0.001, "spread": 0.1},
       "update": {"rule": 0.0001, "fold": 0.0001},
       "local": {"latency": 1e-5, "bytes_per_second": 1e9, "message": 1e-6},
       "loopback": {"latency": 2e-5, "bytes_per_second": 5e8, "message": 1e-6}, "processors": 2}'
"""


class PlanTest(unittest.TestCase):
    def setUp(self):
        folder = scratch()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.leave("run.yaml", RUN.replace("ADDRESS", "localhost:7070"))

    def leave(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def call(self, path, *arguments, **environment):
        return subprocess.run([program(path), *arguments], text=True, timeout=DEADLINE_S, check=False,
                              cwd=self.folder, env={**os.environ, **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def plan(self, *arguments, **environment):
        return self.call("deploy/psctl/psctl", "plan", *arguments, **environment)

    def test_predicts_every_policy_from_costs_that_are_given(self):
        done = self.plan("run.yaml", "--sweep", "workers=1..8", *COSTS, *LINK, "-o", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        rows = {(row["policy"], row["workers"]): row for row in report["predictions"]}
        self.assertEqual({workers for _, workers in rows}, {1, 2, 4, 8})
        self.assertIn(("allreduce", 8), rows)
        hardsync = rows["hardsync", 8]
        # Eight pushes of 940,584 bytes over the server's link at 125 MB/s, and the first weights.
        self.assertAlmostEqual(hardsync["exchange"], 9 * 940584 / 125e6 + 2 * 50e-6, places=5)
        self.assertEqual(rows["softsync (n = 8)", 8]["staleness"], 7)
        self.assertEqual(report["costs"]["link_latency"], {"value": 5e-05, "from": "given"})
        self.assertGreater(len(report["verdicts"]), 2)

    def test_prints_what_each_number_assumes(self):
        done = self.plan("run.yaml", *COSTS, *LINK)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("softsync (n = 1)", "T_sync/T_comp = ", "conservation law", "a machine for each"):
            self.assertIn(text, done.stdout)

    def test_measures_what_nobody_said(self):
        lab = self.leave("bin/ps_lab", FAKE_LAB)
        lab.chmod(0o755)
        done = self.plan("run.yaml", "--set", "cluster.workers=2", "--bin-dir", "bin", "-o", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        costs = json.loads(done.stdout)["costs"]
        self.assertEqual(costs["compute_per_example"],
                         {"value": 0.001, "from": "measured on this machine"})
        self.assertEqual(costs["link_latency"]["value"], 1e-5)
        self.assertEqual((self.folder / "called").read_text().split(),
                         ["measure", "run.yaml", "--set", "cluster.workers=2"])

        lab.write_text("#!/bin/sh\necho 'ps_lab: error: no such net' >&2\nexit 78\n")
        done = self.plan("run.yaml", PS_LAB_BINARY=str(lab))
        self.assertEqual(done.returncode, 78)
        self.assertIn("no such net", done.stderr)

    def test_servers_elsewhere_are_behind_an_assumed_network(self):
        self.leave("far.yaml", RUN.replace("ADDRESS", "ps-0:7070")
                   + "security: {plaintext: accept_the_risk}\n")
        done = self.plan("far.yaml", *COSTS, "-o", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(done.stdout)["costs"]["link_bandwidth"],
                         {"value": 125e6, "from": "assumed; nobody said"})

    def test_a_run_is_checked_and_gives_its_costs(self):
        self.leave("runs/a/run.yaml", RUN.replace("ADDRESS", "localhost:7070"))
        self.leave("runs/a/summary.json", json.dumps({
            "seconds": 20, "pushes": 2000, "examples": 64000, "updates": 500,
            "staleness": {"mean": 0.75, "max": 2, "histogram": [1, 3, 1]},
            "workers": [{"pushes": 2000, "compute_share": 0.8, "overlap": 0.8}],
            "servers": [{"pushed_bytes": 10, "pulled_bytes": 10}]}))
        step = {"forward": [1, 1.01], "waited": 0, "backward": [1.01, 1.032], "push": [[1.04, 1.05]],
                "pull": [[1.05, 1.06]]}
        self.leave("runs/a/metrics.jsonl", json.dumps({"t": 1, "lanes": [step]}) + "\n")
        rest = ["--update-time", "0s", "--fold-time", "0s", "--processors", "4"]
        done = self.plan("--check", "runs/a", "--from", "runs/a", *rest, "-o", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        figures = {row["name"]: row for row in json.loads(done.stdout)["figures"]}
        self.assertEqual(figures["mean staleness"]["deviation"], 0)
        self.assertAlmostEqual(figures["step"]["measured"], 0.04)
        # 32 ms of computing, and 20 ms for an exchange of both directions by processors.
        self.assertAlmostEqual(figures["step"]["predicted"], 0.052, places=3)
        table = self.plan("--check", "runs/a", "--from", "runs/a", *rest)
        self.assertIn("Largest deviation: busiest server", table.stdout)
        self.assertRegex(table.stdout, r"--processors +4 +\(given\)")

    def test_says_what_is_wrong(self):
        for arguments, code, words in (
                ([], 2, "RUN.YAML, or --check RUN_DIR"),
                (["run.yaml", "--sweep", "4..1"], 2, "workers=1..64"),
                (["run.yaml", "--link-bandwidth", "12"], 2, "1Gbit"),
                (["run.yaml", "--link-latency", "3"], 2, "50us"),
                (["none.yaml", *COSTS, *LINK], 74, "none.yaml"),
                (["run.yaml", "--from", "nowhere", *COSTS, *LINK], 74, "nowhere/metrics.jsonl"),
                (["run.yaml", "--check", "nowhere", *COSTS, *LINK], 74, "nowhere/summary.json"),
                (["run.yaml", "--bin-dir", "nowhere"], 74, "ps_lab")):
            with self.subTest(arguments=arguments):
                done = self.plan(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)

    def test_ps_lab_prints_what_psctl_reads(self):
        done = self.call("deploy/lab/ps_lab", "measure", "run.yaml", "--seconds", "0.1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        measured = json.loads(done.stdout)
        self.assertGreater(measured["compute"]["per_example"], 0)
        self.assertGreater(measured["loopback"]["bytes_per_second"], 0)
        self.assertEqual(self.call("deploy/lab/ps_lab", "fly").returncode, 2)
        self.assertEqual(self.call("deploy/lab/ps_lab", "measure", "none.yaml").returncode, 74)


if __name__ == "__main__":
    unittest.main()
