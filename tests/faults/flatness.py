#!/usr/bin/env python3
"""Measures whether the processes of a long run stay as small as they are: promise P20.

    python3 tests/faults/flatness.py [--minutes M] [--level LEVEL] [--policy POLICY] [--workers N]

Trains for M minutes (10) with two servers and N workers (3), under durability.level LEVEL (synced)
and policy POLICY (softsync), with a checkpoint every second. Twice a second it takes the memory,
file descriptors and threads of each process and the size of the directory with checkpoints and
logs. Prints for each of them the mean and the slope in the second half of the run, by least
squares, and how much the slope adds up to in that half. Exits 1 if that is more than 4 MiB and 2 %
for memory, half a descriptor or thread, or 10 % for the directory.
"""
import argparse
import dataclasses
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).absolute().parents[1]
sys.path.append(str(ROOT / "integration"))
import cluster
import process_figures

CONFIG = ROOT / "integration" / "small_run.yaml"


@dataclasses.dataclass(frozen=True)
class Figure:
    title: str
    unit: int = 1           # The size of the title's unit in that of the samples.
    added_max: float = 0.5  # This much may be added, in the samples' unit,
    share_max: float = 0    # and this share of the mean.


FIGURES = {"rss_kib": Figure("memory, MiB", 1024, 4 * 1024, 0.02),
           "descriptors": Figure("descriptors"), "threads": Figure("threads"),
           "bytes": Figure("directory, MiB", 1 << 20, 0, 0.1)}


def sample(live, checkpoints, seconds):
    """Returns the samples of the processes and of the directory, by name. Their progress is in
    seconds."""
    pids = {f"server {shard}": server.pid for shard, server in enumerate(live.servers)}
    pids |= {f"worker {worker}": process.pid for worker, process in live.workers.items()}
    begun = time.monotonic()
    directory = []

    def progress():
        elapsed = time.monotonic() - begun
        directory.append({"progress": elapsed, "bytes": process_figures.bytes_below(checkpoints)})
        return elapsed

    with process_figures.Sampler(pids.values(), progress) as sampler:
        threading.Event().wait(seconds)
    return {**{name: sampler.samples[pid] for name, pid in pids.items()}, "directory": directory}


def judge(name, samples, half):
    """Prints a line for each figure. Returns the titles of those that grow."""
    late = [each for each in samples if each["progress"] >= half]
    if not late or late[-1]["progress"] < 1.8 * half:
        return [f"{name}, which was not measured to the end,"]
    grown = []
    for key, figure in FIGURES.items():
        if key not in late[0]:
            continue
        mean = sum(each[key] for each in late) / len(late)
        slope = process_figures.slope(late, key)
        added = slope * half
        print(f"{name:12}{figure.title:16}{mean / figure.unit:10.1f}"
              f"{3600 * slope / figure.unit:12.2f}{added / figure.unit:10.3f}")
        if added > figure.added_max + figure.share_max * mean:
            grown.append(f"{figure.title} of {name}")
    return grown


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--level", choices=("memory", "checkpoint", "synced"), default="synced")
    parser.add_argument("--policy", default="softsync")
    parser.add_argument("--workers", type=int, default=3)
    arguments = parser.parse_args()
    seconds = 60 * arguments.minutes
    with cluster.scratch() as directory:
        checkpoints = pathlib.Path(directory) / "checkpoints"
        settings = {"consistency.policy": arguments.policy, "cluster.workers": arguments.workers,
                    "training.epochs": 100_000, "evaluation.every_epochs": 0,
                    "durability.level": arguments.level}
        if arguments.level != "memory":
            settings |= {"durability.directory": checkpoints, "durability.interval": "1s"}
        with cluster.Cluster(CONFIG, settings, directory, arguments.workers) as live:
            live.wait_for(lambda status: int(status["updates"]) > 0, "training to begin")
            samples = sample(live, checkpoints, seconds)
            status = live.status()
            ended = [name for name, process in (*enumerate(live.servers), *live.workers.items())
                     if process.poll() is not None]
    print(f"{status['updates']} updates in {seconds:.0f} s; the second half:\n"
          f"{'':28}{'mean':>10}{'per hour':>12}{'added':>10}")
    grown = [title for name, each in samples.items() for title in judge(name, each, seconds / 2)]
    print(f"growing: {', '.join(grown) or 'nothing'}" + (f"; ended: {ended}" if ended else ""))
    return 1 if grown or ended or status["phase"] != "TRAINING" else 0


if __name__ == "__main__":
    sys.exit(main())
