"""The types of a run's status, which `slipstream.status` returns as a RunStatus.

Each class stands for a message of proto/status.proto, and has its fields and comments. A field that a
comment calls absent is None, or if it is a message, one whose fields have their defaults. A float is NaN
if the figure is not finite, an enumeration is the name of its value, and an identifier (fixed64) has the
hexadecimal digits that psctl prints.

worker/python/make_status_types.py wrote this file. Change the messages, and run it again.
"""
from __future__ import annotations

import dataclasses
from typing import Optional


@dataclasses.dataclass(frozen=True)
class StalenessStatus:
    """The message StalenessStatus."""
    count: int = 0
    mean: float = 0.0
    # ⟨σ⟩ averaged over the last 100 updates.
    window_mean: float = 0.0
    # A percentile that falls into the last of the histogram's 1,024 buckets is given as `max`.
    p50: int = 0
    p99: int = 0
    max: int = 0
    # histogram[σ] pushes had staleness σ; the last bucket also holds everything above it.
    histogram: tuple[int, ...] = ()
    # cdf[σ] is the share of pushes with at most staleness σ; it is as long as the histogram.
    cdf: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class VectorClock:
    """The base versions of the gradients that triggered the update that made `version`."""
    version: int = 0
    base_versions: tuple[int, ...] = ()
    # ⟨σ⟩ = (version − 1) − mean(base_versions).
    mean_staleness: float = 0.0


@dataclasses.dataclass(frozen=True)
class ShardWorkerStatus:
    """The message ShardWorkerStatus."""
    worker: int = 0
    pushes: int = 0
    last_staleness: int = 0
    mean_staleness: float = 0.0
    last_sequence: int = 0
    incarnation: int = 0
    # From weights given to gradient come: the number of steps measured, the median of the last 32.
    steps: int = 0
    step_seconds: float = 0.0
    # How long the worker has had weights that it has not answered with a gradient.
    holding_seconds: float = 0.0
    # Since when it has neither fetched nor pushed; 0 while it waits for an answer, absent if no member.
    idle_seconds: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class GuardStatus:
    """The staleness guard: its bound, and how often it engaged."""
    # The guard's action: "reject", "block", "scale" or "drop".
    action: str = ""
    bound: int = 0
    # The numbers of gradients refused, acknowledged without effect, and multiplied by bound/staleness.
    rejected: int = 0
    dropped: int = 0
    scaled: int = 0
    # The number of updates that waited for a gradient on its way.
    rounds_held_back: int = 0
    # In a shard's status: the workers whose gradient the open round waits for now.
    held_back_by: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class CheckpointStatus:
    """A checkpoint of a shard."""
    version: int = 0
    # How long ago it was complete, and how long it took to write.
    age_seconds: float = 0.0
    write_seconds: float = 0.0
    bytes: int = 0


@dataclasses.dataclass(frozen=True)
class TimeHistogram:
    """How often something took how long."""
    # counts[i] times it took at most bounds[i] seconds, and longer than the bound before; the last count,
    # beyond all bounds, holds the rest.
    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    sum_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class LogStatus:
    """The log of a shard whose pushes survive its end (durability.level synced)."""
    # What this process has written. The events of a batch were synced together.
    bytes: int = 0
    events: int = 0
    batches: int = 0
    # How long somebody waits until a batch is on the disk, on average over the newest batches.
    batch_seconds: float = 0.0
    # The events that this process redid when it began; 0 if it began the run.
    events_redone: int = 0
    # From when a batch is begun to when it is on the disk.
    sync_times: TimeHistogram = dataclasses.field(default_factory=lambda: TimeHistogram())


