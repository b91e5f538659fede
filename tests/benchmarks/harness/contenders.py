"""Who takes part in which comparison, in the order of the tables."""
from slipstream_contender import SlipstreamContender
from socket_contender import SocketContender

TRANSPORTS = ("tcp", "unix", "shm")


def exchange_contenders(setting, directory):
    """All that exchange a model, each with a directory of its own; those that are missing, too."""
    makers = [*(lambda s, d, t=transport: SlipstreamContender(t, s, d) for transport in TRANSPORTS),
              *(lambda s, d, k=kind: SocketContender(k, s, d) for kind in ("tcp", "unix"))]
    for number, make in enumerate(makers):
        own = directory / f"{number}"
        own.mkdir(parents=True)
        yield make(setting, own)
