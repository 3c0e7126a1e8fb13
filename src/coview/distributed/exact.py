"""Exact search for the nearest neighbours of rows on a cluster: a task for each pair of blocks, then a merge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np

from coview.core.sparse import slab_places
from coview.data.view import Array
from coview.distributed.cluster import Future, RowBlocks, take_rows
from coview.neighbors.duplicates import Duplicates
from coview.neighbors.exact import (
    NO_PAIRS,
    ExactSearch,
    Frame,
    Pairs,
    centre_rows,
    largest_entry,
    middle,
    rank_in_group,
    sort_pairs,
)
from coview.neighbors.kd_tree import MOST_COLUMNS, TreeSearch


def distinct_rows(rows: RowBlocks, duplicates: Duplicates) -> RowBlocks:
    """Return the first of equal rows, in the blocks that hold them."""
    if duplicates.all_distinct:
        return rows
    cuts = np.searchsorted(duplicates.first, [[place.start, place.stop] for place in rows.places])
    blocks, heights = [], []
    for block, place, (start, stop) in zip(rows.blocks, rows.places, cuts, strict=True):
        if start < stop:
            blocks.append(rows.cluster.submit(take_rows, block, duplicates.first[start:stop] - place.start))
            heights.append(int(stop - start))
    return RowBlocks(rows.cluster, blocks, slab_places(heights), rows.width)


def frame_of(rows: RowBlocks) -> Frame:
    """Return the coordinates in which all blocks are searched."""
    centre = middle(rows.take(centre_rows(rows.shape[0])))
    return Frame(centre, max(rows.cluster.gather(rows.map(_largest_from, centre))))


class ClusterSearch:
    """Exact search among the distinct rows on a cluster for the nearest neighbours of new rows."""

    def __init__(self, rows: RowBlocks, duplicates: Duplicates) -> None:
        self._all, self._duplicates = rows, duplicates

    @cached_property
    def _rows(self) -> RowBlocks:
        return distinct_rows(self._all, self._duplicates)

    @classmethod
    def of_distinct(cls, rows: RowBlocks) -> Self:
        """Return the search among rows of which no two are equal."""
        search = cls.__new__(cls)
        vars(search)["_rows"] = rows
        return search

    @cached_property
    def frame(self) -> Frame:
        """The coordinates in which all blocks are searched."""
        return frame_of(self._rows)

    def near(self, x: Array, k: int, reach: Array | None = None) -> Pairs:
        """Return the rows no further from a row of x than its k-th nearest row, and those that have x within reach."""
        cluster, places = self._rows.cluster, self._rows.places
        queries = cluster.share(x)
        parts = [
            cluster.submit(_near_new, block, self.frame, queries, k, None if reach is None else reach[place])
            for block, place in zip(self._rows.blocks, places, strict=True)
        ]
        return merged_pairs(cluster.gather(parts), places, k, reach)


def _near_new(rows: Array, frame: Frame, queries: Array, k: int, reach: Array | None) -> Pairs:
    return ExactSearch(rows, frame).near(queries, min(k, len(rows)), reach)


def exact_pairs(rows: RowBlocks, k: int) -> list[Future]:
    """Return the k nearest rows of all rows, as `Pairs` of each block: a task for each pair of blocks, then a merge."""
    cluster, frame = rows.cluster, rows.cluster.share(frame_of(rows))
    homes, found = cluster.homes(rows.blocks), []
    for own_block, own in zip(rows.blocks, rows.places, strict=True):
        queries = cluster.copy(own_block)
        pairs = [
            cluster.submit(_near, queries, block, frame, k, place == own, at=home)
            for block, place, home in zip(rows.blocks, rows.places, homes, strict=True)
        ]
        found.append(cluster.submit(_merged_pairs, rows.places, k, *pairs))
    return found


def _largest_from(block: Array, centre: Array) -> float:
    return largest_entry(block - centre)


def _near(queries: Array, rows: Array, frame: Frame, k: int, same: bool) -> Pairs:
    """Return the nearest rows of the queries in one block; a query is not its own neighbour in its own block."""
    k = min(k, len(rows) - same)
    if k == 0:
        return NO_PAIRS
    exact = ExactSearch(rows, frame)
    finder = TreeSearch(exact) if rows.shape[1] <= MOST_COLUMNS else exact
    return finder.near(queries, k, own=np.arange(len(rows)) if same else None)


def merged_pairs(pairs: Sequence[Pairs], places: Sequence[slice], k: int, reach: Array | None = None) -> Pairs:
    """Return the pairs no further than the k-th nearest row of all blocks, or within reach, sorted by distance."""
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


def _merged_pairs(places: Sequence[slice], k: int, *pairs: Pairs) -> Pairs:
    return merged_pairs(pairs, places, k)
