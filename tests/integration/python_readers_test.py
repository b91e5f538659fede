"""Publishing and subscribing with the Python package, on live servers."""
import array
import asyncio
import importlib.util
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

import cluster
import python_package

python_package.use_package()

import slipstream

CONFIG = """
name: publish
worker: {algorithm: publish}
readers: {versions_kept: 3}
cluster: {servers: [localhost:7070, localhost:7071], workers: 1, lease: 2s}
"""
VALUES = 10_000

# A reader in a process of its own, which says each version that it takes.
FOLLOWER = """
import sys, slipstream
for weights in slipstream.subscribe(sys.argv[1], name="follower"):
    print(weights.version, flush=True)
"""


def weights_of(number):
    """Returns weights whose values all are this number."""
    return {"first": array.array("f", [number]) * VALUES, "second": array.array("f", [number] * 3)}


def readers_of(live):
    return slipstream.status(live.coordinator).readers


def await_value(look, what):
    """Waits until `look()` finds something, and returns it."""
    found = []

    def finds():
        found.append(look())
        return bool(found[-1])

    cluster.wait_until(finds, what)
    return found[-1]


def is_done(pending):
    """Returns whether the result comes within half a second."""
    try:
        pending.result(timeout=0.5)
    except TimeoutError:
        return False
    return True


def publish_until_held(run, first):
    """Publishes versions until the answer to one is held back. Returns it, and the version's number: a
    reader that has just come is not waited for at once."""
    for version in range(first, first + 10_000):
        pending = run.publish(weights_of(version), version=version)
        if not is_done(pending):
            return pending, version
    raise AssertionError("nobody waits for the reader")


