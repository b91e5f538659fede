"""A simple parameter server as a first attempt would be: gRPC with a `bytes` field."""
from contender import Contender
from contender_process import START_S, ContenderProcess
from programs import program


class GrpcContender(Contender):
    name = "grpc-bytes"

    def missing(self):
        rule = self.setting.rule
        return "" if rule == "sgd" else f"with {rule}, as its server knows only sgd"

    def start(self):
        probe = program("tests/benchmarks/naive_probe")
        part = self.setting.bytes // self.setting.servers
        self.servers = [ContenderProcess(f"server-{server}", [probe, "serve", "--bytes", part],
                                         self.directory) for server in range(self.setting.servers)]
        addresses = [server.answer("ready", START_S)[0] for server in self.servers]
        self.workers = [ContenderProcess(
            f"worker-{worker}", [probe, "work", "--servers", ",".join(addresses), "--bytes",
                                 self.setting.bytes], self.directory)
            for worker in range(self.setting.workers)]
