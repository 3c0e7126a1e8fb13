"""Symmetric sparse n×n matrices whose slabs of rows are multiplied in threads."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.runtime import Workers
from coview.views import Array, Matrix

_SLAB_ROWS = 4096
_SLABS = 64


class SymmetricSparse:
    """A symmetric sparse matrix in CSR format. Each row is summed in the same order for any number of threads."""

    def __init__(self, matrix: Matrix, workers: Workers) -> None:
        self.shape: tuple[int, int] = matrix.shape
        self.dtype: np.dtype[Any] = matrix.dtype
        self.matrix = matrix
        self.workers = workers
        self.places = row_slabs(matrix.shape[0])
        self._slabs = [_row_slab(matrix, rows) for rows in self.places]

    def __matmul__(self, x: Array) -> Array:
        """Return the product with a vector or a matrix, computed in the precision of the matrix, in float64."""
        narrow = np.ascontiguousarray(x, dtype=self.dtype)
        product = np.empty(np.shape(x))

        def one(s: int) -> None:
            product[self.places[s]] = self._slabs[s] @ narrow

        self.workers.map(one, range(len(self.places)))
        return product

    def diagonal(self) -> Array:
        """Return the diagonal in float64."""
        return self.matrix.diagonal().astype(np.float64)

    def to_dense(self) -> Array:
        """Return the whole matrix in float64."""
        return self.matrix.toarray().astype(np.float64)


def row_slabs(n: int) -> list[slice]:
    """Return slabs of rows that are large enough for a thread; they depend on the number of rows only."""
    step = max(_SLAB_ROWS, ceil(n / _SLABS))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _row_slab(matrix: Matrix, rows: slice) -> Matrix:
    """Return some rows of a CSR matrix, in the same memory."""
    first, last = matrix.indptr[rows.start], matrix.indptr[rows.stop]
    parts = (matrix.data[first:last], matrix.indices[first:last], matrix.indptr[rows.start : rows.stop + 1] - first)
    return sp.csr_array(parts, shape=(rows.stop - rows.start, matrix.shape[1]))
