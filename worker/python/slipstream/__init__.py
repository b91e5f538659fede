"""Slipstream: training one model on machines that do not keep step.

    import slipstream

    with slipstream.connect("node0:7070") as run:        # joins as a worker
        run.synchronize(model, examples=len(dataset))    # the first worker's weights, for all
        opt = slipstream.Optimizer(run, model)           # the servers' rule
        for positions in run.batches():                  # handed out, each example once an epoch
            opt.zero_grad()
            loss = criterion(model(x[positions]), y[positions])
            loss.backward()
            opt.step(loss=loss.item())

A program that trains by itself publishes whole weights (`Run.publish`), and any number of readers
follow them, or those of any other run:

    for weights in slipstream.subscribe("node0:7070"):
        model.load_state_dict(weights.tensors)
        weights.version, weights.lag

`Run` has the calls for loops of another kind and for models that are no PyTorch modules.
`LocalSteps` (also under the names `DiLoCo` and `LocalSGD`), `Downpour` and `EASGD` are for workers
that take steps of their own. PyTorch and NumPy are used where they are installed; neither is needed.
Lines that the library logs go to the logger "slipstream".
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._connect import connect, status
from ._errors import (AccessDenied, Error, ForkedError, LeaseLost, Left, NotReady, Refused,
                      RunFailed, RunFinished, RunFull, ServerUnreachable)
from ._pending import Pending
from ._readers import Reader, Weights, subscribe
from ._results import Pulled, PushResult, ShardAnswer
from ._run import Run
from ._settings import Settings
from .status_types import RunStatus

if TYPE_CHECKING:
    from ._local_steps import EASGD, DiLoCo, Downpour, LocalSGD, LocalSteps
    from ._torch import Optimizer

__all__ = ["AccessDenied", "DiLoCo", "Downpour", "EASGD", "Error", "ForkedError", "LeaseLost", "Left",
           "LocalSGD", "LocalSteps", "NotReady", "Optimizer", "Pending", "Pulled", "PushResult",
           "Reader", "Refused", "Run", "RunFailed", "RunFinished", "RunFull", "RunStatus",
           "ServerUnreachable", "Settings", "ShardAnswer", "Weights", "connect", "status", "subscribe"]

_OF_LOCAL_STEPS = ("DiLoCo", "Downpour", "EASGD", "LocalSGD", "LocalSteps")


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to load, and is not needed for the rest.
    if name == "Optimizer":
        from . import _torch
        return _torch.Optimizer
    if name in _OF_LOCAL_STEPS:
        from . import _local_steps
        return getattr(_local_steps, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
