"""The contenders that deliver states to readers: Slipstream's publisher and subscribers, plain sockets,
and plain shared memory."""
import functools
import sys

from contender import name_in
from contender_process import START_S, ContenderProcess
from contenders import in_directories
from delivery_contender import DeliveryContender
from programs import OWN_BUILD
from python_contender import PEERS, package_environment
from slipstream_contender import SlipstreamContender

RUN_YAML = """
version: 1
name: benchmark
worker: {{algorithm: publish}}
readers: {{versions_kept: 4}}
cluster: {{servers: [{servers}], workers: 1, lease: 1m}}
log: {{level: warning}}
"""


class SlipstreamDelivery(DeliveryContender, SlipstreamContender):
    """The package with the transports that it chooses by itself: on one machine, shared memory for the
    publisher and local sockets for readers."""

    def __init__(self, setting, directory, build=OWN_BUILD):
        super().__init__("auto", setting, directory, build)
        self.name = name_in(build, "slipstream")
        self.limit = "raw-unix"

    def run_yaml(self):
        return RUN_YAML.format(servers=self.server_names())

    def start(self):
        self.start_servers()
        self.servers.append(self.start_program("python_publisher", self.setting.bytes))
        self.source.answer("ready", START_S)
        self.workers = [self.start_program("python_reader", number=number)
                        for number in range(self.setting.workers)]

    def start_program(self, name, *arguments, number=0):
        return ContenderProcess(
            f"{name}-{number}", [sys.executable, PEERS / f"{name}.py", self.cluster.coordinator,
                                 *arguments], self.directory,
            package_environment(self.build, self.directory))


class RawDelivery(DeliveryContender):
    """A source and readers of one program, of which the source is ready with its address."""
    program = ""
    reader_command = ""

    def source_arguments(self):
        raise NotImplementedError

    def start(self):
        self.servers = [self.start_program("source", *self.source_arguments())]
        address, = self.source.answer("ready", START_S)
        self.workers = [self.start_program(f"reader-{number}", self.reader_command, address,
                                           self.setting.bytes)
                        for number in range(self.setting.workers)]

    def start_program(self, name, *arguments):
        return ContenderProcess(name, [sys.executable, PEERS / self.program, *arguments],
                                self.directory)


class SocketDelivery(RawDelivery):
    program = "socket_delivery.py"
    reader_command = "receive"

    def __init__(self, kind, setting, directory):
        super().__init__(setting, directory)
        self.name = f"raw-{kind}"
        self.kind = kind

    def source_arguments(self):
        # The path is relative to the directory of the processes: an absolute path may be too long.
        listen = "127.0.0.1:0" if self.kind == "tcp" else "unix:source"
        return "send", listen, self.setting.bytes, self.setting.workers


class MemoryDelivery(RawDelivery):
    name = "raw-shm"
    program = "memory_delivery.py"
    reader_command = "copy"

    def source_arguments(self):
        return "write", self.setting.bytes

    def announce(self):
        for reader in self.workers:
            reader.ask("copy")


def delivery_contenders(setting, directory, builds):
    ours = [functools.partial(SlipstreamDelivery, build=build) for build in builds]
    sockets = [functools.partial(SocketDelivery, kind) for kind in ("tcp", "unix")]
    return in_directories([*ours, *sockets, MemoryDelivery], setting, directory)
