"""Every method refuses a message that says it is compressed, and does so before it unpacks
anything."""
import pathlib
import re
import unittest
import zlib

import cluster
import hostile_peers as hostile
import process_figures
from wire_messages import blob

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
UNIMPLEMENTED = 12

# The messages unpack to this many zeros. Packed, they are a thousandth of it, which is less than a
# stranger may send without raising an alarm.
UNPACKED_BYTES = 3 << 20
GROWTH_MIB_MAX = 2


def methods():
    """Returns every method of our services, and the methods that gRPC adds."""
    found = ["/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
             "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"]
    for path in sorted(pathlib.Path("proto").glob("*.proto")):
        text = path.read_text(encoding="utf-8")
        for service in re.findall(r"^service (\w+)", text, re.M):
            found += [f"/slipstream.v1.{service}/{name}" for name in re.findall(r"^  rpc (\w+)", text, re.M)]
    return found


def packed(window_bits):
    """Returns a compressed message with an unknown field, which every message may have."""
    packer = zlib.compressobj(9, zlib.DEFLATED, window_bits)
    return packer.compress(blob(127, bytes(UNPACKED_BYTES))) + packer.flush()


def peak_mib(process):
    return int(process_figures.status(process.pid)["VmHWM"]) / 1024


class CompressedMessagesTest(unittest.TestCase):
    def test_every_method_refuses_them_by_name(self):
        messages = {"gzip": packed(31), "deflate": packed(15)}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, {"cluster.servers": "localhost:7070"}, directory,
                                workers=0) as live:
            before = peak_mib(live.servers[0])
            for method in methods():
                for encoding, message in messages.items():
                    with self.subTest(method=method, encoding=encoding):
                        self.assertEqual(ended_with(live.coordinator, method, encoding, message),
                                         UNIMPLEMENTED)
            grown = peak_mib(live.servers[0]) - before
            self.assertLess(grown, GROWTH_MIB_MAX)
            print(f"{len(methods())} methods, memory grown by {grown:.1f} MiB")


def ended_with(address, method, encoding, message):
    """Makes a call with this message. Returns its status code."""
    with hostile.connect(address) as peer:
        stream = peer.call(method, [("grpc-encoding", encoding)])
        peer.write(stream, message, ends=True, is_compressed=True)
        while True:
            frame = peer.frame(cluster.DEADLINE_S)
            if frame is None:
                raise AssertionError(f"{method} was not answered")
            kind, flags, of, payload = frame
            if of == stream and kind == hostile.HEADERS and flags & hostile.END_STREAM:
                return int(re.search(r"grpc-status\W+(\d+)", hostile.words(payload))[1])


if __name__ == "__main__":
    unittest.main()