@dataclasses.dataclass(frozen=True)
class ShardStatus:
    """The message ShardStatus."""
    shard: int = 0
    address: str = ""
    # Positions [begin, end) of the parameter vector.
    begin: int = 0
    end: int = 0
    version: int = 0
    updates_per_second: float = 0.0
    view: int = 0
    learning_rate: float = 0.0
    examples_applied: int = 0
    staleness: StalenessStatus = dataclasses.field(default_factory=lambda: StalenessStatus())
    # The newest is last.
    vector_clocks: tuple[VectorClock, ...] = ()
    # The number of pushes by the name of their outcome.
    outcomes: dict[str, int] = dataclasses.field(default_factory=dict)
    bytes_queued: int = 0
    bytes_queued_max: int = 0
    live_versions: int = 0
    parked_pulls: int = 0
    # The state of the open round: how many gradients it has, how many it combines, and whom it waits for.
    round_contributions: int = 0
    round_size: int = 0
    waiting_for: tuple[int, ...] = ()
    workers: tuple[ShardWorkerStatus, ...] = ()
    # Seconds since the coordinator last heard of this server.
    silent_seconds: float = 0.0
    # Absent without a guard.
    guard: GuardStatus = dataclasses.field(default_factory=lambda: GuardStatus())
    # The numbers of pulls being answered, which hold their version, and of calls that wait, exchanges too.
    pulls_under_way: int = 0
    parked_calls: int = 0
    # How long ago the open round began, and last heard from a worker, when the report was made.
    round_open_seconds: float = 0.0
    round_unchanged_seconds: float = 0.0
    # The number of members that have no gradient for the open round.
    round_excused: int = 0
    # The same as RunStatus.effective_learning_rate, for this shard.
    effective_learning_rate: float = 0.0
    # The number of further gradients that close the open round, from any workers.
    round_gradients_missing: int = 0
    # Why the shard's push log ended early; empty while it goes on, and if there is none.
    push_log_failure: str = ""
    # The number of pushes in the file of the shard's push log.
    push_log_pushes: int = 0
    # The bytes of the values of pushes that came, whether they counted or not, and of weights that were given
    # out, evaluations and other readers included; in whatever encoding, or in shared memory. Beside them,
    # what they would take as FP32.
    pushed_bytes: int = 0
    pushed_fp32_bytes: int = 0
    pulled_bytes: int = 0
    pulled_fp32_bytes: int = 0
    # The place, from 0, in the run's stages (RunStatus) of the one that the shard is in.
    stage: int = 0
    # The number of aggregators' pushes that counted, that of their parts, and the mean staleness where each
    # push counts once, however many parts it has.
    composites: int = 0
    composite_parts: int = 0
    composite_staleness: float = 0.0
    # The generation of the shard: how often the run has made it go on from a checkpoint. `returned_to` is the
    # version from which it began its generation, and `versions_lost` how many later ones were known.
    generation: int = 0
    returned_to: int = 0
    versions_lost: int = 0
    # Its newest checkpoint; not set if it has made none.
    checkpoint: CheckpointStatus = dataclasses.field(default_factory=lambda: CheckpointStatus())
    # Why the last try to make a checkpoint failed; empty if it did not.
    checkpoint_failure: str = ""
    # Its log; not set without one.
    log: LogStatus = dataclasses.field(default_factory=lambda: LogStatus())
    # The checkpoint that this process began the run with, such as "run 00c0ffee00c0ffee, version 1200".
    started_from: str = ""
    # How often a checkpoint could not be made.
    checkpoint_failures: int = 0
    # From the begin of a round to its close, and from a push's last byte to the decision about it.
    round_times: TimeHistogram = dataclasses.field(default_factory=lambda: TimeHistogram())
    push_times: TimeHistogram = dataclasses.field(default_factory=lambda: TimeHistogram())
    # The room on the disk of durability.directory after the last try to make a checkpoint; absent before.
    disk_free_bytes: Optional[int] = None
    # The memory that the server may use, and that it needs for its shard; 0 while it does not know.
    memory_limit_bytes: int = 0
    memory_needed_bytes: int = 0
    # Where its HTTP port is, such as "http://localhost:9464"; empty if it has none (http.listen).
    http_address: str = ""


@dataclasses.dataclass(frozen=True)
class PolicyParameter:
    """The message PolicyParameter."""
    key: str = ""
    value: float = 0.0


@dataclasses.dataclass(frozen=True)
class RunStage:
    """A part of a run with one policy and one learning rate. A run goes through its stages in order: those of
    its settings, and those that changes add while it trains (ChangeRun).
    """
    policy: str = ""
    # The policy's parameters, in its order, such as n of softsync.
    parameters: tuple[PolicyParameter, ...] = ()
    # The rate of the servers' rule, before the schedule.
    learning_rate: float = 0.0
    # It ends when the mini-batches of the epochs up to this one are done, or when the next stage begins.
    until_epoch: int = 0
    # Set if the stage begins in the midst of the one before: each shard goes over between two versions, and
    # gradients on their way count. Other stages begin when all mini-batches before are part of the weights.
    begins_at_once: bool = False


@dataclasses.dataclass(frozen=True)
class NonfiniteStatus:
    """Mini-batches of a worker that were left out, because their loss or gradient was not finite. They are
    counted since the worker's last registration.
    """
    total: int = 0
    # The number of them up to now without a healthy one between.
    in_a_row: int = 0
    # The last one: its position in the run-long sequence, and its outcome in words for people.
    batch: int = 0
    what: str = ""


