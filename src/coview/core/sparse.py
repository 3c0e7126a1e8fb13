"""Symmetric sparse n×n matrices as slabs of rows, which are multiplied in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Workers
from coview.data.rows import slab_places
from coview.data.view import Array, Matrix

_SLAB_ROWS = 4096
_SLABS = 64

# Computes a slab from the rows that it has and the slabs of several matrices with these rows.
SlabFunction: TypeAlias = Callable[[slice, Sequence[Matrix]], Matrix]


class SymmetricSparse:
    """A symmetric sparse matrix, as slabs in CSR format. Each row is summed in the same order for any slabs."""

    def __init__(self, slabs: Sequence[Matrix], workers: Workers) -> None:
        self.shape: tuple[int, int] = (slabs[0].shape[1], slabs[0].shape[1])
        self.dtype: np.dtype[Any] = slabs[0].dtype
        self.workers = workers
        self.slabs = slabs
        self.places = slab_places([slab.shape[0] for slab in slabs])

    @classmethod
    def of(cls, matrix: Matrix, workers: Workers) -> Self:
        """Return the slabs of a CSR matrix, in the same memory."""
        return cls([_row_slab(matrix, rows) for rows in row_slabs(matrix.shape[0])], workers)

    def __matmul__(self, x: Array) -> Array:
        """Return the product with a vector or a matrix, computed in the precision of the matrix, in float64."""
        narrow = np.ascontiguousarray(x, dtype=self.dtype)
        product = np.empty(np.shape(x))

        def one(s: int) -> None:
            product[self.places[s]] = self.slabs[s] @ narrow

        self.workers.map(one, range(len(self.places)))
        return product

    def combined(self, others: Sequence[Self], function: SlabFunction) -> Self:
        """Return the matrix whose slabs are a function of the slabs of this and of other matrices."""
        matrices = [self, *others]
        slabs = self.workers.map(
            lambda s: function(self.places[s], [matrix.slabs[s] for matrix in matrices]), range(len(self.places))
        )
        return type(self)(slabs, self.workers)

    def diagonal(self) -> Array:
        """Return the diagonal in float64."""
        parts = [slab_diagonal(rows, slab) for rows, slab in zip(self.places, self.slabs, strict=True)]
        return np.concatenate(parts).astype(np.float64)

    def to_dense(self) -> Array:
        """Return the whole matrix in float64."""
        return np.vstack([slab.toarray() for slab in self.slabs]).astype(np.float64)


def row_slabs(n: int) -> list[slice]:
    """Return slabs of rows that are large enough for a thread; they depend on the number of rows only."""
    step = max(_SLAB_ROWS, ceil(n / _SLABS))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def slab_diagonal(rows: slice, slab: Matrix) -> Array:
    """Return the part of the diagonal that a slab of these rows has."""
    return np.asarray(slab.diagonal(rows.start))


def _row_slab(matrix: Matrix, rows: slice) -> Matrix:
    """Return some rows of a CSR matrix, in the same memory."""
    first, last = matrix.indptr[rows.start], matrix.indptr[rows.stop]
    parts = (matrix.data[first:last], matrix.indices[first:last], matrix.indptr[rows.start : rows.stop + 1] - first)
    return sp.csr_array(parts, shape=(rows.stop - rows.start, matrix.shape[1]))


class PlusLowRank:
    """The symmetric matrix S + F C Fᵀ, with S in tiles or sparse, F of shape (n, few), and C = I by default."""

    def __init__(self, matrix: Any, factor: Array, form: Array | None = None) -> None:
        self.matrix = matrix
        self.factor = factor
        self.form = np.eye(factor.shape[1]) if form is None else form

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.factor), len(self.factor)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.matrix.dtype

    @property
    def workers(self) -> Workers:
        workers: Workers = self.matrix.workers
        return workers

    def diagonal(self) -> Array:
        """Return the diagonal in float64."""
        return self.matrix.diagonal() + ((self.factor @ self.form) * self.factor).sum(axis=1)

    def __matmul__(self, x: Array) -> Array:
        slabs = row_slabs(len(self.factor))
        parts = self.workers.map(lambda rows: self.factor[rows].T @ x[rows], slabs)
        inner = self.form @ sum(parts, start=np.zeros_like(parts[0]))
        product: Array = self.matrix @ x

        def add(rows: slice) -> None:
            product[rows] += self.factor[rows] @ inner

        self.workers.map(add, slabs)
        return product

    def to_dense(self) -> Array:
        """Return the whole matrix in float64."""
        return self.matrix.to_dense() + self.factor @ self.form @ self.factor.T
