"""Readers: who follows the versions of a run's weights, and pushes nothing."""
from __future__ import annotations

import dataclasses
import re
import types
from typing import Any, AsyncIterator, Iterator, Mapping, Optional, Union

from . import _core
from ._arrays import as_loaded, views_of
from ._connect import address_of, credential_files
from ._errors import Left, Refused
from ._pending import Pending, wait


@dataclasses.dataclass(frozen=True)
class Weights:
    """One state of a run's model.

    tensors:  by name, float32, in their shapes: PyTorch's if the program has imported it, or NumPy's,
              or else memoryviews. They are this reader's own, and stay as long as something refers to
              them. Leave the values as they are: what comes next may be sent as their changes.
    version:  the number that the publisher gave it (`Run.publish`), or where servers make the versions,
              that of server 0.
    lag:      how many versions had been published since, when all of this one had come.
    is_whole: whether all servers have this state: always where whole weights are published, and under
              hardsync and backup. Elsewhere servers update on their own, and each has a version of its
              own; only what a run began with is whole.
    versions: of each server, by their own count, which begins at 0.
    examples: how many examples' gradients are part of it; 0 if it was published.
    """
    tensors: Mapping[str, Any]
    version: int
    lag: int
    is_whole: bool
    versions: tuple[int, ...]
    examples: int


class Reader:
    """A reader that follows a run. `subscribe` makes it.

    Iterate over it, in a `for` or an `async for` loop: each turn waits for a state that is newer than
    the last, and takes the newest; a slow reader skips those between. The loop ends with the run.
    Leaving the `with` block closes the reader, and so does the end of its loop.

    One thread, or one task, at a time may use it. Every wait ends with Ctrl-C.
    """

    def __init__(self, reader: _core.Reader, layout: list[tuple[str, list[int]]]) -> None:
        self._reader = reader
        self._tensors = [(name, tuple(shape)) for name, shape in layout]
        self._is_closed = False
        self._is_over = False

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the model's tensors, by name."""
        return dict(self._tensors)

    def next(self) -> Pending[Optional[Weights]]:
        """Begins to wait for a newer state, and to take it; None at the end of the run."""
        if self._is_closed:
            raise Left("this reader was closed; subscribe again")
        return Pending(self._reader.next(), self._weights_of)

    def _weights_of(self, found: Any) -> Optional[Weights]:
        if found is None:
            return None
        versions, stamp, label, lag, examples, memory = found
        is_published = stamp is not None and stamp[0] > 0
        return Weights(as_loaded(views_of(memory, self._tensors)), label if is_published else versions[0], lag,
                       stamp is not None, tuple(versions), examples)

    def __iter__(self) -> Iterator[Weights]:
        return self

    def __next__(self) -> Weights:
        found = None if self._is_over else self.next().result()
        if found is None:
            self._end()
            raise StopIteration
        return found

    def _end(self) -> None:
        self._is_over = True
        self.close()

    def __aiter__(self) -> AsyncIterator[Weights]:
        return self

    async def __anext__(self) -> Weights:
        found = None if self._is_over else await self.next()
        if found is None:
            self._end()
            raise StopAsyncIteration
        return found

    def close(self) -> None:
        """Ends what the reader waits for, and takes it off the run's list of readers."""
        if not self._is_closed:
            self._is_closed = True
            self._reader.close()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 _: Optional[types.TracebackType]) -> None:
        self.close()


def subscribe(address: Optional[str] = None, *, max_lag: Optional[int] = None,
              name: str = "python", tls: Union[None, str, Mapping[str, str]] = None,
              token: Optional[str] = None) -> Reader:
    """Follows the versions of a run's weights, as a reader: it is no worker, may come and go at any
    time, and nobody waits for it.

    address: "host:port" of server 0; by default what psctl run says.
    max_lag: how many versions it wants to lag behind at most. The status shows it beside the lag. With
             readers.on_lag: wait in run.yaml, workers wait where the lag would exceed it, until this
             reader asks for the next state, or is gone. A reader holds what it was sent last.
    name:    what the reader is, for the status: visible ASCII characters.
    tls, token: as those of `connect`; the certificate is a reader's (reader.crt and reader.key).

    Waits until the run has a model. Raises ServerUnreachable, AccessDenied, RunFull or RunFailed.
    """
    if max_lag is not None and (not isinstance(max_lag, int) or max_lag < 0):
        raise Refused(f"max_lag={max_lag!r}: a number of versions is expected")
    if not re.fullmatch("[!-~]{1,256}", name):
        raise Refused(f"name={name!r}: 1 to 256 visible ASCII characters are expected")
    reader = _core.Reader()
    try:
        layout = wait(reader.connect(address_of(address), name, max_lag,
                                     credential_files(tls, token)))
    except BaseException:
        reader.close()
        raise
    return Reader(reader, layout)
