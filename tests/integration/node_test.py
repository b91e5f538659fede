"""psctl node: three nodes of a run, which find each other, are killed, leave and go on."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
NODES = 3
BATCH_EXAMPLES = 32
EXAMPLES = BATCH_EXAMPLES * 120
SETTINGS = {"data.train_examples": EXAMPLES, "evaluation.every_epochs": 0,
            "testing.push_delay_max": "60ms", "cluster.lease": cluster.LEASE}
SAVING = {"durability.level": "synced", "durability.interval": "200ms"}
SAVED = 79


def free_ports(count):
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def children_of(process):
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(child) for child in children.split()]


class Nodes:
    """Three nodes on this machine, each a psctl node with its servers and workers."""

    def __init__(self, directory, attempt, extra=(), settings=SAVING, ranks=range(NODES),
                 hosts=None):
        self.run = pathlib.Path(directory) / "run"
        self.attempt = self.run / f"attempt-{attempt}"
        self.logs = [pathlib.Path(directory) / f"node-{rank}-{attempt}.log" for rank in range(NODES)]
        self.arguments = ["--workers-per-node", "2,1,1", *extra,
                          *cluster.overrides({**SETTINGS, **settings})]
        self.number = attempt
        self.hosts = hosts or {}
        self.nodes = [self.start(rank) for rank in ranks]

    def start(self, rank):
        """Starts the psctl of a node, as Slurm does."""
        environment = {**os.environ, "SLURM_PROCID": str(rank), "SLURM_NTASKS": str(NODES),
                       "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7",
                       "SLURM_RESTART_COUNT": str(self.number),
                       "SLIPSTREAM_HOST": self.hosts.get(rank, "localhost")}
        with open(self.logs[rank], "ab") as log:
            return subprocess.Popen(
                [cluster.program("deploy/psctl/psctl"), "node", str(CONFIG), "--run-dir",
                 str(self.run), *self.arguments], env=environment, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.kill()  # Its processes end with it.
            node.wait()

    def text(self):
        return "\n".join(log.read_text() for log in self.logs if log.exists())

    def updates(self):
        """Returns the updates in the last whole line of the metrics; 0 without one."""
        path = self.attempt / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        whole = [line for line in lines if line.endswith("\n")]
        return json.loads(whole[-1])["updates"] if whole else 0

    def wait_for_updates(self, count):
        cluster.wait_until(lambda: self.updates() >= count
                           or any(node.poll() is not None for node in self.nodes),
                           f"{count} updates")

    def child(self, rank, *words):
        """Returns the id of a node's process that has these words among its arguments."""
        for child in children_of(self.nodes[rank]):
            arguments = pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0")
            if all(word in arguments for word in words):
                return child
        raise AssertionError(f"node {rank} has no process with {words}\n{self.text()}")

    def children(self):
        return [child for node in self.nodes for child in children_of(node)]

    def codes(self):
        return [node.wait(timeout=cluster.DEADLINE_S) for node in self.nodes]

    def summary(self):
        return json.loads((self.attempt / "summary.json").read_text())


