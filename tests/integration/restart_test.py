"""Servers that are killed and started again go on from their checkpoints, and the run goes on."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

import cluster
from durable_cluster import CONFIG, SETTINGS, DurableCluster, chance_of


def last_updates(run_dir):
    """Returns the number of updates in the last whole line of a run's metrics; 0 without one."""
    path = run_dir / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    return json.loads(whole[-1])["updates"] if whole else 0


class RestartTest(unittest.TestCase):
    def run_with_kill(self, settings, shard, chance):
        """Kills the server of the shard in the middle of a run and starts it again. Returns the last
        status."""
        with cluster.scratch() as directory, DurableCluster(directory, settings) as live:
            live.wait_for_checkpoint(chance, shard)
            live.kill_server(shard)
            live.restart_server(shard)
            return live.finish()

    def expect_return_of(self, shard, policy):
        chance = chance_of(f"{policy}, shard {shard}")
        status = self.run_with_kill({"consistency.policy": policy}, shard, chance)
        returned, other = status["shards"][shard], status["shards"][1 - shard]
        self.assertEqual(int(returned["generation"]), 1)
        self.assertGreaterEqual(int(returned["version"]), int(returned["returned_to"]))
        self.assertEqual(int(other["generation"]), 0, "only the shard returns whose server died")
        self.assertEqual(int(other["versions_lost"]), 0)

    def test_a_server_goes_on_from_its_checkpoint(self):
        for policy in ("async", "softsync"):
            with self.subTest(policy=policy):
                self.expect_return_of(1, policy)

    def test_the_server_with_the_coordinator_goes_on_from_its_checkpoint(self):
        self.expect_return_of(0, "async")

    def test_a_coordinator_that_goes_on_tells_what_happened_before(self):
        settings = {"cluster.lease": cluster.LEASE, "data.train_examples": 32 * 640}
        with cluster.scratch() as directory, DurableCluster(directory, settings) as live:
            live.wait_for_checkpoint(chance_of("events"), 1)
            live.kill_worker(2)
            live.kill_server(1)
            live.restart_server(1)
            live.wait_for(lambda status: any("worker died" in event["text"]
                                             for event in status["events"]), "the worker's lease")
            live.kill_server(0)
            live.restart_server(0)
            live.start_worker(2)
            status = live.finish()
            told = cluster.psctl("events", "--coordinator", live.coordinator).stdout
        self.assertEqual([int(shard["generation"]) for shard in status["shards"]], [1, 1])
        events = [r"server +server synced shard=1", r"worker +worker registered worker=2",
                  r"phase +the run's phase changes phase=TRAINING", r"server +! server replaced shard=1",
                  r"checkpoint +! shard returned to a checkpoint shard=1 generation=1 version=\d+",
                  r"worker +! worker died worker=2 reason=\"unheard of",
                  r"state +! the coordinator was restarted", r"server +! server replaced shard=0",
                  r"worker +worker registered worker=2",
                  r"phase +the run's phase changes phase=FINISHED"]
        self.assertRegex("\n" + told, "(?s)" + ".*".join(
            rf"\n[-\d]{{10}} [:\d]{{8}}  {event}\b" for event in events))

    def test_hardsync_ends_with_the_same_weights_whoever_was_killed(self):
        settings = {"consistency.policy": "hardsync"}
        with cluster.scratch() as directory, DurableCluster(directory, settings) as live:
            undisturbed = live.finish()
        for shard in (0, 1):
            with self.subTest(shard=shard):
                chance = chance_of(f"hardsync, shard {shard}")
                status = self.run_with_kill(settings, shard, chance)
                self.assertEqual(status["weights_sha256"], undisturbed["weights_sha256"])
                generations = {int(each["generation"]) for each in status["shards"]}
                self.assertEqual(generations, {1}, "all shards return together")

    def test_a_server_killed_at_the_start_goes_on_or_is_named(self):
        with cluster.scratch() as directory, DurableCluster(directory, {}) as live:
            live.wait_for(lambda status: status["phase"] in ("INITIALIZING", "TRAINING"),
                          "the first weights")
            live.kill_server(1)
            live.restart_server(1)
            try:
                live.finish()
            except AssertionError as failure:
                # Without a complete checkpoint, the initial weights are gone. If they were on their
                # way, another worker is granted to send them, and the first one ends.
                self.assertRegex(str(failure), "the run failed: .*shard 1.*checkpoint"
                                 "|initialisation is granted to worker")

    def test_other_settings_are_refused_by_their_key(self):
        for shard in (0, 1):
            with self.subTest(shard=shard), cluster.scratch() as directory, \
                    DurableCluster(directory, {}) as live:
                live.wait_for_checkpoint(chance_of(f"other settings, shard {shard}"), shard)
                live.kill_server(shard)
                code = live.code_of_start(shard, {"optimizer.learning_rate": 0.5})
                self.assertNotEqual(code, 0)
                self.assertIn("optimizer.learning_rate", live.log_text(f"server-{shard}"))
                live.restart_server(shard)
                live.finish()

    def test_a_second_process_for_a_shard_is_refused(self):
        with cluster.scratch() as directory, DurableCluster(directory, {}) as live:
            address = (live.directory / "server-1.port").read_text()
            live.wait_for_checkpoint(chance_of("second process"), 1)
            live.start_server(1)
            second = live.servers.pop()
            try:
                self.assertEqual(second.wait(timeout=cluster.DEADLINE_S), 75)
                log = live.log_text("server-1")
                self.assertIn("push-log-1.csv is written by another process: end that", log)
            finally:
                second.kill()
            status = live.finish()
        self.assertEqual([int(shard["generation"]) for shard in status["shards"]], [0, 0])
        self.assertEqual(status["shards"][1]["address"], address.strip())

    def process_of(self, psctl, program, flag, number):
        """Returns the id of the process of psctl run for a shard or a worker."""
        children = pathlib.Path(f"/proc/{psctl.pid}/task/{psctl.pid}/children").read_text().split()
        for child in children:
            words = pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0")
            if words[0].endswith(program) and words[words.index(flag) + 1] == str(number):
                return int(child)
        raise AssertionError(f"no {program} {number}")

    def test_psctl_run_starts_a_server_and_a_worker_again(self):
        settings = {**SETTINGS, "consistency.policy": "softsync"}
        with cluster.scratch() as directory:
            run_dir = pathlib.Path(directory) / "run"
            psctl = subprocess.Popen(
                [cluster.program("deploy/psctl/psctl"), "run", str(CONFIG), "--restart", "-o", "json",
                 "--run-dir", str(run_dir), *cluster.overrides(settings)],
                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                cluster.wait_until(lambda: psctl.poll() is not None or last_updates(run_dir) > 20,
                                   "some updates")
                os.kill(self.process_of(psctl, "ps_server", "--shard", 1), signal.SIGKILL)
                os.kill(self.process_of(psctl, "ps_worker", "--worker", 2), signal.SIGKILL)
                said, errors = psctl.communicate(timeout=cluster.DEADLINE_S)
            finally:
                psctl.kill()  # Its processes end with it.
        self.assertEqual(psctl.returncode, 0, errors)
        summary = json.loads(said)
        self.assertEqual(summary["ended_by"], "epochs")
        self.assertEqual([server["generation"] for server in summary["servers"]], [0, 1])
        self.assertEqual(summary["returns"], 1)
        self.assertIn("worker 2 was killed by signal 9 (Killed); it starts again", errors)
        self.assertEqual(summary["workers_lost"], [])


if __name__ == "__main__":
    unittest.main()
