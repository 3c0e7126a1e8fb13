"""The nearest neighbours of all training rows, by the search that suits the number of rows and columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Map, serial_map
from coview.data.view import Array, Matrix
from coview.neighbors.approximate import approximate_neighbors
from coview.neighbors.duplicates import Duplicates, Integers
from coview.neighbors.exact import BLOCK_ROWS, NO_PAIRS, ExactSearch, Pairs, sort_pairs
from coview.neighbors.kd_tree import MOST_COLUMNS, TreeSearch

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
    finder = ExactSearch(rows if duplicates.all_distinct else rows[duplicates.first])
    n_distinct = len(duplicates)
    wanted = min(k, n_distinct - 1)
    length = list_length(k, duplicates)
    listed = np.empty((n_distinct, length), dtype=np.int64)
    distances = np.empty((n_distinct, length))
    apart = np.full(n_distinct, np.inf)

    def keep(own: Integers, near: Pairs) -> None:
        listed[own], distances[own], apart[own] = as_lists(own, near, duplicates, k)

    blocks = [np.arange(start, min(start + BLOCK_ROWS, n_distinct)) for start in range(0, n_distinct, BLOCK_ROWS)]
    if wanted == 0:
        keep(np.arange(n_distinct), NO_PAIRS)
    elif not sp.issparse(rows) and rows.shape[1] <= MOST_COLUMNS:
        tree = TreeSearch(finder)
        map_blocks(lambda own: keep(own, tree.near(finder.rows[own], wanted, own)), blocks)
    elif sp.issparse(rows) or not is_approximate(n_distinct, k, recall):
        map_blocks(lambda own: keep(own, finder.near(finder.rows[own], wanted, own=own)), blocks)
    else:
        lists = approximate_neighbors(finder, wanted, recall, map_blocks)
        map_blocks(lambda own: keep(own, lists.of_rows(own).as_pairs()), blocks)

    found = Neighbors(listed, distances, apart)
    return found if duplicates.all_distinct else without_itself(found, duplicates.of_row, 0, k)


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


def without_itself(of_distinct: Neighbors, places: Integers, first_row: int, k: int) -> Neighbors:
    """Return the lists of rows from `first_row` on, whose distinct rows have the lists in these places."""
    listed, distances, apart = (part[places] for part in of_distinct)
    itself = listed == np.arange(first_row, first_row + len(places))[:, None]
    others = np.argsort(itself, axis=1, kind="stable")[:, :k]  # without the row itself, which is last
    return Neighbors(np.take_along_axis(listed, others, axis=1), np.take_along_axis(distances, others, axis=1), apart)


def _with_duplicates(near: Pairs, own: Integers, duplicates: Duplicates, most: int) -> Pairs:
    """Return the nearest rows of each of these distinct rows, itself and its duplicates first, at most `most` each."""
    query = np.concatenate([np.arange(len(own)), near.queries])
    distance = np.concatenate([np.zeros(len(own)), near.distances])
    pair, row = duplicates.members(np.concatenate([own, near.rows]), most)
    return sort_pairs(query[pair], row, distance[pair])
