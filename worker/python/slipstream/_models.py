"""What a model is to a run: named tensors of 32-bit floats."""
from __future__ import annotations

import hashlib
import logging
import sys
from typing import TYPE_CHECKING, Any, Mapping

from ._arrays import copy, memoryview_of, numpy, plain_tensor, size_of
from ._errors import Refused

if TYPE_CHECKING:
    from ._run import Run

_logger = logging.getLogger("slipstream")

# A tensor's name, its shape and its values.
NamedTensor = tuple[str, tuple[int, ...], Any]

# A tensor's name, its format in a safetensors file, its shape and its bytes.
StoredTensor = tuple[str, str, list[int], bytes]


def is_module(model: Any) -> bool:
    """Returns whether the model is a torch.nn.Module. torch is not loaded for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def tensors_of(model: Any) -> list[NamedTensor]:
    """Returns the tensors that take part, in the model's order. Empty ones do not: they have no
    values."""
    tensors: list[NamedTensor] = []
    if is_module(model):
        parameters = trained(model)
        for name, parameter in parameters.items():
            _check_parameter(name, parameter)
            tensors.append((name, tuple(parameter.shape), parameter))
        _check_apart(parameters)
    elif isinstance(model, Mapping):
        for name, values in model.items():
            view = memoryview_of(values, name)
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


def _check_parameter(name: str, parameter: Any) -> None:
    """Raises Refused if a parameter cannot take part in a run."""
    kind = type(parameter).__name__
    if _has_no_shape(parameter):
        raise Refused(f"{name} has no shape yet: give the lazy module an example before synchronize")
    if kind == "DTensor" or hasattr(parameter, "_local_shard") or hasattr(parameter, "_is_flat_param"):
        raise Refused(f"{name} is divided among processes ({kind}): a worker brings whole parameters, so "
                      "synchronize before, or instead of, FSDP")
    if parameter.device.type == "meta":
        raise Refused(f"{name} is on the meta device, without values: give it some (module.to_empty, and "
                      "initialise it) before synchronize")
    if str(parameter.dtype) != "torch.float32":
        raise Refused(f"{name} is {parameter.dtype}, and a run's tensors are float32: synchronize before "
                      "model.to(…); parameters may have another type from then on")


def _check_apart(parameters: Mapping[str, Any]) -> None:
    """Raises Refused if two parameters have memory in common, as after a.data = b.data: torch trains
    them as one, and a run would part them."""
    places = sorted((parameter.data_ptr(), parameter.data_ptr() + 4 * parameter.numel(), name)
                    for name, parameter in parameters.items() if parameter.device.type == "cpu")
    for (_, end, name), (begin, _, other) in zip(places, places[1:]):
        if begin < end:
            raise Refused(f"{other} has memory in common with {name}: tie them by one parameter "
                          "(a.weight = b.weight) instead of by .data")


def frozen_digests(model: Any) -> list[tuple[str, int]]:
    """Returns the names of a module's parameters that need no gradients, each with a digest of its
    shape, its type and its values, by which workers compare theirs."""
    if not is_module(model):
        return []
    torch = sys.modules["torch"]
    digests = []
    for name, parameter in parameters_by_name(model).items():
        if parameter.requires_grad or parameter.numel() == 0:
            continue
        digest = hashlib.blake2b(f"{parameter.dtype} {tuple(parameter.shape)}".encode(), digest_size=8)
        digest.update(plain_tensor(parameter).cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        digests.append((name, int.from_bytes(digest.digest(), "little")))
    return digests


def flat_copy(tensors: list[NamedTensor]) -> memoryview:
    """Returns the values of all tensors, one after another."""
    flat = memoryview(bytearray(4 * sum(size_of(shape) for _, shape, _ in tensors))).cast("f")
    begin = 0
    for name, shape, values in tensors:
        count = size_of(shape)
        copy(values, flat[begin:begin + count], name)
        begin += count
    return flat


def published(model: Any, *, is_first: bool) -> dict[str, Any]:
    """Returns the tensors of whole weights as float32: those of a module with its buffers, or of a
    mapping. Those without values are left out; the first time, a warning names them. Raises Refused if
    float32 cannot hold a value."""
    tensors = state_of(model) if is_module(model) else model
    if not isinstance(tensors, Mapping):
        raise Refused(f"whole weights are a torch.nn.Module or a mapping of names to arrays, as "
                      f"state_dict() returns, not {type(model).__name__}")
    floats = {name: _as_floats(name, values) for name, values in tensors.items()}
    filled = {name: values for name, values in floats.items() if memoryview_of(values, name).nbytes > 0}
    if not filled:
        raise Refused("there are no values to publish")
    if is_first and len(filled) < len(floats):
        _logger.warning("publish leaves out %s, without values: who loads the weights with "
                        "load_state_dict needs strict=False", ", ".join(sorted(set(floats) - set(filled))))
    return filled


def shape_of(values: Any) -> tuple[int, ...]:
    """Returns the shape of an array."""
    return tuple(memoryview_of(values, "an array").shape or ())


def _as_floats(name: str, values: Any) -> Any:
    if hasattr(values, "detach"):
        torch = sys.modules["torch"]
        values = plain_tensor(values)
        if values.is_complex():
            raise Refused(f"{name} is complex: publish its real and its imaginary part")
        floats = values.to(torch.float32)
        is_exact = values.dtype in (torch.float32, torch.bfloat16, torch.float16) or bool(
            torch.equal(floats.to(values.dtype), values))
        floats = floats.cpu()
    elif numpy is not None:
        values = numpy.asarray(values)
        if values.dtype.kind not in "biuf":
            raise Refused(f"{name} is {values.dtype}: whole weights are real numbers")
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
        _torch.shared_module(run, model)
    else:
        for name, values in run.weights.items():
            copy(values, model[name], name)


# What torch.compile puts before the names of a module's parameters.
_COMPILED = "_orig_mod."


def original(module: Any) -> Any:
    """Returns the module that torch.compile was given, if this is what it returned."""
    return getattr(module, "_orig_mod", module)


def parameters_by_name(module: Any) -> dict[str, Any]:
    """Returns a module's parameters by name; those that several names have by the first."""
    return {name.replace(_COMPILED, ""): parameter for name, parameter in module.named_parameters()}


