"""What operators do to a run: they start a server again while the weights are initialised, or at
another address, put an older copy of its files in place, or let nobody read the logs."""
import contextlib
import os
import shutil
import subprocess
import time

import cluster
from durable_cluster import DurableCluster, saved_version
from process_faults import end_server
from programs import wait_until
from scenario import SHARDS, Broken, Scenario, pause

FILE_ERROR = 74

# Few mini-batches: it is the beginning that matters.
SHORT_RUN = {"data.train_examples": 288, "training.epochs": 1}
# After so long, mostly, the weights are initialised.
INITIALIZATION_S = 0.04
# A server that is killed after that is no fault of this kind, and the run is made again.
TRIES_PER_FAULT = 20

# A server that has moved is taken for that of its shard when the old one was silent for so long.
MOVES = {"cluster.lease": cluster.LEASE}

# An older copy is older by this many mini-batches at least, and by a checkpoint.
BATCHES_OLDER = 20
BATCHES_PER_ROLLBACK = 150
REFUSAL_S = 20


def begins_before_replacement(log):
    """Returns whether training began before the coordinator knew of another process for a shard."""
    begins, replaced = log.find("phase=TRAINING"), log.find("server replaced")
    return begins >= 0 and not 0 <= replaced < begins


def kill_while_initialising(trial, live):
    """Kills server 1 at a random moment after a worker was told to send the initial weights, and
    starts it again. Returns whether that was before training, so that nothing may be lost."""
    deadline = time.monotonic() + cluster.DEADLINE_S
    while "initialization granted" not in live.log_text("server-0"):
        if time.monotonic() > deadline:
            raise Broken(f"nobody was told to send weights\n{live.log_texts()}")
        pause(0.0005)
    pause(trial.chance.uniform(0, INITIALIZATION_S))
    live.kill_server(1)
    pause(trial.chance.choice((0, trial.chance.uniform(0, 0.5))))
    if begins_before_replacement(live.log_text("server-0")):
        return False
    live.restart_server(1)
    wait_until(lambda: "server replaced" in live.log_text("server-0"),
               "the coordinator to know the new process of shard 1")
    return not begins_before_replacement(live.log_text("server-0"))


def restart_while_initialising(trial):
    """Each fault has a run of its own. Where training had begun, the level memory may lose it."""
    tries = 0
    while trial.report.faults < trial.faults:
        tries += 1
        if tries > TRIES_PER_FAULT * trial.faults:
            raise Broken(f"training had begun too often in {tries} runs")
        with trial.further_run(tries) as run, run.cluster() as live:
            if kill_while_initialising(run, live):
                run.note_fault("kills before training")
                run.judge(live)
    trial.report.remarks.append(f"{tries - trial.faults} kills came too late")


def what_to_roll_back(trial, places):
    """Returns one of the servers whose directories are `places`, a path of its files, what that is,
    and what the server has to say to an older copy of it."""
    of_state = "coordinator.state is an older copy"
    return trial.chance.choice(
        [(shard, next(places[shard].glob(f"*/shard-{shard}")), "shard",
          f"the directory of shard {shard} is an older copy") for shard in SHARDS] +
        [(0, places[0] / "coordinator.state", "state", of_state), (0, places[0], "all", of_state)])


def is_newer(status, before):
    return (int(status["batches_done"]) >= int(before["batches_done"]) + BATCHES_OLDER and
            all(saved_version(status, shard) > saved_version(before, shard) for shard in SHARDS))


def expect_refusal(live, shard, words):
    before = len(live.log_text(f"server-{shard}"))
    try:
        code = live.code_of_start(shard, timeout=REFUSAL_S)
    except subprocess.TimeoutExpired:
        code = "nothing, but goes on"
    said = live.log_text(f"server-{shard}")[before:]
    if code != FILE_ERROR or words not in said:
        raise Broken(f"server {shard} ended with {code}, and was to say: {words}\n{said}")


def copy(source, target):
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def remove(path):
    (shutil.rmtree if path.is_dir() else os.remove)(path)


def roll_back(trial):
    """Puts an older copy of a server's files in place while it is stopped, and then the newest."""
    places = {shard: trial.directory / f"files-{shard}" for shard in SHARDS}
    older, newest = trial.directory / "older", trial.directory / "newest"
    with trial.cluster(directories=places) as live:
        for _ in trial.moments(live):
            shard, path, what, refusal = what_to_roll_back(trial, places)
            end_server(live, shard)
            copy(path, older)
            live.restart_server(shard)
            before = live.wait_for(lambda _: True, "the status")
            live.wait_for(lambda now, before=before: is_newer(now, before), "a newer checkpoint")

            end_server(live, shard)
            path.rename(newest)
            older.rename(path)
            expect_refusal(live, shard, refusal)
            remove(path)
            newest.rename(path)
            live.restart_server(shard)
            trial.note_fault(f"older copies ({what})")
        trial.judge(live)


def move_server(trial):
    """Starts server 1 at another address after it was killed, sometimes together with server 0."""
    trial.killed_servers = True
    with trial.cluster() as live:
        port_file = live.directory / "server-1.port"
        for _ in trial.moments(live):
            before = port_file.read_text().strip()
            shards = trial.chance.choice(((1,), (1,), SHARDS))
            for shard in shards:
                live.kill_server(shard)
            for shard in shards:
                live.restart_server(shard, listen=live.listen if shard == 1 else None)
            moved = f"server moved shard=1 from={before} to={port_file.read_text().strip()}"
            wait_until(lambda said=moved: said in live.log_text("server-0"),
                       f"server 0 to say: {moved}")
            trial.note_fault("servers moved")
        trial.revive_workers(live)
        if trial.deaths:
            raise Broken(f"{trial.deaths} workers were fenced\n{live.log_texts()}")
        trial.judge(live)


class UnreadCluster(DurableCluster):
    """A cluster all of whose processes write their logs to pipes that are full and stay so."""

    def _start(self, name, *arguments):
        read_end, log = os.pipe()
        os.set_blocking(log, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(log, bytes(4096))
        os.set_blocking(log, True)
        self.logs += [os.fdopen(read_end, "rb"), os.fdopen(log, "wb", buffering=0)]
        return subprocess.Popen(list(arguments), stdout=log, stderr=log)


def leave_logs_unread(trial):
    """Ends servers or kills them, so that all processes have much to say."""
    with trial.cluster(UnreadCluster) as live:
        for _ in trial.moments(live):
            shard = trial.chance.choice(SHARDS)
            if trial.chance.random() < 0.5:
                end_server(live, shard)
            else:
                trial.killed_servers = True
                live.kill_server(shard)
            live.restart_server(shard)
            trial.note_fault("logs unread")
        trial.judge(live)


def scenarios():
    yield Scenario("initialization-hardsync", "memory", "hardsync", restart_while_initialising,
                   SHORT_RUN)
    yield Scenario("rollback-synced", "synced", "softsync", roll_back,
                   batches_per_fault=BATCHES_PER_ROLLBACK)
    for level, policy in (("synced", "hardsync"), ("synced", "async"), ("checkpoint", "async")):
        yield Scenario(f"moved-{level}-{policy}", level, policy, move_server, MOVES)
    yield Scenario("log-unread", "synced", "softsync", leave_logs_unread)
