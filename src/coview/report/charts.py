"""What the page's plots draw, packed small: a coordinate takes two bytes, finer than any screen."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coview.plots import PALETTE
from coview.report.marks import SHAPES
from coview.summary.values import reading_order
from coview.tune.criterion import evaluated_numbers
from coview.tune.record import ranked_settings
from coview.views import Array

if TYPE_CHECKING:
    from coview.summary import Points, Similarities, Summary
    from coview.tune.record import Tuning

MOST_POINTS = 5000
MOST_COORDINATES = 600_000  # 1.6 MB of text, however many clusters and views there are
MOST_SIMILARITIES = 400  # rows and columns of the heat map
MOST_SETTINGS = 30
LONGEST_ID = 80


def chart_data(summary: Summary) -> dict[str, Any] | None:
    """Return what the scatter, the spectrum and the similarities draw, as plain values for JSON; None if nothing.

    Parameters
    ----------
    summary : Summary
        Parts that are None are None here as well.
    """
    drawn = {
        "points": _points(summary.points) if has_scores(summary) else None,
        "eigenvalues": summary.eigenvalues or None,
        "variance": summary.explained_variance_ratio or None,
        "similarities": _similarities(summary.similarities) if summary.similarities else None,
        "tuning": _tuning(summary.tuning) if summary.tuning else None,
    }
    if not any(drawn.values()):
        return None
    shapes = [{"name": name, "path": path} for name, path in SHAPES.items()]
    return {**drawn, "used": summary.n_clusters - 1, "colours": PALETTE, "shapes": shapes}


def has_scores(summary: Summary) -> bool:
    """Say whether there is a score to draw at all; some methods have none."""
    return bool(summary.points.scores) and len(summary.points.scores[0]) > 0


def pack(values: Any) -> dict[str, Any]:
    """Return numbers as steps between the smallest and the largest; the last code stands for a missing number.

    Examples
    --------
    >>> packed = pack([1.0, 3.0])
    >>> packed["low"], packed["step"] * 65534, packed["codes"]
    (1.0, 2.0, 'AAD+/w==')
    """
    values = np.asarray(values, dtype=float)
    finite = np.isfinite(values)
    known = values[finite]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    step = (high - low) / 65534 or 1.0
    steps = np.full(values.shape, 65535)
    steps[finite] = np.rint((known - low) / step)
    return {"low": low, "step": step, "codes": b64encode(steps.astype("<u2").tobytes()).decode()}


def _points(points: Points) -> dict[str, Any]:
    n_drawn = min(len(points.samples), MOST_POINTS)
    drawn = np.linspace(0, len(points.samples) - 1, n_drawn).astype(int)
    spaces = {"all views together": points.scores, **points.view_scores}
    n_components = max(1, min(len(points.scores[0]), MOST_COORDINATES // (n_drawn * len(spaces))))
    groupings = [_grouping("cluster", points.labels, drawn)]
    if points.classes is not None:
        groupings.append(_grouping("known class", points.classes, drawn))
    groupings += [_grouping(f"view {name} alone", labels, drawn) for name, labels in points.view_labels.items()]
    return {
        "samples": [_short(points.samples[row]) for row in drawn],
        "groupings": groupings,
        "margins": pack(np.asarray(points.margins)[drawn]) if points.margins is not None else None,
        "spaces": [
            {"name": name, "components": [pack(column) for column in np.asarray(scores)[drawn, :n_components].T]}
            for name, scores in spaces.items()
        ],
    }


def _grouping(name: str, values: Sequence[int] | Sequence[str], drawn: Array) -> dict[str, Any]:
    """Groups by name and number; clusters keep their number, so that they keep their mark."""
    shown = [values[row] for row in drawn]
    names = sorted(set(shown), key=lambda each: reading_order(str(each)))
    place = {each: code for code, each in enumerate(names)}
    counts = Counter(shown)
    return {
        "name": name,
        "names": [_short(str(each)) for each in names],
        "numbers": [each if isinstance(each, int) else code for each, code in place.items()],
        "codes": [place[each] for each in shown],
        "counts": [counts[each] for each in names],
    }


def _similarities(similarities: Similarities) -> dict[str, Any]:
    n_rows = len(similarities.labels)
    kept = np.linspace(0, n_rows - 1, min(n_rows, MOST_SIMILARITIES)).astype(int)
    values = np.asarray(similarities.values, dtype=float)[np.ix_(kept, kept)]
    # The diagonal is far above the rest under most kernels, and outliers would leave the picture pale.
    off_diagonal = values[~np.eye(len(values), dtype=bool)]
    low, high = np.quantile(off_diagonal, [0.01, 0.99]) if off_diagonal.size else (0.0, 1.0)
    return {
        "labels": np.asarray(similarities.labels)[kept].tolist(),
        "values": pack(values.ravel()),
        "range": [float(low), float(high)],
    }


def _tuning(tuning: Tuning) -> dict[str, Any]:
    """The criterion of each setting in each round, best last; and of each number of clusters, if there were several."""
    chosen = tuning.evaluations[tuning.selected]
    shown = [row for row in tuning.evaluations if row.n_clusters == chosen.n_clusters and row.criterion is not None]
    best = [row.setting for row in ranked_settings(tuning.evaluations, chosen.n_clusters)[:MOST_SETTINGS]]
    order = (best if chosen.setting in best else [*best[:-1], chosen.setting])[::-1]
    labels = {row.setting: row.label for row in shown}
    rounds = [
        {
            "name": f"round {number}, on {some[0].n_samples:,} samples",
            "places": [order.index(row.setting) for row in some],
            "values": [row.criterion for row in some],
        }
        for number in sorted({row.round for row in shown})
        if (some := [row for row in shown if row.round == number and row.setting in order])
    ]
    numbers = evaluated_numbers(tuning.evaluations)
    gaps = [number.best.eigengap or 0.0 for number in numbers]
    return {
        "labels": [_short(labels[setting]) for setting in order],
        "rounds": rounds,
        "chosen": [order.index(chosen.setting), chosen.criterion],
        "n_clusters": chosen.n_clusters,
        "numbers": {
            "places": [number.n_clusters for number in numbers],
            "lines": {
                "criterion": [number.criterion for number in numbers],
                "line fit": [number.best.line_fit for number in numbers],
                "membership strength": [number.best.membership for number in numbers],
                "eigengap (share of the largest)": [gap / (max(gaps) or 1.0) for gap in gaps],
            },
        }
        if len(numbers) > 1
        else None,
    }


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_ID else text[: LONGEST_ID - 1] + "…"
