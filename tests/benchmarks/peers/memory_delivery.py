"""A state in plain shared memory: a source that writes it once, and readers that copy it when told.

    memory_delivery.py write BYTES
    memory_delivery.py copy FILE BYTES

FILE is what the source is ready with. A reader copies once for each line on stdin.
"""
import array
import mmap
import os
import sys
import time

import delivery_commands


def write(size):
    values = array.array("f", bytes(int(size)))
    file = os.memfd_create("state")  # It lasts only as long as the processes that have it.
    os.ftruncate(file, int(size))
    shared = memoryview(mmap.mmap(file, int(size)))

    def deliver(_):
        begun = time.monotonic()
        shared[:] = memoryview(values).cast("B")
        return begun, time.monotonic()

    print("ready", f"/proc/{os.getpid()}/fd/{file}", flush=True)
    delivery_commands.serve(values, deliver)


def copy(path, size):
    own = memoryview(bytearray(int(size)))
    with open(path, "rb") as file:
        shared = memoryview(mmap.mmap(file.fileno(), int(size), access=mmap.ACCESS_READ))
    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin, start=1):
        own[:] = shared
        delivery_commands.say_taken(own.cast("f"), number)


if __name__ == "__main__":
    {"write": write, "copy": copy}[sys.argv[1]](*sys.argv[2:])
