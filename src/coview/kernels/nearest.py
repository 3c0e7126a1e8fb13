"""The nearest other rows of every row of a view, by the search that suits how many and how wide they are."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from coview.kernels.base import Run, in_turn
from coview.kernels.cells import Cells
from coview.kernels.copies import Copies, Integers
from coview.kernels.search import BLOCK_ROWS, Finder, Pairs
from coview.kernels.tree import MOST_COLUMNS, Tree
from coview.views import Array, Matrix

EXACT_ROWS = 10_000
_LEAST_AROUND, _MOST_AROUND = 2048, 50_000
_PART_AROUND = 0.1


def nearest_rows(rows: Matrix, copies: Copies, k: int, run: Run = in_turn) -> tuple[Integers, Array]:
    """Return the k nearest other rows of each row, nearest first, and their distances; the earlier of equals first.

    Only distinct rows are searched: thousands of equal ones would all be candidates of each other. A k-d tree searches
    rows of few columns; products of blocks search all others, each row among all rows, or beyond 10,000 of them among
    those of the cells nearby, which are a tenth of all and at most some 50,000.
    """
    finder = Finder(rows if copies.all_distinct else rows[copies.first])
    n_distinct = len(copies)
    listed = np.empty((n_distinct, k + 1), dtype=np.int64)
    distances = np.empty((n_distinct, k + 1))
    wanted = min(k, n_distinct - 1)

    def keep(own: Integers, near: Pairs) -> None:
        listed[own], distances[own] = _lists(near, own, copies, k + 1)

    blocks = [np.arange(start, min(start + BLOCK_ROWS, n_distinct)) for start in range(0, n_distinct, BLOCK_ROWS)]
    n_around = int(max(_LEAST_AROUND, min(_PART_AROUND * n_distinct, _MOST_AROUND), 20 * k))
    if not sp.issparse(rows) and rows.shape[1] <= MOST_COLUMNS and wanted:
        tree = Tree(finder)
        run(lambda own: keep(own, tree.near(own, wanted)), blocks)
    elif sp.issparse(rows) or n_distinct <= max(EXACT_ROWS, 2 * n_around):
        run(lambda own: keep(own, finder.near(finder.rows[own], wanted, own=own)), blocks)
    else:
        cells = Cells(finder.points, run)

        def within(cell: int) -> None:
            own = cells.members(cell)
            if len(own):
                keep(own, finder.near(finder.rows[own], wanted, own=own, among=cells.around(cell, n_around)))

        run(within, range(len(cells)))

    everyone = np.arange(rows.shape[0])
    listed, distances = listed[copies.of_row], distances[copies.of_row]
    others = np.argsort(listed == everyone[:, None], axis=1, kind="stable")[:, :k]  # the row itself goes last
    return np.take_along_axis(listed, others, axis=1), np.take_along_axis(distances, others, axis=1)


def _lists(near: Pairs, own: Integers, copies: Copies, length: int) -> tuple[Integers, Array]:
    """The rows nearest to each of these distinct rows, its copies and itself first, and their distances."""
    query = np.concatenate([np.arange(len(own)), near.queries])
    distance = np.concatenate([np.zeros(len(own)), near.distances])
    pair, row = copies.members(np.concatenate([own, near.rows]), length)
    query, distance = query[pair], distance[pair]
    order = np.lexsort((row, distance, query))
    query, row, distance = query[order], row[order], distance[order]
    first = np.searchsorted(query, np.arange(len(own)))[:, None] + np.arange(length)
    return row[first], distance[first]
