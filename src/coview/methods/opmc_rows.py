"""Standardised views: learnt from training samples, and the same for a row alone and in any block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from coview.data.rows import (
    as_array,
    column_statistics,
    largest_along,
    row_of_entries,
    squared_norms,
    standard_deviation,
    statistics_of_entries,
    with_entries,
)
from coview.data.view import Array, Matrix

SCALINGS = ("feature", "sample", None)


@dataclass(frozen=True)
class StandardisedRows:
    """The standardised rows of one view: a copy in float64, or for a sparse view those of matrix − left rightᵀ."""

    matrix: Matrix
    left: Array | None = None
    right: Array | None = None

    @property
    def n_rows(self) -> int:
        return int(self.matrix.shape[0])

    @cached_property
    def squared_norms(self) -> Array:
        """The squared L2 norm of each row."""
        if self.left is None or self.right is None:
            return squared_norms(self.matrix)
        squares = (self.matrix**2).sum(axis=1) - 2 * self.left * (self.matrix @ self.right)
        return np.maximum(squares + self.left**2 * (self.right @ self.right), 0.0)

    def sums(self, members: Matrix) -> Array:
        """Return the sum of the rows of each cluster, for an indicator (n_clusters, n_rows) in CSC form."""
        if self.left is None or self.right is None:
            return members @ self.matrix
        return as_array(members.tocsr() @ self.matrix) - np.outer(members @ self.left, self.right)

    def products(self, rows: slice, others: Array) -> Array:
        """Return the inner products of some rows with each of `others`, (m, n_features)."""
        products: Array = self.matrix[rows] @ others.T
        if self.left is None or self.right is None:
            return products
        return products - np.outer(self.left[rows], others @ self.right)

    def take(self, rows: Array) -> Array:
        """Return some rows as an array."""
        taken = as_array(self.matrix[rows])
        return taken if self.left is None or self.right is None else taken - np.outer(self.left[rows], self.right)


class Scaling(ABC):
    """The standardisation of one view."""

    @abstractmethod
    def __call__(self, x: Matrix) -> StandardisedRows:
        """Return these rows standardised."""

    @abstractmethod
    def restore(self, rows: Array) -> Array:
        """Return standardised rows in the units of the view, if these are known."""


@dataclass(frozen=True)
class ColumnScaling(Scaling):
    """Subtracts the training mean of each column and divides by its spread, which is infinite if it is constant."""

    centre: Array
    spread: Array

    def __call__(self, x: Matrix) -> StandardisedRows:
        if sp.issparse(x):
            scaled = with_entries(x, x.data / self.spread[x.indices])
            return StandardisedRows(scaled, np.ones(x.shape[0]), self.centre / self.spread)
        matrix = np.subtract(x, self.centre, dtype=np.float64, order="C")
        matrix /= self.spread
        return StandardisedRows(matrix)

    def restore(self, rows: Array) -> Array:
        return rows * np.where(np.isfinite(self.spread), self.spread, 0.0) + self.centre


@dataclass(frozen=True)
class RowScaling(Scaling):
    """Subtracts the mean of each row and divides by its spread; nothing is learnt, and units are lost."""

    def __call__(self, x: Matrix) -> StandardisedRows:
        n, width = x.shape
        if sp.issparse(x):
            row = row_of_entries(x)
            mean, spread = statistics_of_entries(x.data, row, n, width)
            return StandardisedRows(with_entries(x, x.data / spread[row]), mean / spread, np.ones(width))
        matrix = np.divide(x, largest_along(x, axis=1)[:, None], dtype=np.float64, order="C")
        mean = matrix.mean(axis=1)
        matrix -= mean[:, None]
        matrix /= standard_deviation(squared_norms(matrix), mean, width)[:, None]
        return StandardisedRows(matrix)

    def restore(self, rows: Array) -> Array:
        return rows


def learn_scaling(x: Matrix, normalize: str | None) -> Scaling:
    """Return a standardisation: "feature" (mean 0, sd 1 per column), "sample" (per row), or None (mean 0 per column).

    None also centres, because distances between rows far from the origin lose digits in inner products.
    """
    if normalize == "sample":
        return RowScaling()
    centre, spread = column_statistics(x)
    return ColumnScaling(centre, spread if normalize == "feature" else np.where(np.isfinite(spread), 1.0, np.inf))
