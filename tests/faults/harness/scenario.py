"""A trial runs a real cluster with faults, and judges what the cluster has counted."""
import collections
import contextlib
import copy
import dataclasses
import pathlib
import random
import threading
import time
from typing import Callable

import recompute_staleness
from durable_cluster import DurableCluster, counted, saved_version, without_split_pushes
from programs import DEADLINE_S, scratch

# Each fault has an epoch of so many mini-batches: more where others go on during a fault.
BATCHES_PER_FAULT = 60
BATCHES_PER_PAUSE = 500
BATCH_EXAMPLES = 32
# The deadline for a whole run without faults grows by this for each mini-batch.
BATCH_S = 0.1
PROGRESS_S = 10
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
    kinds: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # Faults.
    acknowledged: int = 0       # The gradients that count, over all shards.
    lost: int = 0               # Of those that the level keeps.
    doubled: int = 0
    remarks: list = dataclasses.field(default_factory=list)

    @property
    def faults(self):
        return sum(self.kinds.values())

    def add(self, other):
        self.kinds += other.kinds
        self.acknowledged += other.acknowledged
        self.lost += other.lost
        self.doubled += other.doubled
        self.remarks = other.remarks or self.remarks  # Those of the last run stand for all.


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
        self.split_pushes = {}      # Of each process of a worker that has told how many.
        self.said_progress = time.monotonic()

    def settings(self):
        """Returns the settings of the run, which has an epoch for each fault and one more. So the
        data stay small, however many faults there are."""
        return {"durability.level": self.scenario.level, "consistency.policy": self.scenario.policy,
                "cluster.lease": "60s",
                "data.train_examples": BATCH_EXAMPLES * self.scenario.batches_per_fault,
                "training.epochs": self.faults + 1,
                **self.scenario.settings}

    def cluster(self, kind=DurableCluster, **arguments):
        return kind(directory=self.directory, settings=self.settings(), **arguments)

    @contextlib.contextmanager
    def further_run(self, number):
        """Yields a trial of one more run of the scenario, whose report counts for this one too."""
        run = copy.copy(self)
        run.directory = self.directory / f"run-{number}"
        run.directory.mkdir()
        run.report = Report()
        try:
            yield run
        finally:
            self.report.add(run.report)

    def wait_for_batches(self, live, count, timeout=DEADLINE_S):
        """Waits for so many mini-batches. Says now and then how far the scenario has come."""
        def reached(status):
            if "cluster.lease" in self.scenario.settings:
                # On a busy machine, a worker may be late for a short lease without a fault.
                self.revive_workers(live)
            if time.monotonic() - self.said_progress >= PROGRESS_S:
                self.said_progress = time.monotonic()
                print(f"  {status['batches_done']} of {live.batches} mini-batches, "
                      f"{self.report.faults} of {self.faults} faults", flush=True)
            return int(status["batches_done"]) >= count

        return live.wait_for(reached, f"{count} mini-batches", timeout)

    def note_fault(self, kind):
        """Notes that the cluster has lived through a fault of this kind."""
        self.report.kinds[kind] += 1

    def note_split_pushes(self, status):
        """Notes the split pushes of workers that are about to die: the next process of one counts
        from 0 again."""
        for worker in status["workers"]:
            key = worker["worker"], worker["incarnation"]
            self.split_pushes[key] = int(worker["split_pushes"])

    def moments(self, live):
        """Yields at random moments of the run, until there were as many faults as wanted."""
        if self.scenario.level != "memory":  # Without a checkpoint, nothing can survive.
            live.wait_for(lambda status: all(saved_version(status, shard) >= 0 for shard in SHARDS),
                          "the first checkpoints")
        while self.report.faults < self.faults:
            between = self.scenario.batches_per_fault
            status = self.wait_for_batches(
                live, between * self.report.faults + self.chance.randrange(1, between))
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
        differences = [count - live.batches for count in counts]
        if self.scenario.policy == "backup":
            self.note_split_pushes(status)
            # A worker that dies may have had one more since its last report.
            split = sum(self.split_pushes.values()) + self.deaths
            differences = without_split_pushes(differences, split)
        again = sum(max(0, difference) for difference in differences)
        if self.deaths:
            report.remarks.append(f"{again} gradients of mini-batches that were handed out again")
        else:
            report.doubled = again
        for shard, difference in zip(status["shards"], differences):
            self.judge_losses(shard, -difference)
        if self.scenario.level != "checkpoint" and self.scenario.policy != "backup":
            self.judge_logs(live, counts)
        self.judge_weights(status)
        if report.lost or report.doubled:
            raise Broken(f"{report.lost} lost, {report.doubled} counted twice\n{live.log_texts()}")
        self.judge_staleness(live, status)

    def judge_losses(self, shard, missing):
        """A shard lacks at most the pushes of workers that died. Where a shard returns to a
        checkpoint alone, it also lacks the pushes since, and those on their way."""
        may_return = (self.scenario.level == "checkpoint" and int(shard["generation"]) > 0
                      and self.scenario.policy not in IN_STEP)
        if may_return:
            self.report.remarks.append(
                f"shard {shard['shard']}: generation {shard['generation']}, {shard['versions_lost']} versions "
                f"announced as lost, {max(0, missing)} gradients missing")
        else:
            self.report.lost += max(0, missing - self.deaths)
        if self.scenario.level != "checkpoint" and int(shard["generation"]) > 0:
            raise Broken(f"shard {shard['shard']} has begun generation {shard['generation']}")

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

    def judge_staleness(self, live, status):
        """The status reports the staleness that the push logs give. A shard that returned to a
        checkpoint has forgotten pushes that the logs have; and so may one whose server was killed
        and then the worker, who else would have sent them again."""
        if self.scenario.level == "checkpoint" or (self.killed_servers and self.deaths):
            return
        without_line = 0
        for shard in status["shards"]:
            differences, missing = recompute_staleness.compare_with_part(
                shard, live.push_rows(shard["shard"]))
            if differences:
                raise Broken("\n".join(differences))
            without_line += missing
        self.report.remarks.append(
            f"staleness recomputed from the logs, which lack {without_line} pushes")

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
        print("  the run without faults, for comparison", flush=True)
        with scratch() as directory, \
                DurableCluster(directory, settings, aggregators=aggregators) as live:
            timeout = DEADLINE_S + BATCH_S * live.batches
            _WEIGHTS[key] = live.finish(timeout)["weights_sha256"]
    return _WEIGHTS[key]


def counts_of(names):
    counts = collections.Counter(names)
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
