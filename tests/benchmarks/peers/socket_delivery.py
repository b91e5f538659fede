"""A state sent over plain sockets: a source with a thread for each reader, and the readers.

    socket_delivery.py send LISTEN BYTES READERS
    socket_delivery.py receive ADDRESS BYTES

LISTEN and ADDRESS are HOST:PORT, where port 0 is any that is free, or unix:PATH. The source is ready
with its address before readers come.
"""
import array
import concurrent.futures
import itertools
import socket
import sys
import time

import delivery_commands

ACCEPT_S = 120


def place_of(address):
    """Returns the family of an address, and the address for it."""
    host, _, port = address.rpartition(":")
    return (socket.AF_UNIX, port) if host == "unix" else (socket.AF_INET, (host, int(port)))


def accept(listener):
    listener.settimeout(ACCEPT_S)
    return listener.accept()[0]


def send(listen, size, readers):
    values = array.array("f", bytes(int(size)))
    family, place = place_of(listen)
    with socket.socket(family) as listener:
        listener.bind(place)
        listener.listen(int(readers))
        is_tcp = family == socket.AF_INET
        print("ready", f"{place[0]}:{listener.getsockname()[1]}" if is_tcp else listen, flush=True)
        connections = [accept(listener) for _ in range(int(readers))]
    with concurrent.futures.ThreadPoolExecutor(len(connections)) as threads:

        def deliver(_):
            begun = time.monotonic()
            list(threads.map(lambda connection: connection.sendall(values), connections))
            return begun, begun  # Nothing comes before the sending.

        delivery_commands.serve(values, deliver)


def receive_into(connection, view):
    """Fills the view. Returns False if the source has ended."""
    begin = 0
    while begin < len(view):
        count = connection.recv_into(view[begin:])
        if count == 0:
            return False
        begin += count
    return True


def receive(address, size):
    delivery_commands.end_with_stdin()
    view = memoryview(bytearray(int(size)))
    family, place = place_of(address)
    with socket.socket(family) as connection:
        connection.connect(place)
        print("ready", flush=True)
        for number in itertools.count(1):
            if not receive_into(connection, view):
                return
            delivery_commands.say_taken(view.cast("f"), number)


if __name__ == "__main__":
    {"send": send, "receive": receive}[sys.argv[1]](*sys.argv[2:])
