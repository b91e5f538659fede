"""The README's separate services, each on its own machine: a network namespace with an address."""
import contextlib
import json
import pathlib
import signal
import subprocess
import time
import unittest

import cluster
import network
import safetensors_reader

NO_NETWORK = network.enter()

RUN = """version: 1
name: machines
seed: 5
model: {{preset: mlp}}
data: {{format: synthetic, train_examples: 3200, test_examples: 500}}
training: {{batch_size: 32}}
consistency: {policy}
optimizer: {{kind: momentum, learning_rate: 0.02, momentum: 0.9}}
cluster:
  servers: {servers}
  workers: 2
{rest}
"""
# Longer than keepalive probes take, so both ends take the connections for broken.
PULLED_S = 25
# Long enough for the cluster to begin, and short enough for a test to wait.
CERTIFICATE_S = 40
ACCEPTED = "security: {plaintext: accept_the_risk}\n"


class Services:
    """Programs on the nodes of a network, each with a log. They are stopped by their process
    ids."""

    def __init__(self, net, directory):
        self.net = net
        self.directory = pathlib.Path(directory)
        self.running = {}

    def start(self, node, name, program, *arguments):
        log = open(self.directory / f"{name}.log", "wb")
        with log:
            self.running[name] = subprocess.Popen(
                self.net.on(node, cluster.program(program), *arguments), stdout=log, stderr=log)

    def server(self, node, shard, *arguments):
        self.start(node, f"server-{shard}", "server/ps_server", "--config",
                   self.directory / "run.yaml", "--shard", shard, *arguments)

    def worker(self, node, worker, coordinator, *arguments):
        self.start(node, f"worker-{worker}", "worker/ps_worker", "--coordinator", coordinator,
                   *arguments)

    def exit_code(self, name):
        return self.running[name].wait(timeout=cluster.DEADLINE_S)

    def logs(self):
        return "\n".join(f"--- {path.name}\n{path.read_text()}"
                         for path in sorted(self.directory.glob("*.log")))

    def stop(self):
        for process in self.running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@unittest.skipIf(NO_NETWORK, NO_NETWORK)
