"""A user's own data: from files written by NumPy or a spreadsheet to a trained model."""
import json
import pathlib
import subprocess
import sys
import unittest

import numpy

import cluster

HEAD = """
version: 1
name: own
cluster: {servers: ["localhost:7070", "localhost:7071"], workers: 3}
consistency: {policy: softsync, n: 1}
optimizer: {kind: momentum, learning_rate: 0.05, momentum: 0.9, schedule: {kind: cosine}}
"""


def save(directory, x, y, train):
    for name, part in (("train", slice(0, train)), ("test", slice(train, None))):
        numpy.save(pathlib.Path(directory) / f"X_{name}.npy", x[part])
        numpy.save(pathlib.Path(directory) / f"y_{name}.npy", y[part])


def linear_problem(directory, dtype):
    """Makes targets that are a linear function of the inputs, plus noise: the error of least
    squares is known."""
    chance = numpy.random.RandomState(3)
    x = chance.uniform(-1, 1, (2400, 40)).astype(dtype)
    noise = chance.normal(0, 0.1, (2400, 2))
    y = (x @ chance.normal(0, 0.3, (40, 2)) + 0.5 + noise).astype(dtype)
    save(directory, x, y, train=2000)
    with_one = numpy.hstack([x, numpy.ones((2400, 1), dtype)])
    solution = numpy.linalg.lstsq(with_one[:2000], y[:2000], rcond=None)[0]
    return float(numpy.mean((with_one[2000:] @ solution - y[2000:]) ** 2))


def images(directory):
    """Makes small images of three classes: the class is the third of the image that is brighter."""
    chance = numpy.random.RandomState(5)
    y = chance.randint(0, 3, 1500)
    x = chance.randint(0, 120, (1500, 6, 6))
    for i, label in enumerate(y):
        x[i, 2 * label:2 * label + 2] += 60
    save(directory, x.astype("uint8"), y, train=1200)


