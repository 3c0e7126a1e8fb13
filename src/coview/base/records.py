"""Records: dataclasses of plain values as JSON, and back by their type hints.

The hints are str, bool, int, float, Any, Literal, `X | None`, tuple[X, ...], dict[str, X] and dataclasses of these.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeAlias, Union, get_args, get_origin, get_type_hints

from coview.errors import InputError

Json: TypeAlias = Any  # None, bool, int, float, str, list, dict

_WORDS = {str: "a string", bool: "true or false", int: "an integer", float: "a finite number"}
_LARGEST_INTEGER = 2**53  # that JSON readers in other languages keep


class StateError(Exception):
    """A value is not what was expected; the message names it by its path."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path

    def inside(self, name: str) -> StateError:
        """Return the same error about a part of something larger."""
        return StateError(self.reason, f"{name}{'.' if self.path and self.path[0] != '[' else ''}{self.path}")


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Add a name to the path of state errors."""
    try:
        yield
    except StateError as error:
        raise error.inside(name) from None


def require(condition: object, reason: str) -> None:
    """Raise a StateError unless the condition holds."""
    if not condition:
        raise StateError(reason)


def entries(node: Json, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Json]:
    """Return a JSON object that has exactly these entries."""
    require(isinstance(node, dict), f"expected an object, got {type(node).__name__}")
    missing, unknown = [key for key in required if key not in node], set(node) - {*required, *optional}
    require(not missing, f"missing: {', '.join(map(repr, missing))}")
    require(not unknown, f"unknown: {', '.join(sorted(map(repr, unknown)))[:100]}")
    return dict(node)


def refuse_nan(name: str) -> NoReturn:
    """Raise an error for a constant such as NaN, which JSON does not have but Python reads."""
    raise ValueError(f"{name} is not a number")


def record_to_json(value: Any) -> Json:
    """Return a dataclass of plain values as JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: record_to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: record_to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [record_to_json(item) for item in value]
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    raise InputError(f"{type(value).__name__} {value!r} is not a plain value")


def record_from_json(cls: Any, node: Json, name: str) -> Any:
    """Return the dataclass that was written as this JSON, or raise an InputError about the record of this name."""
    try:
        return _read(cls, node)
    except StateError as error:
        raise InputError(str(error.inside(name))) from None


@cache
def _hints(cls: Any) -> dict[str, Any]:
    declared = get_type_hints(cls)
    return {field.name: declared[field.name] for field in fields(cls)}


def _read(hint: Any, node: Json) -> Any:
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (inner,) = (option for option in options if option is not NoneType)
        return None if node is None else _read(inner, node)
    if origin is Literal:
        found = next((option for option in options if type(option) is type(node) and option == node), None)
        require(found is not None, f"expected one of {', '.join(map(str, options))}, got {str(node)[:50]}")
        return found
    if origin is tuple:
        require(isinstance(node, list), f"expected a list, got {type(node).__name__}")
        return tuple(_read_item(options[0], item, f"[{i}]") for i, item in enumerate(node))
    if origin is dict:
        require(isinstance(node, dict), f"expected an object, got {type(node).__name__}")
        return {key: _read_item(options[1], item, key) for key, item in node.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        hints = _hints(hint)
        return hint(**{key: _read_item(hints[key], item, key) for key, item in entries(node, list(hints)).items()})
    return _read_plain(hint, node)


def _read_item(hint: Any, item: Json, name: str) -> Any:
    if hint in _WORDS:  # cheaper than a context, for long lists of numbers
        try:
            return _read_plain(hint, item)
        except StateError as error:
            raise error.inside(name) from None
    with inside(name):
        return _read(hint, item)


def _read_plain(hint: Any, node: Json) -> Any:
    if hint is Any:
        if isinstance(node, (dict, list)):
            return _read(dict[str, Any], node) if isinstance(node, dict) else list(_read(tuple[Any, ...], node))
        hint = type(node)
        if hint is NoneType:
            return None
    accepted = (int, float) if hint is float else hint
    if not isinstance(node, accepted) or isinstance(node, bool) != (hint is bool):
        raise StateError(f"expected {_WORDS[hint]}, got {type(node).__name__}")
    if hint is float and not abs(node) <= sys.float_info.max:  # an integer of many digits is no float
        raise StateError(f"expected {_WORDS[hint]}, got {node if isinstance(node, float) else type(node).__name__}")
    if hint is int and abs(node) > _LARGEST_INTEGER:
        raise StateError(f"expected {_WORDS[hint]} within ±2^53")
    return float(node) if hint is float else node
