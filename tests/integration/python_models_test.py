"""PyTorch modules, and models of nothing but Python, are trained by the package."""
import inspect
import json
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import unittest
import zipfile

import cluster
import python_package

python_package.use_package(python_package.EXAMPLES)

EXAMPLES = python_package.EXAMPLES

try:
    import torch
except ImportError:
    torch = None

# The difference in accuracy between two equally good runs on 2,000 examples, of which nine in ten are
# right, is below this in all but one of a hundred: more than two standard deviations, and staleness.
ACCURACY_APART_MAX = 0.05

STEPS = 50
EQUAL_CONFIG = f"""
name: equal
model: {{from: workers}}
training: {{batch_size: 16, epochs: 100, max_steps: {2 * STEPS}}}
consistency: {{policy: hardsync}}
optimizer: {{kind: sgd, learning_rate: 0.1}}
cluster: {{servers: [localhost:7070, localhost:7071], workers: 2}}
"""
EQUAL_PROGRAM = """
import json
import torch
from torch.nn import functional
import slipstream

def model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.Tanh(), torch.nn.Linear(32, 5))

def examples():
    random = torch.Generator().manual_seed(3)
    inputs = torch.randn(640, 20, generator=random)
    return inputs, (inputs @ torch.randn(20, 5, generator=random)).argmax(1)

def loss_of(net, inputs, labels, positions):
    return functional.cross_entropy(net(inputs[positions]), labels[positions])

if __name__ == "__main__":
    torch.set_num_threads(1)
    inputs, labels = examples()
    net = model()
    done = []
    with slipstream.connect() as run:
        run.synchronize(net, examples=len(labels))
        optimizer = slipstream.Optimizer(run, net)
        for positions in run.batches():
            optimizer.zero_grad()
            loss_of(net, inputs, labels, positions).backward()
            optimizer.step()
            done.append(list(positions))
        weights = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
        print(json.dumps({"done": done, "weights": weights.tolist()}))
"""


