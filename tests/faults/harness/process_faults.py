"""Servers and workers that are killed, stopped for a while, or told to end."""
import signal

import cluster
from scenario import BATCHES_PER_PAUSE, SHARDS, Broken, Scenario, pause

POLICIES = ("hardsync", "backup", "softsync", "async", "ssp")
LEVELS = ("synced", "checkpoint")
SHORT_LEASE = {"cluster.lease": "1s"}
KEPT_PLACES = {**SHORT_LEASE, "cluster.on_worker_loss": "wait"}
# The three workers of a trial are two groups, before two servers.
TREE = {"cluster.tree.fanout": 2}
AGGREGATORS = tuple((group, shard) for group in (0, 1) for shard in SHARDS)
STOP_S = (1.5, 4)
# systemd and Kubernetes wait longer before they kill.
DRAIN_S = 20


def some_shards(trial):
    """Returns the shards of one fault: mostly one, sometimes both."""
    return trial.chance.choice(((0,), (0,), (1,), (1,), SHARDS))


def kill_servers(trial):
    trial.killed_servers = True
    with trial.cluster(aggregators=trial.scenario.aggregators) as live:
        for _ in trial.moments(live):
            shards = some_shards(trial)
            for shard in shards:
                live.kill_server(shard)
            for shard in shards:
                live.restart_server(shard)
                trial.note_fault("servers killed")
        trial.judge(live)


def replace_worker(trial, live):
    worker = trial.chance.choice(list(live.workers))
    if trial.scenario.policy == "backup":
        trial.note_split_pushes(live.status())
    live.kill_worker(worker)
    live.start_worker(worker)
    trial.deaths += 1
    trial.note_fault("workers killed")


def kill_workers(trial):
    with trial.cluster() as live:
        for _ in trial.moments(live):
            replace_worker(trial, live)
        trial.judge(live)


def kill_anyone(trial):
    trial.killed_servers = True
    with trial.cluster() as live:
        for _ in trial.moments(live):
            if trial.chance.random() < 0.5:
                replace_worker(trial, live)
                continue
            shard = trial.chance.choice(SHARDS)
            live.kill_server(shard)
            live.restart_server(shard)
            trial.note_fault("servers killed")
        trial.judge(live)


def kill_servers_and_aggregators(trial):
    trial.killed_servers = True
    with trial.cluster(aggregators=trial.scenario.aggregators) as live:
        for _ in trial.moments(live):
            if trial.chance.random() < 0.5:
                aggregator = trial.chance.choice(AGGREGATORS)
                live.kill_aggregator(*aggregator)
                live.restart_aggregator(*aggregator)
                trial.note_fault("aggregators killed")
            else:
                shard = trial.chance.choice(SHARDS)
                live.kill_server(shard)
                live.restart_server(shard)
                trial.note_fault("servers killed")
        trial.judge(live)


def kill_server_without_state(trial):
    """Without state on a disk, the death of a server has to end the run, by name."""
    trial.faults = 1
    with trial.cluster() as live:
        for _ in trial.moments(live):
            trial.note_fault("servers killed")
        live.kill_server(1)
        live.restart_server(1)
        try:
            live.finish()
        except AssertionError as failure:
            reason = str(failure).partition("\n")[0]
            if not reason.startswith("the run failed: ") or "shard 1" not in reason:
                raise
            trial.report.remarks.append(reason)
        else:
            raise Broken("the run has gone on without the weights of shard 1")


def stop(trial, process, kind):
    process.send_signal(signal.SIGSTOP)
    pause(trial.chance.uniform(*STOP_S))
    process.send_signal(signal.SIGCONT)
    trial.note_fault(kind)


def stop_workers(trial):
    """Lets workers stand still for longer than their lease. They are fenced, and started again."""
    with trial.cluster() as live:
        for _ in trial.moments(live):
            worker = trial.chance.choice(list(live.workers))
            stop(trial, live.workers[worker], "workers stopped")
            live.workers[worker].wait(timeout=cluster.DEADLINE_S)
            trial.revive_workers(live)
        trial.judge(live)


def stop_servers(trial):
    """Lets servers stand still for longer than workers' leases."""
    with trial.cluster() as live:
        for _ in trial.moments(live):
            for shard in some_shards(trial)[:1]:
                stop(trial, live.servers[shard], "servers stopped")
            trial.revive_workers(live)
        trial.judge(live)


def end_server(live, shard):
    live.servers[shard].terminate()
    code = live.servers[shard].wait(timeout=DRAIN_S)
    if code != 128 + signal.SIGTERM:
        raise Broken(f"server {shard} ended with {code}\n{live.log_texts()}")


def drain_servers(trial):
    with trial.cluster() as live:
        for _ in trial.moments(live):
            shard = trial.chance.choice(SHARDS)
            end_server(live, shard)
            live.restart_server(shard)
            trial.note_fault("servers drained")
        trial.judge(live)


def scenarios():
    for level in LEVELS:
        for policy in POLICIES:
            yield Scenario(f"kills-{level}-{policy}", level, policy, kill_servers)
    for level in LEVELS:
        for policy in ("softsync", "async"):
            yield Scenario(f"kills-tree-{level}-{policy}", level, policy,
                           kill_servers_and_aggregators, TREE, AGGREGATORS)
        # With the same aggregators all the time, the bits have to be the same.
        yield Scenario(f"kills-tree-{level}-hardsync", level, "hardsync", kill_servers, TREE,
                       AGGREGATORS)
    for level in (*LEVELS, "memory"):
        for policy in POLICIES:
            yield Scenario(f"workers-{level}-{policy}", level, policy, kill_workers, SHORT_LEASE)
        yield Scenario(f"places-{level}-hardsync", level, "hardsync", kill_workers, KEPT_PLACES)
    yield Scenario("kills-memory-softsync", "memory", "softsync", kill_server_without_state)
    yield Scenario("anyone-synced-softsync", "synced", "softsync", kill_anyone, SHORT_LEASE)
    yield Scenario("anyone-synced-async", "synced", "async", kill_anyone, SHORT_LEASE)
    for level in ("synced", "memory"):
        yield Scenario(f"stops-workers-{level}", level, "softsync", stop_workers, SHORT_LEASE,
                       batches_per_fault=BATCHES_PER_PAUSE)
        yield Scenario(f"stops-servers-{level}", level, "softsync", stop_servers, SHORT_LEASE,
                       batches_per_fault=BATCHES_PER_PAUSE)
    for policy in POLICIES:
        yield Scenario(f"drains-synced-{policy}", "synced", policy, drain_servers,
                       batches_per_fault=BATCHES_PER_PAUSE)
    yield Scenario("drains-checkpoint-hardsync", "checkpoint", "hardsync", drain_servers,
                   batches_per_fault=BATCHES_PER_PAUSE)
    yield Scenario("drains-checkpoint-async", "checkpoint", "async", drain_servers,
                   batches_per_fault=BATCHES_PER_PAUSE)
