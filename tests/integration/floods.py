"""Many connections that misbehave alike. One thread runs them without a library, so that a flood
measures the cost to the server and not the cost to the attacker.

A flood keeps COUNT connections to one address. On each connection it sends its opening words, and
more at intervals. It replaces a connection that the server closes. With `tls`, an ssl.SSLContext,
it sends all this within TLS.
"""
import functools
import selectors
import socket
import ssl
import struct
import threading
import time

from hostile_peers import (ACK, END_HEADERS, FRAME_BYTES_MAX, PING, PREFACE, SETTINGS, framed)

HEADERS, DATA, RST_STREAM, CONTINUATION = 1, 0, 3, 9
PROBE = b"\0\0\x08\x06\0\0\0\0\0"  # The start of a PING without ACK; eight bytes follow.


def frame(kind, flags, stream, payload=b""):
    return (struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream)
            + payload)


def greeting(window=65535):
    return PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window))


def text(name, value):
    """Encodes a header field without a table."""
    def string(data):
        size = bytes([len(data)]) if len(data) < 127 else b"\x7f" + varint(len(data) - 127)
        return size + data
    return b"\0" + string(name) + string(value)


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def header_block(method, more=b""):
    fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", method.encode()),
              (b":authority", b"localhost"), (b"te", b"trailers"),
              (b"content-type", b"application/grpc"))
    return b"".join(text(*field) for field in fields) + more


def calls(method, count, first=1, message=None):
    """Encodes calls that begin and do not end, each with this message."""
    block = header_block(method)
    out = []
    for stream in range(first, first + 2 * count, 2):
        out.append(frame(HEADERS, END_HEADERS, stream, block))
        if message is not None:
            out.append(frame(DATA, 0, stream, framed(message)))
    return b"".join(out)


def indexed_calls(method, count, first=1):
    """Encodes calls that begin and do not end, each in 15 bytes: the first one puts its fields into
    the table of headers."""
    fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", method.encode()),
              (b":authority", b"localhost"), (b"te", b"trailers"),
              (b"content-type", b"application/grpc"))
    literal = b"".join(b"\x40" + text(*field)[1:] for field in fields)
    table = bytes(0x80 | 61 + place for place in range(len(fields), 0, -1))  # The newest is 62.
    return b"".join(frame(HEADERS, END_HEADERS, stream, literal if stream == first else table)
                    for stream in range(first, first + 2 * count, 2))