class NamespacesTest(unittest.TestCase):
    def setUp(self):
        with contextlib.ExitStack() as stack:
            self.directory = pathlib.Path(stack.enter_context(cluster.scratch()))
            self.net = stack.enter_context(network.Network(4, self.directory))
            self.services = Services(self.net, self.directory)
            stack.callback(self.services.stop)
            self.addCleanup(stack.pop_all().close)

    def write_run(self, servers, rest=ACCEPTED, policy="{policy: softsync, n: 1}"):
        (self.directory / "run.yaml").write_text(
            RUN.format(servers=servers, rest=rest, policy=policy))

    def status(self, coordinator, *arguments):
        done = cluster.psctl("status", "--coordinator", coordinator, *arguments, "-o", "json",
                             check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {"phase": "UNKNOWN"}

    def test_services_find_each_other_by_the_names_of_their_machines(self):
        # Under hardsync each worker has to push, however late it is.
        self.write_run("[node0:7070, node1:7070]", ACCEPTED + "run: {after: stay}\n",
                       policy="{policy: hardsync}")
        self.services.server(0, 0)
        self.services.server(1, 1)
        for worker in (0, 1):
            self.services.worker(2 + worker, worker, "node0:7070", "--worker", worker,
                                 "--save-dir", self.directory / f"models-{worker}")

        for worker in (0, 1):
            self.assertEqual(self.services.exit_code(f"worker-{worker}"), 0, self.services.logs())
        self.assertIn("transport=tcp reason=\"it is on another machine", self.services.logs())
        status = self.status("node0:7070")

        self.assertEqual(status["phase"], "FINISHED", self.services.logs())
        self.assertEqual([shard["address"] for shard in status["shards"]],
                         ["node0:7070", "node1:7070"])
        for worker in status["workers"]:
            self.assertGreater(int(worker["pushes"]), 0)
        final = status["evaluations"][-1]
        self.assertGreater(final["test_accuracy"], 0.3)
        self.assertEqual(safetensors_reader.Model(final["model_file"]).sha256,
                         status["weights_sha256"])

    def test_services_on_ports_that_the_system_chose_end_by_themselves(self):
        self.write_run("[10.77.0.1:7070, 10.77.0.2:7070]")
        port_file = self.directory / "port"
        self.services.server(0, 0, "--listen", "0.0.0.0:0", "--port-file", port_file)
        cluster.wait_until(lambda: port_file.exists() or
                           self.services.running["server-0"].poll() is not None,
                           "server 0 has neither a port nor ended")
        coordinator = port_file.read_text().strip()
        self.assertTrue(coordinator.startswith("10.77.0.1:"), coordinator)
        self.services.server(1, 1, "--listen", "10.77.0.2:0", "--coordinator", coordinator)
        for worker in (0, 1):
            self.services.worker(2 + worker, worker, coordinator)

        for name in ("worker-0", "worker-1", "server-0", "server-1"):
            self.assertEqual(self.services.exit_code(name), 0, self.services.logs())

    def test_cables_that_are_pulled_for_a_while_cost_nothing_but_time(self):
        self.write_run("[node0:7070, node1:7070]")
        settings = {"consistency.policy": "hardsync", "training.epochs": 20, "cluster.lease": "60s",
                    "evaluation.every_epochs": 0}
        alone = cluster.run(self.directory / "run.yaml", settings)
        for server in (0, 1):
            self.services.server(server, server, *cluster.overrides({**settings, "run.after": "stay"}))
        for worker in (0, 1):
            self.services.worker(2 + worker, worker, "node0:7070", "--worker", worker)
        cluster.wait_until(lambda: int(self.status("node0:7070").get("updates", 0)) >= 50, "some updates")

        pulled = (1, 3)  # The nodes of a server and of a worker.
        for node in pulled:
            self.net.pull_cable(node)
        time.sleep(PULLED_S)
        updates = int(self.status("node0:7070")["updates"])
        for node in pulled:
            self.net.plug_cable(node)

        for worker in (0, 1):
            self.assertEqual(self.services.exit_code(f"worker-{worker}"), 0, self.services.logs())
        status = self.status("node0:7070")
        self.assertLess(updates, int(status["updates"]), "the run was over before")
        self.assertEqual(status["weights_sha256"], alone["weights_sha256"])

    def test_a_worker_on_another_machine_that_must_use_a_local_socket_says_why_it_cannot(self):
        self.write_run("[node0:7070, node1:7070]", ACCEPTED + "wire: {transport: unix}\n")
        self.services.server(0, 0)
        self.services.server(1, 1)
        for worker in (0, 1):
            self.services.worker(2 + worker, worker, "node0:7070")

        self.assertEqual(self.services.exit_code("worker-0"), 78, self.services.logs())
        self.assertIn("wire.transport is unix, and the shard at node", self.services.logs())

    def test_certificates_that_are_renewed_in_time_keep_a_cluster_going(self):
        certs = self.directory / "certs"
        ca = ["--ca", certs / "ca.crt"]
        ends = time.time() + CERTIFICATE_S
        for stem, member, *hosts in (("server-0", "server/0", "node0"), ("server-1", "server/1", "node1"),
                                     ("worker", "worker/*"), ("operator", "operator")):
            cluster.make_certificate(certs, stem, member, *hosts, ends=CERTIFICATE_S / 3600,
                                     run="machines")
        self.write_run("[node0:7070, node1:7070]", f"security: {{mtls: {{ca: {certs}/ca.crt}}}}\n")
        for shard in (0, 1):
            self.services.server(shard, shard, "--set", "training.epochs=100000")
        for worker in (0, 1):
            self.services.worker(2 + worker, worker, "node0:7070", *ca)

        def pushes(worker):
            status = self.status("node0:7070", *ca)
            return sum(int(line["pushes"]) for line in status.get("workers", [])
                       if line["worker"] == worker)

        for worker in (0, 1):
            cluster.wait_until(lambda worker=worker: pushes(worker) > 20, "a worker to push")
        self.assertLess(time.time(), ends, "the certificates ended before they were of use")
        cluster.psctl("certs", "renew", certs)
        cluster.wait_until(lambda: time.time() > ends + 1, "the old certificates to end")
        before = pushes(0), pushes(1)
        self.services.worker(3, 2, "node0:7070", *ca)
        cluster.wait_until(lambda: pushes(2) > 20, "a worker to join with what was renewed")
        for worker in (0, 1):
            self.assertGreater(pushes(worker), before[worker], self.services.logs())
        self.assertNotIn("incarnation=4", self.services.logs(), "nobody had to join again")
        self.assertIn("audit event=joined identity=slipstream://run/machines/worker/*",
                      self.services.logs())

    def test_off_loopback_a_server_refuses_unless_the_risk_is_accepted(self):
        self.write_run("[node0:7070, node1:7070]", "")
        self.services.server(0, 0)
        self.assertEqual(self.services.exit_code("server-0"), 78, self.services.logs())
        self.assertIn("node0:7070\" is not on loopback", self.services.logs())

        self.write_run("[localhost:7070, localhost:7071]", "")
        self.services.server(1, 1, "--listen", "10.77.0.2:7071")
        self.assertEqual(self.services.exit_code("server-1"), 78, self.services.logs())
        self.assertIn("plaintext: accept_the_risk", self.services.logs())


if __name__ == "__main__":
    unittest.main()
