"""Neighbors rows, exactly: products find who may be near, and distances by differences decide."""

from __future__ import annotations

from functools import cached_property
from math import ceil, frexp
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.neighbors.duplicates import Integers
from coview.rows import append_columns, as_array, as_float64, squared_norms
from coview.views import Array, Matrix

# A tile of squared distances in float32 then stays in the cache of one core.
BLOCK_ROWS = 256
_TILE_COLUMNS = 2560
_SLAB_BYTES = 2**19
_CENTRE_ROWS = 1000
_NARROW = 8  # columns up to which products cost nothing and neighbours are so near that float32 would not tell
_EQUAL = 1e-9  # relative difference of squared distances of sparse rows that may be rounding
_MORE = 32
_FOLD = 8  # columns for each number sought, from which on they are folded
_FAR = 1e9  # in units of the largest entry; nothing is similar from so far away


class Pairs(NamedTuple):
    """Rows that are near others: the number of the query, that of the row, and their distance; by query."""

    queries: Integers
    rows: Integers
    distances: Array


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


class ExactSearch:
    """Rows of one view, ready to find those near any others.

    A product gives a squared distance with an error that has a bound. Whoever could be near within that bound is
    measured again by differences, which hang on the two rows alone: so a row has the same neighbours alone and in
    any block, and equal distances are equal.
    """

    def __init__(self, rows: Matrix) -> None:
        self.rows = rows
        self._sparse = sp.issparse(rows)
        self._dtype: Any = np.float64
        self._centre: Array | None = None
        if not self._sparse:
            # Any centre will do; a median is not drawn away by a few rows far out.
            some = np.linspace(0, rows.shape[0] - 1, min(_CENTRE_ROWS, rows.shape[0])).astype(int)
            self._centre = np.median(as_float64(rows[some]), axis=0)
            self._dtype = np.float64 if rows.shape[1] <= _NARROW else np.float32
        moved = self._moved(rows)
        self.exponent = frexp(max(float(moved.max()), -float(moved.min())))[1]
        # Twice the rounding of a sum of so many products, in units of the two squared lengths.
        terms = int(np.diff(moved.indptr).max()) if self._sparse else rows.shape[1]
        self._error = 2 * (terms + 16) * float(np.finfo(self._dtype).eps)
        self.points = self._scaled(moved)
        self._lengths = squared_norms(self.points)
        self._lowest = (1 - self._error) * self._lengths
        self._slack = 2 * self._error * self._lengths

    @cached_property
    def _right(self) -> Matrix:
        # With two more columns one product is the whole bound.
        return self.points if self._sparse else append_columns(self.points, np.ones_like(self._lowest), self._lowest)

    def _moved(self, x: Matrix) -> Matrix:
        return x.astype(np.float64) if self._centre is None else x - self._centre

    def _scaled(self, moved: Matrix) -> Matrix:
        """In units near the largest entry, so that squares stay in the range of float32."""
        moved *= 2.0**-self.exponent
        return moved.astype(self._dtype) if self._sparse else moved.astype(self._dtype, order="C")

    def near(
        self,
        x: Matrix,
        k: int,
        reach: Array | None = None,
        own: Integers | None = None,
        among: Integers | None = None,
    ) -> Pairs:
        """Return the rows no further from a row of x than its k-th nearest, and those within whose reach it lies.

        Costs O(rows of x × rows × columns), in memory for a tile of a few thousand columns.

        Parameters
        ----------
        x : (queries, columns), rows of the same form as the prepared ones
        k : from 1 to the number of rows; equal distances make it more
        reach : (rows,), a distance for each; a query has to be nearer
        own : (queries,), numbers of the queries among the rows, which are then left out
        among : numbers of the rows to look at; by default all of them
        """
        found: list[tuple[Integers, Integers, Array]] = []
        for start in range(0, x.shape[0], BLOCK_ROWS):
            queries = np.arange(start, min(start + BLOCK_ROWS, x.shape[0]))
            block = x[queries]
            i, j = self.candidates(block, k, reach, None if own is None else own[queries], among)
            distances = self.distances(block, i, j)
            order = np.lexsort((j, distances, i))
            i, j, distances = i[order], j[order], distances[order]
            last = np.full(len(queries), -np.inf)
            kth = rank_in_group(i) == k - 1
            last[i[kth]] = distances[kth]
            kept = distances <= last[i]
            if reach is not None:
                kept |= distances < reach[j]
            found.append((i[kept] + start, j[kept], distances[kept]))
        parts = zip(*found, strict=True)
        return Pairs(*(np.concatenate(part) for part in parts))

    def candidates(
        self,
        x: Matrix,
        k: int,
        reach: Array | None = None,
        own: Integers | None = None,
        among: Integers | None = None,
    ) -> tuple[Integers, Integers]:
        """Return the pairs that products cannot exclude from `near`, for one block of queries."""
        far = np.zeros(x.shape[0], dtype=np.bool_)
        if own is None:
            scaled, far = self._scaled_new(x)
            lengths = squared_norms(scaled)
        else:
            scaled, lengths = self.points[own], self._lengths[own]
            k += 1  # itself, for the time being
        lowest = (1 - self._error) * lengths
        left = scaled if self._sparse else append_columns(-2 * scaled, lowest, np.ones_like(lowest))
        slack, row_slack = 2 * self._error * lengths, self._slack
        reached = None if reach is None else self._squares(reach)

        count = self.rows.shape[0] if among is None else len(among)
        nearest = np.full((x.shape[0], k), np.inf, dtype=self._dtype)  # upper bounds, without the query's own slack
        found: list[tuple[Integers, Integers, Array]] = []
        step = ceil(count / ceil(count / _TILE_COLUMNS))
        for start in range(0, count, step):
            stop = min(start + step, count)
            columns: Any = slice(start, stop) if among is None else among[start:stop]
            numbers = np.arange(start, stop) if among is None else columns
            low = self._lower_bounds(left, lowest, columns)
            if start == 0 and k < low.shape[1]:
                nearest = _k_small(low, row_slack[columns], k)
            bound = nearest.max(axis=1) + slack
            wanted = low <= bound[:, None]
            if reached is not None:
                wanted |= low <= reached[columns]
            places = np.flatnonzero(wanted)
            i, j = np.divmod(places, low.shape[1])
            values = low.ravel()[places]
            if start > 0 or k >= low.shape[1]:
                nearest = _smallest(nearest, i, values + row_slack[numbers[j]])
            found.append((i, numbers[j], values))
        i, j, values = (np.concatenate(part) for part in zip(*found, strict=True))
        kept = values <= (nearest.max(axis=1) + slack)[i]
        if self._sparse:
            # Counts and one-hot columns have thousands at the same distance, and sparse differences take their time.
            near = np.flatnonzero(kept)
            kept[near] = self._first_of_equals(i[near], j[near], values[near], k, lengths)
        if reached is not None:
            kept |= values <= reached[j]
        kept &= ~far[i] if own is None else j != own[i]
        return i[kept], j[kept]

    def _scaled_new(self, x: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
        """New rows in the form of the points, and which of them are too far away for that."""
        with np.errstate(over="ignore"):
            moved = self._moved(x)
            far: NDArray[np.bool_] = as_array(abs(moved).max(axis=1)).ravel() * 2.0**-self.exponent > _FAR
        if far.any():
            moved = sp.csr_array(moved.multiply(~far[:, None])) if self._sparse else np.where(far[:, None], 0.0, moved)
        return self._scaled(moved), far

    def _first_of_equals(self, i: Integers, j: Integers, lowest: Array, k: int, lengths: Array) -> NDArray[np.bool_]:
        """The nearest of each query and a few more: of those as near but for rounding, the ones that come first.

        Products of sparse rows are summed up row by row, and do not depend on the block either.
        """
        longest = lengths.copy()  # of each query and its candidates: what products are rounded by
        np.maximum.at(longest, i, self._lengths[j])
        steps = _EQUAL * (lengths + longest)[i]
        squares = lowest + self._error * (lengths[i] + self._lengths[j])
        order = np.lexsort((j, np.round(squares / np.where(steps > 0, steps, 1.0)), i))
        first = np.empty(len(i), dtype=np.bool_)
        first[order] = rank_in_group(i[order]) < k + _MORE
        return first

    def _squares(self, distances: Array) -> Array:
        """Squared distances in the unit of the products, rounded up."""
        with np.errstate(over="ignore"):
            squares: Array = np.square(distances * 2.0**-self.exponent).astype(self._dtype)
        if self._sparse:
            squares *= 1 - _EQUAL
        squares = np.nextafter(squares, self._dtype(np.inf))
        return squares

    def _lower_bounds(self, left: Matrix, lowest: Array, columns: Integers | slice) -> Array:
        """Squared distances less their possible error."""
        low = as_array(left @ take(self._right, columns).T)
        if self._sparse:
            low *= -2
            low += self._lowest[columns]
            low += lowest[:, None]
        return low

    def distances(self, x: Matrix, i: Integers, j: Integers) -> Array:
        """Return the distance of row i of x from row j, pair by pair."""
        distances = np.empty(len(i))
        filled = self.rows.nnz // self.rows.shape[0] + 1 if self._sparse else self.rows.shape[1]
        step = max(_SLAB_BYTES // (8 * filled), 1)
        for start in range(0, len(i), step):
            pairs = slice(start, start + step)
            distances[pairs] = row_distances(take(x, i[pairs]), take(self.rows, j[pairs]))
        return distances


def row_distances(a: Matrix, b: Matrix) -> Array:
    """Return the distance of each row of a from the row of b in the same place."""
    with np.errstate(over="ignore"):
        if not sp.issparse(a):
            difference = a.astype(np.float64, copy=False)  # both first: a subtraction that converts is slower
            difference -= b.astype(np.float64, copy=False)
            lengths: Array = np.sqrt(np.einsum("ij,ij->i", difference, difference))
            return lengths
        gap = sp.csr_array(a.astype(np.float64) - b)
        of_row = np.repeat(np.arange(a.shape[0]), np.diff(gap.indptr))
        return np.sqrt(np.bincount(of_row, weights=np.square(gap.data), minlength=a.shape[0]))


def rank_in_group(groups: Integers) -> Integers:
    """Return how many before each entry belong to the same group, in an array that is sorted by group."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))


def take(rows: Matrix, numbers: Integers | slice) -> Matrix:
    """Return some rows, as indexing does; faster for numbers of rows that lie in one piece."""
    if sp.issparse(rows) or isinstance(numbers, slice) or not rows.flags.c_contiguous:  # `take` would copy all rows
        return rows[numbers]
    return np.take(rows, numbers, axis=0)


def _k_small(low: Array, slack: Array, k: int) -> Array:
    """Return upper bounds of k entries of each row, few of them larger than those of the smallest k.

    Columns are folded upon each other first, the smaller entry on top. Few of the smallest get lost below another, and
    so much less is left to search that it takes a fraction of the time.
    """
    while low.shape[1] >= _FOLD * k:
        half = low.shape[1] // 2
        low = np.minimum(low[:, :half], low[:, half : 2 * half])
        slack = np.maximum(slack[:half], slack[half : 2 * half])
    return np.partition(low + slack, k - 1, axis=1)[:, :k]


def _smallest(kept: Array, i: Integers, values: Array) -> Array:
    """Return the smallest numbers of each row: of those kept so far, and of more, given with their rows in order."""
    k = kept.shape[1]
    if len(i) == 0:
        return kept
    rank = rank_in_group(i)
    more = np.full((len(kept), int(rank.max()) + 1), np.inf, dtype=kept.dtype)
    more[i, rank] = values
    return np.partition(np.hstack([kept, more]), k - 1, axis=1)[:, :k]
