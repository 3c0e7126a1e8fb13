"""Dataclasses as plain JSON values and back; reading is strict, so that nobody doubts the values again."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from coview.errors import InputError


def to_plain(value: Any) -> Any:
    """Return dataclasses as dictionaries and tuples as lists, all the way down."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: to_plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(entry) for entry in value]
    return value


def from_plain(kind: Any, value: Any, where: str) -> Any:
    """Return the value as this type, or say what is wrong with it.

    Parameters
    ----------
    kind : type
        A dataclass, str, bool, int, float, Any, `X | None`, `tuple[X, ...]` or `dict[str, X]`.
    value : as json.loads returns it
    where : str
        What the value is, for messages.
    """
    if kind is Any:
        return _anything(value, where)
    if get_origin(kind) is UnionType:
        (inner,) = (option for option in get_args(kind) if option is not NoneType)
        return None if value is None else from_plain(inner, value, where)
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        return tuple(from_plain(inner, entry, f"{where}[{i}]") for i, entry in enumerate(_is(list, value, where)))
    if get_origin(kind) is dict:
        inner = get_args(kind)[1]
        return {key: from_plain(inner, entry, f"{where}.{key}") for key, entry in _is(dict, value, where).items()}
    if is_dataclass(kind):
        return _record(kind, _is(dict, value, where), where)
    if kind is float:
        return _finite(_is((int, float), value, where), where)
    return _is(kind, value, where)


def _anything(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _anything(entry, f"{where}.{key}") for key, entry in value.items()}
    if isinstance(value, list):
        return [_anything(entry, f"{where}[{i}]") for i, entry in enumerate(value)]
    return _finite(value, where) if isinstance(value, float) else value


def _record(kind: Any, value: dict[str, Any], where: str) -> Any:
    types = _types(kind)
    for name in types:
        if name not in value:
            raise InputError(f"{where} has no entry {name!r}")
    for name in value:
        if name not in types:
            raise InputError(f"{where} has the unknown entry {name!r}")
    return kind(**{name: from_plain(inner, value[name], f"{where}.{name}") for name, inner in types.items()})


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


_WORDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    (int, float): "a number",
    list: "a list",
    dict: "an object",
}


def _is(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
        raise InputError(f"{where} must be {_WORDS[kind]}, not {type(value).__name__}")
    return value


def _finite(value: float, where: str) -> float:
    try:
        number = float(value)
    except OverflowError:  # whole numbers have no bound in JSON
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{where} must be finite")
    return number
