"""Approximate nearest-neighbour search: each row is compared with the rows around its cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from coview.base.runtime import Map, serial_map
from coview.data.rows import evenly_spaced, slab_places, squared_norms
from coview.data.view import Array
from coview.neighbors import partition
from coview.neighbors.blocks import Blocks, Result, joined, take_rows
from coview.neighbors.duplicates import Integers
from coview.neighbors.exact import ExactSearch, Pairs, rank_in_group
from coview.neighbors.lists import ComparedRows, Lists, fit_float32, merged
from coview.neighbors.partition import Cells

_QUERIES = 400  # rows that are searched exactly
_QUERIES_PER_TASK = 64
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


def approximate_pairs(finder: Blocks, k: int, recall: float) -> Callable[[int, slice], Result]:
    """Return a function of a part of a block that returns k near neighbours of each of its rows, as `Pairs`.

    `finder` has searches among the rows. The part of the true neighbours that is found is to be at least `recall`. The
    rows around each cell are compared with the rows of the cell. How many rows these are depends on a few rows that are
    searched exactly. If they are not enough, the lists are refined by neighbours of neighbours.
    """
    search = CellSearch(finder, k, recall)
    lists = search.first()
    found = search.fraction_found(lists)
    for _ in range(_PASSES):
        if found >= recall - _TOLERANCE:
            break
        lists = search.refined(lists)
        before, found = found, search.fraction_found(lists)
        if found < before + _LEAST_GAIN:
            break
    of_rows, submit = search.in_given_order(lists, finder.heights), finder.tasks.submit
    return lambda block, part: submit(_pairs_of_part, of_rows.blocks[block], part)


def _pairs_of_part(lists: Lists, part: slice) -> Pairs:
    return Lists(*(each[part] for each in lists)).as_pairs()


def exact_lists(finder: Blocks, queries: Integers, k: int) -> Lists:
    """Return the k nearest neighbours of some rows among all rows."""
    x = finder.take(queries).rows

    def one(part: slice) -> Lists:
        near = finder.near(x[part], k + 1)
        others = near.rows != queries[part][near.queries]
        query, row, distance = (each[others] for each in near)
        first = rank_in_group(query) < k
        return Lists(row[first].reshape(-1, k), distance[first].reshape(-1, k))

    found: Lists = joined(*finder.tasks.map(one, finder.tasks.split(len(queries), _QUERIES_PER_TASK)))
    return found


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


class Settings(NamedTuple):
    """What all tasks of a search need."""

    plan: Plan
    ends: Integers  # of the cells, in the order of the cells
    k: int
    unit: float  # of the full rows


class Strip(NamedTuple):
    """Consecutive rows in the order of the cells: a search among their coordinates, and the full rows."""

    search: ExactSearch
    rows: Array | None  # None if the coordinates are those of the full rows


class CellGroup(NamedTuple):
    """Consecutive cells whose lists are one block: slices that a task searches, and the places of their rows."""

    tasks: list[slice]
    place: slice


class CellSearch:
    """The search of all rows by a plan, cell by cell, with the rows in the order of the cells.

    They are in strips of rows, and their lists in groups of cells: one of each in memory, so that a task finds all rows
    in its strip, and several on a cluster, where it borrows them. Products have the same shapes in both, so that they
    are rounded alike: strips start at multiples of the blocks of rows that are multiplied in memory.
    """

    def __init__(self, finder: Blocks, k: int, recall: float) -> None:
        self._tasks = tasks = finder.tasks
        n, count = finder.shape[0], len(finder.blocks)
        height = partition.ROWS_PER_BLOCK * ceil(n / count / partition.ROWS_PER_BLOCK)
        heights = [min(height, n - start) for start in range(0, n, height)]
        self._queries = query_rows(n)
        self._true = exact_lists(finder, self._queries, k).rows
        # In one order of memory, because products may be rounded differently in another.
        axes = local_axes(np.ascontiguousarray(finder.take(axes_rows(n)).points))
        self._projects = axes is not None
        coordinates = aligned = finder.in_blocks(heights)
        if axes is not None:
            projected = aligned.converted(_projected, tasks.share(axes), tasks.map_in_task)
            coordinates = projected._replace(width=axes.shape[1]).searches()
        queries, sample = (coordinates.take(numbers).augmented for numbers in (self._queries, sample_rows(n)))
        distinct, place = np.unique(self._true, return_inverse=True)
        true = coordinates.take(distinct).augmented[place.reshape(self._true.shape)]
        plan = Plan.learn(n, sample, queries, true, recall, tasks.map_here)
        of_rows = coordinates.results(_cell_of_rows, tasks.share(plan.cells), tasks.map_in_task)
        cell = np.concatenate(tasks.gather(of_rows))
        self.numbers: Integers = np.argsort(cell, kind="stable")
        self._place = np.argsort(self.numbers)
        ends = np.cumsum(np.bincount(cell, minlength=len(plan.cells)))
        exponent = finder.take(self._queries[:1]).exponent
        self._settings = tasks.share(Settings(plan, ends, k, 2.0**exponent))
        self._groups = _groups(plan.tasks(), ends, count)
        full = [None] * len(heights) if axes is None else self._full_rows(aligned, exponent).blocks
        self._strips = [
            tasks.submit(Strip, search, rows)
            for search, rows in zip(coordinates.in_order(self.numbers, heights).blocks, full, strict=True)
        ]
        self._places = slab_places(heights)

    def _full_rows(self, aligned: Blocks, exponent: int) -> Blocks:
        """Return the rows in the order of the cells, in units near their largest entry, and in float32 if possible."""
        scaled = aligned.converted(_scaled_rows, exponent)
        if all(self._tasks.gather(scaled.results(fit_float32))):
            scaled = scaled.converted(_as_float32)
        return scaled.in_order(self.numbers, aligned.heights)

    def first(self) -> Blocks:
        """Return the lists of the groups: the neighbours of their rows among the rows around their cells."""
        submit = self._tasks.submit

        def one(cells: slice) -> Result:
            around = [
                submit(_around, self._settings, cells, strip, place.start)
                for strip, place in zip(self._strips, self._places, strict=True)
            ]
            return self._nearest(cells, submit(_among_around, self._settings, *around))

        return self._lists([self._tasks.map(one, group.tasks) for group in self._groups])

    def refined(self, lists: Blocks) -> Blocks:
        """Return the neighbours of all rows among neighbours of their cell, in both directions, and theirs."""
        submit, others = self._tasks.submit, list(zip(lists.blocks, lists.places, strict=True))

        def of_group(group: CellGroup, before: Result) -> list[Result]:
            pointing = [submit(_pointing, other, place, group.place) for other, place in others]
            pointing_here = submit(_sorted_by_target, *pointing)

            def one(cells: slice) -> Result:
                near = submit(_near_cells, self._settings, cells, group.place, before, pointing_here)
                wanted = submit(_union, near)
                borrowed = [submit(_borrowed_lists, other, place, wanted) for other, place in others]
                found = self._nearest(cells, submit(_among_cells, near, wanted, *borrowed))
                return submit(_merged, self._settings, cells, group.place, before, found) if self._projects else found

            return self._tasks.map(one, group.tasks)

        return self._lists([of_group(*each) for each in zip(self._groups, lists.blocks, strict=True)])

    def in_given_order(self, lists: Blocks, heights: Sequence[int]) -> Blocks:
        """Return the lists of rows in the order in which they were given, with their numbers."""
        return lists.in_order(self._place, heights).converted(Lists.with_numbers, self._tasks.share(self.numbers))

    def fraction_found(self, lists: Blocks) -> float:
        """Return the part of the true neighbours of some rows that is in the lists."""
        found = lists.take(self._place[self._queries]).rows
        return fraction_found(self._true, self.numbers[found])

    def _nearest(self, cells: slice, among: Result) -> Result:
        """Return the lists of the rows of some cells, given the rows that those of each cell are compared with."""
        submit = self._tasks.submit
        if len(self._strips) == 1:
            return submit(_lists_of_cells, self._settings, cells, among, None, *self._strips)
        needed = submit(_needed, self._settings, cells, among)
        borrowed = [
            submit(_borrowed_rows, strip, place, needed)
            for strip, place in zip(self._strips, self._places, strict=True)
        ]
        return submit(_lists_of_cells, self._settings, cells, among, needed, *borrowed)

    def _lists(self, of_groups: Sequence[Sequence[Result]]) -> Blocks:
        blocks = [self._tasks.submit(joined, *parts) for parts in of_groups]
        return Blocks(self._tasks, blocks, [group.place.stop - group.place.start for group in self._groups])


def _groups(tasks: Sequence[slice], ends: Integers, count: int) -> list[CellGroup]:
    """Return about so many groups of cells, which have about the same number of rows."""
    bounds = np.arange(1, count + 1) * ends[-1] / count
    last = np.searchsorted(bounds, [ends[task.stop - 1] for task in tasks])
    groups, start = [], 0
    for number in np.unique(last):
        some = [task for task, each in zip(tasks, last, strict=True) if each == number]
        stop = int(ends[some[-1].stop - 1])
        groups.append(CellGroup(some, slice(start, stop)))
        start = stop
    return groups


def _projected(search: ExactSearch, axes: Array, map_blocks: Map) -> Array:
    """Return the coordinates of points along the axes."""
    points, height = search.points, partition.ROWS_PER_BLOCK
    starts = range(0, len(points), height)
    return np.concatenate(map_blocks(lambda start: points[start : start + height] @ axes, starts))


def _cell_of_rows(search: ExactSearch, cells: Cells, map_blocks: Map) -> Integers:
    return cells.of_rows(search.augmented, map_blocks)


def _scaled_rows(search: ExactSearch, exponent: int) -> Array:
    scaled: Array = search.rows * 2.0**-exponent
    return scaled


def _as_float32(rows: Array) -> Array:
    return rows.astype(np.float32)


def _own_places(settings: Settings, cells: slice) -> Iterator[Integers]:
    """Yield the places of the rows of each of these cells."""
    for cell in range(cells.start, cells.stop):
        yield np.arange(settings.ends[cell - 1] if cell else 0, settings.ends[cell])


def _around(settings: Settings, cells: slice, strip: Strip, start: int) -> list[tuple[Integers, Integers]]:
    """Return the places of the rows of a strip that are within reach of each of these cells, in two parts."""
    plan = settings.plan
    parts = plan.cells.parts_around(cells, plan.reach, strip.search.augmented)
    return [(near + start, outer + start) for near, outer in parts]


def _among_around(settings: Settings, *around: list[tuple[Integers, Integers]]) -> list[Integers]:
    """Return the rows that those of each cell are compared with: those within reach, the nearer ones first."""
    among = [
        np.concatenate([*(near for near, _ in parts), *(outer for _, outer in parts)])
        for parts in zip(*around, strict=True)
    ]
    n, n_around = int(settings.ends[-1]), settings.plan.n_around
    # All rows if there are few within reach: the sample differs from the other rows.
    return [np.arange(n) if len(places) < n_around // 2 else places for places in among]


def _union(places: Sequence[Integers]) -> Integers:
    return np.unique(np.concatenate(places))


def _needed(settings: Settings, cells: slice, among: list[Integers]) -> Integers:
    """Return the places of all rows of these cells, and of all rows that they are compared with."""
    return _union([*among, *_own_places(settings, cells)])


def _inside(places: Integers, own: slice) -> Integers:
    """Return those of increasing places that are in a range, counted from its start."""
    return places[slice(*np.searchsorted(places, [own.start, own.stop]))] - own.start


def _borrowed_rows(strip: Strip, own: slice, needed: Integers) -> Strip:
    found: Strip = take_rows(strip, _inside(needed, own))
    return found


def _borrowed_lists(lists: Lists, own: slice, wanted: Integers) -> Integers:
    return lists.rows[_inside(wanted, own)]


def _lists_of_cells(
    settings: Settings, cells: slice, among: list[Integers], needed: Integers | None, *strips: Strip
) -> Lists:
    """Return the lists of the rows of some cells; strips have the needed rows, or all rows if these are None."""
    strip: Strip = joined(*strips)
    compared = ComparedRows(strip.search, strip.rows, settings.k, settings.unit)
    found = []
    for own, places in zip(_own_places(settings, cells), among, strict=True):
        if needed is None:
            found.append(compared.near(own, places))
        else:
            found.append(compared.near(np.searchsorted(needed, own), np.searchsorted(needed, places)))
    lists: Lists = joined(*found)
    return lists if needed is None else lists.with_numbers(needed)


def _pointing(lists: Lists, own: slice, towards: slice) -> tuple[Integers, Integers]:
    """Return the places of neighbours in a range, and of the rows that have them."""
    i, j = np.nonzero((lists.rows >= towards.start) & (lists.rows < towards.stop))
    return lists.rows[i, j], i + own.start


def _sorted_by_target(*pointing: tuple[Integers, Integers]) -> tuple[Integers, Integers]:
    target, source = (np.concatenate(part) for part in zip(*pointing, strict=True))
    order = np.argsort(target, kind="stable")
    return target[order], source[order]


def _near_cells(
    settings: Settings, cells: slice, group: slice, lists: Lists, pointing: tuple[Integers, Integers]
) -> list[Integers]:
    """Return for each cell the neighbours of its rows, and the rows that have one of these as neighbour."""
    target, source = pointing
    near = []
    for own in _own_places(settings, cells):
        backward = source[slice(*np.searchsorted(target, [own[0], own[-1] + 1]))] if len(own) else own
        near.append(np.unique(np.concatenate([lists.rows[own - group.start].ravel(), backward])))
    return near


def _among_cells(near: list[Integers], wanted: Integers, *borrowed: Integers) -> list[Integers]:
    """Return for each cell the rows near it and their neighbours."""
    neighbours = np.concatenate(borrowed)
    return [_union([rows, neighbours[np.searchsorted(wanted, rows)].ravel()]) for rows in near]


def _merged(settings: Settings, cells: slice, group: slice, before: Lists, found: Lists) -> Lists:
    """Return the nearest rows of the lists of some cells before and after a refinement."""
    first, last = settings.ends[cells.start - 1] if cells.start else 0, settings.ends[cells.stop - 1]
    own = slice(first - group.start, last - group.start)
    return merged(Lists(before.rows[own], before.distances[own]), found)


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
