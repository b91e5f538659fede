"""The calls of the Python package, one by one, on live servers."""
import array
import pathlib
import threading
import unittest

import cluster
import python_package

python_package.use_package()

import slipstream

try:
    import torch
except ImportError:
    torch = None

CONFIG = """
name: calls
model: {from: workers}
training: {work: own, batch_size: 8, nonfinite_max: 3}
consistency: {policy: async}
optimizer: {kind: sgd, learning_rate: 0.5}
cluster: {servers: [localhost:7070, localhost:7071], workers: 1}
"""
VALUES = 1000


def model():
    return {"weights": array.array("f", bytes(4 * VALUES))}


def gradient(value):
    return {"weights": array.array("f", [value] * VALUES)}


class PythonRunTest(unittest.TestCase):
    def setUp(self):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.config = cluster.write_config(scratch.name, CONFIG)

    def servers(self, settings=None):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        live = cluster.Cluster(self.config, settings or {}, scratch.name, workers=0)
        self.addCleanup(live.stop)
        return live

    def connect(self, live, **arguments):
        run = slipstream.connect(live.coordinator, **arguments)
        self.addCleanup(run.leave, "the test is over")
        return run

    def ready(self, live, **arguments):
        run = self.connect(live, **arguments)
        run.synchronize(model())
        self.assertTrue(run.fetch())
        return run

    def test_what_is_pushed_is_applied_and_read_back(self):
        live = self.servers()
        run = self.ready(live)
        result = run.push(gradient(1)).result()
        self.assertEqual((result.outcome, result.version, result.staleness), ("APPLIED", 1, 0))
        self.assertEqual(len(result.shards), 2)
        run.fetch()
        self.assertEqual(set(run.weights["weights"].tolist()), {-0.5})
        self.assertEqual(run.exchange(gradient(2), loss=0.25).version, 2)
        pulled = run.pull()
        self.assertEqual(pulled.versions, (2, 2))
        self.assertEqual(set(pulled.tensors["weights"].tolist()), {-1.5})
        into = model()
        run.pull(into)
        self.assertEqual(set(into["weights"]), {-1.5})
        path = self.directory / "weights.safetensors"
        run.save(path)
        self.assertIn(b'"weights"', path.read_bytes()[:2000])

    def test_a_model_of_a_few_values_is_shared_by_all_servers(self):
        few = {"weights": array.array("f", [0, 0, 0])}
        for settings in ({"consistency.policy": "hardsync"}, {"consistency.policy": "softsync"},
                         {"consistency.policy": "hogwild"}, {"wire.push_codec": "int8"},
                         {"wire.transport": "shm"}, {"readers.versions_kept": 3},
                         {"durability.level": "synced"}):
            with self.subTest(**settings):
                if "durability.level" in settings:
                    settings["durability.directory"] = self.directory / "state"
                live = self.servers(settings)
                run = self.connect(live)
                run.synchronize(few)
                run.fetch()
                for version in (1, 2):
                    result = run.exchange({"weights": array.array("f", [1, 1, 1])})
                    self.assertEqual((result.outcome, result.version), ("APPLIED", version))
                self.assertEqual(run.weights["weights"].tolist(), [-1, -1, -1])
                self.assertEqual(run.pull().tensors["weights"].tolist(), [-1, -1, -1])

    def test_a_tensor_that_nobody_has_a_gradient_for_is_left_alone(self):
        def twice(value):
            return {name: array.array("f", [value] * 20) for name in ("first", "second")}

        live = self.servers({"consistency.policy": "hardsync", "cluster.workers": 2, "optimizer.kind": "momentum",
                             "optimizer.momentum": 0.5, "optimizer.learning_rate": 1})
        runs = [self.connect(live) for _ in range(2)]
        for run in runs:
            run.synchronize(twice(0))

        def exchange(*gradients):
            steps = [threading.Thread(target=lambda run=run, values=values: (run.fetch(), run.exchange(values)))
                     for run, values in zip(runs, gradients)]
            for thread in steps:
                thread.start()
            for thread in steps:
                thread.join()
            return [set(runs[0].weights[name].tolist()) for name in ("first", "second")]

        without = {**twice(1), "second": None}
        self.assertEqual(exchange(twice(1), twice(1)), [{-1}, {-1}])
        self.assertEqual(exchange(without, without), [{-2.5}, {-1}])
        self.assertEqual(exchange(twice(1), without), [{-4.25}, {-2}], "0.5 of the momentum, and the mean")

    def test_each_result_is_that_of_its_push(self):
        run = self.ready(self.servers())
        first = run.push(gradient(1))
        run.fetch()
        second = run.push(gradient(1))
        self.assertEqual((first.result().version, second.result().version), (1, 2))

    def test_a_push_on_its_way_counts_when_the_block_is_left(self):
        live = self.servers({"run.after": "stay"})
        with slipstream.connect(live.coordinator) as run:
            run.synchronize(model())
            for _ in range(5):
                run.fetch()
                run.push(gradient(1))
        live.wait_for(lambda status: status["updates"] == 5, "a push was lost")

    def test_values_that_are_not_finite_are_left_out_until_there_are_too_many(self):
        run = self.ready(self.servers())
        for _ in range(2):
            self.assertEqual(run.exchange(gradient(float("nan"))).outcome, "NONFINITE")
        self.assertEqual(run.exchange(gradient(1)).outcome, "APPLIED")
        with self.assertRaisesRegex(slipstream.Error, "nan"):
            for _ in range(3):
                run.exchange(gradient(float("nan")))

    def test_any_worker_may_end_training(self):
        for policy in ("async", "hardsync"):
            with self.subTest(policy=policy):
                live = self.servers({"consistency.policy": policy, "cluster.workers": 2})
                runs = [None, None]

                def work(number):
                    run = self.connect(live, worker=number)
                    run.synchronize(model())
                    while run.fetch():
                        if number == 0 and run.push(gradient(1)).result().version >= 5:
                            run.stop()
                            break
                        if number == 1:
                            run.push(gradient(1))
                    run.finish()
                    runs[number] = run

                threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(cluster.DEADLINE_S)
                self.assertTrue(all(run is not None and run.finished for run in runs))
                self.assertEqual(live.wait_finished()["ended_by"], "worker")
                self.assertEqual(runs[0].weights["weights"].tolist(),
                                 runs[1].weights["weights"].tolist())

    def test_one_who_ends_training_and_goes_is_heard(self):
        live = self.servers()
        with slipstream.connect(live.coordinator) as run:
            with self.assertRaises(slipstream.NotReady):
                run.stop()
            run.synchronize(model())
            run.fetch()
            run.exchange(gradient(1))
            with self.assertRaisesRegex(slipstream.NotReady, "work is left"):
                run.finish()
            run.stop()
        self.assertEqual(live.wait_finished()["updates"], 1)

    def test_a_run_of_two_policies_is_followed(self):
        live = self.servers({"data.examples": 64, "training.epochs": 2, "training.batch_size": 8,
                             "consistency.before": "[{policy: hardsync, until_epoch: 1}]"})
        run = self.connect(live)
        run.synchronize(model())
        pushes = 0
        while run.fetch():
            run.push(gradient(0.1))
            pushes += 1
        run.finish()
        self.assertEqual(pushes, 16)
        self.assertEqual(live.wait_finished()["ended_by"], "epochs")

    def test_what_a_run_cannot_have_is_said_at_once(self):
        live = self.servers({"training.work": "handed_out"})
        run = self.connect(live)
        for examples in (0, 1 << 33):
            with self.assertRaisesRegex(slipstream.Refused, "hand out 1 to 4294967295 examples"):
                run.synchronize(model(), examples=examples)
        run.synchronize(model(), examples=20)
        self.assertEqual(sorted(next(run.batches())), sorted(set(next(run.batches()))))

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_parameters_that_lie_elsewhere_get_the_weights_too(self):
        live = self.servers({"training.max_steps": 3})
        net = torch.nn.Linear(20, 50)
        run = self.connect(live)
        run.synchronize(net)
        optimizer = slipstream.Optimizer(run, net)
        for parameter in net.parameters():
            parameter.data = parameter.data.clone()
        try:
            while True:
                optimizer.zero_grad()
                net(torch.ones(8, 20)).sum().backward()
                optimizer.step()
        except slipstream.RunFinished:
            pass
        for name, parameter in net.named_parameters():
            self.assertEqual(parameter.flatten().tolist(), run.weights[name].flatten().tolist())

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_zero_grad_may_come_last(self):
        live = self.servers({"training.work": "handed_out", "training.batch_size": 4})
        net = torch.nn.Linear(20, 50)
        steps = 0
        with slipstream.connect(live.coordinator) as run:
            run.synchronize(net, examples=10)
            optimizer = slipstream.Optimizer(run, net)
            for positions in run.batches():
                net(torch.ones(len(positions), 20)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                steps += 1
            self.assertTrue(run.finished)
        self.assertEqual(steps, 3)
        self.assertEqual(live.wait_finished()["examples"], 10)

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_gradients_that_leave_early_are_the_same(self):
        sums = []
        for overlap in (False, True):
            live = self.servers({"training.max_steps": 10})
            torch.manual_seed(1)
            net = torch.nn.Sequential(*[torch.nn.Linear(700, 700) for _ in range(3)])
            run = self.connect(live)
            run.synchronize(net)
            optimizer = slipstream.Optimizer(run, net, overlap=overlap)
            for inputs in run.steps([torch.ones(8, 700)] * 11):
                optimizer.zero_grad()
                net(inputs).square().mean().backward()
                optimizer.step()
            self.assertTrue(run.finished)
            sums.append([parameter.double().sum().item() for parameter in net.parameters()])
            optimizer.zero_grad()
            with self.assertRaises(slipstream.RunFinished):
                optimizer.step()
        self.assertEqual(*sums)

    @unittest.skipIf(torch is None, "needs python3-torch")
    def test_a_schedule_may_lead_the_optimizer_of_local_steps(self):
        live = self.servers({"worker.algorithm": "local_sgd", "worker.steps": 2,
                             "consistency.policy": "hardsync", "training.max_steps": 6})
        net = torch.nn.Linear(20, 50)
        run = self.connect(live)
        run.synchronize(net)
        inner = torch.optim.SGD(net.parameters(), lr=0.1)
        with slipstream.LocalSGD(run, net, inner):
            schedule = torch.optim.lr_scheduler.StepLR(inner, 1)
            for inputs in run.steps([torch.ones(8, 20)] * 7):
                inner.zero_grad()
                net(inputs).sum().backward()
                inner.step()
                schedule.step()
        self.assertTrue(run.finished)
        self.assertEqual(live.wait_finished()["updates"], 3)


if __name__ == "__main__":
    unittest.main()
