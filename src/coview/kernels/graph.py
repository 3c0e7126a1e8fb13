"""The neighbour graph as a kernel: rows are similar to their nearest, in units of how far apart rows are there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import frexp
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from coview.errors import InputError
from coview.kernels.base import Kernel, Similarity, require_number
from coview.neighbors.duplicates import Duplicates, Integers, fingerprints
from coview.neighbors.exact import ExactSearch, rank_in_group
from coview.neighbors.nearest import nearest_neighbors
from coview.rows import as_array, l2_normalize
from coview.runtime import Map, serial_map
from coview.state import PARAMETER, DenseOrSparse, FloatArray, Range, SparseMatrix
from coview.views import Array, Matrix

_METRICS = ("euclidean", "cosine")
_SAME_DIRECTION = 1e-12  # 1 less a cosine that may be rounding
_CALM = 400  # powers of two that rows may be from 1 before squares leave the range of floats


@dataclass(frozen=True)
class NeighborGraph(Kernel):
    """Similarity exp(-|x - y|² / (s_x s_y)) of near neighbours, 1 of a row with itself, and 0 of all other pairs.

    Two rows are near when one of them is among the nearest of the other; s_x is the distance of x from its
    `scale_neighbor`-th nearest row, so that dense and thin regions count alike. The Gram matrix is sparse, and is kept
    so where all views have such a kernel. It is not positive semi-definite: the methods take the algebraically largest
    eigenvalues, and the negative ones play no part.

    A new row is compared with the training rows alone: with those nearest to it, and with those that it is nearer to
    than their own `n_neighbors`-th neighbour. A new row that is equal to a training row is treated as that row (the
    first of several). Equal distances go to the row that comes first. The search is exact and costs O(rows² columns),
    much less for up to 8 columns. Among more than 10,000 distinct training rows of more columns, unless they are CSR,
    it is faster and misses some neighbours for others nearly as near, see docs/performance.md.

    Parameters
    ----------
    n_neighbors : int
        Neighbors rows that are similar to a row, beside those that it is near to; all others where there are fewer.
    scale_neighbor : int
        Which neighbour's distance is the unit; the last where there are fewer.
    metric : "euclidean" or "cosine"
        "cosine" is the Euclidean distance of rows scaled to length 1; all-zero rows stay zero.

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

    def __post_init__(self) -> None:
        for parameter in ("n_neighbors", "scale_neighbor"):
            require_number(self, parameter, lambda v: v >= 1 and v == int(v), "a whole number of at least 1")
            object.__setattr__(self, parameter, int(getattr(self, parameter)))  # a command line has 10.0
        if self.metric not in _METRICS:
            raise InputError(f"NeighborGraph(metric={self.metric!r}): metric must be one of {', '.join(_METRICS)}")

    @property
    def bounded(self) -> bool:
        return True

    @property
    def sparse(self) -> bool:
        return True

    def check_training(self, name: str, x: Matrix) -> None:
        if x.shape[0] == 1:
            return
        first, start = self.prepared(x[:1]), 1
        while start < x.shape[0]:  # the first rows mostly settle it
            if not self._all_alike(first, self.prepared(x[start : 2 * start])):
                return
            start *= 2
        raise InputError(
            f"view {name!r} has the same values in all of its {x.shape[0]} samples under {self}, so none is nearer "
            "than another; drop the view"
        )

    def _all_alike(self, first: Matrix, rows: Matrix) -> bool:
        """Whether prepared rows are all equal to this one; multiples of a row are, by cosine, but for rounding."""
        if self.metric == "cosine" and abs(first).max() > 0:
            return bool((as_array(rows @ first.T) > 1 - _SAME_DIRECTION).all())
        return bool((fingerprints(rows) == fingerprints(first)).all())

    def prepared(self, x: Matrix, exponent: int = 0) -> Matrix:
        """Return a copy of the rows in the form in which they are compared."""
        if self.metric == "cosine":
            return l2_normalize(x)
        rows = x.copy()  # in C order
        return rows.astype(np.float64, copy=False) * 2.0**-exponent if exponent else rows

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        exponent = frexp(max(float(rows.max()), -float(rows.min())))[1]
        exponent = 0 if abs(exponent) < _CALM or self.metric == "cosine" else max(exponent, -1000)
        prepared = self.prepared(rows, exponent)
        duplicates = Duplicates(prepared)
        width = min(max(self.n_neighbors, self.scale_neighbor), rows.shape[0] - 1)
        neighbours, distances, apart = nearest_neighbors(prepared, duplicates, width, map_blocks)
        scales = local_scales(distances, self.scale_neighbor)
        # Where that neighbour is a copy, the nearest row that is none; 1 where there is none either.
        scales = np.where(scales > 0, scales, np.where(np.isfinite(apart), apart, 1.0))
        near = min(self.n_neighbors, width)
        radii = distances[:, near - 1] if near else np.zeros(len(scales))
        gram = _symmetric(neighbours[:, :near], distances[:, :near], scales).astype(dtype)
        similarity = NeighborSimilarity(self, prepared, exponent, scales, radii.copy(), gram)
        vars(similarity)["_duplicates"] = duplicates  # known already
        return similarity


