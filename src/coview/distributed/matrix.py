"""Sparse symmetric matrices whose slabs of rows are on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Workers
from coview.core.sparse import SlabFunction, SymmetricSparse, slab_diagonal
from coview.data.view import Array, Matrix
from coview.neighbors.blocks import Blocks
from coview.neighbors.duplicates import Integers


class ClusterSparse(SymmetricSparse):
    """The same as in memory: a product sends its factor to the workers and receives the rows of the result."""

    def __init__(self, blocks: Blocks, dtype: Any, workers: Workers) -> None:
        self.shape, self.dtype = (blocks.width, blocks.width), np.dtype(dtype)
        self.slabs, self.places = blocks.blocks, blocks.places
        self.workers = workers  # threads of this process
        self._blocks = blocks

    def __matmul__(self, x: Array) -> Array:
        narrow = self._blocks.tasks.share(np.ascontiguousarray(x, dtype=self.dtype))
        return self._blocks.converted(_product, narrow).gathered().astype(np.float64)

    def combined(self, others: Sequence[Self], function: SlabFunction) -> Self:
        tasks = self._blocks.tasks
        shared = tasks.share(function)
        slabs = [
            tasks.submit(_combined, shared, rows, *(matrix.slabs[s] for matrix in (self, *others)))
            for s, rows in enumerate(self.places)
        ]
        return type(self)(self._blocks._replace(blocks=slabs), self.dtype, self.workers)

    def diagonal(self) -> Array:
        submit = self._blocks.tasks.submit
        parts = [submit(slab_diagonal, rows, slab) for rows, slab in zip(self.places, self.slabs, strict=True)]
        return self._blocks._replace(blocks=parts).gathered().astype(np.float64)

    def to_dense(self) -> Array:
        return self.gathered().toarray().astype(np.float64)

    def gathered(self) -> Matrix:
        """Return the whole matrix in this process, in CSR format."""
        return self._blocks.gathered()

    def __getitem__(self, numbers: Integers) -> Matrix:
        """Return some rows in this process, in CSR format."""
        return self._blocks.take(numbers) if len(numbers) else sp.csr_array((0, self.shape[1]), dtype=self.dtype)


def _product(slab: Matrix, x: Array) -> Array:
    product: Array = slab @ x
    return product


def _combined(function: SlabFunction, rows: slice, *slabs: Matrix) -> Matrix:
    return function(rows, slabs)
