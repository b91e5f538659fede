"""Who takes part in which comparison, in the order of the tables."""
import functools

from grpc_contender import GrpcContender
from openmpi_contender import OpenMpiContender
from shared_memory_contender import SharedMemoryContender
from slipstream_contender import SlipstreamContender
from socket_contender import SocketContender
from torch_contenders import GlooContender, TorchRpcContender, TorchRpcTcpContender

TRANSPORTS = ("tcp", "unix", "shm")


def in_directories(makers, setting, directory):
    """A contender of each, with a directory of its own; those that are missing, too."""
    for number, make in enumerate(makers):
        own = directory / f"{number}"
        own.mkdir(parents=True)
        yield make(setting, own)


def slipstream(transports):
    return [functools.partial(SlipstreamContender, transport) for transport in transports]


def sockets(kinds, command="work"):
    return [functools.partial(SocketContender, kind, command=command) for kind in kinds]


def limits(command="work"):
    """A contender with nothing but a transport, for each of TRANSPORTS."""
    return [*sockets(("tcp", "unix"), command), SharedMemoryContender]


def exchange_contenders(setting, directory):
    peers = [GrpcContender, TorchRpcTcpContender, TorchRpcContender]
    if (setting.workers, setting.servers) == (1, 1):  # What they are compared with.
        peers += [GlooContender, OpenMpiContender]
    return in_directories([*slipstream(TRANSPORTS), *limits(), *peers], setting, directory)


def latency_contenders(setting, directory):
    return in_directories([*slipstream(("auto", *TRANSPORTS)), *limits()], setting, directory)


def ping_contenders(setting, directory):
    return in_directories(limits("ping"), setting, directory)
