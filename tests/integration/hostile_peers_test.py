"""Peers that stop, dribble and break off beside honest workers: the model is the same, nothing
stays behind, and the server names why it has ended them. tests/benchmarks/hostile_rate.py measures
their cost to the others."""
import os
import pathlib
import select
import subprocess
import unittest

import cluster
import hostile_peers as hostile
import process_figures
from wire_messages import blob, fixed64, number

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"

# Small chunks make the server end a call that makes no progress for half a minute.
SETTINGS = {"wire.transport": "tcp", "wire.chunk_bytes": 4096, "cluster.lease": "300s"}

# How much a server's memory may grow: it has trained, and holds the buffers of some 20 peers'
# connections.
GROWTH_MIB_MAX = 64


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def rss_mib(process):
    return int(process_figures.status(process.pid)["VmRSS"]) / 1024


def holds_nothing(shard):
    return (int(shard["bytes_queued"]), shard["pulls_under_way"], shard["parked_calls"],
            shard["live_versions"]) == (0, 0, 0, 1)


class HostilePeersTest(unittest.TestCase):
    def await_ends(self, crowd, live, *expected):
        """Waits until the server has ended a peer of each expected kind with the expected words."""
        def missing():
            return [(kind.__name__, words) for kind, words in expected if not crowd.ended(kind, words)]

        try:
            cluster.wait_until(lambda: not missing() or crowd.failures, "the server to end its peers")
        except AssertionError:
            self.fail(f"not ended: {missing()}; ended: {crowd.ends}\n{live.log_texts()}")
        self.assertEqual(crowd.failures, [])

    def test_a_hardsync_run_beside_strangers_gives_the_same_weights(self):
        settings = {**SETTINGS, "consistency.policy": "hardsync", "data.train_examples": 64000}
        alone = cluster.run(CONFIG, settings)
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
            status = live.wait_for(lambda status: status["updates"] >= 10, "some updates")
            first, second = [shard["address"] for shard in status["shards"]]
            before = [descriptors(server) for server in live.servers]
            memory = [rss_mib(server) for server in live.servers]
            chunk = hostile.first_chunk(fixed64(1, 1), 1, 100_000, bytes(8192))
            more = number(2, 2048) + blob(15, bytes(8192))
            peers = [(hostile.says_nothing, first), (hostile.says_nothing, second, hostile.PREFACE[:9]),
                     (hostile.cuts, first, chunk), (hostile.cuts, second, chunk),
                     (hostile.dribbles, first, "Push", [chunk, more]),
                     (hostile.dribbles, first, "Push", [chunk]),
                     (hostile.dribbles, second, "Exchange", [chunk, more]),
                     (hostile.takes_no_more, first), (hostile.stops_reading, first),
                     (hostile.reads_slowly, second, 10_000)]
            with hostile.Crowd(peers * 2) as crowd:
                finished = live.wait_finished()
                self.await_ends(crowd, live, (hostile.says_nothing, "closed"),
                                (hostile.dribbles, "closed"),
                                (hostile.takes_no_more, "STALLED: the pull"),
                                (hostile.stops_reading, "closed"),
                                (hostile.reads_slowly, "grpc-status 0"))
                grown = [rss_mib(server) - was for server, was in zip(live.servers, memory)]
            live.wait_for(lambda status: all(map(holds_nothing, status["shards"])),
                          "the shards to let go of what the peers held")
            cluster.wait_until(lambda: all(descriptors(server) <= was for server, was in
                                           zip(live.servers, before)), "the connections to be closed")
            log = live.log_text("server-0")
        self.assertEqual(finished["weights_sha256"], alone["weights_sha256"])
        self.assertEqual(finished["updates"], alone["updates"])
        self.assertFalse(crowd.ended(hostile.reads_slowly, "STALLED"), crowd.ends)
        self.assertIn("STALLED: the pull moved less than", log)
        self.assertIn('reason="nobody has said in time who they are for"', log)
        print("memory grown by", [f"{mib:.1f} MiB" for mib in grown])
        self.assertLess(max(grown), GROWTH_MIB_MAX)

    def test_a_member_that_ends_no_push_keeps_nobody_out(self):
        values = 65536
        settings = {**SETTINGS, "consistency.policy": "async", "cluster.workers": 2,
                    "cluster.servers": "localhost:7070"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=0) as live, \
                Driver(live, 0, values) as one, Driver(live, 1, values) as other:
            one.await_line("ready")
            other.await_line("ready")
            identity, shard_map = hostile.join(live.coordinator, {"weight": values}, 1 << 40, 1)
            chunk = hostile.first_chunk(identity, shard_map, values, bytes(8192))
            more = number(2, 2048) + blob(15, bytes(8192))
            peers = [(hostile.dribbles, live.coordinator, "Push", [chunk, more]),
                     (hostile.stops_within_a_push, live.coordinator, chunk),
                     (hostile.cuts, live.coordinator, chunk)]
            with hostile.Crowd(peers * 8) as crowd:
                live.wait_for(lambda status: int(status["shards"][0]["bytes_queued"]) > 0,
                              "a hostile push to begin")
                for driver in (one, other):
                    driver.ask("run 50")
                for driver in (one, other):
                    driver.await_line("done")
                self.assertEqual(crowd.ended(hostile.dribbles, "STALLED"), 0,
                                 "the honest workers went on only when the others had been ended")
                # All hostile peers act as the same member, so each supersedes the others.
                self.await_ends(crowd, live, (hostile.dribbles, "SUPERSEDED"),
                                (hostile.stops_within_a_push, "SUPERSEDED"))
            status = live.wait_for(lambda status: holds_nothing(status["shards"][0]),
                                   "the shard to let go of what the peers held")
        self.assertEqual(int(status["shards"][0]["version"]), 2 * 50)


class Driver:
    """A worker that exchanges on command and does not compute."""

    def __init__(self, live, worker, values):
        self.log = open(live.directory / f"driver-{worker}.log", "wb")
        self.process = subprocess.Popen(
            [cluster.program("tests/benchmarks/exchange_driver"), "--coordinator", live.coordinator,
             "--worker", str(worker), "--bytes", str(4 * values)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def await_line(self, word):
        if not select.select([self.process.stdout], [], [], cluster.DEADLINE_S)[0]:
            raise AssertionError(f"the worker has not said \"{word}\" for {cluster.DEADLINE_S} s")
        line = self.process.stdout.readline()
        if not line.startswith(word):
            raise AssertionError(f"the worker said \"{line}\" instead of \"{word}\"")


if __name__ == "__main__":
    unittest.main()
