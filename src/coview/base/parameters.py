"""Checks of parameters that are numbers; booleans are refused, although Python counts them as integers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from coview.errors import InputError

_LONGEST_VALUE = 60  # characters in a message


def short(value: Any) -> str:
    """Return a value as in Python, on one line and cut if it is long, for messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def is_integer(value: Any) -> bool:
    """Return whether this is an integer and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether this is a real number and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_integer(name: str, value: Any, least: int, most: int | None = None, *, or_else: str = "") -> int:
    """Return the integer within the bounds, both inclusive, or raise an InputError.

    `name` is the parameter and `or_else` ends the message with other values that are accepted, such as ", or 'auto'".
    """
    if not (is_integer(value) and least <= value and (most is None or value <= most)):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name}={short(value)}: expected an integer {bounds}{or_else}")
    return int(value)


def check_number(
    name: str, value: Any, least: float = -math.inf, most: float = math.inf, *, or_else: str = ""
) -> float:
    """Return the finite number within the bounds, both inclusive, or raise an InputError; see `check_integer`."""
    if not (is_number(value) and math.isfinite(value) and least <= value <= most):
        bounds = [f"of at least {least:g}"] * (least > -math.inf) + [f"at most {most:g}"] * (most < math.inf)
        raise InputError(
            f"{name}={short(value)}: expected a number{' ' if bounds else ''}{' and '.join(bounds)}{or_else}"
        )
    return float(value)


def check_above(name: str, value: Any, bound: float, most: float = math.inf, *, or_else: str = "") -> float:
    """Return the finite number, which must be larger than the bound and at most `most`, or raise an InputError."""
    if not (is_number(value) and math.isfinite(value) and bound < value <= most):
        end = f" and at most {most:g}" if most < math.inf else ""
        raise InputError(f"{name}={short(value)}: expected a number above {bound:g}{end}{or_else}")
    return float(value)


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise an InputError unless the value is one of these strings (or None)."""
    choices = list(choices)
    if not ((value is None or isinstance(value, str)) and value in choices):
        raise InputError(f"{name}={short(value)}: expected {' or '.join(map(repr, choices))}")


def check_boolean(name: str, value: Any) -> None:
    """Raise an InputError unless the value is a boolean of Python or NumPy; arrays have no truth value."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name}={short(value)}: expected True or False")
