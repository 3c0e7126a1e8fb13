"""Number formats of the report."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence


def count(value: int) -> str:
    """Return an integer with thousands separators."""
    return f"{value:,}"


def plural(value: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def decimals(value: float | None, digits: int = 2, sign: bool = False) -> str:
    """Return a number with fixed decimals, or a dash if it is missing; `sign` adds a plus sign."""
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 1e5:
        shown = f"{value:.3g}"
    elif 0 < size < 0.5 * 10**-digits:
        shown = f"{value:.1g}"
    else:
        shown = f"{value:.{digits}f}"
    return shown.replace("-", "−", 1) if value < 0 else "+" * sign + shown


def percent(fraction: float | None) -> str:
    """Return a fraction as a percentage."""
    if fraction is None or not math.isfinite(fraction):
        return "–"
    if 0.995 <= fraction < 1:
        return f"{fraction:.2%}"
    return f"{fraction:.1%}" if 0 < fraction < 0.01 else f"{fraction:.0%}"


def seconds(value: float) -> str:
    """Return a duration."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def rounded(text: str) -> str:
    """Return code with its long numbers rounded to four digits."""
    return re.sub(r"\d+\.\d{4,}(e[-+]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)


def listed(names: Sequence[str]) -> str:
    """Return names as an enumeration."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


FILTERS = {each.__name__: each for each in (count, decimals, listed, percent, plural, rounded, seconds)}
