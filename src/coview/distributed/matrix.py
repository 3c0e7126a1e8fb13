"""Sparse symmetric matrices whose slabs of rows are on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Workers
from coview.core.sparse import SlabFunction, SymmetricSparse, slab_diagonal
from coview.data.view import Array, Matrix
from coview.distributed.cluster import DaskCluster, Future, take_rows
from coview.neighbors.duplicates import Integers


class ClusterSparse(SymmetricSparse):
    """The same as in memory: a product sends its factor to the workers and receives the rows of the result."""

    def __init__(
        self, cluster: DaskCluster, slabs: Sequence[Future], places: list[slice], dtype: Any, workers: Workers
    ) -> None:
        n = places[-1].stop
        self.shape, self.dtype, self.places = (n, n), np.dtype(dtype), places
        self.slabs, self.workers = slabs, workers  # the workers are threads of this process
        self._cluster = cluster

    def __matmul__(self, x: Array) -> Array:
        narrow = self._cluster.share(np.ascontiguousarray(x, dtype=self.dtype))
        parts = self._cluster.gather([self._cluster.submit(_product, slab, narrow) for slab in self.slabs])
        return np.concatenate(parts).astype(np.float64)

    def combined(self, others: Sequence[Self], function: SlabFunction) -> Self:
        shared = self._cluster.share(function)
        slabs = [
            self._cluster.submit(_combined, shared, rows, *(matrix.slabs[s] for matrix in (self, *others)))
            for s, rows in enumerate(self.places)
        ]
        return type(self)(self._cluster, slabs, self.places, self.dtype, self.workers)

    def diagonal(self) -> Array:
        parts = [
            self._cluster.submit(slab_diagonal, rows, slab) for rows, slab in zip(self.places, self.slabs, strict=True)
        ]
        return np.concatenate(self._cluster.gather(parts)).astype(np.float64)

    def to_dense(self) -> Array:
        return self.gathered().toarray().astype(np.float64)

    def gathered(self) -> Matrix:
        """Return the whole matrix in this process, in CSR format."""
        return sp.csr_array(sp.vstack(self._cluster.gather(self.slabs), format="csr"))

    def __getitem__(self, numbers: Integers) -> Matrix:
        """Return some rows in this process, in CSR format."""
        if len(numbers) == 0:
            return sp.csr_array((0, self.shape[1]), dtype=self.dtype)
        block = np.searchsorted([rows.stop for rows in self.places], numbers, side="right")
        order = np.argsort(block, kind="stable")
        used, starts = np.unique(block[order], return_index=True)
        groups = np.split(order, starts[1:])
        parts = [
            self._cluster.submit(take_rows, self.slabs[b], numbers[group] - self.places[b].start)
            for b, group in zip(used, groups, strict=True)
        ]
        found = sp.vstack(self._cluster.gather(parts), format="csr")
        return sp.csr_array(found)[np.argsort(order, kind="stable")]


def _product(slab: Matrix, x: Array) -> Array:
    product: Array = slab @ x
    return product


def _combined(function: SlabFunction, rows: slice, *slabs: Matrix) -> Matrix:
    return function(rows, slabs)
