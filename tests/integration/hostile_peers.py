"""Peers that misbehave on purpose. They use their own sockets, since a gRPC library would not do
it.

A peer speaks just enough HTTP/2 to begin a call: headers without a table, DATA, and the frames that
keep the connection alive. The kind of a peer decides whether it reads incoming data, and whether it
lets the server send more.
"""
import collections
import contextlib
import socket
import struct
import threading
import time

from wire_messages import blob, fixed64, last_fields, number, varint

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
SHARD = "/slipstream.v1.Shard/"
READY = 3
FRAME_BYTES_MAX = 16384


def framed(message, is_compressed=False):
    """Returns the message as gRPC sends it: whether it is compressed, its length, and its bytes."""
    return struct.pack(">BI", is_compressed, len(message)) + message


class Peer:
    """One connection. Not thread-safe: one owner."""

    def __init__(self, address, stream_window=65535, receive_buffer=None):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(30)
        self.socket.connect((host, int(port)))
        self.address = address
        self._window = stream_window
        self._received = b""
        self._next_stream = 1

    def greet(self):
        """Sends the preface, and how many bytes the server may send on each stream at first."""
        self.socket.sendall(PREFACE)
        self.send(SETTINGS, 0, 0, struct.pack(">HI", 4, self._window))

    def send(self, kind, flags, stream, payload=b""):
        self.socket.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
                            + struct.pack(">I", stream) + payload)

    def call(self, method, headers=()):
        """Begins a call, with further headers as (name, value). Returns its stream."""
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        block = b"".join(
            b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
            for name, value in ((":method", "POST"), (":scheme", "http"), (":path", method),
                                (":authority", self.address), ("te", "trailers"),
                                ("content-type", "application/grpc"), *headers))
        self.send(HEADERS, END_HEADERS, stream, block)
        return stream

    def write(self, stream, message, ends=False, is_compressed=False):
        """Sends a message, which must fit into the first window."""
        data = framed(message, is_compressed)
        for begin in range(0, len(data), FRAME_BYTES_MAX):
            is_last = begin + FRAME_BYTES_MAX >= len(data)
            self.send(DATA, END_STREAM if ends and is_last else 0, stream,
                      data[begin:begin + FRAME_BYTES_MAX])

    def frame(self, timeout_s):
        """Returns the next frame as (kind, flags, stream, payload), or None if none came in time.
        Answers SETTINGS and PING, which keeps the connection alive. Raises EOFError if the server
        has closed it."""
        self.socket.settimeout(max(timeout_s, 0.001))
        while True:
            if len(self._received) >= 9:
                size = int.from_bytes(self._received[:3], "big")
                if len(self._received) >= 9 + size:
                    kind, flags = self._received[3], self._received[4]
                    stream = int.from_bytes(self._received[5:9], "big") & 0x7fffffff
                    payload = self._received[9:9 + size]
                    self._received = self._received[9 + size:]
                    if kind in (SETTINGS, PING) and not flags & ACK:
                        self.send(kind, ACK, 0, payload if kind == PING else b"")
                    return kind, flags, stream, payload
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                return None
            except ConnectionError as error:
                raise EOFError(str(error)) from error
            if not data:
                raise EOFError("closed by the server")
            self._received += data

    def unary(self, method, request, timeout_s=30):
        """Makes a well-behaved call. Returns its answer, which must be too short to need a larger
        window."""
        stream = self.call(method)
        self.write(stream, request, ends=True)
        answer = b""
        while True:
            frame = self.frame(timeout_s)
            if frame is None:
                raise AssertionError(f"{method} was not answered within {timeout_s} s")
            kind, flags, of, payload = frame
            if of != stream:
                continue
            if kind == DATA:
                answer += payload
            if kind == RST_STREAM or flags & END_STREAM:
                if len(answer) < 5:
                    raise AssertionError(f"{method} failed: {payload!r}")
                return answer[5:]

    def reset(self):
        """Resets the connection without a goodbye, as if its machine had been switched off and
        on."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()


class Crowd:
    """Hostile peers, each on a thread, which misbehave until the block ends. A peer is a function
    of the crowd. It is called again when it returns or when the server has closed its connection.

    `ends` counts the reasons for which the server ended calls and connections, by peer and words.
    `failures` lists the exceptions that must not happen.
    """

    PAUSE_S = 0.05  # The pause before a peer begins anew; without it, this would be a flood.

    def __init__(self, peers):
        self.over = threading.Event()
        self.ends = collections.Counter()
        self.failures = []
        self._threads = [threading.Thread(target=self._run, args=peer) for peer in peers]

    def _run(self, behave, *arguments):
        while not self.over.is_set():
            try:
                reason = behave(self, *arguments)
                if reason:
                    self.ends[behave.__name__, reason] += 1
            except (EOFError, ConnectionError):
                self.ends[behave.__name__, "closed"] += 1
            except Exception as error:  # pylint: disable=broad-except
                self.failures.append(f"{behave.__name__}: {error!r}")
                return
            self.over.wait(self.PAUSE_S)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self._threads:
            thread.join(timeout=60)

    def ended(self, kind, words):
        """Returns how often the server has ended a peer of this kind with these words."""
        return sum(count for (peer, reason), count in self.ends.items()
                   if peer == kind.__name__ and words in reason)

    def stay(self, peer, stream=None, each_second=lambda: None):
        """Keeps the connection open. Returns "" when the crowd leaves, or the server's words when
        it ends the stream."""
        while not self.over.is_set():
            each_second()
            deadline = time.monotonic() + 1
            while (left := deadline - time.monotonic()) > 0 and not self.over.is_set():
                frame = peer.frame(min(left, 0.2))
                if frame is None:
                    continue
                kind, flags, of, payload = frame
                if of == stream and kind == HEADERS and flags & END_STREAM:
                    return words(payload)
                if of == stream and kind == RST_STREAM:
                    return f"reset {int.from_bytes(payload, 'big')}"
        return ""


def words(block):
    """Returns the printable characters of trailers. The trailers of a call that failed are sent
    without tables."""
    return "".join(chr(byte) if 32 <= byte < 127 else " " for byte in block)


def connect(address, greets=True, **options):
    peer = Peer(address, **options)
    if greets:
        peer.greet()
    return contextlib.closing(peer)


# Kinds of peers.

def says_nothing(crowd, address, words=b""):
    """Sends nothing, or no more than the begin of a greeting."""
    with connect(address, greets=False) as peer:
        peer.socket.sendall(words)
        peer.socket.settimeout(0.2)
        while not crowd.over.is_set():
            try:
                if not peer.socket.recv(65536):
                    return "closed"
            except TimeoutError:
                pass
    return ""


def dribbles(crowd, address, method, messages):
    """Sends all messages but the last as usual, and the last one byte a second."""
    with connect(address) as peer:
        stream = peer.call(SHARD + method)
        for message in messages[:-1]:
            peer.write(stream, message)
        rest = iter(framed(messages[-1]))
        return crowd.stay(peer, stream, lambda: peer.send(DATA, 0, stream, bytes([next(rest)])))


def stops_within_a_push(crowd, address, chunk):
    """Sends a whole first chunk, so that the push has begun, and then nothing."""
    with connect(address) as peer:
        stream = peer.call(SHARD + "Exchange")
        peer.write(stream, chunk)
        return crowd.stay(peer, stream)


def cuts(crowd, address, chunk):
    """Resets its connection after a chunk and a half, over and over."""
    with connect(address) as peer:
        stream = peer.call(SHARD + "Push")
        peer.write(stream, chunk)
        peer.send(DATA, 0, stream, framed(chunk)[:len(chunk) // 2])
        peer.reset()
    crowd.over.wait(0.25)
    return ""


def takes_no_more(crowd, address):
    """Pulls, answers PINGs, and lets the server send only one window of weights."""
    with connect(address) as peer:
        stream = peer.call(SHARD + "Pull")
        peer.write(stream, b"", ends=True)
        return crowd.stay(peer, stream)


def reads_slowly(crowd, address, bytes_per_second):
    """Pulls honestly over a slow link."""
    with connect(address, stream_window=bytes_per_second) as peer:
        stream = peer.call(SHARD + "Pull")
        peer.write(stream, b"", ends=True)
        room = struct.pack(">I", bytes_per_second)

        def take():
            for place in (0, stream):
                peer.send(WINDOW_UPDATE, 0, place, room)

        return crowd.stay(peer, stream, take)


def stops_reading(crowd, address):
    """Pulls, lets the server send all the weights, and reads nothing, so that the kernel's buffers
    fill up."""
    with connect(address, stream_window=1 << 30, receive_buffer=4096) as peer:
        peer.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30))
        stream = peer.call(SHARD + "Pull")
        peer.write(stream, b"", ends=True)
        for _ in range(40):
            if crowd.over.wait(1):
                break
        # Only writing shows whether the connection is gone: a read would first return earlier data.
        for _ in range(2):
            peer.send(PING, 0, 0, bytes(8))
            crowd.over.wait(0.1)
        return ""


# Messages.

def first_chunk(identity, shard_map, count, values, sequence=1, base=0):
    """Encodes the first chunk of a push of `count` values; `values` are the serialised values at
    its begin."""
    return blob(1, blob(1, identity) + number(2, sequence) + fixed64(3, shard_map) + number(4, base)
                + number(5, count) + number(6, 1) + number(8, 1)) + blob(15, values)


def join(coordinator, layout, examples, data_fingerprint):
    """Registers as one more worker of a run that trains. Returns its serialised identity and the
    fingerprint of the shard map."""
    with connect(coordinator) as peer:
        registered = last_fields(peer.unary("/slipstream.v1.Coordinator/Register", blob(2, b"hostile")))
        identity = registered[1]
        tensors = b"".join(blob(1, blob(1, name.encode()) + blob(2, varint(values)))
                           for name, values in layout.items())
        model = last_fields(peer.unary(
            "/slipstream.v1.Coordinator/PrepareModel",
            blob(1, identity) + blob(2, tensors) + number(3, examples)
            + fixed64(4, data_fingerprint) + number(5, 10000)))
        if model.get(1) != READY:
            raise AssertionError(f"the model is not ready for one more worker: {model}")
        return identity, int.from_bytes(last_fields(model[3])[2], "little")