class Flood:
    """A flood of `count` connections. On each it sends `words`, and `reply` once the server has sent
    something. `more(connection number, time since it opened)` returns the bytes to send next, or
    b"", and is called `interval_s` after the last call. Not thread-safe, except for entering and
    leaving."""

    tls = None

    def __init__(self, address, count, words, more=None, interval_s=0.2, reads=True,
                 reopen_per_s=500, reply=b""):
        host, port = address.rsplit(":", 1)
        self.address = (host, int(port))
        self.count = count
        self.words = words
        self.reply = reply
        self.more = more
        self.interval_s = interval_s
        self.reads = reads
        self.reopen_per_s = reopen_per_s
        self.opened = self.closed = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _open(self, selector):
        one = socket.socket()
        one.setblocking(False)
        try:
            one.connect(self.address)
        except BlockingIOError:
            pass
        self.opened += 1
        selector.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE,
                          [self.opened, time.monotonic(), self.words, time.monotonic(), self.reply])

    def _close(self, selector, one):
        selector.unregister(one)
        one.close()
        self.closed += 1

    def _run(self):
        with selectors.DefaultSelector() as selector:
            allowed, last = float(self.reopen_per_s), time.monotonic()
            while not self._over.is_set():
                now = time.monotonic()
                allowed = min(self.reopen_per_s, allowed + (now - last) * self.reopen_per_s)
                last = now
                while len(selector.get_map()) < self.count and allowed >= 1:
                    self._open(selector)
                    allowed -= 1
                for key, events in selector.select(0.05):
                    self._serve(selector, key, events)
                if self.more is not None:
                    self._send_more(selector, now)
            for key in list(selector.get_map().values()):
                key.fileobj.close()

    def _send_more(self, selector, now):
        for key in list(selector.get_map().values()):
            number, opened, rest, next_time, _ = key.data
            if rest or now < next_time:
                continue
            key.data[2] = self.more(number, now - opened)
            key.data[3] = now + self.interval_s
            if key.data[2]:
                selector.modify(key.fileobj, selectors.EVENT_READ | selectors.EVENT_WRITE, key.data)

    def _answer_probes(self, selector, key, data):
        """Answers PINGs; otherwise the server would find the connection dead."""
        place = data.find(PROBE)
        while place >= 0:
            payload = data[place + 9:place + 17]
            if len(payload) == 8:
                key.data[2] += frame(PING, ACK, 0, payload)
                selector.modify(key.fileobj, selectors.EVENT_READ | selectors.EVENT_WRITE, key.data)
            place = data.find(PROBE, place + 1)

    def _serve(self, selector, key, events):
        one = key.fileobj
        if self.tls is not None and not isinstance(one, ssl.SSLSocket):
            return self._begin_tls(selector, key)
        try:
            # TLS may have to read before it can write, so pending output is also tried after a read
            # event.
            if events & selectors.EVENT_WRITE or (self.tls is not None and key.data[2]):
                self._send(selector, key)
            if events & selectors.EVENT_READ and self.reads:
                data = one.recv(65536)
                if not data:
                    return self._close(selector, one)
                if key.data[4]:
                    key.data[2] += key.data[4]
                    key.data[4] = b""
                    selector.modify(one, selectors.EVENT_READ | selectors.EVENT_WRITE, key.data)
                self._answer_probes(selector, key, data)
        except (BlockingIOError, ssl.SSLWantWriteError):
            pass
        except ssl.SSLWantReadError:
            selector.modify(one, selectors.EVENT_READ, key.data)
        except OSError:
            self._close(selector, one)

    def _begin_tls(self, selector, key):
        """Starts TLS on a connection that is open, or that has failed to open."""
        selector.unregister(key.fileobj)
        try:
            one = self.tls.wrap_socket(key.fileobj, do_handshake_on_connect=False,
                                       server_hostname="localhost")
        except OSError:
            key.fileobj.close()
            self.closed += 1
            return
        selector.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE, key.data)

    def _send(self, selector, key):
        one = key.fileobj
        if self.tls is not None and one.version() is None:
            one.do_handshake()
        # TLS takes at most a record of 16 KiB at a time. The rest is sent later.
        sent = one.send(key.data[2]) if key.data[2] else 0
        key.data[2] = key.data[2][sent:]
        if not key.data[2]:
            selector.modify(one, selectors.EVENT_READ, key.data)


def silent_streams(address, method, connections=1000, streams=128):
    return Flood(address, connections, greeting() + calls(method, streams))


def resetting(address, method, connections=64):
    """Makes and resets a thousand calls a second on each connection."""
    return Flood(address, connections, greeting() + resets(method, 1),
                 more=lambda _, age: resets(method, 201 + 200 * int(age * 10)), interval_s=0.1)


def client_hello():
    """Returns the first message of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def recorded(address, tls):
    """Returns all bytes that a client sends on a TLS connection on which it calls for the
    status."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls.wrap_bio(incoming, outgoing, server_hostname="localhost")
    host, port = address.rsplit(":", 1)
    said = b""

    def pump(step):
        nonlocal said
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                done = None
            words = outgoing.read()
            said += words
            peer.sendall(words)
            if done is not None:
                return
            incoming.write(peer.recv(65536))

    with socket.create_connection((host, int(port)), timeout=10) as peer:
        pump(lambda: client.do_handshake() or True)
        pump(lambda: client.write(
            greeting() + calls("/slipstream.v1.Coordinator/GetStatus", 1, message=b"")))
        pump(lambda: client.read(9))
    return said


