#!/usr/bin/env python3
"""Measures how much of their communication workers hide, with and without a tree, over slow links.

    sudo python3 tests/benchmarks/tree_overlap.py BIN_DIR [--help]

BIN_DIR has ps_server, ps_worker and psctl. The cluster is emulated on this machine: the server and each
node of FANOUT workers have a network namespace of their own, joined by a bridge, and each namespace sends
and receives at MBIT megabits per second at most (tc's token bucket). Every byte really moves: through the
kernel's TCP between nodes, through shared memory within one. Only computing is emulated: a worker
computes a tiny mini-batch and then waits for COMPUTE milliseconds (testing.workers), so that many workers
fit one processor.

Policy is 1-softsync. Three runs: every worker talks to the server ("base"); an aggregator on each node
("tree"); the tree, with worker.lanes: free ("free"). Overlap is compute / (compute + communication that
was not hidden), the mean over the workers, from the status at the end. It is told twice: "steady" is that
of the middle half of each worker's steps; "whole" counts also the first weights, which come over the same
links, and the end of the work. Beside it stands the prediction of a cost model. Its unit of time is M / B,
which the server's link takes for the model once. `senders` (workers, or with a tree nodes) compute for a
time c, queue for the server's link with the gradient, and queue again with the weights. So it is a closed
network of queues, and mean value analysis gives the length of a step. With free lanes both directions go on
beside computing, and a step lasts max(c, nodes): nodes / c of the server's link is in use, which --fanout
sets. The first weights add to the whole run one time of the link for each worker, since workers pull them
from the server themselves; with free lanes, where their aggregator does it for them, for each node.
"""
import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

SERVER = "10.77.0.1"
PORT = 7070
START_S = 120
STOP_S = 10

RUN = """
version: 1
name: tree-overlap
seed: {seed}
model:
  input: [1, 28, 28]
  layers: [flatten, dense: {{units: {hidden}}}, relu, dense: {{units: 10}}]
  loss: cross_entropy
data: {{format: synthetic, train_examples: {examples}, test_examples: 100}}
training: {{batch_size: 4, epochs: 1}}
consistency: {{policy: softsync, n: 1}}
optimizer: {{kind: sgd, learning_rate: 0.001}}
worker: {{algorithm: gradient{lanes}}}
cluster:
  servers: ["{server}:{port}"]
  workers: {workers}
  lease: 60s
{tree}
run: {{after: stay}}
security: {{plaintext: accept_the_risk}}
testing: {{workers: [{delays}]}}
"""


def queued_step(compute, senders):
    """Returns how long a step takes `senders` that compute, then queue at two links that serve one of
    them in a unit of time (mean value analysis: Reiser and Lavenberg, 1980)."""
    waiting = 0.0  # The mean number in each queue.
    step = 0.0
    for number in range(1, senders + 1):
        response = 1 + waiting
        step = compute + 2 * response
        waiting = number / step * response
    return step


def compute_for(overlap, senders):
    """Returns how long computing takes if `senders` hide this share of it and of communication."""
    low, high = 0.0, senders / (1 - overlap)
    for _ in range(60):
        compute = (low + high) / 2
        if compute / queued_step(compute, senders) < overlap:
            low = compute
        else:
            high = compute
    return high


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def shape(mbit, device, inside=()):
    subprocess.run([*inside, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{mbit}mbit",
                    "burst", "64kb", "limit", "512kb"], check=True)


