"""Contenders that train with each level of durability, and the disk by itself."""
import csv
import dataclasses
import os
import shutil
import statistics
import time

import checkpoint_stall
import cluster
import process_figures
from contender import Contender, Setting, Turn, name_in
from programs import OWN_BUILD, wait_until
from slipstream_contender import choices
from training_contenders import SlipstreamTraining

# A step computes little, so that what counts is the exchange and what the server does about it.
RUN_YAML = """
version: 1
name: benchmark
model: {model}
data: {{format: synthetic, train_examples: 20000, test_examples: 100}}
training: {{batch_size: 1, epochs: 100000}}
consistency: {{policy: async}}
optimizer: {{kind: momentum, learning_rate: 0.0000001, momentum: 0.9}}
cluster: {{servers: ["localhost:7070"], workers: {workers}}}
evaluation: {{every_epochs: 0}}
durability: {{level: {level}{interval}}}
"""
RETURNS_AFTER = 20  # The server is killed when so many more updates were made than before.


@dataclasses.dataclass(frozen=True)
class DurabilitySetting(Setting):
    net: str = ""
    model: str = ""          # As run.yaml has it.
    interval: str = "10s"    # Between two checkpoints.


def read_pushes(path):
    """Returns the time and the version of each push of a push log, but for a line that is being
    written."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    rows = csv.DictReader(line for line in lines if line.endswith("\n"))
    return [(float(row["time"]), int(row["version"])) for row in rows]


class DurableTraining(SlipstreamTraining):
    """Runs of psctl with one level of durability. An exchange is a step of the worker."""

    def __init__(self, level, setting, directory, build=OWN_BUILD):
        super().__init__("async", setting, directory, build)
        self.level = level
        self.name = name_in(build, level)
        self.extra = ("--push-log",)
        self.disk_bytes = []   # What each run has left on the disk.
        self.gaps = []         # The longest time between two updates of each run.

    def missing(self):
        if self.level not in choices("durability", "level", self.build):
            return f"run.yaml knows no durability.level {self.level}"
        return ""

    def amount(self, count):
        return count * self.setting.workers

    def start(self):
        interval = "" if self.level == "memory" else f", interval: {self.setting.interval}"
        cluster.write_config(self.directory, RUN_YAML.format(
            model=self.setting.model, workers=self.setting.workers, level=self.level,
            interval=interval))

    def run(self, count):
        turn = super().run(count)
        run_directory = self.directory / f"run-{self.runs}"
        self.disk_bytes.append(process_figures.bytes_below(run_directory / "checkpoints"))
        times = [moment for moment, _ in read_pushes(run_directory / "push-log-0.csv")]
        gaps = (later - sooner for sooner, later in zip(times, times[1:]))
        self.gaps.append(max(gaps, default=0))
        shutil.rmtree(run_directory)
        return turn

    def time_return(self, number):
        """Kills the server in the middle of a run and starts it again. Returns the seconds from its
        death to the first push that it counted afterwards."""
        directory = self.directory / f"return-{number}"
        directory.mkdir()
        log = directory / "push-log-0.csv"
        settings = {"cluster.servers": "localhost:7070", "log.push_log": directory,
                    "durability.directory": directory / "checkpoints"}
        with cluster.Cluster(self.directory / "run.yaml", settings, directory,
                             self.setting.workers, build=self.build) as live:
            live.wait_for(lambda status: status["shards"][0].get("checkpoint")
                          and int(status["updates"]) >= RETURNS_AFTER, "a checkpoint")
            live.kill_server(0)
            killed = time.time()
            known = max((version for _, version in read_pushes(log)), default=0)
            known = known if self.level == "synced" else 0  # Else the shard goes back.
            log.unlink()
            live.restart_server(0)

            def counted():
                return [moment for moment, version in read_pushes(log) if version > known]

            wait_until(counted, "a push after the return")
            first = counted()[0]
        shutil.rmtree(directory)
        return first - killed


    def stalls(self, intervals):
        """Returns what saves cost, as checkpoint_stall.stall_of does, by interval in seconds."""
        directory = self.directory / "stall"
        directory.mkdir()
        # All saves are ordered by hand.
        settings = {"cluster.servers": "localhost:7070", "log.push_log": directory,
                    "durability.directory": directory / "checkpoints",
                    "durability.interval": "24h", "durability.keep": 2}
        with cluster.Cluster(self.directory / "run.yaml", settings, directory,
                             self.setting.workers, build=self.build) as live:
            spans = checkpoint_stall.measure(live, intervals)
        times = [moment for moment, _ in read_pushes(directory / "push-log-0.csv")]
        shutil.rmtree(directory)
        return {interval_s: checkpoint_stall.stall_of(times, each)
                for interval_s, each in spans.items()}


class Disk(Contender):
    """The disk by itself: writes as many bytes as a push has, again and again, and has them on the
    disk each time before it goes on."""
    name = "disk"
    FILE_BYTES_MAX = 1 << 30

    def start(self):
        self.block = os.urandom(self.setting.bytes)

    def amount(self, count):
        return count

    def run(self, count):
        path = self.directory / "written"
        seconds = []
        with open(path, "wb", buffering=0) as file:
            for _ in range(count):
                if file.tell() > self.FILE_BYTES_MAX:
                    file.seek(0)
                    file.truncate()
                begun = time.monotonic()
                file.write(self.block)
                os.fdatasync(file.fileno())
                seconds.append(time.monotonic() - begun)
        path.unlink()
        return Turn(sum(seconds), statistics.median(seconds))
