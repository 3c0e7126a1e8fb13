"""Approximate search for the nearest neighbours of rows on a cluster: the plan and the cells of the search in memory.

Rows are put into the order of the cells, in strips. For a few cells, a task for each strip finds the rows in reach, and
one task compares the rows of these cells with the rows that were found. It calls the functions of
`coview.neighbors.approximate`, so the answer is the same. A worker needs its strips and the rows around a few cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, frexp
from typing import Any, NamedTuple

import numpy as np

from coview.base.runtime import Map
from coview.data.view import Array
from coview.distributed.cluster import Future, RowBlocks
from coview.distributed.exact import ClusterSearch, frame_of
from coview.neighbors.approximate import (
    ComparedRows,
    Lists,
    Plan,
    axes_rows,
    fit_float32,
    fraction_found,
    local_axes,
    merged,
    projected,
    query_rows,
    refined_until_found,
    sample_rows,
)
from coview.neighbors.duplicates import Integers
from coview.neighbors.exact import ExactSearch, Frame, Pairs, rank_in_group
from coview.neighbors.partition import ROWS_PER_BLOCK


class Settings(NamedTuple):
    """What all tasks of a search need."""

    plan: Plan
    ends: Integers  # of the cells, in the order of the cells
    frame: Frame  # of the coordinates
    k: int
    unit: float  # of the full rows


class CellGroup(NamedTuple):
    """Some consecutive cells, which are searched together: slices as in memory, and the places of their rows."""

    tasks: list[slice]
    place: slice

    @property
    def cells(self) -> range:
        return range(self.tasks[0].start, self.tasks[-1].stop)


class Strip(NamedTuple):
    """Consecutive rows in the order of the cells: their coordinates, and the full rows if these are others."""

    start: int
    coordinates: Array
    rows: Array | None


def approximate_pairs(rows: RowBlocks, k: int, recall: float, map_here: Map) -> list[Future]:
    """Return k near neighbours of all rows, as `Pairs` of each block; see `approximate_neighbors`.

    The plan is learnt in threads of this process (`map_here`).
    """
    search = _CellSearch(rows, k, recall, map_here)
    lists = refined_until_found(search.first(), search.refined, search.fraction_found, recall)
    numbers = rows.cluster.share(search.numbers)
    return [
        rows.cluster.submit(_as_pairs, np.concatenate(where), numbers, *pieces)
        for place in rows.places
        for where, pieces in [search.of_rows(lists, np.arange(place.start, place.stop))]
    ]


class _CellSearch:
    """The search of all rows, as in memory: the rows in the order of the cells, in strips and in groups of cells.

    Products have the same shapes as in memory, so that they are rounded alike: strips and the blocks before the
    reordering start at multiples of the blocks of rows there.
    """

    def __init__(self, rows: RowBlocks, k: int, recall: float, map_here: Map) -> None:
        cluster, n = rows.cluster, rows.shape[0]
        self._cluster = cluster
        strips = _strip_places(n, len(rows.blocks))
        finder = ClusterSearch.of_distinct(rows)
        self._queries = query_rows(n)
        self._true = _exact_lists(finder, rows.take(self._queries), self._queries, k)
        axes = local_axes(ExactSearch(rows.take(axes_rows(n)), finder.frame).points)
        aligned = rows.in_blocks(strips)
        coordinates, frame = aligned, finder.frame
        if axes is not None:
            blocks = aligned.map(_projected, cluster.share(axes), finder.frame)
            coordinates = aligned._replace(blocks=blocks, width=axes.shape[1])
            frame = frame_of(coordinates)

        def augmented(numbers: Integers) -> Array:
            return ExactSearch(coordinates.take(numbers), frame).augmented

        distinct, place = np.unique(self._true, return_inverse=True)
        true = augmented(distinct)[place.reshape(self._true.shape)]
        plan = Plan.learn(n, augmented(sample_rows(n)), augmented(self._queries), true, recall, map_here)
        cell = np.concatenate(cluster.gather(coordinates.map(_cell_of_rows, cluster.share(plan.cells), frame)))
        self.numbers: Integers = np.argsort(cell, kind="stable")
        self._place = np.empty(n, dtype=np.int64)
        self._place[self.numbers] = np.arange(n)
        ends = np.cumsum(np.bincount(cell, minlength=len(plan.cells)))
        exponent = frexp(finder.frame.largest)[1]
        self._settings = cluster.share(Settings(plan, ends, frame, k, 2.0**exponent))
        self._groups = _groups(plan.tasks(), ends, len(rows.blocks))

        ordered = coordinates.in_order(self.numbers, strips)
        full: Sequence[Future | None] = [None] * len(strips)
        self._projects = axes is not None
        if self._projects:
            narrow = all(cluster.gather(aligned.map(_fit_float32, exponent)))
            scaled = aligned._replace(blocks=aligned.map(_scaled_rows, exponent, narrow))
            full = scaled.in_order(self.numbers, strips).blocks
        self._strips = [
            cluster.submit(Strip, place.start, block, of_full)
            for place, block, of_full in zip(strips, ordered.blocks, full, strict=True)
        ]

    def first(self) -> list[Future]:
        """Return the lists of the groups: the neighbours among the rows around their cells."""
        submit, lists = self._cluster.submit, []
        for group in self._groups:
            parts = []
            for cells in group.tasks:
                around = [submit(_around, self._settings, cells, strip) for strip in self._strips]
                among = submit(_among_around, self._settings, *around)
                parts.append(self._nearest(range(cells.start, cells.stop), among))
            lists.append(submit(_joined, *parts))
        return lists

    def refined(self, lists: list[Future]) -> list[Future]:
        """Return the neighbours among neighbours of neighbours, in both directions."""
        submit, others = self._cluster.submit, list(zip(lists, self._groups, strict=True))
        better = []
        for before, group in others:
            backward = [submit(_pointing, of_other, other.place, group.place) for of_other, other in others]
            near = submit(_near_cells, self._settings, group, before, *backward)
            wanted = submit(_union_of_places, near)
            borrowed = [submit(_borrowed_lists, of_other, other.place, wanted) for of_other, other in others]
            found = self._nearest(group.cells, submit(_among_cells, near, wanted, *borrowed))
            better.append(submit(merged, before, found) if self._projects else found)
        return better

    def of_rows(self, lists: list[Future], rows: Integers) -> tuple[list[Integers], list[Future]]:
        """Return the lists of some rows, in pieces, and the positions in `rows` that each piece has."""
        places, where, pieces = self._place[rows], [], []
        for of_group, group in zip(lists, self._groups, strict=True):
            inside = np.flatnonzero((places >= group.place.start) & (places < group.place.stop))
            if len(inside):
                where.append(inside)
                pieces.append(self._cluster.submit(Lists.of_rows, of_group, places[inside] - group.place.start))
        return where, pieces

    def fraction_found(self, lists: list[Future]) -> float:
        """Return the part of the true neighbours of some rows that is in the lists."""
        where, pieces = self.of_rows(lists, self._queries)
        found = np.empty_like(self._true)
        found[np.concatenate(where)] = np.concatenate([each.rows for each in self._cluster.gather(pieces)])
        return fraction_found(self._true, self.numbers[found])

    def _nearest(self, cells: range, among: Future) -> Future:
        """Return the lists of the rows of some cells, given the rows that those of each cell are compared with."""
        needed = self._cluster.submit(_needed, self._settings, cells, among)
        borrowed = [self._cluster.submit(_borrowed_rows, strip, needed) for strip in self._strips]
        return self._cluster.submit(_lists, self._settings, cells, among, needed, *borrowed)


def _strip_places(n: int, count: int) -> list[slice]:
    """Return about so many consecutive blocks of rows, which start at multiples of the blocks of products."""
    height = ROWS_PER_BLOCK * ceil(n / count / ROWS_PER_BLOCK)
    return [slice(start, min(start + height, n)) for start in range(0, n, height)]


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


def _exact_lists(finder: ClusterSearch, x: Array, own: Integers, k: int) -> Integers:
    """Return the numbers of the k nearest other rows of rows with these numbers."""
    near = finder.near(x, k + 1)
    others = near.rows != own[near.queries]
    query, row = near.queries[others], near.rows[others]
    return row[rank_in_group(query) < k].reshape(-1, k)


def _projected(block: Array, axes: Array, frame: Frame) -> Array:
    return projected(ExactSearch(block, frame).points, axes)


def _cell_of_rows(block: Array, cells: Any, frame: Frame) -> Integers:
    numbers: Integers = cells.of_rows(ExactSearch(block, frame).augmented)
    return numbers


def _fit_float32(block: Array, exponent: int) -> bool:
    return fit_float32(block * 2.0**-exponent)


def _scaled_rows(block: Array, exponent: int, narrow: bool) -> Array:
    scaled = block * 2.0**-exponent
    return scaled.astype(np.float32) if narrow else scaled


def _around(settings: Settings, cells: slice, strip: Strip) -> list[tuple[Integers, Integers]]:
    """Return the places of the rows of a strip that are within reach of each of these cells, in two parts."""
    plan, rows = settings.plan, ExactSearch(strip.coordinates, settings.frame).augmented
    parts = plan.cells.parts_around(cells, plan.reach, rows)
    return [(near + strip.start, outer + strip.start) for near, outer in parts]


def _among_around(settings: Settings, *around: list[tuple[Integers, Integers]]) -> list[Integers]:
    """Return the rows that those of each cell are compared with, in the order of the search in memory."""
    among = [
        np.concatenate([*(near for near, _ in parts), *(outer for _, outer in parts)])
        for parts in zip(*around, strict=True)
    ]
    n, n_around = int(settings.ends[-1]), settings.plan.n_around
    return [np.arange(n) if len(places) < n_around // 2 else places for places in among]


def _own_places(settings: Settings, cells: range) -> Iterator[Integers]:
    """Yield the places of the rows of each of these cells."""
    for cell in cells:
        yield np.arange(settings.ends[cell - 1] if cell else 0, settings.ends[cell])


def _needed(settings: Settings, cells: range, among: list[Integers]) -> Integers:
    """Return the places of all rows of these cells, and of all rows that they are compared with."""
    return _union_of_places([*among, *_own_places(settings, cells)])


def _borrowed_rows(strip: Strip, needed: Integers) -> Strip:
    """Return the needed rows of a strip."""
    inside = _inside(needed, slice(strip.start, strip.start + len(strip.coordinates)))
    return Strip(strip.start, strip.coordinates[inside], None if strip.rows is None else strip.rows[inside])


def _inside(places: Integers, own: slice) -> Integers:
    """Return those of increasing places that are in a range, counted from its start."""
    return places[slice(*np.searchsorted(places, [own.start, own.stop]))] - own.start


def _lists(settings: Settings, cells: range, among: list[Integers], needed: Integers, *borrowed: Strip) -> Lists:
    """Return the lists of the rows of some cells."""
    coordinates = np.concatenate([strip.coordinates for strip in borrowed])
    full = [strip.rows for strip in borrowed if strip.rows is not None]
    rows = np.concatenate(full) if full else None
    compared = ComparedRows(ExactSearch(coordinates, settings.frame), rows, settings.k, settings.unit)
    found = [Lists.empty(0, settings.k)]
    for own, places in zip(_own_places(settings, cells), among, strict=True):
        if len(own):
            found.append(compared.near(np.searchsorted(needed, own), np.searchsorted(needed, places)))
    return Lists.joined(found).with_numbers(needed)


def _joined(*parts: Lists) -> Lists:
    return Lists.joined(parts)


def _as_pairs(where: Integers, numbers: Integers, *pieces: Lists) -> Pairs:
    """Return the lists of a block of rows as pairs with the numbers of the rows."""
    return Lists.joined(pieces).of_rows(np.argsort(where)).with_numbers(numbers).as_pairs()


def _pointing(lists: Lists, own: slice, towards: slice) -> tuple[Integers, Integers]:
    """Return the places of neighbours in a range, and of the rows that have them."""
    i, j = np.nonzero((lists.rows >= towards.start) & (lists.rows < towards.stop))
    return lists.rows[i, j], i + own.start


def _near_cells(
    settings: Settings, group: CellGroup, lists: Lists, *backward: tuple[Integers, Integers]
) -> list[Integers]:
    """Return for each cell of a group the neighbours of its rows, and the rows that have one of these as neighbour."""
    target, source = (np.concatenate(part) for part in zip(*backward, strict=True))
    order = np.argsort(target, kind="stable")
    target, source = target[order], source[order]
    near = []
    for places in _own_places(settings, group.cells):
        own = slice(places[0], places[-1] + 1) if len(places) else slice(group.place.start, group.place.start)
        pointing = source[slice(*np.searchsorted(target, [own.start, own.stop]))]
        listed = lists.rows[own.start - group.place.start : own.stop - group.place.start]
        near.append(np.unique(np.concatenate([listed.ravel(), pointing])))
    return near


def _union_of_places(near: list[Integers]) -> Integers:
    return np.unique(np.concatenate(near))


def _borrowed_lists(lists: Lists, own: slice, wanted: Integers) -> Integers:
    """Return the neighbours of those of the wanted rows that are in a group."""
    return lists.rows[_inside(wanted, own)]


def _among_cells(near: list[Integers], wanted: Integers, *borrowed: Integers) -> list[Integers]:
    """Return for each cell the rows near it and their neighbours."""
    neighbours = np.concatenate(borrowed)
    return [np.unique(np.concatenate([rows, neighbours[np.searchsorted(wanted, rows)].ravel()])) for rows in near]
