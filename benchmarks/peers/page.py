"""docs/peers.md and its pictures, from the stored rows."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from csv import DictReader, DictWriter
from importlib.metadata import PackageNotFoundError, version
from math import inf, sqrt
from pathlib import Path
from statistics import fmean, median
from string import Template
from typing import Any

import numpy as np
from scipy.stats import rankdata, studentized_range

from benchmarks.data import list_datasets
from benchmarks.markdown import reflow, table
from benchmarks.peers.data import MISSING
from benchmarks.peers.peers import PEERS
from benchmarks.peers.worker import IN_A_ROW, LIMITS, NOT_INSTALLED, TIME_LIMIT, WARM_SECONDS
from benchmarks.provenance import machine
from benchmarks.quality.paired import mean_with_interval

HERE = Path(__file__).parent
NOT_RUN = "not run"
OWN = "coview Coview"
OURS = (OWN, "coview TMvKSCR")
RANKS_SVG, TIMES_SVG, ROWS_CSV = "peers-ranks.svg", "peers-times.svg", "peers.csv"
COLUMNS = (
    "part",
    "peer",
    "data",
    "seed",
    "ari",
    "nmi",
    "found",
    "seconds",
    "memory",
    "error",
    "expected",
    "elapsed",
    "commit",
)
NONE = "–"
ALPHA = 0.05
FOUND = 0.95  # ARI below which the tables of times state it
AHEAD = 0.05  # difference in ARI of the methods that the page names as ahead of `Coview`
Row = dict[str, Any]
Cells = dict[str, dict[str, Row]]  # by method and data set


def write(rows: Sequence[Row], expected: Mapping[str, Sequence[str]], out: Path, note: str = "") -> None:
    """Write the page and its pictures; the page states which rows are missing, and has the note."""
    cells = {part: cells_of(rows, part) for part in expected}
    ranked = complete_sets(cells["quality"])
    ranks = mean_ranks(cells["quality"], ranked)
    with_missing = complete_sets(cells["missing"])
    ranks_missing = mean_ranks(cells["missing"], with_missing)
    behind = _behind(cells["quality"], ranked)
    texts = tomllib.loads((HERE / "texts.toml").read_text())
    values = {
        "complete": _completeness(cells, expected),
        "note": note,
        "commits": _commits(rows),
        "hours": _hours(rows),
        "run_hours": _hours(rows, os.cpu_count() or 1),
        "part_hours": ", ".join(f"{part} {_hours([r for r in rows if r['part'] == part])}" for part in expected),
        "limit": f"{LIMITS['quality']:g}",
        "limit_speed": f"{LIMITS['speed']:g}",
        "limit_large": f"{LIMITS['large']:g}",
        "limit_first": f"{WARM_SECONDS:g}",
        "in_a_row": IN_A_ROW,
        "machine": machine(),
        "versions": "\n".join(_versions()),
        "verdict": _verdict(ranks, ranked),
        "summary": "\n".join(_summary(cells["quality"], ranks)),
        "behind": "\n".join(_behind_table(behind)),
        "behind_words": _count_behind(cells["quality"], behind, ranked),
        "found": f"{FOUND:g}",
        "scores": "\n".join(_scores(cells["quality"], expected["quality"])),
        "verdict_missing": _verdict(ranks_missing, with_missing),
        "missing": "\n".join(_scores(cells["missing"], expected["missing"])),
        "speed": "\n".join(_speed(cells["speed"], expected["speed"])),
        "large": "\n".join(_speed(cells["large"], expected["large"])),
        "failures": "\n".join(_failures(rows)) or "None.",
        "paragraphs": "\n\n".join(
            f"**{name}.** {text} {_in_this_run(name.lower(), cells['quality'], ranks, ranks_missing)}"
            for name, text in texts["prefer"].items()
        ),
        "rows_csv": ROWS_CSV,
        "ranks_svg": RANKS_SVG,
        "times_svg": TIMES_SVG,
        "n_ranked": len(ranked),
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "peers.md").write_text(reflow(Template((HERE / "template.md").read_text()).substitute(values)))
    draw_ranks(ranks, len(ranked), out / RANKS_SVG)
    draw_times(cells["quality"], ranked, out / TIMES_SVG)
    write_csv(rows, out / ROWS_CSV)


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """Write all rows as a table; the columns that a row does not have are empty."""
    with path.open("w", newline="") as file:
        writer = DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["part"], row["peer"], row["data"])))


def read_csv(path: Path) -> list[Row]:
    """Return the rows of such a table of the methods that are still compared."""
    types = {"seed": int, "found": int, "memory": int, "expected": int}
    types |= dict.fromkeys(("ari", "nmi", "seconds", "elapsed"), float)
    rows = []
    with path.open(newline="") as file:
        for line in DictReader(file):
            row = {column: types.get(column, str)(value) for column, value in line.items() if value != ""}
            rows.append(row if "error" in row else {"memory": None} | row)  # unknown on some systems
    return [row for row in rows if row["peer"] in PEERS]


def cells_of(rows: Iterable[Row], part: str) -> Cells:
    """Return the rows of a part by method and data set, methods in the order of `PEERS`."""
    mine = [row for row in rows if row["part"] == part and row["peer"] in PEERS]
    return {peer: of for peer in PEERS if (of := {row["data"]: row for row in mine if row["peer"] == peer})}


def complete_sets(cells: Cells) -> list[str]:
    """Return the data sets on which every method of the table was run, with or without an error."""
    return sorted(set.intersection(*(set(of) for of in cells.values()))) if cells else []


def mean_ranks(cells: Cells, names: Sequence[str]) -> dict[str, float]:
    """Return the mean rank of each method by ARI, the best first; a method that fails has the last rank.

    Methods without a single result are not ranked.
    """
    peers = [peer for peer, of in cells.items() if any(is_result(of[name]) for name in names)]
    if not peers or not names:
        return {}
    scores = np.array(
        [[-cells[peer][name]["ari"] if is_result(cells[peer][name]) else np.inf for name in names] for peer in peers]
    )
    means = rankdata(scores, axis=0).mean(axis=1)
    return dict(sorted(zip(peers, means.tolist(), strict=True), key=lambda pair: pair[1]))


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Return the difference of mean ranks that is significant at 5 % by Nemenyi's test (Demšar, 2006)."""
    quantile = studentized_range.ppf(1 - ALPHA, n_methods, np.inf) / sqrt(2)
    return float(quantile * sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def is_result(row: Row) -> bool:
    """Return whether a row has a score."""
    return "error" not in row


def _completeness(cells: Mapping[str, Cells], expected: Mapping[str, Sequence[str]]) -> str:
    parts = []
    for part, names in expected.items():
        peers = [peer for peer in PEERS if PEERS[peer].runs_in(part)]
        run = sum(name in cells[part].get(peer, {}) for peer in peers for name in names)
        parts.append(f"{part} {run} of {len(peers) * len(names)}")
    not_found = [each.name for each in list_datasets() if each.is_stored and not each.available]
    complete = not not_found and all(_is_whole(part) for part in parts)
    whole = "The run is complete" if complete else "**The run is incomplete**"
    absent = [peer for peer in PEERS if PEERS[peer].runs_in("quality") and peer not in cells["quality"]]
    without = f" Not run yet: {', '.join(absent)}." if absent else ""
    uncounted = f" Data sets that were not found are not counted: {', '.join(not_found)}." if not_found else ""
    return f"{whole}: rows of {', '.join(parts)}.{without}{uncounted}"


def _is_whole(part: str) -> bool:
    *_, run, _, total = part.split()
    return run == total


def _commits(rows: Iterable[Row]) -> str:
    commits = sorted({row["commit"] for row in rows})
    return f"commit {commits[0]}" if len(commits) == 1 else f"{len(commits)} commits"


def _hours(rows: Iterable[Row], n_processes: int = 1) -> str:
    """Return the time of all fits with reading and first fits, divided among processes that run side by side."""
    return f"{sum(row.get('elapsed', 0.0) for row in rows) / 3600 / n_processes:.1f}"


def _versions() -> list[str]:
    packages = dict.fromkeys(peer.package for peer in PEERS.values() if peer.package != "coview")
    return table(["package", "version"], [(name, _version(name)) for name in packages])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _verdict(ranks: Mapping[str, float], names: Sequence[str]) -> str:
    if not ranks:
        return "No data set has rows of all methods yet, so methods are not ranked."
    first = next(iter(ranks))
    sets = "data set" if len(names) == 1 else "data sets"
    words = f"Over {len(names)} {sets} with a row of each method, {first} has the best mean rank"
    words += f" ({ranks[first]:.2f})"
    if first in OURS:
        return f"{words} of {len(ranks)} ranked methods."
    own = ", ".join(f"{name} has {ranks[name]:.2f}" for name in OURS if name in ranks)
    return f"{words} of {len(ranks)} ranked methods; {own}."


def _summary(cells: Cells, ranks: Mapping[str, float]) -> list[str]:
    order = [*ranks, *(peer for peer in cells if peer not in ranks)]
    body = []
    for peer in order:
        results = [row for row in cells[peer].values() if is_result(row)]
        body.append(
            [
                peer,
                f"{ranks[peer]:.2f}" if peer in ranks else NONE,
                f"{fmean(row['ari'] for row in results):.3f}" if results else NONE,
                f"{fmean(row['nmi'] for row in results):.3f}" if results else NONE,
                _difference(cells, peer),
                f"{len(results)} of {len(cells[peer])}",
                f"{median(row['seconds'] for row in results):.2f}" if results else NONE,
                f"{max(row['memory'] or 0 for row in results) / 1e6:.0f}" if results else NONE,
                "yes" if PEERS[peer].takes_k else "no",
                "yes" if PEERS[peer].predicts else "no",
                "yes" if PEERS[peer].missing else "no",
            ]
        )
    head = [
        "method",
        "mean rank",
        "mean ARI",
        "mean NMI",
        "Coview minus it",
        "results",
        "median s",
        "largest MB",
        "takes k",
    ]
    return table([*head, "predicts new samples", "accepts missing views"], body)


def _difference(cells: Cells, peer: str) -> str:
    """Return the mean difference of `Coview` to a method in ARI, over the data sets with results of both."""
    own, other = cells.get(OWN, {}), cells[peer]
    both = [name for name in other if name in own and is_result(own[name]) and is_result(other[name])]
    return mean_with_interval([own[n]["ari"] - other[n]["ari"] for n in both]) if both and peer != OWN else NONE


def ahead_of_coview(cells: Cells, name: str) -> dict[str, float]:
    """Return the ARI of the methods ahead of `Coview` by more than the margin on a data set, the best first."""
    if name not in cells.get(OWN, {}):
        return {}
    results = {peer: of[name]["ari"] for peer, of in cells.items() if name in of and is_result(of[name])}
    least = results.get(OWN, -inf) + AHEAD  # every result is ahead of a failure
    return {peer: ari for peer, ari in sorted(results.items(), key=lambda each: -each[1]) if ari > least}


def _behind(cells: Cells, names: Sequence[str]) -> list[list[Any]]:
    """Return the data sets on which a method of another library is ahead of `Coview`, the largest difference first."""
    found = {}
    for name in names:
        others = {peer: a for peer, a in ahead_of_coview(cells, name).items() if PEERS[peer].package != "coview"}
        if others:
            best, ari = next(iter(others.items()))
            own = cells[OWN][name]
            found[name] = own.get("ari", -inf) - ari, [name, _score(own), ari, best, len(others)]
    return [found[name][1] for name in sorted(found, key=lambda name: found[name][0])]


def _count_behind(cells: Cells, behind: Sequence[list[Any]], ranked: Sequence[str]) -> str:
    """Return on how many data sets a method of another library is ahead, as a sentence."""
    if OWN not in cells:
        return "`Coview` is not run yet."
    return (
        f"On {len(behind)} of {len(ranked)} data sets a method of another library has an ARI more than {AHEAD:g} above "
        "that of `Coview`. The best of many methods is also ahead by chance."
    )


def _behind_table(found: Sequence[list[Any]]) -> list[str]:
    head = ["data set", "Coview", "best", "method of another library", "methods ahead"]
    return table(head, found) if found else ["None."]


def _in_this_run(package: str, cells: Cells, ranks: Mapping[str, float], ranks_missing: Mapping[str, float]) -> str:
    """Return the best ranks of a library, the data sets on which it is ahead of `Coview`, and its failures."""
    own = {peer: of for peer, of in cells.items() if PEERS[peer].package == package}
    rows = [row for of in own.values() for row in of.values()]
    failed = sum(not is_result(row) for row in rows)
    if failed == len(rows):
        return "*In this run* it has no result."
    words = f"*In this run* its best method by mean rank is {_best_of(own, ranks) or 'not known yet'}"
    words += f", and with missing views {best}" if (best := _best_of(own, ranks_missing)) else ""
    names = dict.fromkeys(name for of in own.values() for name in of)
    ahead = [name for name in names if own.keys() & ahead_of_coview(cells, name).keys()]
    if OWN in cells:
        words += f". On {len(ahead) or 'no'} data sets a method of it is more than {AHEAD:g} ahead of `Coview`"
        words += f": {', '.join(ahead)}" if ahead else ""
    return f"{words}. {failed} of {len(rows)} fits of data without missing views have no result."


def _best_of(own: Iterable[str], ranks: Mapping[str, float]) -> str:
    """Return the best of some methods by its mean rank, and its place among all."""
    for place, (peer, rank) in enumerate(ranks.items(), start=1):
        if peer in own:
            return f"{peer} ({rank:.2f}, place {place} of {len(ranks)})"
    return ""


def _scores(cells: Cells, names: Sequence[str]) -> list[str]:
    run = [name for name in names if any(name in of for of in cells.values())]
    body = [[peer, *(_score(of.get(name)) for name in run)] for peer, of in cells.items()]
    return table(["method", *(name.removesuffix(MISSING) for name in run)], body) if run else ["Not run."]


def _score(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row['ari']:.3f}" if is_result(row) else _failure(row)


def _failure(row: Row) -> str:
    known = {"MemoryError": "out of memory", TIME_LIMIT: "over the limit", NOT_RUN: NOT_RUN}
    known |= dict.fromkeys(NOT_INSTALLED, "not installed")
    return next((words for error, words in known.items() if row["error"].startswith(error)), "fails")


def _speed(cells: Cells, names: Sequence[str]) -> list[str]:
    def cell(row: Row | None) -> str:
        if row is None:
            return ""
        if is_result(row):
            found = f"{row['seconds']:.1f} s, {(row['memory'] or 0) / 1e6:.0f} MB"
            return found if row["ari"] >= FOUND else f"{found}, ARI {row['ari']:.2f}"
        return _failure(row) + (f" ({row['expected']} s expected)" if "expected" in row else "")

    body = [[peer, *(cell(of.get(name)) for name in names)] for peer, of in cells.items()]
    return table(["method", *names], body) if cells else ["Not run."]


def _failures(rows: Iterable[Row]) -> list[str]:
    """Return the errors of each method, each once with the number of data sets."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if not is_result(row) and not row["error"].startswith(NOT_RUN):
            found.setdefault((row["peer"], _shortened(row["error"])), []).append(row["data"])
    body = [
        [peer, names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more", error]
        for (peer, error), names in sorted(found.items())
    ]
    return table(["method", "data", "fails with"], body) if body else []


def _shortened(error: str, most: int = 160) -> str:
    error = re.sub("0x[0-9a-f]+", "0x…", error)  # addresses differ between processes
    return error if len(error) <= most else f"{error[: most - 1]}…"


def draw_ranks(ranks: Mapping[str, float], n_sets: int, path: Path) -> None:
    """Draw the mean ranks, with the critical difference beside the best."""
    if len(ranks) < 2:
        return
    figure, axes = _figure(0.22 * len(ranks) + 1.2)
    means, width = list(ranks.values()), critical_difference(len(ranks), n_sets)
    axes.axvspan(means[0], means[0] + width, color="0.92", label="critical difference from the best (5 %)")
    colours = ["tab:orange" if peer.startswith("coview") else "tab:blue" for peer in ranks]
    axes.scatter(means, range(len(means)), c=colours, zorder=2)
    axes.set(xlabel=f"mean rank by ARI, {n_sets} data sets", yticks=range(len(means)), yticklabels=list(ranks))
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="upper right")
    _save(figure, path)


def draw_times(cells: Cells, names: Sequence[str], path: Path) -> None:
    """Draw the mean ARI against the median seconds of the methods that have results on all ranked data sets."""
    whole = {p: of for p, of in cells.items() if names and all(is_result(of[name]) for name in names)}
    if not whole:
        return
    figure, axes = _figure(5)
    means = {
        peer: (median(of[n]["seconds"] for n in names), fmean(of[n]["ari"] for n in names))
        for peer, of in whole.items()
    }
    middle = sqrt(max(s for s, _ in means.values()) * max(min(s for s, _ in means.values()), 1e-3))  # of the axis
    notes = []
    for peer, (seconds, ari) in sorted(means.items(), key=lambda item: item[1][1]):
        at, left = (max(seconds, 1e-3), ari), seconds > middle  # names on the right would leave the axes
        axes.scatter(*at, c="tab:orange" if peer.startswith("coview") else "tab:blue", s=14)
        side = {"xytext": (-4, 1), "ha": "right"} if left else {"xytext": (4, 1), "ha": "left"}
        notes.append(axes.annotate(peer, at, fontsize=6, textcoords="offset points", **side))
    axes.set(xscale="log", xlabel="median seconds of a fit", ylabel=f"mean ARI, {len(names)} data sets")
    _move_apart(figure, notes)
    _save(figure, path)


def _move_apart(figure: Any, notes: Sequence[Any]) -> None:
    """Move each text up until it overlaps none of those before it."""
    figure.draw_without_rendering()  # places the axes
    placed: list[Any] = []
    for note in notes:
        while any(note.get_window_extent().overlaps(box) for box in placed):
            note.set_position((note.xyann[0], note.xyann[1] + 1))
        placed.append(note.get_window_extent())


def _figure(height: float) -> Any:
    import matplotlib

    matplotlib.use("Agg")
    # Identifiers in the file do not change between runs, and letters are text.
    matplotlib.rcParams |= {"svg.hashsalt": "coview", "svg.fonttype": "none"}
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(8, height), layout="constrained")


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
