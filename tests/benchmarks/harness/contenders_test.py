"""Contenders that are built here exchange on command; nothing here is timed."""
import importlib
import pathlib
import unittest

importlib.import_module("main")  # main adds the folders of other tests' modules to the path.
from programs import OWN_BUILD, scratch

from contender import Setting
from contender_process import ContenderFailed
from contenders import in_directories, limits, sockets
from delivery_contenders import delivery_contenders
from grpc_contender import GrpcContender
from shared_memory_contender import SharedMemoryContender
from slipstream_contender import SlipstreamContender, choices

BYTES = 1 << 16


def transports():
    return [name for name in choices("wire", "transport") if name != "auto"]


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
        self.exchange([*makers, *limits(), GrpcContender],
                      Setting(BYTES, workers=2, servers=2))

    def test_a_round_of_hardsync_needs_nobody_else(self):
        self.exchange([lambda setting, directory: SlipstreamContender("tcp", setting, directory)],
                      Setting(BYTES, rule="momentum", policy="hardsync"))

    def test_limits_apply_every_rule_and_answer_pings(self):
        for rule in ("sgd", "momentum", "adam"):
            self.exchange([*sockets(["tcp"]), SharedMemoryContender], Setting(BYTES, rule=rule))
        self.exchange(limits("ping"), Setting(64, rule="ping"))

    def test_a_gradient_may_be_larger_than_what_is_under_way_at_once(self):
        # The ring of raw-shm has 8 pieces of 256 KiB, and the last piece here is shorter.
        self.exchange(limits(), Setting((5 << 20) + 64, workers=2))

    def test_all_readers_take_what_is_published(self):
        setting = Setting(BYTES, workers=3, servers=2, rule="assign")
        with scratch() as directory:
            for contender in delivery_contenders(setting, pathlib.Path(directory), [OWN_BUILD]):
                with self.subTest(contender.name):
                    self.assertEqual(contender.missing(), "")
                    try:
                        contender.start()
                        contender.await_workers()
                        states = [contender.deliver() for _ in range(3)]
                    finally:
                        contender.stop()
                    for begun, ended, had in states:
                        self.assertLessEqual(begun, ended)
                        self.assertLess(begun, had)

    def test_a_worker_without_its_server_is_named(self):
        with scratch() as directory:
            for contender in in_directories([GrpcContender, SharedMemoryContender], Setting(BYTES),
                                            pathlib.Path(directory)):
                with self.subTest(contender.name):
                    contender.start()
                    contender.await_workers()
                    contender.servers[0].end()

                    with self.assertRaisesRegex(ContenderFailed, "worker-0 said \"failed "):
                        contender.run(1)
                    contender.stop()


if __name__ == "__main__":
    unittest.main()
