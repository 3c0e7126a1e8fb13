"""The nearest other rows of every row of a view, by the search that suits how many and how wide they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from coview.neighbors.duplicates import Duplicates, Integers
from coview.neighbors.exact import BLOCK_ROWS, NO_PAIRS, ExactSearch, Pairs
from coview.neighbors.projected import ProjectedSearch
from coview.neighbors.tree import MOST_COLUMNS, TreeSearch
from coview.runtime import Map, serial_map
from coview.views import Array, Matrix

EXACT_ROWS = 10_000
_CROWD = 40  # rows for each neighbour sought, below which there is no part of them to look at


class Neighbors(NamedTuple):
    """The nearest other rows of each row, nearest first, and their distances.

    apart : (rows,), the distance of each row from the nearest that is no copy of it; infinite where all are duplicates
    """

    rows: Integers
    distances: Array
    apart: Array


def nearest_neighbors(rows: Matrix, duplicates: Duplicates, k: int, map_blocks: Map = serial_map) -> Neighbors:
    """Return the k nearest other rows of each row; the earlier of equals first.

    Only distinct rows are searched: thousands of equal ones would all be candidates of each other. A k-d tree searches
    rows of few columns; products of blocks search all others, or beyond 10,000 dense ones a sketch of them, which finds
    nearly all neighbours, and of equals any.
    """
    finder = ExactSearch(rows if duplicates.all_distinct else rows[duplicates.first])
    n_distinct = len(duplicates)
    wanted = min(k, n_distinct - 1)
    length = k if duplicates.all_distinct else k + 1  # among duplicates a row is in its own list, for the time being
    listed = np.empty((n_distinct, length), dtype=np.int64)
    distances = np.empty((n_distinct, length))
    apart = np.full(n_distinct, np.inf)

    def keep(own: Integers, near: Pairs) -> None:
        if not duplicates.all_distinct:
            np.minimum.at(apart, own[near.queries], near.distances)
            near = _with_duplicates(near, own, duplicates, length)
        first = np.searchsorted(near.queries, np.arange(len(own)))[:, None] + np.arange(length)
        listed[own], distances[own] = near.rows[first], near.distances[first]

    blocks = [np.arange(start, min(start + BLOCK_ROWS, n_distinct)) for start in range(0, n_distinct, BLOCK_ROWS)]
    if wanted == 0:
        keep(np.arange(n_distinct), NO_PAIRS)
    elif not sp.issparse(rows) and rows.shape[1] <= MOST_COLUMNS:
        tree = TreeSearch(finder)
        map_blocks(lambda own: keep(own, tree.near(own, wanted)), blocks)
    elif sp.issparse(rows) or n_distinct <= max(EXACT_ROWS, _CROWD * k):
        map_blocks(lambda own: keep(own, finder.near(finder.rows[own], wanted, own=own)), blocks)
    else:
        sketch = ProjectedSearch(finder, map_blocks)
        map_blocks(lambda cell: keep(*sketch.near(cell, wanted)), range(len(sketch)))

    if duplicates.all_distinct:
        return Neighbors(listed, distances, distances.min(axis=1, initial=np.inf))
    listed, distances = listed[duplicates.of_row], distances[duplicates.of_row]
    itself = listed == np.arange(rows.shape[0])[:, None]
    others = np.argsort(itself, axis=1, kind="stable")[:, :k]  # the row itself goes last
    first, near = np.take_along_axis(listed, others, axis=1), np.take_along_axis(distances, others, axis=1)
    return Neighbors(first, near, apart[duplicates.of_row])


def _with_duplicates(near: Pairs, own: Integers, duplicates: Duplicates, most: int) -> Pairs:
    """Return the rows nearest to each of these distinct rows, itself and its duplicates first, `most` of each."""
    query = np.concatenate([np.arange(len(own)), near.queries])
    distance = np.concatenate([np.zeros(len(own)), near.distances])
    pair, row = duplicates.members(np.concatenate([own, near.rows]), most)
    query, distance = query[pair], distance[pair]
    order = np.lexsort((row, distance, query))
    return Pairs(query[order], row[order], distance[order])
