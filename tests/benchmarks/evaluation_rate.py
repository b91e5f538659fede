#!/usr/bin/env python3
"""Measures steps per second while a worker evaluates, against the rates before and after.

    PYTHONPATH=tests/integration python3 tests/benchmarks/evaluation_rate.py [WORKERS [POLICY [PRESET]]]

WORKERS (4) train PRESET (lenet5) under POLICY (async) on two servers with a test set so large that
an evaluation takes seconds. Steps are counted from status, twice a second. The workers' logs show
when evaluations ran. Prints one JSON object per evaluation with its seconds, the rates, and the
ratio of the rate during it to the mean of the rates just before and just after.
"""
import datetime
import json
import pathlib
import re
import statistics
import sys
import threading
import time

import cluster

CONFIG = pathlib.Path(__file__).parent.parent / "integration" / "small_run.yaml"
EPOCHS = 3
EVALUATED = re.compile(r"^(\S+Z) .* evaluated epoch=(\d+) .* seconds=([0-9.]+)")


def evaluations(directory):
    """Yields (begin, end) of each evaluation within training, in seconds since 1970."""
    for log in sorted(pathlib.Path(directory).glob("worker-*.log")):
        for line in log.read_text(encoding="utf-8").splitlines():
            found = EVALUATED.match(line)
            if found and int(found.group(2)) < EPOCHS:
                end = datetime.datetime.fromisoformat(found.group(1)).timestamp()
                yield end - float(found.group(3)), end


class Steps:
    """The number of steps done over time, interpolated between samples."""

    def __init__(self):
        self.samples = []  # (time, pushes)

    def sample(self, live, over):
        while not over.wait(0.5):
            try:
                status = live.status()
            except AssertionError:  # On a machine this busy, an answer may take too long.
                continue
            self.samples.append((time.time(), int(status["pushes"])))

    def at(self, moment):
        for (t0, n0), (t1, n1) in zip(self.samples, self.samples[1:]):
            if t0 <= moment <= t1:
                return n0 + (n1 - n0) * (moment - t0) / (t1 - t0)
        return None

    def rate(self, begin, end):
        before, after = self.at(begin), self.at(end)
        return None if before is None or after is None else (after - before) / (end - begin)


def measure(workers, policy, preset):
    settings = {"consistency.policy": policy, "cluster.workers": workers, "model.preset": preset,
                "cluster.servers": "localhost:7070,localhost:7071", "run.after": "stay",
                "optimizer.learning_rate": 0.002, "optimizer.staleness_scaling": "per_gradient",
                "data.train_examples": 120000, "data.test_examples": 60000,
                "training.epochs": EPOCHS}
    steps, over = Steps(), threading.Event()
    with cluster.scratch() as directory:
        with cluster.Cluster(CONFIG, settings, directory, workers=workers) as live:
            thread = threading.Thread(target=steps.sample, args=(live, over))
            thread.start()
            try:
                live.wait_finished(timeout=600)
            finally:
                over.set()
                thread.join()
        windows = sorted(evaluations(directory))
    for begin, end in windows:
        length = min(end - begin, 5)
        rates = {"before": steps.rate(begin - length, begin), "during": steps.rate(begin, end),
                 "after": steps.rate(end, end + length)}
        around = [rate for rate in (rates["before"], rates["after"]) if rate]
        ratio = rates["during"] / statistics.mean(around) if rates["during"] and around else None
        yield {"policy": policy, "workers": workers, "preset": preset,
               "evaluation_seconds": round(end - begin, 2),
               "steps_per_second": {name: rate and round(rate, 1) for name, rate in rates.items()},
               "ratio": ratio and round(ratio, 3)}


def main():
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    policy = sys.argv[2] if len(sys.argv) > 2 else "async"
    preset = sys.argv[3] if len(sys.argv) > 3 else "lenet5"
    for result in measure(workers, policy, preset):
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
