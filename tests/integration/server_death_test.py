"""The death of a server ends a run, since its weights are lost: every process says so by name,
within the time that the settings give."""
import pathlib
import time
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
START_TIMEOUT_S = 8
WORKER_PATIENCE_S = 30  # How long a worker waits for a coordinator, if three leases are shorter.
SLACK_S = 30            # For a busy machine.
# The run lasts longer than any test below waits.
SETTINGS = {"cluster.lease": "2s", "cluster.start_timeout": f"{START_TIMEOUT_S}s", "training.epochs": 200,
            "evaluation.every_epochs": 0, "testing.push_delay_max": "40ms", "run.after": "exit"}


class ServerDeathTest(unittest.TestCase):
    def end_after(self, policy, happens):
        """Starts a run and calls `happens(cluster)` in the middle of it. Returns the seconds and
        exit codes of its end, and its logs."""
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, {**SETTINGS, "consistency.policy": policy}, directory,
                                workers=4) as live:
            live.wait_for(lambda status: int(status["updates"]) >= 10, "some updates")
            began = time.monotonic()
            happens(live)
            codes = {f"worker-{worker}": process.wait(timeout=cluster.DEADLINE_S)
                     for worker, process in live.workers.items()}
            codes.update({f"server-{shard}": server.wait(timeout=cluster.DEADLINE_S)
                          for shard, server in enumerate(live.servers)})
            return time.monotonic() - began, codes, live.log_texts()

    @staticmethod
    def kill_server(live, shard):
        live.servers[shard].kill()
        live.servers[shard].wait()

    def test_of_another_server_the_run_fails_and_names_it(self):
        for policy in ("hardsync", "async"):
            with self.subTest(policy=policy):
                seconds, codes, logs = self.end_after(policy, lambda live: self.kill_server(live, 1))
                self.assertIn("the server of shard 1 has not been heard for", logs)
                self.assertGreater(seconds, START_TIMEOUT_S - 1, "it might have come back")
                self.assertLess(seconds, START_TIMEOUT_S + SLACK_S)
                self.assertEqual(codes.pop("server-1"), -9)
                self.assertEqual(codes.pop("server-0"), cluster.RUN_FAILED, logs)
                self.assertNotIn(0, codes.values(), logs)

    def test_one_that_comes_back_has_lost_its_weights(self):
        def restart(live):
            self.kill_server(live, 1)
            (live.directory / "server-1.port").unlink()
            live.servers.pop()
            live.start_server(1)

        _, codes, logs = self.end_after("softsync", restart)
        self.assertIn("the server of shard 1 was restarted; its weights are lost", logs)
        self.assertEqual(codes.pop("server-0"), cluster.RUN_FAILED, logs)
        self.assertEqual(codes.pop("server-1"), cluster.RUN_FAILED, logs)
        self.assertNotIn(0, codes.values(), logs)

    def test_of_the_coordinators_server_workers_and_servers_give_up(self):
        seconds, codes, logs = self.end_after("softsync", lambda live: self.kill_server(live, 0))
        self.assertGreater(seconds, WORKER_PATIENCE_S - 1, "it might have been a cable")
        self.assertLess(seconds, WORKER_PATIENCE_S + SLACK_S)
        self.assertEqual(codes.pop("server-0"), -9)
        self.assertEqual(codes.pop("server-1"), 69, logs)
        self.assertEqual(set(codes.values()), {69}, logs)
        self.assertIn("the coordinator does not answer", logs)


if __name__ == "__main__":
    unittest.main()
