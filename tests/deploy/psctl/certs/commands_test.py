"""psctl certs makes, shows and renews the certificates of a run."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).absolute().parents[3] / "support"))
from programs import DEADLINE_S, program, scratch

RUN = """version: 1
name: mnist
model: {preset: mlp}
data: {format: synthetic, train_examples: 640, test_examples: 100}
cluster: {servers: ["ps-0:7070", "[2001:db8::1]:7070"], workers: 2}
"""


class CertsTest(unittest.TestCase):
    def setUp(self):
        directory = scratch()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.certs = self.directory / "certs"

    def psctl(self, *arguments, code=0):
        done = subprocess.run([program("deploy/psctl/psctl"), *map(str, arguments)], text=True,
                              timeout=DEADLINE_S, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, cwd=self.directory)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def show(self, code=0):
        found = json.loads(self.psctl("certs", "show", self.certs, "-o", "json", code=code).stdout)
        return {line["file"]: line for line in found}

    def test_init_makes_what_a_configuration_needs(self):
        (self.directory / "run.yaml").write_text(RUN)
        done = self.psctl("certs", "init", self.certs, "--config", "run.yaml")
        self.assertEqual(done.stdout, f"security:\n  mtls:\n    ca: {self.certs}/ca.crt\n")
        found = self.show()
        self.assertEqual(list(found), ["ca.crt", "operator.crt", "reader.crt", "server-0.crt",
                                       "server-1.crt", "viewer.crt", "worker-0.crt", "worker-1.crt"])
        self.assertEqual({line["state"] for line in found.values()}, {"ok"})
        self.assertEqual(found["server-0.crt"]["hosts"], "ps-0 localhost 127.0.0.1 ::1")
        self.assertEqual(found["server-1.crt"]["hosts"], "2001:db8::1 localhost 127.0.0.1 ::1")
        self.assertEqual(found["worker-1.crt"]["identity"], "slipstream://run/mnist/worker/1")
        for file in self.certs.iterdir():
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600, file)
        self.assertEqual(stat.S_IMODE(self.certs.stat().st_mode), 0o700)

    def test_init_adds_members_and_leaves_what_is_there(self):
        arguments = ["certs", "init", self.certs, "--run", "mnist", "--hosts", "ps-0+10.0.0.5,ps-1"]
        self.psctl(*arguments, "--workers", 1)
        before = {file.name: file.read_bytes() for file in self.certs.iterdir()}
        done = self.psctl(*arguments, "--workers", 2, "--any-worker")
        self.assertIn("worker-0.crt is there already, and stays", done.stderr)
        after = {file.name: file.read_bytes() for file in self.certs.iterdir()}
        self.assertEqual({name: after[name] for name in before}, before)
        self.assertEqual(sorted(set(after) - set(before)),
                         ["worker-1.crt", "worker-1.key", "worker.crt", "worker.key"])
        self.assertEqual(self.show()["worker.crt"]["identity"], "slipstream://run/mnist/worker/*")
        self.assertEqual(self.show()["server-0.crt"]["hosts"],
                         "ps-0 10.0.0.5 localhost 127.0.0.1 ::1")

    def test_aggregators_have_numbers_after_those_of_the_servers(self):
        self.psctl("certs", "init", self.certs, "--run", "mnist", "--hosts", "ps-0,ps-1",
                   "--aggregator-hosts", "rack-0,rack-1+10.0.0.5")
        found = self.show()
        self.assertEqual([file for file in found if file.startswith("server")],
                         [f"server-{number}.crt" for number in range(6)])
        self.assertEqual(found["server-3.crt"]["hosts"], "rack-0 localhost 127.0.0.1 ::1")
        self.assertEqual(found["server-4.crt"]["hosts"], "rack-1 10.0.0.5 localhost 127.0.0.1 ::1")

    def test_init_says_what_is_missing_or_wrong(self):
        for arguments, words in (
                ([], "--run has to be the run's name"),
                (["--run", "a/b", "--hosts", "ps-0"], "--run has to be the run's name"),
                (["--run", "mnist"], "give the servers' names by --hosts"),
                (["--run", "mnist", "--hosts", "ps 0"], "'ps 0' in --hosts is no host"),
                (["--run", "mnist", "--hosts", "0.0.0.0"], "'0.0.0.0' in --hosts is no host"),
                (["--run", "mnist", "--hosts", "ps-0:7070"], "is no host"),
                (["--run", "mnist", "--hosts", "ps-0", "--aggregator-hosts", "rack 0"],
                 "'rack 0' in --aggregator-hosts is no host"),
                (["--run", "mnist", "--hosts", "ps-0", "--days", "0"], "must be a whole number in [1, 3650]"),
                (["--run", "mnist", "--hosts", "ps-0", "--workers", "99999999"], "at most")):
            with self.subTest(arguments):
                done = self.psctl("certs", "init", self.certs, *arguments, code=2)
                self.assertIn(words, done.stderr)
        self.assertFalse(self.certs.exists())

    def test_renew_keeps_keys_and_extends_the_time(self):
        self.psctl("certs", "init", self.certs, "--run", "mnist", "--hosts", "ps-0", "--workers", 1,
                   "--days", 5)
        before = self.show()
        self.assertEqual(before["worker-0.crt"]["state"], "ok")
        keys = {file.name: file.read_bytes() for file in self.certs.glob("*.key")}
        self.psctl("certs", "renew", self.certs, "--days", 100)
        after = self.show()
        self.assertEqual({file.name: file.read_bytes() for file in self.certs.glob("*.key")}, keys)
        for name in ("worker-0.crt", "server-0.crt", "operator.crt"):
            self.assertEqual(after[name]["state"], "ok")
            self.assertGreater(after[name]["ends"], before[name]["ends"])
            self.assertEqual(after[name]["identity"], before[name]["identity"])
            self.assertEqual(after[name]["hosts"], before[name]["hosts"])
        self.assertEqual(after["ca.crt"], before["ca.crt"])

    def test_renew_signs_nothing_that_was_not_signed(self):
        for name in ("certs", "others"):
            self.psctl("certs", "init", name, "--run", "mnist", "--hosts", "ps-0", "--workers", 2)
        os.replace(self.directory / "others" / "server-0.crt", self.certs / "worker-0.crt")
        os.replace(self.certs / "worker-1.crt", self.certs / "viewer.crt")
        before = {file.name: file.read_bytes() for file in self.certs.glob("*.crt")}
        done = self.psctl("certs", "renew", self.certs, code=78)
        self.assertIn("worker-0.crt as it is: another authority has signed it", done.stderr)
        self.assertIn("viewer.crt as it is: it is for slipstream://run/mnist/worker/1", done.stderr)
        after = {file.name: file.read_bytes() for file in self.certs.glob("*.crt")}
        self.assertEqual({name for name in before if before[name] != after[name]},
                         {"operator.crt", "reader.crt", "server-0.crt"})

    def test_init_contradicts_nothing_that_is_there(self):
        init = ["certs", "init", self.certs, "--workers", 1]
        self.psctl(*init, "--run", "mnist", "--hosts", "ps-0")
        before = {file.name: file.read_bytes() for file in self.certs.iterdir()}
        for run, host, words in (("mnist", "ps-9", "server-0.crt is for slipstream://run/mnist/server/0 ps-0"),
                                 ("other", "ps-0", "remove it and its key")):
            done = self.psctl(*init, "--run", run, "--hosts", host, "--any-worker", code=78)
            self.assertIn(words, done.stderr)
        for name in ("server-0.crt", "worker-0.crt", "operator.crt", "viewer.crt", "reader.crt"):
            (self.certs / name).unlink()
        done = self.psctl(*init, "--run", "other", "--hosts", "ps-0", code=78)
        self.assertIn("is another run's authority", done.stderr)
        (self.certs / "ca.crt").unlink()
        done = self.psctl(*init, "--run", "mnist", "--hosts", "ps-0", code=74)
        self.assertIn("ca.crt: No such file", done.stderr)
        self.assertEqual((self.certs / "ca.key").read_bytes(), before["ca.key"])

    def test_show_says_what_is_wrong(self):
        self.psctl("certs", "show", self.certs, code=74)
        self.psctl("certs", "init", self.certs, "--run", "mnist", "--hosts", "ps-0", "--workers", 1)
        os.replace(self.certs / "worker-0.key", self.certs / "viewer.key")
        (self.certs / "operator.crt").write_text("nothing")
        found = self.show(code=78)
        self.assertIn("another certificate's", found["viewer.crt"]["state"])
        self.assertIn("no certificate", found["operator.crt"]["state"])
        self.assertEqual(found["server-0.crt"]["state"], "ok")
        table = self.psctl("certs", "show", self.certs, code=78).stdout
        self.assertRegex(table, r"(?m)^server-0.crt +slipstream://run/mnist/server/0 +\S+ +ok +ps-0")


if __name__ == "__main__":
    unittest.main()
