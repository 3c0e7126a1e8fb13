"""Neighbour graphs of representations, and random walks on sums of these, also from new samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Workers
from coview.core.eigen import Problem, top_eigenpairs
from coview.core.sparse import PlusLowRank, SymmetricSparse
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.evaluate.representations import Representation
from coview.kernels import FuzzyGraph
from coview.kernels.fuzzy import FuzzySimilarity

_TOLERANCE = 1e-2  # of components, which k-means reads
_LEAST_EIGENVALUE = 0.05  # in a division: components of smaller eigenvalues are not determined by neighbours


class Rows(NamedTuple):
    """Some samples in one representation: the rows of those that have it, and similarities to training samples."""

    table: Matrix  # of the samples that are represented
    present: Array  # (n_samples,) which samples these are
    similarities: Matrix  # (n_samples, n_training), with empty rows for the others


@dataclass(frozen=True)
class RepresentationGraph:
    """The neighbour graph of the training samples in one representation, which new samples can be added to."""

    representation: Representation
    similarity: FuzzySimilarity
    training_rows: Array
    n_training: int

    @classmethod
    def learn(cls, views: Views, steps: Mapping[str, str], workers: Workers) -> RepresentationGraph:
        """Return the graph of these views after these preprocessing steps."""
        representation = Representation.learn(views, steps)
        similarity = FuzzyGraph().against(representation(views), map_blocks=workers.map)
        assert isinstance(similarity, FuzzySimilarity)
        # A new sample has no edge to itself. Without those of training samples, the components of a sample follow
        # from its edges in the same way for both.
        others = similarity.gram.copy()
        others.setdiag(0.0)
        others.eliminate_zeros()
        rows = np.flatnonzero(representation.has(views))
        return cls(representation, replace(similarity, gram=others), rows, views.n_samples)

    @property
    def views(self) -> tuple[str, ...]:
        """The views that are represented."""
        return tuple(self.representation.preprocessing)

    def adjacency(self) -> Matrix:
        """Return the symmetric similarities of the training samples; rows of those not represented are empty."""
        return self._placed(self.similarity.gram, self.training_rows, self.n_training)

    def of_training(self, views: Views) -> Rows:
        """Return the training samples as `of` returns them: duplicates have the similarities of the first of them."""
        return Rows(self.representation(views), self.representation.has(views), self.training_similarities())

    def training_similarities(self) -> Matrix:
        """Return the similarities of the training samples, as `of` returns them."""
        n = len(self.training_rows)
        block = self.similarity.training_block(slice(0, n), n)
        return self._placed(block, self.training_rows, self.n_training)

    def of(self, views: Views) -> Rows:
        """Return samples with their similarities to the training samples."""
        table, present = self.representation(views), self.representation.has(views)
        block = self.similarity.block(table) if table.shape[0] else sp.csr_array((0, len(self.training_rows)))
        return Rows(table, present, self._placed(block, np.flatnonzero(present), views.n_samples))

    def _placed(self, block: Matrix, rows: Array, n_rows: int) -> Matrix:
        """Return a sparse matrix with rows for all samples and columns for all training samples."""
        if len(rows) == n_rows and len(self.training_rows) == self.n_training:
            return block
        counts = np.zeros(n_rows, dtype=np.int64)
        counts[rows] = np.diff(block.indptr)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return sp.csr_array((block.data, self.training_rows[block.indices], starts), shape=(n_rows, self.n_training))


@dataclass(frozen=True)
class Walk:
    """A random walk between the training samples along the weighted sum of several graphs, by its eigenvectors.

    The eigenvector of the eigenvalue 1 that is constant is left out.
    """

    weights: tuple[float, ...]
    eigenvalues: Array
    vectors: Array  # in units in which the constant vector has entries 1

    @classmethod
    def learn(
        cls, adjacencies: Sequence[Matrix], n_components: int, weights: Sequence[float], workers: Workers
    ) -> Walk:
        """Return the walk on the weighted sum of these graphs."""
        graph = weighted_sum(weights, adjacencies)
        degrees = graph.sum(axis=1)
        roots = np.sqrt(degrees)
        reciprocal = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
        graph.data *= np.repeat(reciprocal, np.diff(graph.indptr)) * reciprocal[graph.indices]
        constant = roots / np.sqrt(degrees.sum())
        # Its eigenvalue becomes -1, the least: of several of 1, as in a graph of several parts, any could be first.
        matrix = PlusLowRank(SymmetricSparse.of(graph.astype(np.float32), workers), constant[:, None], -2 * np.eye(1))
        # The last of many components are not determined if eigenvalues are nearly equal, and any of them will do.
        pairs = top_eigenpairs(Problem.of(matrix, tolerance=_TOLERANCE), min(n_components, len(degrees) - 1))
        vectors = pairs.vectors * (reciprocal * np.sqrt(degrees.sum()))[:, None]
        return cls(tuple(weights), pairs.values, vectors)

    def first(self, n_components: int) -> Walk:
        """Return the walk with fewer components."""
        return replace(self, eigenvalues=self.eigenvalues[:n_components], vectors=self.vectors[:, :n_components])

    def steps(self, similarities: Sequence[Matrix]) -> Matrix:
        """Return the probabilities of one step from samples to training samples; rows without edges are empty.

        Similarities are those in all graphs.
        """
        graph = weighted_sum(self.weights, similarities)
        sums = graph.sum(axis=1)
        graph.data /= np.repeat(np.where(sums > 0, sums, 1.0), np.diff(graph.indptr))
        return graph

    def components(self, steps: Matrix) -> Array:
        """Return the components of samples, given their steps (Nyström); training samples have their own vectors,
        up to rounding, where the eigenvalue is above 0.05.
        """
        components: Array = (steps @ self.vectors) / np.maximum(self.eigenvalues, _LEAST_EIGENVALUE)
        return components


def weighted_sum(weights: Sequence[float], graphs: Sequence[Matrix]) -> Matrix:
    """Return the sum of some graphs in memory of its own; indices are sorted, so that sums over rows have one order."""
    total = sum(weight * graph for weight, graph in zip(weights, graphs, strict=True) if weight > 0)
    total = sp.csr_array(total)
    total.sort_indices()
    return total
