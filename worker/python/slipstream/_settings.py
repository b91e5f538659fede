"""The settings of a run that its workers have to know."""
from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of the run that a worker has to know; run.yaml has them all.

    local_steps:   whether workers take steps of their own between two pushes.
    keeps_weights: whether workers keep weights of their own for the whole run.
    lands_apart:   whether the servers' weights arrive beside those that a worker steps: where it keeps
                   its own, and with fragments.
    moving_rate:   where they do, the share of the distance by which an exchange draws a worker's
                   weights to the servers', and theirs to the worker's: elasticity / workers.
    steps:         the number of mini-batches that a push stands for, or the most.
    clip_value, clip_norm: how the gradient of each mini-batch is clipped; 0 for not at all.
    measured:      whether workers measure the weights, so that `Run.evaluate_by` is needed.
    """
    name: str
    seed: int
    workers: int
    servers: tuple[str, ...]
    policy: str
    batch_size: int
    epochs: int
    own_work: bool
    algorithm: str
    local_steps: bool
    keeps_weights: bool
    lands_apart: bool
    moving_rate: float
    pushes_gradients: bool
    publishes: bool
    steps: int
    clip_value: float
    clip_norm: float
    measured: bool
    lease_seconds: float
