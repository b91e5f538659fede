"""Disks that fill up or turn read-only under a server."""
import contextlib

import disks
from programs import scratch, wait_until
from scenario import BATCHES_PER_PAUSE, SHARDS, Broken, Scenario, pause

DISK_BYTES = 512 << 20
LOG_NOT_WRITTEN = 71


def why_not(kind):
    with scratch() as directory:
        return kind.why_not(directory)


@contextlib.contextmanager
def one_disk(trial, kind):
    """A cluster of which one server, at random, has a disk of its own. That of server 0 also has the
    coordinator's state. Yields the cluster, the disk and the shard of the server."""
    shard = trial.chance.choice(SHARDS)
    print(f"  the disk of server {shard}", flush=True)
    with kind(trial.directory / "disk", DISK_BYTES) as disk, \
            trial.cluster(directories={shard: disk.directory}) as live:
        yield live, disk, shard


def judge_end(live, shard, *reasons):
    """Returns whether the server has ended. That has to be because of its disk, and it has to say
    so."""
    code = live.servers[shard].poll()
    said = live.log_text(f"server-{shard}")
    if code is not None and (code != LOG_NOT_WRITTEN or not any(why in said for why in reasons)):
        raise Broken(f"server {shard} ended with {code} and said none of {reasons}\n{said}")
    return code is not None


def times_not_kept(live):
    """Returns how often the coordinator has begun to be unable to keep its state. Then it takes no
    reports of failures, and hands out no work."""
    return live.log_text("server-0").count("the coordinator's state cannot be kept")


def ends_or_waits(live, shard):
    """Returns a function that tells whether the server has ended, or waits for its disk: if server 0
    hands out no work, it may have nothing to write to its log, so that it does not end."""
    before = times_not_kept(live)
    return lambda: live.servers[shard].poll() is not None or times_not_kept(live) > before


def fill_disk(trial):
    trial.killed_servers = True
    with one_disk(trial, disks.SmallDisk) as (live, disk, shard):
        for _ in trial.moments(live):
            disk.fill_until(ends_or_waits(live, shard), f"server {shard} to end or to wait")
            pause(1)  # It may end a moment later.
            disk.make_room()
            if judge_end(live, shard, "No space left on device"):
                live.restart_server(shard)
            trial.note_fault("disks full")
        trial.judge(live)


def fill_disk_for_a_while(trial):
    """A checkpoint that cannot be written is tried again, and training goes on, or waits until the
    coordinator can write its state."""
    with one_disk(trial, disks.SmallDisk) as (live, disk, shard):
        for _ in trial.moments(live):
            before = times_not_kept(live)
            disk.fill_until(lambda: live.status()["shards"][shard].get("checkpoint_failure") or
                            times_not_kept(live) > before,
                            "a checkpoint or a state that cannot be saved")
            pause(trial.chance.uniform(0, 1))
            disk.make_room()
            trial.note_fault("disks full")
        trial.judge(live)


def turn_read_only(trial):
    trial.killed_servers = True
    with one_disk(trial, disks.FailingDisk) as (live, disk, shard):
        for _ in trial.moments(live):
            condition = ends_or_waits(live, shard)
            disk.turn_read_only(live.servers[shard])
            wait_until(condition, f"server {shard} to end or to wait")
            pause(1)
            if not judge_end(live, shard, "Read-only file system", "Input/output error"):
                live.kill_server(shard)
            if shard != 0 and trial.chance.random() < 0.5:
                # systemd starts it again long before somebody has mended the disk.
                live.restart_server(shard)
                live.wait_for(lambda status: status["shards"][shard].get("checkpoint_failure"),
                              "a status that says that the disk cannot be used")
                disk.repair()
            else:
                disk.repair()
                live.restart_server(shard)
            trial.note_fault("disks read-only")
        trial.judge(live)


def scenarios():
    yield Scenario("disk-full-synced", "synced", "softsync", fill_disk,
                   missing=lambda: why_not(disks.SmallDisk))
    yield Scenario("disk-full-checkpoint", "checkpoint", "softsync", fill_disk_for_a_while,
                   batches_per_fault=BATCHES_PER_PAUSE, missing=lambda: why_not(disks.SmallDisk))
    yield Scenario("disk-read-only-synced", "synced", "softsync", turn_read_only,
                   missing=lambda: why_not(disks.FailingDisk))
