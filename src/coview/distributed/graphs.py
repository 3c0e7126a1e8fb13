"""Neighbour graphs of views whose rows are on a cluster: the same numbers as in memory, in slabs on the workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Map, Workers, serial_map
from coview.core.fingerprint import block_checksum, fingerprint_of_blocks, hashed_rows
from coview.core.gram import Grams
from coview.data.rows import column_squares, column_sums, positive_or_one, row_blocks, safe_unit, standard_deviation
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.distributed.cluster import Future, RowBlocks
from coview.distributed.exact import ClusterSearch
from coview.distributed.matrix import ClusterSparse
from coview.distributed.search import neighbor_lists
from coview.errors import InputError
from coview.kernels import AutoKernel, FuzzyGraph, Graph, GraphSimilarity, Kernel
from coview.kernels.fuzzy import FuzzySimilarity
from coview.kernels.graph import TrainingGraph, last_distances, reciprocal_deviations
from coview.kernels.self_tuning import NeighborSimilarity
from coview.neighbors.duplicates import Duplicates, Integers, fingerprints
from coview.preprocess.profile import ViewProfile, sampled_rows


class ViewsOnCluster:
    """The rows of all views on a cluster, which are released when their graphs are learnt."""

    def __init__(self, rows: Mapping[str, RowBlocks]) -> None:
        self._rows = dict(rows)

    def fingerprint(self) -> str:
        """Return the fingerprint of these views."""
        return fingerprint_of_blocks([(rows.shape, _checksums(rows)) for rows in self._rows.values()])

    def grams(
        self,
        views: Views,
        kernels: Mapping[str, Kernel],
        dtype: type[np.floating[Any]],
        rng: np.random.Generator,
        workers: Workers,
        report: Callable[[str], object],
    ) -> Grams:
        """Return the Gram matrices of these views, as `Grams.learn` does."""
        rng.integers(2**31)  # the seed of kernels that draw rows, which graphs do not
        resolved, similarities = {}, {}
        for name in views:
            rows = self._rows.pop(name)
            resolved[name] = _resolved(kernels[name], name, rows)
            similarities[name] = _similarity(resolved[name], rows, dtype, workers)
        return ClusterGrams(similarities, resolved, views.n_samples, dtype, workers, report)


@dataclass(frozen=True)
class ClusterGrams(Grams):
    """Gram matrices in slabs on a cluster."""

    def _sparse_matrix(self, name: str) -> ClusterSparse:
        similarity: Any = self.similarities[name]
        gram: ClusterSparse = similarity.gram
        return gram


class OnCluster(GraphSimilarity):
    """A similarity to training rows on a cluster. It holds a few numbers of each row; the rest is fetched."""

    not_saved: ClassVar[str] = (
        "the training rows of this model are on a cluster; coview.distributed.gather(model) brings them into this "
        "process"
    )

    def training_product(self, coefficients: Array, map_blocks: Map = serial_map) -> Array:
        product: Array = self.gram @ coefficients
        return product[self._duplicates.first[self._duplicates.of_row]]

    def gathered(self) -> GraphSimilarity:
        """Return the same similarity with the training rows in this process."""
        rows: Any = self.rows
        training = self._training._replace(
            rows=np.concatenate(rows.cluster.gather(rows.blocks)), gram=self.gram.gathered()
        )
        return self.kernel.similarity(training)

    @property
    def nbytes(self) -> int:
        """The memory of the training rows and their graph."""
        n, width = self.rows.shape
        return int(n * (8 * width + (2 * self.kernel.n_neighbors + 1) * (4 + self.gram.dtype.itemsize)))

    @property
    def _training(self) -> TrainingGraph:
        found: TrainingGraph = vars(self)["_graph"]
        return found

    def __reduce__(self) -> Any:
        raise InputError(self.not_saved)


class NeighborsOnCluster(OnCluster, NeighborSimilarity):
    """A self-tuning graph on a cluster."""


class FuzzyOnCluster(OnCluster, FuzzySimilarity):
    """A fuzzy graph on a cluster."""


def on_cluster(kernel: Graph, training: TrainingGraph, duplicates: Duplicates) -> OnCluster:
    """Return the similarity to these training rows, which are on a cluster."""
    plain = kernel.similarity(training)
    cls = FuzzyOnCluster if isinstance(kernel, FuzzyGraph) else NeighborsOnCluster
    similarity = cls(**vars(plain))
    search = ClusterSearch(training.rows, duplicates)
    vars(similarity).update(_graph=training, _duplicates=duplicates, _finder=search)
    return similarity


def _resolved(kernel: Kernel, name: str, rows: RowBlocks) -> Graph:
    """Return the graph of a view, as `resolve` does in memory, after its training rows are checked."""
    if isinstance(kernel, AutoKernel):
        n_nonzero, smallest = zip(*rows.cluster.gather(rows.map(_nonzero_and_smallest)), strict=True)
        some = rows.take(np.arange(rows.shape[0])[sampled_rows(rows.shape[0])])
        profile = ViewProfile.from_counts(rows.shape, sum(n_nonzero), min(smallest), some)
        return kernel.choose(profile, lambda graph: _has_no_distances(graph, rows))
    assert isinstance(kernel, Graph)
    if _has_no_distances(kernel, rows):
        kernel.refuse_constant(name, rows.shape[0])
    return kernel


def _has_no_distances(kernel: Graph, rows: RowBlocks) -> bool:
    """Return whether all distances between rows are 0; the first block mostly shows that they are not."""
    scales = _column_scales(kernel, rows)
    first = kernel.normalized(rows.take(np.arange(1)), scales)
    return all(
        rows.cluster.gather([rows.cluster.submit(_all_equal, block, kernel, scales, first)])[0] for block in rows.blocks
    )


def _column_scales(kernel: Graph, rows: RowBlocks) -> Array:
    """Return by what columns are multiplied, with the sums in the same order as in memory."""
    if kernel.metric == "cosine":
        return np.ones(1)
    largest = np.max(rows.cluster.gather(rows.map(_largest_of_columns)), axis=0)
    if kernel.metric == "euclidean":
        return np.array([safe_unit(float(largest.max()))])
    n, width = rows.shape
    unit = positive_or_one(largest)
    blocks = [rows.range(some) for some in row_blocks(n, width)]

    def total(function: Callable[..., Array], *inputs: Array) -> Array:
        sums = rows.cluster.gather([rows.cluster.submit(function, block, *inputs) for block in blocks])
        return sum(sums, start=np.zeros(width))

    mean = total(column_sums, unit) / n
    squares = total(column_squares, unit, mean)
    return reciprocal_deviations(standard_deviation(squares, mean, n, 0) * unit)


def _similarity(kernel: Graph, raw: RowBlocks, dtype: type[np.floating[Any]], workers: Workers) -> GraphSimilarity:
    """Return the similarity to training rows that stay on the cluster, as `Graph.against` does in memory."""
    cluster, places = raw.cluster, raw.places
    scales = _column_scales(kernel, raw)
    rows = raw._replace(blocks=raw.map(_normalized, kernel, scales))
    duplicates = Duplicates.of_fingerprints(np.concatenate(cluster.gather(rows.map(fingerprints))))
    n = rows.shape[0]
    # If all rows are equal, none is nearer than another, and the graph has no edges.
    width = min(kernel.n_distances, n - 1) if len(duplicates) > 1 else 0
    near = neighbor_lists(rows, duplicates, width, kernel.recall, workers.map)

    def all_rows(parts: list[Future]) -> Array:
        return np.concatenate(cluster.gather(parts))

    local_scales = all_rows([cluster.submit(kernel.local_scales, lists) for lists in near])
    radii = all_rows([cluster.submit(last_distances, lists, kernel.n_neighbors) for lists in near])
    shared = cluster.share(radii)
    closeness = all_rows([cluster.submit(kernel.own_closeness, lists, shared) for lists in near])
    shared = cluster.share(local_scales)
    directed = [
        cluster.submit(kernel.directed, lists, place.start, shared) for lists, place in zip(near, places, strict=True)
    ]
    weights = [
        cluster.submit(
            _symmetric, kernel, directed[c], place.start, *(cluster.submit(_towards, slab, place) for slab in directed)
        )
        for c, place in enumerate(places)
    ]
    degrees = all_rows([cluster.submit(_slab_degrees, slab) for slab in weights])
    shared = cluster.share(degrees)
    slabs = [
        cluster.submit(_similarities, kernel, slab, place.start, shared, dtype)
        for slab, place in zip(weights, places, strict=True)
    ]
    gram = ClusterSparse(cluster, slabs, places, dtype, workers)
    training = TrainingGraph(rows, scales, gram, radii, closeness, local_scales, degrees)
    return on_cluster(kernel, training, duplicates)


def _checksums(rows: RowBlocks) -> list[tuple[int, int]]:
    """Return the checksums of blocks from which the fingerprint of the views follows."""
    hashed = hashed_rows(*rows.shape)
    cuts = np.searchsorted(hashed, [[place.start, place.stop] for place in rows.places])
    return rows.cluster.gather(
        rows.cluster.submit(_checksum, block, hashed[start:stop] - place.start)
        for block, place, (start, stop) in zip(rows.blocks, rows.places, cuts, strict=True)
        if start < stop
    )


def _checksum(block: Array, numbers: Integers) -> tuple[int, int]:
    return block_checksum(block[numbers])


def _nonzero_and_smallest(block: Array) -> tuple[int, float]:
    return int(np.count_nonzero(block)), float(block.min(initial=0))


def _largest_of_columns(block: Array) -> Array:
    return np.maximum(block.max(axis=0), -block.min(axis=0)).astype(np.float64)


def _normalized(block: Array, kernel: Graph, scales: Array) -> Array:
    normalized: Array = kernel.normalized(block, scales)
    return normalized


def _all_equal(block: Array, kernel: Graph, scales: Array, first: Array) -> bool:
    return kernel.all_equal(first, kernel.normalized(block, scales))


def _towards(directed: Matrix, columns: slice) -> Matrix:
    """Return the weights from a slab of rows to a range of rows, transposed."""
    return directed[:, columns].T.tocsr()


def _symmetric(kernel: Graph, there: Matrix, first_row: int, *back: Matrix) -> Matrix:
    return kernel.symmetric(there, sp.csr_array(sp.hstack(back, format="csr")), first_row)


def _slab_degrees(weights: Matrix) -> Array:
    sums: Array = weights.sum(axis=1)
    return sums


def _similarities(
    kernel: Graph, weights: Matrix, first_row: int, degrees: Array, dtype: type[np.floating[Any]]
) -> Matrix:
    # A copy, because the results of other tasks must not change.
    return kernel.normalize(weights.copy(), first_row, degrees).astype(dtype)
