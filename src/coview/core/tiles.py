"""Symmetric n×n matrices in tiles on and above the diagonal: half the memory of a full matrix."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import ceil
from typing import Any, Self

import numpy as np

from coview.base.runtime import Workers
from coview.data.view import Array

# A tile of 1.3 MB in float32 stays in the cache of one core during several operations.
_TILE_ROWS = 576
# OpenBLAS computes products of up to 100³ multiplications without copying their factors first. For a block of ten
# vectors, this takes 0.6 of the time of one product with the tile.
_SMALL_PRODUCT = 100**3
_FEWEST_ROWS = 64  # of such a product; with fewer, the calls take longer


class SymmetricTiles:
    """The tiles on and above the diagonal of a symmetric matrix, allocated but not filled, and their `places`.

    With `allocate=workers.empty`, the matrix can be used until the end of the fit only.
    """

    def __init__(
        self,
        n: int,
        dtype: Any,
        workers: Workers,
        tile_rows: int = _TILE_ROWS,
        allocate: Callable[[int, Any], Array] = np.empty,
    ) -> None:
        step = ceil(n / ceil(n / tile_rows))
        if step > 64:  # BLAS and vector units are fastest with multiples of 64
            step = min(n, ceil(step / 64) * 64)
        strips = [slice(start, min(start + step, n)) for start in range(0, n, step)]
        self.shape = (n, n)
        self.dtype = np.dtype(dtype)
        self.workers = workers
        self.places = [(rows, columns) for i, rows in enumerate(strips) for columns in strips[i:]]
        shapes = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in self.places]
        ends = np.cumsum([0, *(r * c for r, c in shapes)]).tolist()
        memory = allocate(ends[-1], self.dtype)  # one block, so that the system can use huge pages
        self.tiles = [memory[a:b].reshape(shape) for (a, b), shape in zip(pairwise(ends), shapes, strict=True)]

    def for_each(self, function: Callable[[int, slice, slice], Any]) -> list[Any]:
        """Return function(number, rows, columns) of every tile, computed in threads, in the order of the tiles."""
        return self.workers.map(lambda t: function(t, *self.places[t]), range(len(self.tiles)))

    def __matmul__(self, x: Array) -> Array:
        """Return the product with a vector or a matrix; tiles multiply in their own precision, sums are float64."""
        narrow = np.ascontiguousarray(x, dtype=self.dtype)

        def parts(t: int, rows: slice, columns: slice) -> tuple[Array, Array | None]:
            tile, right_factor, left_factor = self.tiles[t], narrow[columns], narrow[rows].T
            step = _SMALL_PRODUCT // max(right_factor.size, 1)
            if narrow.ndim == 1 or step < _FEWEST_ROWS:
                step = len(tile)
            strips = [slice(start, start + step) for start in range(0, len(tile), step)]
            right = np.concatenate([tile[strip] @ right_factor for strip in strips])
            if rows == columns:
                return right, None
            return right, np.sum([left_factor[..., strip] @ tile[strip] for strip in strips], axis=0).T

        product = np.zeros(np.shape(x))
        for (rows, columns), (right, left) in zip(self.places, self.for_each(parts), strict=True):
            product[rows] += right
            if left is not None:
                product[columns] += left
        return product

    def scale_both_sides(self, scale: Array) -> Self:
        """Multiply row i and column i by scale[i] in place; return self."""
        scale = scale.astype(self.dtype, copy=False)

        def one(t: int, rows: slice, columns: slice) -> None:
            self.tiles[t] *= scale[rows, None]
            self.tiles[t] *= scale[columns]

        self.for_each(one)
        return self

    def diagonal(self) -> Array:
        """Return the diagonal in float64."""
        return np.concatenate(
            [tile.diagonal() for tile, (r, c) in zip(self.tiles, self.places, strict=True) if r == c], dtype=np.float64
        )

    def to_dense(self) -> Array:
        """Return the whole matrix in float64."""
        dense = np.empty(self.shape)
        for tile, (rows, columns) in zip(self.tiles, self.places, strict=True):
            dense[rows, columns] = tile
            dense[columns, rows] = tile.T
        return dense

    @staticmethod
    def nbytes(n: int, dtype: Any) -> int:
        """Return an upper bound of the memory of such a matrix, in bytes."""
        return n * (n + _TILE_ROWS) // 2 * int(np.dtype(dtype).itemsize)
