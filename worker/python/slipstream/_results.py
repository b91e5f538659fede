"""What the servers answer to a worker."""
from __future__ import annotations

import dataclasses
from typing import Any, Mapping


@dataclasses.dataclass(frozen=True)
class ShardAnswer:
    """A shard's answer to a push.

    outcome:   "APPLIED" and "BUFFERED" count; "DROPPED_LATE" does not; "TOO_STALE" was refused.
    version:   the version of the shard that the push is or will be part of.
    staleness: the version that the push is applied to, less the one it was computed from.
    """
    outcome: str
    version: int
    staleness: int


@dataclasses.dataclass(frozen=True)
class PushResult:
    """The answers of all shards to a push, and what stands out of them.

    outcome:   the shards' if they agree, else "SPLIT".
    version:   the lowest of the shards.
    staleness: the highest of the shards.
    """
    outcome: str
    version: int
    staleness: int
    shards: tuple[ShardAnswer, ...]


@dataclasses.dataclass(frozen=True)
class Pulled:
    """Weights that were read.

    versions: of each shard. They are all the same where shards are updated in step (hardsync, backup).
    tensors:  by name.
    """
    versions: tuple[int, ...]
    tensors: Mapping[str, Any]


def result_of(answers: tuple[bool, list[tuple[str, int, int]]]) -> PushResult:
    """Makes the result of a push of whether it counts, and of the shards' answers."""
    counts, replies = answers
    # A push that was left out has no answers; the replies are those to the one before.
    shards = tuple(ShardAnswer(outcome if counts else "NONFINITE", version, staleness)
                   for outcome, version, staleness in replies)
    outcomes = {shard.outcome for shard in shards}
    return PushResult(outcomes.pop() if len(outcomes) == 1 else "SPLIT",
                      min(shard.version for shard in shards),
                      max(shard.staleness for shard in shards), shards)
