"""The manifests of deploy/kubernetes, run by the harness of pods.py: runs end well although pods,
servers and nodes are lost."""
import json
import pathlib
import re
import sys
import unittest

TESTS = pathlib.Path(__file__).absolute().parents[2]
sys.path += [str(TESTS / "support"), str(TESTS / "integration")]
import cluster
import manifests
import network
import pods

MISSING = manifests.missing() or pods.missing()

# A run of some ten seconds.
RUN = """version: 1
model: {preset: mlp}
data: {format: synthetic, train_examples: 6400, test_examples: 1000}
training: {batch_size: 32, epochs: 7}
evaluation: {every_epochs: 0}
consistency: {policy: softsync, n: 1}
optimizer: {kind: momentum, learning_rate: 0.02, momentum: 0.9}
cluster: {lease: 3s}
testing: {push_delay_max: 40ms}
"""


class Run:
    """The pods of rendered objects, in a network where this test is one more machine."""

    def __init__(self, directory, objects, **arguments):
        self.net = network.Network(16, directory)
        self.make = lambda: pods.Pods(self.net, directory, objects, **arguments)

    def __enter__(self):
        self.net.__enter__()
        self.pods = self.make().__enter__()
        return self.pods

    def __exit__(self, *exception):
        self.pods.__exit__(*exception)
        self.net.__exit__(*exception)


def status(coordinator, *flags):
    """Returns the status of the run; empty if nobody answers."""
    done = cluster.psctl("status", "--coordinator", coordinator, "-o", "json", *flags, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def updates(coordinator, *flags):
    return int(status(coordinator, *flags).get("updates", 0))


@unittest.skipIf(MISSING, MISSING)
class PodsTest(unittest.TestCase):
    def trains_on(self, live, coordinator, *flags, by=30):
        """Waits until the run is `by` versions further."""
        before = updates(coordinator, *flags)
        live.wait(lambda: updates(coordinator, *flags) > before + by, f"updates after {before}")

    def test_a_training_run_outlives_pods_and_a_node_and_ends_well(self):
        coordinator = "demo-servers-0-0.demo:7070"
        with cluster.scratch() as directory:
            objects = manifests.kustomize(directory, "training", run_yaml=RUN)
            with Run(directory, objects) as live:
                live.wait(lambda: live.is_ready("demo-servers-0"), "servers to be ready")
                self.assertEqual({pod.group.name for pod in live.history}, {"demo-servers-0"})
                self.trains_on(live, coordinator)

                worker = live.pod("demo-workers-0", 2)
                live.kill(worker)
                self.trains_on(live, coordinator)
                self.assertNotEqual(live.pod("demo-workers-0", 2).node, worker.node)
                live.lose_node(live.pod("demo-servers-0", 1))
                self.trains_on(live, coordinator)
                live.preempt()
                self.trains_on(live, coordinator)
                shown = live.execute(live.pod("demo-servers-0", 0), "psctl", "status", "--coordinator",
                                     coordinator)
                self.assertRegex(shown, "run +demo")

                live.wait(lambda: live.complete, "the run to end")
                codes = {pod.name: pod.code() for pod in live.history if pod.group.name == "demo-servers-0"}
                self.assertEqual(codes, {"demo-servers-0-0-0": 143, "demo-servers-0-0-1": 0,
                                         "demo-servers-0-1-0": 137, "demo-servers-0-1-1": 143,
                                         "demo-servers-0-1-2": 0})
                self.assertEqual(live.failed, {})
                state = live.directory / "claims/demo-state"
                self.assertTrue((state / "models/model.safetensors").exists())
                self.assertTrue((state / "checkpoints").is_dir())

    def test_a_run_with_wrong_settings_fails_at_once(self):
        with cluster.scratch() as directory:
            objects = manifests.kustomize(directory, "training", run_yaml=RUN + "epochs: 3\n")
            with Run(directory, objects) as live:
                live.wait(lambda: live.failed, "the job to fail")
                self.assertRegex(live.failed["demo-servers-0"], "demo-servers-0-.-0 ended with 78")
                self.assertEqual(len(live.history), 2)

    def test_servers_that_stay_serve_the_weights_to_whoever_has_a_certificate(self):
        coordinator = "demo-servers-0.demo:7070"
        with cluster.scratch() as directory:
            certs = pathlib.Path(directory) / "certs"
            cluster.psctl("certs", "init", str(certs), "--run", "demo", "--hosts",
                          "demo-servers-0.demo,demo-servers-1.demo", "--any-worker")
            run_file = pathlib.Path(directory) / "run.yaml"
            run_file.write_text(RUN.replace("epochs: 7", "epochs: 3"))
            objects = manifests.helm("serving", "mtls.servers=servers", "mtls.workers=workers",
                                     run_file=run_file)
            secrets = {name: {file.name: file.read_bytes() for file in certs.iterdir()
                              if re.match(pattern, file.name)}
                       for name, pattern in (("servers", r"ca\.crt|server-"),
                                             ("workers", r"ca\.crt|worker\."))}
            mine = ("--ca", str(certs / "ca.crt"))
            with Run(directory, objects, secrets=secrets) as live:
                live.wait(lambda: updates(coordinator, *mine) > 20, "training")
                address = live.pod("demo-servers", 1).node
                live.kill(live.pod("demo-servers", 1))
                live.wait(lambda: live.is_done("demo-workers"), "workers to end")
                self.assertEqual(live.pod("demo-servers", 1).node, address)
                shown = live.execute(live.pod("demo-servers", 0), "psctl", "status", "--coordinator",
                                     coordinator, "--certificate", "/certs/server-0.crt", "--key",
                                     "/certs/server-0.key")
                self.assertRegex(shown, "run +demo")
                self.assertEqual(status(coordinator, *mine)["phase"], "FINISHED")

                live.evict(live.pod("demo-servers", 0))
                live.wait(lambda: status(coordinator, *mine).get("phase") == "FINISHED"
                          and live.is_ready("demo-servers"), "server 0 to be back")
                model = pathlib.Path(directory) / "model.safetensors"
                cluster.psctl("pull", str(model), "--coordinator", coordinator, *mine)
                self.assertTrue(model.exists())


if __name__ == "__main__":
    unittest.main()
