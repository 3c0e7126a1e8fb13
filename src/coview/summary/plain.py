"""Plain records, whose numbers are rounded when they are made, so that a summary and its file have the same ones."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound=DataclassInstance)

_DIGITS = 5  # significant ones, which keep the file small
THREE_DIGITS = {"digits": 3}  # metadata of a field whose values have larger errors
EXACT = {"digits": None}  # metadata of a field whose value stays as it is


def plain_record(cls: type[Record], **values: Any) -> Record:
    """Return a record with arrays as tuples, None instead of NaN, and numbers of as many digits as the fields say."""
    digits = {field.name: field.metadata.get("digits", _DIGITS) for field in fields(cls)}
    return cls(**{name: _plain(value, digits[name]) for name, value in values.items()})


def _plain(value: Any, digits: int | None) -> Any:
    if digits is None:
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        # Not by recursion for each number: there are hundreds of thousands.
        return tuple(_rounded(each, digits) if isinstance(each, float) else _plain(each, digits) for each in value)
    if isinstance(value, dict):
        return {name: _plain(each, digits) for name, each in value.items()}
    return _rounded(value, digits) if isinstance(value, float) else value


def _rounded(number: float, digits: int) -> float | None:
    return None if math.isnan(number) else significant(number, digits)


def significant(number: float, digits: int = _DIGITS) -> float:
    """Return a number with a few significant digits, but without rounding it to 1."""
    rounded = float(f"{number:.{digits}g}")
    return float(f"{number:.9g}") if abs(rounded) == 1 else rounded
