"""OPLFMVC: one-pass late fusion multi-view clustering."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coview.core.alternate import Alternation, alternate, steady
from coview.core.assign import Directions, Labels
from coview.core.eigen import Problem, top_eigenpairs
from coview.core.gram import Centering, Gram, Grams, learn_similarities
from coview.core.linalg import polar
from coview.core.tiles import SymmetricTiles
from coview.errors import InputError
from coview.kernels import RBF, Kernel, kernel_per_view
from coview.methods.base import MultiViewClusterer
from coview.runtime import Workers, require_memory
from coview.views import Array


@dataclass(frozen=True)
class Fused:
    """The unknowns of the fusion.

    Attributes
    ----------
    labels : (samples,), Y as the number of each row's one
    centres : (clusters, k), C, orthonormal rows
    weights : (views,), β, of length 1
    rotations : (views, k, k), W_p, orthogonal
    partition : (samples, k), M = Σ_p β_p H_p W_p
    """

    labels: Labels
    centres: Array
    weights: Array
    rotations: Array
    partition: Array


def centred_unit_diagonal(gram: Gram) -> SymmetricTiles:
    """Centre the Gram matrix and scale it to ones on the diagonal, in place.

    A sample that centring leaves nothing of but rounding, as it does of every sample of a constant view, becomes
    similar to none: scaled up, the rounding would look like any other similarity.
    """
    matrix, n = gram.matrix, len(gram.degree)
    centering = Centering.learn(matrix, weights=np.ones(n))
    matrix.for_each(lambda t, rows, columns: centering.centre(matrix.tiles[t], rows, columns))
    diagonal = matrix.diagonal()
    negative = np.count_nonzero(diagonal < -gram.rounding_error)
    if negative:
        raise InputError(
            f"view {gram.name!r} has {negative} of {n} samples with a negative self-similarity after centring under "
            f"{gram.kernel}; use a positive semi-definite kernel such as RBF()"
        )
    something = diagonal > gram.rounding_error
    scale = np.where(something, 1 / np.sqrt(np.where(something, diagonal, 1.0)), 0.0)
    tiles: SymmetricTiles = matrix.scale_both_sides(scale)
    return tiles


def base_partitions(grams: Grams, k: int) -> tuple[Array, Array]:
    """Return H_p of every view, (views, samples, k), and that of the views' average kernel.

    Each holds k leading eigenvectors, the answer of kernel k-means without its discrete constraint.
    """
    total = SymmetricTiles(grams.n_samples, grams.dtype, grams.workers)
    for tile in total.tiles:
        tile.fill(0)
    partitions = []
    for gram in grams:
        kernel = centred_unit_diagonal(gram)
        partitions.append(leading_eigenvectors(kernel, k))
        for mine, tile in zip(total.tiles, kernel.tiles, strict=True):
            mine += tile
    return np.stack(partitions), leading_eigenvectors(total, k)


def leading_eigenvectors(kernel: SymmetricTiles, k: int) -> Array:
    """Return k eigenvectors as columns; those of eigenvalue zero are zero, and signs are fixed."""
    return top_eigenpairs(Problem(kernel, exponent=0, trace=float(kernel.diagonal().sum())), k).vectors


def aligned_start(partitions: Array, average: Array, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return rotations W_p that turn every H_p towards the average kernel's partition, and its clusters' centres C.

    The paper starts from W_p = I, so that its first labels hang on the signs that the eigensolver happens to give.
    One start is better than the best of many: the objective rewards clusters of equal size, and from random centres
    it can climb higher by cutting up clusters that lie well apart.
    """
    centres = Directions().fit(average, k, rng).centres
    # The orthogonal matrix nearest to the centres; an orthonormal basis of their span would be turned away from them.
    return polar(partitions.transpose(0, 2, 1) @ average), polar(centres)


def fuse(partitions: Array, rotations: Array, weights: Array) -> Array:
    """Return M = Σ_p β_p H_p W_p."""
    fused: Array = (partitions @ (weights[:, None, None] * rotations)).sum(axis=0)
    return fused


def view_weights(agreement: Array, before: Array) -> Array:
    """Return the β ≥ 0 of length 1 that is best for these agreements; as before if no view agrees at all."""
    positive = agreement.clip(min=0)
    length = np.linalg.norm(positive)
    return positive / length if length > 0 else before


