"""The fuzzy neighbour graph, with the weights of UMAP, normalised by its degrees, and its choice of the metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Map, serial_map
from coview.data.view import Array, Matrix
from coview.kernels.base import Kernel, Similarity
from coview.kernels.graph import (
    Graph,
    GraphSimilarity,
    NearPairs,
    TrainingGraph,
    check_search_parameters,
    directed_graph,
)
from coview.neighbors.nearest import Neighbors
from coview.preprocess.profile import ViewProfile

_BISECTIONS = 30
_LEAST_BANDWIDTH = 1e-3  # in units of the distance to the last neighbour
_FAR = 1e300  # larger distances are treated as equal


@dataclass(frozen=True)
class FuzzyGraph(Graph):
    """Similarity w(x, y) / √(d_x d_y) between near neighbours, where w is the weight of UMAP's graph and d the degree.

    The weight from x to one of its `n_neighbors` nearest rows y is exp(-(|x - y| - r_x) / s_x). The offset r_x is the
    smallest nonzero of these distances. The bandwidth s_x is chosen so that the weights of x have the sum
    log2(n_neighbors), or log2 of the number of other rows if these are fewer, but it is at least 1/1000 of the largest
    of these distances. The weights a from x to y and b from y to x are combined to w = a + b - a b. A row has the
    weight 1 to itself, and its degree is the sum of its weights.

    Two details differ from UMAP. There, `n_neighbors` includes the row itself, so that there is one neighbour less for
    the same sum; and the bandwidth is at least 1/1000 of the mean distance.

    The degrees of each view's own graph normalise it, so views are fused on equal terms even if one of them has much
    larger degrees. The Gram matrix is sparse, and stays sparse if all views have such a kernel.

    A new row is compared with the training rows only, as in `NeighborGraph`; its degree includes the weight 1 to
    itself. A new row that is equal to a training row is treated as that row. A new row that is a billion times further
    away than all training rows has similarity 0 to all of them.

    Parameters
    ----------
    n_neighbors : int
        Number of nearest rows that are similar to a row; all other rows if there are fewer.
    metric : "euclidean", "cosine" or "seuclidean"
        As in `NeighborGraph`.
    recall : float
        As in `NeighborGraph`.

    See Also
    --------
    AutoKernel : The same graph with a metric that suits the view.
    NeighborGraph : A graph with self-tuning weights.

    References
    ----------
    McInnes, Healy, Melville: UMAP: Uniform manifold approximation and projection for dimension reduction, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> FuzzyGraph(n_neighbors=1)(np.array([[0.0], [1.0], [3.0]])).round(3)
    array([[0.5  , 0.408, 0.   ],
           [0.408, 0.333, 0.408],
           [0.   , 0.408, 0.5  ]])
    """

    n_neighbors: int = 15
    metric: str = "euclidean"
    recall: float = 0.95

    def local_scales(self, near: Neighbors) -> Array:
        return np.column_stack(_local_scales(near.distances))

    def directed(self, near: Neighbors, first_row: int, scales: Array) -> Matrix:
        offsets, bandwidths = scales[first_row : first_row + len(near.rows)].T
        values = _weights(near.distances, offsets[:, None], bandwidths[:, None])
        return directed_graph(near.rows, values, 0.0, first_row, len(scales))

    def symmetric(self, there: Matrix, back: Matrix, first_row: int) -> Matrix:
        weights = sp.csr_array(there + back - there * back)
        weights.setdiag(1.0, first_row)
        weights.sort_indices()
        return weights

    def normalize(self, weights: Matrix, first_row: int, degrees: Array) -> Matrix:
        roots = np.sqrt(degrees)
        own = roots[first_row : first_row + weights.shape[0]]
        values = weights.data / (np.repeat(own, np.diff(weights.indptr)) * roots[weights.indices])
        return sp.csr_array((values, weights.indices, weights.indptr), shape=weights.shape)

    def similarity(self, training: TrainingGraph) -> FuzzySimilarity:
        rows, scales, gram, radii, closeness, local_scales, degrees = training
        offsets, bandwidths = (column.copy() for column in local_scales.T)
        return FuzzySimilarity(self, rows, scales, radii, gram, closeness, offsets, bandwidths, degrees)


@dataclass(frozen=True)
class FuzzySimilarity(GraphSimilarity):
    """The similarity to training rows with offsets, bandwidths and degrees."""

    kernel: FuzzyGraph
    offsets: Array
    bandwidths: Array
    degrees: Array

    def _values(self, pairs: NearPairs, n_new: int) -> Array:
        new, training = pairs.new, pairs.training
        offsets, bandwidths = _local_scales(pairs.to_nearest)
        there = pairs.near_new * _weights(pairs.distances, offsets[new], bandwidths[new])
        back = pairs.near_training * _weights(pairs.distances, self.offsets[training], self.bandwidths[training])
        weights = there + back - there * back
        degrees = 1 + np.bincount(new, weights, minlength=n_new)
        return weights / np.sqrt(degrees[new] * self.degrees[training])


def _weights(distances: Array, offsets: Array, bandwidths: Array) -> Array:
    values: Array = np.exp(-np.maximum(np.minimum(distances, _FAR) - offsets, 0) / bandwidths)
    return values


def _local_scales(distances: Array) -> tuple[Array, Array]:
    """Return the offset and the bandwidth of each row from the distances to its neighbours in increasing order.

    No bandwidth gives the sum if too many distances are equal to the offset or smaller; the smallest one is then used.
    """
    n, k = distances.shape
    if k == 0:
        return np.zeros(n), np.ones(n)
    distances = np.minimum(distances, _FAR)
    offsets = np.min(distances, axis=1, where=distances > 0, initial=np.inf)
    offsets = np.where(np.isfinite(offsets), offsets, 0.0)
    excess = np.maximum(distances - offsets[:, None], 0)
    low = _LEAST_BANDWIDTH * np.where(distances[:, -1] > 0, distances[:, -1], 1.0)
    # With this bandwidth the sum is large enough, because no term is smaller than that of the largest distance.
    high = np.maximum(excess[:, -1] / np.log(k / log2(k)), low) if k > 1 else low
    for _ in range(_BISECTIONS if k > 1 else 0):
        middle = (low + high) / 2
        above = np.exp(-excess / middle[:, None]).sum(axis=1) >= log2(k)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return offsets, (low + high) / 2


@dataclass(frozen=True)
class AutoKernel(Kernel):
    """`FuzzyGraph` with a metric that depends on the view.

    ================================================================== ==========
    view                                                               metric
    ================================================================== ==========
    at most 8 columns                                                  seuclidean
    two columns have nearly all of the variance, as in different units seuclidean
    all rows are multiples of one row                                  seuclidean
    categories, which are encoded to columns of a common scale         euclidean
    all others: dense, counts, binary, sparse                          cosine
    ================================================================== ==========

    The fitted attribute `kernels_` of a method holds the kernel that was chosen; new samples are compared by the same.
    A view whose rows are all equal is uninformative: its graph has no edges.

    Parameters
    ----------
    n_neighbors : int
        As in `FuzzyGraph`.
    recall : float
        As in `FuzzyGraph`.

    See Also
    --------
    FuzzyGraph : The graph, with a metric that is given.

    Examples
    --------
    >>> import numpy as np
    >>> AutoKernel().resolve(np.random.default_rng(0).normal(size=(10, 3)))
    FuzzyGraph(n_neighbors=15, metric='seuclidean', recall=0.95)
    """

    n_neighbors: int = 15
    recall: float = 0.95

    bounded = True
    sparse = True

    def __post_init__(self) -> None:
        check_search_parameters(self)

    def on_common_scale(self) -> Kernel:
        return FuzzyGraph(self.n_neighbors, "euclidean", self.recall)

    def resolve(self, x: Matrix, rng: np.random.Generator | None = None, name: str = "x") -> Kernel:
        return self.choose(ViewProfile.of(x), lambda graph: graph.is_constant(x))

    def choose(self, profile: ViewProfile, is_constant: Callable[[FuzzyGraph], bool]) -> FuzzyGraph:
        """Return the graph of a view, given its profile and a function that says if a graph has no distances."""
        cosine = FuzzyGraph(self.n_neighbors, "cosine", self.recall)
        if profile.no_direction or is_constant(cosine):
            return FuzzyGraph(self.n_neighbors, "seuclidean", self.recall)
        return cosine

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        return self.resolve(rows).against(rows, dtype, map_blocks)
