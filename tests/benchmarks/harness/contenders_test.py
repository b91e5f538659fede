"""Contenders that are built here exchange when they are told to; nothing here is timed."""
import importlib
import pathlib
import unittest

importlib.import_module("main")  # Knows where the modules of other tests are.
from programs import scratch

from contender import Setting
from contender_process import ContenderFailed
from contenders import in_directories, sockets
from grpc_contender import GrpcContender
from slipstream_contender import SlipstreamContender, choices

BYTES = 1 << 16


def transports():
    return [name for name in choices("cluster", "transport") or ["tcp"] if name != "auto"]


class ContendersTest(unittest.TestCase):
    def exchange(self, makers, setting):
        with scratch() as directory:
            for contender in in_directories(makers, setting, pathlib.Path(directory)):
                with self.subTest(contender.name, setting=setting):
                    self.assertEqual(contender.missing(), "")
                    try:
                        contender.start()
                        contender.await_workers()
                        turn = contender.run(3)
                    finally:
                        contender.stop()
                    self.assertGreater(turn.seconds, 0)
                    self.assertLessEqual(turn.exchange, turn.seconds)

    def test_workers_exchange_with_all_servers(self):
        makers = [lambda setting, directory, name=name: SlipstreamContender(name, setting, directory)
                  for name in transports()]
        self.exchange([*makers, *sockets(("tcp", "unix")), GrpcContender],
                      Setting(BYTES, workers=2, servers=2))

    def test_a_round_of_hardsync_needs_nobody_else(self):
        self.exchange([lambda setting, directory: SlipstreamContender("tcp", setting, directory)],
                      Setting(BYTES, rule="momentum", policy="hardsync"))

    def test_sockets_apply_every_rule_and_answer_pings(self):
        for rule in ("sgd", "momentum", "adam"):
            self.exchange(sockets(["tcp"]), Setting(BYTES, rule=rule))
        self.exchange(sockets(("tcp", "unix"), "ping"), Setting(64, rule="ping"))

    def test_a_worker_without_its_server_is_named(self):
        with scratch() as directory:
            contender, = in_directories([GrpcContender], Setting(BYTES), pathlib.Path(directory))
            contender.start()
            contender.await_workers()
            contender.servers[0].end()

            with self.assertRaisesRegex(ContenderFailed, "worker-0 said \"failed "):
                contender.run(1)
            contender.stop()


if __name__ == "__main__":
    unittest.main()
