"""A program that publishes whole weights, of one tensor, through the Python package on command.

    python_publisher.py HOST:PORT BYTES

The first state, number 0, is published before it is ready: readers learn the model's shape from it.
"""
import array
import sys
import time

import delivery_commands
import slipstream


def main(address, size):
    values = array.array("f", bytes(int(size)))
    with slipstream.connect(address) as run:

        def publish(number):
            begun = time.monotonic()
            outcome = run.publish({"values": values}, version=number).result().outcome
            published = time.monotonic()
            if outcome != "APPLIED":
                sys.exit(f"state {number} is {outcome}")
            return begun, published

        publish(0)
        print("ready", flush=True)
        delivery_commands.serve(values, publish)


if __name__ == "__main__":
    main(*sys.argv[1:])
