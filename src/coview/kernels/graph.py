"""The neighbour graph as a kernel: only near neighbours are similar, and each row has its own bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import frexp
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from coview.errors import InputError
from coview.kernels.base import Kernel, Similarity, check_integer_parameter
from coview.neighbors.duplicates import Duplicates, Integers, fingerprints
from coview.neighbors.exact import ExactSearch, rank_in_group, sort_pairs
from coview.neighbors.nearest import nearest_neighbors
from coview.rows import as_array, l2_normalize
from coview.runtime import Map, serial_map
from coview.state import PARAMETER, DenseOrSparse, FloatArray, Range, SparseMatrix
from coview.views import Array, Matrix

_METRICS = ("euclidean", "cosine")
_SAME_DIRECTION = 1e-12  # 1 less a cosine: a smaller difference may be a rounding error
_SAFE_EXPONENT = 400  # squares of values between 2^-400 and 2^400 stay in the range of float64


@dataclass(frozen=True)
class NeighborGraph(Kernel):
    """Similarity exp(-|x - y|² / (s_x s_y)) between near neighbours, 1 of a row to itself, and 0 for all other pairs.

    Two rows are near neighbours if one of them is among the `n_neighbors` nearest rows of the other. The local
    bandwidth s_x is the distance from x to its `scale_neighbor`-th nearest row, so regions of different density are
    treated alike. The Gram matrix is sparse, and stays sparse if all views have such a kernel. It is not positive
    semi-definite; the methods use its algebraically largest eigenvalues only.

    A new row is compared with the training rows only: with the nearest of them, and with those to which it is nearer
    than their own `n_neighbors`-th neighbour. A new row that is equal to a training row is treated as that row (the
    first of several duplicates). Ties go to the row that comes first. The search is exact and takes O(rows² columns)
    time, and much less with up to 8 columns. With more columns and more than 10,000 distinct dense training rows it is
    approximate: some neighbours are replaced by others that are nearly as near, see docs/performance.md.

    Parameters
    ----------
    n_neighbors : int
        Number of nearest rows that are similar to a row; all other rows if there are fewer.
    scale_neighbor : int
        The neighbour whose distance is the local bandwidth; the last one if there are fewer.
    metric : "euclidean" or "cosine"
        "cosine" is the Euclidean distance of L2-normalised rows; all-zero rows stay zero.

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

    bounded = True
    sparse = True

    def __post_init__(self) -> None:
        check_integer_parameter(self, "n_neighbors")
        check_integer_parameter(self, "scale_neighbor")
        if self.metric not in _METRICS:
            raise InputError(f"NeighborGraph.metric={self.metric!r}: expected one of {', '.join(_METRICS)}")

    def check_training(self, name: str, x: Matrix) -> None:
        if x.shape[0] == 1:
            return
        first, start = self.normalized(x[:1]), 1
        while start < x.shape[0]:  # the first rows mostly differ already
            if not self._all_equal(first, self.normalized(x[start : 2 * start])):
                return
            start *= 2
        raise InputError(
            f"view {name!r} has the same values in all of its {x.shape[0]} samples under {self}; drop the view, "
            "because no sample is nearer than another"
        )

    def _all_equal(self, first: Matrix, rows: Matrix) -> bool:
        """Return whether all rows are equal to the first one; under cosine, multiples of it are, up to rounding."""
        if self.metric == "cosine" and abs(first).max() > 0:
            return bool((as_array(rows @ first.T) > 1 - _SAME_DIRECTION).all())
        return bool((fingerprints(rows) == fingerprints(first)).all())

    def normalized(self, x: Matrix, exponent: int = 0) -> Matrix:
        """Return a copy of the rows whose Euclidean distances are compared: L2-normalised, or divided by 2^exponent."""
        if self.metric == "cosine":
            return l2_normalize(x)
        rows = x.copy()  # in C order
        return rows.astype(np.float64, copy=False) * 2.0**-exponent if exponent else rows

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        exponent = frexp(max(float(rows.max()), -float(rows.min())))[1]
        exponent = 0 if abs(exponent) < _SAFE_EXPONENT or self.metric == "cosine" else max(exponent, -1000)
        normalized = self.normalized(rows, exponent)
        duplicates = Duplicates(normalized)
        width = min(max(self.n_neighbors, self.scale_neighbor), rows.shape[0] - 1)
        neighbours, distances, apart = nearest_neighbors(normalized, duplicates, width, map_blocks)
        bandwidths = local_bandwidths(distances, self.scale_neighbor)
        # If that neighbour is a duplicate, the distance to the nearest row that is not; 1 if all rows are duplicates.
        bandwidths = np.where(bandwidths > 0, bandwidths, np.where(np.isfinite(apart), apart, 1.0))
        near = min(self.n_neighbors, width)
        radii = distances[:, near - 1] if near else np.zeros(len(bandwidths))
        gram = _symmetric(neighbours[:, :near], distances[:, :near], bandwidths).astype(dtype)
        similarity = NeighborSimilarity(self, normalized, exponent, bandwidths, radii.copy(), gram)
        vars(similarity)["_duplicates"] = duplicates  # already computed
        return similarity


