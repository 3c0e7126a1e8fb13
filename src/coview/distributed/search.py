"""The nearest neighbours of rows on a cluster, with the answer of the search in memory."""

from __future__ import annotations

import numpy as np

from coview.base.runtime import Map, serial_map
from coview.distributed.cells import approximate_pairs
from coview.distributed.cluster import Future, RowBlocks
from coview.distributed.exact import distinct_rows, exact_pairs
from coview.neighbors.duplicates import Duplicates, Integers
from coview.neighbors.kd_tree import MOST_COLUMNS
from coview.neighbors.nearest import Neighbors, as_lists, is_approximate, without_itself


def neighbor_lists(
    rows: RowBlocks, duplicates: Duplicates, k: int, recall: float, map_here: Map = serial_map
) -> list[Future]:
    """Return the k nearest other rows of each row, as `Neighbors` of each block of rows."""
    cluster = rows.cluster
    distinct = distinct_rows(rows, duplicates)
    wanted = min(k, len(duplicates) - 1)
    narrow = rows.width <= MOST_COLUMNS
    if not narrow and is_approximate(len(duplicates), k, recall):
        found = approximate_pairs(distinct, wanted, recall, map_here)
    else:
        found = exact_pairs(distinct, wanted)
    shared = cluster.share(duplicates)
    lists = [
        cluster.submit(as_lists, np.arange(own.start, own.stop), pairs, shared, k)
        for own, pairs in zip(distinct.places, found, strict=True)
    ]
    if duplicates.all_distinct:
        return lists
    of_rows = []
    for place in rows.places:
        numbers = duplicates.of_row[place]
        pieces, where = [], []
        for of_block, own in zip(lists, distinct.places, strict=True):
            inside = np.flatnonzero((numbers >= own.start) & (numbers < own.stop))
            if len(inside):
                pieces.append(cluster.submit(_some_lists, of_block, numbers[inside] - own.start))
                where.append(inside)
        of_rows.append(cluster.submit(_lists_of_rows, np.concatenate(where), place.start, k, *pieces))
    return of_rows


def _some_lists(lists: Neighbors, places: Integers) -> Neighbors:
    return Neighbors(*(part[places] for part in lists))


def _lists_of_rows(where: Integers, first_row: int, k: int, *pieces: Neighbors) -> Neighbors:
    """Return the lists of a block of rows, from those of its distinct rows in other blocks."""
    of_distinct = Neighbors(*(np.concatenate(parts) for parts in zip(*pieces, strict=True)))
    places = np.empty(len(where), dtype=np.int64)
    places[where] = np.arange(len(where))
    return without_itself(of_distinct, places, first_row, k)
