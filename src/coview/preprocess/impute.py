"""Steps that fill empty cells: what they fill in is learnt from training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from coview.data.rows import column_statistics
from coview.data.view import Array, Matrix
from coview.preprocess.steps import Step

_NEIGHBORS = 5
_MOST_DONORS = 5000  # training rows that are kept; a search among more takes long


@dataclass(frozen=True, eq=False)
class FillMedian(Step):
    """Empty cells have the median of the column in the training rows."""

    medians: Array

    fills_cells = True
    keeps_scale = True

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        return cls(np.nanmedian(x, axis=0).astype(np.float64))

    def __call__(self, x: Matrix) -> Matrix:
        return np.where(np.isnan(x), self.medians, x).astype(x.dtype, copy=False)


@dataclass(frozen=True, eq=False)
class FillNearest(Step):
    """Empty cells have the mean of the five nearest training rows that have a value in the column.

    Rows are compared by the columns that both have, standardised, as by `KNNImputer` of scikit-learn. Of equally near
    rows the first ones count, so that a row is filled in the same way alone and in any batch.
    """

    means: Array
    spreads: Array
    donors: Array  # standardised training rows; 0 in empty cells
    empty: Array  # positions of these

    fills_cells = True
    keeps_scale = True

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        mean, spread = column_statistics(FillMedian.learn(x)(x), ddof=0)
        spread = np.where(np.isfinite(spread), spread, 1.0)
        # Evenly spaced rows, and for each column the first row that has a value.
        rows = np.linspace(0, len(x) - 1, min(len(x), _MOST_DONORS)).astype(int)
        rows = np.union1d(rows, np.argmin(np.isnan(x), axis=0))
        donors = (x[rows] - mean) / spread
        return cls(mean, spread, np.nan_to_num(donors), np.flatnonzero(np.isnan(donors)))

    @property
    def _known(self) -> Array:
        """Which cells of the donors have a value."""
        known = np.ones(self.donors.size, dtype=bool)
        known[self.empty] = False
        return known.reshape(self.donors.shape)

    def __call__(self, x: Matrix) -> Matrix:
        filled, known = x.copy(), self._known
        for i in np.flatnonzero(np.isnan(x).any(axis=1)):
            empty = np.isnan(x[i])
            row = np.where(empty, 0.0, (x[i] - self.means) / self.spreads)
            common = known & ~empty
            counts = common.sum(axis=1)
            squares = np.where(common, (self.donors - row) ** 2, 0.0).sum(axis=1)
            order = np.argsort(np.where(counts > 0, squares / np.maximum(counts, 1), np.inf), kind="stable")
            for j in np.flatnonzero(empty):
                nearest = order[known[order, j]][:_NEIGHBORS]
                filled[i, j] = self.donors[nearest, j].mean() * self.spreads[j] + self.means[j]
        return filled
