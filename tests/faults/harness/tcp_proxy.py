#!/usr/bin/env python3
"""A TCP proxy whose connections behave badly. The seed and a connection's number determine how:
each is late by its own delay and jitter, some pass on their bytes in small pieces, and some end
after a while: properly, by a reset, or by falling silent with both sides open.

    tcp_proxy.py --seed N --endings N --mark N

prints its port once it listens. Connections have to be redirected there (network.py); its own have
the mark. At most `--endings` connections end, so that the clients' work comes to its end. On
SIGTERM it prints, as JSON, how many connections behaved how.
"""
import argparse
import asyncio
import collections
import json
import random
import signal
import socket
import struct
import sys

SO_ORIGINAL_DST = 80
SO_MARK = 36
READ_BYTES = 1 << 16
# gRPC notices a silent connection after about 20 seconds, so fewer connections end in that way.
ENDINGS = ("close", "reset", "close", "reset", "silence")
LIFE_BYTES_MIN = 1 << 14
LIFE_BYTES_TIMES = 256


class Conduct:
    """How one connection behaves."""

    def __init__(self, seed, number):
        chance = random.Random(f"{seed} {number}")
        self.chance = chance
        self.delay_s = chance.choice((0, 0, 0.002, 0.01, 0.03))
        self.jitter_s = chance.choice((0, 0, 0.005, 0.02))
        self.dribbles = chance.random() < 0.3
        self.ending = chance.choice(ENDINGS) if chance.random() < 0.9 else ""
        self.life_bytes = int(LIFE_BYTES_MIN * LIFE_BYTES_TIMES ** chance.random())

    def pieces(self, data):
        """Yields the data as they are passed on."""
        place = 0
        while place < len(data):
            size = self.chance.randrange(1, 1400) if self.dribbles else len(data)
            yield data[place:place + size]
            place += size

    def pause_s(self):
        return self.delay_s + self.chance.uniform(0, self.jitter_s)


class Proxy:
    def __init__(self, options):
        self.options = options
        self.endings_left = options.endings
        self.connections = 0
        self.counts = collections.Counter()

    async def serve(self, over):
        server = await asyncio.start_server(self.accept, "0.0.0.0", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await over.wait()
        print(json.dumps(self.counts), flush=True)

    async def accept(self, reader, writer):
        self.connections += 1
        conduct = Conduct(self.options.seed, self.connections)
        if conduct.ending and self.endings_left == 0:
            conduct.ending = ""
        self.endings_left -= bool(conduct.ending)
        try:
            await self.join(reader, writer, conduct)
        except OSError:  # One of the two has ended the connection.
            writer.transport.abort()
        except asyncio.CancelledError:  # The proxy ends.
            pass

    async def join(self, reader, writer, conduct):
        client = writer.get_extra_info("socket")
        raw = client.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
        port, host = struct.unpack_from(">2xH4s", raw)
        there = socket.socket()
        there.setblocking(False)
        there.setsockopt(socket.SOL_SOCKET, SO_MARK, self.options.mark)
        await asyncio.get_running_loop().sock_connect(there, (socket.inet_ntoa(host), port))
        reader_there, writer_there = await asyncio.open_connection(sock=there)
        self.counts["connections"] += 1
        self.counts["dribbles"] += conduct.dribbles
        ways = [asyncio.ensure_future(self.pass_on(reader, writer_there, conduct)),
                asyncio.ensure_future(self.pass_on(reader_there, writer, conduct))]
        done, others = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        ending = next((way.result() for way in done if not way.exception()), "")
        if ending:
            self.counts[ending] += 1
        if ending == "silence":
            await asyncio.Event().wait()
        for each in (writer, writer_there):
            if ending == "reset":
                end = each.get_extra_info("socket")
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.transport.abort()
            else:
                each.close()

    async def pass_on(self, reader, writer, conduct):
        """Passes on what comes. Returns how the connection is to end; "" if its end has come from
        outside."""
        while data := await reader.read(READ_BYTES):
            await asyncio.sleep(conduct.pause_s())
            for piece in conduct.pieces(data):
                writer.write(piece)
                await writer.drain()
                if conduct.dribbles:
                    await asyncio.sleep(0)  # Lets the kernel send the piece by itself.
            conduct.life_bytes -= len(data)
            if conduct.ending and conduct.life_bytes <= 0:
                return conduct.ending
        return ""


async def run(options):
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    await Proxy(options).serve(over)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", required=True)
    parser.add_argument("--endings", type=int, required=True)
    parser.add_argument("--mark", type=int, required=True)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
