"""Waiting for what the extension does, so that Ctrl-C works and log lines are passed on."""
from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Callable, Generator, Generic, Optional, TypeVar

from . import _core

T = TypeVar("T")

_logger = logging.getLogger("slipstream")

# How long the interpreter waits before it looks whether a signal has come.
_LOOK_SECONDS = 0.1


def pass_on_log_lines() -> None:
    """Gives the lines that the extension logged to the logger "slipstream"."""
    for level, text in _core.take_log_lines():
        _logger.log(level, "%s", text)


class Pending(Generic[T]):
    """The result of a call that goes on in the background: `result()` waits for it, and so does
    `await`. Whether anyone waits or not, the call is made."""

    def __init__(self, operation: _core.Operation, value: Callable[[Any], T]) -> None:
        self._operation = operation
        self._value = value

    def done(self) -> bool:
        """Returns whether the result, or the failure, is there."""
        return self._operation.wait(0)

    def result(self, timeout: Optional[float] = None) -> T:
        """Waits and returns the result.

        Raises an `Error` if the call failed, and TimeoutError after `timeout` seconds; the call
        then still goes on.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._operation.wait(_LOOK_SECONDS):
            pass_on_log_lines()
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"no result within {timeout} s")
        pass_on_log_lines()
        return self._value(self._operation.value())

    def __await__(self) -> Generator[Any, None, T]:
        return self._awaited().__await__()

    async def _awaited(self) -> T:
        # Looks now and then, so that a cancelled task ends, and no thread waits for it.
        pause = 0.0
        while not self._operation.wait(0):
            await asyncio.sleep(pause)
            pause = min(max(2 * pause, 0.0002), 0.02)
            pass_on_log_lines()
        return self.result()


def _as_it_is(value: Any) -> Any:
    return value


def wait(operation: _core.Operation) -> Any:
    """Waits for an operation, and returns what it does."""
    return Pending(operation, _as_it_is).result()