def _has_no_shape(parameter: Any) -> bool:
    return type(parameter).__name__ == "UninitializedParameter"


def trained(module: Any) -> dict[str, Any]:
    """Returns a module's parameters that take part, by name."""
    return {name: parameter for name, parameter in parameters_by_name(module).items()
            if parameter.requires_grad and (_has_no_shape(parameter) or parameter.numel() > 0)}


def state_of(module: Any) -> dict[str, Any]:
    """Returns a module's parameters, under each name that they have, and its buffers, by name."""
    torch = sys.modules["torch"]
    return {name.replace(_COMPILED, ""): values
            for name, values in module.state_dict(keep_vars=True).items()
            if isinstance(values, torch.Tensor)}


def state_with(module: Any, weights: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a module's whole state with other weights of the tensors that are in the run: the state
    that load_state_dict takes. Buffers are copies."""
    torch = sys.modules["torch"]
    in_run = {id(parameter): name for name, parameter in parameters_by_name(module).items()
              if name in weights}
    return {name: weights[in_run[id(values)]] if id(values) in in_run
            else values.detach() if isinstance(values, torch.nn.Parameter)
            else values.detach().clone() for name, values in state_of(module).items()}


# The formats of safetensors, by the names that PyTorch has for them.
_FORMATS = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
            "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL"}


def beside(state: Mapping[str, Any], weights: Mapping[str, Any]) -> list[StoredTensor]:
    """Returns the tensors of a module's state that are not among the run's, to be saved with them:
    buffers, frozen parameters, and further names of those that are in the run."""
    torch = sys.modules["torch"]
    stored: list[StoredTensor] = []
    for name, values in state.items():
        if name in weights:
            continue
        kind = str(values.dtype).replace("torch.", "")
        if kind not in _FORMATS:
            raise Refused(f"{name} is {kind}, which a safetensors file of this package cannot hold")
        flat = plain_tensor(values).cpu().contiguous().reshape(-1)
        stored.append((name, _FORMATS[kind], list(values.shape),
                       flat.view(torch.uint8).numpy().tobytes()))
    return stored
