"""How processes start, find each other, report about themselves and end."""
import json
import pathlib
import re
import signal
import subprocess
import time
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
SHORT = {"data.train_examples": 320, "evaluation.every_epochs": 0}
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")


def start(settings, workers=4, **more):
    directory = cluster.scratch()
    return directory, cluster.Cluster(CONFIG, settings, directory.name, workers=workers, **more)


class RunControlTest(unittest.TestCase):
    def test_a_worker_that_comes_when_the_run_has_finished_ends_cleanly(self):
        directory, live = start(SHORT)
        with directory, live:
            live.wait_finished()
            live.start_worker(9)
            self.assertEqual(live.workers[9].wait(timeout=cluster.DEADLINE_S), 0)
            self.assertIn("the run has finished: there is nothing left to do",
                          live.log_text("worker-9"))

    def test_workers_without_an_id_get_the_lowest_free_ones(self):
        directory, live = start(SHORT, workers=0)
        with directory, live:
            for name in ("a", "b", "c", "d"):
                live.start_worker(name, [])
            status = live.wait_finished()
        self.assertEqual([worker["worker"] for worker in status["workers"]], [0, 1, 2, 3])

    def test_every_program_writes_a_json_object_per_line(self):
        with cluster.scratch() as directory:
            run_dir = pathlib.Path(directory) / "run"
            done = cluster.psctl("run", str(CONFIG), "--log-format", "json", "--run-dir",
                                 str(run_dir), *cluster.overrides({"data.train_examples": 640}))
            logs = {path.stem: path.read_text(encoding="utf-8").splitlines()
                    for path in (run_dir / "logs").glob("*.log")}
        logs["psctl"] = done.stderr.splitlines()
        self.assertEqual(len(logs), 2 + 4 + 1)
        for name, lines in logs.items():
            self.assertTrue(lines, name)
            for line in lines:
                entry = json.loads(line)
                self.assertRegex(entry["time"], TIME)
                self.assertEqual(entry["role"], name.split("-")[0])
                self.assertIsInstance(entry["message"], str)
            number = {"server": "shard", "worker": "worker"}.get(entry["role"])
            if number is not None:
                self.assertEqual(entry[number], int(name.split("-")[1]))

    def test_a_worker_logs_at_the_level_it_is_told(self):
        directory, live = start(SHORT, workers=3)
        with directory, live:
            live.start_worker(3, ["--worker", "3", "--log-level", "error"])
            live.wait_finished()
            self.assertEqual(live.log_text("worker-3"), "")
            self.assertIn("joined", live.log_text("worker-2"))

    def test_a_server_with_other_settings_is_refused_by_the_key(self):
        directory, live = start({}, workers=0)
        with directory, live:
            live.servers[1].terminate()
            live.servers[1].wait()
            done = subprocess.run(
                [cluster.program("server/ps_server"), "--config", str(CONFIG), "--shard", "1",
                 "--listen", "127.0.0.1:0", "--coordinator", live.coordinator,
                 *cluster.overrides({**live.settings, "seed": 99})],
                text=True, stderr=subprocess.PIPE, timeout=cluster.DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 78)
        self.assertIn("seed", done.stderr)

    def test_plaintext_off_loopback_needs_the_risk_accepted_and_is_shown(self):
        command = [cluster.program("server/ps_server"), "--config", str(CONFIG), "--shard", "0",
                   "--listen", "0.0.0.0:0"]
        refused = subprocess.run(command, text=True, stderr=subprocess.PIPE, check=False,
                                 timeout=cluster.DEADLINE_S)
        self.assertEqual(refused.returncode, 78)
        self.assertIn("security: {plaintext: accept_the_risk}", refused.stderr)

        directory, live = start({**SHORT, "security.plaintext": "accept_the_risk"})
        with directory, live:
            self.assertTrue(live.wait_finished()["plaintext_accepted"])
            self.assertIn("nothing is encrypted", live.log_text("server-0"))
            table = cluster.psctl("status", "--coordinator", live.coordinator).stdout
        self.assertIn("traffic is not encrypted", table)

    def test_a_coordinator_that_stood_still_takes_nobody_for_dead(self):
        directory, live = start({"cluster.lease": "2s", "consistency.policy": "async",
                                 "optimizer.learning_rate": 0.005,
                                 "data.train_examples": 12800, "testing.push_delay_max": "20ms"})
        with directory, live:
            live.wait_for(lambda status: int(status["updates"]) >= 10, "some updates")
            live.servers[0].send_signal(signal.SIGSTOP)
            time.sleep(5)
            live.servers[0].send_signal(signal.SIGCONT)
            status = live.wait_finished()
            self.assertIn("stood still", live.log_text("server-0"))
            for process in live.workers.values():
                self.assertEqual(process.wait(timeout=cluster.DEADLINE_S), 0)
        self.assertNotIn("dead", {worker["state"] for worker in status["workers"]})

    def test_a_model_larger_than_memory_is_refused_by_name(self):
        # The model has 400 MiB of weights; the address space is limited to 700 MiB.
        text = CONFIG.read_text(encoding="utf-8").replace(
            "model: {preset: mlp}",
            "model: {input: [1, 28, 28], layers: [flatten, dense: {units: 12800}, relu, "
            "dense: {units: 7168}, relu, dense: {units: 10}]}")
        prefix = ["bash", "-c", "ulimit -v 716800; exec \"$@\"", "limited"]
        with cluster.scratch() as directory:
            config = cluster.write_config(directory, text)
            with cluster.Cluster(config, {"cluster.servers": "localhost:7070", "run.after": "exit",
                                          "cluster.workers": 1, "data.train_examples": 100},
                                 directory, workers=1, server_prefix=prefix) as live:
                code = live.servers[0].wait(timeout=cluster.DEADLINE_S)
                log = live.log_text("server-0")
        self.assertEqual(code, cluster.RUN_FAILED, log)
        self.assertIn("the server of shard 0 cannot go on: the model is too large for this server",
                      log)


if __name__ == "__main__":
    unittest.main()
