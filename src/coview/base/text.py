"""Formats of numbers and names in terminal, summary and report.

Rounding does not turn a number into 0, 1 or -1, or a percentage into 0 % or 100 %: 0.997 is "0.997" and not "1.00".
Nor does it turn a number into a bound that decides how to read it: 0.599 is "0.599" if "below 0.6" has a meaning.
Differences beyond six decimals are rounding errors of the computation, and are not shown.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

MOST_DECIMALS = 6
# Control characters, and those that change the direction of the text or end a line.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def count(value: int) -> str:
    """Return an integer with thousands separators."""
    return f"{value:,}"


def plural(value: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def decimals(value: float | None, digits: int = 2, sign: bool = False, bounds: Sequence[float] = ()) -> str:
    """Return a number with fixed decimals, or more next to a bound; a dash if it is missing; `sign` adds a plus."""
    if value is None or not math.isfinite(value):
        return "–"
    value = round(value, MOST_DECIMALS)
    size = abs(value)
    shown = f"{size:.3g}" if size >= 1e5 else _rounded_apart(size, digits, bounds=(0, 1, *bounds))
    return f"−{shown}" if value < 0 else "+" * sign + shown


def percent(fraction: float | None) -> str:
    """Return a fraction as a percentage, with decimals only near 0 % and 100 %."""
    if fraction is None or not math.isfinite(fraction):
        return "–"
    fraction = round(fraction, MOST_DECIMALS) + 0.0  # -0.0 becomes 0.0
    near = 0 < fraction < 0.01 or 0.99 < fraction < 1
    return f"{_rounded_apart(100 * fraction, int(near), bounds=(0, 1, 99, 100) if near else (0, 100))}%"


def _rounded_apart(value: float, digits: int, bounds: Sequence[float]) -> str:
    """Return a number with so many decimals, or with as many more as distinguish it from the bounds."""
    for more in range(digits, MOST_DECIMALS + 1):
        shown = f"{value:.{more}f}"
        if float(shown) not in bounds:
            return shown
    return f"{value:.{digits}f}"


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


def visible(text: str) -> str:
    """Return text whose control characters are escaped, because a terminal obeys them: names come from files."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(name: str, most: int = 24) -> str:
    """Return a name of at most so many characters; a longer one loses its middle, because numbers stand at the end."""
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def shortened_apart(names: Iterable[str], most: int = 24) -> dict[str, str]:
    """Return each name as `shortened` does, but different names in different forms.

    Names that would be equal keep the first part in which they differ. Those that are still equal are numbered.
    """
    short = {name: shortened(name, most) for name in names}
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name, form in short.items():
        alike[form].append(name)
    head = most // 4
    for group in alike.values():
        if len(group) > 1:
            letters = enumerate(zip(*group, strict=False))
            common = next((i for i, each in letters if len(set(each)) > 1), min(map(len, group)))
            start = common - 2  # two characters of the common part, as a hint
            short |= {name: f"{name[:head]}…{shortened(name[start:], most - head - 1)}" for name in group}
    taken = {name for name, form in short.items() if form == name}
    for name in [name for name in short if name not in taken]:
        form, times = short[name], 1
        while short[name] in taken:
            times += 1
            mark = f" ({times})"
            short[name] = f"{form[: most - len(mark)]}{mark}"
        taken.add(short[name])
    return short
