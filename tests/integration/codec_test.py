"""Training works over a wire that rounds values, and its result is exact."""
import array
import hashlib
import pathlib
import subprocess
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
SETTINGS = {"consistency.policy": "hardsync", "cluster.workers": 2, "training.epochs": 3}
# The difference in accuracy between two equally good runs, measured on 1,000 test examples: 0.015
# is more than two standard deviations where nine in ten answers are right.
ACCURACY_APART_MAX = 0.015
# Most values of topk come some sixty pushes late, a tenth of this run.
ACCURACY_APART_TOPK = 0.15


# The share of fp32's bytes that whole blocks of values take.
SHARES = {"bf16": 0.5, "fp16": 0.5, "int8": 1028 / 4096, "onebit": 41 / 1024, "twobit": 73 / 1024,
          "topk": 98 / 4096}
OF_WEIGHTS = ("bf16", "fp16", "int8")


def share(summary, direction):
    """Returns the bytes of values in a direction, as a share of those that fp32 would take."""
    return (sum(server[f"{direction}_bytes"] for server in summary["servers"]) /
            sum(server[f"{direction}_fp32_bytes"] for server in summary["servers"]))


def both(codec):
    return {**SETTINGS, "wire.push_codec": codec, "wire.pull_codec": codec}


class CodecTest(unittest.TestCase):
    def test_fewer_bits_train_as_well_as_fp32_and_the_same_by_any_transport(self):
        exact = cluster.run(CONFIG, SETTINGS)
        self.assertEqual(cluster.run(CONFIG, both("fp32"))["weights_sha256"],
                         exact["weights_sha256"])
        rounded = {codec: both(codec) if codec in OF_WEIGHTS else
                   {**SETTINGS, "wire.push_codec": codec} for codec in SHARES}
        for codec, settings in rounded.items():
            with self.subTest(codec=codec):
                first, second = [cluster.run(CONFIG, {**settings, "wire.transport": transport})
                                 for transport in ("tcp", "unix")]
                print(f"{codec}: accuracy {first['test_accuracy']}, fp32 {exact['test_accuracy']}")
                self.assertEqual(first["weights_sha256"], second["weights_sha256"])
                self.assertNotEqual(first["weights_sha256"], exact["weights_sha256"])
                self.assertAlmostEqual(share(first, "pushed"), SHARES[codec], delta=0.002)
                # Those who measure the weights pull them as fp32.
                pulled = SHARES[codec] if codec in OF_WEIGHTS else 1
                self.assertAlmostEqual(share(first, "pulled"), pulled, delta=0.05)
                self.assertAlmostEqual(first["test_accuracy"], exact["test_accuracy"],
                                       delta=ACCURACY_APART_TOPK if codec == "topk" else
                                       ACCURACY_APART_MAX)

    def test_each_codec_alone_has_an_effect(self):
        settings = {**SETTINGS, "data.train_examples": 1000, "training.epochs": 1}
        results = {key: cluster.run(CONFIG, {**settings, key: "bf16"})["weights_sha256"]
                   for key in ("wire.push_codec", "wire.pull_codec")}
        self.assertEqual(len({*results.values(), cluster.run(CONFIG, settings)["weights_sha256"]}),
                         3)

    def test_servers_and_whoever_measures_the_weights_keep_all_their_bits(self):
        with cluster.scratch() as directory:
            with cluster.Cluster(CONFIG, both("bf16"), directory, workers=2) as live:
                status = live.wait_finished()
                pulled = pathlib.Path(directory) / "pulled"
                subprocess.run([cluster.program("tests/integration/pull_weights"), pulled,
                                *(shard["address"] for shard in status["shards"])],
                               check=True, timeout=cluster.DEADLINE_S)
            kept = pulled.read_bytes()
        lower_halves = array.array("H", kept)[::2]
        finer = sum(half != 0 for half in lower_halves)
        self.assertGreater(finer, 0.9 * len(lower_halves))
        self.assertEqual(hashlib.sha256(kept).hexdigest(), status["weights_sha256"],
                         "the evaluation read other weights")


if __name__ == "__main__":
    unittest.main()
