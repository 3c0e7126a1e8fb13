"""Approximate nearest-neighbour search: each row is compared with the rows around its cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Map, serial_map
from coview.data.rows import evenly_spaced, squared_norms
from coview.data.view import Array
from coview.neighbors.duplicates import Integers
from coview.neighbors.exact import BLOCK_ROWS, ExactSearch, Pairs, take
from coview.neighbors.partition import ROWS_PER_BLOCK, Cells

_QUERIES = 400  # rows that are searched exactly
_SAMPLE_ROWS_PER_CELL = 16
_LEAST_SAMPLE = 4096
_CELL_SIZE = 8.0  # times the fourth root of the number of rows
_MOST_CELLS = 2**15
_TASKS = 32  # of several cells each
_CELLS_PER_TASK = 64
_LEAST_PER_NEIGHBOUR = 20
_LEAST_AROUND, _MOST_AROUND = 1280, 50_000
_CHEAP_PART, _CHEAP_AROUND = 0.1, 20_000  # rows around a cell that are compared if they contain more neighbours
_NEARLY_ALL = 0.999
_PASSES = 3
_LEAST_GAIN = 0.01  # of a pass
_TOLERANCE = 0.01  # about the standard error of the estimate
_AXES_ROWS = 2048  # rows from which the axes are learnt
_VARIANCE_RATIO = 0.8  # part of the squared distances to near rows that the axes explain
_LEAST_AXES = 32  # fewer do not save time
_MOST_AXES = 0.5  # times the number of columns: more save too little time
_CANDIDATES = 1.8  # for each neighbour
_TINY = 1e-30  # squares of this size are near the end of the range of float32
_PLACE_BITS = 24

Found = TypeVar("Found")


class Lists(NamedTuple):
    """The k nearest rows found for each of some rows, nearest first: numbers and distances, of shape (rows, k)."""

    rows: Integers
    distances: Array

    @classmethod
    def empty(cls, n: int, k: int) -> Lists:
        """Return memory for the lists of n rows."""
        return cls(np.empty((n, k), dtype=np.int64), np.empty((n, k)))

    @classmethod
    def joined(cls, parts: Sequence[Lists]) -> Lists:
        """Return the lists of several groups of rows as one."""
        rows, distances = zip(*parts, strict=True)
        return cls(np.concatenate(rows), np.concatenate(distances))

    def of_rows(self, rows: Integers) -> Lists:
        """Return the lists of some rows."""
        return Lists(self.rows[rows], self.distances[rows])

    def with_numbers(self, numbers: Integers) -> Lists:
        """Return the same lists with other numbers of the neighbours."""
        return Lists(numbers[self.rows], self.distances)

    def as_pairs(self) -> Pairs:
        """Return all of them as pairs."""
        n, k = self.rows.shape
        return Pairs(np.repeat(np.arange(n), k), self.rows.ravel(), self.distances.ravel())


def approximate_neighbors(finder: ExactSearch, k: int, recall: float, map_blocks: Map = serial_map) -> Lists:
    """Return k near neighbours of each row; the part of the true neighbours among them is to be at least `recall`.

    The rows around each cell are compared with the rows of the cell. How many rows these are depends on a few rows that
    are searched exactly. If they are not enough, the lists are refined by neighbours of neighbours.
    """
    n = len(finder.rows)
    queries = query_rows(n)
    true = exact_lists(finder, queries, k, map_blocks).rows
    axes = local_axes(finder.points[axes_rows(n)])
    coordinates = finder if axes is None else ExactSearch(projected(finder.points, axes, map_blocks))
    rows = coordinates.augmented
    plan = Plan.learn(n, rows[sample_rows(n)], rows[queries], rows[true], recall, map_blocks)
    search = CellSearch(finder, coordinates, plan, k, map_blocks)
    lists = refined_until_found(
        search.first(),
        search.refined,
        lambda lists: fraction_found(true, search.of_rows(lists, queries).rows),
        recall,
    )
    return search.of_rows(lists, np.arange(n))


def refined_until_found(
    lists: Found, refined: Callable[[Found], Found], fraction: Callable[[Found], float], recall: float
) -> Found:
    """Return lists that are refined until they have this fraction of the true neighbours, or gain little."""
    found = fraction(lists)
    for _ in range(_PASSES):
        if found >= recall - _TOLERANCE:
            break
        lists = refined(lists)
        before, found = found, fraction(lists)
        if found < before + _LEAST_GAIN:
            break
    return lists


def exact_lists(finder: ExactSearch, queries: Integers, k: int, map_blocks: Map = serial_map) -> Lists:
    """Return the k nearest neighbours of some rows among all rows."""
    parts = map_blocks(lambda own: _nearest(finder, own, k), np.array_split(queries, max(len(queries) // 64, 1)))
    return Lists.joined(parts)


def fraction_found(true: Integers, found: Integers) -> float:
    """Return the part of the true neighbours that is among the neighbours found, both of shape (rows, k)."""
    return float(np.mean([np.isin(*lists).mean() for lists in zip(true, found, strict=True)]))


def query_rows(n: int) -> Integers:
    """Return the rows that are searched exactly, among n rows."""
    return evenly_spaced(n, _QUERIES)


def axes_rows(n: int) -> Integers:
    """Return the rows from which the axes are learnt, among n rows."""
    return evenly_spaced(n, _AXES_ROWS)


def sample_rows(n: int) -> Integers:
    """Return the rows from which the cells are learnt, among n rows."""
    return evenly_spaced(n, max(_SAMPLE_ROWS_PER_CELL * _count_cells(n), _LEAST_SAMPLE))


def projected(points: Array, axes: Array, map_blocks: Map = serial_map) -> Array:
    """Return the coordinates of points along the axes."""
    starts = range(0, len(points), ROWS_PER_BLOCK)
    return np.concatenate(map_blocks(lambda start: points[start : start + ROWS_PER_BLOCK] @ axes, starts))


def _count_cells(n: int) -> int:
    return min(int(n / (_CELL_SIZE * n**0.25)), _MOST_CELLS)


class Plan(NamedTuple):
    """What the search of all rows needs to know: the rows of a cell are compared with those in reach of its centre."""

    cells: Cells
    n_around: int
    reach: Array  # of each cell, for the nearest rows and for all

    @classmethod
    def learn(
        cls, n: int, sample: Array, queries: Array, true: Array, recall: float, map_blocks: Map = serial_map
    ) -> Plan:
        """Return the plan of n rows, from a sample, some rows, and the true neighbours of each of these."""
        cells = Cells(sample, _count_cells(n), map_blocks)
        parts = cells.part_within(sample, cells.of_rows(queries, map_blocks), true, map_blocks)
        n_around = rows_around(parts, n, recall, true.shape[1])
        return cls(cells, n_around, cells.reach(sample, [_LEAST_AROUND / n, n_around / n], map_blocks))

    def tasks(self) -> list[slice]:
        """Return groups of cells that are searched together."""
        count = len(self.cells)
        step = min(-(-count // _TASKS), _CELLS_PER_TASK)
        return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def rows_around(parts: Array, n: int, recall: float, k: int) -> int:
    """Return with how many of n rows each row is compared, given the part of all rows up to each of k true neighbours.

    They are so many that the target is reached. If a tenth of all rows or fewer contain nearly all neighbours, they are
    so many, because this takes little time.
    """
    enough, nearly_all = (int(np.quantile(parts, part) * n) + 1 for part in (recall, max(recall, _NEARLY_ALL)))
    cheap = int(min(nearly_all, _CHEAP_PART * n, _CHEAP_AROUND))
    least = _LEAST_PER_NEIGHBOUR * k  # a cell is compared with at least half as many
    return min(max(min(max(enough, cheap, _LEAST_AROUND), _MOST_AROUND), least), n)


class CellSearch:
    """The search of all rows by a plan, cell by cell. Rows are in the order of the cells, and `numbers` are theirs."""

    def __init__(
        self, finder: ExactSearch, coordinates: ExactSearch, plan: Plan, k: int, map_blocks: Map = serial_map
    ) -> None:
        self._plan, self._k, self._map = plan, k, map_blocks
        cell = plan.cells.of_rows(coordinates.augmented, map_blocks)
        self.numbers: Integers = np.argsort(cell, kind="stable")
        self._ends = np.cumsum(np.bincount(cell, minlength=len(plan.cells)))
        self._search = coordinates.in_order(self.numbers)
        self._rows: Array | None = None
        if coordinates is not finder:
            rows = finder.rows * 2.0**-finder.exponent
            rows = rows.astype(np.float32) if fit_float32(rows) else rows
            self._rows = np.ascontiguousarray(rows[self.numbers])
        self._compared = ComparedRows(self._search, self._rows, k, 2.0**finder.exponent)

    def of_rows(self, lists: Lists, rows: Integers) -> Lists:
        """Return the lists of some rows with the numbers of the rows as they were given."""
        place = np.empty(len(self.numbers), dtype=np.int64)
        place[self.numbers] = np.arange(len(place))
        return lists.of_rows(place[rows]).with_numbers(self.numbers)

    def first(self) -> Lists:
        """Return the neighbours of all rows among the rows around their cells."""
        plan, lists = self._plan, self._empty()

        def one(cells: slice) -> None:
            around = plan.cells.around(cells, plan.reach, self._search.augmented)
            for cell, among in zip(range(cells.start, cells.stop), around, strict=True):
                own = self._own(cell)
                if len(among) < plan.n_around // 2:  # the sample differs from the other rows
                    among = np.arange(len(self.numbers))
                lists.rows[own], lists.distances[own] = self.near(own, among)

        self._map(one, self._plan.tasks())
        return lists

    def refined(self, lists: Lists) -> Lists:
        """Return the neighbours of all rows among neighbours, in both directions, of their cell, and theirs."""
        n = len(self.numbers)
        better = self._empty()
        ones = np.ones(lists.rows.size, dtype=np.bool_)
        graph = sp.csr_array((ones, lists.rows.ravel(), np.arange(0, len(ones) + 1, self._k)), shape=(n, n))
        reverse = graph.tocsc()

        def one(cells: slice) -> None:
            for cell in range(cells.start, cells.stop):
                own = self._own(cell)
                if len(own):
                    backward = reverse.indices[reverse.indptr[own[0]] : reverse.indptr[own[-1] + 1]]
                    near = np.unique(np.concatenate([lists.rows[own].ravel(), backward]))
                    among = np.unique(np.concatenate([near, lists.rows[near].ravel()]))
                    found = self.near(own, among)
                    if self._rows is not None:
                        found = merged(Lists(lists.rows[own], lists.distances[own]), found)
                    better.rows[own], better.distances[own] = found

        self._map(one, self._plan.tasks())
        return better

    def near(self, own: Integers, among: Integers) -> Lists:
        """Return the nearest of the rows `among` for each of a group of rows."""
        return self._compared.near(own, among)

    def _own(self, cell: int) -> Integers:
        return np.arange(self._ends[cell - 1] if cell else 0, self._ends[cell])

    def _empty(self) -> Lists:
        return Lists.empty(len(self.numbers), self._k)


class ComparedRows(NamedTuple):
    """Rows that are compared with each other by their coordinates, and then by the full rows if these are others."""

    search: ExactSearch
    rows: Array | None
    k: int
    unit: float  # of the full rows

    def near(self, own: Integers, among: Integers) -> Lists:
        """Return the nearest of the rows `among` for each of a group of rows."""
        if len(own) == 0:
            return Lists.empty(0, self.k)
        if self.rows is None:
            return _nearest(self.search, own, self.k, among)
        rows = self.rows
        step = max(min(BLOCK_ROWS, 2**_PLACE_BITS // len(among)), 1)
        parts = [self._measured(rows, own[start : start + step], among) for start in range(0, len(own), step)]
        return Lists.joined(parts)

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


def local_axes(sample: Array) -> Array | None:
    """Return the axes in which near rows differ most, if a few of them explain most of the squared distances."""
    squares = squared_norms(sample)
    distances = squares - 2 * (sample @ sample.T)
    np.fill_diagonal(distances, np.inf)
    differences = sample - sample[distances.argmin(axis=1)]
    values, axes = np.linalg.eigh(differences.T @ differences)
    explained = np.cumsum(values[::-1])
    n_axes = max(int(np.searchsorted(explained, _VARIANCE_RATIO * explained[-1])) + 1, _LEAST_AXES)
    if n_axes > _MOST_AXES * sample.shape[1]:
        return None
    # In one order, which a cluster keeps: BLAS may round the product with another order of memory differently.
    return np.ascontiguousarray(axes[:, ::-1][:, :n_axes])
