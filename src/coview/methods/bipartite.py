"""Bipartite graphs of samples and anchors: weighted sums, singular vectors and connected components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from coview.core.assign import Labels
from coview.core.eigen import Problem, top_eigenpairs
from coview.data.view import Array, Matrix
from coview.methods.anchors import AnchorPoints

_MOST_GROUPS = 1000  # groups among which all pairs are compared


def weighted_graph(graphs: Sequence[Matrix], weights: Array) -> Matrix:
    """Return the weighted sum of the views' graphs, without edges of views of weight zero."""
    return sp.csr_array(sum(weight * graph for weight, graph in zip(weights, graphs, strict=True) if weight > 0))


def normalise(graph: Matrix) -> tuple[Matrix, Array, Array]:
    """Return D^{-1/2} P E^{-1/2}, with D and E the degrees of samples and anchors, and the two scales as columns.

    The scale of a node without edges is zero.
    """
    scales = []
    for axis in (1, 0):
        degrees = np.asarray(graph.sum(axis=axis))
        scales.append(np.divide(1.0, np.sqrt(degrees), out=np.zeros(len(degrees)), where=degrees > 0))
    left, right = scales
    entries = graph.data * np.repeat(left, np.diff(graph.indptr)) * right[graph.indices]
    return sp.csr_array((entries, graph.indices, graph.indptr), shape=graph.shape), left[:, None], right[:, None]


class Triplets(NamedTuple):
    """Singular values in decreasing order, with their vectors as columns: left for samples, right for anchors."""

    left: Array
    values: Array
    right: Array


def leading_triplets(z: Matrix, k: int, start: Array | None = None) -> Triplets:
    """Return the k leading singular triplets of a csr_array with few columns, through the eigenvectors of Zᵀ Z.

    The vectors of singular values that are zero, including those beyond the number of columns, are zero. `start` may
    hold right vectors near the solution.
    """
    k_found = min(k, z.shape[1])
    problem = Problem(_ColumnProducts(z), exponent=0, trace=float(np.square(z.data).sum()))
    # A graph may have eigenvalues close to the k-th one. With up to 4000 anchors LAPACK separates them; with more,
    # vectors that mix them to some digits are accurate enough.
    pairs = top_eigenpairs(problem, k_found, start)
    values = np.sqrt(np.maximum(pairs.values, 0.0))
    left = z @ (pairs.vectors / np.where(values > 0, values, 1.0))
    missing = k - k_found
    return Triplets(*(np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) for x in (left, values, pairs.vectors)))


class _ColumnProducts:
    """Zᵀ Z as an operator."""

    def __init__(self, z: Matrix) -> None:
        self._z = z
        self._transposed = z.T.tocsr()
        self.shape = (z.shape[1], z.shape[1])
        self.dtype = np.dtype(np.float64)

    def __matmul__(self, x: Array) -> Array:
        return self._transposed @ (self._z @ x)

    def to_dense(self) -> Array:
        return (self._transposed @ self._z).toarray()


def components(graph: Matrix) -> Labels:
    """Return the connected component of each sample; anchors without edges do not count."""
    from scipy.sparse.csgraph import connected_components

    n, m = graph.shape
    starts = np.concatenate([graph.indptr, np.full(m, graph.nnz, dtype=graph.indptr.dtype)])
    edges = sp.csr_array((graph.data, graph.indices + n, starts), shape=(n + m, n + m))
    numbers = connected_components(edges, directed=False)[1][:n]
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def n_components(graph: Matrix) -> int:
    """Return the number of connected components with samples in them."""
    return int(components(graph).max()) + 1


def join_nearest(labels: Labels, views: Mapping[str, Matrix], n_clusters: int) -> Labels:
    """Return the groups of samples after Ward's agglomeration to n_clusters groups.

    The squared distances between the means of the groups are added over the views, each divided by its mean. If there
    are more than 1000 groups, all but the 1000 largest first join the nearest of these.
    """
    if labels.max() < n_clusters:
        return labels
    if labels.max() >= max(_MOST_GROUPS, n_clusters):
        large = np.argsort(-np.bincount(labels), kind="stable")[: max(_MOST_GROUPS, n_clusters)]
        nearest = _between(labels, views, large).argmin(axis=1)
        labels = np.unique(nearest[labels], return_inverse=True)[1].astype(np.int64)
    sizes = np.bincount(labels).astype(np.float64)
    between = _between(labels, views, np.arange(len(sizes)))
    for _ in range(len(sizes) - n_clusters):
        added = between * sizes / (1 + sizes / sizes[:, None])
        np.fill_diagonal(added, np.inf)
        i, j = sorted(np.unravel_index(added.argmin(), added.shape))
        fractions = sizes[[i, j]] / (sizes[i] + sizes[j])
        between[i] = between[:, i] = fractions @ between[[i, j]] - fractions.prod() * between[i, j]
        sizes[i] += sizes[j]
        between, sizes = np.delete(np.delete(between, j, axis=0), j, axis=1), np.delete(sizes, j)
        labels = np.where(labels == j, i, labels - (labels > j))
    return labels


def _between(labels: Labels, views: Mapping[str, Matrix], some: Labels) -> Array:
    """Return squared distances from the means of all groups to those of some, added over the views."""
    weights = 1 / np.bincount(labels)[labels]
    averaging = sp.csr_array((weights, (labels, np.arange(len(labels)))))
    total = np.zeros((averaging.shape[0], len(some)))
    for name, x in views.items():
        means = averaging @ x
        distances = AnchorPoints(name, means[some]).nearest(means, len(some)).distances
        total += distances / max(distances.mean(), np.finfo(np.float64).tiny)
    return total
