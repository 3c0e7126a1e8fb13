"""The nearest neighbours of all training rows, by the search that suits the number of rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Map, serial_map
from coview.data.view import Array, Matrix
from coview.neighbors.approximate import approximate_pairs
from coview.neighbors.blocks import Blocks, Result, joined
from coview.neighbors.duplicates import Duplicates, Integers
from coview.neighbors.exact import (
    BLOCK_ROWS,
    MOST_COLUMNS,
    NO_PAIRS,
    ExactSearch,
    Pairs,
    TreeSearch,
    merged_pairs,
    sort_pairs,
)

EXACT_ROWS = 10_000
_ROWS_PER_NEIGHBOUR = 40  # with fewer rows for each neighbour the search is exact


class Neighbors(NamedTuple):
    """The k nearest other rows of each of n rows, nearest first."""

    rows: Integers  # (n, k)
    distances: Array  # (n, k)
    apart: Array  # (n,): the distance to the nearest row that is not a duplicate; infinite if all rows are duplicates


def nearest_neighbors(
    rows: Matrix, duplicates: Duplicates, k: int, map_blocks: Map = serial_map, recall: float = 0.95
) -> Neighbors:
    """Return the k nearest other rows of each row; ties go to the row that comes first.

    Only distinct rows are searched, because thousands of duplicates would all be candidates of each other. Rows with
    few columns are searched by a k-d tree, others by products of blocks. Above 10,000 dense rows the search is
    approximate unless `recall` is 1: it finds about this part of the neighbours, and breaks ties in any order.
    """
    found: Neighbors = neighbor_lists(Blocks.of(rows, map_blocks), duplicates, k, recall, sp.issparse(rows)).blocks[0]
    return found


def neighbor_lists(rows: Blocks, duplicates: Duplicates, k: int, recall: float, sparse: bool = False) -> Blocks:
    """Return the same for rows in blocks, as `Neighbors` of each block."""
    tasks, distinct, narrow = rows.tasks, rows.distinct(duplicates), not sparse and rows.width <= MOST_COLUMNS
    wanted, searches = min(k, len(duplicates) - 1), distinct.searches()
    if narrow or sparse or not is_approximate(len(duplicates), k, recall):
        find = _exact_pairs(distinct, searches.converted(TreeSearch) if narrow else searches, wanted)
    else:
        find = approximate_pairs(searches, wanted, recall)
    shared, places = tasks.share(duplicates), distinct.places

    def lists_of(part: tuple[int, slice]) -> Result:
        block, inside = part
        own = np.arange(inside.start, inside.stop) + places[block].start
        return tasks.submit(as_lists, own, find(block, inside), shared, k)

    parts = [(block, inside) for block, n in enumerate(distinct.heights) for inside in tasks.split(n, BLOCK_ROWS)]
    found = iter(tasks.map(lists_of, parts))
    of_blocks = [list(islice(found, len(tasks.split(n, BLOCK_ROWS)))) for n in distinct.heights]
    lists = distinct._replace(blocks=[tasks.submit(joined, *each) for each in of_blocks])
    if duplicates.all_distinct:
        return lists
    of_rows = lists.in_order(duplicates.of_row, rows.heights)
    return of_rows._replace(
        blocks=[
            tasks.submit(_without_itself, block, place.start, k)
            for block, place in zip(of_rows.blocks, rows.places, strict=True)
        ]
    )


def _exact_pairs(rows: Blocks, searches: Blocks, k: int) -> Callable[[int, slice], Result]:
    """Return a function of a part of a block that finds the nearest rows in all blocks, as `Pairs`."""
    tasks, places, homes = rows.tasks, rows.places, rows.tasks.homes(searches.blocks)

    def find(block: int, part: slice) -> Result:
        queries = tasks.copy(rows.blocks[block])
        pairs = [
            tasks.submit(_near, queries, part, search, k, other == block, at=home)
            for other, (search, home) in enumerate(zip(searches.blocks, homes, strict=True))
        ]
        return tasks.submit(_merged, places, k, *pairs)

    return find


def _near(rows: Matrix, part: slice, search: ExactSearch | TreeSearch, k: int, same: bool) -> Pairs:
    """Return the nearest rows in one block; a query is not its own neighbour in its own block."""
    k = min(k, len(search) - same)
    own = np.arange(part.start, part.stop) if same else None
    return search.near(rows[part], k, own=own) if k else NO_PAIRS


def _merged(places: Sequence[slice], k: int, *pairs: Pairs) -> Pairs:
    return merged_pairs(pairs, places, k)


def is_approximate(n_distinct: int, k: int, recall: float) -> bool:
    """Return whether the k neighbours of dense rows with many columns are searched approximately."""
    return n_distinct > max(EXACT_ROWS, _ROWS_PER_NEIGHBOUR * k) and recall < 1


def list_length(k: int, duplicates: Duplicates) -> int:
    """Return the length of the list of a distinct row: with duplicates, a row is at first in its own list."""
    return k if duplicates.all_distinct else k + 1


def as_lists(own: Integers, near: Pairs, duplicates: Duplicates, k: int) -> Neighbors:
    """Return the lists of these distinct rows, from the nearest distinct rows of each; rows count from all rows."""
    apart = np.full(len(own), np.inf)
    if not duplicates.all_distinct:
        np.minimum.at(apart, near.queries, near.distances)
        near = _with_duplicates(near, own, duplicates, k + 1)
    first = np.searchsorted(near.queries, np.arange(len(own)))[:, None] + np.arange(list_length(k, duplicates))
    distances = near.distances[first]
    if duplicates.all_distinct:
        apart = distances.min(axis=1, initial=np.inf)
    return Neighbors(near.rows[first], distances, apart)


def _without_itself(lists: Neighbors, first_row: int, k: int) -> Neighbors:
    """Return the lists of rows from `first_row` on, given those of the distinct rows that they are equal to."""
    listed, distances, apart = lists
    itself = listed == np.arange(first_row, first_row + len(listed))[:, None]
    others = np.argsort(itself, axis=1, kind="stable")[:, :k]  # without the row itself, which is last
    return Neighbors(np.take_along_axis(listed, others, axis=1), np.take_along_axis(distances, others, axis=1), apart)


def _with_duplicates(near: Pairs, own: Integers, duplicates: Duplicates, most: int) -> Pairs:
    """Return the nearest rows of each of these distinct rows, itself and its duplicates first, at most `most` each."""
    query = np.concatenate([np.arange(len(own)), near.queries])
    distance = np.concatenate([np.zeros(len(own)), near.distances])
    pair, row = duplicates.members(np.concatenate([own, near.rows]), most)
    return sort_pairs(query[pair], row, distance[pair])
