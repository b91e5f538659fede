#!/usr/bin/env python3
"""Recomputes every staleness, vector clock and histogram of a run from its push logs alone, and
compares them with the figures that the run reported. It shares no code with the servers.

    psctl run run.yaml --run-dir RUN --push-log
    recompute_staleness.py RUN

compares them with the run's summary.json, and

    psctl status --coordinator HOST:PORT -o json > status.json
    recompute_staleness.py status.json push-log-0.csv push-log-1.csv

with a status, which also tells of each worker on each shard. Prints the figures and each difference,
and exits 1 if there is any. Two kinds of logs are not compared: those of a run that was not over
when its summary was written, whose figures are of a moment before its end, and a log that was cut
off, which lacks pushes.
"""
import collections
import csv
import json
import math
import pathlib
import sys

BUCKETS_MAX = 1024
CLOCKS_KEPT = 16


def read_rows(path):
    """Yields all lines, in the order of decisions."""
    with open(path, encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def gradients_of(rows):
    """Yields the pushes that joined an update, as (worker, base, version, row)."""
    for row in rows:
        if row["outcome"] in ("APPLIED", "BUFFERED") and int(row["examples"]) > 0:
            yield int(row["worker"]), int(row["base"]), int(row["version"]), row


def percentile(histogram, quantile):
    rank = math.ceil(quantile * sum(histogram))
    counted = 0
    for value, count in enumerate(histogram):
        counted += count
        if counted >= rank and counted > 0:
            return value
    return 0


def histogram(sigmas):
    counts = [0] * (min(max(sigmas, default=-1), BUCKETS_MAX - 1) + 1)
    for sigma in sigmas:
        counts[min(sigma, BUCKETS_MAX - 1)] += 1
    return counts


class Recomputed:
    """The figures of one shard. `where` names its log, and `rows` are the log's lines, in the order
    of decisions."""

    def __init__(self, where, rows):
        self.differences = []
        self.sigmas = []
        self.by_worker = collections.defaultdict(list)
        self.clocks = collections.OrderedDict()
        sequences = collections.defaultdict(int)
        for worker, base, version, row in gradients_of(rows):
            # The push is part of the update version − 1 → version.
            sigma = (version - 1) - base
            if sigma != int(row["staleness"]):
                self.differences.append(f"{where}: {row}: staleness is {sigma}")
            key = (worker, int(row["incarnation"]))
            if int(row["sequence"]) <= sequences[key]:
                self.differences.append(f"{where}: {row}: counted twice or out of order")
            sequences[key] = int(row["sequence"])
            self.sigmas.append(sigma)
            self.by_worker[worker].append(sigma)
            self.clocks.setdefault(version, []).append(base)


def check(differences, where, what, said, computed):
    if isinstance(computed, float):
        same = abs(float(said) - computed) <= 1e-9 * max(1.0, abs(computed))
    else:
        same = said == computed
    if not same:
        differences.append(f"{where}: {what}: status says {said}, the log gives {computed}")


def compare_staleness(differences, where, said, sigmas):
    counts = histogram(sigmas)
    check(differences, where, "count", int(said["count"]), len(sigmas))
    check(differences, where, "mean", said["mean"], sum(sigmas) / max(1, len(sigmas)))
    check(differences, where, "max", int(said["max"]), max(sigmas, default=0))
    for name, quantile in (("p50", 0.50), ("p99", 0.99)):
        value = percentile(counts, quantile)
        if value == BUCKETS_MAX - 1:  # The last bucket counts all larger values.
            value = max(sigmas)
        check(differences, where, name, int(said[name]), value)
    check(differences, where, "histogram", [int(count) for count in said["histogram"]], counts)


def compare_shard(differences, where, shard, computed):
    compare_staleness(differences, where, shard["staleness"], computed.sigmas)
    newest = list(computed.clocks.items())[-CLOCKS_KEPT:]
    said = [(int(clock["version"]), [int(base) for base in clock["base_versions"]])
            for clock in shard["vector_clocks"]]
    check(differences, where, "vector clocks (bases sorted)",
          [(version, sorted(bases)) for version, bases in said],
          [(version, sorted(bases)) for version, bases in newest])
    for clock, (version, bases) in zip(shard["vector_clocks"], newest):
        check(differences, where, f"mean staleness of update {version}", clock["mean_staleness"],
              (version - 1) - sum(bases) / len(bases))
    for worker in shard.get("workers", ()):  # A summary has no workers per shard.
        sigmas = computed.by_worker[int(worker["worker"])]
        name = f"worker {worker['worker']}"
        check(differences, where, f"{name} pushes", int(worker["pushes"]), len(sigmas))
        if not sigmas:
            continue  # The worker came when all work had been done.
        check(differences, where, f"{name} last", int(worker["last_staleness"]), sigmas[-1])
        check(differences, where, f"{name} mean", worker["mean_staleness"],
              sum(sigmas) / len(sigmas))


def compare(log_paths, status):
    """Returns all differences between the logs (in the order of shards) and the status, as
    lines."""
    differences = []
    all_sigmas = []
    for shard, path in zip(status["shards"], log_paths):
        computed = Recomputed(path, read_rows(path))
        differences += computed.differences
        all_sigmas += computed.sigmas
        compare_shard(differences, f"shard {shard['shard']}", shard, computed)
    compare_staleness(differences, "run", status["staleness"], all_sigmas)
    return differences


def compare_with_part(shard, rows):
    """Compares one shard of a status with its log, which may lack lines because a server was
    killed. Returns the differences, and the number of gradients that have no line."""
    where = f"shard {shard['shard']}"
    computed = Recomputed(where, rows)
    differences = computed.differences
    missing = int(shard["staleness"]["count"]) - len(computed.sigmas)
    if missing == 0:
        compare_shard(differences, where, shard, computed)
        return differences, 0
    counts = histogram(computed.sigmas)
    said = [int(count) for count in shard["staleness"]["histogram"]]
    if len(counts) > len(said) or any(count > most for count, most in zip(counts, said)):
        differences.append(f"{where}: histogram: status says {said}, the log alone gives {counts}")
    return differences, missing


def expect_each_batch_once(test, directory, status, batches):
    """Has the test fail unless the logs of both servers in the directory have each of so many mini-batches
    once, and the status says what they say."""
    logs = sorted(pathlib.Path(directory).glob("push-log-*.csv"))
    test.assertEqual(len(logs), 2)
    test.assertEqual(compare(logs, status), [])
    for log in logs:
        counted = sorted(int(row["batch"]) for row in read_rows(log))
        test.assertEqual(counted, list(range(batches)), log.name)


def describe(log_paths):
    """Returns the figures of all shards together, in one line."""
    sigmas = sorted(sigma for path in log_paths
                    for sigma in Recomputed(path, read_rows(path)).sigmas)
    counts = histogram(sigmas)
    return (f"{len(sigmas)} gradients over {len(log_paths)} shards: mean staleness "
            f"{sum(sigmas) / max(1, len(sigmas)):.3f}, p50 {percentile(counts, 0.50)}, "
            f"p99 {percentile(counts, 0.99)}, max {max(sigmas, default=0)}")


def of_directory(directory):
    """Returns the push logs of a run directory, in the order of shards; the figures of its summary as
    a status; and the reason why the logs cannot be compared with them, or "" if they can."""
    summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
    logs = sorted(directory.glob("push-log-*.csv"),
                  key=lambda path: int(path.stem.rsplit("-", 1)[1]))
    status = {"staleness": summary["staleness"], "shards": summary["servers"]}
    if summary["phase"] != "FINISHED":
        return logs, status, f"the summary is that of a run in {summary['phase']}"
    if not summary["push_logs_complete"]:
        return logs, status, "not all push logs are complete"
    return logs, status, ""


def main(arguments):
    directory = pathlib.Path(arguments[0]) if len(arguments) == 1 else None
    if not arguments or (directory is not None and not directory.is_dir()):
        print(__doc__, file=sys.stderr)
        return 2
    why_not = ""
    if directory is not None:
        logs, status, why_not = of_directory(directory)
        if not logs:
            print(f"{directory} has no push logs: psctl run writes them there with --push-log",
                  file=sys.stderr)
            return 2
    else:
        logs = arguments[1:]
        status = json.loads(pathlib.Path(arguments[0]).read_text(encoding="utf-8"))
    print(describe(logs))
    if why_not:
        print(f"compared with nothing: {why_not}")
        return 0
    differences = compare(logs, status)
    print("\n".join(differences) if differences else "every figure is the same")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
