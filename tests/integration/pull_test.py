"""psctl pull: it writes the weights of a live run to a model file, whole or not at all."""
import array
import pathlib
import re
import signal
import subprocess
import unittest

import cluster
import python_package
import safetensors_reader

python_package.use_package()

import slipstream

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
# The run trains until psctl stop ends it.
LONG = {"training.epochs": 100_000, "evaluation.every_epochs": 0}
PUBLISH = """
name: publish
worker: {algorithm: publish}
cluster: {servers: [localhost:7070, localhost:7071], workers: 1}
"""


class PullTest(unittest.TestCase):
    def setUp(self):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.output = self.folder / "pulled" / "model.safetensors"
        self.output.parent.mkdir()

    def cluster(self, settings, workers, config=CONFIG):
        live = cluster.Cluster(config, settings, self.folder, workers=workers)
        self.addCleanup(live.stop)
        return live

    def pull(self, live, *arguments):
        """Pulls into the output file. Returns the line about it, and the model that it has."""
        done = cluster.psctl("pull", str(self.output), "--coordinator", live.coordinator, *arguments)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        return done.stdout, safetensors_reader.Model(self.output)

    def assert_refused(self, address, code, text, *arguments, output=None):
        """Checks that a pull fails with this code and text, and leaves the folder as it was."""
        before = {path: path.read_bytes() for path in self.output.parent.iterdir()}
        done = cluster.psctl("pull", str(output or self.output), "--coordinator", address, *arguments,
                             check=False)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, text)
        self.assertEqual({path: path.read_bytes() for path in self.output.parent.iterdir()}, before)

    def test_pulls_from_a_run_while_it_trains_and_when_it_is_over(self):
        live = self.cluster({**LONG, "consistency.policy": "hardsync"}, workers=4)
        live.wait_for(lambda status: int(status["updates"]) >= 10, "some updates")
        line, model = self.pull(live)
        self.assertRegex(line, r"/model\.safetensors: \d+ tensors, \d+ values, run small, "
                               r"version \d+, lag \d+\n$")
        early = int(model.metadata["version"])
        self.assertGreaterEqual(early, 10)
        self.assertEqual(model.metadata["versions"], f"{early},{early}")
        self.assertEqual(model.metadata["weights_sha256"], model.sha256)
        self.assertEqual((model.metadata["run"], model.metadata["whole"]), ("small", "true"))

        self.assert_refused(live.coordinator, 74, r"model\.safetensors exists; --force replaces it")

        cluster.psctl("stop", "--coordinator", live.coordinator)
        status = live.wait_finished()
        line, model = self.pull(live, "--force")
        self.assertIn(f"version {status['updates']}, lag 0", line)
        self.assertGreater(int(status["updates"]), early)
        self.assertEqual(model.sha256, status["weights_sha256"])
        self.assertEqual(sum(map(len, model.values.values())), int(status["parameters"]))
        measured = cluster.psctl("evaluate", str(self.output), "--config", str(CONFIG), "-o", "json")
        self.assertIn(model.sha256, measured.stdout)
        self.assertEqual([path.name for path in self.output.parent.iterdir()], [self.output.name])

    def test_says_when_the_servers_are_not_in_step(self):
        live = self.cluster({**LONG, "consistency.policy": "async"}, workers=4)
        live.wait_for(lambda status: int(status["updates"]) >= 10, "some updates")
        line, model = self.pull(live)
        versions = model.metadata["versions"]
        self.assertRegex(versions, r"^\d+,\d+$")
        self.assertIn(f"versions {versions} (the servers are not in step: each has its own)", line)
        self.assertEqual((model.metadata["whole"], model.metadata["weights_sha256"]),
                         ("false", model.sha256))

    def test_pulls_what_was_published(self):
        live = self.cluster({}, workers=0, config=cluster.write_config(self.folder, PUBLISH))
        run = slipstream.connect(live.coordinator)
        self.addCleanup(run.leave, "the test is over")
        weights = {"first": array.array("f", [1.5] * 5000), "second": array.array("f", [2, 3, 5])}
        run.publish(weights, version=12).result()
        line, model = self.pull(live)
        self.assertRegex(line, r": 2 tensors, 5003 values, run publish, version 12, lag 0\n$")
        self.assertEqual(model.values, weights)
        self.assertEqual({key: model.metadata[key] for key in ("label", "version", "versions", "whole")},
                         {"label": "12", "version": "12", "versions": "1,1", "whole": "true"})

    def test_a_run_without_weights_is_waited_for_and_named(self):
        live = self.cluster({}, workers=0)
        self.assert_refused(live.coordinator, 75,
                            r"waiting for 1.00 s at most\n"
                            r"psctl: error: after 1.00 s the run small at \S+ has no model: .*; start "
                            r"workers, or wait longer \(--timeout\)\n$", "--timeout", "1s")

    def test_a_run_that_ends_without_weights_is_named(self):
        live = self.cluster({}, workers=0, config=cluster.write_config(self.folder, PUBLISH))
        run = slipstream.connect(live.coordinator)
        self.addCleanup(run.leave, "the test is over")
        run.synchronize({"first": array.array("f", [0] * 100)})
        self.assert_refused(live.coordinator, 75, r"the run publish at \S+ has not sent all weights",
                            "--timeout", "1s")
        run.stop()
        run.finish()
        self.assert_refused(live.coordinator, 74, "is over, and no weights were published")

    def test_a_signal_ends_it_with_nothing_written(self):
        live = self.cluster({}, workers=0)
        program = cluster.program("deploy/psctl/psctl")
        waiting = subprocess.Popen([program, "pull", str(self.output), "--coordinator",
                                    live.coordinator], stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.stderr.close)
        self.addCleanup(waiting.kill)
        self.assertIn("has no weights yet", waiting.stderr.readline())
        waiting.send_signal(signal.SIGINT)
        self.assertEqual(waiting.wait(timeout=cluster.DEADLINE_S), 130)
        self.assertEqual(list(self.output.parent.iterdir()), [])

    def test_what_cannot_work_is_refused_at_once(self):
        missing = self.output.parent / "none" / "model.safetensors"
        nobody = "127.0.0.1:1"
        self.assert_refused(nobody, 74, re.escape(f"there is no directory {missing.parent}\n"),
                            output=missing)
        self.assert_refused(nobody, 74, "is a directory: name the file to write", "--force",
                            output=self.output.parent)
        self.assert_refused(nobody, 69, "no coordinator answers at 127.0.0.1:1 .*psctl doctor")


if __name__ == "__main__":
    unittest.main()
