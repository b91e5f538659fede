"""The stability of training with a constant delay, on a live server.

On a quadratic of curvature h, gradient descent whose gradients are τ updates old is stable if and only
if αh < 2 sin(π/(2(2τ + 1))): the root of z^(τ+1) − z^τ + αh that leaves the unit circle first does so
there. τ + 1 workers that push in turn give every gradient the delay τ, by the server's own count."""
import importlib.util
import math
import pathlib
import queue
import struct
import sys
import tempfile
import time
import unittest

import cluster

try:
    import grpc
except ImportError:
    grpc = None

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
STUBS = "deploy/examples/status.py"
DELAYS = (0, 1, 2, 4, 8, 30)
SIZE = 16  # The number of weights; all are equal.
WAIT_MS = 500


def stubs():
    """Returns Python's modules of the messages and services, by name."""
    spec = importlib.util.spec_from_file_location("status", STUBS)
    status = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(status)
    directory = tempfile.TemporaryDirectory()
    return directory, status.make_stubs(status.proto_folder(), pathlib.Path(directory.name))


def patiently(call, *arguments):
    """Repeats a call for as long as the other side is not ready for it. Returns the answer."""
    answers = []

    def is_answered():
        try:
            answers.append(call(*arguments, timeout=cluster.DEADLINE_S))
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
        return answers

    cluster.wait_until(is_answered, "a call was not answered")
    return answers[0]


class Worker:
    """A worker that computes the gradient of θ²/2. It asks for no work, as its pushes name mini-batches
    of their own, and sends no heartbeats: its pushes renew its lease."""

    def __init__(self, modules, coordinator, number):
        self.shards = modules["shard_pb2"]
        self.messages = modules["coordinator_pb2"]
        self.control = modules["coordinator_pb2_grpc"].CoordinatorStub(coordinator)
        registered = patiently(self.control.Register, self.messages.RegisterRequest(
            worker=number, host="test", process=1, instance=number + 1))
        self.identity = registered.identity
        # A server knows a worker by its connection.
        self.channel = grpc.insecure_channel(registered.servers[0],
                                             [("grpc.use_local_subchannel_pool", 1)])
        self.shard = modules["shard_pb2_grpc"].ShardStub(self.channel)
        patiently(self.shard.GetTransports,
                  self.shards.GetTransportsRequest(identity=self.identity))
        self.outgoing = queue.SimpleQueue()
        self.answers = self.shard.Exchange(iter(self.outgoing.get, None),
                                           timeout=10 * cluster.DEADLINE_S)
        self.pushes = 0

    def prepare(self):
        """Makes the model, or waits until another worker has made it."""
        request = self.messages.PrepareModelRequest(identity=self.identity, examples=1 << 40,
                                                    data_fingerprint=1, wait_ms=WAIT_MS)
        request.layout.tensors.add(name="theta", shape=[SIZE])
        deadline = time.monotonic() + cluster.DEADLINE_S
        while time.monotonic() < deadline:
            reply = patiently(self.control.PrepareModel, request)
            self.shard_map = reply.shard_map.fingerprint
            if reply.state == reply.READY:
                return
            if reply.state == reply.GRANTED:
                self.initialize(reply.grant)
        raise AssertionError("the model is not ready")

    def initialize(self, grant):
        header = self.shards.InitializeHeader(identity=self.identity, grant=grant,
                                              shard_map=self.shard_map, count=SIZE)
        values = struct.pack(f"<{SIZE}f", *[1] * SIZE)
        message = self.shards.InitializeRequest(header=header, values=values)
        patiently(lambda timeout: self.shard.Initialize(iter([message]), timeout=timeout))
        patiently(self.control.FinishInitialization, self.messages.FinishInitializationRequest(
            identity=self.identity, grant=grant))

    def pull(self):
        request = self.shards.PullRequest(identity=self.identity, shard_map=self.shard_map,
                                          trains=True, sequence=1)
        self.take(patiently(lambda timeout: next(self.shard.Pull(request, timeout=timeout))))

    def take(self, weights):
        self.version, self.generation = weights.header.version, weights.header.generation
        self.weight = struct.unpack_from("<f", weights.values)[0]

    def push(self, batch):
        """Pushes the gradient of the weights held, and takes new ones. Returns the reply."""
        self.pushes += 1
        header = self.shards.PushHeader(
            identity=self.identity, sequence=self.pushes, shard_map=self.shard_map,
            base_version=self.version, generation=self.generation, count=SIZE, examples=1, pull=True,
            clock=self.pushes, batches=[self.shards.BatchRange(first=batch, count=1)])
        values = struct.pack(f"<{SIZE}f", *[self.weight] * SIZE)
        answer = None
        while answer is None or answer.push.retry_after_ms > 0:
            self.outgoing.put(self.shards.PushChunk(header=header, values=values))
            answer = next(self.answers)
        self.take(answer)
        return answer.push

    def close(self):
        self.outgoing.put(None)
        self.channel.close()


@unittest.skipIf(grpc is None, "python3-grpcio is not installed: deploy/setup.sh --dev")
class ConstantDelayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory, cls.modules = stubs()
        cls.addClassCleanup(directory.cleanup)

    def largest_after(self, updates, delay, rate):
        """Returns the largest |θ| of the last versions. θ begins at 1."""
        settings = {"cluster.servers": "localhost:7070", "cluster.workers": delay + 1,
                    "cluster.lease": "5s", "consistency.policy": "async",
                    "optimizer.kind": "sgd", "optimizer.learning_rate": rate,
                    "training.epochs": 1000, "evaluation.every_epochs": 0}
        with cluster.scratch() as directory, cluster.Cluster(CONFIG, settings, directory,
                                                             workers=0) as live:
            with grpc.insecure_channel(live.coordinator) as channel:
                workers = [Worker(self.modules, channel, number) for number in range(delay + 1)]
                for worker in workers:
                    worker.prepare()
                for worker in workers:
                    worker.pull()
                for update in range(updates):
                    worker = workers[update % len(workers)]
                    reply = worker.push(update)
                    self.assertEqual(reply.staleness, min(update, delay))
                    if abs(worker.weight) > 1e6:
                        break
                for worker in workers:
                    worker.close()
        return max(abs(worker.weight) for worker in workers)

    def test_a_quadratic_is_stable_up_to_the_published_rate(self):
        for delay in DELAYS:
            with self.subTest(delay=delay):
                bound = 2 * math.sin(math.pi / (2 * (2 * delay + 1)))
                updates = 600 + 600 * delay
                begin = time.monotonic()
                below = self.largest_after(updates, delay, 0.98 * bound)
                above = self.largest_after(updates, delay, 1.02 * bound)
                print(f"delay {delay}: {below:.3g} below the bound of {bound:.4f}, {above:.3g} above "
                      f"it, {time.monotonic() - begin:.1f} s", file=sys.stderr)
                self.assertLess(below, 0.1)
                self.assertGreater(above, 10)


if __name__ == "__main__":
    unittest.main()
