"""The run's status, from the JSON that the extension returns."""
from __future__ import annotations

import dataclasses
import functools
import json
import math
import typing
from typing import Any

from .status_types import RunStatus


@functools.lru_cache(maxsize=None)
def _types_of(message: type) -> dict[str, Any]:
    """Returns the types of a class's fields, by name."""
    return typing.get_type_hints(message)


def _message_of(message: type, found: dict[str, Any]) -> Any:
    """Returns an object of the class `message`. Fields that `found` lacks have their defaults, and the
    ones that the class lacks are left out: the server may be of another version."""
    return message(**{name: _value_of(kind, found[name])
                      for name, kind in _types_of(message).items() if name in found})


def _value_of(kind: Any, found: Any) -> Any:
    """Returns a value of JSON as a value of the type `kind`."""
    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin is typing.Union:  # The field is optional.
        return None if found is None else _value_of(arguments[0], found)
    if origin is tuple:
        return tuple(_value_of(arguments[0], item) for item in found)
    if origin is dict:
        return {arguments[0](key): _value_of(arguments[1], item) for key, item in found.items()}
    if dataclasses.is_dataclass(kind):
        return _message_of(typing.cast(type, kind), found)
    if kind is float and found is None:  # JSON has no number that is not finite.
        return math.nan
    return kind(found)


def status_of(text: str) -> RunStatus:
    """Returns the status that is written as JSON in `text`."""
    status: RunStatus = _message_of(RunStatus, json.loads(text))
    return status
