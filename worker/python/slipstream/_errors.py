"""The exceptions of the package, one for each kind of failure that wants another answer."""
from __future__ import annotations

from . import _core


class Error(RuntimeError):
    """Something went wrong in a run, or on the way to it. The text says what, and what to do."""


class ServerUnreachable(Error):
    """A server does not answer. It is down, or the network is, or the address is wrong."""


class LeaseLost(Error):
    """The run counts this worker as gone: it was silent for longer than cluster.lease, or another
    process took its id. Nothing that it pushes counts any more. Connect again to go on."""


class NotReady(Error):
    """A call that needs another one before it, such as a push without `fetch`."""


class RunFinished(Error):
    """The run is over, or has no work left, and the model has the final weights. End the loop by
    `run.finished`, or catch this around it."""


class RunFailed(Error):
    """The run has failed for all its workers; the text says why."""


class Refused(Error, ValueError):
    """What this worker brings does not fit the run: a tensor, a number of examples, a setting."""


class RunFull(Error):
    """The run takes no more workers at the moment. Try again when one has left."""


class AccessDenied(Error):
    """The server does not accept this process's certificate or token, or there is none."""


class Left(Error):
    """The worker has left the run, so that it can do nothing more in it."""


class ForkedError(Error):
    """This process was forked from a worker's. Only the worker itself may use its run: processes of
    a DataLoader, say, may load examples, and no more."""


_EXCEPTIONS: dict[str, type[Error]] = {
    "UNAVAILABLE": ServerUnreachable,
    "DEADLINE_EXCEEDED": ServerUnreachable,
    "FAILED_PRECONDITION": LeaseLost,
    "ALREADY_EXISTS": NotReady,
    "OUT_OF_RANGE": RunFinished,
    "ABORTED": RunFailed,
    "INVALID_ARGUMENT": Refused,
    "NOT_FOUND": Refused,
    "RESOURCE_EXHAUSTED": RunFull,
    "PERMISSION_DENIED": AccessDenied,
    "UNAUTHENTICATED": AccessDenied,
    "CANCELLED": Left,
    "UNIMPLEMENTED": ForkedError,
}

def _exception_of(code: str, text: str) -> Error:
    """Returns the exception for a failure of the extension."""
    kind = _EXCEPTIONS.get(code, Error)
    if kind is LeaseLost:
        text += "; connect again to go on as a new worker"
    if kind is Left:
        text = "this process has left the run; connect again, or subscribe again, to go on"
    return kind(text)


_core.raise_by(_exception_of)
