"""PyTorch programs of every kind train in a run what they train without one."""
import copy
import io
import itertools
import json
import math
import os
import pathlib
import struct
import types
import unittest

import cluster
from safetensors_reader import Model
from torch_runs import (APART_MAX, RATE, TorchRuns, apart, examples, functional, loader, loss_of, net,
                        slipstream, step, torch, train)

try:
    import numpy
except ImportError:
    numpy = None

FORMATS = {"F32": "float32", "F64": "float64", "I64": "int64", "BOOL": "bool"}


# A model that ps_worker trains, too.
INPUTS = 7
LINEAR_CONFIG = f"""
name: linear
model: {{input: [{INPUTS}, 1, 1], layers: [dense: {{units: 2}}], loss: mse}}
data: {{format: npy, path: .}}
consistency: {{policy: hardsync}}
optimizer: {{kind: sgd, learning_rate: {RATE}}}
cluster: {{servers: [localhost:7070, localhost:7071], workers: 1}}
"""


def linear_problem(count=60):
    """Examples of which gradients have the same bits in whatever order they are added up: each has one
    input that is not 0, and that is a power of two."""
    random = torch.Generator().manual_seed(11)
    inputs = torch.zeros(count, INPUTS)
    powers = 2.0 ** torch.randint(-1, 2, (count,), generator=random)
    inputs[torch.arange(count), torch.randint(0, INPUTS, (count,), generator=random)] = powers
    return inputs, torch.randn(count, 2, generator=random)


def ahead(batches):
    """Yields each batch once the next one is there, as frameworks do to know which is the last."""
    batches = iter(batches)
    held = next(batches)
    for batch in batches:
        yield held
        held = batch
    yield held


def train_backwards(model, optimizer, batches):
    """The order of torch's own tutorials, in which forward comes before zero_grad."""
    for batch in batches:
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def train_accumulated(model, optimizer, batches):
    optimizer.zero_grad()
    for number, batch in enumerate(batches):
        (loss_of(model, batch) / 2).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()


def train_clipped(model, optimizer, batches):
    for batch in batches:
        optimizer.zero_grad(set_to_none=False)
        loss_of(model, batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()


def train_by_closure(model, optimizer, batches):
    for batch in batches:
        def computed(batch=batch):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
        optimizer.step(computed)


def train_with_model_zero_grad(model, optimizer, batches):
    for batch in batches:
        model.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()


def train_adversary(model, optimizer, batches):
    """As a GAN's generator does, leaves gradients in the model after its step."""
    for batch in batches:
        step(model, optimizer, batch)
        (5 * loss_of(model, batch)).backward()


def train_and_evaluate(model, optimizer, batches):
    for batch in batches:
        step(model, optimizer, batch)
        with torch.no_grad():
            model(batch[0])


def train_thawed(model, optimizer, batches):
    """Freezes the first layer, thaws it, and freezes it again."""
    for number, batch in enumerate(batches):
        model[0].requires_grad_(number % 5 > 2)
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, batch).backward()
        optimizer.step()


def train_in_turn(model, optimizer, batches):
    """Has gradients for the first layer, for the last one, and for none."""
    for number, (inputs, labels) in enumerate(batches):
        optimizer.zero_grad(set_to_none=True)
        if number % 3 == 0:
            model[0](inputs).square().mean().backward()
        elif number % 3 == 1:
            functional.cross_entropy(model[2](torch.ones(len(inputs), 300)), labels).backward()
        optimizer.step()


