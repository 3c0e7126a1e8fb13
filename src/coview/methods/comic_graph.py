"""Neighbour graphs of COMIC: nearest neighbours by cosine, mutual edges, and connected components of linked samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.core.assign import Labels
from coview.data.rows import as_array
from coview.data.view import Array, Matrix

Numbers = NDArray[np.int64]

_BLOCK_ROWS = 256
_BLOCK_EDGES = 4096
_DECIMALS = 12  # of a cosine distance; products of L2-normalised rows have about 15 correct digits


def cosine_neighbors(samples: Matrix, n_neighbors: int) -> tuple[Numbers, Array]:
    """Return the nearest other samples of each sample (L2-normalised rows), nearest first, and cosine distances.

    Distances that are equal up to rounding are equal, and the smaller sample number comes first. An all-zero row is at
    distance 1 from all others. The search differs from `coview.neighbors`, whose Euclidean distances would put zero
    rows nearer than orthogonal ones. Costs O(n² features) time, and memory for 256 rows of distances.
    """
    n = samples.shape[0]
    k = min(n_neighbors, n - 1)
    neighbours, distances = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    for start in range(0, n, _BLOCK_ROWS):
        rows = slice(start, min(start + _BLOCK_ROWS, n))
        block = 1.0 - as_array(samples[rows] @ samples.T)
        np.round(block, _DECIMALS, out=block)
        block[np.arange(len(block)), np.arange(rows.start, rows.stop)] = np.inf
        furthest = np.partition(block, k - 1, axis=1)[:, k - 1 : k]
        i, j = np.nonzero(block <= furthest)  # k in every row, and ties with the last of them
        order = np.lexsort((j, block[i, j], i))
        chosen = order[np.searchsorted(i, np.arange(len(block)))[:, None] + np.arange(k)]
        neighbours[rows], distances[rows] = j[chosen], block[i[chosen], j[chosen]]
    return neighbours, distances


def mutual_edges(neighbours: Numbers, distances: Array) -> Numbers:
    """Return the edges (i, j), i < j, between mutual neighbours and those of a minimum spanning tree of all lists.

    The tree (a forest, if the lists are not connected) connects samples that are not a neighbour of any other sample.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    n, k = neighbours.shape
    ends = np.stack([np.repeat(np.arange(n), k), neighbours.ravel()])
    pairs, first, times = np.unique(ends.min(axis=0) * n + ends.max(axis=0), return_index=True, return_counts=True)
    # The tree uses ranks, because a distance of zero would mean no edge, and equal distances have several trees.
    ranks = np.empty(len(pairs))
    ranks[np.argsort(distances.ravel()[first], kind="stable")] = np.arange(1, len(pairs) + 1)
    i, j = (end.astype(np.int32) for end in np.divmod(pairs, n))  # older versions of SciPy need indices of 32 bits
    tree = minimum_spanning_tree(sp.csr_array((ranks, (i, j)), shape=(n, n)))
    return np.column_stack(np.divmod(pairs[(times == 2) | np.isin(ranks, tree.data)], n))


def squared_lengths(edges: Numbers, points: Array) -> Array:
    """Return the squared Euclidean length of every edge between these points."""
    starts = range(0, len(edges), _BLOCK_EDGES)
    blocks = [edges[start : start + _BLOCK_EDGES].T for start in starts]
    return np.concatenate([np.square(points[i] - points[j]).sum(axis=1) for i, j in blocks])


def linked_by_majority(places: Sequence[Array], reaches: Sequence[float]) -> Labels:
    """Return the connected components of samples that are within reach of each other in more than half of the views.

    All pairs are compared, 256 rows at a time, and only links between different components are kept, so the memory is a
    few times 256 n numbers. Costs O(n² Σ coordinates) time.
    """
    from scipy.sparse.csgraph import connected_components

    n = len(places[0])
    squares = [np.square(z).sum(axis=1) for z in places]
    labels = np.arange(n)
    for start in range(0, n, _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        votes = np.zeros((len(labels[rows]), n - start), dtype=np.int16)
        for z, square, reach in zip(places, squares, reaches, strict=True):
            votes += square[rows, None] + square[start:] - 2 * (z[rows] @ z[start:].T) <= reach**2
        i, j = np.nonzero(votes > len(places) // 2)
        a, b = labels[start + i], labels[start + j]
        apart = a != b
        links = sp.csr_array((np.ones(apart.sum()), (a[apart], b[apart])), shape=(n, n))
        labels = connected_components(links, directed=False)[1][labels]
    return labels.astype(np.int64)