class NodeTest(unittest.TestCase):
    def test_nodes_find_each_other_and_what_is_killed_comes_back(self):
        # The run must not be over before the psctl that is killed has come back and seen it.
        settings = {**SAVING, "data.train_examples": 4 * EXAMPLES}
        with cluster.scratch() as directory, \
                Nodes(directory, 0, ["--restart"], settings=settings) as nodes:
            nodes.wait_for_updates(5)
            os.kill(nodes.child(1, "--shard", "1"), signal.SIGKILL)
            os.kill(nodes.child(2, "--worker", "3"), signal.SIGKILL)
            cluster.wait_until(lambda: nodes.text().count("it starts again") == 2, "two restarts")
            for rank in (0, 1):
                nodes.nodes[rank].kill()
                nodes.nodes[rank].wait()
                nodes.nodes[rank] = nodes.start(rank)
            self.assertEqual(nodes.codes(), [0, 0, 0], nodes.text())
            text = nodes.text()
            summary = nodes.summary()
            logs = {path.name for path in (nodes.attempt / "logs").glob("*.log")}
        self.assertIn("node 1 of 3 (Slurm): server 1, worker 2;", text)
        self.assertIn("shard 1's server was killed by signal 9 (Killed); it starts again", text)
        self.assertIn("worker 3 was killed by signal 9 (Killed); it starts again in 250 ms", text)
        self.assertEqual(summary["ended_by"], "epochs")
        self.assertGreaterEqual(summary["examples"], 4 * EXAMPLES)
        self.assertEqual(logs, {"server-0.log", "server-1.log", "worker-0.log", "worker-1.log",
                                "worker-2.log", "worker-3.log"})

    def test_a_run_whose_processes_are_all_told_to_end_goes_on_where_it_was(self):
        with cluster.scratch() as directory:
            with Nodes(directory, 0) as nodes:
                nodes.wait_for_updates(10)
                for process in nodes.children():
                    os.kill(process, signal.SIGTERM)
                for node in nodes.nodes:
                    node.send_signal(signal.SIGTERM)
                self.assertEqual(nodes.codes(), [SAVED] * NODES, nodes.text())
                first = nodes.summary()
            self.assertEqual(first["exit_code"], SAVED)
            self.assertLess(first["examples"], EXAMPLES, "the run was over before")
            with Nodes(directory, 1) as nodes:
                self.assertEqual(nodes.codes(), [0] * NODES, nodes.text())
                last = nodes.summary()
        self.assertEqual(last["run"], first["run"])
        self.assertLessEqual(first["updates"], last["updates"])
        self.assertEqual([server["generation"] for server in last["servers"]], [0, 0])
        self.assertEqual(last["ended_by"], "epochs")
        # None is lost. What workers push when they leave may count, and is computed again.
        self.assertGreaterEqual(last["examples"], EXAMPLES)

    def test_without_checkpoints_a_signal_ends_training_and_saves_the_weights(self):
        with cluster.scratch() as directory, Nodes(directory, 0, settings={}) as nodes:
            nodes.wait_for_updates(5)
            for node in nodes.nodes:
                node.send_signal(signal.SIGTERM)
            self.assertEqual(nodes.codes(), [128 + signal.SIGTERM] * NODES, nodes.text())
            self.assertIn("; the weights are in ", nodes.text())
            self.assertLess(nodes.summary()["examples"], EXAMPLES, "the run was over before")

    def test_without_a_node_with_a_server_all_leave_and_go_on_together(self):
        settings = {**SAVING, "cluster.start_timeout": "12s"}
        with cluster.scratch() as directory:
            for attempt, (killed, said) in enumerate(((1, "the server of shard 1 is silent"),
                                                      (0, "the server of shard 0 does not answer"))):
                with Nodes(directory, attempt, settings=settings) as nodes:
                    nodes.wait_for_updates(6 * (attempt + 1))
                    nodes.nodes[killed].kill()
                    codes = nodes.codes()
                    self.assertEqual(codes.pop(killed), -signal.SIGKILL)
                    self.assertEqual(codes, [SAVED] * (NODES - 1), nodes.text())
                    self.assertIn(said, nodes.text())
            with Nodes(directory, 2, settings=settings, ranks=[0, 2]) as nodes:
                self.assertEqual(nodes.codes(), [SAVED] * 2, nodes.text())
                self.assertIn("the server of shard 1 is silent", nodes.text())
            with Nodes(directory, 3, settings=settings) as nodes:
                self.assertEqual(nodes.codes(), [0] * NODES, nodes.text())
                self.assertGreaterEqual(nodes.summary()["examples"], EXAMPLES)

    @unittest.skipUnless(shutil.which("mpirun"), "Open MPI is not installed")
    def test_open_mpi_starts_a_node_for_each_of_its_processes(self):
        with cluster.scratch() as directory:
            done = subprocess.run(
                ["mpirun", "--oversubscribe", "-n", "6", cluster.program("deploy/psctl/psctl"), "node",
                 str(CONFIG), "--run-dir", directory, *cluster.overrides({"cluster.workers": 6})],
                env={**os.environ, "SLIPSTREAM_HOST": "localhost", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
                text=True, timeout=cluster.DEADLINE_S, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("node 5 of 6 (Open MPI): worker 5;", done.stderr)
        self.assertIn("ended by        epochs", done.stdout)

    def test_nodes_that_know_each_other_by_names_end_with_what_failed_their_run(self):
        ports = free_ports(2)
        settings = {"optimizer.learning_rate": 1e30,
                    "cluster.servers": ",".join(f"localhost:{port}" for port in ports)}
        with cluster.scratch() as directory, \
                Nodes(directory, 0, ["--rendezvous", "names"], settings) as nodes:
            codes = nodes.codes()
            text = nodes.text()
        self.assertEqual(codes[0], cluster.DIVERGED, text)
        # Others may have had no time to ask why the run has failed.
        self.assertIn(codes[1], (cluster.RUN_FAILED, cluster.DIVERGED), text)
        self.assertIn(codes[2], (cluster.RUN_FAILED, cluster.DIVERGED), text)

    def test_a_server_that_would_only_fail_again_ends_all_nodes(self):
        with cluster.scratch() as directory, \
                Nodes(directory, 0, hosts={1: "192.0.2.1"}) as nodes:
            self.assertEqual(nodes.codes(), [78] * NODES, nodes.text())
            self.assertEqual(nodes.summary()["exit_code"], 78)

    def test_a_node_that_stays_away_is_missed_by_name(self):
        environment = {**os.environ, "PMI_RANK": "1", "PMI_SIZE": "2", "SLIPSTREAM_HOST": "localhost"}
        with cluster.scratch() as directory:
            done = subprocess.run(
                [cluster.program("deploy/psctl/psctl"), "node", str(CONFIG), "--run-dir", directory,
                 "--set", "cluster.start_timeout=1s"], env=environment, text=True,
                timeout=cluster.DEADLINE_S, capture_output=True, check=False)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("server 0 did not listen within 1.00 s", done.stderr)
        self.assertIn("attempt-0/logs/server-0.port, which all nodes must see", done.stderr)


if __name__ == "__main__":
    unittest.main()
