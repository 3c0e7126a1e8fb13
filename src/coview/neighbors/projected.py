"""Approximate nearest-neighbour search: projections select candidates, and distances between full rows decide."""

from __future__ import annotations

import numpy as np

from coview.neighbors.cells import Cells, cell_means, evenly_spaced
from coview.neighbors.duplicates import Integers
from coview.neighbors.exact import BLOCK_ROWS, NO_PAIRS, ExactSearch, Pairs, take
from coview.rows import squared_norms
from coview.runtime import Map, serial_map
from coview.views import Array

_PCA_ROWS = 2048  # rows from which the axes are learnt
_CELL_COLUMNS = 32
_VARIANCE_RATIO = 0.8  # part of the variance within cells that the axes explain
_LEAST_AXES = 32  # fewer do not save time
_MOST_AXES = 0.5  # times the number of columns: more save too little time
_CANDIDATES = 1.8  # for each neighbour
_LEAST_AROUND, _MOST_AROUND = 1280, 50_000
_PART_AROUND, _PART_AROUND_PROJECTED = 0.1, 0.064
_TINY = 1e-30  # squares of this size are near the end of the range of float32
_PLACE_BITS = 24


class ProjectedSearch:
    """Approximate search for the nearest neighbours of training rows: some are replaced by others nearly as near.

    Each row is compared with the rows of the nearest cells. If a few principal axes explain most of the variance within
    cells, the rows are projected onto them: products of projected rows select candidates, whose distances are then
    computed from the full rows.
    """

    def __init__(self, finder: ExactSearch, map_blocks: Map = serial_map) -> None:
        points, some = finder.points, evenly_spaced(len(finder.points), _PCA_ROWS)
        sample = points[some]
        axes = _principal_axes(sample - sample.mean(axis=0))[1][:, :_CELL_COLUMNS]
        self._cells = Cells(points @ axes, map_blocks)

        cell = self._cells.of_row[some]
        centres = cell_means(sample, cell, np.zeros((len(self), points.shape[1]), points.dtype))
        squares, axes = _principal_axes(sample - centres[cell])
        n_axes = max(int(np.searchsorted(np.cumsum(squares), _VARIANCE_RATIO * squares.sum())) + 1, _LEAST_AXES)
        self._projects = n_axes <= _MOST_AXES * points.shape[1]
        part = (_PART_AROUND_PROJECTED if self._projects else _PART_AROUND) * len(points)
        self._n_around = int(max(_LEAST_AROUND, min(part, _MOST_AROUND)))
        self._finder = finder
        if self._projects:  # in the order of the cells: rows that are near each other are then near in memory as well
            self._projected = ExactSearch((points @ axes[:, :n_axes])[self._cells.rows])
            rows = finder.rows * 2.0**-finder.exponent
            narrow = rows.astype(np.float32)
            rows = narrow if (narrow == rows).all() else rows  # float32 is exact for many images and counts
            self._rows = np.ascontiguousarray(rows[self._cells.rows])

    def __len__(self) -> int:
        return len(self._cells)

    def near(self, cell: int, k: int) -> tuple[Integers, Pairs]:
        """Return the rows of a cell, and k near neighbours of each, nearest first, or more if there are ties."""
        rows, own = self._cells.rows, self._cells.members(cell)
        among = self._cells.around(cell, max(self._n_around, 20 * k))
        if len(own) == 0:
            return own, NO_PAIRS
        if not self._projects:
            own = rows[own]
            return own, self._finder.near(self._finder.rows[own], k, own=own, among=rows[among])
        step = max(min(BLOCK_ROWS, 2**_PLACE_BITS // len(among)), 1)
        parts = [self._measured(own[start : start + step], k, among) for start in range(0, len(own), step)]
        places, distances = (np.concatenate(part).ravel() for part in zip(*parts, strict=True))
        return rows[own], Pairs(np.repeat(np.arange(len(own)), k), rows[places], distances)

    def _measured(self, own: Integers, k: int, among: Integers) -> tuple[Integers, Array]:
        """Return the k nearest candidates of each of a block of rows, shape (rows, k), and their distances."""
        i, j = self._projected.candidates(self._projected.rows[own], int(_CANDIDATES * k), own=own, among=among)
        squares = _squared_distances(take(self._rows, own[i]), take(self._rows, j))
        tiny = np.flatnonzero(squares < _TINY)
        if len(tiny):
            squares = squares.astype(np.float64)
            squares[tiny] = _squared_distances(self._rows[own[i[tiny]]].astype(np.float64), self._rows[j[tiny]])
        chosen = smallest_of_each(i, squares, k, len(own))
        if squares.dtype == np.float64:
            chosen = np.take_along_axis(chosen, np.argsort(squares[chosen], axis=1, kind="stable"), axis=1)
        return j[chosen], np.sqrt(squares[chosen].astype(np.float64)) * 2.0**self._finder.exponent


def smallest_of_each(query: Integers, squares: Array, k: int, n_queries: int) -> Integers:
    """Return the places of the k smallest numbers of each query, in increasing order; ties go to the first.

    Query (below 256), number and place are packed into 64 bits: non-negative floats have the order of their bits, and
    sorting one key is several times faster than sorting three. Of numbers in float64 the first 32 bits are packed, so
    numbers with a relative difference below 5e-7 may be treated as ties.
    """
    if squares.dtype == np.float64:
        keys = squares.view(np.uint64) >> np.uint64(31)
    else:
        keys = squares.view(np.uint32).astype(np.uint64)
    keys <<= np.uint64(_PLACE_BITS)
    keys |= query.astype(np.uint64) << np.uint64(_PLACE_BITS + 32)
    keys |= np.arange(len(query), dtype=np.uint64)
    keys.sort()
    counts = np.bincount(query, minlength=n_queries)
    chosen = keys[(np.cumsum(counts) - counts)[:, None] + np.arange(k)]
    return (chosen & np.uint64(2**_PLACE_BITS - 1)).astype(np.int64)


def _squared_distances(a: Array, b: Array) -> Array:
    """Return the squared distances between the rows of a, which are overwritten, and those of b."""
    a -= b
    return squared_norms(a)


def _principal_axes(differences: Array) -> tuple[Array, Array]:
    """Return the sums of squares along the principal axes, in decreasing order, and the axes as columns."""
    squares, axes = np.linalg.eigh(differences.T @ differences)
    return squares[::-1], axes[:, ::-1]
