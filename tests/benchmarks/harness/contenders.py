"""The contenders of each comparison, in the order of the tables."""
import functools

from grpc_contender import GrpcContender
from openmpi_contender import OpenMpiContender
from shared_memory_contender import SharedMemoryContender
from slipstream_contender import SlipstreamContender
from socket_contender import SocketContender
from torch_contenders import GlooContender, TorchRpcContender, TorchRpcTcpContender

TRANSPORTS = ("tcp", "unix", "shm")


def in_directories(makers, setting, directory):
    """Makes each contender, with its own directory, including those that cannot take part."""
    for number, make in enumerate(makers):
        own = directory / f"{number}"
        own.mkdir(parents=True)
        yield make(setting, own)


def slipstream(transports, builds):
    """Returns Slipstream's contenders. The builds of one transport are neighbours, so that their
    turns are, too."""
    return [functools.partial(SlipstreamContender, transport, build=build)
            for transport in transports for build in builds]


def sockets(kinds, command="work"):
    return [functools.partial(SocketContender, kind, command=command) for kind in kinds]


def limits(command="work"):
    """Returns a contender with nothing but a transport, for each of TRANSPORTS."""
    return [*sockets(("tcp", "unix"), command), SharedMemoryContender]


def peers(setting, builds):
    """Returns the contenders that are not ours. They are left out where two builds of Slipstream
    are compared, since they say nothing about the difference between the builds."""
    if len(builds) > 1:
        return []
    all_reduces = [GlooContender, OpenMpiContender]
    # An all-reduce of two ranks is compared with one worker and one server.
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
