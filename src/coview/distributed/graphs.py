"""Neighbour graphs of views whose rows are on a cluster: the same numbers as in memory, in slabs on the workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from coview.base.runtime import Map, Workers, serial_map
from coview.core.fingerprint import block_checksum, fingerprint_of_blocks, hashed_rows
from coview.core.gram import Grams
from coview.data.rows import column_squares, column_sums, positive_or_one, row_blocks, safe_unit, standard_deviation
from coview.data.view import Array
from coview.data.views import Views
from coview.distributed.cluster import DaskCluster
from coview.distributed.matrix import ClusterSparse
from coview.errors import InputError
from coview.kernels import AutoKernel, FuzzyGraph, Graph, GraphSimilarity, Kernel
from coview.kernels.fuzzy import FuzzySimilarity
from coview.kernels.graph import TrainingGraph, reciprocal_deviations
from coview.kernels.self_tuning import NeighborSimilarity
from coview.neighbors.blocks import Blocks
from coview.neighbors.duplicates import Duplicates, Integers
from coview.neighbors.exact import Frame, Pairs
from coview.preprocess.profile import ViewProfile, sampled_rows


class ViewsOnCluster:
    """The rows of all views on a cluster, which are released when their graphs are learnt."""

    def __init__(self, rows: Mapping[str, Blocks], cluster: DaskCluster) -> None:
        self._rows, self._cluster = dict(rows), cluster

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
            similarities[name] = _similarity(resolved[name], rows, self._cluster, dtype, workers)
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
        training = self._training._replace(rows=self._training.rows.gathered(), gram=self.gram.gathered())
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


class _RowSearch:
    """Search among the distinct rows for the nearest neighbours of new rows, as `ExactSearch` in memory.

    Searches are about as large as the rows, so they exist only while they are used.
    """

    def __init__(self, rows: Blocks, duplicates: Duplicates) -> None:
        self._all, self._duplicates = rows, duplicates

    @cached_property
    def _rows(self) -> Blocks:
        return self._all.distinct(self._duplicates)

    @cached_property
    def _frame(self) -> Frame | None:
        return self._rows.frame()

    def near(self, x: Array, k: int, reach: Array | None = None) -> Pairs:
        """Return the rows no further from a row of x than its k-th nearest row, and those that have x within reach."""
        return self._rows.searches(self._frame).near(x, k, reach)


def _resolved(kernel: Kernel, name: str, rows: Blocks) -> Graph:
    """Return the graph of a view, as `resolve` does in memory, after its training rows are checked."""
    if isinstance(kernel, AutoKernel):
        n_nonzero, smallest = zip(*rows.tasks.gather(rows.results(_nonzero_and_smallest)), strict=True)
        some = rows.take(np.arange(rows.shape[0])[sampled_rows(rows.shape[0])])
        profile = ViewProfile.from_counts(rows.shape, sum(n_nonzero), min(smallest), some)
        return kernel.choose(profile, lambda graph: _has_no_distances(graph, rows))
    assert isinstance(kernel, Graph)
    if _has_no_distances(kernel, rows):
        kernel.refuse_constant(name, rows.shape[0])
    return kernel


def _has_no_distances(kernel: Graph, rows: Blocks) -> bool:
    """Return whether all distances between rows are 0; the first block mostly shows that they are not."""
    scales = _column_scales(kernel, rows)
    first = kernel.normalized(rows.take(np.arange(1)), scales)
    tasks = rows.tasks
    return all(tasks.gather([tasks.submit(_all_equal, block, kernel, scales, first)])[0] for block in rows.blocks)


def _column_scales(kernel: Graph, rows: Blocks) -> Array:
    """Return by what columns are multiplied, with the sums in the same order as in memory."""
    if kernel.metric == "cosine":
        return np.ones(1)
    largest = np.max(rows.tasks.gather(rows.results(_largest_of_columns)), axis=0)
    if kernel.metric == "euclidean":
        return np.array([safe_unit(float(largest.max()))])
    n, width = rows.shape
    unit = positive_or_one(largest)
    blocks = rows.in_blocks([some.stop - some.start for some in row_blocks(n, width)])

    def total(function: Callable[..., Array], *inputs: Array) -> Array:
        return sum(rows.tasks.gather(blocks.results(function, *inputs)), start=np.zeros(width))

    mean = total(column_sums, unit) / n
    squares = total(column_squares, unit, mean)
    return reciprocal_deviations(standard_deviation(squares, mean, n, 0) * unit)


def _similarity(
    kernel: Graph, raw: Blocks, cluster: DaskCluster, dtype: type[np.floating[Any]], workers: Workers
) -> GraphSimilarity:
    """Return the similarity to training rows that stay on the cluster, as `Graph.against` does in memory."""
    raw = raw._replace(tasks=cluster.with_threads(workers.map))
    scales = _column_scales(kernel, raw)
    training, duplicates = kernel.training_graph(raw.converted(_normalized, kernel, scales), scales, dtype)
    training = training._replace(gram=ClusterSparse(training.gram, dtype, workers))
    cls = FuzzyOnCluster if isinstance(kernel, FuzzyGraph) else NeighborsOnCluster
    similarity = cls(**vars(kernel.similarity(training)))
    vars(similarity).update(_graph=training, _duplicates=duplicates, _finder=_RowSearch(training.rows, duplicates))
    return similarity


def _checksums(rows: Blocks) -> list[tuple[int, int]]:
    """Return the checksums of blocks from which the fingerprint of the views follows."""
    hashed = hashed_rows(*rows.shape)
    cuts = np.searchsorted(hashed, [[place.start, place.stop] for place in rows.places])
    return rows.tasks.gather(
        rows.tasks.submit(_checksum, block, hashed[start:stop] - place.start)
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
