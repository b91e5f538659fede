"""Workers that take local steps, and evaluations by a program's own function, with the Python
package."""
import array
import contextlib
import hashlib
import pathlib
import re
import threading
import unittest

import cluster
import python_package

python_package.use_package()

import slipstream
from slipstream._evaluation import measures_of

try:
    import torch
    from torch.nn import functional
except ImportError:
    torch = None

CONFIG = """
name: algorithms
model: {from: workers}
training: {work: own, batch_size: 8}
consistency: {policy: async}
cluster: {servers: [localhost:7070, localhost:7071], workers: 1}
"""
VALUES = 1000  # Of one tensor, which both servers have a part of.
RATE = 0.1     # Of the workers' own steps.
STEPS = 12

# A small classifier, of which a random guess has a fifth right.
EPOCHS = 15
LEARNS = 0.9
CLASSIFIER = """
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

def accuracy_of(net, inputs, labels):
    with torch.no_grad():
        return (net(inputs).argmax(1) == labels).double().mean().item()
"""
# Trains it, and lets a second module measure the weights.
MEASURED_PROGRAM = CLASSIFIER + """
torch.set_num_threads(1)
inputs, labels = examples()
net, measured = model(), model()

def measure(weights):
    measured.load_state_dict(weights)
    accuracy = accuracy_of(measured, inputs, labels)
    print(f"measured {accuracy}", flush=True)
    with torch.no_grad():
        loss = functional.cross_entropy(measured(inputs), labels)
    return {"loss": loss, "accuracy": accuracy, "examples": len(labels)}

with slipstream.connect() as run:
    run.evaluate_by(measure)
    run.synchronize(net, examples=len(labels))
    optimizer = slipstream.Optimizer(run, net)
    for positions in run.batches():
        optimizer.zero_grad()
        functional.cross_entropy(net(inputs[positions]), labels[positions]).backward()
        optimizer.step()
print(f"trained {accuracy_of(net, inputs, labels)}")
"""
MEASURED_CONFIG = """
name: measured
model: {from: workers}
training: {batch_size: 16, epochs: 10}
consistency: {policy: hardsync}
optimizer: {kind: sgd, learning_rate: 0.3}
evaluation: {by: workers}
cluster: {servers: [localhost:7070, localhost:7071], workers: 2, lease: 3s}
"""
EASGD = {"worker.algorithm": "easgd", "worker.elasticity": 0.5}
DOWNPOUR = {"worker.algorithm": "downpour", "worker.outer.kind": "sgd",
            "worker.outer.learning_rate": 0.05}


def arrays():
    return {"weights": array.array("f", bytes(4 * VALUES))}


def ones():
    return {"weights": array.array("f", [1]) * VALUES}