@dataclasses.dataclass(frozen=True)
class LaneTimes:
    """One shard's part of a step's exchange."""
    # When the first and the last chunk of the gradient were handed over.
    push_begin: float = 0.0
    push_end: float = 0.0
    # When the first and the last message of the answer came.
    pull_begin: float = 0.0
    pull_end: float = 0.0


@dataclasses.dataclass(frozen=True)
class StepTimes:
    """The times of the parts of one step of a worker, in seconds since the Unix epoch on the worker's clock.
    """
    # Counts the worker's steps from 1; steps that were given up leave gaps.
    step: int = 0
    batch: int = 0
    forward_begin: float = 0.0
    backward_begin: float = 0.0
    backward_end: float = 0.0
    # The part of forward that was spent on waiting for weights.
    waited_seconds: float = 0.0
    # In the order of shards. Those of shards that had no part in what was pushed then have no times.
    lanes: tuple[LaneTimes, ...] = ()


@dataclasses.dataclass(frozen=True)
class WorkerStatus:
    """The message WorkerStatus."""
    worker: int = 0
    incarnation: int = 0
    # The worker's state: "live", "left" or "dead".
    state: str = ""
    host: str = ""
    # The number of gradients that joined a round on shard 0, over all incarnations.
    pushes: int = 0
    # The number of examples that this incarnation has computed gradients of, including gradients that were
    # refused or dropped. RunStatus.examples counts what became part of the model.
    examples: int = 0
    examples_per_second: float = 0.0
    train_loss: float = 0.0
    train_accuracy: Optional[float] = None
    # Shares of the time since the worker's first step. They overlap.
    compute_share: float = 0.0
    communication_share: float = 0.0
    lease_left_seconds: float = 0.0
    last_staleness: int = 0
    mean_staleness: float = 0.0
    # Absent if there were none.
    nonfinite: NonfiniteStatus = dataclasses.field(default_factory=lambda: NonfiniteStatus())
    # The share of communication time during which computing did not stand still for it.
    communication_hidden: float = 0.0
    # Compute / (compute + communication that was not hidden).
    overlap: float = 0.0
    # The last few steps whose exchange is over, newest last.
    recent_steps: tuple[StepTimes, ...] = ()
    # How long a step takes without waiting for others, and how long the worker has left its weights
    # unanswered: the least of the shards' figures, as a step begins with the last answer.
    step_seconds: float = 0.0
    holding_seconds: float = 0.0
    # Set if the worker is live and much slower than the other live workers, and the reason: its step is above
    # twice their median, or it owes a gradient for more than three times that and a second.
    is_straggler: bool = False
    straggler_reason: str = ""
    # The number of pushes of this incarnation that counted at some shards and were dropped at others. Shards
    # that close their rounds on their own may close them with different workers.
    split_pushes: int = 0
    # Why the worker is dead; empty otherwise.
    failure: str = ""
    # The slowdown of this worker by testing.workers, in words for people; empty if there is none.
    slowdown: str = ""
    # Since when it has neither fetched, pushed, computed nor measured; 0 while it waits for an answer.
    idle_seconds: float = 0.0
    # Set if the worker is live and has been idle for longer than is usual for it.
    is_stalled: bool = False
    # The overlap of the middle half of the worker's steps: without the first weights, and without the end of
    # the work, where units are small.
    steady_overlap: float = 0.0
    # How often a worker with this id has registered, and was lost, since the coordinator's process began.
    registrations: int = 0
    losses: int = 0


@dataclasses.dataclass(frozen=True)
class EvaluationStatus:
    """The message EvaluationStatus."""
    # The number of epochs completed when the evaluation was ordered.
    epoch: int = 0
    test_accuracy: Optional[float] = None
    test_loss: float = 0.0
    examples: int = 0
    # The versions of the measured weights, by shard. They are equal, except under policies without rounds.
    versions: tuple[int, ...] = ()
    seconds: float = 0.0
    final: bool = False
    # Where these weights were saved, and on which worker's host; empty if they were not saved.
    model_file: str = ""
    model_host: str = ""
    # Why the weights could not be saved.
    model_failure: str = ""
    # The evaluation's number, rising, with gaps. The oldest are dropped from the status in the end.
    number: int = 0
    # The epoch of the measured weights: the number of passes over the training data that are part of them. It
    # is above `epoch` if training went on before the weights were read, and below it if gradients were
    # dropped or still in open rounds. 0 if the worker does not report it.
    epochs_measured: float = 0.0
    # How long ago the coordinator heard of it; absent if it was restarted since.
    age_seconds: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class WaitingRound:
    """An open round that has begun to fill, or that has been empty for a second or longer."""
    shard: int = 0
    # The version that the round will make.
    version: int = 0
    # The number of gradients that the round has, and the number that it combines under the current view.
    contributions: int = 0
    round_size: int = 0
    # How long ago the round before this one closed, and how long ago this one last heard from a worker.
    open_seconds: float = 0.0
    unchanged_seconds: float = 0.0
    # The workers without whom the round cannot close: they owe it a gradient, or the guard waits for them.
    waiting_for: tuple[int, ...] = ()
    # The number of gradients that the round lacks, from any workers.
    gradients_missing: int = 0
    # The next event and its time, in words for people.
    outlook: str = ""


