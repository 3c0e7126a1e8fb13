"""Cells: many rows cut into groups of rows that lie together, so that a search can leave out what is far away."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.kernels.base import Run, in_turn
from coview.views import Array

Integers = NDArray[np.int64]

_CELL_ROWS = 256
_MOST_CELLS = 4096
_SAMPLE = 32  # rows for each cell that its centre is learnt from
_ROUNDS = 6
_BLOCK_ROWS = 4096


class Cells:
    """Rows grouped around centres that k-means finds in a sample of them, always the same for the same rows.

    Parameters
    ----------
    points : (n, columns)
    """

    def __init__(self, points: Array, run: Run = in_turn) -> None:
        n = len(points)
        count = min(max(n // _CELL_ROWS, 1), _MOST_CELLS)
        sample = points[np.linspace(0, n - 1, min(n, _SAMPLE * count)).astype(int)]
        self._centres = sample[np.random.default_rng(0).choice(len(sample), count, replace=False)]
        for _ in range(_ROUNDS):
            self._centres = _means(sample, self._nearest(sample, run), self._centres)
        cell = self._nearest(points, run)
        self._rows = np.argsort(cell, kind="stable")
        self._ends = np.cumsum(np.bincount(cell, minlength=count))

    def __len__(self) -> int:
        return len(self._centres)

    def members(self, cell: int) -> Integers:
        """Return the rows of a cell."""
        return self._rows[self._ends[cell - 1] if cell else 0 : self._ends[cell]]

    def around(self, cell: int, n_rows: int) -> Integers:
        """Return the rows of the cells nearest to this one, itself included, until there are so many."""
        nearest = np.argsort(np.square(self._centres - self._centres[cell]).sum(axis=1), kind="stable")
        sizes = np.diff(self._ends, prepend=0)[nearest]
        enough = int(np.searchsorted(np.cumsum(sizes), n_rows)) + 1
        return np.concatenate([self.members(near) for near in nearest[:enough]])

    def _nearest(self, points: Array, run: Run) -> Integers:
        """The number of the centre nearest to each point."""
        offsets = np.square(self._centres).sum(axis=1) / 2

        def one(start: int) -> Integers:
            nearness = points[start : start + _BLOCK_ROWS] @ self._centres.T
            nearness -= offsets
            best: Integers = nearness.argmax(axis=1)
            return best

        return np.concatenate(run(one, range(0, len(points), _BLOCK_ROWS)))


def _means(points: Array, cell: Integers, centres: Array) -> Array:
    """The mean of each cell's points; a cell without any keeps its centre."""
    ones = np.ones(len(points), dtype=points.dtype)
    members = sp.csr_array((ones, (cell, np.arange(len(points)))), shape=(len(centres), len(points)))
    sizes = np.bincount(cell, minlength=len(centres))[:, None]
    means: Array = np.where(sizes > 0, (members @ points) / np.maximum(sizes, 1), centres).astype(points.dtype)
    return means
