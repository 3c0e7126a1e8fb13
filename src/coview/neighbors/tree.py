"""Neighbors rows by a k-d tree, exactly: for rows of few columns it looks at a handful of them instead of all."""

from __future__ import annotations

import numpy as np

from coview.neighbors.duplicates import Integers
from coview.neighbors.exact import ExactSearch, Pairs, rank_in_group
from coview.rows import as_float64

# Beyond, the tree visits most rows one by one, and products of whole blocks are faster: measured between 8 and 16.
MOST_COLUMNS = 8
_MORE = 8  # times as many are asked for where rows are equally near
_CLOSE = 1e-9  # distances that differ by less, relatively, might be in another order in the tree


class TreeSearch:
    """The rows of a finder in a k-d tree, for their own nearest neighbours."""

    def __init__(self, finder: ExactSearch) -> None:
        from scipy.spatial import cKDTree

        self._finder = finder
        self._points = as_float64(finder.rows)
        self._tree = cKDTree(self._points)

    def near(self, own: Integers, k: int) -> Pairs:
        """Return the rows no further from each of these rows than its k-th nearest other one.

        Where the tree cannot tell for certain who that is, because one more is as near, it is asked for more, as on a
        grid; those that it cannot tell even then are left to the finder.
        """
        found, unsure = self._asked(own, k, k + 2)  # itself, and one more to see a gap
        parts = [(found, np.arange(len(own)))]
        if len(unsure):
            found, still = self._asked(own[unsure], k, _MORE * k)
            parts.append((found, unsure))
            unsure = unsure[still]
        if len(unsure):
            parts.append((self._finder.near(self._finder.rows[own[unsure]], k, own=own[unsure]), unsure))
        query = np.concatenate([places[pairs.queries] for pairs, places in parts])
        order = np.argsort(query, kind="stable")
        row, distance = (np.concatenate([pairs[part] for pairs, _ in parts]) for part in (1, 2))
        return Pairs(query[order], row[order], distance[order])

    def _asked(self, own: Integers, k: int, count: int) -> tuple[Pairs, Integers]:
        """The nearest rows of each, if so many from the tree settle it, and the places of those where they do not."""
        count = min(count, len(self._points))
        rows = self._tree.query(self._points[own], k=np.arange(1, count + 1))[1]
        i, j = np.repeat(np.arange(len(own)), count), rows.ravel().astype(np.int64)
        others = j != own[i]
        i, j = i[others], j[others]
        distances = self._finder.distances(self._finder.rows[own], i, j)
        order = np.lexsort((j, distances, i))
        i, j, distances = i[order], j[order], distances[order]
        last, furthest = np.full(len(own), np.inf), np.zeros(len(own))
        kth = rank_in_group(i) == k - 1
        last[i[kth]] = distances[kth]
        np.maximum.at(furthest, i, distances)
        unsure = furthest <= last * (1 + _CLOSE)
        if count == len(self._points):  # there is nobody else
            unsure[:] = False
        unsure |= np.bincount(i, minlength=len(own)) >= count  # itself was not among them
        sure = ~unsure[i] & (distances <= last[i])
        return Pairs(i[sure], j[sure], distances[sure]), np.flatnonzero(unsure)
