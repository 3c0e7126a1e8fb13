"""Standardised views: learnt from training rows, the same for a row alone and in any block.

A dense view is standardised as one copy in float64. A sparse view stays sparse: it is its scaled entries minus a
rank-one matrix, and everything that is asked of it is exact in that form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from coview.views import Array, Matrix

SCALINGS = ("feature", "sample")
_BLOCK_NUMBERS = 2**20  # 8 MB


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut rows, of which each needs `width` numbers, into blocks of bounded memory."""
    step = max(1, _BLOCK_NUMBERS // width)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


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
        norms: Array = np.einsum("ij,ij->i", self.matrix, self.matrix)
        return norms

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

    centre: Array
    spread: Array

    def __call__(self, x: Matrix) -> StandardisedRows:
        if sp.issparse(x):
            scaled = _with_entries(x, x.data / self.spread[x.indices])
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
            row = np.repeat(np.arange(n), np.diff(x.indptr))
            mean, spread = _sparse_statistics(x.data, row, n, width)
            return SparseRows(_with_entries(x, x.data / spread[row]), mean / spread, np.ones(width))
        matrix = np.divide(x, _unit(x, axis=1)[:, None], dtype=np.float64, order="C")
        mean = matrix.mean(axis=1)
        matrix -= mean[:, None]
        matrix /= _spread(np.einsum("ij,ij->i", matrix, matrix), mean, width)[:, None]
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


def column_statistics(x: Matrix) -> tuple[Array, Array]:
    """Return mean and standard deviation (with n - 1) of each column, the latter infinite where a column is constant.

    Block by block, so that neither a sparse view nor a file is brought into memory.
    """
    n, width = x.shape
    if sp.issparse(x):
        return _sparse_statistics(x.data, x.indices, width, n)
    unit = _unit(x, axis=0)
    blocks = list(row_blocks(n, width))
    mean = sum((x[rows] / unit).sum(axis=0) for rows in blocks) / n
    squares = sum((((x[rows] / unit) - mean) ** 2).sum(axis=0) for rows in blocks)
    return mean * unit, _spread(squares, mean, n) * unit


def _sparse_statistics(entries: Array, group: Array, n_groups: int, count: int) -> tuple[Array, Array]:
    """Mean and spread of groups of `count` numbers, given those entries that are stored."""
    unit = np.zeros(n_groups)
    np.maximum.at(unit, group, np.abs(entries))
    unit[unit == 0] = 1.0
    entries = entries / unit[group]
    mean = np.bincount(group, entries, n_groups) / count
    absent = count - np.bincount(group, minlength=n_groups)
    squares = np.bincount(group, (entries - mean[group]) ** 2, n_groups) + absent * mean**2
    return mean * unit, _spread(squares, mean, count) * unit


def _unit(x: Array, axis: int) -> Array:
    """The largest size along an axis, to be taken out first: squares of extreme numbers leave the range of floats."""
    largest = np.maximum(x.max(axis=axis), -x.min(axis=axis)).astype(np.float64)
    return np.where(largest > 0, largest, 1.0)


def _spread(squares: Array, mean: Array, count: int) -> Array:
    """Standard deviation from a sum of squared deviations; infinite where it is no more than rounding in the mean."""
    spread = np.sqrt(squares / max(count - 1, 1))
    return np.where(spread > count * np.finfo(np.float64).eps * np.abs(mean), spread, np.inf)


def _with_entries(x: Matrix, entries: Array) -> Matrix:
    return sp.csr_array((entries, x.indices, x.indptr), shape=x.shape)