def fusion_round(partitions: Array, state: Fused) -> tuple[Fused, float]:
    """Improve labels, centres, weights and rotations in turn; the objective is tr((Y C)ᵀ M)."""
    labels: Labels = (state.partition @ state.centres.T).argmax(axis=1)
    members = np.eye(len(state.centres))[labels]
    centres = polar(members.T @ state.partition)
    target = centres[labels]
    overlaps = partitions.transpose(0, 2, 1) @ target
    weights = view_weights((overlaps * state.rotations).sum(axis=(1, 2)), state.weights)
    rotations = polar(overlaps)
    partition = fuse(partitions, rotations, weights)
    return Fused(labels, centres, weights, rotations, partition), float((target * partition).sum())


def late_fusion(
    partitions: Array, rotations: Array, centres: Array, *, max_iter: int = 100, tol: float = 1e-4
) -> Alternation[Fused]:
    """Fuse base partitions (views, samples, k) from these rotations and centres on, linear in the samples."""
    weights = np.full(len(partitions), 1 / np.sqrt(len(partitions)))
    labels = np.zeros(partitions.shape[1], dtype=np.int64)  # the first thing that a round finds
    start = Fused(labels, centres, weights, rotations, fuse(partitions, rotations, weights))
    return alternate(partial(fusion_round, partitions), start, max_iter=max_iter, settled=steady(tol, at_least=3))


class OPLFMVC(MultiViewClusterer):
    """Cluster several views by fusing their own kernel k-means partitions, with labels straight from the fusion.

    With H_p the leading eigenvectors of view p's kernel matrix, centred and scaled to unit diagonal, it maximises

        tr((Y C)ᵀ Σ_p β_p H_p W_p)

    over labels Y, orthogonal centres C, orthogonal rotations W_p and weights β ≥ 0 of length 1. Fitting takes memory
    for n² numbers of 8 bytes (two symmetric matrices, however many views) and O(n² Σ_v d_v) time for the partitions;
    the fusion itself is linear in n.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, and of columns of each partition.
    kernel : kernel, name, list or mapping
        One kernel for all views, or one for each.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.
    max_iter, tol : int, float
        Stop after so many rounds, or when the objective changes by less than this part of itself.
    n_jobs : int, optional
        Number of threads: -1 for all processors; by default as many as BLAS may use. Labels do not depend on it.
    random_state : int, Generator, RandomState or None
        Source of randomness of the bandwidth rule (above 500 samples) and of the k-means that gives the start.

    Attributes
    ----------
    labels_ : (n_samples,) clusters, numbered by decreasing size
    view_weights_ : by view name, β
    partitions_ : by view name, H_p (n_samples, n_clusters)
    consensus_ : (n_samples, n_clusters) the fused partition Σ_p β_p H_p W_p
    objective_ : (n_iter_,) after each round, never decreasing
    n_iter_ : number of rounds
    kernels_ : by view name, the kernel with its data-driven parameters filled in
    view_names_, view_n_features_, n_features_in_, feature_names_in_

    References
    ----------
    Liu, Liu, Liao, Wang, Tu, Zhu, Yin: One pass late fusion multi-view clustering, ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = OPLFMVC(n_clusters=3, random_state=0).fit({"text": text, "image": image})
    >>> np.bincount(model.labels_)
    array([20, 20, 20])
    """

    view_weights_: dict[str, float]
    partitions_: dict[str, Array]
    consensus_: Array
    kernels_: dict[str, Kernel]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernel: Any = RBF(),  # noqa: B008 - a frozen value
        views: Any = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        self._check_loop()
        kernels = kernel_per_view(self.kernel, views.names)
        n = views.n_samples
        require_memory(
            2 * SymmetricTiles.nbytes(n, np.float64) + 8 * n * sum(views.n_features.values()),
            f"fitting {n} samples",
            "take a part of the samples",
        )
        rng = self._generator()
        self.kernels_, similarities = learn_similarities(views, kernels, np.float64, rng)
        with Workers(self.n_jobs) as workers:
            grams = Grams(similarities, self.kernels_, n, np.float64, workers)
            partitions, average = base_partitions(grams, self.n_clusters)
        rotations, centres = aligned_start(partitions, average, self.n_clusters, rng)
        loop = late_fusion(partitions, rotations, centres, max_iter=self.max_iter, tol=self.tol)
        self._keep_loop(loop)
        self.partitions_ = dict(zip(views, partitions, strict=True))
        self.view_weights_ = dict(zip(views, loop.state.weights.tolist(), strict=True))
        self.consensus_ = loop.state.partition
        self._keep_labels(loop.state.labels)
