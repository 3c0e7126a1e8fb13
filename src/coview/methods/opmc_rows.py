"""Standardised views: learnt from training rows, the same for a row alone and in any block.

A dense view is standardised as one copy in float64. A sparse view stays sparse: it is its scaled entries minus a
rank-one matrix, and everything that is asked of it is exact in that form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import scipy.sparse as sp

from coview.rows import (
    column_statistics,
    largest_along,
    row_of_entries,
    squared_norms,
    standard_deviation,
    statistics_of_entries,
    with_entries,
)
from coview.state import FloatArray
from coview.views import Array, Matrix

SCALINGS = ("feature", "sample")


class StandardisedRows(ABC):
    """Rows of one view after standardisation, of shape (n_rows, n_features)."""

    @property
    @abstractmethod
    def n_rows(self) -> int: ...

    @property
    @abstractmethod
    def squared_norms(self) -> Array:
        """The squared length of each row."""

    @abstractmethod
    def sums(self, members: Matrix) -> Array:
        """Sums of rows per cluster, for an indicator `members` of shape (n_clusters, n_rows) in CSC form."""

    @abstractmethod
    def products(self, rows: slice, others: Array) -> Array:
        """Inner products of some rows with each of `others`, a matrix of shape (m, n_features)."""

    @abstractmethod
    def take(self, rows: Array) -> Array:
        """Return a few chosen rows as a dense matrix."""


@dataclass(frozen=True)
class DenseRows(StandardisedRows):
    """Rows as they are."""

    matrix: Array

    @property
    def n_rows(self) -> int:
        return len(self.matrix)

    @cached_property
    def squared_norms(self) -> Array:
        return squared_norms(self.matrix)

    def sums(self, members: Matrix) -> Array:
        totals: Array = members @ self.matrix
        return totals

    def products(self, rows: slice, others: Array) -> Array:
        products: Array = self.matrix[rows] @ others.T
        return products

    def take(self, rows: Array) -> Array:
        return self.matrix[rows]


@dataclass(frozen=True)
class SparseRows(StandardisedRows):
    """Rows of matrix − left rightᵀ, where the matrix is sparse."""

    matrix: Matrix
    left: Array
    right: Array

    @property
    def n_rows(self) -> int:
        return len(self.left)

    @cached_property
    def squared_norms(self) -> Array:
        squares = (self.matrix**2).sum(axis=1) - 2 * self.left * (self.matrix @ self.right)
        norms: Array = np.maximum(squares + self.left**2 * (self.right @ self.right), 0.0)
        return norms

    def sums(self, members: Matrix) -> Array:
        totals: Array = (members.tocsr() @ self.matrix).toarray() - np.outer(members @ self.left, self.right)
        return totals

    def products(self, rows: slice, others: Array) -> Array:
        products: Array = self.matrix[rows] @ others.T - np.outer(self.left[rows], others @ self.right)
        return products

    def take(self, rows: Array) -> Array:
        chosen: Array = self.matrix[rows].toarray() - np.outer(self.left[rows], self.right)
        return chosen


class Scaling(ABC):
    """How rows of one view are standardised."""

    @abstractmethod
    def __call__(self, x: Matrix) -> StandardisedRows:
        """Standardise any rows."""

    @abstractmethod
    def restore(self, rows: Array) -> Array:
        """Bring standardised rows back to the units of the view, as far as these are known."""


@dataclass(frozen=True)
class ColumnScaling(Scaling):
    """Every column minus its mean in training, over its spread; a spread of infinity silences a constant column."""

    centre: Annotated[Array, FloatArray("features")]
    spread: Annotated[Array, FloatArray("features", above=0, infinite=True)]

    def __call__(self, x: Matrix) -> StandardisedRows:
        if sp.issparse(x):
            scaled = with_entries(x, x.data / self.spread[x.indices])
            return SparseRows(scaled, np.ones(x.shape[0]), self.centre / self.spread)
        matrix = np.subtract(x, self.centre, dtype=np.float64, order="C")
        matrix /= self.spread
        return DenseRows(matrix)

    def restore(self, rows: Array) -> Array:
        restored: Array = rows * np.where(np.isfinite(self.spread), self.spread, 0.0) + self.centre
        return restored


@dataclass(frozen=True)
class RowScaling(Scaling):
    """Every row minus its own mean, over its own spread: nothing is learnt, and the units of a row are forgotten."""

    def __call__(self, x: Matrix) -> StandardisedRows:
        n, width = x.shape
        if sp.issparse(x):
            row = row_of_entries(x)
            mean, spread = statistics_of_entries(x.data, row, n, width)
            return SparseRows(with_entries(x, x.data / spread[row]), mean / spread, np.ones(width))
        matrix = np.divide(x, largest_along(x, axis=1)[:, None], dtype=np.float64, order="C")
        mean = matrix.mean(axis=1)
        matrix -= mean[:, None]
        matrix /= standard_deviation(squared_norms(matrix), mean, width)[:, None]
        return DenseRows(matrix)

    def restore(self, rows: Array) -> Array:
        return rows


def learn_scaling(x: Matrix, normalize: str | None) -> Scaling:
    """Learn a standardisation: "feature" (mean 0, sd 1 per column), "sample" (per row), or None (mean 0 per column).

    Without units to change, centring still pays: distances between far-off rows lose their digits in inner products.
    """
    if normalize == "sample":
        return RowScaling()
    centre, spread = column_statistics(x)
    return ColumnScaling(centre, spread if normalize == "feature" else np.where(np.isfinite(spread), 1.0, np.inf))
