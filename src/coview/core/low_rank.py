"""A symmetric matrix plus a low-rank matrix, which is never formed."""

from __future__ import annotations

from typing import Any

import numpy as np

from coview.core.sparse import row_slabs
from coview.runtime import Workers
from coview.views import Array


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
