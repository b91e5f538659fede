"""A run writes its model to a file, which holds exactly the weights that the run measured."""
import json
import os
import pathlib
import random
import resource
import subprocess
import unittest

import cluster
import safetensors_reader

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
MLP = {"1.weight": [256, 784], "1.bias": [256], "3.weight": [128, 256], "3.bias": [128],
       "5.weight": [10, 128], "5.bias": [10]}


def make_data(directory, train=640, test=300):
    """Makes an IDX data set of ten noisy patterns. Returns its directory."""
    chance = random.Random(1)
    patterns = [chance.randbytes(784) for _ in range(10)]
    data = pathlib.Path(directory) / "data"
    data.mkdir()
    for split, count in (("train", train), ("t10k", test)):
        labels = [chance.randrange(10) for _ in range(count)]
        images = bytearray()
        for label in labels:
            noise = chance.randbytes(784)
            images += bytes(a if a > 40 and b > 185 else b for a, b in zip(patterns[label], noise))
        safetensors_reader.write_idx(data / f"{split}-images-idx3-ubyte", (count, 28, 28), images)
        safetensors_reader.write_idx(data / f"{split}-labels-idx1-ubyte", (count,), labels)
    return data


def evaluate(model, *arguments):
    return json.loads(cluster.psctl("evaluate", str(model), "-o", "json", *arguments).stdout)


