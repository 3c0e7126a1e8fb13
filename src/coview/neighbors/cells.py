"""Cells: groups of rows that are close together, so that a search can leave out distant rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from coview.neighbors.duplicates import Integers
from coview.rows import squared_norms
from coview.runtime import Map, serial_map
from coview.views import Array

_CELLS = 2.0  # times the square root of the number of rows
_ROWS_PER_CENTRE = 32  # in the sample from which the centres are learnt
_ITERATIONS = 4
_ROWS_PER_BLOCK = 4096


class Cells:
    """Rows grouped around the centres that k-means finds in a sample of them; equal rows give equal cells."""

    def __init__(self, points: Array, map_blocks: Map = serial_map) -> None:
        n = len(points)
        count = int(_CELLS * np.sqrt(n))
        sample = points[evenly_spaced(n, _ROWS_PER_CENTRE * count)]
        self._centres = sample[np.random.default_rng(0).choice(len(sample), count, replace=False)]
        for _ in range(_ITERATIONS):
            self._centres = cell_means(sample, self._nearest_centre(sample, map_blocks), self._centres)
        self.of_row = self._nearest_centre(points, map_blocks)  # the cell of each row
        self._sizes = np.bincount(self.of_row, minlength=count)
        self.rows: Integers = np.argsort(self.of_row, kind="stable")  # in the order of the cells
        self._starts = np.cumsum(self._sizes) - self._sizes

    def __len__(self) -> int:
        return len(self._centres)

    def members(self, cell: int) -> Integers:
        """Return the positions in `rows` of the rows of a cell."""
        return np.arange(self._starts[cell], self._starts[cell] + self._sizes[cell])

    def around(self, cell: int, n_rows: int) -> Integers:
        """Return the positions in `rows` of the rows of the nearest cells, itself included, at least n_rows of them."""
        nearest = np.argsort(squared_norms(self._centres - self._centres[cell]), kind="stable")
        ends = np.cumsum(self._sizes[nearest])
        enough = int(np.searchsorted(ends, n_rows)) + 1
        nearest, ends = nearest[:enough], ends[:enough]
        sizes = self._sizes[nearest]
        return np.repeat(self._starts[nearest] - (ends - sizes), sizes) + np.arange(ends[-1])

    def _nearest_centre(self, points: Array, map_blocks: Map) -> Integers:
        offsets = squared_norms(self._centres) / 2

        def one(start: int) -> Integers:
            nearness = points[start : start + _ROWS_PER_BLOCK] @ self._centres.T
            nearness -= offsets
            return nearness.argmax(axis=1)

        return np.concatenate(map_blocks(one, range(0, len(points), _ROWS_PER_BLOCK)))


def evenly_spaced(n: int, most: int) -> Integers:
    """Return at most `most` of the numbers below n, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def cell_means(points: Array, cell: Integers, centres: Array) -> Array:
    """Return the mean of the points of each cell; an empty cell keeps its centre."""
    ones = np.ones(len(points), dtype=points.dtype)
    members = sp.csr_array((ones, (cell, np.arange(len(points)))), shape=(len(centres), len(points)))
    sizes = np.bincount(cell, minlength=len(centres))[:, None]
    return np.where(sizes > 0, (members @ points) / np.maximum(sizes, 1), centres).astype(points.dtype)