@dataclasses.dataclass(frozen=True)
class MissingMembers:
    """The servers, workers and aggregators that the run cannot go on without, and the time until it fails if
    they do not come.
    """
    @dataclasses.dataclass(frozen=True)
    class Server:
        """The message MissingMembers.Server."""
        shard: int = 0
        # The address that the server has registered; before that, the one in cluster.servers.
        address: str = ""

    @dataclasses.dataclass(frozen=True)
    class Aggregator:
        """The message MissingMembers.Aggregator."""
        group: int = 0
        shard: int = 0

    servers: tuple[MissingMembers.Server, ...] = ()
    # Ids of workers. Empty if a server or an aggregator is missing, or if any worker would do. While the run
    # is TRAINING, these are gone, and others are awaited in their places (cluster.on_worker_loss).
    workers: tuple[int, ...] = ()
    fails_in_seconds: float = 0.0
    # The aggregators that have not come, or while the run is INITIALIZING, those that do not know its members
    # yet. Empty if a server or a worker is missing.
    aggregators: tuple[MissingMembers.Aggregator, ...] = ()
    # Once training has begun: how many workers are lacking, if any would do, and for how long.
    more_workers: int = 0
    gone_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class ReaderStatus:
    """A reader of versions. All but the first four fields and the two lags are its own figures."""
    reader: int = 0
    # "live", or "gone" if it has been silent for longer than its lease.
    state: str = ""
    host: str = ""
    name: str = ""
    # The version of shard 0 that it holds; absent before the first.
    version: Optional[int] = None
    # The publisher's label of that version.
    label: int = 0
    # How many versions of shard 0 have been published since, and how long ago the first of these was.
    lag: int = 0
    lag_seconds: float = 0.0
    # The mean and the highest lag at the moments when it had taken a version.
    lag_mean: float = 0.0
    lag_highest: int = 0
    # The most versions that it wants to lag behind; absent if it does not matter.
    lag_max: Optional[int] = None
    # The number of versions taken, and of those begun and lost, as servers did not keep them long enough.
    taken: int = 0
    lost: int = 0
    # The bytes of values that it was sent, and those per second.
    bytes: int = 0
    bytes_per_second: float = 0.0
    silent_seconds: float = 0.0
    # Set if workers wait for it: it lags behind by lag_max, and run.yaml has readers.on_lag: wait.
    is_awaited: bool = False


@dataclasses.dataclass(frozen=True)
class AggregatorStatus:
    """A process that combines the pushes of a group of workers to one shard (cluster.tree)."""
    group: int = 0
    shard: int = 0
    address: str = ""
    # The number of pushes that it has combined, and of what it sent upward for them. The last are the pushes
    # that their workers were told to send to the shard themselves.
    parts: int = 0
    composites: int = 0
    sent_back: int = 0
    # The workers that it waits for just now, and for how long the oldest push has waited for them.
    waiting_for: tuple[int, ...] = ()
    waiting_seconds: float = 0.0
    # Seconds since the coordinator last heard of it.
    silent_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class RunEvent:
    """Something that happened to the run, and that people may ask about later."""
    # Counts the run's events from 1, also those of before the coordinator was restarted.
    number: int = 0
    # By the coordinator's clock, in milliseconds since 1970.
    time_ms: int = 0
    # What kind of thing happened: "worker", "server", "aggregator", "phase", "change", "checkpoint",
    # "evaluation", "straggler", "refusal" or "state".
    kind: str = ""
    # Set if somebody should look at it.
    is_warning: bool = False
    # In words for people, with the facts, as in the coordinator's log.
    text: str = ""
    # Whom it happened to, if it happened to one of them.
    worker: Optional[int] = None
    shard: Optional[int] = None


