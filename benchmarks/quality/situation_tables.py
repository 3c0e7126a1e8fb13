"""Tables of the generated situations, from the rows of benchmarks/situations.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from benchmarks.markdown import table
from benchmarks.quality.rows import Row
from benchmarks.situations import WITHOUT
from coview.evaluate.support import LEVELS

LEAST_GROUP = 15  # samples, about the number of neighbours: smaller groups may be lost
NOT_MEASURED = "Not measured."
NONE = "–"
TITLES = {
    "known": "Number given: lowest ARI, and lowest Jaccard index of the smallest group",
    "auto": "Number selected: lowest ARI, how often it is right, and the other numbers",
    "one": "Without groups: how often the number is 1, and the other numbers",
    "support": "Support of the clusters with the selected number",
}


def tables(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the lines of all tables, by the keys of their titles."""
    several = [row for row in rows if row["kind"] != WITHOUT]
    return {
        "known": _by_number(several, _known_cell),
        "auto": _by_number(several, _auto_cell),
        "one": _by_number([row for row in rows if row["kind"] == WITHOUT], number_cell),
        "support": _support(rows),
    }


def _by_number(rows: Sequence[Row], cell: Callable[[Sequence[Row]], str]) -> list[str]:
    """Return a table with a line for each data set and a column for each number of samples."""
    if not rows:
        return [NOT_MEASURED]
    numbers = sorted({row["n"] for row in rows})
    found: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        found.setdefault(row["title"], {}).setdefault(row["n"], []).append(row)
    body = [[title, *(cell(of[n]) if n in of else NONE for n in numbers)] for title, of in found.items()]
    return table(["data", *(f"n = {n:,}" for n in numbers)], body)


def _known_cell(rows: Sequence[Row]) -> str:
    """Return the lowest ARI and the lowest Jaccard index of the smallest group, marked if this group is very small."""
    mark = " \\*" if min(min(row["sizes"]) for row in rows) < LEAST_GROUP else ""
    return f"{_lowest(rows, 'known_ari')}, {_lowest(rows, 'smallest')}{mark}"


def _auto_cell(rows: Sequence[Row]) -> str:
    mark = " \\*" if min(min(row["sizes"]) for row in rows) < LEAST_GROUP else ""
    return f"{_lowest(rows, 'auto_ari')}, {number_cell(rows)}{mark}"


def _lowest(rows: Sequence[Row], column: str) -> str:
    return f"{min(row[column] for row in rows):.2f}"


def number_cell(rows: Sequence[Row]) -> str:
    """Return how often the number of groups is found, and the other numbers, such as "3 of 5 (2, 4)"."""
    numbers = [row["auto_number"] for row in rows]
    wrong = sorted(number for number, row in zip(numbers, rows, strict=True) if number != len(row["sizes"]))
    words = f"{len(numbers) - len(wrong)} of {len(numbers)}"
    return f"{words} ({', '.join(map(str, wrong))})" if wrong else words


def _support(rows: Sequence[Row]) -> list[str]:
    """Return how many clusterings of each kind of data have which support."""
    if not rows:
        return [NOT_MEASURED]
    counts = {kind: Counter(row["auto_level"] for row in rows if row["kind"] == kind) for kind in _kinds(rows)}
    body = [[kind, sum(of.values()), *(of[level] for level in LEVELS)] for kind, of in counts.items()]
    return table(["kind", "runs", *LEVELS], body)


def _kinds(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["kind"] for row in rows))


def headline(rows: Sequence[Row]) -> str:
    """Return how often the number of groups is found, by the kind of data."""
    if not rows:
        return NOT_MEASURED
    parts = []
    for kind in _kinds(rows):
        some = [row for row in rows if row["kind"] == kind]
        right = sum(row["auto_number"] == len(row["sizes"]) for row in some)
        parts.append(f"{kind} {right} of {len(some)}")
    return f'`Coview("auto")` finds the number of groups in these numbers of runs: {"; ".join(parts)}.'
