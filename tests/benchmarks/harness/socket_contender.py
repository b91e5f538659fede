"""A push and a pull over plain sockets: raw TCP is the base of all ratios."""
from contender import Contender
from contender_process import START_S, ContenderProcess
from programs import program


class SocketContender(Contender):
    def __init__(self, kind, setting, directory, command="work"):
        super().__init__(setting, directory)
        self.name = f"raw-{kind}"
        self.kind = kind
        self.command = command

    def listen_address(self, server):
        # The path is relative to the directory of the processes: an absolute path may be too long.
        return "127.0.0.1:0" if self.kind == "tcp" else f"unix:server-{server}"

    def start(self):
        probe = program("tests/benchmarks/raw_probe")
        part = self.setting.bytes // self.setting.servers
        rule = [] if self.command == "ping" else ["--rule", self.setting.rule]
        addresses = []
        for server in range(self.setting.servers):
            process = ContenderProcess(
                f"server-{server}", [probe, "serve", "--listen", self.listen_address(server),
                                     "--bytes", part, *rule], self.directory)
            self.servers.append(process)
            addresses += process.answer("ready", START_S)
        size = [] if self.command == "ping" else ["--bytes", self.setting.bytes]
        for worker in range(self.setting.workers):
            self.workers.append(ContenderProcess(
                f"worker-{worker}", [probe, self.command, "--servers", ",".join(addresses), *size],
                self.directory))
