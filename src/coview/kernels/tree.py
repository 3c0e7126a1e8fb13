"""Nearest rows by a k-d tree, exactly: for rows of few columns it looks at a handful of them instead of all."""

from __future__ import annotations

import numpy as np

from coview.kernels.copies import Integers
from coview.kernels.rows import dense
from coview.kernels.search import NO_PAIRS, Finder, Pairs, rank_in_group

# Beyond, the tree visits most rows one by one, and products of whole blocks are faster: measured between 8 and 16.
MOST_COLUMNS = 8
_CLOSE = 1e-9  # distances that differ by less, relatively, might be in another order in the tree


class Tree:
    """The rows of a finder in a k-d tree, for their own nearest neighbours."""

    def __init__(self, finder: Finder) -> None:
        from scipy.spatial import cKDTree

        self._finder = finder
        self._points = dense(finder.rows)
        self._tree = cKDTree(self._points)

    def near(self, own: Integers, k: int) -> Pairs:
        """Return the rows no further from each of these rows than its k-th nearest other one.

        Rows whose neighbours the tree cannot tell for certain, because one more is as near, are left to the finder.
        """
        asked = min(k + 2, len(self._points))  # itself, and one more to see a gap
        rows = self._tree.query(self._points[own], k=np.arange(1, asked + 1))[1]
        i, j = np.repeat(np.arange(len(own)), asked), rows.ravel().astype(np.int64)
        others = j != own[i]
        i, j = i[others], j[others]
        distances = self._finder.distances(self._finder.rows[own], i, j)
        order = np.lexsort((j, distances, i))
        i, j, distances = i[order], j[order], distances[order]
        rank = rank_in_group(i)
        last, beyond = np.full(len(own), np.inf), np.full(len(own), np.inf)
        last[i[rank == k - 1]] = distances[rank == k - 1]
        beyond[i[rank == k]] = distances[rank == k]
        unsure = (beyond <= last * (1 + _CLOSE)) | (np.bincount(i, minlength=len(own)) >= asked)
        sure = ~unsure[i] & (rank < k)
        again = np.flatnonzero(unsure)
        rest = self._finder.near(self._finder.rows[own[again]], k, own=own[again]) if len(again) else NO_PAIRS
        query = np.concatenate([i[sure], again[rest.queries]])
        order = np.argsort(query, kind="stable")
        row, distance = np.concatenate([j[sure], rest.rows]), np.concatenate([distances[sure], rest.distances])
        return Pairs(query[order], row[order], distance[order])
