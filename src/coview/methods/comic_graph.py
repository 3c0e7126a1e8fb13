"""Neighbour graphs: which samples are near each other, and what hangs together through near ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.core.assign import Labels
from coview.views import Array, Matrix

Numbers = NDArray[np.int64]

_BLOCK_ROWS = 256
_BLOCK_EDGES = 4096
_DECIMALS = 12  # of a cosine distance; products of rows of length 1 are good to some 15


def nearest(samples: Matrix, n_neighbors: int) -> tuple[Numbers, Array]:
    """Return the nearest others of each sample and their cosine distances, nearest first.

    Distances that differ by rounding only are equal, and the smaller sample number then comes first: so the neighbours
    of copies do not hang on the order of a sum. A sample is never its own neighbour, and an all-zero row is at
    distance 1 from all. There are fewer than n_neighbors columns where there are too few samples. Costs
    O(n² features) time, and memory for 256 rows of distances at a time.

    Parameters
    ----------
    samples : (n, features), rows of length 1 or 0
    """
    n = samples.shape[0]
    k = min(n_neighbors, n - 1)
    neighbours, distances = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    for start in range(0, n, _BLOCK_ROWS):
        rows = slice(start, min(start + _BLOCK_ROWS, n))
        products = samples[rows] @ samples.T
        block = 1.0 - (products.toarray() if sp.issparse(products) else products)
        np.round(block, _DECIMALS, out=block)
        block[np.arange(len(block)), np.arange(rows.start, rows.stop)] = np.inf
        furthest = np.partition(block, k - 1, axis=1)[:, k - 1 : k]
        i, j = np.nonzero(block <= furthest)  # k in every row, and those as far as the last of them
        order = np.lexsort((j, block[i, j], i))
        chosen = order[np.searchsorted(i, np.arange(len(block)))[:, None] + np.arange(k)]
        neighbours[rows], distances[rows] = j[chosen], block[i[chosen], j[chosen]]
    return neighbours, distances


def mutual_edges(neighbours: Numbers, distances: Array) -> Numbers:
    """Return the edges (i, j), i < j, between mutual neighbours, and those of a minimum spanning tree of all lists.

    The tree (a forest, where the lists fall apart) holds samples that are nobody's near neighbour.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    n, k = neighbours.shape
    ends = np.stack([np.repeat(np.arange(n), k), neighbours.ravel()])
    pairs, first, times = np.unique(ends.min(axis=0) * n + ends.max(axis=0), return_index=True, return_counts=True)
    # The tree is built on ranks: a distance of zero would be no edge at all, and equal ones would leave it undecided.
    ranks = np.empty(len(pairs))
    ranks[np.argsort(distances.ravel()[first], kind="stable")] = np.arange(1, len(pairs) + 1)
    tree = minimum_spanning_tree(sp.csr_array((ranks, np.divmod(pairs, n)), shape=(n, n)))
    edges: Numbers = np.column_stack(np.divmod(pairs[(times == 2) | np.isin(ranks, tree.data)], n))
    return edges


def squared_lengths(edges: Numbers, points: Array) -> Array:
    """Return the squared Euclidean length of every edge between these points."""
    starts = range(0, len(edges), _BLOCK_EDGES)
    blocks = [edges[start : start + _BLOCK_EDGES].T for start in starts]
    lengths: Array = np.concatenate([np.square(points[i] - points[j]).sum(axis=1) for i, j in blocks])
    return lengths


def linked_by_majority(places: Sequence[Array], reaches: Sequence[float]) -> Labels:
    """Return the connected components of samples that are within reach of each other in more than half of the views.

    All pairs are looked at, 256 rows at a time; a pair that hangs together already is not kept, so memory stays at a
    few times 256 n numbers whatever is linked. Costs O(n² Σ coordinates).

    Parameters
    ----------
    places : for every view, (n, coordinates)
    reaches : for every view, the largest distance of a linked pair
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
