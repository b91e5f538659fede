"""A trial runs a real cluster with faults, and judges what the cluster has counted."""
import collections
import dataclasses
import pathlib
import random
import threading
from typing import Callable

from durable_cluster import DurableCluster, counted, saved_version
from programs import scratch

# The run is so long that this many mini-batches lie between two faults: more where others go on
# during a fault.
BATCHES_PER_FAULT = 60
BATCHES_PER_PAUSE = 500
BATCH_EXAMPLES = 32
SHARDS = (0, 1)
# Policies under which all shards return to a checkpoint together, and no gradient is missing then.
IN_STEP = ("hardsync", "backup")

pause = threading.Event().wait  # Waits for so many seconds.


class Broken(Exception):
    """A promise was not kept."""


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    level: str
    policy: str
    run: Callable               # Called with the trial.
    settings: dict = dataclasses.field(default_factory=dict)
    aggregators: tuple = ()     # Each as (group, shard).
    batches_per_fault: int = BATCHES_PER_FAULT
    # Returns why the scenario cannot take place on this machine; None if it can.
    missing: Callable = lambda: None


@dataclasses.dataclass
class Report:
    """The evidence of a trial."""
    faults: int = 0
    acknowledged: int = 0       # The gradients that count, over all shards.
    lost: int = 0               # Of those that the level keeps.
    doubled: int = 0
    remarks: list = dataclasses.field(default_factory=list)


class Trial:
    """One run of a scenario. The seed determines all choices, but not their exact moments."""

    def __init__(self, scenario, seed, faults, directory):
        self.scenario = scenario
        self.chance = random.Random(f"{scenario.name} {seed}")
        self.faults = faults
        self.directory = pathlib.Path(directory)
        self.report = Report()
        self.deaths = 0             # Of workers, whose push on its way may reach one shard of two.
        self.killed_servers = False

    def settings(self):
        return {"durability.level": self.scenario.level, "consistency.policy": self.scenario.policy,
                "cluster.lease": "60s",
                "data.train_examples": (BATCH_EXAMPLES * self.scenario.batches_per_fault
                                        * (self.faults + 1)),
                **self.scenario.settings}

    def cluster(self, kind=DurableCluster, **arguments):
        return kind(directory=self.directory, settings=self.settings(), **arguments)

    def moments(self, live):
        """Yields at random moments of the run, until there were as many faults as wanted."""
        if self.scenario.level != "memory":  # Without a checkpoint, nothing can survive.
            live.wait_for(lambda status: all(saved_version(status, shard) >= 0 for shard in SHARDS),
                          "the first checkpoints")
        while self.report.faults < self.faults:
            between = self.scenario.batches_per_fault
            status = live.wait_for_batches(between * self.report.faults
                                           + self.chance.randrange(1, between))
            if status["phase"] != "TRAINING":
                raise Broken(f"the run was over after {self.report.faults} faults")
            pause(self.chance.uniform(0, 0.2))
            yield

    def revive_workers(self, live):
        """Starts workers again that were fenced."""
        for worker, process in list(live.workers.items()):
            if process.poll() == 75:
                self.deaths += 1
                live.start_worker(worker)

    def judge(self, live):
        """Waits for the end of the run, and compares what was counted with what was to be done."""
        status = live.finish()
        report = self.report
        counts = counted(status)
        report.acknowledged = sum(counts)
        again = sum(max(0, count - live.batches) for count in counts)
        if self.deaths:
            report.remarks.append(f"{again} gradients of mini-batches that were handed out again")
        else:
            report.doubled = again
        for shard, count in zip(status["shards"], counts):
            self.judge_losses(shard, live.batches - count)
        if self.scenario.level != "checkpoint" and self.scenario.policy != "backup":
            self.judge_logs(live, counts)
        self.judge_weights(status)
        if report.lost or report.doubled:
            raise Broken(f"{report.lost} lost, {report.doubled} counted twice\n{live.log_texts()}")

    def judge_losses(self, shard, missing):
        """A shard lacks at most the pushes of workers that died. Where a shard returns to a
        checkpoint alone, it also lacks the pushes since, and those on their way."""
        may_return = (self.scenario.level == "checkpoint" and int(shard["life"]) > 0
                      and self.scenario.policy not in IN_STEP)
        if may_return:
            self.report.remarks.append(
                f"shard {shard['shard']}: life {shard['life']}, {shard['versions_lost']} versions "
                f"announced as lost, {max(0, missing)} gradients missing")
        else:
            self.report.lost += max(0, missing - self.deaths)
        if self.scenario.level != "checkpoint" and int(shard["life"]) > 0:
            raise Broken(f"shard {shard['shard']} has begun life {shard['life']}")

    def judge_logs(self, live, counts):
        """No mini-batch has two pushes, unless a worker died: what it had pushed since the shards'
        last reports is handed out again, in other pushes. Then no push counts twice. Where all logs
        are whole, each mini-batch has a push at some shard."""
        logs = [live.pushes_by_batch(shard) for shard in SHARDS]
        if not self.deaths:
            self.report.doubled += sum(len(pushes) - 1 for log in logs for pushes in log.values())
        elif not self.killed_servers:  # Else a push may be in a log and nowhere else.
            self.report.doubled += sum(max(0, count - sum(map(len, log.values())))
                                       for count, log in zip(counts, logs))
        if not self.killed_servers:
            self.report.lost += live.batches - len(set().union(*logs))

    def judge_weights(self, status):
        accuracy = status["evaluations"][-1]["test_accuracy"]
        self.report.remarks.append(f"accuracy {accuracy:.3f}")
        keeps_places = self.scenario.settings.get("cluster.on_worker_loss") == "wait"
        if self.scenario.policy != "hardsync" or (self.deaths and not keeps_places):
            return
        undisturbed = undisturbed_weights(self.settings(), self.scenario.aggregators)
        if status["weights_sha256"] != undisturbed:
            raise Broken("the weights differ from those of a run without faults")
        self.report.remarks.append("weights equal")


_WEIGHTS = {}


def undisturbed_weights(settings, aggregators):
    """Returns the SHA-256 of the weights that the run ends with if nothing disturbs it."""
    settings = {**settings, "durability.level": "memory"}
    key = repr(sorted(settings.items()))
    if key not in _WEIGHTS:
        with scratch() as directory, \
                DurableCluster(directory, settings, aggregators=aggregators) as live:
            _WEIGHTS[key] = live.finish()["weights_sha256"]
    return _WEIGHTS[key]


def counts_of(names):
    counts = collections.Counter(names)
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
