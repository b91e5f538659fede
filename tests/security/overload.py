#!/usr/bin/env python3
"""Measures how a server behaves when more members push to it than it has room for: promise P10.

    python3 tests/security/overload.py [--level LEVEL] [--workers N] [--times T] [--kib KIB]
                                       [--seconds S]

N workers (2) push and pull a model of KIB KiB (4096) without computing, as fast as they can, to a
server that has room for N pushes at a time. Then T (4) times as many workers do, each for S seconds
(60), under durability.level LEVEL (memory). Prints the pushes per second, the server's peak memory,
and the number of pushes that the shard told to retry later. Exits 1 if the goodput falls below 80 %
of that of the N workers, if memory grows by more than 64 MiB and the room of one push for each
added worker, or if no push was told to retry later. Under synced an added worker also has the room
of a version: its push and the version that answers it wait for the disk. A push that is refused because
too much waits for the log is not counted by the shard. Files are below TMPDIR.
"""
import argparse
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).absolute().parents[1]
sys.path += [str(ROOT / "integration"), str(ROOT / "benchmarks" / "harness")]
import cluster
import process_figures
from contender_process import START_S, ContenderProcess
from programs import OWN_BUILD
from slipstream_contender import RUN_YAML

GOODPUT_MIN = 0.8
SPARE_MIB = 64
EXCHANGES_MAX = 10 ** 7  # More than fit into the time.


class Load:
    """Workers that exchange until the block ends."""

    def __init__(self, workers, kib, room, directory, level):
        self.workers, self.kib, self.directory = workers, kib, pathlib.Path(directory)
        config = cluster.write_config(self.directory, RUN_YAML.format(
            policy="async", rule="sgd", servers="localhost:7070", workers=workers, transport="tcp"))
        settings = {"cluster.servers": "localhost:7070", "durability.level": level,
                    "wire.push_bytes_max": room * (kib << 10)}
        if level != "memory":
            settings["durability.directory"] = self.directory / "checkpoints"
        self.live = cluster.Cluster(config, settings, self.directory, workers=0)
        self.drivers = []

    def __enter__(self):
        for worker in range(self.workers):
            self.drivers.append(ContenderProcess(
                f"driver-{worker}",
                [OWN_BUILD.program("tests/benchmarks/exchange_driver"), "--coordinator",
                 self.live.coordinator, "--worker", worker, "--bytes", self.kib << 10],
                self.directory))
        for driver in self.drivers:
            driver.answer("ready", START_S)
        for driver in self.drivers:
            driver.ask(f"run {EXCHANGES_MAX}")
        return self

    def __exit__(self, *_):
        for driver in self.drivers:
            driver.process.kill()
            driver.process.wait()
        self.live.stop()

    def measure(self, seconds):
        """Returns pushes per second, the peak memory in MiB, and the number of pushes told to retry
        later."""
        self.live.wait_for(lambda status: int(status["pushes"]) > self.workers, "pushes to begin")
        before, begun = self.live.status(), time.monotonic()
        time.sleep(seconds)
        after, took = self.live.status(), time.monotonic() - begun
        peak = int(process_figures.status(self.live.servers[0].pid)["VmHWM"]) / 1024
        return ((int(after["pushes"]) - int(before["pushes"])) / took, peak,
                int(after.get("refusals", {}).get("RETRY_LATER", 0)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", choices=("memory", "checkpoint", "synced"), default="memory")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--kib", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    found = []
    for workers in (arguments.workers, arguments.workers * arguments.times):
        with cluster.scratch() as directory, \
                Load(workers, arguments.kib, arguments.workers, directory,
                     arguments.level) as load:
            found.append(load.measure(arguments.seconds))
        rate, peak, later = found[-1]
        print(f"{workers:3} workers: {rate:7.1f} pushes/s, peak {peak:6.1f} MiB, {later} told to come later",
              flush=True)
    (rate, peak, _), (rate_over, peak_over, later) = found
    of_worker = arguments.kib / 1024 * (2 if arguments.level == "synced" else 1)
    grown_max = SPARE_MIB + arguments.workers * (arguments.times - 1) * of_worker
    broken = [promise for promise, is_kept in (
        ("goodput", rate_over >= GOODPUT_MIN * rate), ("memory", peak_over - peak <= grown_max),
        ("told to come later", later > 0)) if not is_kept]
    print(f"goodput {rate_over / rate:.2f} of that without overload; broken: {broken or 'nothing'}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
