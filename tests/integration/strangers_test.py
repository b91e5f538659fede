"""Floods of useless connections beside workers that train, of strangers and of one who has
registered: nobody else loses a lease, a worker that joins is admitted, and the server gives back
the memory that the flood took. tests/security/gauntlet.py measures rates."""
import pathlib
import unittest

import cluster
import floods
import process_figures

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
SETTINGS = {"wire.transport": "tcp", "cluster.servers": "localhost:7070", "cluster.workers": 2,
            "cluster.lease": "3s", "consistency.policy": "async", "training.epochs": 10000}

# How much memory may grow with 64 strangers that make 128 calls each, and 96 guests.
GROWTH_MIB_MAX = 256


def peak_mib(process):
    return int(process_figures.status(process.pid)["VmHWM"]) / 1024


class StrangersTest(unittest.TestCase):
    def beside(self, flood_of):
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, SETTINGS, directory, workers=2) as live:
            server = live.servers[0]
            before = live.wait_for(lambda status: int(status["pushes"]) > 100, "training to begin")
            memory = peak_mib(server)
            with flood_of(live.coordinator) as flood:
                cluster.wait_until(lambda: "closed connections" in live.log_text("server-0"),
                                   "the first strangers to be closed")
                live.start_worker(2)
                # A client that asks for the status is a stranger, too, so look into the log
                # instead.
                cluster.wait_until(lambda: "worker registered worker=2" in live.log_text("server-0"),
                                   "a worker to join beside the flood")
            self.assertGreater(flood.opened, 64)
            status = live.wait_for(
                lambda status: cluster.line_of(status, 2).get("last_sequence", 0) > 10,
                "the one that joined to push")
            states = [worker["state"] for worker in status["workers"]]
            self.assertEqual(states, ["live"] * 3, live.log_texts())
            self.assertEqual([worker["incarnation"] for worker in status["workers"][:2]],
                             [worker["incarnation"] for worker in before["workers"]])
            grown = peak_mib(server) - memory
            print(f"memory grown by {grown:.1f} MiB")
            self.assertLess(grown, GROWTH_MIB_MAX)

    def test_silent_exchange_streams_cost_members_nothing(self):
        self.beside(lambda address: floods.silent_streams(address, "/slipstream.v1.Shard/Exchange",
                                                          connections=200))

    def test_silent_heartbeat_streams_keep_nobody_out(self):
        self.beside(lambda address: floods.silent_streams(
            address, "/slipstream.v1.Coordinator/Heartbeat", connections=200))

    def test_calls_that_are_reset_at_once_cost_members_nothing(self):
        self.beside(lambda address: floods.resetting(address, "/slipstream.v1.Shard/Exchange"))

    def test_who_registers_and_floods_is_shut_out_and_costs_others_nothing(self):
        for name, flood_of in floods.member_kinds(7).items():
            with self.subTest(name), cluster.scratch() as directory, \
                    cluster.Cluster(CONFIG, SETTINGS, directory, workers=2) as live:
                self.flood_as_member(live, flood_of)

    def flood_as_member(self, live, flood_of):
        live.wait_for(lambda status: int(status["pushes"]) > 100, "training to begin")
        memory = peak_mib(live.servers[0])
        with flood_of(live.coordinator):
            cluster.wait_until(lambda: "a member sends more than messages"
                               in live.log_text("server-0"), "the server to shut it out")
        pushes = int(live.wait_for(lambda _: True, "the status")["pushes"])
        status = live.wait_for(lambda now: int(now["pushes"]) > pushes + 100, "more pushes")
        self.assertEqual([worker["state"] for worker in status["workers"][:2]], ["live"] * 2,
                         live.log_texts())
        self.assertLess(peak_mib(live.servers[0]) - memory, GROWTH_MIB_MAX)


if __name__ == "__main__":
    unittest.main()