@dataclass(frozen=True)
class NeighborSimilarity(Similarity):
    """The training rows with their local bandwidths, the distances to their last neighbours, and the Gram matrix."""

    kernel: Annotated[NeighborGraph, PARAMETER]
    rows: Annotated[Matrix, DenseOrSparse("train", "features")]
    exponent: Annotated[int, Range(-1100, 1100)]  # the rows are stored in units of 2^exponent
    bandwidths: Annotated[Array, FloatArray("train", above=0)]
    radii: Annotated[Array, FloatArray("train", least=0)]
    gram: Annotated[Matrix, SparseMatrix("train", "train", least=0, most=1)]

    nonnegative = True
    bounded = True
    sparse = True

    @property
    def dtype(self) -> type[np.floating[Any]]:  # type: ignore[override]
        return self.gram.dtype.type

    def __call__(self, x: Matrix) -> Array:
        return as_array(self.block(x))

    def block(self, x: Matrix) -> Matrix:
        with np.errstate(over="ignore"):
            x = self._like_training(self.kernel.normalized(x, self.exponent))
        equal = self._duplicates.find(x)
        new = np.flatnonzero(equal < 0)
        similar = sp.vstack(
            [self._to_training(x[new]), self.gram[self._duplicates.first[equal[equal >= 0]]]], format="csr"
        )
        place = np.empty(x.shape[0], dtype=np.int64)
        place[np.concatenate([new, np.flatnonzero(equal >= 0)])] = np.arange(x.shape[0])
        return sp.csr_array(similar)[place]

    def tile(self, rows: slice, columns: slice, out: Array) -> None:
        out[...] = self.gram[rows][:, columns].toarray()

    def training_block(self, rows: slice, n: int) -> Matrix:
        # A row with duplicates is scored like a new row that is equal to it.
        return self.gram[self._duplicates.first[self._duplicates.of_row[rows]]]

    @cached_property
    def _duplicates(self) -> Duplicates:
        return Duplicates(self.rows)

    @cached_property
    def _finder(self) -> ExactSearch:
        return ExactSearch(self.rows if self._duplicates.all_distinct else self.rows[self._duplicates.first])

    def _like_training(self, x: Matrix) -> Matrix:
        if sp.issparse(self.rows) == sp.issparse(x):
            return x
        return sp.csr_array(x) if sp.issparse(self.rows) else x.toarray()

    def _to_training(self, x: Matrix) -> Matrix:
        """Return the similarities of rows that are not equal to any training row."""
        n, kernel, duplicates = self.rows.shape[0], self.kernel, self._duplicates
        shape = (x.shape[0], n)
        if x.shape[0] == 0:
            return sp.csr_array(shape, dtype=self.dtype)
        width = min(max(kernel.n_neighbors, kernel.scale_neighbor), n)
        reach = self.radii[duplicates.first]
        near = self._finder.near(x, min(width, len(duplicates)), reach)
        reached = near.distances < reach[near.rows]
        pair, row = duplicates.members(near.rows, np.where(reached, n, width))
        query, row, distance = sort_pairs(near.queries[pair], row, near.distances[pair])
        rank = rank_in_group(query)

        to_nearest = np.full((x.shape[0], width), np.inf)
        to_nearest[query[rank < width], rank[rank < width]] = distance[rank < width]
        bandwidths = local_bandwidths(to_nearest, kernel.scale_neighbor)
        kept = (rank < kernel.n_neighbors) | (distance < self.radii[row])
        query, row, distance = query[kept], row[kept], distance[kept]
        order = np.lexsort((row, query))  # sums over a row then have the same order in any block
        query, row, distance = query[order], row[order], distance[order]
        values = local_similarities(distance, bandwidths[query], self.bandwidths[row]).astype(self.dtype)
        starts = np.searchsorted(query, np.arange(x.shape[0] + 1))
        return sp.csr_array((values, row, starts), shape=shape)


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


def _symmetric(neighbours: Integers, distances: Array, bandwidths: Array) -> Matrix:
    """Return the Gram matrix: similarities to the neighbours, in both directions, and 1 on the diagonal."""
    n, k = neighbours.shape
    values = local_similarities(distances, bandwidths[:, None], bandwidths[neighbours])
    columns = np.column_stack([np.arange(n), neighbours])
    entries = np.column_stack([np.ones(n), values])
    directed = sp.csr_array((entries.ravel(), columns.ravel(), np.arange(0, n * (k + 1) + 1, k + 1)), shape=(n, n))
    directed.sort_indices()
    gram = sp.csr_array(directed.maximum(directed.T.tocsr()))
    gram.sort_indices()
    return gram
