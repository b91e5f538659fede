"""Tests that `psctl run` loses and hides no result, however a run ends."""
import json
import pathlib
import signal
import subprocess
import unittest

import cluster
import recompute_staleness

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
LONG = {"training.epochs": 100000, "evaluation.every_epochs": 0}


def programs_behind(directory, prelude):
    """Makes a --bin-dir whose ps_server first runs `prelude`, bash code that may use $shard."""
    folder = pathlib.Path(directory) / "bin"
    folder.mkdir()
    (folder / "ps_worker").symlink_to(cluster.program("worker/ps_worker"))
    script = folder / "ps_server"
    script.write_text("#!/bin/bash\n"
                      "for ((i = 1; i < $#; ++i)); do\n"
                      "  if [[ ${!i} == --shard ]]; then next=$((i + 1)); shard=${!next}; fi\n"
                      "done\n"
                      f"{prelude}\n"
                      f"exec {cluster.program('server/ps_server')} \"$@\"\n")
    script.chmod(0o755)
    return folder


class Run:
    """`psctl run` in the background. If the test ends first, it is killed with its processes."""

    def __init__(self, directory, settings, *arguments):
        self.path = pathlib.Path(directory) / "run"
        self.psctl = subprocess.Popen(
            [cluster.program("deploy/psctl/psctl"), "run", str(CONFIG), "--run-dir", str(self.path),
             *cluster.overrides(settings), *arguments],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.psctl.poll() is None:
            self.psctl.kill()
        self.psctl.communicate()

    def metrics(self):
        path = self.path / "metrics.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_for_updates(self, updates):
        cluster.wait_until(
            lambda: any(line["updates"] >= updates for line in self.metrics())
            or self.psctl.poll() is not None, f"{updates} updates")

    def end(self):
        """Waits for the end. Returns the exit code and the text on stderr."""
        _, stderr = self.psctl.communicate(timeout=cluster.DEADLINE_S)
        return self.psctl.returncode, stderr

    def summary(self):
        return json.loads((self.path / "summary.json").read_text(encoding="utf-8"))


class RunEndTest(unittest.TestCase):
    def test_an_interrupted_run_saves_the_weights_it_has(self):
        for policy, number in (("hardsync", signal.SIGINT), ("async", signal.SIGTERM),
                               ("softsync", signal.SIGINT)):
            with self.subTest(policy=policy), cluster.scratch() as directory, \
                    Run(directory, {**LONG, "consistency.policy": policy}) as run:
                run.wait_for_updates(20)
                run.psctl.send_signal(number)
                code, stderr = run.end()
                self.assertEqual(code, 128 + number, stderr)
                summary = run.summary()
                self.assertEqual(summary["ended_by"], "interrupted")
                self.assertEqual(summary["exit_code"], code)
                self.assertEqual(summary["phase"], "FINISHED")
                self.assertGreaterEqual(summary["updates"], 20)
                self.assertEqual(summary["models"], [str(run.path / "model.safetensors")])
                measured = json.loads(cluster.psctl("evaluate", str(run.path), "-o", "json").stdout)
                self.assertEqual(measured["weights_sha256"], summary["weights_sha256"])
                self.assertEqual(measured["test_accuracy"], summary["test_accuracy"])
                self.assertIn(f"; the weights are in {run.path / 'model.safetensors'}, the summary "
                              f"is in {run.path}\n", stderr)

    def test_an_interrupted_run_that_shall_not_wait_says_what_is_missing(self):
        with cluster.scratch() as directory, \
                Run(directory, LONG, "--save-timeout", "0s") as run:
            run.wait_for_updates(20)
            run.psctl.send_signal(signal.SIGINT)
            code, stderr = run.end()
            summary = run.summary()
        self.assertEqual(code, 130, stderr)
        self.assertEqual((summary["ended_by"], summary["phase"]), ("interrupted", "TRAINING"))
        self.assertEqual((summary["model"], summary["models"]), (None, []))
        self.assertIn("the weights were not saved", summary["error"])

    def test_a_killed_server_is_named_with_what_is_lost_and_what_is_left(self):
        with cluster.scratch() as directory:
            programs = programs_behind(directory, f"echo $$ >{directory}/server-$shard.pid")
            settings = {**LONG, "data.train_examples": 640, "model.save_every_epochs": 1}
            with Run(directory, settings, "--bin-dir", str(programs)) as run:
                cluster.wait_until(lambda: list(run.path.glob("model-epoch-*.safetensors")),
                                   "a model on the way")
                pid = int((pathlib.Path(directory) / "server-1.pid").read_text())
                subprocess.run(["kill", "-KILL", str(pid)], check=True)
                code, stderr = run.end()
                summary = run.summary()
                models = sorted(str(path) for path in run.path.glob("*.safetensors"))
        self.assertEqual(code, 1, stderr)
        self.assertIn("psctl: error: server 1 was killed by signal 9 (Killed); the weights of shard 1 "
                      "(parameters ", stderr)
        self.assertIn("are lost with it, so the run cannot go on\n", stderr)
        self.assertIn("  next: run it again, from the last saved model with --set model.init=",
                      stderr)
        self.assertNotIn("  | ", stderr, "what the killed server said before is no cause")
        self.assertEqual((summary["ended_by"], summary["exit_code"]), ("failed", 1))
        self.assertEqual(sorted(summary["models"]), models)
        self.assertGreater(summary["updates"], 0)

    def test_a_push_log_that_its_disk_cuts_off_ends_the_run_with_74(self):
        with cluster.scratch() as directory:
            # A server can write at most 16 KiB to a file, as if the disk were full then.
            programs = programs_behind(directory, "trap '' XFSZ; ulimit -f 16")
            with Run(directory, {"training.epochs": 4}, "--push-log", "--bin-dir",
                     str(programs)) as run:
                code, stderr = run.end()
                summary = run.summary()
                logs = [(run.path / f"push-log-{shard}.csv") for shard in (0, 1)]
                pushes = [log.read_text(encoding="utf-8").count("\n") - 1 for log in logs]
                self.assertTrue(all(log.read_text(encoding="utf-8").endswith("\n") for log in logs))
        self.assertEqual(code, 74, stderr)
        self.assertIn(f"psctl: error: the push log {logs[0]} ends after {pushes[0]} pushes: File too "
                      "large; the weights and the figures of the run are whole\n", stderr)
        self.assertEqual((summary["ended_by"], summary["exit_code"]), ("epochs", 74))
        self.assertIs(summary["push_logs_complete"], False)
        self.assertLess(pushes[0], summary["pushes"])
        for server, count in zip(summary["servers"], pushes):
            self.assertEqual(server["push_log_pushes"], count)
            self.assertIn(f"ends after {count} pushes", server["push_log_failure"])

    def test_the_push_logs_of_a_run_directory_give_the_summarys_figures(self):
        with cluster.scratch() as directory:
            path = pathlib.Path(directory) / "run"
            summary = cluster.run(CONFIG, {"consistency.policy": "async"}, run_dir=path,
                                  extra=["--push-log"])
            self.assertIs(summary["push_logs_complete"], True)
            self.assertEqual(recompute_staleness.main([str(path)]), 0)
            rows = list(recompute_staleness.read_rows(path / "push-log-0.csv"))
            lanes = [lane for line in (path / "metrics.jsonl").read_text().splitlines()
                     for lane in json.loads(line).get("lanes", ())]
        self.assertEqual(len(rows), summary["pushes"])
        times = [float(row["time"]) for row in rows]
        self.assertEqual(times, sorted(times))
        self.assertLess(abs(times[0] - min(lane["forward"][0] for lane in lanes)), 60)
        losses = [float(row["loss"]) for row in rows]
        self.assertGreater(sum(losses[:20]) / 20, sum(losses[-20:]) / 20, "it has learned")


if __name__ == "__main__":
    unittest.main()
