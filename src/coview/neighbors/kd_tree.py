"""Exact nearest-neighbour search by a k-d tree, for rows with few columns."""

from __future__ import annotations

import numpy as np

from coview.data.rows import as_float64
from coview.data.view import Array
from coview.neighbors.duplicates import Integers
from coview.neighbors.exact import ExactSearch, Pairs, rank_in_group, sort_pairs

# With more columns the tree visits most rows, and products of blocks are faster: measured between 8 and 16 columns.
MOST_COLUMNS = 8
_TIE_FACTOR = 8  # the second query asks for this many times k rows
_TIE = 1e-9  # relative difference of distances below which the tree may order them differently


class TreeSearch:
    """Search among the rows of an exact search for the nearest neighbours of any rows, by a k-d tree."""

    def __init__(self, finder: ExactSearch) -> None:
        from scipy.spatial import cKDTree

        self._finder = finder
        self._points = as_float64(finder.rows)
        self._tree = cKDTree(self._points)

    def __len__(self) -> int:
        return len(self._points)

    def near(self, x: Array, k: int, own: Integers | None = None) -> Pairs:
        """Return the rows no further from a row of x than its k-th nearest row.

        `own` has the numbers of the queries among the rows: a query is then not its own neighbour. If there is a tie at
        the k-th place, as on a grid, the tree is asked for more rows; ties that remain are left to the exact search.
        """
        found, tied = self._query(x, k, k + 2, own)  # the row itself, and one more to see a gap
        parts = [(found, np.arange(len(x)))]
        if len(tied):
            found, still = self._query(x[tied], k, _TIE_FACTOR * k, None if own is None else own[tied])
            parts.append((found, tied))
            tied = tied[still]
        if len(tied):
            parts.append((self._finder.near(x[tied], k, own=None if own is None else own[tied]), tied))
        query = np.concatenate([places[pairs.queries] for pairs, places in parts])
        order = np.argsort(query, kind="stable")
        row, distance = (np.concatenate([pairs[part] for pairs, _ in parts]) for part in (1, 2))
        return Pairs(query[order], row[order], distance[order])

    def _query(self, x: Array, k: int, count: int, own: Integers | None) -> tuple[Pairs, Integers]:
        """Return the nearest rows among `count` rows from the tree, and the positions of the queries with ties."""
        count = min(count, len(self._points))
        rows = self._tree.query(as_float64(x), k=np.arange(1, count + 1))[1]
        i, j = np.repeat(np.arange(len(x)), count), rows.ravel().astype(np.int64)
        if own is not None:
            others = j != own[i]
            i, j = i[others], j[others]
        distances = self._finder.distances(x, i, j)
        i, j, distances = sort_pairs(i, j, distances)
        last, furthest = np.full(len(x), np.inf), np.zeros(len(x))
        kth = rank_in_group(i) == k - 1
        last[i[kth]] = distances[kth]
        np.maximum.at(furthest, i, distances)
        tied = furthest <= last * (1 + _TIE)
        if count == len(self._points):  # all rows were returned
            tied[:] = False
        if own is not None:
            tied |= np.bincount(i, minlength=len(x)) >= count  # the row itself was not returned
        kept = ~tied[i] & (distances <= last[i])
        return Pairs(i[kept], j[kept], distances[kept]), np.flatnonzero(tied)
