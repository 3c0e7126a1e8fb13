"""Lists of the nearest rows found so far, and the comparison of rows that may be near each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coview.data.rows import squared_norms
from coview.data.view import Array
from coview.neighbors.blocks import joined
from coview.neighbors.duplicates import Integers
from coview.neighbors.exact import BLOCK_ROWS, ExactSearch, Pairs, take

_CANDIDATES = 1.8  # for each neighbour
_TINY = 1e-30  # squares of this size are near the end of the range of float32
_PLACE_BITS = 24


class Lists(NamedTuple):
    """The k nearest rows found for each of some rows, nearest first: numbers and distances, of shape (rows, k)."""

    rows: Integers
    distances: Array

    def with_numbers(self, numbers: Integers) -> Lists:
        """Return the same lists with other numbers of the neighbours."""
        return Lists(numbers[self.rows], self.distances)

    def as_pairs(self) -> Pairs:
        """Return all of them as pairs."""
        n, k = self.rows.shape
        return Pairs(np.repeat(np.arange(n), k), self.rows.ravel(), self.distances.ravel())


class ComparedRows(NamedTuple):
    """Rows that are compared with each other by their coordinates, and then by the full rows if these are others."""

    search: ExactSearch
    rows: Array | None
    k: int
    unit: float  # of the full rows

    def near(self, own: Integers, among: Integers) -> Lists:
        """Return the nearest of the rows `among` for each of a group of rows."""
        if len(own) == 0:
            return Lists(np.empty((0, self.k), dtype=np.int64), np.empty((0, self.k)))
        if self.rows is None:
            return _nearest(self.search, own, self.k, among)
        rows = self.rows
        step = max(min(BLOCK_ROWS, 2**_PLACE_BITS // len(among)), 1)
        parts = [self._measured(rows, own[start : start + step], among) for start in range(0, len(own), step)]
        found: Lists = joined(*parts)
        return found

    def _measured(self, rows: Array, own: Integers, among: Integers) -> Lists:
        """Return the nearest of the rows that are nearest in their coordinates, for a block of rows."""
        count = min(int(_CANDIDATES * self.k), len(among) - 1)
        i, j = self.search.candidates(self.search.rows[own], count, own=own, among=among)
        chosen = smallest_of_each(i, _pair_squares(self.search.points, own[i], j), count, len(own)).ravel()
        i, j = np.repeat(np.arange(len(own)), count), j[chosen]
        squares = _pair_squares(rows, own[i], j)
        chosen = smallest_of_each(i, squares, self.k, len(own))
        if squares.dtype == np.float64:
            chosen = np.take_along_axis(chosen, np.argsort(squares[chosen], axis=1, kind="stable"), axis=1)
        return Lists(j[chosen], np.sqrt(squares[chosen].astype(np.float64)) * self.unit)


def fit_float32(rows: Array) -> bool:
    """Return whether float32 is exact, as for many images and counts."""
    return bool((rows.astype(np.float32) == rows).all())


def merged(a: Lists, b: Lists) -> Lists:
    """Return the nearest rows of two lists of the same queries; the distance of a row is the same in both."""
    rows, distances = np.hstack([a.rows, b.rows]), np.hstack([a.distances, b.distances])
    order = np.lexsort((rows, distances))
    rows, distances = np.take_along_axis(rows, order, axis=1), np.take_along_axis(distances, order, axis=1)
    again = np.zeros(rows.shape, dtype=np.bool_)
    again[:, 1:] = rows[:, 1:] == rows[:, :-1]
    kept = np.argsort(again, axis=1, kind="stable")[:, : a.rows.shape[1]]
    return Lists(np.take_along_axis(rows, kept, axis=1), np.take_along_axis(distances, kept, axis=1))


def _nearest(search: ExactSearch, own: Integers, k: int, among: Integers | None = None) -> Lists:
    near = search.near(search.rows[own], k, own=own, among=among)
    first = np.searchsorted(near.queries, np.arange(len(own)))[:, None] + np.arange(k)
    return Lists(near.rows[first], near.distances[first])


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


def _pair_squares(rows: Array, i: Integers, j: Integers) -> Array:
    """Return the squared distances between rows i and rows j, in float64 if float32 cannot hold some of them."""
    squares = _squared_distances(take(rows, i), take(rows, j))
    tiny = np.flatnonzero(squares < _TINY)
    if len(tiny):
        squares = squares.astype(np.float64)
        squares[tiny] = _squared_distances(rows[i[tiny]].astype(np.float64), rows[j[tiny]])
    return squares


def _squared_distances(a: Array, b: Array) -> Array:
    """Return the squared distances between the rows of a, which are overwritten, and those of b."""
    a -= b
    return squared_norms(a)
