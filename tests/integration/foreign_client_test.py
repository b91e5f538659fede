"""Foreign programs read a live cluster: Python stubs, and a client of gRPC's reflection."""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import cluster
from wire_messages import blob, fields

try:
    import grpc
    from google.protobuf import descriptor_pb2
except ImportError:
    grpc = None

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
EXAMPLE = "deploy/examples/status.py"


def field(message, number):
    return [value for n, value in fields(message) if n == number]


def reflect(channel, request):
    """Sends one request to grpc.reflection.v1alpha. The messages are encoded by hand, as Debian has
    no stubs for them. The answer is in field 4 (files), 6 (services) or 7 (error)."""
    call = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    return next(call(iter([request]), timeout=cluster.DEADLINE_S))


@unittest.skipIf(grpc is None, "python3-grpcio is not installed: deploy/setup.sh --dev")
class ForeignClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = cluster.scratch()
        cls.addClassCleanup(scratch.cleanup)
        cls.live = cluster.Cluster(CONFIG, {}, scratch.name, workers=4)
        cls.addClassCleanup(cls.live.stop)
        cls.status = cls.live.wait_finished()

    def run_example(self, *arguments, program=EXAMPLE):
        return subprocess.run([sys.executable, program, "--coordinator", self.live.coordinator,
                               *arguments], text=True, timeout=cluster.DEADLINE_S, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_the_example_prints_staleness_and_pulls_a_shard(self):
        done = self.run_example("--pull", "1")

        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("small: FINISHED, "), lines[0])
        for shard, line in zip(self.status["shards"], lines[1:3]):
            self.assertIn(f"version {shard['version']}, ", line)
            self.assertIn(f"staleness mean {shard['staleness']['mean']:.3f}, ", line)
            self.assertIn(f"max {shard['staleness']['max']};", line)
        shard = self.status["shards"][1]
        pulled = re.fullmatch(r"pulled (\d+) weights of shard 1, version (\d+), norm (\S+)", lines[3])
        self.assertEqual(int(pulled[1]), shard["end"] - shard["begin"])
        self.assertEqual(int(pulled[2]), shard["version"])
        self.assertGreater(float(pulled[3]), 0)

    def test_the_example_says_what_is_wrong(self):
        done = self.run_example("--pull", "7")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "status.py: there are 2 shards, not 7\n")

    def test_the_example_finds_the_messages_beside_it_in_a_bundle(self):
        with cluster.scratch() as directory:
            bundle = pathlib.Path(directory) / "bundle"
            for folder in ("examples", "proto"):
                (bundle / folder).mkdir(parents=True)
            program = shutil.copy(EXAMPLE, bundle / "examples")
            without = self.run_example(program=program)
            for file in pathlib.Path("proto").glob("*.proto"):
                shutil.copy(file, bundle / "proto")
            done = self.run_example(program=program)

        self.assertEqual(without.returncode, 1)
        self.assertIn("there are no .proto files in ", without.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("small: FINISHED, "), done.stdout)

    def test_every_server_lists_its_services_to_reflection(self):
        for shard in self.status["shards"]:
            with grpc.insecure_channel(shard["address"]) as channel:
                answer = reflect(channel, blob(7, b"*"))
            services = {field(service, 1)[0].decode()
                        for service in field(field(answer, 6)[0], 1)}
            self.assertIn("slipstream.v1.Shard", services)
            self.assertEqual("slipstream.v1.Coordinator" in services, shard["shard"] == 0)

    def test_reflection_describes_methods_and_messages(self):
        with grpc.insecure_channel(self.live.coordinator) as channel:
            by_symbol = reflect(channel, blob(4, b"slipstream.v1.Coordinator.WatchStatus"))
            by_name = reflect(channel, blob(3, b"proto/status.proto"))
        files = [descriptor_pb2.FileDescriptorProto.FromString(data)
                 for data in field(field(by_symbol, 4)[0], 1)]
        found = next(file for file in files if file.name == "proto/coordinator.proto")
        methods = {method.name: method for method in found.service[0].method}
        self.assertTrue(methods["WatchStatus"].server_streaming)
        self.assertEqual(methods["WatchStatus"].output_type, ".slipstream.v1.RunStatus")
        status = descriptor_pb2.FileDescriptorProto.FromString(field(field(by_name, 4)[0], 1)[0])
        self.assertIn("ReaderStatus", [message.name for message in status.message_type])

    def test_reflection_says_that_it_does_not_know_a_name(self):
        with grpc.insecure_channel(self.live.coordinator) as channel:
            answer = reflect(channel, blob(4, b"slipstream.v1.Nothing"))

        self.assertEqual(field(field(answer, 7)[0], 1), [grpc.StatusCode.NOT_FOUND.value[0]])


if __name__ == "__main__":
    unittest.main()
