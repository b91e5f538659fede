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


def slipstream(transports, builds):
    """The builds of one transport are neighbours, so that their turns are, too."""
    return [functools.partial(SlipstreamContender, transport, build=build)
            for transport in transports for build in builds]


def sockets(kinds, command="work"):
    return [functools.partial(SocketContender, kind, command=command) for kind in kinds]


def limits(command="work"):
    """A contender with nothing but a transport, for each of TRANSPORTS."""
    return [*sockets(("tcp", "unix"), command), SharedMemoryContender]


def peers(setting, builds):
    """Other people's programs. They say nothing about what a change to Slipstream has brought, so
    they are left out where two of its builds are compared."""
    if len(builds) > 1:
        return []
    all_reduces = [GlooContender, OpenMpiContender]
    # An all-reduce of two ranks stands beside one worker with one server.
    return [GrpcContender, TorchRpcTcpContender, TorchRpcContender,
            *(all_reduces if (setting.workers, setting.servers) == (1, 1) else [])]


def exchange_contenders(setting, directory, builds):
    return in_directories([*slipstream((*TRANSPORTS, "mtls"), builds), *limits(), *peers(setting, builds)],
                          setting, directory)


def latency_contenders(setting, directory, builds):
    return in_directories([*slipstream(("auto", *TRANSPORTS, "mtls"), builds), *limits()], setting,
                          directory)


def ping_contenders(setting, directory):
    return in_directories(limits("ping"), setting, directory)
