"""A push and a pull through plain shared memory: the limit of Slipstream's shared-memory
transport."""
from contender import Contender
from contender_process import START_S, ContenderProcess
from programs import program


class SharedMemoryContender(Contender):
    name = "raw-shm"

    def start(self):
        probe = program("tests/benchmarks/raw_shm_probe")
        part = self.setting.bytes // self.setting.servers
        # A ping updates a few values, too; the time that this takes is too short to measure.
        rule = "sgd" if self.setting.rule == "ping" else self.setting.rule
        addresses = []
        for server in range(self.setting.servers):
            process = ContenderProcess(
                f"server-{server}", [probe, "serve", "--workers", self.setting.workers, "--bytes",
                                     part, "--rule", rule], self.directory)
            self.servers.append(process)
            addresses += process.answer("ready", START_S)
        for worker in range(self.setting.workers):
            self.workers.append(ContenderProcess(
                f"worker-{worker}", [probe, "work", "--servers", ",".join(addresses), "--bytes",
                                     self.setting.bytes], self.directory))
