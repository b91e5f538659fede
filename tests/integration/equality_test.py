"""A cluster computes what a plain loop computes."""
import array
import math
import pathlib
import subprocess
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"


def read_weights(path):
    values = array.array("f")
    values.frombytes(pathlib.Path(path).read_bytes())
    return values


def distance(a, b):
    """Returns the distance between two vectors, relative to the length of the second."""
    difference = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)))
    return difference / math.sqrt(sum(y * y for y in b))


class EqualityTest(unittest.TestCase):
    def test_one_worker_equals_a_plain_loop_to_the_bit(self):
        for policy in ("hardsync", "softsync", "async"):
            for preset, kind in (("mlp", "momentum"), ("lenet5", "sgd"), ("mlp", "adam"),
                                 ("mlp", "adamw")):
                # The batch size leaves a shorter last mini-batch, whose weight is not a power of
                # two.
                settings = {"consistency.policy": policy, "cluster.workers": 1,
                            "model.preset": preset, "optimizer.kind": kind,
                            "optimizer.learning_rate": 0.002 if "adam" in kind else 0.02,
                            "optimizer.weight_decay": 0.001, "data.train_examples": 1000,
                            "training.batch_size": 48, "training.epochs": 2}
                with self.subTest(policy=policy, preset=preset, kind=kind):
                    trained = cluster.run(CONFIG, settings)
                    plain = cluster.plain_loop(CONFIG, settings)
                    self.assertEqual(trained["weights_sha256"], plain["weights_sha256"])
                    self.assertAlmostEqual(trained["test_accuracy"], plain["test_accuracy"],
                                           places=5)

    def test_one_worker_equals_a_plain_loop_whose_tensors_have_options_of_their_own(self):
        options = ("[{match: \"*.bias\", weight_decay: 0}, {match: 3.*, learning_rate_factor: 0.1}, "
                   "{match: 5.weight, weight_decay: 0.1, learning_rate_factor: 0}]")
        for policy in ("hardsync", "async"):
            for kind in ("momentum", "adamw"):
                settings = {"consistency.policy": policy, "cluster.workers": 1,
                            "model.preset": "mlp", "optimizer.kind": kind,
                            "optimizer.learning_rate": 0.002 if "adam" in kind else 0.02,
                            "optimizer.weight_decay": 0.001, "optimizer.per_tensor": options,
                            "data.train_examples": 1000}
                with self.subTest(policy=policy, kind=kind):
                    trained = cluster.run(CONFIG, settings)
                    plain = cluster.plain_loop(CONFIG, settings)
                    self.assertEqual(trained["weights_sha256"], plain["weights_sha256"])

    def test_four_hardsync_workers_equal_one_learner_with_four_times_the_batch(self):
        # 6,400 examples are 50 steps of 4 × 32.
        settings = {"consistency.policy": "hardsync"}
        with cluster.scratch() as directory:
            with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                status = live.wait_finished()
                addresses = [shard["address"] for shard in status["shards"]]
                pulled = pathlib.Path(directory) / "pulled"
                subprocess.run([cluster.program("tests/integration/pull_weights"), pulled,
                                *addresses], check=True, timeout=cluster.DEADLINE_S)
            plain = pathlib.Path(directory) / "plain"
            cluster.plain_loop(CONFIG, {"consistency.policy": "hardsync",
                                        "training.batch_size": 128}, weights=plain)
            apart = distance(read_weights(pulled), read_weights(plain))
        self.assertEqual(int(status["updates"]), 50)
        print(f"relative distance after 50 steps: {apart:.2e}")
        self.assertLess(apart, 1e-4)

    def test_hardsync_gives_the_same_weights_whatever_timing_shards_and_transport(self):
        settings = {"consistency.policy": "hardsync", "data.train_examples": 2000}
        first = cluster.run(CONFIG, settings)
        for changed in ({"wire.transport": "tcp"}, {"wire.transport": "unix"},
                        {"wire.transport": "shm"},
                        {"testing.push_delay_max": "30ms"},
                        {"cluster.servers": "localhost:7070,localhost:7071,localhost:7072"}):
            with self.subTest(changed=changed):
                again = cluster.run(CONFIG, {**settings, **changed})
                self.assertEqual(again["weights_sha256"], first["weights_sha256"])
                self.assertEqual(again["test_accuracy"], first["test_accuracy"])

    def test_a_model_of_many_large_messages_equals_a_plain_loop_over_every_transport(self):
        net = """model:
  input: [1, 28, 28]
  layers:
    - flatten
    - dense: {units: 1024}
    - relu
    - dense: {units: 1024}
    - relu
    - dense: {units: 10}
"""
        settings = {"cluster.workers": 1, "wire.chunk_bytes": 1 << 20, "data.train_examples": 160,
                    "data.test_examples": 100}
        with cluster.scratch() as directory:
            # The net makes two shards of 3.6 MiB.
            config = pathlib.Path(directory) / "run.yaml"
            small = CONFIG.read_text()
            config.write_text(small.replace("model: {preset: mlp}\n", net))
            self.assertNotEqual(config.read_text(), small)
            plain = cluster.plain_loop(config, settings)
            for transport in ("tcp", "unix", "shm"):
                with self.subTest(transport=transport):
                    trained = cluster.run(config, {**settings, "wire.transport": transport})
                    self.assertEqual(trained["weights_sha256"], plain["weights_sha256"])

    def test_hardsync_by_adam_gives_the_same_weights_whatever_the_number_of_shards(self):
        settings = {"consistency.policy": "hardsync", "data.train_examples": 2000,
                    "optimizer.kind": "adam", "optimizer.learning_rate": 0.001}
        two = cluster.run(CONFIG, settings)
        three = cluster.run(CONFIG, {
            **settings, "cluster.servers": "localhost:7070,localhost:7071,localhost:7072"})
        self.assertEqual(three["weights_sha256"], two["weights_sha256"])


if __name__ == "__main__":
    unittest.main()
