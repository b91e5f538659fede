"""A worker of a run through the Python package, which exchanges a model of one tensor on command.

    python_worker.py HOST:PORT WORKER BYTES

An exchange is over when all weights lie where they are read."""
import sys

import numpy

import exchange_commands
import slipstream


def main():
    address, worker, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with slipstream.connect(address, worker=worker) as run:
        run.synchronize({"values": numpy.zeros(size // 4, dtype=numpy.float32)})
        run.values["values"][:] = 1
        run.fetch()
        exchange_commands.serve(lambda: run.exchange(examples=1))


if __name__ == "__main__":
    main()
