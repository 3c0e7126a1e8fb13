"""Cells: many rows cut into groups of rows that lie together, so that a search can leave out what is far away."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from coview.neighbors.duplicates import Integers
from coview.runtime import Map, serial_map
from coview.views import Array

_CELLS = 2.0  # times the root of the number of rows
_SAMPLE = 32  # rows for each cell that its centre is learnt from
_ROUNDS = 4
_BLOCK_ROWS = 4096


class Cells:
    """Rows grouped around centres that k-means finds in a sample of them, always the same for the same rows.

    Parameters
    ----------
    points : (n, columns)
    """

    def __init__(self, points: Array, map_blocks: Map = serial_map) -> None:
        n = len(points)
        count = int(_CELLS * np.sqrt(n))
        sample = points[spread(n, _SAMPLE * count)]
        self._centres = sample[np.random.default_rng(0).choice(len(sample), count, replace=False)]
        for _ in range(_ROUNDS):
            self._centres = means(sample, self._nearest(sample, map_blocks), self._centres)
        self.of_row = self._nearest(points, map_blocks)
        self._sizes = np.bincount(self.of_row, minlength=count)
        self.rows: Integers = np.argsort(self.of_row, kind="stable")  # in the order of the cells
        self._starts = np.cumsum(self._sizes) - self._sizes

    def __len__(self) -> int:
        return len(self._centres)

    def members(self, cell: int) -> Integers:
        """Return the places of a cell's rows in `rows`."""
        return np.arange(self._starts[cell], self._starts[cell] + self._sizes[cell])

    def around(self, cell: int, n_rows: int) -> Integers:
        """Return the places of the rows of the cells nearest to this one, itself included, until there are so many."""
        nearest = np.argsort(np.square(self._centres - self._centres[cell]).sum(axis=1), kind="stable")
        ends = np.cumsum(self._sizes[nearest])
        enough = int(np.searchsorted(ends, n_rows)) + 1
        nearest, ends = nearest[:enough], ends[:enough]
        sizes = self._sizes[nearest]
        return np.repeat(self._starts[nearest] - (ends - sizes), sizes) + np.arange(ends[-1])

    def _nearest(self, points: Array, map_blocks: Map) -> Integers:
        """The number of the centre nearest to each point."""
        offsets = np.square(self._centres).sum(axis=1) / 2

        def one(start: int) -> Integers:
            nearness = points[start : start + _BLOCK_ROWS] @ self._centres.T
            nearness -= offsets
            best: Integers = nearness.argmax(axis=1)
            return best

        return np.concatenate(map_blocks(one, range(0, len(points), _BLOCK_ROWS)))


def spread(n: int, most: int) -> Integers:
    """Return so many of n numbers, or all, evenly spread."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def means(points: Array, cell: Integers, centres: Array) -> Array:
    """Return the mean of each cell's points; a cell without any keeps its centre."""
    ones = np.ones(len(points), dtype=points.dtype)
    members = sp.csr_array((ones, (cell, np.arange(len(points)))), shape=(len(centres), len(points)))
    sizes = np.bincount(cell, minlength=len(centres))[:, None]
    found: Array = np.where(sizes > 0, (members @ points) / np.maximum(sizes, 1), centres).astype(points.dtype)
    return found
