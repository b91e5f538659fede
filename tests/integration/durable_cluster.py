"""Clusters whose servers keep their state on disk, for tests that end servers and start them again;
and the evidence of what such a run has counted."""
import collections
import csv
import os
import pathlib
import random

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
WORKERS = 3
BATCH_EXAMPLES = 32
BATCHES = 240
# Delays make the run take a few seconds, in which servers save several checkpoints.
SETTINGS = {"cluster.workers": WORKERS, "data.train_examples": BATCH_EXAMPLES * BATCHES,
            "testing.push_delay_max": "60ms", "evaluation.every_epochs": 0,
            "durability.level": "checkpoint", "durability.interval": "200ms"}
DURABILITY = ("durability.directory", "durability.interval")


def chance_of(name):
    """Returns a source of chance, and prints the seed that repeats it."""
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"{name}: seed {seed}", flush=True)
    return random.Random(seed)


def saved_version(status, shard):
    """Returns the version of the shard's newest checkpoint; -1 if it has none."""
    shards = status["shards"]
    checkpoint = shards[shard].get("checkpoint") if shard < len(shards) else None
    return int(checkpoint["version"]) if checkpoint else -1


def counted(status):
    """Returns how many pushes with a gradient each shard has counted, by shard."""
    return [int(shard["staleness"]["count"]) for shard in status["shards"]]


def without_split_pushes(differences, split):
    """Returns by how many gradients each shard differs from the data, without what split pushes
    account for: under `backup` shard 0 decides whether a mini-batch is done, and another shard may
    have taken a gradient that shard 0 dropped, or dropped one that shard 0 took."""
    first, *others = differences
    return [first, *(max(0, abs(other) - split) * (1 if other > 0 else -1) for other in others)]


def whole_rows(path):
    """Yields the lines of a push log. The last line of a server that was killed may be cut off."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    yield from csv.DictReader(line for line in lines if line.endswith("\n"))


class DurableCluster(cluster.Cluster):
    """A run of small_run.yaml with two servers and WORKERS workers. Every status is compared with
    the one before: in the first generation of a shard, versions never go back."""

    def __init__(self, directory, settings, directories=None, **arguments):
        """`directories` names the directories for the state of single shards, which are else
        together in `directory`."""
        directory = pathlib.Path(directory)
        settings = {**SETTINGS, "durability.directory": directory / "checkpoints",
                    "log.push_log": directory, **settings}
        if settings["durability.level"] == "memory":
            settings = {key: value for key, value in settings.items() if key not in DURABILITY}
        self.batches = (int(settings["data.train_examples"]) // BATCH_EXAMPLES
                        * settings.get("training.epochs", 1))
        self.directories = directories or {}
        self.seen = {}           # The newest version that was seen, by shard.
        self.processes_ended = 0
        super().__init__(CONFIG, settings, directory, **{"workers": WORKERS, **arguments})

    def start_server(self, shard, listen=None, settings=None):
        own = ({"durability.directory": self.directories[shard]} if shard in self.directories
               else {})
        return super().start_server(shard, listen, {**own, **(settings or {})})

    def restart_server(self, shard, settings=None, listen=None):
        # A process begins its push log anew, so that of the process before gets another name.
        log = self.directory / f"push-log-{shard}.csv"
        if log.exists():
            self.processes_ended += 1
            log.rename(self.directory / f"push-log-{shard}.{self.processes_ended}.csv")
        super().restart_server(shard, settings, listen)

    def code_of_start(self, shard, settings=None, timeout=cluster.DEADLINE_S):
        """Starts a server that cannot go on, and returns its exit code."""
        port_file = self.directory / f"server-{shard}.port"
        address = port_file.read_text()
        try:
            self.restart_server(shard, settings)
            code = self.servers[shard].wait(timeout=timeout)
        except AssertionError:  # It has ended before it listened.
            code = self.servers.pop().wait()
        port_file.write_text(address)
        return code

    def state_directory(self, shard):
        """Returns the directory with the shard's checkpoints and its log."""
        root = self.directories.get(shard, self.settings["durability.directory"])
        return next(pathlib.Path(root).glob(f"*/shard-{shard}"))

    def status(self):
        status = super().status()
        for shard in status["shards"]:
            version = int(shard["version"])
            # A server that is not back yet reports 0. One that returns to a checkpoint goes back.
            if version == 0 or int(shard["generation"]) > 0:
                continue
            before = self.seen.get(shard["shard"], 0)
            if version < before:  # No AssertionError, which wait_for takes for a late answer.
                raise RuntimeError(f"shard {shard['shard']} went back from version {before} to "
                                   f"{version}\n{self.log_texts()}")
            self.seen[shard["shard"]] = version
        return status

    def wait_for_batches(self, count):
        return self.wait_for(lambda status: int(status["batches_done"]) >= count,
                             f"{count} mini-batches")

    def wait_for_checkpoint(self, chance, shard):
        """Waits for a random moment in the first third of the run after the shard has saved an
        update."""
        after = chance.randrange(1, self.batches // 3)
        self.wait_for(lambda status: saved_version(status, shard) > 0
                      and int(status["batches_done"]) >= after,
                      f"a checkpoint of shard {shard} and {after} mini-batches")

    def finish(self, timeout=cluster.DEADLINE_S):
        """Waits for the end of the run, and expects that all work is done and all workers have
        ended well. Returns the status."""
        # A server that was killed last may have yet to report.
        status = self.wait_for(lambda now: now["phase"] == "FINISHED" and
                               all(int(shard["version"]) > 0 for shard in now["shards"]),
                               "the run to finish", timeout)
        codes = [worker.wait(timeout=cluster.DEADLINE_S) for worker in self.workers.values()]
        if codes != [0] * len(codes) or int(status["batches_done"]) != self.batches:
            raise AssertionError(f"the workers ended with {codes}, and {status['batches_done']} of "
                                 f"{self.batches} mini-batches are done\n{self.log_texts()}")
        return status

    def push_rows(self, shard):
        """Returns the lines of the shard's pushes, in the order of its decisions, from the push
        logs of all its processes. A push that two processes have decided about has the line of the
        later one: the earlier one was killed before its decision was on the disk. Lines that a
        process had not written when it was killed are missing."""
        rows = {}
        processes = sorted(self.directory.glob(f"push-log-{shard}.*.csv"),
                           key=lambda path: int(path.suffixes[-2][1:]))
        for path in (*processes, self.directory / f"push-log-{shard}.csv"):
            for row in whole_rows(path):
                key = row["worker"], row["incarnation"], row["sequence"]
                rows.pop(key, None)  # The later line has the later place.
                rows[key] = row
        return list(rows.values())

    def pushes_by_batch(self, shard):
        """Returns the pushes of each mini-batch that the shard has counted, as a dictionary of sets
        of (worker, incarnation, sequence), from the push logs of all its processes. A push whose
        line a process had not written when it was killed is missing, unless its successor has
        counted it."""
        pushes = collections.defaultdict(set)
        for path in self.directory.glob(f"push-log-{shard}*.csv"):
            for row in whole_rows(path):
                if row["outcome"] in ("APPLIED", "BUFFERED") and int(row["examples"]) > 0:
                    pushes[row["batch"]].add((row["worker"], row["incarnation"], row["sequence"]))
        return pushes
