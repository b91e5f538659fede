"""A worker of a run through the Python package, which exchanges a model of one tensor on command, or only
pushes or pulls it.

    python_worker.py HOST:PORT WORKER BYTES exchange|push|pull

An exchange or a pull is over when all weights lie where they are read."""
import sys

import numpy

import exchange_commands
import slipstream


def main():
    address, worker, size, operation = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    target = {"values": numpy.zeros(size // 4, dtype=numpy.float32)}
    with slipstream.connect(address, worker=worker) as run:
        run.synchronize(target)
        run.values["values"][:] = 1
        run.fetch()

        def push():
            run.push(examples=1).result()
            run.fetch()  # Only asks whether there is work.

        exchange_commands.serve({"exchange": lambda: run.exchange(examples=1), "push": push,
                                 "pull": run.pull}[operation])


if __name__ == "__main__":
    main()