# What the examples of docstrings take for granted.
PREAMBLE = """
import os, torch, slipstream
torch.manual_seed(1)
x, y = torch.randn(640, 20), torch.randint(5, (640,))
dataset, model, criterion = x, torch.nn.Linear(20, 5), torch.nn.CrossEntropyLoss()
"""
JOINED = """
run = slipstream.connect().__enter__()
run.synchronize(model, examples=len(x))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def example_of(documented):
    """Returns the example in a docstring: its first block of indented lines."""
    text = re.search(r"\n\n((?: {4}.*\n|\n)+)", inspect.cleandoc(documented.__doc__) + "\n")
    return textwrap.dedent(text[1]).replace('"node0:7070"', "")


def last_line(log):
    return log.rstrip().splitlines()[-1]


def accuracy_of(log):
    return float(re.search(r"accuracy ([0-9.]+)", log)[1])


def plain_accuracy():
    """Trains the model of the example in a plain loop, with the rule of its run.yaml."""
    import images
    torch.manual_seed(1)
    pictures, hints, labels = images.examples(4000, seed=1)
    model = images.Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.003, momentum=0.9)
    for _ in range(4):
        for positions in torch.randperm(len(labels)).split(32):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(pictures[positions], hints[positions]),
                                              labels[positions]).backward()
            optimizer.step()
    pictures, hints, labels = images.examples(2000, seed=2)
    return (model.eval()(pictures, hints).argmax(1) == labels).float().mean().item()


class PythonModelsTest(unittest.TestCase):
    def run_example(self, name, program, settings=None):
        with cluster.scratch() as directory:
            return python_package.run(EXAMPLES / f"{name}.yaml", program,
                                      pathlib.Path(directory) / "run",
                                      {**(settings or {}), "cluster.start_timeout": "60s"})

    def test_nothing_but_python_is_needed(self):
        for hidden in ("", "raise ImportError"):
            with self.subTest(numpy=not hidden), cluster.scratch() as directory:
                folder = pathlib.Path(directory)
                (folder / "line.py").write_text(
                    f"import sys\nif {hidden!r}: sys.modules['numpy'] = None\n" +
                    (EXAMPLES / "line.py").read_text())
                summary, logs = self.run_example("line", folder / "line.py")
                self.assertEqual(summary["phase"], "FINISHED")
                for log in logs:
                    self.assertEqual(last_line(log), "slope 3.000, offset -1.000", log)

    @unittest.skipUnless(shutil.which("patchelf"), "needs patchelf")
    def test_a_wheel_brings_all_that_it_needs(self):
        with cluster.scratch() as directory:
            folder = pathlib.Path(directory)
            package = python_package.PACKAGE / "slipstream"
            subprocess.run([sys.executable, "deploy/make_wheel.py", "--package", package,
                            "--extension", package / "_core.so", folder],
                           check=True, timeout=cluster.DEADLINE_S)
            wheel, = folder.glob("*.whl")
            self.assertLess(wheel.stat().st_size, 20 << 20)
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder / "installed")
            shown = subprocess.run(["nm", "-D", "--defined-only",
                                    folder / "installed/slipstream/_core.so"],
                                   check=True, capture_output=True, text=True).stdout.split()
            self.assertEqual(shown[1:], ["T", "PyInit__core"])
            loaded = subprocess.run(
                [sys.executable, "-c", "import slipstream; print(open('/proc/self/maps').read())"],
                env={"PYTHONPATH": str(folder / "installed")}, check=True, capture_output=True,
                text=True).stdout
            self.assertRegex(loaded, r"slipstream.libs/libgrpc-")
            self.assertNotRegex(loaded, r"/lib/.*/lib(grpc|protobuf|absl|yaml)")

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_a_module_learns_as_well_as_in_a_plain_loop(self):
        plain = plain_accuracy()
        print(f"plain loop: {plain:.4f}")
        self.assertGreater(plain, 0.85)
        policies = {"hardsync": {"consistency.policy": "hardsync", "training.batch_size": 16},
                    "softsync": {"consistency.policy": "softsync", "training.batch_size": 16},
                    "async": {"consistency.policy": "async",
                              "optimizer.staleness_scaling": "per_gradient"}}
        for name, settings in policies.items():
            with self.subTest(policy=name):
                summary, logs = self.run_example("images", EXAMPLES / "images.py", settings)
                accuracies = [accuracy_of(log) for log in logs]
                print(f"{name}: {accuracies}, staleness {summary['staleness']['mean']}")
                self.assertGreater(min(accuracies), plain - ACCURACY_APART_MAX)
                self.assertEqual(summary["ended_by"], "epochs")
        with self.subTest(algorithm="diloco"):
            _, logs = self.run_example("diloco", EXAMPLES / "diloco.py")
            accuracies = [accuracy_of(log) for log in logs]
            print(f"diloco: {accuracies}")
            self.assertGreater(min(accuracies), plain - ACCURACY_APART_MAX)

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_the_examples_of_docstrings_run(self):
        import slipstream
        examples = [("images", PREAMBLE + example_of(slipstream)),
                    ("images", PREAMBLE + JOINED + example_of(slipstream.Optimizer)),
                    ("diloco", PREAMBLE + JOINED + example_of(slipstream.LocalSteps))]
        for name, program in examples:
            with self.subTest(example=program), cluster.scratch() as directory:
                path = pathlib.Path(directory) / "example.py"
                path.write_text(program + "\nprint('over', run.finished)\n")
                summary, logs = self.run_example(name, path, {"training.epochs": 2})
                self.assertEqual(summary["ended_by"], "epochs")
                self.assertEqual({last_line(log) for log in logs}, {"over True"})

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_two_workers_in_step_are_one_with_the_double_batch(self):
        with cluster.scratch() as directory:
            folder = pathlib.Path(directory)
            config = cluster.write_config(folder, EQUAL_CONFIG)
            (folder / "equal.py").write_text(EQUAL_PROGRAM)
            _, logs = python_package.run(config, folder / "equal.py", folder / "run")
            scope = {"__name__": "equal"}
            exec(EQUAL_PROGRAM, scope)  # pylint: disable=exec-used
        first, second = [json.loads(last_line(log)) for log in logs]
        self.assertEqual(first["weights"], second["weights"])
        self.assertEqual(len(first["done"]), STEPS)
        net, (inputs, labels) = scope["model"](), scope["examples"]()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for ours, theirs in zip(first["done"], second["done"]):
            optimizer.zero_grad()
            scope["loss_of"](net, inputs, labels, ours + theirs).backward()
            optimizer.step()
        plain = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
        apart = (torch.tensor(first["weights"]) - plain).norm() / plain.norm()
        print(f"relative difference after {STEPS} steps: {apart:.2e}")
        self.assertLess(apart, 1e-5)


if __name__ == "__main__":
    unittest.main()
