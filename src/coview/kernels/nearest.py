"""The nearest other rows of every row of a view, by the search that suits how many and how wide they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from coview.kernels.base import Run, in_turn
from coview.kernels.copies import Copies, Integers
from coview.kernels.search import BLOCK_ROWS, NO_PAIRS, Finder, Pairs
from coview.kernels.sketch import Sketch
from coview.kernels.tree import MOST_COLUMNS, Tree
from coview.views import Array, Matrix

EXACT_ROWS = 10_000
_CROWD = 40  # rows for each neighbour sought, below which there is no part of them to look at


class Nearest(NamedTuple):
    """The nearest other rows of each row, nearest first, and their distances.

    apart : (rows,), the distance of each row from the nearest that is no copy of it; infinite where all are copies
    """

    rows: Integers
    distances: Array
    apart: Array


def nearest_rows(rows: Matrix, copies: Copies, k: int, run: Run = in_turn) -> Nearest:
    """Return the k nearest other rows of each row; the earlier of equals first.

    Only distinct rows are searched: thousands of equal ones would all be candidates of each other. A k-d tree searches
    rows of few columns; products of blocks search all others, or beyond 10,000 dense ones a sketch of them, which finds
    nearly all neighbours, and of equals any.
    """
    finder = Finder(rows if copies.all_distinct else rows[copies.first])
    n_distinct = len(copies)
    wanted = min(k, n_distinct - 1)
    length = k if copies.all_distinct else k + 1  # among copies a row is in its own list, for the time being
    listed = np.empty((n_distinct, length), dtype=np.int64)
    distances = np.empty((n_distinct, length))
    apart = np.full(n_distinct, np.inf)

    def keep(own: Integers, near: Pairs) -> None:
        if not copies.all_distinct:
            np.minimum.at(apart, own[near.queries], near.distances)
            near = _with_copies(near, own, copies, length)
        first = np.searchsorted(near.queries, np.arange(len(own)))[:, None] + np.arange(length)
        listed[own], distances[own] = near.rows[first], near.distances[first]

    blocks = [np.arange(start, min(start + BLOCK_ROWS, n_distinct)) for start in range(0, n_distinct, BLOCK_ROWS)]
    if wanted == 0:
        keep(np.arange(n_distinct), NO_PAIRS)
    elif not sp.issparse(rows) and rows.shape[1] <= MOST_COLUMNS:
        tree = Tree(finder)
        run(lambda own: keep(own, tree.near(own, wanted)), blocks)
    elif sp.issparse(rows) or n_distinct <= max(EXACT_ROWS, _CROWD * k):
        run(lambda own: keep(own, finder.near(finder.rows[own], wanted, own=own)), blocks)
    else:
        sketch = Sketch(finder, run)
        run(lambda cell: keep(*sketch.near(cell, wanted)), range(len(sketch)))

    if copies.all_distinct:
        return Nearest(listed, distances, distances.min(axis=1, initial=np.inf))
    listed, distances = listed[copies.of_row], distances[copies.of_row]
    itself = listed == np.arange(rows.shape[0])[:, None]
    others = np.argsort(itself, axis=1, kind="stable")[:, :k]  # the row itself goes last
    first, near = np.take_along_axis(listed, others, axis=1), np.take_along_axis(distances, others, axis=1)
    return Nearest(first, near, apart[copies.of_row])


def _with_copies(near: Pairs, own: Integers, copies: Copies, most: int) -> Pairs:
    """The rows nearest to each of these distinct rows, its copies and itself first; of each a few copies are enough."""
    query = np.concatenate([np.arange(len(own)), near.queries])
    distance = np.concatenate([np.zeros(len(own)), near.distances])
    pair, row = copies.members(np.concatenate([own, near.rows]), most)
    query, distance = query[pair], distance[pair]
    order = np.lexsort((row, distance, query))
    return Pairs(query[order], row[order], distance[order])
