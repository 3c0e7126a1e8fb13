"""How well numbers of clusters are selected by `Coview("auto")`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.quality.rows import Row

LEAST_ARI = 0.02  # below it, no clusters are found, and a ratio is not informative


class Selection(NamedTuple):
    """The selected number of clusters in one run."""

    data: str
    true: int
    selected: int
    ari: float
    ari_at_true: float  # of `Coview` with the number of classes, on the same samples


class Quality(NamedTuple):
    """Fractions of runs, and the mean over data sets of the ARI divided by that at the true number, at most 1."""

    within_1: float
    exact: float
    below: float
    above: float
    one: float
    ari_kept: float

    @classmethod
    def of(cls, selections: Sequence[Selection]) -> Quality:
        """Return the quality of these selections; NaN without any."""
        if not selections:
            return cls(*[float("nan")] * 6)
        off = np.array([each.selected - each.true for each in selections])
        one = np.array([each.selected == 1 for each in selections])  # one cluster is no cluster structure
        fractions = [float(np.mean(some)) for some in ((abs(off) <= 1) & ~one, off == 0, off < 0, off > 0, one)]
        kept = []
        for name in dict.fromkeys(each.data for each in selections):
            ari, at_true = np.mean([(each.ari, each.ari_at_true) for each in selections if each.data == name], axis=0)
            if at_true >= LEAST_ARI:
                kept.append(np.clip(ari / at_true, 0, 1))
        return cls(*fractions, float(np.mean(kept)) if kept else float("nan"))


def selections(auto: Iterable[Row], known: Iterable[Row]) -> list[Selection]:
    """Return the selections with a score for the number of classes on the same samples."""
    at_true = {(row["data"], row["seed"]): row["ari"] for row in known}
    return [
        Selection(row["data"], row["clusters"], row["number"], row["ari"], at_true[row["data"], row["seed"]])
        for row in auto
        if (row["data"], row["seed"]) in at_true
    ]