class OwnDataTest(unittest.TestCase):
    def setUp(self):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)

    def run_with(self, text, settings=None, **options):
        config = cluster.write_config(self.directory, HEAD + text)
        settings = {"data.path": self.directory, **(settings or {})}
        return cluster.run(config, settings, **options)

    def test_mse_on_arrays_of_numpy_reaches_what_least_squares_leaves(self):
        text = """
model: {input: [40, 1, 1], layers: [dense: {units: 2}], loss: mse}
data: {format: npy, path: .}
training: {batch_size: 20, epochs: 10}
"""
        for policy in ("softsync", "hardsync"):
            for dtype in ("float32", "float64"):
                with self.subTest(policy=policy, dtype=dtype):
                    least = linear_problem(self.directory, dtype)
                    run_dir = self.directory / f"run-{policy}-{dtype}"
                    summary = self.run_with(text, {"consistency.policy": policy}, run_dir=run_dir)
                    self.assertAlmostEqual(least, 0.01, delta=0.002)
                    self.assertLess(summary["test_loss"], 1.03 * least)
                    self.assertGreater(summary["test_loss"], 0.97 * least)
                    # There are no classes, so the accuracy is absent: neither 0 nor a number.
                    self.assertIsNone(summary["test_accuracy"])
                    for evaluation in summary["evaluations"]:
                        self.assertIsNone(evaluation["test_accuracy"])
                    rows = [json.loads(line) for line in
                            (run_dir / "metrics.jsonl").read_text().splitlines()]
                    self.assertTrue(all(row["train_accuracy"] is None for row in rows))
                    self.assertTrue(any(row["train_loss"] is not None for row in rows))

    def test_one_worker_equals_a_plain_loop_to_the_bit(self):
        linear_problem(self.directory, "float32")
        config = cluster.write_config(self.directory, HEAD + """
model: {input: [40, 1, 1], layers: [dense: {units: 9}, tanh, dense: {units: 2}], loss: mse}
data: {format: npy, path: .}
training: {batch_size: 48, epochs: 2}
""")
        settings = {"data.path": self.directory, "cluster.workers": 1,
                    "optimizer.schedule.kind": "constant"}
        trained = cluster.run(config, settings)
        plain = cluster.plain_loop(config, settings)
        self.assertEqual(trained["weights_sha256"], plain["weights_sha256"])
        self.assertAlmostEqual(trained["test_loss"], plain["test_loss"], places=5)

    def test_images_of_any_size_in_any_number_of_classes(self):
        images(self.directory)
        summary = self.run_with("""
model:
  input: [1, 6, 6]
  layers: [conv2d: {channels: 4, kernel: 3}, relu, flatten, dense: {units: 3}]
data: {format: npy, path: .}
training: {batch_size: 20, epochs: 8}
""", {"optimizer.learning_rate": 0.00005})
        self.assertGreater(summary["test_accuracy"], 0.95)

    def test_classes_of_a_table(self):
        chance = numpy.random.RandomState(8)
        x = chance.uniform(-1, 1, (3000, 2))
        # The classes are the quarters of a chequerboard, which no line separates.
        kind = (x[:, 0] * x[:, 1] > 0) * 1
        for name, part in (("train", slice(0, 2400)), ("test", slice(2400, None))):
            rows = numpy.column_stack([kind[part], x[part]])
            numpy.savetxt(self.directory / f"{name}.csv", rows, delimiter=",", fmt="%.6f",
                          header="kind,east,north", comments="")
        summary = self.run_with("""
model: {input: [2, 1, 1], layers: [dense: {units: 32}, relu, dense: {units: 2}]}
data: {format: csv, path: ., label_columns: [kind]}
training: {batch_size: 20, epochs: 20}
""")
        self.assertGreater(summary["test_accuracy"], 0.95)

    def test_the_example_reaches_the_noise(self):
        subprocess.run([sys.executable, cluster.program("deploy/examples/make_regression.py"),
                        self.directory], check=True, timeout=cluster.DEADLINE_S)
        summary = cluster.run(cluster.program("deploy/examples/regression.yaml"),
                              {"data.path": self.directory})
        # The noise is 0.04; a linear fit leaves 0.27.
        self.assertLess(summary["test_loss"], 0.08)
        self.assertGreater(summary["test_loss"], 0.03)
        self.assertIsNone(summary["test_accuracy"])

    def test_what_numpy_saves_and_is_not_read_is_refused_with_the_remedy(self):
        good = numpy.arange(40, dtype="f4").reshape(20, 2)
        first = good[:10]
        wrong = {
            "Python objects": first.astype(object),
            "values of type \"<f2\"": first.astype("f2"),
            "values of type \"<U3\"": first.astype("U3"),
            "structured values": numpy.zeros(10, dtype=[("a", "f4")]),
            "nan at [3, 1], expected a finite number": numpy.where(first == 7, numpy.nan, first),
        }
        for message, x in wrong.items():
            with self.subTest(message):
                save(self.directory, good, numpy.arange(20) % 2, train=10)
                numpy.save(self.directory / "X_train.npy", x)
                error = self.error_of("[2, 1, 1]", 2)
                self.assertIn(message, error)
                self.assertIn("X_train.npy", error)

    def test_a_model_for_other_data_is_refused_naming_both(self):
        save(self.directory, numpy.zeros((20, 2), "f4"), numpy.arange(20) % 3, train=10)
        self.assertIn("the examples of the data are 2×1×1 (2 values), and the model's input is "
                      "3×1×1", self.error_of("[3, 1, 1]", 3))
        self.assertIn("the labels of the data go up to 2, and the model's last layer has outputs "
                      "for the classes 0 to 1", self.error_of("[2, 1, 1]", 2))

    def error_of(self, shape, units):
        config = cluster.write_config(self.directory, HEAD + f"""
model: {{input: {shape}, layers: [dense: {{units: {units}}}]}}
data: {{format: npy, path: .}}
""")
        done = cluster.psctl("run", str(config), "--set", f"data.path={self.directory}",
                             "--set", "cluster.workers=1",
                             "--set", "cluster.servers=localhost:7070", check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr


if __name__ == "__main__":
    unittest.main()
