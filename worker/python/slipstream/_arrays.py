"""Arrays of 32-bit floats: numpy's, PyTorch's, or any with the buffer protocol."""
from __future__ import annotations

import sys
from typing import Any, Sequence

from . import _core
from ._errors import Refused

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

__all__ = ["as_loaded", "clear", "copy", "memoryview_of", "numpy", "plain_tensor", "size_of", "views_of"]


def views_of(memory: _core.Arena, tensors: Sequence[tuple[str, tuple[int, ...]]]) -> dict[str, Any]:
    """Returns views of the memory, in which these tensors lie one after another."""
    views: dict[str, Any] = {}
    begin = 0
    buffer: Any = memory
    flat: Any = memoryview(buffer) if numpy is None else numpy.asarray(buffer)
    for name, shape in tensors:
        count = size_of(shape)
        part = flat[begin:begin + count]
        if numpy is None:
            views[name] = part.cast("B").cast("f", shape) if shape else part
        else:
            views[name] = part.reshape(shape)
        begin += count
    return views


def as_loaded(views: dict[str, Any]) -> dict[str, Any]:
    """Returns the views as PyTorch's tensors if the program has imported it, else as they are."""
    torch = sys.modules.get("torch")
    if torch is None:
        return views
    return {name: torch.frombuffer(view, dtype=torch.float32).reshape(view.shape)
            for name, view in views.items()}


def plain_tensor(values: Any) -> Any:
    """Returns a tensor without its history, whose values lie one by one where they seem to: PyTorch
    may leave a sign, or zeros, out of the memory."""
    values = values.detach()
    if str(values.layout) != "torch.strided":
        values = values.to_dense()
    return values.resolve_conj().resolve_neg()


def memoryview_of(values: Any, name: str) -> memoryview:
    """Returns a view of an array's values. Raises Refused if it has none."""
    try:
        return memoryview(plain_tensor(values).numpy() if hasattr(values, "detach") else values)
    except (TypeError, BufferError, RuntimeError) as error:
        raise Refused(f"{name} is {type(values).__name__}, not an array of numbers in this process's "
                      f"memory ({error})") from None


def size_of(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def clear(target: Any, name: str) -> None:
    """Sets an array's values to 0."""
    into = memoryview_of(target, name).cast("B")
    into[:] = bytes(into.nbytes)


def copy(source: Any, target: Any, name: str) -> None:
    """Copies float32 values between arrays, or objects with the buffer protocol."""
    view = memoryview_of(source.cpu() if hasattr(source, "detach") else source, name)
    into = memoryview_of(target, name)
    if view.format not in ("f", "<f", "=f") or view.nbytes != into.nbytes:
        raise Refused(f"{name}: {into.nbytes // 4} values of float32 are expected, not "
                      f"{view.nbytes // max(1, view.itemsize)} of format {view.format}")
    if into.readonly:
        raise Refused(f"{name} can only be read, and takes the run's weights")
    into.cast("B")[:] = view.cast("B") if view.c_contiguous else memoryview(view.tobytes())
