"""The commands of tests/benchmarks/harness/delivery_contender.py: a source gives each of its states to
readers, which are processes of their own.

Moments are those of the machine's monotonic clock, which all its processes share. All values of a state
are its number, so nothing of the state before is in it, and readers see whether they have the end of it.
"""
import array
import os
import sys
import threading
import time

FILLED_AT_ONCE = 1 << 14


def fill(values, number):
    """Gives all values this number, piece by piece, as a whole new array takes several times as long."""
    piece = array.array("f", [number]) * FILLED_AT_ONCE
    for begin in range(0, len(values), FILLED_AT_ONCE):
        values[begin:begin + FILLED_AT_ONCE] = piece[:len(values) - begin]


def serve(values, deliver):
    """Serves a source's commands to the end of stdin: changes all values, and has `deliver(number)`
    give them to the readers. It returns when that began, and when the state was published."""
    for number, _ in enumerate(sys.stdin, start=1):
        fill(values, number)
        print("published", number, *deliver(number), flush=True)


def say_taken(values, number):
    """Says that this reader now has a state."""
    moment = time.monotonic()
    if values[0] != number or values[-1] != number:
        sys.exit(f"state {number} begins with {values[0]} and ends with {values[-1]}")
    print("taken", number, moment, flush=True)


def end_with_stdin():
    """Lets this process end at the end of stdin, whatever it waits for."""
    def watch():
        while os.read(sys.stdin.fileno(), 1):
            pass
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