@dataclass(frozen=True)
class NeighborSimilarity(Similarity):
    """The training rows, how far apart rows are near each of them, and their sparse Gram matrix."""

    kernel: Annotated[NeighborGraph, PARAMETER]
    rows: Annotated[Matrix, DenseOrSparse("train", "features")]
    exponent: Annotated[int, Range(-1100, 1100)]  # the rows are kept in units of 2^exponent
    scales: Annotated[Array, FloatArray("train", above=0)]
    radii: Annotated[Array, FloatArray("train", least=0)]
    gram: Annotated[Matrix, SparseMatrix("train", "train", least=0, most=1)]

    nonnegative = True
    bounded = True
    sparse = True

    @property
    def dtype(self) -> type[np.floating[Any]]:  # type: ignore[override]
        kind: type[np.floating[Any]] = self.gram.dtype.type
        return kind

    def __call__(self, x: Matrix) -> Array:
        return as_array(self.block(x))

    def block(self, x: Matrix) -> Matrix:
        with np.errstate(over="ignore"):
            x = self._like_training(self.kernel.prepared(x, self.exponent))
        known = self._duplicates.find(x)
        new = np.flatnonzero(known < 0)
        similar = sp.vstack(
            [self._to_training(x[new]), self.gram[self._duplicates.first[known[known >= 0]]]], format="csr"
        )
        place = np.empty(x.shape[0], dtype=np.int64)
        place[np.concatenate([new, np.flatnonzero(known >= 0)])] = np.arange(x.shape[0])
        return sp.csr_array(similar)[place]

    def tile(self, rows: slice, columns: slice, out: Array) -> None:
        out[...] = self.gram[rows][:, columns].toarray()

    def training_block(self, rows: slice, n: int) -> Matrix:
        # A row that has duplicates is scored as a new row equal to it would be.
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
        """Similarities of rows that are equal to no training row."""
        n, kernel, duplicates = self.rows.shape[0], self.kernel, self._duplicates
        shape = (x.shape[0], n)
        if x.shape[0] == 0:
            return sp.csr_array(shape, dtype=self.dtype)
        width = min(max(kernel.n_neighbors, kernel.scale_neighbor), n)
        reach = self.radii[duplicates.first]
        near = self._finder.near(x, min(width, len(duplicates)), reach)
        reached = near.distances < reach[near.rows]
        pair, row = duplicates.members(near.rows, np.where(reached, n, width))
        query, distance = near.queries[pair], near.distances[pair]
        order = np.lexsort((row, distance, query))
        query, row, distance = query[order], row[order], distance[order]
        rank = rank_in_group(query)

        to_nearest = np.full((x.shape[0], width), np.inf)
        to_nearest[query[rank < width], rank[rank < width]] = distance[rank < width]
        scales = local_scales(to_nearest, kernel.scale_neighbor)
        kept = (rank < kernel.n_neighbors) | (distance < self.radii[row])
        query, row, distance = query[kept], row[kept], distance[kept]
        order = np.lexsort((row, query))  # a sum over a row is then taken in one order in any block
        query, row, distance = query[order], row[order], distance[order]
        values = similarities(distance, scales[query], self.scales[row]).astype(self.dtype)
        starts = np.searchsorted(query, np.arange(x.shape[0] + 1))
        return sp.csr_array((values, row, starts), shape=shape)


def similarities(distances: Array, scales: Array, other_scales: Array) -> Array:
    """Return exp(-d² / (s t)), with the quotients first: squares could leave the range of floats."""
    with np.errstate(over="ignore"):
        values: Array = np.exp(-(distances / scales) * (distances / other_scales))
    return values


def local_scales(distances: Array, scale_neighbor: int) -> Array:
    """Return the unit of distance near each row, from the distances of its neighbours in increasing order."""
    if distances.shape[1] == 0:
        return np.ones(len(distances))
    scales: Array = distances[:, min(scale_neighbor, distances.shape[1]) - 1].copy()
    return scales


def _symmetric(neighbours: Integers, distances: Array, scales: Array) -> Matrix:
    """The Gram matrix: similarities to the neighbours, in both directions, and 1 on the diagonal."""
    n, k = neighbours.shape
    values = similarities(distances, scales[:, None], scales[neighbours])
    columns = np.column_stack([np.arange(n), neighbours])
    entries = np.column_stack([np.ones(n), values])
    directed = sp.csr_array((entries.ravel(), columns.ravel(), np.arange(0, n * (k + 1) + 1, k + 1)), shape=(n, n))
    directed.sort_indices()
    gram = sp.csr_array(directed.maximum(directed.T.tocsr()))
    gram.sort_indices()
    return gram
