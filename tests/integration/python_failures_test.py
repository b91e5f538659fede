"""What a program with the Python package sees when something goes wrong."""
import array
import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import unittest

import cluster
import python_package

python_package.use_package()

import slipstream

CONFIG = """
name: failures
model: {from: workers}
training: {work: own, batch_size: 8}
consistency: {policy: async}
optimizer: {kind: sgd, learning_rate: 0.01}
cluster: {servers: [localhost:7070, localhost:7071], workers: 1, lease: 2s}
"""
# A worker that pushes until the run or something else ends it.
PROGRAM = """
import array, os, sys
import slipstream
model = {"weights": array.array("f", bytes(4 * 1000))}
with slipstream.connect() as run:
    run.synchronize(model)
    while run.fetch():
        run.push().result()
        print("pushed", flush=True)
    run.finish()
print("finished", flush=True)
"""


def model(values=1000):
    return {"weights": array.array("f", bytes(4 * values))}


def state_of(status, worker):
    return next((line["state"] for line in status["workers"] if line["worker"] == worker), "")


class PythonFailuresTest(unittest.TestCase):
    def setUp(self):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        self.config = cluster.write_config(self.directory, CONFIG)

    def servers(self, settings=None):
        live = cluster.Cluster(self.config, settings or {}, self.directory, workers=0)
        self.addCleanup(live.stop)
        return live

    def start(self, live, program=PROGRAM):
        environment = {**os.environ, "SLIPSTREAM_COORDINATOR": live.coordinator}
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], text=True,
                                   env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def read_until(self, process, line):
        for text in process.stdout:
            if text.strip() == line:
                return
        self.fail(f"it ended: {process.stderr.read()}")

    def end_of(self, process):
        """Returns the exit code and what was written to stderr."""
        _, errors = process.communicate(timeout=cluster.DEADLINE_S)
        print(errors.strip().splitlines()[-1:] or "no error")
        return process.returncode, errors

    def test_a_worker_that_was_killed_is_missed_and_another_takes_its_place(self):
        live = self.servers()
        first = self.start(live)
        self.read_until(first, "pushed")
        first.send_signal(signal.SIGKILL)
        live.wait_for(lambda status: state_of(status, 0) == "dead",
                      "the dead worker was not missed")
        second = self.start(live)
        self.read_until(second, "pushed")
        with slipstream.connect(live.coordinator) as run:
            run.synchronize(model())
            run.stop()
            while run.fetch():
                run.push().result()
            run.finish()
        self.read_until(second, "finished")
        self.assertEqual(self.end_of(second)[0], 0)

    def test_a_worker_that_stood_still_for_longer_than_its_lease_learns_it(self):
        live = self.servers()
        process = self.start(live)
        self.read_until(process, "pushed")
        process.send_signal(signal.SIGSTOP)
        live.wait_for(lambda status: state_of(status, 0) == "dead",
                      "the stopped worker was not missed")
        process.send_signal(signal.SIGCONT)
        code, errors = self.end_of(process)
        self.assertEqual(code, 1)
        self.assertIn("slipstream._errors.LeaseLost", errors)
        self.assertIn("connect again", errors)

    def test_a_server_that_goes_ends_the_loop_with_its_address(self):
        live = self.servers()
        process = self.start(live)
        self.read_until(process, "pushed")
        live.servers[1].send_signal(signal.SIGKILL)
        code, errors = self.end_of(process)
        self.assertEqual(code, 1)
        self.assertRegex(errors, "slipstream._errors.(ServerUnreachable|RunFailed)")

    def test_ctrl_c_ends_a_wait_and_leaves_the_run(self):
        live = self.servers({"cluster.workers": 2})  # The second never comes.
        process = self.start(live)
        live.wait_for(lambda status: status["workers"], "the worker did not come")
        process.send_signal(signal.SIGINT)
        code, errors = self.end_of(process)
        self.assertEqual(code, -signal.SIGINT)
        self.assertIn("KeyboardInterrupt", errors)
        live.wait_for(lambda status: state_of(status, 0) != "live",
                      "the worker did not leave")

    def test_a_forked_process_may_not_use_the_run(self):
        live = self.servers()
        with slipstream.connect(live.coordinator) as run:
            run.synchronize(model())
            self.assertTrue(run.fetch())
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    run.push()
                except slipstream.ForkedError as error:
                    os.write(write, str(error).encode())
                finally:
                    os._exit(0)
            os.close(write)
            os.waitpid(child, 0)
            self.assertIn("forked", os.read(read, 1000).decode())
            os.close(read)
            run.push().result()

    def test_what_does_not_fit_is_refused_by_name(self):
        live = self.servers()
        with slipstream.connect(live.coordinator) as run:
            run.synchronize(model())
            with slipstream.connect(live.coordinator) as other:
                with self.assertRaisesRegex(slipstream.Refused, 'tensor 0 is "weights" \\[999\\]'):
                    other.synchronize(model(999))
            with self.assertRaisesRegex(slipstream.NotReady, "follows a fetch"):
                run.push()
            self.assertTrue(run.fetch())
            for examples in (0, 9, 8.0):
                with self.assertRaisesRegex(slipstream.Refused, "1 to 8 examples"):
                    run.push(examples=examples)
            with self.assertRaisesRegex(slipstream.Refused, "bias"):
                run.push({"bias": model()["weights"]})
            with self.assertRaisesRegex(slipstream.Refused, "own"):
                next(run.batches())
        with self.assertRaisesRegex(slipstream.ServerUnreachable, "localhost:1"):
            slipstream.connect("localhost:1")
        with self.assertRaisesRegex(slipstream.Refused, "no port"):
            slipstream.connect("localhost")
        with self.assertRaisesRegex(slipstream.Left, "connect again"):
            run.fetch()

    def test_our_own_worker_says_that_it_cannot_take_part(self):
        live = self.servers()
        live.start_worker(0)
        live.workers[0].wait(timeout=cluster.DEADLINE_S)
        self.assertIn("data.from: workers", live.log_text("worker-0"))

    def test_the_status_has_every_field(self):
        live = self.servers()
        live.wait_for(lambda status: len(status["shards"]) == 2, "both servers to be known")
        status = slipstream.status(live.coordinator)
        self.assertIsInstance(status, slipstream.RunStatus)
        self.assertEqual((status.name, status.policy), ("failures", "async"))
        self.assertEqual(len(status.shards), 2)
        self.assertIs(type(status.updates), int)
        self.assertIs(type(status.seconds), float)
        shown = live.status()
        self.assertEqual(set(dataclasses.asdict(status)), set(shown))
        self.assertEqual(set(dataclasses.asdict(status.shards[0])), set(shown["shards"][0]))
        self.assertEqual((status.run, status.parameters), (shown["run"], shown["parameters"]))


if __name__ == "__main__":
    unittest.main()