class ModelTest(unittest.TestCase):
    def test_another_program_reads_the_weights_and_finds_the_same_accuracy(self):
        with cluster.scratch() as directory:
            data = make_data(directory)
            settings = {"consistency.policy": "hardsync", "data.format": "idx", "data.path": data,
                        "training.epochs": 6}
            summary = cluster.run(CONFIG, settings, run_dir=f"{directory}/run")
            model = safetensors_reader.Model(f"{directory}/run/model.safetensors")
            accuracy, loss = safetensors_reader.measure_mlp(model, data)
            evaluated = evaluate(f"{directory}/run")
            moved = pathlib.Path(directory) / "moved"
            data.rename(moved)
            for training in moved.glob("train-*"):
                training.unlink()  # A model is measured without training data.
            lost = cluster.psctl("evaluate", f"{directory}/run", check=False)
            alone = evaluate(f"{directory}/run/model.safetensors", "--set", f"data.path={moved}")

        self.assertEqual(lost.returncode, 74)
        self.assertIn(f"; data.path is {data}. Name another directory with --set data.path=DIR",
                      lost.stderr)
        self.assertEqual(alone["data"], str(moved))
        self.assertEqual(model.shapes, MLP)
        self.assertEqual(list(model.shapes), list(MLP))
        self.assertEqual(model.sha256, summary["weights_sha256"])
        self.assertEqual(summary["model"], f"{directory}/run/model.safetensors")
        print(f"accuracy {accuracy}, loss {loss}; the summary says {summary['test_accuracy']}, "
              f"{summary['test_loss']}")
        self.assertAlmostEqual(accuracy, summary["test_accuracy"], delta=1e-6)
        self.assertAlmostEqual(loss, summary["test_loss"], delta=1e-4)
        self.assertTrue(0.15 < accuracy < 0.999, "an accuracy that tells right from wrong")
        metadata = model.metadata
        self.assertEqual(metadata["run"], "small")
        self.assertEqual(metadata["seed"], "5")
        self.assertEqual(metadata["preset"], "mlp")
        self.assertEqual(metadata["data_format"], "idx")
        self.assertEqual(metadata["final"], "true")
        self.assertEqual(metadata["epoch"], "6")
        self.assertEqual(metadata["weights_sha256"], model.sha256)
        self.assertEqual(float(metadata["test_accuracy"]), summary["test_accuracy"])
        self.assertEqual([int(version) for version in metadata["versions"].split(",")],
                         summary["evaluations"][-1]["versions"])
        for again in (evaluated, alone):
            self.assertAlmostEqual(again["test_accuracy"], summary["test_accuracy"], delta=1e-6)
            self.assertAlmostEqual(again["test_loss"], summary["test_loss"], delta=1e-6)
            self.assertEqual(again["weights_sha256"], summary["weights_sha256"])
            self.assertEqual(again["examples"], 300)

    def test_a_run_from_saved_weights_begins_with_exactly_these(self):
        with cluster.scratch() as directory:
            before = cluster.run(CONFIG, run_dir=f"{directory}/before")
            # The rate is so small that no weight changes.
            after = cluster.run(CONFIG, {"model.init": before["model"], "seed": 6,
                                         "optimizer.learning_rate": 1e-30},
                                run_dir=f"{directory}/after")
            # The generated data depend on the seed, which must be the same for the test set to be
            # the same.
            same = cluster.run(CONFIG, {"model.init": before["model"],
                                        "optimizer.learning_rate": 1e-30},
                               run_dir=f"{directory}/same")
        self.assertEqual(after["weights_sha256"], before["weights_sha256"])
        self.assertEqual(same["weights_sha256"], before["weights_sha256"])
        self.assertAlmostEqual(same["test_accuracy"], before["test_accuracy"], delta=1e-6)

    def test_weights_of_another_net_are_refused_by_tensor_and_shapes(self):
        with cluster.scratch() as directory:
            before = cluster.run(CONFIG, {"data.train_examples": 640}, run_dir=f"{directory}/a")
            run = cluster.psctl("run", str(CONFIG), "--run-dir", f"{directory}/b",
                                *cluster.overrides({"model.init": before["model"],
                                                    "model.preset": "lenet5"}), check=False)
            other = cluster.psctl("evaluate", before["model"], "--set", "model.preset=lenet5",
                                  check=False)
            nothing = cluster.psctl("evaluate", f"{directory}/b", check=False)
        self.assertEqual(run.returncode, 78, run.stderr)
        for said in (run.stderr, other.stderr):
            self.assertIn('has no tensor "0.weight", which is [6, 1, 5, 5] in the model', said)
        self.assertEqual(other.returncode, 78, other.stderr)
        self.assertEqual(nothing.returncode, 74, nothing.stderr)
        self.assertIn("keeps no model.safetensors", nothing.stderr)

    def test_models_on_the_way_hold_the_weights_of_their_evaluations(self):
        with cluster.scratch() as directory:
            summary = cluster.run(CONFIG, {"model.save_every_epochs": 1, "training.epochs": 4,
                                           "evaluation.every_epochs": 0,
                                           "testing.push_delay_max": "5ms"},
                                  run_dir=f"{directory}/run")
            saved = {each["model"]: each for each in summary["evaluations"]}
            found = {str(path) for path in pathlib.Path(directory, "run").glob("*.safetensors")}
            self.assertEqual(found, set(saved))
            on_the_way = [each for each in summary["evaluations"] if not each["final"]]
            self.assertTrue(on_the_way)
            for path, each in saved.items():
                name = "model.safetensors" if each["final"] else (
                    f"model-epoch-{each['epoch']:04}.safetensors")
                self.assertEqual(pathlib.Path(path).name, name)
                evaluated = evaluate(path)
                self.assertAlmostEqual(evaluated["test_accuracy"], each["test_accuracy"],
                                       delta=1e-6)

    def test_services_started_by_hand_save_where_their_workers_are_told(self):
        with cluster.scratch() as directory:
            settings = {"model.save_dir": f"{directory}/models"}
            with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                status = live.wait_finished()
            final = status["evaluations"][-1]
            self.assertEqual(final["model_file"], f"{directory}/models/model.safetensors")
            self.assertEqual(final["model_host"], os.uname().nodename)
            model = safetensors_reader.Model(final["model_file"])
        self.assertEqual(model.sha256, status["weights_sha256"])

    def test_services_whose_workers_are_told_nowhere_warn_that_nothing_is_kept(self):
        with cluster.scratch() as directory:
            with cluster.Cluster(CONFIG, {}, directory, workers=4) as live:
                status = live.wait_finished()
                logs = [live.log_text(f"worker-{worker}") for worker in range(4)]
        self.assertEqual(status["evaluations"][-1].get("model_file", ""), "")
        warnings = [line for log in logs for line in log.splitlines() if "not kept" in line]
        self.assertTrue(warnings, "\n".join(logs))
        for word in ("warning", "model.save_dir", "--save-dir"):
            self.assertIn(word, warnings[0])

    def test_a_full_disk_leaves_no_half_model_and_says_so(self):
        def limit_files():
            # The limit suffices for logs and the summary, but not for the 940 KB of an mlp.
            resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

        with cluster.scratch() as directory:
            run = pathlib.Path(directory) / "run"
            done = subprocess.run(
                [cluster.program("deploy/psctl/psctl"), "run", str(CONFIG), "-o", "json",
                 "--run-dir", str(run)], preexec_fn=limit_files, text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=cluster.DEADLINE_S)
            left = sorted(path.name for path in run.iterdir())
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("the trained weights were not saved: cannot write ", done.stderr)
        self.assertIn("model.safetensors: File too large", done.stderr)
        self.assertIsNone(json.loads(done.stdout)["model"])
        self.assertGreater(json.loads(done.stdout)["test_accuracy"], 0.3)
        self.assertEqual(left, ["logs", "metrics.jsonl", "run.yaml", "summary.json"])


if __name__ == "__main__":
    unittest.main()