def tls_kinds(tls):
    """Returns floods of invalid TLS sessions by name, like `kinds`. `tls` holds credentials of a
    member that may call."""
    hello = client_hello()
    return {
        "half a TLS greeting": lambda address: Flood(address, 1000, hello[:len(hello) // 2]),
        "a TLS greeting, a byte at a time": lambda address: Flood(
            address, 1000, hello[:20], more=lambda _, age: hello[20 + int(age):21 + int(age)],
            interval_s=1),
        "a TLS greeting and no answer": lambda address: Flood(address, 1000, hello, reads=False),
        "another's session, replayed": lambda address: Flood(address, 64, recorded(address, tls)),
    }


def member_kinds(worker):
    """Returns floods by name, like `kinds`, of connections that have registered as this worker."""
    register = calls("/slipstream.v1.Coordinator/Register", 1, message=b"\x08" + varint(worker))
    exchange = "/slipstream.v1.Shard/Exchange"

    def flood(begin, more):
        begun = set()

        def words(connection, age):
            if connection in begun:
                return more(age)
            if age < 0.5:  # The server has yet to understand the registration.
                return b""
            begun.add(connection)
            return begin

        return lambda address: Flood(address, 8, greeting() + register, more=words,
                                     interval_s=0.01, reopen_per_s=16)

    begun = frame(HEADERS, 0, 3, header_block(exchange))
    endless = frame(HEADERS, 0, 3, header_block(exchange) + b"\x7f")
    padding = frame(CONTINUATION, 0, 3, b"\x80" * FRAME_BYTES_MAX) * 32
    fields = frame(CONTINUATION, 0, 3, text(b"x", bytes(4000)) * 4) * 32
    return {
        "members: a number in headers without an end": flood(endless, lambda _: padding),
        "members: headers without an end": flood(begun, lambda _: fields),
        "members: calls that are reset at once": flood(
            b"", lambda age: resets(exchange, 3 + 200 * int(age * 100))),
    }


# Kinds of floods by name. Each is a function that takes the address and returns a Flood.

def kinds():
    exchange = "/slipstream.v1.Shard/Exchange"
    coordinator = "/slipstream.v1.Coordinator/"
    silent = {
        "silent Exchange streams": exchange, "silent Push streams": "/slipstream.v1.Shard/Push",
        "silent Initialize streams": "/slipstream.v1.Shard/Initialize",
        "silent Heartbeat streams": coordinator + "Heartbeat",
        "silent GetWork streams": coordinator + "GetWork",
        "Register calls without a message": coordinator + "Register",
        "silent reflection streams":
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    }
    found = {name: lambda address, method=method: silent_streams(address, method)
             for name, method in silent.items()}
    found["silent Exchange streams, once it was greeted"] = lambda address: Flood(
        address, 1000, greeting(), reply=calls(exchange, 128))
    found["a thousand calls in 15 KiB, once it was greeted"] = lambda address: Flood(
        address, 1000, greeting(), reply=indexed_calls(exchange, 1000))
    found["a thousand calls, after a second of patience"] = lambda address: Flood(
        address, 64, greeting(), interval_s=1,
        more=lambda _, age: indexed_calls(exchange, 1000) if age < 1.5 else b"")
    found["guests: GetStatus, later a thousand calls"] = lambda address: Flood(
        address, 96, greeting() + calls(coordinator + "GetStatus", 1, message=b""), interval_s=2,
        more=lambda _, age: indexed_calls(exchange, 1000, first=3) if age < 2.5 else b"")
    found["health Watch streams"] = lambda address: Flood(
        address, 1000, greeting() + calls("/grpc.health.v1.Health/Watch", 128, message=b""))
    found["connections that say nothing"] = lambda address: Flood(address, 1000, b"")
    found["half a greeting"] = lambda address: Flood(address, 1000, PREFACE[:9])
    found["headers, a byte at a time"] = lambda address: Flood(
        address, 1000, greeting() + frame(HEADERS, END_HEADERS, 1, header_block(exchange))[:20],
        more=lambda _, __: b"\0", interval_s=1)
    found["guests: GetStatus, then silent Exchange streams"] = lambda address: Flood(
        address, 1000, greeting() + calls(coordinator + "GetStatus", 1, message=b"")
        + calls(exchange, 127, first=3))
    found["watchers of the status"] = lambda address: Flood(
        address, 300, greeting() + calls(coordinator + "WatchStatus", 4, message=b"\x08\x64"))
    found["guests: a thousand readers, made up"] = lambda address: Flood(
        address, 40, greeting(), more=made_up_readers, interval_s=0.16)
    found["guests: GetStatus 18 times a second, nothing read"] = lambda address: Flood(
        address, 90, greeting(0), interval_s=1 / 18,
        more=lambda _, age: calls(coordinator + "GetStatus", 1, 2 * int(18 * age) + 1, b""))
    found["watchers of the status that read nothing"] = lambda address: Flood(
        address, 3, greeting(0) + calls(coordinator + "GetStatus", 1, message=b"")
        + calls(coordinator + "WatchStatus", 30, 3, b"\x08\x64"))
    for name, method in (("", exchange), (" of unknown methods", "/no.such/Method"),
                         (" of gRPC's health", "/grpc.health.v1.Health/Check")):
        found[f"calls{name} that are reset at once"] = (
            lambda address, method=method: resetting(address, method))
    found["pings"] = lambda address: Flood(address, 64, greeting() + frame(PING, 0, 0, bytes(8)) * 50,
                                           more=lambda _, __: frame(PING, 0, 0, bytes(8)) * 50)
    found["settings"] = lambda address: Flood(
        address, 64, greeting(), more=lambda _, __: frame(SETTINGS, 0, 0) * 50)
    found["metadata of 64 KiB, a call each"] = lambda address: Flood(
        address, 64, greeting() + b"".join(fat_call(exchange, stream, 4) for stream in range(1, 20, 2)))
    found["headers without an end"] = lambda address: Flood(
        address, 64, greeting() + frame(HEADERS, 0, 1, header_block(exchange)),
        more=lambda _, __: frame(CONTINUATION, 0, 1, text(b"x", bytes(4000))) * 4)
    found["table of headers filled over and over"] = lambda address: Flood(
        address, 64, greeting() + b"".join(
            frame(HEADERS, END_HEADERS, stream, header_block(exchange, b"".join(
                b"\x40" + text(b"x%d" % (stream * 50 + i), b"y" * 60)[1:] for i in range(50))))
            for stream in range(1, 100, 2)))
    found["read buffers pinned by a few bytes each"] = lambda address: Flood(
        address, 24, greeting() + frame(HEADERS, END_HEADERS, 1, header_block(exchange))
        + frame(DATA, 0, 1, struct.pack(">BI", 0, 4 << 20)),
        more=pinning, interval_s=0.02)
    return found


@functools.lru_cache(maxsize=4)  # Many connections send the same bytes.
def resets(method, first):
    """Encodes a hundred calls, each cancelled at once."""
    block = header_block(method)
    return b"".join(frame(HEADERS, END_HEADERS, stream, block) + frame(RST_STREAM, 0, stream, bytes(4))
                    for stream in range(first, first + 200, 2))


def fat_call(method, stream, frames):
    parts = [text(b"x%d" % i, b"y" * 16000) for i in range(frames)]
    return (frame(HEADERS, 0, stream, header_block(method))
            + b"".join(frame(CONTINUATION, END_HEADERS if i + 1 == frames else 0, stream, part)
                       for i, part in enumerate(parts)))


def made_up_readers(connection, age):
    """Returns the Follow call of another reader, with all the text that it may have; 25 in all."""
    number = int(age / 0.16)
    if number >= 25:
        return b""
    instance = connection * 10_000 + number + 1
    message = (b"\x09" + struct.pack("<Q", instance) + b"\x12" + varint(256) + b"h" * 256
               + b"\x1a" + varint(256) + b"n" * 256)
    return calls("/slipstream.v1.Coordinator/Follow", 1, 2 * number + 1, message)


def pinning(_, __):
    """Unknown frames fill a read buffer, and 24 bytes of a message keep all of it allocated."""
    unknown = frame(0xfa, 0, 0, bytes(FRAME_BYTES_MAX))
    return unknown * 4 + frame(DATA, 0, 1, bytes(24))
