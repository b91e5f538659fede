"""What a model is to a run: named tensors of 32-bit floats."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Mapping

from ._arrays import copy, memoryview_of, numpy, size_of
from ._errors import Refused

if TYPE_CHECKING:
    from ._run import Run

# A tensor's name, its shape and its values.
NamedTensor = tuple[str, tuple[int, ...], Any]


def is_module(model: Any) -> bool:
    """Returns whether the model is a torch.nn.Module. torch is not loaded for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def tensors_of(model: Any) -> list[NamedTensor]:
    """Returns the tensors that take part, in the model's order. Empty ones do not: they have no
    values."""
    tensors: list[NamedTensor] = []
    if is_module(model):
        for name, parameter in trained(model).items():
            if str(parameter.dtype) != "torch.float32":
                raise Refused(f"{name} is {parameter.dtype}; a run's tensors are float32")
            tensors.append((name, tuple(parameter.shape), parameter))
    elif isinstance(model, Mapping):
        for name, values in model.items():
            view = memoryview_of(values)
            if view.readonly:
                raise Refused(f"{name} can only be read, and takes the run's weights")
            if view.format not in ("f", "<f", "=f"):
                raise Refused(f"{name} has format {view.format}; a run's tensors are float32")
            if view.nbytes > 0:
                tensors.append((name, tuple(view.shape or ()), values))
    else:
        raise Refused(f"a model is a torch.nn.Module or a mapping of names to arrays, not "
                      f"{type(model).__name__}")
    if not tensors:
        raise Refused("the model has no tensors to train")
    return tensors


def flat_copy(tensors: list[NamedTensor]) -> memoryview:
    """Returns the values of all tensors, one after another."""
    flat = memoryview(bytearray(4 * sum(size_of(shape) for _, shape, _ in tensors))).cast("f")
    begin = 0
    for name, shape, values in tensors:
        count = size_of(shape)
        copy(values, flat[begin:begin + count], name)
        begin += count
    return flat


def published(model: Any) -> dict[str, Any]:
    """Returns the tensors of whole weights as float32: those of a module with its buffers, or of a
    mapping. Empty ones are left out. Raises Refused if float32 cannot hold a value."""
    tensors = model.state_dict() if is_module(model) else model
    if not isinstance(tensors, Mapping):
        raise Refused(f"whole weights are a torch.nn.Module or a mapping of names to arrays, as "
                      f"state_dict() returns, not {type(model).__name__}")
    floats = {name: _as_floats(name, values) for name, values in tensors.items()}
    floats = {name: values for name, values in floats.items() if memoryview_of(values).nbytes > 0}
    if not floats:
        raise Refused("there are no values to publish")
    return floats


def shape_of(values: Any) -> tuple[int, ...]:
    """Returns the shape of an array."""
    return tuple(memoryview_of(values).shape or ())


def _as_floats(name: str, values: Any) -> Any:
    if hasattr(values, "detach"):
        torch = sys.modules["torch"]
        values = values.detach()
        floats = values.to(torch.float32)
        is_exact = values.dtype in (torch.float32, torch.bfloat16, torch.float16) or bool(
            torch.equal(floats.to(values.dtype), values))
        floats = floats.cpu()
    elif numpy is not None:
        values = numpy.asarray(values)
        floats = numpy.asarray(values, dtype=numpy.float32)
        is_exact = values.dtype in (numpy.float32, numpy.float16) or bool(
            (floats.astype(values.dtype) == values).all())
    else:
        return values
    if not is_exact:
        raise Refused(f"{name} is {values.dtype}, and float32 cannot hold all its values: convert it "
                      "first, as to .float(), if that is good enough")
    return floats


def adopt(model: Any, run: "Run") -> None:
    """Gives the model the run's weights: a module's parameters come to lie in the run's memory, if
    they are on the processor; arrays are filled."""
    if is_module(model):
        from . import _torch
        _torch.adopt(model, run)
    else:
        for name, values in run.weights.items():
            copy(values, model[name], name)


def trained(module: Any) -> dict[str, Any]:
    """Returns a module's parameters that take part, by name."""
    return {name: parameter for name, parameter in module.named_parameters()
            if parameter.requires_grad and parameter.numel() > 0}
