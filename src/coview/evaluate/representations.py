"""Representations of the samples: tables whose rows are compared, of one view or of all views side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.preprocess.profile import ViewProfile
from coview.preprocess.steps import FittedPreprocessing, parse_steps

_DIRECTIONS, _COLUMNS = "l2+block", "standard+block"  # "block": stacked views have the same weight in distances
_COUNTS = "total+log1p"  # first, for counts: the fraction of each column, on a logarithmic scale
_MOST_GRADES = 20  # integers up to this may be grades or ratings
_FEW_COLUMNS = 8


@dataclass(frozen=True)
class Representation:
    """Views side by side, each after its own preprocessing; samples that lack one of the views are not represented."""

    preprocessing: dict[str, FittedPreprocessing]

    @classmethod
    def learn(cls, views: Views, steps: Mapping[str, str]) -> Representation:
        """Return the representation by these preprocessing steps, by view name."""
        some = views.select(list(steps))
        some = some if some.complete else some.take(np.flatnonzero(some.has_all()))
        learnt = {
            name: parse_steps(step).learn(some[name], name, standardised=name in views.encoded)
            for name, step in steps.items()
        }
        return cls(learnt)

    def has(self, views: Views) -> Array:
        """Return which samples have all of its views."""
        return views.select(list(self.preprocessing)).has_all()

    def __call__(self, views: Views) -> Matrix:
        """Return the rows of the samples that have all of its views."""
        present = self.has(views)
        whole = present.all()
        parts = [
            preprocess(views[name] if whole else views[name][present], name)
            for name, preprocess in self.preprocessing.items()
        ]
        if len(parts) == 1:
            return parts[0]
        return sp.csr_array(sp.hstack(parts, format="csr")) if any(map(sp.issparse, parts)) else np.hstack(parts)


def representations_of(views: Views) -> list[dict[str, str]]:
    """Return the preprocessing steps of each view, by the directions of rows and by standardised columns.

    A view without directions (few columns, or columns in different units) is standardised in both cases, and a view of
    word counts or a sparse one is L2-normalised in both. If both cases are the same, there is one. Counts are first
    divided by the total of the row, and their logarithm is taken.
    """
    directions, columns = {}, {}
    for name, x in views.items():
        observed = views.observed(name)
        profile = ViewProfile.of(observed)
        # The origin is the mean of numbers, but not of encoded categories, whose rows have no direction.
        directions[name] = _COLUMNS if profile.no_direction or name in views.encoded else _DIRECTIONS
        columns[name] = directions[name] if profile.word_counts or sp.issparse(x) else _COLUMNS
        if are_counts(observed):
            directions[name], columns[name] = (f"{_COUNTS}+{each[name]}" for each in (directions, columns))
    return [directions] if directions == columns else [directions, columns]


def are_counts(x: Matrix) -> bool:
    """Return whether the values of a view are counts: integers of which 1 is the most frequent one, and large ones."""
    values = x.data if sp.issparse(x) else x.ravel()
    values = values[values != 0]
    if x.shape[1] <= _FEW_COLUMNS or not len(values) or values.min() < 1 or values.max() <= _MOST_GRADES:
        return False
    if (values != np.round(values)).any():
        return False
    found, frequency = np.unique(values, return_counts=True)
    return bool(found[frequency.argmax()] == 1)