def read_saved(path):
    """Returns the tensors of a safetensors file."""
    raw = pathlib.Path(path).read_bytes()
    length, = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, entry in json.loads(raw[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        kind = getattr(torch, FORMATS[entry["dtype"]])
        flat = torch.frombuffer(bytearray(raw[begin:end]), dtype=kind) if end > begin else torch.zeros(0)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


class PythonTorchTest(TorchRuns):
    def expect_as_torch(self, make, loop, settings=None, **options):
        """Expects that a loop over the batches trains a model in a run as torch.optim.SGD does."""
        model, plain = make(), make()
        run, optimizer = self.joined(model, settings, **options)
        batches = loader()
        loop(model, optimizer, batches if loop is not train else run.steps(batches))
        loop(plain, torch.optim.SGD(plain.parameters(), lr=RATE), batches)
        model.state_dict()  # Has the last weights there.
        difference = apart(model, plain)
        print(f"{loop.__name__} {options}: differs from torch.optim by {difference:.1e}")
        self.assertLess(difference, APART_MAX)
        self.assertGreater(apart(model, make()), 0.001, "it has learned")
        return run, optimizer, model

    def test_loops_of_all_kinds_train_as_with_torch(self):
        for loop in (train, train_backwards, train_accumulated, train_clipped, train_by_closure,
                     train_with_model_zero_grad, train_adversary, train_and_evaluate):
            with self.subTest(loop=loop.__name__):
                self.expect_as_torch(net, loop)
        for loop in (train, train_backwards, train_with_model_zero_grad, train_and_evaluate):
            with self.subTest(loop=loop.__name__, overlap=True):
                self.expect_as_torch(net, loop, overlap=True)

    def test_a_parameter_without_a_gradient_is_left_alone_as_with_torch(self):
        rules = {"momentum": {"optimizer.kind": "momentum", "optimizer.momentum": 0.5},
                 "adagrad": {"optimizer.kind": "adagrad"}}
        for kind, settings in rules.items():
            for loop in (train_thawed, train_in_turn):
                for overlap in (False, True):
                    with self.subTest(kind=kind, loop=loop.__name__, overlap=overlap):
                        model, plain = net(), net()
                        _, optimizer = self.joined(
                            model, {**settings, "optimizer.learning_rate": 0.0625,
                                    "optimizer.weight_decay": 0.25}, overlap=overlap)
                        loop(model, optimizer, loader())
                        of_torch = (torch.optim.SGD(plain.parameters(), 0.0625, 0.5, weight_decay=0.25)
                                    if kind == "momentum" else
                                    torch.optim.Adagrad(plain.parameters(), 0.0625, eps=1e-8,
                                                        weight_decay=0.25))
                        loop(plain, of_torch, loader())
                        model.state_dict()
                        self.assertLess(apart(model, plain), APART_MAX)

    def test_local_steps_without_a_gradient_leave_the_outer_momentum_alone(self):
        algorithms = {"LocalSteps": {"worker.algorithm": "diloco", "worker.steps": 2},
                      "Downpour": {"worker.algorithm": "downpour", "worker.push_every": 2,
                                   "worker.outer.kind": "momentum"}}
        for name, settings in algorithms.items():
            with self.subTest(algorithm=name):
                model = net()
                run = slipstream.connect(
                    self.servers({"consistency.policy": "async", **settings}).coordinator)
                self.addCleanup(run.leave, "the test is over")
                run.synchronize(model)
                inner = torch.optim.SGD(model.parameters(), lr=0.1)
                with getattr(slipstream, name)(run, model, inner):
                    for number, batch in enumerate(loader()):
                        if number == 4:
                            model[0].requires_grad_(False)
                            before = copy.deepcopy(model)
                        if number == 8:
                            self.assertTrue(torch.equal(model[0].weight, before[0].weight))
                            self.assertFalse(torch.equal(model[2].weight, before[2].weight))
                            model[0].weight.data.add_(1)  # As the step of another optimizer does.
                        inner.zero_grad(set_to_none=True)
                        loss_of(model, batch).backward()
                        inner.step()
                if name == "LocalSteps":
                    self.assertGreater((model[0].weight - before[0].weight).min().item(), 0.1)

    def train_locally(self, kind, settings, folder, moves):
        """Trains the linear model by local steps, in parameters that were moved elsewhere if `moves` is
        set, and writes the first and the last weights to files."""
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(INPUTS, 2))
        inputs, targets = linear_problem()
        with slipstream.connect(self.servers({"training.work": "handed_out", **settings}).coordinator) as run:
            run.synchronize(model, examples=len(inputs))
            run.save(folder / "first.safetensors")
            inner = torch.optim.SGD(model.parameters(), lr=RATE)
            with kind(run, model, inner):
                for parameter in model.parameters() if moves else ():
                    parameter.data = parameter.data.clone()
                for positions in run.batches():
                    inner.zero_grad()
                    functional.mse_loss(model(inputs[positions]), targets[positions]).backward()
                    inner.step()
            run.save(folder / "last.safetensors")
        last = Model(folder / "last.safetensors")
        for name, values in model.state_dict().items():
            self.assertEqual(values.flatten().tolist(), last.values[name].tolist())
        return last.sha256

    def test_local_steps_end_in_the_bits_of_the_worker_in_cpp(self):
        downpour = {"worker.algorithm": "downpour", "worker.push_every": 3, "worker.outer.kind": "sgd",
                    "worker.outer.learning_rate": 0.05}
        diloco = {"worker.algorithm": "diloco", "worker.steps": 6}
        cases = (
            (slipstream.EASGD, {"worker.algorithm": "easgd", "worker.push_every": 3,
                                "worker.elasticity": 0.3}),
            (slipstream.Downpour, downpour),
            (slipstream.Downpour, {**downpour, "worker.fetch_every": 6, "consistency.policy": "async"}),
            (slipstream.DiLoCo, diloco),
            (slipstream.DiLoCo, {**diloco, "worker.fragments": 2}),
            (slipstream.DiLoCo, {**diloco, "worker.fragments": 2, "worker.fragment_delay": 2,
                                 "worker.mixing": 0.3}))
        for kind, settings in cases:
            with self.subTest(**settings), cluster.scratch() as directory:
                folder = pathlib.Path(directory)
                settings = {"training.batch_size": 2, "training.epochs": 6, **settings}
                ours = self.train_locally(kind, settings, folder, moves=False)
                self.assertEqual(self.train_locally(kind, settings, folder, moves=True), ours)
                for part in ("train", "test"):
                    for name, values in zip("Xy", linear_problem()):
                        numpy.save(folder / f"{name}_{part}.npy", values.numpy())
                cluster.run(cluster.write_config(folder, LINEAR_CONFIG),
                            {"data.path": folder, "model.init": folder / "first.safetensors", **settings},
                            run_dir=folder / "run")
                self.assertEqual(Model(folder / "run" / "model.safetensors").sha256, ours)
                self.assertNotEqual(Model(folder / "first.safetensors").sha256, ours)

    def test_local_steps_end_within_a_push_and_begin_anew(self):
        diloco = {"worker.algorithm": "diloco", "worker.steps": 4}
        for kind, settings in ((slipstream.EASGD, {"worker.algorithm": "easgd", "worker.push_every": 4}),
                               (slipstream.DiLoCo, diloco),
                               (slipstream.DiLoCo, {**diloco, "worker.fragments": 2})):
            with self.subTest(**settings):
                model = net()
                run = slipstream.connect(self.servers(settings).coordinator)
                self.addCleanup(run.leave, "the test is over")
                run.synchronize(model)
                inner = torch.optim.SGD(model.parameters(), lr=0.1)
                versions = []
                for _ in range(2):
                    with kind(run, model, inner) as exchange:
                        train(model, inner, itertools.islice(loader(), 7))
                        self.assertEqual(exchange.last.outcome, "APPLIED")
                        versions.append(exchange.last.version)
                self.assertLess(*versions)
                run.stop()
                run.finish()
                state = model.state_dict()
                for name, values in run.pull().tensors.items():
                    self.assertTrue(torch.equal(state[name], torch.tensor(values)), name)

    def test_inside_a_block_nothing_is_pushed_by_hand_and_work_may_be_skipped(self):
        for fragments in ({}, {"worker.fragments": 2}):
            with self.subTest(**fragments):
                model = net()
                run = slipstream.connect(self.servers({"worker.algorithm": "diloco", "worker.steps": 4,
                                                       **fragments}).coordinator)
                self.addCleanup(run.leave, "the test is over")
                run.synchronize(model)
                inner = torch.optim.SGD(model.parameters(), lr=0.1)
                with slipstream.DiLoCo(run, model, inner) as exchange:
                    train(model, inner, itertools.islice(loader(), 3))
                    with self.assertRaisesRegex(slipstream.NotReady, "leave the block first"):
                        run.push()
                    run.skip()
                    self.assertTrue(run.fetch())
                    train(model, inner, itertools.islice(loader(), 3))
                    with self.assertRaisesRegex(slipstream.NotReady, "nothing was pushed yet"):
                        exchange.last
                    train(model, inner, itertools.islice(loader(), 1))
                    self.assertEqual(exchange.last.outcome, "APPLIED")
                self.assertTrue(run.fetch())

    def test_gradients_that_do_not_fit_the_run_are_named(self):
        model = net()
        run = slipstream.connect(self.servers({"worker.algorithm": "downpour"}).coordinator)
        self.addCleanup(run.leave, "the test is over")
        run.synchronize(model)
        inner = torch.optim.SGD(model.parameters(), lr=0.1)
        name, parameter = next(iter(model.named_parameters()))
        with slipstream.Downpour(run, model, inner):
            parameter.data = parameter.data[:1].clone()
            parameter.grad = torch.ones_like(parameter)
            with self.assertRaisesRegex(slipstream.Refused, f"the gradient of {name} has"):
                inner.step()

    def test_a_fragment_that_is_not_finite_ends_its_push_alone(self):
        model, outcomes = net(), []
        run = slipstream.connect(self.servers({"worker.algorithm": "diloco", "worker.steps": 4,
                                               "worker.fragments": 2}).coordinator)
        self.addCleanup(run.leave, "the test is over")
        run.synchronize(model)
        inner = torch.optim.SGD(model.parameters(), lr=0.1)
        with slipstream.DiLoCo(run, model, inner) as exchange:
            for number, (inputs, labels) in enumerate(itertools.islice(itertools.cycle(loader()), 12)):
                step(model, inner, (inputs * (math.nan if number == 5 else 1), labels))
                if number % 4 == 3:
                    outcomes.append(exchange.last.outcome)
        self.assertEqual(outcomes, ["APPLIED", "NONFINITE", "APPLIED"])
        self.assertLess(loss_of(model, examples()).item(), loss_of(net(), examples()).item())

    def test_frameworks_that_look_a_batch_ahead_train_as_with_torch(self):
        for side, of_run in (("outer", lambda run: ahead(run.steps(loader()))),
                             ("inner", lambda run: run.steps(ahead(loader())))):
            with self.subTest(side=side):
                model, plain = net(), net()
                run, optimizer = self.joined(model)
                train_backwards(model, optimizer, of_run(run))
                train_backwards(plain, torch.optim.SGD(plain.parameters(), lr=RATE), loader())
                self.assertLess(apart(model, plain), APART_MAX)

    def test_after_a_step_the_module_has_one_version_whole(self):
        for overlap in (False, True):
            with self.subTest(overlap=overlap):
                model = net()
                run, optimizer = self.joined(model, overlap=overlap)
                for batch in loader():
                    step(model, optimizer, batch)
                    state = {name: values.clone() for name, values in model.state_dict().items()}
                    for name, values in run.pull().tensors.items():
                        self.assertTrue(torch.equal(state[name], torch.tensor(values)), name)

    def test_the_last_push_is_part_of_the_final_weights(self):
        model, plain = net(), net()
        run, optimizer = self.joined(model, {"training.max_steps": len(loader())}, overlap=True)
        train_backwards(model, optimizer, loader())
        run.finish()
        train(plain, torch.optim.SGD(plain.parameters(), lr=RATE), loader())
        self.assertLess(apart(model, plain), APART_MAX)

    def test_a_module_that_was_moved_or_converted_is_trained(self):
        def images():
            torch.manual_seed(2)
            return torch.nn.Sequential(torch.nn.Unflatten(1, (5, 2, 2)), torch.nn.Conv2d(5, 8, 2),
                                       torch.nn.Flatten(), torch.nn.Linear(8, 5))

        changes = {"channels_last": lambda model: model.to(memory_format=torch.channels_last),
                   "double": lambda model: model.double(),
                   "bfloat16": lambda model: model.to(torch.bfloat16),
                   "share_memory": lambda model: model.share_memory(),
                   "another tensor": lambda model: [setattr(parameter, "data", parameter.data.clone())
                                                    for parameter in model.parameters()]}
        for name, change in changes.items():
            with self.subTest(change=name):
                model, plain = images(), images()
                _, optimizer = self.joined(model)
                change(model)
                for inputs, labels in loader():
                    step(model, optimizer, (inputs.to(model[1].weight.dtype), labels))
                train(plain, torch.optim.SGD(plain.parameters(), lr=RATE), loader())
                self.assertLess(apart(model, plain), 0.1 if name == "bfloat16" else APART_MAX)
                self.assertGreater(apart(model, images()), 0.1, "it has learned")

    def test_normalised_layers_and_a_frozen_part_train_as_with_torch(self):
        def frozen_body():
            torch.manual_seed(2)
            model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.BatchNorm1d(30),
                                        torch.nn.Linear(30, 5))
            model[0].requires_grad_(False)
            return model

        _, _, model = self.expect_as_torch(frozen_body, train)
        self.assertEqual(int(model[1].num_batches_tracked), len(loader()))

    def test_what_is_saved_is_the_whole_state(self):
        def tied():
            torch.manual_seed(2)
            model = torch.nn.Sequential(
                torch.nn.Linear(20, 20), torch.nn.BatchNorm1d(20), torch.nn.Linear(20, 20),
                torch.nn.Linear(20, 20, bias=False), torch.nn.Linear(20, 5))
            model[2].weight = model[0].weight
            model[3].requires_grad_(False)
            model.register_buffer("mask", torch.full((3,), -float("inf"), dtype=torch.float64))
            model.register_buffer("none", torch.zeros(0))
            return model

        model = tied()
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        settings = {"evaluation.by": "workers", "data.examples": 160, "training.work": "handed_out",
                    "training.epochs": 2}
        os.environ["SLIPSTREAM_RUN_DIR"] = scratch.name
        self.addCleanup(os.environ.pop, "SLIPSTREAM_RUN_DIR")
        run = slipstream.connect(self.servers(settings).coordinator)
        self.addCleanup(run.leave, "the test is over")
        run.synchronize(model)
        optimizer = slipstream.Optimizer(run, model)
        inputs, labels = examples()
        measured = []

        def evaluate(state):
            fresh = tied()
            fresh.load_state_dict(state)
            with torch.no_grad():
                measured.append(functional.cross_entropy(fresh.eval()(inputs), labels).item())
            return measured[-1]

        run.evaluate_by(evaluate)
        for positions in run.batches():
            step(model, optimizer, (inputs[positions], labels[positions]))
        run.save(pathlib.Path(scratch.name) / "by_save.safetensors")
        for name in ("model", "by_save"):
            fresh = tied()
            fresh.load_state_dict(read_saved(pathlib.Path(scratch.name) / f"{name}.safetensors"))
            with torch.no_grad():
                loss = functional.cross_entropy(fresh.eval()(inputs), labels).item()
            self.assertEqual(loss, measured[-1], name)

    def test_sparse_gradients_count(self):
        def embedding():
            torch.manual_seed(2)
            return torch.nn.Embedding(50, 40, sparse=True)

        model, plain = embedding(), embedding()
        _, optimizer = self.joined(model)
        for trained, rule in ((model, optimizer),
                              (plain, torch.optim.SGD(plain.parameters(), lr=RATE))):
            for _ in range(3):
                rule.zero_grad()
                trained(torch.tensor([1, 4, 4])).square().sum().backward()
                rule.step()
        self.assertLess(apart(model, plain), APART_MAX)

    def test_an_optimizer_may_be_wrapped_as_frameworks_do(self):
        model, plain = net(), net()
        _, optimizer = self.joined(model)
        wrapped = types.SimpleNamespace(**optimizer.__dict__)  # As Lightning's wrapper does.
        self.assertIs(wrapped.param_groups, optimizer.param_groups)
        scaler = torch.cuda.amp.GradScaler(enabled=False)
        for batch in loader():
            optimizer.zero_grad()
            scaler.scale(loss_of(model, batch)).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        train(plain, torch.optim.SGD(plain.parameters(), lr=RATE), loader())
        self.assertLess(apart(model, plain), APART_MAX)

    def test_a_module_may_be_copied_and_written(self):
        for overlap in (False, True):
            model = net()
            _, optimizer = self.joined(model, overlap=overlap)
            other = copy.deepcopy(model)
            torch.save(model, io.BytesIO())
            step(model, optimizer, next(iter(loader())))
            model.state_dict()
            copy.deepcopy(other)(examples()[0])
            self.assertGreater(apart(model, other), 0)


if __name__ == "__main__":
    unittest.main()
