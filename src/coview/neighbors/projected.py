"""A sketch of many rows: a few directions show who may be near, and the rows themselves decide."""

from __future__ import annotations

import numpy as np

from coview.neighbors.cells import Cells, means, spread
from coview.neighbors.duplicates import Integers
from coview.neighbors.exact import BLOCK_ROWS, NO_PAIRS, ExactSearch, Pairs, take
from coview.runtime import Map, serial_map
from coview.views import Array

_SAMPLE = 2048  # rows that directions are learnt from
_CELL_COLUMNS = 32
_HELD = 0.8  # part of the squared differences within cells that the directions of a sketch have to show
_LEAST_AXES = 32  # fewer cost as much
_FEW = 0.5  # of the columns: more directions than that save too little
_CANDIDATES = 1.8  # for each neighbour wanted
_LEAST_AROUND, _MOST_AROUND = 1280, 50_000
_PART_AROUND, _PART_OF_FLAT = 0.1, 0.064
_TINY = 1e-30  # squares of this size are near the end of float32
_PLACE_BITS = 24


class ProjectedSearch:
    """The rows of a finder, for their own nearest neighbours: nearly all of these, or others nearly as near.

    Cells of rows that lie together tell whom to look at. Where rows are flat, that is, where a few directions hold most
    of what tells the rows of a cell apart, products in these directions find candidates, which are then measured.
    """

    def __init__(self, finder: ExactSearch, map_blocks: Map = serial_map) -> None:
        points, some = finder.points, spread(len(finder.points), _SAMPLE)
        sample = points[some]
        axes = _axes(sample - sample.mean(axis=0))[1][:, :_CELL_COLUMNS]
        self._cells = Cells(points @ axes, map_blocks)

        cell = self._cells.of_row[some]
        sizes, axes = _axes(sample - means(sample, cell, np.zeros((len(self), points.shape[1]), points.dtype))[cell])
        n_axes = max(int(np.searchsorted(np.cumsum(sizes), _HELD * sizes.sum())) + 1, _LEAST_AXES)
        self._flat = n_axes <= _FEW * points.shape[1]
        part = (_PART_OF_FLAT if self._flat else _PART_AROUND) * len(points)
        self._n_around = int(max(_LEAST_AROUND, min(part, _MOST_AROUND)))
        self._finder = finder
        if self._flat:  # in the order of the cells: rows that are near each other are then near in memory as well
            self._drawn = ExactSearch((points @ axes[:, :n_axes])[self._cells.rows])
            self._rows = np.ascontiguousarray(_short(finder.rows * 2.0**-finder.exponent)[self._cells.rows])

    def __len__(self) -> int:
        return len(self._cells)

    def near(self, cell: int, k: int) -> tuple[Integers, Pairs]:
        """Return the rows of a cell, and k rows near each of them, nearest first, or more that are as near."""
        rows, own = self._cells.rows, self._cells.members(cell)
        among = self._cells.around(cell, max(self._n_around, 20 * k))
        if len(own) == 0:
            return own, NO_PAIRS
        if not self._flat:
            own = rows[own]
            return own, self._finder.near(self._finder.rows[own], k, own=own, among=rows[among])
        step = max(min(BLOCK_ROWS, 2**_PLACE_BITS // len(among)), 1)
        parts = [self._measured(own[start : start + step], k, among) for start in range(0, len(own), step)]
        places, distances = (np.concatenate(part).ravel() for part in zip(*parts, strict=True))
        return rows[own], Pairs(np.repeat(np.arange(len(own)), k), rows[places], distances)

    def _measured(self, own: Integers, k: int, among: Integers) -> tuple[Integers, Array]:
        """The k nearest of the candidates of a block of rows, (rows, k), and their distances."""
        i, j = self._drawn.candidates(self._drawn.rows[own], int(_CANDIDATES * k), own=own, among=among)
        squares = _squares(take(self._rows, own[i]), take(self._rows, j))
        tiny = np.flatnonzero(squares < _TINY)
        if len(tiny):
            squares = squares.astype(np.float64)
            squares[tiny] = _squares(self._rows[own[i[tiny]]].astype(np.float64), self._rows[j[tiny]])
        chosen = smallest_of_each(i, squares, k, len(own))
        if squares.dtype == np.float64:
            chosen = np.take_along_axis(chosen, np.argsort(squares[chosen], axis=1, kind="stable"), axis=1)
        return j[chosen], np.sqrt(squares[chosen].astype(np.float64)) * 2.0**self._finder.exponent


def smallest_of_each(query: Integers, squares: Array, k: int, n_queries: int) -> Integers:
    """Return where the k smallest numbers of each query are, in order; the first of equal ones first.

    Query (below 256), number and place are packed into 64 bits (floats that are not negative are in the order of their
    bits): to sort these is several times faster than to sort by three keys. Of numbers in float64 the first 32 bits
    are packed: those that differ by less than a part in two million may count as equal.
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
    places: Integers = (chosen & np.uint64(2**_PLACE_BITS - 1)).astype(np.int64)
    return places


def _squares(a: Array, b: Array) -> Array:
    """Squared distances of the rows of a, which are overwritten, from those of b."""
    a -= b
    squares: Array = np.einsum("ij,ij->i", a, a)
    return squares


def _short(rows: Array) -> Array:
    """The rows in float32 where that holds them exactly, as it does images and counts."""
    short = rows.astype(np.float32)
    return short if (short == rows).all() else rows


def _axes(differences: Array) -> tuple[Array, Array]:
    """The sums of squares in the directions in which rows differ most, and these directions as columns."""
    sizes, axes = np.linalg.eigh(differences.T @ differences)
    return sizes[::-1], axes[:, ::-1]
