"""Exact nearest-neighbour search: products exclude distant rows, and distances by differences decide.

Rows with few columns are searched by a k-d tree, with the same result.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from math import ceil, frexp
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.data.rows import append_columns, as_array, as_float64, evenly_spaced, row_of_entries, squared_norms
from coview.data.view import Array, Matrix
from coview.neighbors.duplicates import Integers

BLOCK_ROWS = 256
# With more columns a tree visits most rows, and products of blocks are faster: measured between 8 and 16 columns.
MOST_COLUMNS = 8
_ROWS_OF_TREE = 8  # the second query of a tree asks for this many times k rows
_TIE_OF_TREE = 1e-9  # relative difference of distances below which a tree may order them differently
_TILE = 2**18  # squared distances at a time: in float32 they stay in the cache of one core
_LEAST_COLUMNS = 1024
_DIFFERENCE_BYTES = 2**19
_CENTRE_ROWS = 1000
_NARROW = 8  # up to this many columns, products are cheap in float64, and float32 cannot separate the neighbours
_TIE = 1e-9  # relative difference of squared distances of sparse rows that may be a rounding error
_MORE_CANDIDATES = 32
_FOLDS = 8  # times k: with more columns they are folded
_OF_EACH_ROW = ("rows", "augmented", "_norms", "_lowest", "_slack")  # attributes of a search
_TOO_FAR = 1e9  # in units of the largest entry; such a row has no neighbours, and similarity 0


class Pairs(NamedTuple):
    """Pairs of a query and a near row, sorted by query: the number of each, and their distance."""

    queries: Integers
    rows: Integers
    distances: Array


class Frame(NamedTuple):
    """The coordinates of dense rows of which a search has a part only: their centre, and the largest entry after it."""

    centre: Array
    largest: float


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def sort_pairs(queries: Integers, rows: Integers, distances: Array) -> Pairs:
    """Return the pairs sorted by query, then by distance, then by row."""
    order = _stable_order(rows)
    order = order[np.argsort(distances[order], kind="stable")]
    order = order[_stable_order(queries[order])]
    return Pairs(queries[order], rows[order], distances[order])


def _stable_order(numbers: Integers) -> Integers:
    """Return the order of non-negative numbers; ties keep theirs. NumPy sorts numbers of 16 bits in linear time."""
    small = len(numbers) and numbers.max() < 2**16
    return np.argsort(numbers.astype(np.uint16) if small else numbers, kind="stable")


class ExactSearch:
    """Search among the rows of one view for the nearest neighbours of any rows.

    A product gives a squared distance with a bounded error. The distance to each row that could be a neighbour within
    this bound is computed again by differences, which depend on the two rows only. So a row has the same neighbours
    alone and in any block, and equal distances are equal. `points` are the rows minus a centre, in units of 2^exponent
    and in the precision of the products.
    """

    def __init__(self, rows: Matrix, frame: Frame | None = None) -> None:
        self.rows = rows
        self._sparse = sp.issparse(rows)
        self._dtype: Any = np.float64
        self._centre: Array | None = None
        if not self._sparse:
            self._centre = _middle(rows[centre_rows(rows.shape[0])]) if frame is None else frame.centre
            self._dtype = np.float64 if rows.shape[1] <= _NARROW else np.float32
        moved = self._moved(rows)
        self.exponent = frexp(_largest_entry(moved) if frame is None else frame.largest)[1]
        # Twice the rounding error of a sum of this many products, in units of the two squared norms.
        terms = int(np.diff(moved.indptr).max()) if self._sparse else rows.shape[1]
        self._error = 2 * (terms + 16) * float(np.finfo(self._dtype).eps)
        points = self._scaled(moved)
        self._norms = squared_norms(points)
        self._lowest = (1 - self._error) * self._norms
        self._slack = 2 * self._error * self._norms
        self.augmented = points  # with two more columns, one product of dense rows gives the whole bound
        if not self._sparse:
            self.augmented = append_columns(points, np.ones_like(self._lowest), self._lowest)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __sizeof__(self) -> int:
        """Return the bytes of the arrays, by which Dask decides where a search is used and when it goes to disk."""
        return sum(getattr(vars(self)[name], "nbytes", 0) for name in _OF_EACH_ROW)

    @property
    def points(self) -> Matrix:
        return self.augmented if self._sparse else self.augmented[:, :-2]

    def __getitem__(self, numbers: Integers | slice) -> ExactSearch:
        """Return the search among some of the rows, or all in another order."""
        return self._of({name: take(getattr(self, name), numbers) for name in _OF_EACH_ROW})

    @classmethod
    def joined(cls, searches: Sequence[ExactSearch]) -> ExactSearch:
        """Return the search among the rows of several searches in the same coordinates."""
        return searches[0]._of({name: np.concatenate([vars(each)[name] for each in searches]) for name in _OF_EACH_ROW})

    def _of(self, parts: dict[str, Any]) -> ExactSearch:
        search = copy(self)
        vars(search).update(parts)
        return search

    def _moved(self, x: Matrix) -> Matrix:
        return x.astype(np.float64) if self._centre is None else x - self._centre

    def _scaled(self, moved: Matrix) -> Matrix:
        """Return rows in units near the largest entry, so that squares stay in the range of float32."""
        moved *= 2.0**-self.exponent
        return moved.astype(self._dtype) if self._sparse else moved.astype(self._dtype, order="C")

    def near(
        self, x: Matrix, k: int, reach: Array | None = None, own: Integers | None = None, among: Integers | None = None
    ) -> Pairs:
        """Return the rows no further from a row of x than its k-th nearest row, and those that have x within reach.

        k is at least 1 and at most the number of rows; ties give more rows. `reach` has a distance for each row, `own`
        the numbers of the queries among the rows (a query is then not its own neighbour), and `among` the numbers of
        the rows to search, by default all. Takes O(rows of x × rows × columns) time, and memory for a tile of a few
        thousand columns.
        """
        found: list[tuple[Integers, Integers, Array]] = []
        for start in range(0, x.shape[0], BLOCK_ROWS):
            queries = np.arange(start, min(start + BLOCK_ROWS, x.shape[0]))
            block = x[queries]
            i, j = self.candidates(block, k, reach, None if own is None else own[queries], among)
            distances = self.distances(block, i, j)
            i, j, distances = sort_pairs(i, j, distances)
            last = np.full(len(queries), -np.inf)
            kth = rank_in_group(i) == k - 1
            last[i[kth]] = distances[kth]
            kept = distances <= last[i]
            if reach is not None:
                kept |= distances < reach[j]
            found.append((i[kept] + start, j[kept], distances[kept]))
        return Pairs(*(np.concatenate(part) for part in zip(*found, strict=True)))

    def candidates(
        self, x: Matrix, k: int, reach: Array | None = None, own: Integers | None = None, among: Integers | None = None
    ) -> tuple[Integers, Integers]:
        """Return the pairs that products cannot exclude from `near`, for one block of queries: query and row."""
        far = np.zeros(x.shape[0], dtype=np.bool_)
        if own is None:
            scaled, far = self._scaled_new(x)
            norms = squared_norms(scaled)
        else:
            scaled, norms = self.points[own], self._norms[own]
            k += 1  # the query itself, which is removed at the end
        lowest = (1 - self._error) * norms
        left = scaled if self._sparse else append_columns(-2 * scaled, lowest, np.ones_like(lowest))
        slack, row_slack = 2 * self._error * norms, self._slack
        reached = None if reach is None else self._squares(reach)

        count = self.rows.shape[0] if among is None else len(among)
        nearest = np.full((x.shape[0], k), np.inf, dtype=self._dtype)  # upper bounds, without the slack of the query
        found: list[tuple[Integers, Integers, Array]] = []
        known = 0  # the parts of `found` that the bounds include
        step = ceil(count / ceil(count / max(_TILE // x.shape[0], _LEAST_COLUMNS)))
        tile = np.empty(x.shape[0] * step, dtype=self._dtype)  # one for all products: new memory takes time
        for start in range(0, count, step):
            stop = min(start + step, count)
            columns: Any = slice(start, stop) if among is None else among[start:stop]
            numbers = np.arange(start, stop) if among is None else columns
            low = self._lower_bounds(left, lowest, columns, tile)
            if start == 0 and k < low.shape[1]:
                nearest, known = _k_small_bounds(low, row_slack[columns], k), 1
            bound = nearest.max(axis=1) + slack
            wanted = low <= bound[:, None]
            if reached is not None:
                wanted |= low <= reached[columns]
            places = np.flatnonzero(wanted)
            i, j = np.divmod(places, low.shape[1])
            found.append((i, numbers[j], low.ravel()[places]))
            if sum(len(part[0]) for part in found[known:]) > k * x.shape[0] or stop == count:
                more = [(i, values + row_slack[j]) for i, j, values in found[known:]]
                nearest, known = _smallest_of_both(nearest, more), len(found)
        i, j, values = (np.concatenate(part) for part in zip(*found, strict=True))
        kept = values <= (nearest.max(axis=1) + slack)[i]
        if self._sparse:
            # Counts and one-hot columns have thousands of ties, and differences of sparse rows are slow.
            near = np.flatnonzero(kept)
            kept[near] = self._first_of_ties(i[near], j[near], values[near], k, norms)
        if reached is not None:
            kept |= values <= reached[j]
        kept &= ~far[i] if own is None else j != own[i]
        return i[kept], j[kept]

    def _scaled_new(self, x: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
        """Return new rows in the form of the points, and which of them are too far away for products."""
        with np.errstate(over="ignore"):
            moved = self._moved(x)
            far: NDArray[np.bool_] = as_array(abs(moved).max(axis=1)).ravel() * 2.0**-self.exponent > _TOO_FAR
        if far.any() and self._sparse:
            moved.data[far[row_of_entries(moved)]] = 0.0  # a product with 0 would not be 0 for infinite entries
        elif far.any():
            moved = np.where(far[:, None], 0.0, moved)
        return self._scaled(moved), far

    def _first_of_ties(self, i: Integers, j: Integers, lowest: Array, k: int, norms: Array) -> NDArray[np.bool_]:
        """Return a mask of the nearest candidates of each query and a few more; ties go to the row that comes first.

        Products of sparse rows are summed row by row, so they do not depend on the block either.
        """
        largest = norms.copy()  # of each query and its candidates: rounding errors are relative to it
        np.maximum.at(largest, i, self._norms[j])
        steps = _TIE * (norms + largest)[i]
        squares = lowest + self._error * (norms[i] + self._norms[j])
        order = np.lexsort((j, np.round(squares / np.where(steps > 0, steps, 1.0)), i))
        first = np.empty(len(i), dtype=np.bool_)
        first[order] = rank_in_group(i[order]) < k + _MORE_CANDIDATES
        return first

    def _squares(self, distances: Array) -> Array:
        """Return squared distances in the unit of the products, rounded up."""
        with np.errstate(over="ignore"):
            squares: Array = np.square(distances * 2.0**-self.exponent).astype(self._dtype)
        if self._sparse:
            squares *= 1 - _TIE
        return np.nextafter(squares, self._dtype(np.inf))

    def _lower_bounds(self, left: Matrix, lowest: Array, columns: Integers | slice, tile: Array) -> Array:
        """Return squared distances minus the bound of their error; those of dense rows are in the memory of `tile`."""
        right = take(self.augmented, columns)
        if not self._sparse:
            low = tile[: len(left) * len(right)].reshape(len(left), len(right))
            return np.matmul(left, right.T, out=low)
        low = as_array(left @ right.T)
        low *= -2
        low += self._lowest[columns]
        low += lowest[:, None]
        return low

    def distances(self, x: Matrix, i: Integers, j: Integers) -> Array:
        """Return the distance between row i of x and row j, pair by pair."""
        distances = np.empty(len(i))
        filled = self.rows.nnz // self.rows.shape[0] + 1 if self._sparse else self.rows.shape[1]
        step = max(_DIFFERENCE_BYTES // (8 * filled), 1)
        for start in range(0, len(i), step):
            pairs = slice(start, start + step)
            distances[pairs] = row_distances(take(x, i[pairs]), take(self.rows, j[pairs]))
        return distances


class TreeSearch:
    """Search among the rows of an exact search for the nearest neighbours of any rows, by a k-d tree."""

    def __init__(self, finder: ExactSearch) -> None:
        from scipy.spatial import cKDTree

        self._finder = finder
        self._points = as_float64(finder.rows)
        self._tree = cKDTree(self._points)

    def __len__(self) -> int:
        return len(self._points)

    def __sizeof__(self) -> int:
        return sys.getsizeof(self._finder) + 2 * self._points.nbytes  # the tree has about as many

    def near(self, x: Array, k: int, own: Integers | None = None) -> Pairs:
        """Return the rows no further from a row of x than its k-th nearest row.

        `own` has the numbers of the queries among the rows: a query is then not its own neighbour. If there is a tie at
        the k-th place, as on a grid, the tree is asked for more rows; ties that remain are left to the exact search.
        """
        found, tied = self._query(x, k, k + 2, own)  # the row itself, and one more to see a gap
        parts = [(found, np.arange(len(x)))]
        if len(tied):
            found, still = self._query(x[tied], k, _ROWS_OF_TREE * k, None if own is None else own[tied])
            parts.append((found, tied))
            tied = tied[still]
        if len(tied):
            parts.append((self._finder.near(x[tied], k, own=None if own is None else own[tied]), tied))
        query = np.concatenate([places[pairs.queries] for pairs, places in parts])
        order = np.argsort(query, kind="stable")
        row, distance = (np.concatenate([pairs[part] for pairs, _ in parts]) for part in (1, 2))
        return Pairs(query[order], row[order], distance[order])

    def _query(self, x: Array, k: int, count: int, own: Integers | None) -> tuple[Pairs, Integers]:
        """Return the nearest rows among `count` rows from the tree, and the positions of the queries with ties."""
        count = min(count, len(self._points))
        rows = self._tree.query(as_float64(x), k=np.arange(1, count + 1))[1]
        i, j = np.repeat(np.arange(len(x)), count), rows.ravel().astype(np.int64)
        if own is not None:
            others = j != own[i]
            i, j = i[others], j[others]
        distances = self._finder.distances(x, i, j)
        i, j, distances = sort_pairs(i, j, distances)
        last, furthest = np.full(len(x), np.inf), np.zeros(len(x))
        kth = rank_in_group(i) == k - 1
        last[i[kth]] = distances[kth]
        np.maximum.at(furthest, i, distances)
        tied = furthest <= last * (1 + _TIE_OF_TREE)
        if count == len(self._points):  # all rows were returned
            tied[:] = False
        if own is not None:
            tied |= np.bincount(i, minlength=len(x)) >= count  # the row itself was not returned
        kept = ~tied[i] & (distances <= last[i])
        return Pairs(i[kept], j[kept], distances[kept]), np.flatnonzero(tied)


def row_distances(a: Matrix, b: Matrix) -> Array:
    """Return the distance between each row of a and the same row of b; dense float64 rows of a are overwritten."""
    with np.errstate(over="ignore"):
        if not sp.issparse(a):
            difference = a.astype(np.float64, copy=False)  # converted first: a subtraction that converts is slower
            difference -= b.astype(np.float64, copy=False)
            return np.sqrt(squared_norms(difference))
        difference = sp.csr_array(a.astype(np.float64) - b)
        squares = np.square(difference.data)
        return np.sqrt(np.bincount(row_of_entries(difference), weights=squares, minlength=a.shape[0]))


def centre_rows(n: int) -> Integers:
    """Return the rows that determine the centre of n rows."""
    return evenly_spaced(n, _CENTRE_ROWS)


def frame_part(rows: Matrix, some: Matrix) -> Frame:
    """Return the coordinates that some rows determine, with the largest entry of the rows of one block."""
    centre = _middle(some)
    return Frame(centre, _largest_entry(rows - centre))


def _middle(rows: Matrix) -> Array:
    """Return the centre of rows; any point serves, and the median is robust to outliers."""
    return np.asarray(np.median(as_float64(rows), axis=0))


def _largest_entry(x: Matrix) -> float:
    return max(float(x.max()), -float(x.min()))


def merged_pairs(pairs: Sequence[Pairs], places: Sequence[slice], k: int, reach: Array | None = None) -> Pairs:
    """Return the pairs no further than the k-th nearest row of all blocks, or within reach, sorted by distance."""
    if len(pairs) == 1:
        return pairs[0]
    query, row, distance = sort_pairs(
        np.concatenate([each.queries for each in pairs]),
        np.concatenate([each.rows + place.start for each, place in zip(pairs, places, strict=True)]),
        np.concatenate([each.distances for each in pairs]),
    )
    last = np.full(int(query.max(initial=-1)) + 1, np.inf)
    kth = rank_in_group(query) == k - 1
    last[query[kth]] = distance[kth]
    kept = distance <= last[query]
    if reach is not None:
        kept |= distance < reach[row]
    return Pairs(query[kept], row[kept], distance[kept])


def rank_in_group(groups: Integers) -> Integers:
    """Return the number of earlier entries of the same group for each entry of an array that is sorted by group."""
    counts = np.bincount(groups)
    return np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)


def take(rows: Matrix, numbers: Integers | slice) -> Matrix:
    """Return some rows, as indexing does; faster for numbers of rows that are contiguous in memory."""
    if sp.issparse(rows) or isinstance(numbers, slice) or not rows.flags.c_contiguous:  # np.take would copy all rows
        return rows[numbers]
    return np.take(rows, numbers, axis=0)


def _k_small_bounds(low: Array, slack: Array, k: int) -> Array:
    """Return upper bounds of k entries of each row, most of them bounds of the k smallest entries.

    The matrix is first folded to fewer columns by elementwise minima. A fold loses few of the smallest entries, and the
    search takes a fraction of the time.
    """
    while low.shape[1] >= _FOLDS * k:
        half = low.shape[1] // 2
        low = np.minimum(low[:, :half], low[:, half : 2 * half])
        slack = np.maximum(slack[:half], slack[half : 2 * half])
    return np.partition(low + slack, k - 1, axis=1)[:, :k]


def _smallest_of_both(kept: Array, more: list[tuple[Integers, Array]]) -> Array:
    """Return the smallest numbers of each row, among those kept so far and more values with their row numbers."""
    k = kept.shape[1]
    i = np.concatenate([np.repeat(np.arange(len(kept)), k), *(part[0] for part in more)])
    values = np.concatenate([kept.ravel(), *(part[1] for part in more)])
    order = _stable_order(i)
    i, values = i[order], values[order]
    padded = np.full((len(kept), int(np.bincount(i).max())), np.inf, dtype=kept.dtype)
    padded[i, rank_in_group(i)] = values
    return np.partition(padded, k - 1, axis=1)[:, :k]
