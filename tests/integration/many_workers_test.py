"""Many workers on a small machine: an epoch ends, no lease expires, and the servers do not grow."""
import json
import os
import pathlib
import sys
import unittest

import cluster
import process_figures

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
WORKERS = 64

# The number of gRPC's own threads follows the cores. Ours are some ten, and none belongs to a worker.
THREADS_MAX = 18 + 4 * os.cpu_count()


def run_epoch(policy, workers=WORKERS, steps=4096, directory=None):
    """Runs one epoch of `steps` mini-batches. Returns the last status and the servers' samples."""
    settings = {"consistency.policy": policy, "cluster.workers": workers, "training.batch_size": 4,
                "data.train_examples": 4 * steps, "data.test_examples": 500,
                "evaluation.every_epochs": 0,
                # Under async, staleness is about as large as the number of workers.
                "optimizer.learning_rate": 0.001, "optimizer.staleness_scaling": "per_gradient"}
    with cluster.Cluster(CONFIG, settings, directory, workers=workers) as live:
        pids = [server.pid for server in live.servers]

        def version():
            try:
                status = live.status()
            except AssertionError:  # On a machine this busy, an answer may take too long.
                return None
            return int(status["updates"]) if status["phase"] == "TRAINING" else None

        with process_figures.Sampler(pids, version) as sampler:
            status = live.wait_finished(timeout=max(cluster.DEADLINE_S, steps / 40))
        ends = {worker: process.wait(timeout=cluster.DEADLINE_S)
                for worker, process in live.workers.items()}
    return status, list(sampler.samples.values()), ends


def describe(samples):
    """Describes threads and memory in the second half of one server's samples, when all workers
    have connected."""
    half = samples[len(samples) // 2:]
    quarter = samples[len(samples) // 4]
    return {"threads_max": max(sample["threads"] for sample in half),
            "rss_mib_after_a_quarter": round(quarter["rss_kib"] / 1024, 1),
            "rss_mib": round(half[-1]["rss_kib"] / 1024, 1),
            "rss_kib_per_step": round(process_figures.slope(half, "rss_kib"), 3),
            "threads_per_step": round(process_figures.slope(half, "threads"), 6)}


class ManyWorkersTest(unittest.TestCase):
    def check(self, policy):
        with cluster.scratch() as directory:
            status, servers, ends = run_epoch(policy, directory=directory)
        self.assertEqual(set(ends.values()), {0})
        self.assertNotIn("dead", {worker["state"] for worker in status["workers"]})
        self.assertEqual(status["batches_done"], status["batches_total"])
        for server in servers:
            self.assertTrue(server, "nobody looked at the server while it trained")
            figures = describe(server)
            print(policy, f"{float(status['seconds']):.1f} s", figures)
            self.assertLessEqual(figures["threads_max"], THREADS_MAX)

    def test_hardsync_ends_its_epoch(self):
        self.check("hardsync")

    def test_softsync_ends_its_epoch(self):
        self.check("softsync")

    def test_async_ends_its_epoch(self):
        self.check("async")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--measure":
        steps_asked = int(sys.argv[2]) if len(sys.argv) > 2 else 4096
        for name in ("hardsync", "softsync", "async"):
            with cluster.scratch() as scratch:
                final, samples_of_servers, _ = run_epoch(name, steps=steps_asked, directory=scratch)
            print(json.dumps({"policy": name, "seconds": final["seconds"],
                              "examples_per_second": final["examples_per_second"],
                              "servers": [describe(one) for one in samples_of_servers]}), flush=True)
    else:
        unittest.main()