@dataclasses.dataclass(frozen=True)
class RunStatus:
    """The answer to GetStatus. Staleness is counted for every (push, shard). `pushes` counts the gradients
    that joined a round on shard 0, without excuses and dropped gradients. `updates` is the version of shard
    0.
    """
    name: str = ""
    run: str = ""
    # One of PHASE_UNSPECIFIED, WAITING_FOR_SERVERS, WAITING_FOR_WORKERS, INITIALIZING, TRAINING, DRAINING,
    # EVALUATING, FINISHED, FAILED.
    phase: str = "PHASE_UNSPECIFIED"
    # Set if the phase is FAILED: why the run failed.
    failure: str = ""
    policy: str = ""
    # The policy's parameters, in its order, such as n of softsync.
    policy_parameters: tuple[PolicyParameter, ...] = ()
    # c: the number of gradients per update with as many workers as the run was started for.
    # ShardStatus.round_size is the number under the current view.
    round_size: int = 0
    learning_rate: float = 0.0
    # The time from the begin of training until its last push was answered. It counts like
    # training.max_seconds, and so without the final evaluation. `examples_per_second` is computed from it.
    seconds: float = 0.0
    updates: int = 0
    pushes: int = 0
    examples: int = 0
    examples_per_second: float = 0.0
    batches_total: int = 0
    batches_done: int = 0
    # The number of completed epochs; the one under way does not count.
    epochs: int = 0
    # The means of the losses and training accuracies of the live workers' last steps, weighted by their
    # examples. While no live worker has reported any, they are those of the workers that have gone. Every
    # accuracy here is absent where the loss has no classes (mse).
    train_loss: float = 0.0
    train_accuracy: Optional[float] = None
    view: int = 0
    # The largest minus the smallest version of the shards at one moment, which is that of the oldest of their
    # newest reports. Versions are taken to rise evenly between two reports.
    version_skew: int = 0
    # Over all shards.
    staleness: StalenessStatus = dataclasses.field(default_factory=lambda: StalenessStatus())
    shards: tuple[ShardStatus, ...] = ()
    workers: tuple[WorkerStatus, ...] = ()
    evaluations: tuple[EvaluationStatus, ...] = ()
    # SHA-256 of the final weights (little-endian fp32, layout order), in lower-case hex; empty before the
    # end. The worker that measured them reports it; whoever pulls them can compute it.
    weights_sha256: str = ""
    parameters: int = 0
    # Over all shards; absent without a guard.
    guard: GuardStatus = dataclasses.field(default_factory=lambda: GuardStatus())
    # Why training ended: "epochs", "max_steps", "max_seconds", "target_accuracy", "interrupted" by
    # EndTraining, or "too_few_workers"; empty before that, and if the run failed in training.
    ended_by: str = ""
    # Set if traffic is not encrypted and may leave this machine: security.plaintext is accept_the_risk.
    plaintext_accepted: bool = False
    # `learning_rate` times the mean factor of staleness compensation in shard 0's last 100 updates.
    effective_learning_rate: float = 0.0
    # Open rounds that wait, in order of shards, while the run trains or drains.
    waiting_rounds: tuple[WaitingRound, ...] = ()
    # The number of refused pushes over all shards, by the name of their outcome.
    refusals: dict[str, int] = dataclasses.field(default_factory=dict)
    # The coordinator's version, newest and oldest protocol, and time of day, in milliseconds since 1970.
    server_version: str = ""
    protocol: int = 0
    oldest_protocol: int = 0
    clock_ms: int = 0
    # The settings training.epochs and training.max_seconds (0: no limit).
    epochs_total: int = 0
    seconds_max: float = 0.0
    # Absent while no server, worker or aggregator is missing.
    missing: MissingMembers = dataclasses.field(default_factory=lambda: MissingMembers())
    # Those who only read weights, by number: of many, the 64 furthest behind; and how many others.
    readers: tuple[ReaderStatus, ...] = ()
    readers_unlisted: int = 0
    # All stages of the run, and the place, from 0, of the present one, whose policy `policy` is.
    stages: tuple[RunStage, ...] = ()
    stage: int = 0
    # By group and shard; empty without cluster.tree.
    aggregators: tuple[AggregatorStatus, ...] = ()
    # The setting durability.interval; 0 if servers save no checkpoints.
    checkpoint_interval_seconds: float = 0.0
    # Why the coordinator cannot write its state, for which calls wait; empty if it can.
    state_not_kept: str = ""
    # The setting cluster.workers: as many workers as the run was started for.
    workers_expected: int = 0
    # What happened last, newest last: at most 128 events, and of more, those that are not the oldest of
    # whoever has the most of a kind. So their numbers may have gaps.
    events: tuple[RunEvent, ...] = ()