def both(*calls):
    """Makes the calls at once, each on a thread. Returns what they return."""
    results = [None] * len(calls)

    def make(number, call):
        results[number] = call()

    threads = [threading.Thread(target=make, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(cluster.DEADLINE_S)
    return results


def targets(count=STEPS):
    random = torch.Generator().manual_seed(5)
    return [torch.randn(VALUES, generator=random) for _ in range(count)]


def gradient_at(point, target):
    """The gradient of half the squared distance between them."""
    return point - target


def easgd_centers(rate, push_every, elasticity):
    """Returns the center after each step of one worker, and the worker's own weights."""
    own, center = torch.zeros(VALUES), torch.zeros(VALUES)
    centers, owns = [], []
    for step, target in enumerate(targets(), start=1):
        gradient = gradient_at(own, target)
        if step % push_every == 0:
            force = elasticity * (own - center)
            own, center = own - force, center + force
        own = own - rate * gradient
        centers.append(center)
        owns.append(own)
    return centers, owns


def downpour_weights(rate, outer_rate, push_every, fetch_every):
    """Returns the servers' weights after each step of one worker, and the worker's own."""
    own, servers = torch.zeros(VALUES), torch.zeros(VALUES)
    accrued = torch.zeros(VALUES)
    all_servers, owns = [], []
    for step, target in enumerate(targets(), start=1):
        gradient = gradient_at(own, target)
        accrued = accrued + gradient
        own = own - rate * gradient
        if step % push_every == 0:
            servers = servers - outer_rate * accrued
            accrued = torch.zeros(VALUES)
        if step % max(push_every, fetch_every) == 0:
            own = servers.clone()
        all_servers.append(servers)
        owns.append(own)
    return all_servers, owns


class LiveRuns(unittest.TestCase):
    """What both tests need: servers, and runs that are left when a test ends."""

    def servers(self, settings=None, config=CONFIG):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        live = cluster.Cluster(cluster.write_config(scratch.name, config), settings or {},
                               scratch.name, workers=0)
        self.addCleanup(live.stop)
        return live

    def connect(self, live, **arguments):
        run = slipstream.connect(live.coordinator, **arguments)
        self.addCleanup(run.leave, "the test is over")
        return run

    def ready(self, live, **arguments):
        run = self.connect(live, **arguments)
        run.synchronize(arrays())
        return run


class PythonAlgorithmsTest(LiveRuns):
    def assert_close(self, ours, expected, what):
        self.assertTrue(torch.allclose(torch.as_tensor(ours), expected, rtol=1e-5, atol=1e-6), what)

    def steps_of(self, kind, settings):
        """Draws one point to one target after another. Returns the servers' weights after each
        step, and the worker's own."""
        live = self.servers({"training.max_steps": STEPS, **settings})
        net = torch.nn.Module()
        net.point = torch.nn.Parameter(torch.zeros(VALUES))
        run = self.connect(live)
        run.synchronize(net)
        inner = torch.optim.SGD(net.parameters(), lr=RATE)
        servers, owns = [], []
        with kind(run, net, inner):
            for target in run.steps(targets(STEPS + 1)):
                inner.zero_grad()
                (0.5 * (net.point - target).square().sum()).backward()
                inner.step()
                owns.append(net.point.detach().clone())
                servers.append(torch.as_tensor(run.pull().tensors["point"]).clone())
        self.assertTrue(run.finished)
        self.assertEqual(len(owns), STEPS)
        return servers, owns

    def compare(self, kind, settings, expected):
        servers, owns = self.steps_of(kind, settings)
        for step in range(STEPS):
            self.assert_close(servers[step], expected[0][step], f"the servers, step {step}")
            # The run ends with the last step, and the module has the servers' weights.
            own = expected[1][step] if step + 1 < STEPS else expected[0][step]
            self.assert_close(owns[step], own, f"the worker, step {step}")

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_elastic_averaging_draws_worker_and_center_as_published(self):
        for push_every in (1, 3):
            with self.subTest(push_every=push_every):
                self.compare(slipstream.EASGD, {**EASGD, "worker.push_every": push_every},
                             easgd_centers(RATE, push_every, 0.5))

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_downpour_pushes_sums_of_gradients_and_fetches_as_seldom_as_it_is_told(self):
        for fetch_every in (0, 6):
            with self.subTest(fetch_every=fetch_every):
                self.compare(slipstream.Downpour, {**DOWNPOUR, "worker.push_every": 3,
                                                   "worker.fetch_every": fetch_every},
                             downpour_weights(RATE, 0.05, 3, fetch_every))

    def classify(self, live, kind, **rule):
        """Trains the classifier with one of two workers. Returns the weights and the accuracy."""
        scope = {}
        exec(CLASSIFIER, scope)  # pylint: disable=exec-used
        net, (inputs, labels) = scope["model"](), scope["examples"]()
        with slipstream.connect(live.coordinator) as run:
            run.synchronize(net, examples=len(labels))
            if kind is slipstream.Optimizer:
                optimizer = kind(run, net)
                steps = contextlib.nullcontext()
            else:
                optimizer = torch.optim.SGD(net.parameters(), **rule)
                steps = kind(run, net, optimizer)
            with steps:
                for positions in run.batches():
                    optimizer.zero_grad()
                    functional.cross_entropy(net(inputs[positions]), labels[positions]).backward()
                    optimizer.step()
            weights = torch.cat([part.detach().flatten().clone() for part in net.parameters()])
        return weights, scope["accuracy_of"](net, inputs, labels)

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_downpour_with_one_mini_batch_for_each_push_is_the_gradient_algorithm(self):
        torch.set_num_threads(1)
        handed_out = {"training.work": "handed_out", "training.epochs": 2, "training.batch_size": 16}
        plain = self.servers({**handed_out, "optimizer.learning_rate": 0.05})
        downpour = self.servers({**handed_out, **DOWNPOUR, "worker.push_every": 1})
        expected, _ = self.classify(plain, slipstream.Optimizer)
        weights, _ = self.classify(downpour, slipstream.Downpour, lr=0.3)
        self.assert_close(weights, expected, "the weights")

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_two_workers_learn(self):
        torch.set_num_threads(1)
        algorithms = {
            "downpour": (slipstream.Downpour, {**DOWNPOUR, "worker.push_every": 2}, {"lr": 0.05}),
            "downpour, seldom fetches": (
                slipstream.Downpour,
                {**DOWNPOUR, "worker.push_every": 2, "worker.fetch_every": 4}, {"lr": 0.05}),
            "easgd": (slipstream.EASGD, {"worker.algorithm": "easgd"}, {"lr": 0.3}),
            "eamsgd": (slipstream.EASGD, {"worker.algorithm": "eamsgd"},
                       {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
            "diloco, fragments": (slipstream.DiLoCo,
                                  {"worker.algorithm": "diloco", "worker.steps": 4, "worker.fragments": 2,
                                   "worker.fragment_delay": 1, "worker.mixing": 0.5,
                                   "consistency.policy": "hardsync"}, {"lr": 0.3}),
        }
        for name, (kind, settings, rule) in algorithms.items():
            with self.subTest(algorithm=name):
                live = self.servers({"training.work": "handed_out", "training.epochs": EPOCHS,
                                     "training.batch_size": 16, "cluster.workers": 2, **settings})
                results = both(*[lambda kind=kind, rule=rule, live=live:
                                 self.classify(live, kind, **rule)] * 2)
                self.assertTrue(torch.equal(results[0][0], results[1][0]))
                print(f"{name}: accuracy {results[0][1]:.3f}")
                self.assertGreater(results[0][1], LEARNS)
                self.assertEqual(live.wait_finished()["ended_by"], "epochs")

    def test_arrays_are_averaged_elastically_by_hand(self):
        run = self.ready(self.servers({**EASGD, "worker.push_every": 1}))
        rate, own, center = run.settings.moving_rate, 0.0, 0.0
        self.assertEqual(rate, 0.5)
        for _ in range(3):
            self.assertTrue(run.fetch())
            self.assertEqual(set(run.values["weights"].tolist()), {0})  # All had an effect.
            with self.assertRaisesRegex(slipstream.NotReady, "call fetch_center before each push"):
                run.push()
            self.assertTrue(run.fetch_center())
            self.assertEqual(set(run.weights["weights"].tolist()), {center})
            force = rate * (center - own)
            own, center = own + force + 1, center - force
            run.values["weights"][:] = array.array("f", [force] * VALUES)
            self.assertEqual(run.push().result().outcome, "APPLIED")

    def test_a_refused_push_is_left_in_the_values(self):
        live = self.servers({**EASGD, "cluster.workers": 2, "worker.push_every": 1,
                             "consistency.max_staleness.action": "reject",
                             "consistency.max_staleness.bound": 0})
        first, second = both(lambda: self.ready(live, worker=0), lambda: self.ready(live, worker=1))
        for run in (first, second):
            run.fetch()
            run.fetch_center()
            run.values["weights"][:] = array.array("f", [-0.5] * VALUES)
        self.assertEqual(second.push().result().outcome, "APPLIED")
        self.assertEqual(first.push().result().outcome, "TOO_STALE")
        self.assertTrue(first.fetch() and second.fetch())
        self.assertEqual(set(first.values["weights"].tolist()), {-0.5})
        self.assertEqual(set(second.values["weights"].tolist()), {0})

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_weights_that_are_kept_begin_anew_after_values_that_are_not_finite(self):
        net = torch.nn.Linear(20, 50)
        run = self.connect(self.servers({**EASGD, "worker.push_every": 1}))
        run.synchronize(net)
        first = {name: part.detach().clone() for name, part in net.named_parameters()}
        inner = torch.optim.Adagrad(net.parameters(), lr=0.1)  # Has its state from the beginning.
        with slipstream.EASGD(run, net, inner) as exchange:
            net.bias.data.fill_(float("nan"))
            net(torch.ones(8, 20)).sum().backward()
            inner.step()
            self.assertEqual(exchange.last.outcome, "NONFINITE")
            for name, part in net.named_parameters():
                self.assertTrue(torch.equal(part, first[name]))
            inner.zero_grad()
            net(torch.ones(8, 20)).sum().backward()
            inner.step()
            self.assertEqual(exchange.last.outcome, "APPLIED")
            for state in inner.state.values():
                self.assertTrue(bool(state["sum"].isfinite().all()))

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_values_that_are_not_finite_are_not_clipped(self):
        from slipstream._local_steps import _clip_values
        part = torch.nn.Parameter(torch.zeros(4))
        part.grad = torch.tensor([float("inf"), 5, float("nan"), -5])
        _clip_values([part], 1)
        self.assertEqual(str(part.grad.tolist()), "[inf, 1.0, nan, -1.0]")

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_the_class_has_to_be_that_of_the_algorithm(self):
        net = torch.nn.Linear(20, 50)
        inner = torch.optim.SGD(net.parameters(), lr=0.1)
        run = self.connect(self.servers({"worker.algorithm": "downpour"}))
        run.synchronize(net)
        for make in (lambda: slipstream.Optimizer(run, net),
                     lambda: slipstream.LocalSteps(run, net, inner),
                     lambda: slipstream.EASGD(run, net, inner)):
            with self.assertRaisesRegex(slipstream.Refused, "which is for slipstream.Downpour"):
                make()
        with self.assertRaisesRegex(slipstream.Refused, "there is no center"):
            run.fetch_center()
        fragments = self.ready(self.servers({"worker.algorithm": "diloco", "worker.fragments": 2,
                                             "consistency.policy": "hardsync"}))
        fragments.fetch()
        with self.assertRaisesRegex(slipstream.Refused, "set worker.fragments to 0"):
            fragments.push(ones()).result()


class PythonEvaluationTest(LiveRuns):
    def measured(self, settings=None):
        """Starts the servers of a run whose workers measure the weights. An epoch has 8 steps."""
        return self.servers({"evaluation.by": "workers", "data.examples": 64, "cluster.lease": cluster.LEASE,
                             "optimizer.learning_rate": 0.5, **(settings or {})})

    def push_until_ordered(self, run):
        """Takes steps until this worker has to measure the weights, with its next fetch."""
        for _ in range(8):  # An epoch.
            self.assertTrue(run.fetch())
            run.push(ones()).result()
        cluster.wait_until(run._worker.is_ordered, "the order of an evaluation")

    def test_a_function_measures_after_each_epoch_and_at_the_end(self):
        live = self.measured({"training.epochs": 3})
        run = self.connect(live)
        measured = []

        def measure(weights):
            measured.append(weights["weights"].tolist())
            return {"loss": 4 - len(measured), "accuracy": len(measured) / 4, "examples": 10}

        run.evaluate_by(measure)
        run.synchronize(arrays())
        for epoch in (1, 2, 3):
            for _ in range(8):
                self.assertTrue(run.fetch())
                run.push(ones()).result()
            if epoch < 3:
                cluster.wait_until(run._worker.is_ordered, "the order of an evaluation")
        self.assertFalse(run.fetch())
        run.finish()
        self.assertEqual(measured, [[value] * VALUES for value in (-4, -8, -12)])
        status = live.wait_finished()
        self.assertEqual(
            [(line["epoch"], line["test_loss"], line["test_accuracy"], line["examples"],
              line.get("final", False)) for line in status["evaluations"]],
            [(1, 3, 0.25, 10, False), (2, 2, 0.5, 10, False), (3, 1, 0.75, 10, True)])
        self.assertEqual(status["weights_sha256"],
                         hashlib.sha256(array.array("f", measured[-1]).tobytes()).hexdigest())

    def test_training_goes_on_from_weights_that_were_fetched_after_an_evaluation(self):
        live = self.measured({"training.epochs": 100_000, "cluster.workers": 2})
        first, second = [self.connect(live, worker=number) for number in (0, 1)]

        def measure(_):
            second.fetch()
            second.push(ones()).result()
            return 1.0

        first.evaluate_by(measure)
        second.evaluate_by(measure)
        both(lambda: first.synchronize(arrays()), lambda: second.synchronize(arrays()))
        self.push_until_ordered(first)
        before = first.last.version
        self.assertTrue(first.fetch())
        result = first.push(ones()).result()
        self.assertEqual((result.version, result.staleness), (before + 2, 0))

    def test_a_function_that_fails_ends_the_worker_with_its_words(self):
        live = self.measured({"training.epochs": 100_000})
        run = self.connect(live)

        def measure(_):
            raise ValueError("the test set is not here")

        run.evaluate_by(measure)
        run.synchronize(arrays())
        self.push_until_ordered(run)
        with self.assertRaisesRegex(ValueError, "the test set is not here"):
            run.fetch()
        live.wait_for(lambda status: "evaluation: ValueError: the test set is not here" in
                      status["workers"][0].get("failure", ""), "the failure to be known")
        with self.assertRaises(slipstream.Left):
            run.fetch()

    def test_a_worker_without_a_function_is_told_what_to_do(self):
        run = self.ready(self.measured())
        self.assertTrue(run.settings.measured)
        with self.assertRaisesRegex(slipstream.Refused, r"call run.evaluate_by\(function\)"):
            run.fetch()

    def test_what_a_function_returns_is_checked(self):
        for result, what in (({"losses": 1}, "'losses'"), ({"accuracy": 1}, "no loss"),
                             (None, "no loss"), ({"loss": 1, "accuracy": 95}, "the accuracy 95"),
                             ({"loss": 1, "accuracy": float("nan")}, "the accuracy nan"),
                             ({"loss": 1, "examples": -1}, "-1 examples")):
            with self.assertRaisesRegex(slipstream.Refused, f"returned {what}"):
                measures_of(result)
        self.assertEqual(measures_of(-2), (-2.0, None, 0))
        self.assertEqual(measures_of({"loss": 2, "accuracy": None, "examples": None}), (2.0, None, 0))

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_the_summary_has_what_was_measured_and_the_weights_are_saved(self):
        with cluster.scratch() as directory:
            folder = pathlib.Path(directory)
            config = cluster.write_config(folder, MEASURED_CONFIG)
            (folder / "measured.py").write_text(MEASURED_PROGRAM)
            summary, logs = python_package.run(config, folder / "measured.py", folder / "run")
            self.assertTrue((folder / "run" / "model.safetensors").is_file())
        final = summary["evaluations"][-1]
        self.assertTrue(final["final"])
        self.assertEqual(final["examples"], 640)
        self.assertGreater(summary["test_accuracy"], LEARNS)
        for log in logs:
            trained = float(re.search(r"trained ([0-9.e-]+)", log)[1])
            self.assertAlmostEqual(summary["test_accuracy"], trained)
        self.assertIn(f"measured {trained}", "".join(logs))


if __name__ == "__main__":
    unittest.main()
