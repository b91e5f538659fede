"""Disks that fill up or turn read-only under a server."""
import cluster
import disks
from programs import scratch
from scenario import BATCHES_PER_PAUSE, Broken, Scenario, pause

DISK_BYTES = 512 << 20
LOG_NOT_WRITTEN = 71


def why_not(kind):
    with scratch() as directory:
        return kind.why_not(directory)


def expect_end(live, words):
    """Expects that server 1 ends because of its disk, and says so."""
    code = live.servers[1].wait(timeout=cluster.DEADLINE_S)
    said = live.log_text("server-1")
    if code != LOG_NOT_WRITTEN or words not in said:
        raise Broken(f"server 1 ended with {code} and did not say \"{words}\"\n{said}")


def fill_disk(trial):
    trial.killed_servers = True
    with disks.SmallDisk(trial.directory / "disk", DISK_BYTES) as disk, \
            trial.cluster(directories={1: disk.directory}) as live:
        for _ in trial.moments(live):
            disk.fill_until(lambda: live.servers[1].poll() is not None, "server 1 to end")
            expect_end(live, "No space left on device")
            disk.make_room()
            live.restart_server(1)
            trial.note_fault("disks full")
        trial.judge(live)


def fill_disk_for_a_while(trial):
    """A checkpoint that cannot be written is tried again, and training goes on."""
    with disks.SmallDisk(trial.directory / "disk", DISK_BYTES) as disk, \
            trial.cluster(directories={1: disk.directory}) as live:
        for _ in trial.moments(live):
            disk.fill_until(lambda: live.status()["shards"][1].get("checkpoint_failure"),
                            "a checkpoint that cannot be saved")
            pause(trial.chance.uniform(0, 1))
            disk.make_room()
            trial.note_fault("disks full")
        trial.judge(live)


def turn_read_only(trial):
    trial.killed_servers = True
    with disks.FailingDisk(trial.directory / "disk", DISK_BYTES) as disk, \
            trial.cluster(directories={1: disk.directory}) as live:
        for _ in trial.moments(live):
            disk.turn_read_only()
            expect_end(live, "Read-only file system")
            disk.repair()
            live.restart_server(1)
            trial.note_fault("disks read-only")
        trial.judge(live)


def scenarios():
    yield Scenario("disk-full-synced", "synced", "softsync", fill_disk,
                   missing=lambda: why_not(disks.SmallDisk))
    yield Scenario("disk-full-checkpoint", "checkpoint", "softsync", fill_disk_for_a_while,
                   batches_per_fault=BATCHES_PER_PAUSE, missing=lambda: why_not(disks.SmallDisk))
    yield Scenario("disk-read-only-synced", "synced", "softsync", turn_read_only,
                   missing=lambda: why_not(disks.FailingDisk))
