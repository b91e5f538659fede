"""Where gradients cannot lie in shared memory, a run works without it, or says why it cannot."""
import json
import pathlib
import resource
import subprocess
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"


def limit_files():
    # Shared memory counts as a file; an mlp's 940 KB exceed this limit.
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))


class NoSharedMemoryTest(unittest.TestCase):
    def run_with(self, transport, directory):
        """Runs with this transport. Returns psctl's result, and the text of all logs."""
        run = pathlib.Path(directory) / "run"
        done = subprocess.run(
            [cluster.program("deploy/psctl/psctl"), "run", str(CONFIG), "-o", "json",
             "--run-dir", str(run), "--set", f"wire.transport={transport}"],
            preexec_fn=limit_files, text=True, check=False, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=cluster.DEADLINE_S)
        logs = "".join(path.read_text(encoding="utf-8") for path in (run / "logs").iterdir())
        return done, logs

    def test_auto_trains_without(self):
        with cluster.scratch() as directory:
            done, logs = self.run_with("auto", directory)
        self.assertEqual(logs.count("gradients do not lie in shared memory"), 4, logs)
        self.assertGreater(json.loads(done.stdout)["test_accuracy"], 0.3, done.stderr)

    def test_shm_is_refused_with_what_to_do(self):
        with cluster.scratch() as directory:
            done, _ = self.run_with("shm", directory)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("wire.transport is shm, and gradients cannot lie in shared memory: ",
                      done.stderr)
        self.assertIn("use auto or unix", done.stderr)


if __name__ == "__main__":
    unittest.main()
