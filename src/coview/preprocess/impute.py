"""Steps that fill empty cells: what they fill in is learnt from training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from coview.preprocess.steps import Step
from coview.rows import column_statistics
from coview.state import FloatArray, IntegerArray
from coview.views import Array, Matrix

_NEIGHBORS = 5
_MOST_DONORS = 5000  # training rows that are kept; a search among more takes long


@dataclass(frozen=True, eq=False)
class FillMedian(Step):
    """Empty cells have the median of the column in the training rows."""

    medians: Annotated[Array, FloatArray("features")]

    fills_cells = True

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        return cls(np.nanmedian(x, axis=0).astype(np.float64))

    def __call__(self, x: Matrix) -> Matrix:
        return np.where(np.isnan(x), self.medians, x).astype(x.dtype, copy=False)


@dataclass(frozen=True, eq=False)
class FillNearest(Step):
    """Empty cells have the mean of the five nearest training rows that have a value in the column.

    Rows are compared by the cells that both have, with standardised columns (`KNNImputer` of scikit-learn).
    """

    means: Annotated[Array, FloatArray("features")]
    spreads: Annotated[Array, FloatArray("features", above=0)]
    donors: Annotated[Array, FloatArray("_donors", "features")]  # standardised training rows; 0 in empty cells
    empty: Annotated[Array, IntegerArray("_empty", least=0, increasing=True, empty=True)]  # positions of these

    fills_cells = True

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        medians = FillMedian.learn(x)(x)
        mean, spread = column_statistics(medians, ddof=0)
        spread = np.where(np.isfinite(spread), spread, 1.0)
        # Evenly spaced, with the rows that have the only value of a column among others.
        rows = np.linspace(0, len(x) - 1, min(len(x), _MOST_DONORS)).astype(int)
        rows = np.union1d(rows, np.argmin(np.isnan(x), axis=0))
        donors = (x[rows] - mean) / spread
        return cls(mean, spread, np.nan_to_num(donors), np.flatnonzero(np.isnan(donors)))

    def __call__(self, x: Matrix) -> Matrix:
        from sklearn.impute import KNNImputer

        lacking = np.flatnonzero(np.isnan(x).any(axis=1))
        if not len(lacking):
            return x.copy()
        donors, filled = self.donors.copy(), x.copy()
        donors.ravel()[self.empty] = np.nan
        imputer = KNNImputer(n_neighbors=_NEIGHBORS).fit(donors)
        found = imputer.transform((x[lacking] - self.means) / self.spreads) * self.spreads + self.means
        filled[lacking] = np.where(np.isnan(x[lacking]), found, x[lacking])
        return filled
