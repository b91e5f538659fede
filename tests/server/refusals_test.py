"""A ps_server that cannot start says why, and exits with the same code as psctl for the same
reason."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1] / "support"))
from programs import DEADLINE_S, program, scratch


class RefusalsTest(unittest.TestCase):
    def setUp(self):
        folder = scratch()
        self.addCleanup(folder.cleanup)
        self.config = pathlib.Path(folder.name) / "run.yaml"
        self.config.write_text("model: {preset: mlp}\n")

    def refused(self, code, *arguments, config=None, environment=None):
        """Runs a server that must not start and must exit with `code`. Returns its error output."""
        done = subprocess.run(
            [program("server/ps_server"), "--config", str(config or self.config), *arguments],
            env={**os.environ, **(environment or {})}, text=True, timeout=DEADLINE_S, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_a_file_that_cannot_be_read_is_told_from_a_wrong_one(self):
        for path in (self.config.with_name("none.yaml"), self.config.parent):
            self.assertIn("cannot open the file", self.refused(74, "--shard", "0", config=path))
        self.config.write_text("model: {preset: nlp}\n")
        self.assertIn("model.preset", self.refused(78, "--shard", "0"))

    def test_an_override_that_is_no_pair_is_wrong_usage(self):
        said = self.refused(2, "--shard", "0", "--set", "seed")
        self.assertIn("--set seed: error: must be key=value", said)
        self.assertIn("--set seed=x: error: ", self.refused(78, "--shard", "0", "--set", "seed=x"))

    def test_a_shard_without_a_server_is_wrong_usage(self):
        self.assertIn("cluster.servers has 1", self.refused(2, "--shard", "1"))

    def test_an_aggregator_without_its_group_is_wrong_usage(self):
        aggregate = ("--shard", "0", "--aggregate", "1", "--listen", "localhost:0")
        self.assertIn("set cluster.tree", self.refused(2, *aggregate))
        tree = ("--set", "cluster.workers=2", "--set", "cluster.tree.fanout=2")
        self.assertIn("the number of groups is 1", self.refused(2, *aggregate, *tree))

    def test_an_aggregator_names_the_host_that_its_workers_call(self):
        said = self.refused(2, "--shard", "0", "--aggregate", "0", "--listen", "0.0.0.0:0", "--set",
                            "cluster.workers=2", "--set", "cluster.tree.fanout=2", "--set",
                            "security.plaintext=accept_the_risk")
        self.assertIn("needs a host by which its workers reach it", said)

    def test_a_server_that_saves_needs_a_directory(self):
        saves = ("--shard", "0", "--set", "durability.level=checkpoint")
        self.assertIn("needs durability.directory", self.refused(78, *saves))

    def test_variables_of_other_programs_are_no_settings(self):
        said = self.refused(2, "--shard", "1", environment={"PS_COORDINATOR": "localhost:7070",
                                                            "PS_WORKER": "3"})
        self.assertIn("cluster.servers has 1", said)

    def test_what_kubernetes_sets_is_known_by_its_name(self):
        said = self.refused(78, "--shard", "0", environment={"PS_PORT": "tcp://10.0.0.1:7070"})
        self.assertIn("environment PS_PORT: error: ", said)
        self.assertIn("enableServiceLinks: false", said)


if __name__ == "__main__":
    unittest.main()
