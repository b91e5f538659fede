"""What PyTorch programs cannot do in a run is refused at once, with names and remedies."""
import copy
import os
import unittest

from torch_runs import APART_MAX, RATE, TorchRuns, apart, examples, loader, loss_of, net, slipstream, step, torch


class PythonMisuseTest(TorchRuns):
    def test_frozen_tensors_that_differ_are_refused_by_name(self):
        live = self.servers()
        models = net(), net()
        for number, model in enumerate(models):
            model[2].requires_grad_(False)
            model[2].bias.data.fill_(number)
        with slipstream.connect(live.coordinator) as run:
            run.synchronize(models[0])
            with slipstream.connect(live.coordinator) as other:
                with self.assertRaisesRegex(slipstream.Refused, '"2.bias", which needs no gradients'):
                    other.synchronize(models[1])

    def test_parameters_that_are_not_in_the_run_are_refused_by_name(self):
        def replace(model):
            model[0].weight = torch.nn.Parameter(model[0].weight.detach().clone())

        def thaw(model):
            model[2].requires_grad_(True)

        def add(model):
            model.add_module("more", torch.nn.Linear(5, 5))

        def reparametrise(model):
            torch.nn.utils.weight_norm(model[0])

        for change, name in ((replace, "0.weight: added or replaced"), (thaw, "2.bias, 2.weight: needed no"),
                             (add, "more.bias, more.weight: added"), (reparametrise, "0.weight_g")):
            with self.subTest(change=change.__name__):
                model = net()
                model[2].requires_grad_(False)
                _, optimizer = self.joined(model)
                batches = list(loader())
                step(model, optimizer, batches[0])
                change(model)
                with self.assertRaisesRegex(slipstream.Refused, name):
                    step(model, optimizer, batches[1])

    def test_rates_and_groups_are_refused_instead_of_ignored(self):
        model = net()
        run, optimizer = self.joined(model)
        with self.assertRaisesRegex(slipstream.Refused, "lr: .*optimizer.learning_rate"):
            slipstream.Optimizer(run, model, lr=0.1)
        with self.assertRaisesRegex(slipstream.Refused, "learning_rate"):
            torch.optim.lr_scheduler.StepLR(optimizer, 1)
        with self.assertRaisesRegex(slipstream.Refused, "learning_rate"):
            optimizer.param_groups[0]["lr"] = 0.1
        with self.assertRaisesRegex(slipstream.Refused, "add_param_group"):
            optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
        optimizer.load_state_dict(optimizer.state_dict())
        with self.assertRaisesRegex(slipstream.Refused, "durability"):
            optimizer.load_state_dict(torch.optim.SGD(model.parameters(), lr=1).state_dict())

    def test_modules_that_no_run_can_have_are_refused_by_name(self):
        run = slipstream.connect(self.servers().coordinator)
        self.addCleanup(run.leave, "the test is over")
        tied_by_data = net(20, 20, 20)
        tied_by_data[2].weight.data = tied_by_data[0].weight.data
        lazy = torch.nn.Sequential(torch.nn.LazyLinear(5))
        for model, why in ((tied_by_data, "2.weight has memory in common with 0.weight"),
                           (lazy, "0.weight has no shape yet"),
                           (torch.nn.Linear(2, 2, device="meta"), "weight is on the meta device"),
                           (torch.nn.Linear(2, 2).double(), "weight is torch.float64"),
                           ([1], "not list")):
            with self.subTest(why=why), self.assertRaisesRegex(slipstream.Refused, why):
                run.synchronize(model)

    def test_gradients_that_change_after_they_were_sent_are_refused(self):
        model = net()
        _, optimizer = self.joined(model, overlap=True)
        optimizer.zero_grad()
        loss_of(model, next(iter(loader()))).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-6)
        with self.assertRaisesRegex(slipstream.NotReady, "clip_norm"):
            optimizer.step()

    def test_a_mini_batch_whose_step_is_left_out_is_skipped(self):
        settings = {"training.work": "handed_out", "training.nonfinite_max": 3}
        model = net()
        run, optimizer = self.joined(model, settings, examples_of_epoch=160)
        inputs, labels = examples()
        plain = copy.deepcopy(model)
        rule = torch.optim.SGD(plain.parameters(), lr=RATE)
        for number, positions in enumerate(run.batches()):
            batch = inputs[positions], labels[positions]
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            if number == 1:
                run.skip()
            if number in (0, 1):
                continue
            optimizer.step(loss=float("nan"))
            self.assertEqual(optimizer.last.outcome, "APPLIED")
            step(plain, rule, batch)
        self.assertEqual(number, 9)
        self.assertLess(apart(model, plain), APART_MAX)

    def test_work_that_is_asked_for_ahead_is_refused(self):
        run, _ = self.joined(net(), {"training.work": "handed_out"}, examples_of_epoch=160)
        data = torch.utils.data.TensorDataset(*examples())
        batches = torch.utils.data.DataLoader(data, batch_sampler=run.batches(), num_workers=2)
        with self.assertRaisesRegex(slipstream.NotReady, "ahead"):
            next(iter(batches))

    def test_a_second_step_for_a_mini_batch_is_refused(self):
        model = net()
        run, optimizer = self.joined(model, {"training.work": "handed_out"}, examples_of_epoch=160)
        inputs, labels = examples()
        positions = next(run.batches())
        batch = inputs[positions], labels[positions]
        step(model, optimizer, batch)
        with self.assertRaisesRegex(slipstream.NotReady, "not given out yet.*training.work: own"):
            step(model, optimizer, batch)

    def test_a_mini_batch_that_was_looked_at_is_given_again(self):
        model = net()
        run, optimizer = self.joined(model, {"training.work": "handed_out"}, examples_of_epoch=160)
        first = next(iter(run.batches()))
        inputs, labels = examples()
        given = []
        for positions in run.batches():
            given += positions
            step(model, optimizer, (inputs[positions], labels[positions]))
        self.assertEqual(given[:len(first)], list(first))
        self.assertEqual(sorted(given), list(range(160)))

    def test_a_loop_without_a_batch_is_an_error(self):
        run, _ = self.joined(net())
        used_up = iter(loader())
        list(used_up)
        for batches in ([], used_up):
            with self.assertRaisesRegex(slipstream.Refused, "gave no batch"):
                while not run.finished:
                    for _ in run.steps(batches):
                        self.fail("there is no batch")

    def test_the_end_of_a_run_ends_no_block_in_silence(self):
        live = self.servers({"training.max_steps": 3})
        model, steps = net(), 0
        with self.assertRaisesRegex(slipstream.RunFinished, "run.finished"):
            with slipstream.connect(live.coordinator) as run:
                run.synchronize(model)
                optimizer = slipstream.Optimizer(run, model)
                for batch in loader():
                    step(model, optimizer, batch)
                    steps += 1
        self.assertEqual((steps, run.finished), (3, True))
        loss_of(model, batch).backward()  # The module is the program's own again.
        self.assertEqual(live.wait_finished()["ended_by"], "max_steps")

    def test_ranks_of_one_worker_are_told_apart(self):
        for name, value in (("SLIPSTREAM_WORKER", "0"), ("RANK", "1")):
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)
        with self.assertRaisesRegex(slipstream.Refused, "rank 1 of worker 0.*torchrun"):
            slipstream.connect("localhost:1")

    def test_a_run_that_is_dropped_is_left(self):
        live = self.servers({"training.work": "handed_out"})

        def cell():
            model = net()
            run = slipstream.connect(live.coordinator)
            run.synchronize(model, examples=160)
            return run, slipstream.Optimizer(run, model), model

        kept = cell()
        self.assertEqual(live.status()["workers"][0]["state"], "live")
        del kept
        live.wait_for(lambda status: status["workers"][0]["state"] != "live",
                      "the dropped worker to have left")

    def test_finite_gradients_that_are_too_large_are_left_out_by_name(self):
        model = net()
        _, optimizer = self.joined(model, {"training.nonfinite_max": 1})
        optimizer.zero_grad()
        (loss_of(model, next(iter(loader()))) * 2.0**70).backward()
        with self.assertRaisesRegex(slipstream.Error, r'below 2\^50\) in tensor "\d.\w+", value \d'):
            optimizer.step()


if __name__ == "__main__":
    unittest.main()
