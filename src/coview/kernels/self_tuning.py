"""The self-tuning neighbour graph: a Gaussian of the distance, with a bandwidth of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from coview.data.view import Array, Matrix
from coview.kernels.base import check_integer_parameter
from coview.kernels.graph import Graph, GraphSimilarity, NearPairs, TrainingGraph, directed_graph
from coview.neighbors.nearest import Neighbors


@dataclass(frozen=True)
class NeighborGraph(Graph):
    """Similarity exp(-|x - y|² / (s_x s_y)) between near neighbours, 1 of a row to itself, and 0 for all other pairs.

    Two rows are near neighbours if one of them is among the `n_neighbors` nearest rows of the other. The local
    bandwidth s_x is the distance from x to its `scale_neighbor`-th nearest row, so regions of different density are
    treated alike. The Gram matrix is sparse, and stays sparse if all views have such a kernel. It is not positive
    semi-definite; the methods use its algebraically largest eigenvalues only.

    A new row is compared with the training rows only: with the nearest of them, and with those to which it is nearer
    than their own `n_neighbors`-th neighbour. A new row that is equal to a training row is treated as that row (the
    first of several duplicates). Ties go to the row that comes first. The search is exact and takes O(rows² columns)
    time, and much less with up to 8 columns. With more columns and more than 10,000 distinct dense training rows it is
    approximate, see `recall`: some neighbours are replaced by others that are nearly as near.

    Parameters
    ----------
    n_neighbors : int
        Number of nearest rows that are similar to a row; all other rows if there are fewer.
    scale_neighbor : int
        The neighbour whose distance is the local bandwidth; the last one if there are fewer.
    metric : "euclidean", "cosine" or "seuclidean"
        "cosine" is the Euclidean distance of L2-normalised rows; all-zero rows stay zero. "seuclidean" is that of
        columns divided by their standard deviation over the training rows, without constant columns.
    recall : float
        The part of the nearest training rows that an approximate search should find, above 0 and at most 1; with 1 the
        search is exact. Each row is compared with as many rows as this takes for 400 rows that are searched exactly, at
        most 50,000. If these are clearly not enough, the neighbours are refined by neighbours of neighbours, in at most
        three passes. See docs/performance.md.

    See Also
    --------
    FuzzyGraph : A graph with the weights of UMAP.
    RBF : Similarities of all pairs, with a global bandwidth.

    References
    ----------
    Zelnik-Manor, Perona: Self-tuning spectral clustering, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> NeighborGraph(n_neighbors=1, scale_neighbor=1)(np.array([[0.0], [1.0], [3.0]])).round(3)
    array([[1.   , 0.368, 0.   ],
           [0.368, 1.   , 0.135],
           [0.   , 0.135, 1.   ]])
    """

    n_neighbors: int = 10
    scale_neighbor: int = 7
    metric: str = "euclidean"
    recall: float = 0.95

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer_parameter(self, "scale_neighbor")

    @property
    def n_distances(self) -> int:
        return max(self.n_neighbors, self.scale_neighbor)

    def local_scales(self, near: Neighbors) -> Array:
        bandwidths = local_bandwidths(near.distances, self.scale_neighbor)
        # If that neighbour is a duplicate, the distance to the nearest row that is not; 1 if all rows are duplicates.
        apart = np.where(np.isfinite(near.apart), near.apart, 1.0)
        return np.where(bandwidths > 0, bandwidths, apart)[:, None]

    def directed(self, near: Neighbors, first_row: int, scales: Array) -> Matrix:
        neighbours, distances = near.rows[:, : self.n_neighbors], near.distances[:, : self.n_neighbors]
        bandwidths = scales[:, 0]
        own = bandwidths[first_row : first_row + len(neighbours), None]
        values = local_similarities(distances, own, bandwidths[neighbours])
        return directed_graph(neighbours, values, 1.0, first_row, len(scales))

    def symmetric(self, there: Matrix, back: Matrix, first_row: int) -> Matrix:
        gram = sp.csr_array(there.maximum(back))
        gram.sort_indices()
        return gram

    def similarity(self, training: TrainingGraph) -> NeighborSimilarity:
        rows, scales, gram, radii, closeness, local_scales, _ = training
        return NeighborSimilarity(self, rows, scales, radii, gram, closeness, local_scales[:, 0].copy())


@dataclass(frozen=True)
class NeighborSimilarity(GraphSimilarity):
    """The similarity to training rows with local bandwidths."""

    kernel: NeighborGraph
    bandwidths: Array

    def _values(self, pairs: NearPairs, n_new: int) -> Array:
        bandwidths = local_bandwidths(pairs.to_nearest, self.kernel.scale_neighbor)
        return local_similarities(pairs.distances, bandwidths[pairs.new], self.bandwidths[pairs.training])


def local_similarities(distances: Array, bandwidths: Array, other_bandwidths: Array) -> Array:
    """Return exp(-d² / (s t)); the quotients are computed first because squares could leave the range of float64."""
    with np.errstate(over="ignore"):
        values: Array = np.exp(-(distances / bandwidths) * (distances / other_bandwidths))
    return values


def local_bandwidths(distances: Array, scale_neighbor: int) -> Array:
    """Return the local bandwidth of each row from the distances to its neighbours in increasing order."""
    if distances.shape[1] == 0:
        return np.ones(len(distances))
    return distances[:, min(scale_neighbor, distances.shape[1]) - 1].copy()
