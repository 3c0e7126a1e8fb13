"""How well numbers of clusters are selected, by `Tuned("auto")` and by the criterion with other constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.quality.evaluations import MEASURES, NUMBERS
from benchmarks.quality.rows import Row
from benchmarks.quality.scores import TUNED
from coview.tune.criterion import Constants, criterion

LEAST_ARI = 0.02  # below it, no clusters are found, and a ratio is not informative
STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
GRID = [Constants(*each) for each in product((0.0, 0.5, 1.0, 1.5, 2.0), STEPS, STEPS)]


class Selection(NamedTuple):
    """The selected number of clusters in one run."""

    data: str
    true: int
    selected: int
    ari: float
    ari_at_true: float


class Quality(NamedTuple):
    """Fractions of runs, and the mean over data sets of the ARI divided by that at the true number, at most 1."""

    within_1: float
    exact: float
    below: float
    above: float
    ari_kept: float

    @classmethod
    def of(cls, selections: Sequence[Selection]) -> Quality:
        """Return the quality of these selections; NaN without any."""
        if not selections:
            return cls(*[float("nan")] * 5)
        off = np.array([each.selected - each.true for each in selections])
        several = np.array([each.selected > 1 for each in selections])  # one cluster is no cluster structure
        fractions = [float(np.mean(some)) for some in ((abs(off) <= 1) & several, off == 0, off < 0, off > 0)]
        kept = []
        for name in dict.fromkeys(each.data for each in selections):
            ari, at_true = np.mean([(each.ari, each.ari_at_true) for each in selections if each.data == name], axis=0)
            if at_true >= LEAST_ARI:
                kept.append(np.clip(ari / at_true, 0, 1))
        return cls(*fractions, float(np.mean(kept)) if kept else float("nan"))


def selected_by_tuned(rows: Iterable[Row]) -> list[Selection]:
    """Return the selections of `Tuned("auto")`, which may be one cluster."""
    return [
        Selection(row["data"], row["clusters"], row["auto"]["n_clusters"], row["auto"]["ari"], row["scores"][TUNED])
        for row in rows
        if "auto" in row
    ]


def selected_by_criterion(evaluations: Iterable[Row], constants: Constants) -> list[Selection]:
    """Return the selections of the search with these constants, on its samples."""
    selections = []
    for row in evaluations:
        measures = (np.array(row["measures"][title]) for title in MEASURES)
        best = int(criterion(np.array(NUMBERS), *measures, constants=constants).argmax())
        at_true = row["ari"][NUMBERS.index(row["clusters"])]
        selections.append(Selection(row["data"], row["clusters"], NUMBERS[best], row["ari"][best], at_true))
    return selections


def ranked_constants(parts: Mapping[str, Sequence[Row]], fixing: str) -> list[tuple[Constants, dict[str, Quality]]]:
    """Return the quality of all constants on each part of the data sets, those that are best on one part first.

    The best constants have the largest mean of the fraction within 1 and the ARI kept.
    """
    found = [
        (each, {part: Quality.of(selected_by_criterion(rows, each)) for part, rows in parts.items()}) for each in GRID
    ]
    return sorted(found, key=lambda pair: -(pair[1][fixing].within_1 + pair[1][fixing].ari_kept))
