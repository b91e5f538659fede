"""The status of a run under way: stragglers, rounds that wait, and the status stream."""
import json
import pathlib
import signal
import subprocess
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"


def worker_of(status, worker):
    return next(line for line in status["workers"] if line["worker"] == worker)


def is_straggler(status, worker):
    """Returns whether the worker is one; it may not have come yet."""
    return any(line["worker"] == worker and line["is_straggler"] for line in status["workers"])


class LiveStatusTest(unittest.TestCase):
    def settings(self, policy):
        return {"consistency.policy": policy, "cluster.lease": "60s",
                "data.train_examples": 12800, "testing.push_delay_max": "10ms"}

    def test_a_worker_that_stands_still_is_named_with_what_follows(self):
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, self.settings("hardsync"), directory, workers=4) as live:
            live.wait_for(lambda status: status["updates"] >= 10, "some updates")
            live.workers[2].send_signal(signal.SIGSTOP)
            status = live.wait_for(lambda status: is_straggler(status, 2),
                                   "worker 2 to be called a straggler")
            live.workers[2].send_signal(signal.SIGCONT)
            last = live.wait_finished()

        self.assertRegex(worker_of(status, 2)["straggler_reason"],
                         r"^has not pushed for \d+\.\d s, where the median step takes ")
        self.assertFalse(any(worker_of(status, worker)["is_straggler"] for worker in (0, 1, 3)))
        waiting = [r for r in status["waiting_rounds"] if r["waiting_for"] == [2]]
        self.assertNotEqual(waiting, [], status["waiting_rounds"])
        for waits in waiting:
            self.assertEqual((waits["contributions"], waits["round_size"]), (3, 4))
            self.assertGreater(waits["unchanged_seconds"], 0.5)
            self.assertGreaterEqual(waits["open_seconds"], waits["unchanged_seconds"])
            self.assertRegex(waits["outlook"],
                             r"^closes when worker 2 pushes; without a word from worker 2 its lease "
                             r"ends in \d+\.\d s, and the round closes without it$")
        self.assertEqual(last["waiting_rounds"], [])
        self.assertEqual(last["version_skew"], 0)

    def test_a_worker_that_a_test_slows_is_told_of(self):
        settings = {**self.settings("async"), "training.epochs": 4,
                    "testing.workers": "[{}, {delay: 60ms, slower: 2}]"}
        told = "a mini-batch takes 2 times as long and 60.0 ms longer"
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
            status = live.wait_for(lambda status: is_straggler(status, 1),
                                   "worker 1 to be called a straggler")
            log = live.log_text("worker-1")

        self.assertEqual([worker_of(status, worker)["slowdown"] for worker in range(4)],
                         ["", told, "", ""])
        self.assertGreater(worker_of(status, 1)["step_seconds"], 0.06)
        self.assertIn(f'slowed for a test (testing.workers) by="{told}"', log)

    def test_a_softsync_round_says_how_many_gradients_it_lacks(self):
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, self.settings("softsync"), directory, workers=4) as live:
            live.wait_for(lambda status: status["updates"] >= 10, "some updates")
            for worker in (1, 2, 3):
                live.workers[worker].send_signal(signal.SIGSTOP)
            # Worker 0 alone could fill rounds of four, so it is stopped, too.
            live.workers[0].send_signal(signal.SIGSTOP)
            status = live.wait_for(lambda status: status["waiting_rounds"], "a round to wait")
            for worker in live.workers.values():
                worker.send_signal(signal.SIGCONT)
            live.wait_finished()

        waits = status["waiting_rounds"][0]
        self.assertEqual(waits["gradients_missing"], 4 - waits["contributions"])
        self.assertEqual(waits["outlook"].split(",")[0],
                         f"closes with {waits['gradients_missing']} more gradient"
                         + ("" if waits["gradients_missing"] == 1 else "s"))

    def test_a_server_that_stands_still_is_named_with_when_the_run_fails(self):
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, self.settings("async"), directory, workers=4) as live:
            live.wait_for(lambda status: status["updates"] >= 10, "some updates")
            live.servers[1].send_signal(signal.SIGSTOP)
            status = live.wait_for(lambda status: status["missing"]["servers"], "server 1 to be missed")
            live.servers[1].send_signal(signal.SIGCONT)
            last = live.wait_finished()

        self.assertEqual([server["shard"] for server in status["missing"]["servers"]], [1])
        self.assertEqual(status["missing"]["servers"][0]["address"], status["shards"][1]["address"])
        self.assertLess(status["missing"]["fails_in_seconds"], 118)
        self.assertEqual(last["missing"]["servers"], [])

    def test_a_lost_worker_and_its_cause_are_told_and_the_round_keeps_its_size(self):
        settings = {**self.settings("hardsync"), "cluster.lease": cluster.LEASE}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
            live.wait_for(lambda status: status["updates"] >= 10, "some updates")
            live.kill_worker(2)
            status = live.wait_for(lambda status: worker_of(status, 2)["state"] == "dead",
                                   "worker 2 to be dead")
            last = live.wait_finished()

        self.assertEqual(worker_of(status, 2)["failure"],
                         f"unheard of for more than its lease of {cluster.LEASE_S:.2f} s")
        self.assertEqual((status["round_size"], last["round_size"]), (4, 4))
        self.assertEqual(worker_of(last, 2)["state"], "dead")
        # Every mini-batch became part of the weights; other workers computed the lost worker's one.
        self.assertEqual(last["evaluations"][-1]["epochs_measured"], last["epochs_total"])

    def test_watching_shows_the_run_to_its_end(self):
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, self.settings("async"), directory, workers=4) as live:
            done = subprocess.run(
                [cluster.program("deploy/psctl/psctl"), "status", "--coordinator",
                 live.coordinator, "--watch", "--interval", "100ms", "-o", "json"],
                text=True, timeout=cluster.DEADLINE_S, check=True, stdout=subprocess.PIPE)

        statuses = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([s["phase"] for s in statuses].count("FINISHED"), 1)
        self.assertEqual(statuses[-1]["phase"], "FINISHED")
        self.assertIn("TRAINING", [s["phase"] for s in statuses])
        updates = [s["updates"] for s in statuses]
        self.assertEqual(updates, sorted(updates))
        self.assertEqual(statuses[-1]["batches_done"], statuses[-1]["batches_total"])
        for shard in statuses[-1]["shards"]:
            staleness = shard["staleness"]
            self.assertEqual(len(staleness["cdf"]), len(staleness["histogram"]))
            self.assertEqual(staleness["cdf"][-1], 1)
            self.assertEqual(shard["pulls_under_way"], 0)
        # A worker that has left has no step time any more.
        paces = [[worker["step_seconds"] for worker in status["workers"]] for status in statuses]
        self.assertTrue(any(pace and min(pace) > 0 for pace in paces), paces)


if __name__ == "__main__":
    unittest.main()