class PythonReadersTest(unittest.TestCase):
    def servers(self, text=CONFIG, **settings):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        config = cluster.write_config(scratch.name, text)
        live = cluster.Cluster(config, settings, scratch.name, workers=0)
        self.addCleanup(live.stop)
        return live

    def publisher(self, live):
        run = slipstream.connect(live.coordinator)
        self.addCleanup(run.leave, "the test is over")
        return run

    def reader(self, live, **arguments):
        reader = slipstream.subscribe(live.coordinator, **arguments)
        self.addCleanup(reader.close)
        return reader

    def assert_is_one_version(self, weights):
        values = set()
        for tensor in weights.tensors.values():
            values |= set(tensor.tolist())
        self.assertEqual(values, {float(weights.version)})

    def test_a_reader_takes_what_was_published(self):
        live = self.servers()
        run = self.publisher(live)
        result = run.publish(weights_of(7), version=7).result()
        self.assertEqual((result.outcome, result.staleness), ("APPLIED", 0))
        reader = self.reader(live, max_lag=2, name="evaluator")
        self.assertEqual(reader.shapes, {"first": (VALUES,), "second": (3,)})
        weights = next(reader)
        self.assert_is_one_version(weights)
        self.assertEqual((weights.version, weights.lag, weights.is_whole, weights.versions),
                         (7, 0, True, (1, 1)))
        run.publish(weights_of(9), version=9).result()
        run.publish(weights_of(10), version=10).result()
        self.assertEqual(next(reader).version, 10)

        status = await_value(
            lambda: next((r for r in readers_of(live) if int(r.label) == 10), None),
            "the reader in the status")
        self.assertEqual((status.name, status.state, int(status.version), int(status.taken)),
                         ("evaluator", "live", 3, 2))
        self.assertEqual(int(status.lag_max), 2)
        self.assertEqual(int(status.bytes), 2 * 4 * (VALUES + 3))

    def test_the_lag_in_the_status_is_that_which_the_reader_counts(self):
        live = self.servers()
        run = self.publisher(live)
        run.publish(weights_of(1), version=1).result()
        reader = self.reader(live)
        held = next(reader)
        for version in range(2, 7):
            run.publish(weights_of(version), version=version).result()
        cluster.wait_until(lambda: int(readers_of(live)[0].lag) == 5, "a lag of 5")
        self.assertGreater(readers_of(live)[0].lag_seconds, 0)
        taken = next(reader)
        self.assertEqual((held.version, taken.version, taken.lag), (1, 6, 0))
        cluster.wait_until(lambda: int(readers_of(live)[0].lag) == 0, "no lag")

    def test_few_changes_are_sent_as_such(self):
        live = self.servers()
        run = self.publisher(live)
        seed = int(os.environ.get("SEED", "11"))
        print("SEED", seed, flush=True)
        chance = random.Random(seed)
        count = 3_000_000
        values = array.array("f", [chance.random() for _ in range(count)])
        whole = 4 * count

        def publish(version, changed):
            for place in chance.sample(range(count), changed):
                values[place] += 1
            run.publish({"values": values}, version=version).result()

        def bytes_of_reader():
            return int(await_value(lambda: [r for r in readers_of(live) if int(r.label) == held.version],
                                   "the reader's figures")[0].bytes)

        publish(1, 0)
        reader = self.reader(live)
        held = next(reader)
        before = bytes_of_reader()
        self.assertEqual(before, whole)
        for version, changed, share in ((2, count // 100, 0.025), (3, count // 10, 0.16), (4, 0, 0.001),
                                        (5, count, 1)):
            with self.subTest(changed=changed):
                publish(version, changed)
                held = next(reader)
                self.assertEqual((held.version, held.lag), (version, 0))
                self.assertEqual(held.tensors["values"].tolist(), values.tolist())
                sent, before = bytes_of_reader() - before, bytes_of_reader()
                print(f"{changed} of {count} values changed: {sent} bytes, of {whole}", flush=True)
                self.assertLessEqual(sent, share * whole)

        # A program that writes to what it was given still gets what was published.
        held.tensors["values"][7] = -1
        publish(6, 10)
        held = next(reader)
        self.assertEqual(held.tensors["values"].tolist(), values.tolist())

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "PyTorch is not installed")
    def test_what_cannot_be_published_is_named(self):
        run = self.publisher(self.servers())
        weights = {"first": array.array("f", [1, 1]), "none": array.array("f")}
        with self.assertLogs("slipstream", "WARNING") as logs:
            run.publish(weights, version=1).result()
            run.publish(weights, version=2).result()
        self.assertEqual([log.count("leaves out none, without values") for log in logs.output], [1])
        self.assertEqual(list(run.pull().tensors), ["first"])

    def test_a_module_is_published_and_loaded(self):
        import torch
        torch.manual_seed(3)
        live = self.servers()
        run = self.publisher(live)
        module = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.BatchNorm1d(30),
                                     torch.nn.Linear(30, 2, bias=False)).to(torch.bfloat16)
        with torch.no_grad():
            module(torch.randn(8, 20, dtype=torch.bfloat16))
        copy = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.BatchNorm1d(30),
                                   torch.nn.Linear(30, 2, bias=False)).to(torch.bfloat16)
        run.publish(module, version=1).result()
        reader = self.reader(live)
        copy.load_state_dict(next(reader).tensors)
        with torch.no_grad():
            module[0].weight[3, 4] += 1
        run.publish(module.state_dict(), version=2).result()
        copy.load_state_dict(next(reader).tensors)
        for (name, mine), other in zip(module.state_dict().items(), copy.state_dict().values()):
            self.assertTrue(torch.equal(mine, other), name)
        with self.assertRaisesRegex(slipstream.Refused, "float32 cannot hold all its values"):
            run.publish({name: values.double() + 1e-12
                         for name, values in module.state_dict().items()}, version=3)

    def test_no_reader_sees_a_mixture(self):
        live = self.servers()
        run = self.publisher(live)
        seed = int(os.environ.get("SEED", "7"))
        print("SEED", seed, flush=True)
        versions = 10_000
        is_over = threading.Event()
        seen, failures = [0, 0, 0], []

        def follow(number):
            try:
                with slipstream.subscribe(live.coordinator) as reader:
                    last = 0
                    for weights in reader:
                        self.assert_is_one_version(weights)
                        self.assertGreater(weights.version, last)
                        last = weights.version
                        seen[number] += 1
                self.assertEqual(last, versions)
            except BaseException as error:
                failures.append(error)

        def delay():
            chance = random.Random(seed)
            while not is_over.wait(chance.uniform(0, 0.02)):
                server = chance.choice(live.servers)
                os.kill(server.pid, signal.SIGSTOP)
                is_over.wait(chance.uniform(0, 0.01))
                os.kill(server.pid, signal.SIGCONT)

        threads = [threading.Thread(target=follow, args=(number,)) for number in range(3)]
        threads.append(threading.Thread(target=delay))
        run.publish(weights_of(1), version=1).result()
        for thread in threads:
            thread.start()
        values = weights_of(0)
        for version in range(2, versions + 1):
            values["first"][:] = array.array("f", [version]) * VALUES
            values["second"][:] = array.array("f", [version] * 3)
            run.publish(values, version=version)
        is_over.set()
        run.stop()
        run.finish()
        for thread in threads:
            thread.join(60)
        if failures:
            raise failures[0]
        print("versions taken", seen, flush=True)
        self.assertGreater(min(seen), 1)

    def test_a_killed_reader_costs_the_others_nothing(self):
        live = self.servers()
        run = self.publisher(live)
        run.publish(weights_of(1), version=1).result()
        follower = subprocess.Popen([sys.executable, "-c", FOLLOWER, live.coordinator],
                                    stdout=subprocess.PIPE, text=True)
        self.addCleanup(follower.kill)
        self.assertEqual(follower.stdout.readline(), "1\n")
        reader = self.reader(live)
        self.assertEqual(next(reader).version, 1)
        follower.kill()
        follower.wait()
        follower.stdout.close()
        for version in range(2, 30):
            run.publish(weights_of(version), version=version).result()
            self.assertEqual(next(reader).version, version)
        gone = await_value(lambda: next((r for r in readers_of(live) if r.state == "gone"), None),
                           "the killed reader to be gone")
        self.assertEqual(gone.name, "follower")

    def test_a_publisher_waits_for_readers_that_may_lag_little(self):
        live = self.servers(CONFIG.replace("versions_kept: 3", "versions_kept: 3, on_lag: wait"))
        run = self.publisher(live)
        run.publish(weights_of(1), version=1).result()
        with self.assertRaisesRegex(slipstream.Refused, "lag_max: at least 1"):
            self.reader(live, max_lag=0)
        reader = self.reader(live, max_lag=2)
        self.reader(live)  # Nobody waits for a reader without a bound.
        self.assertEqual(next(reader).version, 1)
        pending, newest = publish_until_held(run, 2)
        await_value(lambda: [r for r in readers_of(live) if r.is_awaited], "a reader that is awaited")
        self.assertFalse(pending.done())
        self.assertEqual(next(reader).version, newest)
        self.assertEqual(pending.result().outcome, "APPLIED")

        def publish():
            for version in range(newest + 1, newest + 301):
                run.publish(weights_of(version), version=version)
            run.stop()
            run.finish()

        publishing = threading.Thread(target=publish)
        publishing.start()
        lags = [weights.lag for weights in reader]
        publishing.join(60)
        self.assertFalse(publishing.is_alive())
        print("states taken", len(lags), "highest lag", max(lags), flush=True)
        self.assertGreaterEqual(len(lags), 300 // 2)
        self.assertLessEqual(max(lags), 2)

    def test_nobody_waits_for_a_reader_that_is_gone(self):
        live = self.servers(CONFIG.replace("versions_kept: 3", "versions_kept: 3, on_lag: wait"))
        run = self.publisher(live)
        run.publish(weights_of(1), version=1).result()
        follower = subprocess.Popen(
            [sys.executable, "-c", FOLLOWER.replace("name=", "max_lag=1, name="), live.coordinator],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(follower.stdout.close)
        self.assertEqual(follower.stdout.readline(), "1\n")
        follower.send_signal(signal.SIGSTOP)
        _, newest = publish_until_held(run, 2)
        follower.kill()
        follower.wait()
        pending = run.publish(weights_of(newest + 1), version=newest + 1)
        self.assertEqual(pending.result(60).outcome, "APPLIED")
        await_value(lambda: readers_of(live)[0].state == "gone", "the reader to be gone")

    def test_training_ends_although_a_reader_is_awaited(self):
        live = self.servers(CONFIG.replace("versions_kept: 3", "versions_kept: 3, on_lag: wait"))
        run = self.publisher(live)
        run.publish(weights_of(1), version=1).result()
        reader = self.reader(live, max_lag=1)
        self.assertEqual(next(reader).version, 1)
        pending, newest = publish_until_held(run, 2)
        cluster.psctl("stop", "--coordinator", live.coordinator)
        self.assertEqual(pending.result(60).outcome, "APPLIED")
        while run.fetch():  # It may not have heard of the end yet.
            newest += 1
            run.publish(weights_of(newest), version=newest).result()
        run.finish()

    def test_servers_stay_until_readers_have_the_last_state(self):
        live = self.servers(CONFIG.replace("lease: 2s", "lease: 1m"), **{"run.after": "exit"})
        run = self.publisher(live)
        run.publish(weights_of(1), version=1).result()
        reader = self.reader(live)
        self.assertEqual(next(reader).version, 1)
        run.publish(weights_of(2), version=2).result()
        run.stop()
        run.finish()
        run.leave()
        self.assertEqual(next(reader).version, 2)
        self.assertRaises(StopIteration, lambda: next(reader))
        for server in live.servers:
            self.assertEqual(server.wait(cluster.DEADLINE_S), 0)  # Long before the lease ends.

    def test_a_publisher_that_comes_back_goes_on(self):
        live = self.servers()
        run = slipstream.connect(live.coordinator)
        run.publish(weights_of(1), version=1).result()
        reader = self.reader(live)
        self.assertEqual(next(reader).version, 1)
        run.leave()
        run = self.publisher(live)
        run.publish(weights_of(2), version=2).result()
        weights = next(reader)
        self.assert_is_one_version(weights)
        self.assertEqual((weights.version, weights.is_whole), (2, True))

    def test_readers_are_asynchronous_iterators(self):
        live = self.servers()
        run = self.publisher(live)

        async def follow():
            taken = []
            async for weights in self.reader(live):
                taken.append(weights.version)
                if weights.version == 3:
                    break
                run.publish(weights_of(weights.version + 1), version=weights.version + 1)
            return taken

        run.publish(weights_of(1), version=1).result()
        self.assertEqual(asyncio.run(follow()), [1, 2, 3])

    def test_readers_follow_a_run_that_trains(self):
        for policy, is_whole in (("hardsync", True), ("async", False)):
            with self.subTest(policy=policy):
                live = self.servers(f"""
name: train
model: {{from: workers}}
training: {{work: own, batch_size: 8}}
consistency: {{policy: {policy}}}
optimizer: {{kind: sgd, learning_rate: 0.5}}
cluster: {{servers: [localhost:7070, localhost:7071], workers: 1}}
""")
                run = self.publisher(live)
                run.synchronize({"weights": array.array("f", bytes(4 * VALUES))})
                run.fetch()
                run.exchange({"weights": array.array("f", [1]) * VALUES})
                reader = self.reader(live)
                weights = next(reader)
                self.assertEqual((weights.version, weights.is_whole, weights.examples),
                                 (1, is_whole, 8))
                self.assertEqual(set(weights.tensors["weights"].tolist()), {-0.5})
                with self.assertRaisesRegex(slipstream.Refused, "whole weights are for runs"):
                    run.publish({"weights": array.array("f", [1])}, version=1)

    def test_a_reader_may_come_before_the_model_and_ends_with_the_run(self):
        live = self.servers()
        taken = []

        def follow():
            for weights in slipstream.subscribe(live.coordinator):
                taken.append(weights.version)

        thread = threading.Thread(target=follow)
        thread.start()
        time.sleep(0.3)
        run = self.publisher(live)
        run.publish(weights_of(5), version=5).result()
        cluster.wait_until(lambda: taken == [5], "the version to be taken")
        run.stop()
        run.finish()
        thread.join(30)
        self.assertFalse(thread.is_alive())
        self.assertEqual(taken, [5])

    def test_wrong_arguments_are_refused_by_name(self):
        live = self.servers()
        run = self.publisher(live)
        for arguments, text in (({"max_lag": -1}, "max_lag=-1"), ({"name": "two words"}, "name='two")):
            with self.assertRaisesRegex(slipstream.Refused, text):
                slipstream.subscribe(live.coordinator, **arguments)
        run.publish(weights_of(3), version=3).result()
        with self.assertRaisesRegex(slipstream.Refused, "not below that of the last call, 3"):
            run.publish(weights_of(2), version=2)
        with self.assertRaisesRegex(slipstream.Refused, "'second' is missing"):
            run.publish({"first": weights_of(4)["first"]}, version=4)
        for _ in range(20):
            with self.assertRaisesRegex(slipstream.Refused, 'weights with nan in tensor "second", value 0'):
                run.publish({**weights_of(4), "second": array.array("f", [float("nan")] * 3)},
                            version=4).result()
        self.assertEqual(run.publish(weights_of(4), version=4).result().outcome, "APPLIED")

    def test_the_example(self):
        with cluster.scratch() as scratch:
            summary, logs = python_package.run(python_package.EXAMPLES / "publish.yaml",
                                               python_package.EXAMPLES / "publish.py",
                                               pathlib.Path(scratch) / "run")
            self.assertEqual(summary["phase"], "FINISHED", logs)
            for name in ("first", "second", "third"):
                self.assertRegex(logs[0], rf"{name}: \d+ versions, \d+ behind at most, the last 60")


if __name__ == "__main__":
    unittest.main()
