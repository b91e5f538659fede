"""A reader of a run through the Python package, which says each state that it takes.

    python_reader.py HOST:PORT

It is ready when it has the state that was published before it came.
"""
import sys

import delivery_commands
import slipstream


def main(address):
    delivery_commands.end_with_stdin()
    with slipstream.subscribe(address, name="benchmark") as reader:
        next(reader)
        print("ready", flush=True)
        for weights in reader:
            delivery_commands.say_taken(weights.tensors["values"], weights.version)


if __name__ == "__main__":
    main(*sys.argv[1:])