@contextlib.contextmanager
def links(places, mbit):
    """Makes the bridge, and a namespace for each place, whose link carries so much each way."""
    with contextlib.ExitStack() as undo:
        ip("link", "add", "treebr", "type", "bridge")
        undo.callback(ip, "link", "del", "treebr")
        ip("link", "set", "treebr", "up")
        for number, place in enumerate(places):
            ip("netns", "add", place)
            undo.callback(ip, "netns", "del", place)
            ip("link", "add", f"tree{number}", "type", "veth", "peer", "name", "eth0", "netns", place)
            undo.callback(ip, "link", "del", f"tree{number}")
            ip("link", "set", f"tree{number}", "master", "treebr", "up")
            ip("-n", place, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
            ip("-n", place, "link", "set", "eth0", "up")
            ip("-n", place, "link", "set", "lo", "up")
            shape(mbit, f"tree{number}")
            shape(mbit, "eth0", ["ip", "netns", "exec", place])
        yield


class Cluster:
    """The processes of one run."""

    def __init__(self, bin_dir, directory):
        self.bin_dir = bin_dir
        self.directory = directory
        self.processes = []

    def start(self, place, program, *words):
        log = open(self.directory / f"{len(self.processes)}.log", "w")
        self.processes.append(subprocess.Popen(
            ["ip", "netns", "exec", place, str(self.bin_dir / program), *map(str, words)],
            stdout=log, stderr=subprocess.STDOUT))

    def status(self):
        asked = subprocess.run(
            ["ip", "netns", "exec", "tree-server", str(self.bin_dir / "psctl"), "status",
             "--coordinator", f"{SERVER}:{PORT}", "--output", "json"], capture_output=True, text=True)
        return json.loads(asked.stdout) if asked.returncode == 0 else {}

    def stop(self):
        for process in self.processes:
            process.terminate()
        deadline = time.monotonic() + STOP_S
        for process in self.processes:
            try:
                process.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def measure(asked, kind, compute_ms):
    """Runs one cluster to its end. Returns its final status."""
    nodes = -(-asked.workers // asked.fanout)
    places = ["tree-server"] + [f"tree-node{node}" for node in range(nodes)]
    with tempfile.TemporaryDirectory() as name, links(places, asked.mbit):
        directory = pathlib.Path(name)
        config = directory / "run.yaml"
        config.write_text(RUN.format(
            seed=asked.seed, server=SERVER, port=PORT, workers=asked.workers, hidden=asked.hidden,
            tree="" if kind == "base" else f"  tree: {{fanout: {asked.fanout}}}",
            lanes=", lanes: free" if kind == "free" else "",
            examples=4 * asked.workers * asked.steps,
            delays=", ".join([f"{{delay: {compute_ms}ms}}"] * asked.workers)))
        cluster = Cluster(asked.bin_dir, directory)
        try:
            cluster.start("tree-server", "ps_server", "--config", config, "--shard", 0)
            for group in range(0 if kind == "base" else nodes):
                cluster.start(places[group + 1], "ps_server", "--config", config, "--shard", 0,
                              "--aggregate", group, "--listen", f"10.77.0.{group + 2}:7171")
            for worker in range(asked.workers):
                cluster.start(places[worker // asked.fanout + 1], "ps_worker", "--coordinator",
                              f"{SERVER}:{PORT}", "--worker", worker)
            return await_end(cluster, asked)
        finally:
            cluster.stop()


def await_end(cluster, asked):
    deadline = time.monotonic() + START_S + asked.seconds_max
    while time.monotonic() < deadline:
        status = cluster.status()
        if status.get("phase") == "FAILED":
            sys.exit(f"the run failed: {status['failure']}")
        if status.get("phase") == "FINISHED":
            return status
        if any(process.poll() for process in cluster.processes):
            break
        time.sleep(1)
    logs = sorted(cluster.directory.glob("*.log"))
    sys.exit("the run did not end\n" + "\n".join(log.read_text()[-500:] for log in logs[:3]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=54)
    parser.add_argument("--fanout", type=int, default=18)
    parser.add_argument("--mbit", type=int, default=40)
    parser.add_argument("--hidden", type=int, default=314, help="sets the model's size (1 MB)")
    parser.add_argument("--steps", type=int, default=60, help="of each worker; 12 do for the base")
    parser.add_argument("--base-overlap", type=float, default=0.1152,
                        help="what the base is to hide by the model, which sets the time to compute")
    parser.add_argument("--only", choices=["base", "tree", "free"], action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds-max", type=int, default=600)
    asked = parser.parse_args()
    nodes = -(-asked.workers // asked.fanout)
    parameters = asked.hidden * (784 + 1) + (asked.hidden + 1) * 10
    once = 4 * parameters * 8 / (asked.mbit * 1e6)
    compute = compute_for(asked.base_overlap, asked.workers)
    steps = {"base": queued_step(compute, asked.workers), "tree": queued_step(compute, nodes),
             "free": max(compute, nodes)}
    first = {"base": asked.workers, "tree": asked.workers, "free": nodes}
    print(f"{parameters} parameters, {once:.3f} s of the server's link; a mini-batch takes "
          f"{compute * once:.3f} s; free lanes need {nodes / compute:.0%} of the link")
    for kind in asked.only or ["base", "tree", "free"]:
        status = measure(asked, kind, round(1000 * compute * once))
        workers = status["workers"]

        def mean(figure):
            return round(sum(worker[figure] for worker in workers) / len(workers), 4)

        print(json.dumps({
            "kind": kind, "steady": mean("steady_overlap"), "whole": mean("overlap"),
            "predicted_steady": round(compute / steps[kind], 4),
            "predicted_whole": round(compute / (steps[kind] + first[kind] / asked.steps), 4),
            "predicted_step_s": round((steps[kind] + first[kind] / asked.steps) * once, 2),
            "step_s": round(status["seconds"] / asked.steps, 2),
            "sigma": round(status["staleness"].get("mean", 0), 2),
            "composites": sum(int(s.get("composites", 0)) for s in status["shards"]),
            "sent_back": sum(int(a.get("sent_back", 0)) for a in status.get("aggregators", [])),
            "pushes": status["pushes"], "seconds": round(status["seconds"], 1)}), flush=True)


if __name__ == "__main__":
    main()
