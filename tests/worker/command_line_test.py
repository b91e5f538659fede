"""The error messages of ps_worker for wrong flags."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1] / "support"))
from programs import DEADLINE_S, program


class CommandLineTest(unittest.TestCase):
    def refused(self, *arguments, environment=None, code=2):
        """Runs a worker, which would not find a coordinator. Checks its exit code and returns its
        errors."""
        done = subprocess.run(
            [program("worker/ps_worker"), "--coordinator", "localhost:1", *arguments],
            env={**os.environ, **(environment or {})}, text=True, timeout=DEADLINE_S, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_names_the_ids_that_workers_may_have(self):
        for wrong, why in (("-1", "-1 is too small"), ("4096", "4096 is too large"),
                           ("first", '"first" is not a number')):
            self.assertIn(f"--worker: must be a whole number in [0, 4095]: {why}\n",
                          self.refused("--worker", wrong))

    def test_names_what_there_is_to_choose_from(self):
        level = '--log-level: must be debug, info, warning or error, not "warn"'
        self.assertIn(level, self.refused("--log-level", "warn"))
        self.assertIn(level, self.refused(environment={"PS_LOG_LEVEL": "warn"}))
        self.assertIn('--log-format: must be text or json, not "xml"\n',
                      self.refused("--log-format", "xml"))
        self.assertIn('not "gpu"', self.refused("--device", "gpu"))
        self.assertIn('not "fp8"', self.refused("--precision", "fp8"))

    def test_says_where_a_setting_of_the_run_is_set(self):
        self.assertIn("unexpected arguments: --epochs 3; it is a setting of the run: --set "
                      "training.epochs=3 of ps_server or psctl run\n", self.refused("--epochs", "3"))

    def test_a_variable_that_names_nothing_is_refused_with_what_was_meant(self):
        for name, meant in (("PS_DEVICE", "PS_COMPUTE_DEVICE"), ("PS_WORKR", "PS_WORKER"),
                            ("PS_COMPUTE_DEVISE", "PS_COMPUTE_DEVICE")):
            self.assertEqual(f'environment {name}: error: no key has this name; did you mean "{meant}"?\n',
                             self.refused(environment={name: "cuda"}, code=78))

    def test_keys_that_only_servers_read_are_no_error(self):
        said = self.refused("--worker", "first", environment={"PS_TRAINING_EPOCHS": "3"})
        self.assertIn("--worker", said)
        self.assertNotIn("PS_TRAINING_EPOCHS", said)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([program("worker/ps_worker"), "--help"], stdout=full, text=True,
                                  timeout=DEADLINE_S, check=False, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 74)
        self.assertEqual(done.stderr, "ps_worker: error: the output could not be written\n")


if __name__ == "__main__":
    unittest.main()
