"""How settings were chosen from the data: what was tried, in plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coview.errors import InputError
from coview.summary.values import Tried, Tuning
from coview.tune.criterion import for_numbers
from coview.tune.tuned import Tuned


def tuning(model: Any) -> Tuning | None:
    """Return how the settings of a model, or of the one inside wrappers, were chosen; None where they were given."""
    if not isinstance(model, Tuned):
        best = getattr(model, "best_view_", None)
        inner = getattr(model, "estimator_", None) if best is None else model.estimators_[best]
        return None if inner is None else tuning(inner)
    if not model.evaluations_:  # one cluster leaves nothing to choose
        return None
    rows, method = tried(model.evaluations_), model.estimator_.estimator
    chosen = tuple(model.estimator_.steps), str(method.kernel), method.rho, tuple(method.kappa)
    places = [i for i, row in enumerate(rows) if row.setting == chosen and row.n_clusters == model.n_clusters_]
    return Tuning(model.reason_, places[-1], rows)


def tried(table: Any) -> tuple[Tried, ...]:
    """Return the rows of `Tuned.evaluations_` as values.

    Parameters
    ----------
    table : list of dictionaries
    """
    names = [field.name for field in fields(Tried)]
    if not isinstance(table, Sequence) or not all(isinstance(row, Mapping) for row in table) or not table:
        raise InputError("table must be a list of dictionaries with at least one row, as Tuned has it in evaluations_")
    missing = [name for row in table for name in names if name not in row]
    if missing:
        raise InputError(f"the table has no {missing[0]!r}; give all columns of Tuned.evaluations_")
    return tuple(
        Tried(
            **{name: row[name] for name in names if name not in ("steps", "kappa")},
            steps=tuple(row["steps"]),
            kappa=tuple(row["kappa"]),
        )
        for row in table
    )


@dataclass(frozen=True)
class NumberTried:
    """What speaks for a number of clusters, by the setting that most speaks for there."""

    n_clusters: int
    criterion: float  # in the form in which numbers are compared with each other
    best: Tried


def numbers_tried(rows: Sequence[Tried]) -> tuple[NumberTried, ...]:
    """Return the numbers of clusters of the first round, in increasing order, each with its best setting."""
    by_number: dict[int, list[Tried]] = {}
    for row in rows:
        # Weights of views are tried for the chosen number only.
        if row.round == 1 and row.criterion is not None and not row.weights:
            by_number.setdefault(row.n_clusters, []).append(row)
    gaps, criteria = (
        {k: np.array([getattr(row, name) for row in some]) for k, some in sorted(by_number.items())}
        for name in ("eigengap", "criterion")
    )
    compared = for_numbers(gaps, criteria) if criteria else {}
    return tuple(
        NumberTried(k, float(values.max()), by_number[k][int(values.argmax())]) for k, values in compared.items()
    )


def so_far(rows: Sequence[Tried]) -> dict[Tried, float]:
    """Return for each row the mean criterion of its setting in this round and those before: what the search goes by.

    All that are compared have been in the same rounds, so the mean chooses as the sum does.
    """
    of_setting: dict[tuple[Any, ...], list[tuple[Tried, float]]] = {}
    for row in rows:
        if row.criterion is not None:
            of_setting.setdefault((row.setting, row.n_clusters), []).append((row, row.criterion))
    means = {}
    for judged in of_setting.values():
        for row, _ in judged:
            means[row] = float(np.mean([criterion for other, criterion in judged if other.round <= row.round]))
    return means


def leading(rows: Sequence[Tried], n_clusters: int) -> list[Tried]:
    """Return what was tried, best first: the last round before those before it, and in it the chosen number first."""
    means = so_far(rows)

    def order(row: Tried) -> tuple[Any, ...]:
        return row.criterion is None, -row.round, row.n_clusters != n_clusters, -means.get(row, 0.0)

    return sorted(rows, key=order)


def settings_tried(rows: Sequence[Tried], n_clusters: int) -> list[Tried]:
    """Return what could be fitted for this number of clusters, best first: each setting once, by its last round."""
    last: dict[tuple[Any, ...], Tried] = {}
    for row in leading([row for row in rows if row.criterion is not None], n_clusters):
        if row.n_clusters == n_clusters:
            last.setdefault(row.setting, row)  # later rounds lead
    return list(last.values())
