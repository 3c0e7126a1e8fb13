"""Neighbour graphs as kernels: what they share. Only near neighbours are similar, and Gram matrices are sparse."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from coview.base.parameters import check_above
from coview.base.runtime import Map, serial_map
from coview.data.rows import as_array, column_statistics, l2_normalize, largest_value, safe_unit, stored_like
from coview.data.view import Array, Matrix
from coview.errors import InputError
from coview.kernels.base import Kernel, Similarity, check_integer_parameter
from coview.neighbors.blocks import Blocks
from coview.neighbors.duplicates import Duplicates, Integers, fingerprints
from coview.neighbors.exact import ExactSearch, rank_in_group, sort_pairs
from coview.neighbors.nearest import Neighbors, neighbor_lists

_METRICS = ("euclidean", "cosine", "seuclidean")
_SAME_DIRECTION = 1e-12  # 1 less a cosine: a smaller difference may be a rounding error
_LEAST_DEVIATION = 1e-308  # the reciprocal of a smaller one is not a number of float64


class Graph(Kernel):
    """A kernel that is zero unless one of two rows is among the `n_neighbors` nearest rows of the other."""

    n_neighbors: int
    metric: str
    recall: float

    bounded = True
    sparse = True
    bandwidth = "n_neighbors"

    def __post_init__(self) -> None:
        check_search_parameters(self)
        if self.metric not in _METRICS:
            raise InputError(f"{type(self).__name__}.metric={self.metric!r}: expected one of {', '.join(_METRICS)}")

    @property
    def n_distances(self) -> int:
        """The number of nearest rows whose distances determine the similarities of a row."""
        return self.n_neighbors

    # The Gram matrix in four steps, each for a slab of rows, so that slabs can be on several machines.

    @abstractmethod
    def local_scales(self, near: Neighbors) -> Array:
        """Return one or two numbers of each row by which its distances are scaled, (rows, numbers)."""

    @abstractmethod
    def directed(self, near: Neighbors, first_row: int, scales: Array) -> Matrix:
        """Return the weights from a slab of rows to their neighbours, given the local scales of all rows."""

    @abstractmethod
    def symmetric(self, there: Matrix, back: Matrix, first_row: int) -> Matrix:
        """Return the weights of a slab of rows, from the directed weights from and to these rows."""

    def normalize(self, weights: Matrix, first_row: int, degrees: Array) -> Matrix:
        """Return the similarities of a slab of rows, from the weights."""
        return weights

    def own_closeness(self, near: Neighbors, radii: Array) -> Array:
        """Return the closeness of a slab of rows to the others, given the radii of all rows."""
        return closeness_to(near.distances[:, : self.n_neighbors], radii[near.rows[:, : self.n_neighbors]])

    @abstractmethod
    def similarity(self, training: TrainingGraph) -> GraphSimilarity:
        """Return the similarity to training rows with this graph."""

    def on_common_scale(self) -> Kernel:
        return replace(self, metric="euclidean") if self.metric == "seuclidean" else self  # type: ignore[type-var]

    def check_training(self, name: str, x: Matrix, dtype: type[np.floating[Any]] = np.float64) -> None:
        if x.shape[0] > 1 and self.is_constant(x):
            self.refuse_constant(name, x.shape[0])

    def refuse_constant(self, name: str, n: int) -> None:
        """Raise the error of a view in which all distances are 0."""
        raise InputError(
            f"view {name!r} has the same values in all of its {n} samples under {self}; drop the view, because no "
            "sample is nearer than another"
        )

    def is_constant(self, x: Matrix) -> bool:
        """Return whether all distances between rows are 0."""
        scales = self.column_scales(x)
        first, start = self.normalized(x[:1], scales), 1
        while start < x.shape[0]:  # the first rows mostly differ already
            if not self.all_equal(first, self.normalized(x[start : 2 * start], scales)):
                return False
            start *= 2
        return True

    def all_equal(self, first: Matrix, rows: Matrix) -> bool:
        """Return whether normalised rows are equal to the first one; under cosine, multiples are, up to rounding."""
        if self.metric == "cosine" and abs(first).max() > 0:
            return bool((as_array(rows @ first.T) > 1 - _SAME_DIRECTION).all())
        return bool((fingerprints(rows) == fingerprints(first)).all())

    def column_scales(self, rows: Matrix) -> Array:
        """Return by what columns are multiplied: one number for all, or for "seuclidean" one for each column.

        It is 0 for a constant column, as if columns are standardised: new rows do not differ in it either.
        """
        if self.metric == "seuclidean":
            return reciprocal_deviations(column_statistics(rows, ddof=0)[1])
        return np.array([1.0 if self.metric == "cosine" else safe_unit(largest_value(rows))])

    def normalized(self, x: Matrix, scales: Array) -> Matrix:
        """Return a copy of the rows whose Euclidean distances are compared: L2-normalised, or in other units."""
        if self.metric == "cosine":
            return l2_normalize(x)
        rows = x.copy()  # in C order
        if (scales == 1).all():
            return rows
        rows = rows.astype(np.float64, copy=False)
        if not sp.issparse(rows):
            return rows * scales
        rows.data *= scales[rows.indices] if len(scales) > 1 else scales
        return rows

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> GraphSimilarity:
        scales = self.column_scales(rows)
        normalized = self.normalized(rows, scales)
        training, duplicates = self.training_graph(Blocks.of(normalized, map_blocks), scales, dtype, sp.issparse(rows))
        similarity = self.similarity(training._replace(rows=normalized, gram=training.gram.blocks[0]))
        vars(similarity)["_duplicates"] = duplicates  # already computed
        return similarity

    def training_graph(
        self, rows: Blocks, scales: Array, dtype: type[np.floating[Any]], sparse: bool = False
    ) -> tuple[TrainingGraph, Duplicates]:
        """Return the graph of normalised rows, with the Gram matrix in slabs, and the duplicates of the rows."""
        tasks, n = rows.tasks, rows.shape[0]
        duplicates = Duplicates.of_fingerprints(rows.converted(fingerprints).gathered())
        # If all rows are equal, none is nearer than another, and the graph has no edges.
        width = min(self.n_distances, n - 1) if len(duplicates) > 1 else 0
        near = neighbor_lists(rows, duplicates, width, self.recall, sparse)
        local_scales = near.converted(self.local_scales).gathered()
        radii = near.converted(last_distances, self.n_neighbors).gathered()
        closeness = near.converted(self.own_closeness, tasks.share(radii)).gathered()
        directed = near.converted_with_places(self.directed, tasks.share(local_scales))
        weights = rows._replace(
            blocks=[
                tasks.submit(_symmetric, self, slab, place, *directed.results(_towards, place))
                for slab, place in zip(directed.blocks, rows.places, strict=True)
            ],
            width=n,
        )
        degrees = weights.converted(_row_sums).gathered()
        gram = weights.converted_with_places(self.normalize, tasks.share(degrees)).converted(_as_dtype, dtype)
        return TrainingGraph(rows, scales, gram, radii, closeness, local_scales, degrees), duplicates


class TrainingGraph(NamedTuple):
    """The training rows of a view with their graph, and a few numbers of each row."""

    rows: Any  # normalised, in memory or in blocks
    scales: Array  # factors of the columns
    gram: Any  # in memory or in slabs
    radii: Array
    closeness: Array
    local_scales: Array
    degrees: Array


class NearPairs(NamedTuple):
    """Pairs of new and training rows, of which one is near the other, in the order of the new rows."""

    new: Integers
    training: Integers
    distances: Array
    near_new: Array  # whether the training row is among the neighbours of the new row
    near_training: Array  # whether the new row is nearer to the training row than its last neighbour
    to_nearest: Array  # distances of each new row to its nearest training rows, infinite if there are fewer


@dataclass(frozen=True)
class GraphSimilarity(Similarity):
    """The training rows with the distances to their last neighbours, and the Gram matrix."""

    kernel: Graph
    rows: Matrix
    scales: Array  # factors of the columns, one for all or for each
    radii: Array
    gram: Matrix
    own_closeness: Array  # of the training rows to the others

    nonnegative = True
    bounded = True
    sparse = True

    @property
    def dtype(self) -> type[np.floating[Any]]:  # type: ignore[override]
        return self.gram.dtype.type

    @property
    def informative(self) -> bool:  # type: ignore[override]
        return len(self._duplicates) > 1

    @abstractmethod
    def _values(self, pairs: NearPairs, n_new: int) -> Array:
        """Return the similarities of pairs of new and training rows."""

    def __call__(self, x: Matrix) -> Array:
        return as_array(self.block(x))

    def block(self, x: Matrix) -> Matrix:
        with np.errstate(over="ignore"):
            x = self.kernel.normalized(stored_like(self.rows, x), self.scales)
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

    def closeness(self, x: Matrix) -> Array:
        with np.errstate(over="ignore"):
            x = self.kernel.normalized(stored_like(self.rows, x), self.scales)
        equal = self._duplicates.find(x)
        new = np.flatnonzero(equal < 0)
        closeness = self.own_closeness[self._duplicates.first[equal]]
        closeness[new] = 0.0  # of rows that are too far away to have neighbours
        if len(new):
            k = min(self.kernel.n_neighbors, self.rows.shape[0])
            near = self._finder.near(x[new], min(k, len(self._duplicates)))
            pair, row = self._duplicates.members(near.rows, k)
            query, row, distance = sort_pairs(near.queries[pair], row, near.distances[pair])
            nearest = np.flatnonzero(rank_in_group(query) < k).reshape(-1, k)  # all or none of a query
            closeness[new[query[nearest[:, 0]]]] = closeness_to(distance[nearest], self.radii[row[nearest]])
        return closeness

    def training_closeness(self, rows: Integers) -> Array:
        return self.own_closeness[rows]

    @cached_property
    def _duplicates(self) -> Duplicates:
        return Duplicates(self.rows)

    @cached_property
    def _finder(self) -> ExactSearch:
        return ExactSearch(self.rows if self._duplicates.all_distinct else self.rows[self._duplicates.first])

    def _to_training(self, x: Matrix) -> Matrix:
        """Return the similarities of rows that are not equal to any training row."""
        n, duplicates = self.rows.shape[0], self._duplicates
        shape = (x.shape[0], n)
        if x.shape[0] == 0:
            return sp.csr_array(shape, dtype=self.dtype)
        width = min(self.kernel.n_distances, n)
        reach = self.radii[duplicates.first]
        near = self._finder.near(x, min(width, len(duplicates)), reach)
        reached = near.distances < reach[near.rows]
        pair, row = duplicates.members(near.rows, np.where(reached, n, width))
        query, row, distance = sort_pairs(near.queries[pair], row, near.distances[pair])
        rank = rank_in_group(query)

        to_nearest = np.full((x.shape[0], width), np.inf)
        to_nearest[query[rank < width], rank[rank < width]] = distance[rank < width]
        near_new, near_training = rank < self.kernel.n_neighbors, distance < self.radii[row]
        kept = np.flatnonzero(near_new | near_training)
        kept = kept[np.lexsort((row[kept], query[kept]))]  # sums over a row then have the same order in any block
        pairs = NearPairs(query[kept], row[kept], distance[kept], near_new[kept], near_training[kept], to_nearest)
        values = self._values(pairs, x.shape[0]).astype(self.dtype)
        starts = np.searchsorted(pairs.new, np.arange(x.shape[0] + 1))
        return sp.csr_array((values, pairs.training, starts), shape=shape)


def check_search_parameters(kernel: Any) -> None:
    """Check the number of neighbours of a kernel and the part of them to find, or raise an InputError."""
    check_integer_parameter(kernel, "n_neighbors")
    recall = check_above(f"{type(kernel).__name__}.recall", kernel.recall, bound=0, most=1)
    object.__setattr__(kernel, "recall", recall)


def reciprocal_deviations(deviations: Array) -> Array:
    """Return the factors that standardise columns with these standard deviations, infinite for constant columns."""
    return np.asarray(1 / deviations.clip(_LEAST_DEVIATION))


def closeness_to(distances: Array, radii: Array) -> Array:
    """Return the mean of r / (r + d) over the nearest training rows, at distances d; (rows, neighbours) each.

    The radius r of a training row is the distance to the last of its own neighbours, so that a row in a sparse region
    is as close as one in a dense region. A row far away from all others has 0, and duplicates have 1.
    """
    if distances.shape[1] == 0:
        return np.ones(len(distances))
    sums = distances + radii
    means: Array = np.divide(radii, sums, out=np.ones_like(sums), where=sums > 0).mean(axis=1)
    return means


def directed_graph(neighbours: Integers, values: Array, diagonal: float, first_row: int, n: int) -> Matrix:
    """Return the values of a slab of rows at the columns of their neighbours among n rows, and on the diagonal."""
    height, k = neighbours.shape
    columns = np.column_stack([np.arange(first_row, first_row + height), neighbours])
    entries = np.column_stack([np.full(height, diagonal), values])
    starts = np.arange(0, height * (k + 1) + 1, k + 1)
    directed = sp.csr_array((entries.ravel(), columns.ravel(), starts), shape=(height, n))
    directed.sort_indices()
    return directed


def _towards(directed: Matrix, columns: slice) -> Matrix:
    """Return the weights from a slab of rows to a range of rows, transposed."""
    return directed[:, columns].T.tocsr()


def _symmetric(kernel: Graph, there: Matrix, own: slice, *back: Matrix) -> Matrix:
    whole = back[0] if len(back) == 1 else sp.csr_array(sp.hstack(back, format="csr"))
    return kernel.symmetric(there, whole, own.start)


def _row_sums(weights: Matrix) -> Array:
    sums: Array = weights.sum(axis=1)
    return sums


def _as_dtype(similarities: Matrix, dtype: type[np.floating[Any]]) -> Matrix:
    return similarities.astype(dtype)


def last_distances(near: Neighbors, n_neighbors: int) -> Array:
    """Return the distance of each row to the last of its neighbours; 0 if it has none."""
    count = min(n_neighbors, near.distances.shape[1])
    return near.distances[:, count - 1].copy() if count else np.zeros(len(near.distances))
