"""OPLFMVC: one-pass late fusion multi-view clustering."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from coview.base.parameters import check_boolean
from coview.base.progress import Progress
from coview.base.runtime import Workers, require_memory
from coview.core.alternate import Alternation, alternate, steady
from coview.core.assign import Directions, Labels
from coview.core.eigen import Problem, top_eigenpairs
from coview.core.gram import Centering, Gram, Grams
from coview.core.linalg import polar
from coview.core.tiles import SymmetricTiles
from coview.data.as_views import Layout
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, Note
from coview.kernels import RBF, Kernel, KernelParameter, kernel_per_view
from coview.model.clusterer import Clusterer
from coview.model.fitting import (
    Seed,
    as_generator,
    check_iteration_limits,
    model_of_labels,
    note_on_convergence,
    objective_of,
)
from coview.model.model import Model


@dataclass(frozen=True)
class FusedPartitions:
    """The unknowns of the fusion."""

    labels: Labels  # (samples,), the column of the entry 1 in each row of Y
    centres: Array  # C, (clusters, k), with orthonormal rows
    weights: Array  # β, (views,), with norm 1
    rotations: Array  # W_p, (views, k, k), orthogonal
    partition: Array  # M = Σ_p β_p H_p W_p, (samples, k)


def unit_diagonal(gram: Gram, center: bool = True) -> SymmetricTiles:
    """Return the Gram matrix, centred or not, scaled to a unit diagonal, in its own memory.

    The rows of samples whose diagonal entry is zero up to rounding, such as all samples of a constant view after
    centring, become zero, because scaling would amplify rounding errors.
    """
    matrix, n = gram.matrix, len(gram.degree)
    if center:
        centering = Centering.learn(matrix, weights=np.ones(n))
        matrix.for_each(lambda t, rows, columns: centering.centre(matrix.tiles[t], rows, columns))
    diagonal = matrix.diagonal()
    negative = np.count_nonzero(diagonal < -gram.rounding_error)
    if negative:
        after = " after centring" if center else ""
        raise InputError(
            f"view {gram.name!r} has {negative} of {n} samples with a negative self-similarity{after} under "
            f"{gram.kernel}; use a positive semi-definite kernel such as RBF()"
        )
    positive = diagonal > gram.rounding_error
    scale = np.where(positive, 1 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0)
    return matrix.scale_both_sides(scale)


def base_partitions(grams: Grams, k: int, center: bool) -> tuple[Array, Array, tuple[Note, ...]]:
    """Return H_p of every view, (views, samples, k), that of the views' average kernel, and warnings.

    Each holds k leading eigenvectors, the solution of relaxed kernel k-means.
    """
    total = SymmetricTiles(grams.n_samples, grams.dtype, grams.workers)
    for tile in total.tiles:
        tile.fill(0)
    pairs = []
    for gram in grams:
        kernel = unit_diagonal(gram, center)
        pairs.append(top_eigenpairs(Problem.of(kernel, bandwidth=grams.bandwidth), k))
        for summed, tile in zip(total.tiles, kernel.tiles, strict=True):
            summed += tile
    pairs.append(top_eigenpairs(Problem.of(total, bandwidth=grams.bandwidth), k))
    *partitions, average = (each.vectors for each in pairs)
    return np.stack(partitions), average, tuple(note for each in pairs for note in each.notes)


def aligned_start(partitions: Array, average: Array, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return rotations W_p that align every H_p with the partition of the average kernel, and its cluster centres C.

    The paper starts from W_p = I, so its first labels depend on the signs of the eigenvectors. There is one start and
    not the best of several, because the objective favours clusters of equal size: from random centres it can reach
    higher values by splitting well separated clusters.
    """
    centres = Directions().fit(average, k, rng).centres
    # The orthogonal matrix nearest to the centres; another orthonormal basis of their span would be rotated.
    return polar(partitions.transpose(0, 2, 1) @ average), polar(centres)


def fuse_partitions(partitions: Array, rotations: Array, weights: Array) -> Array:
    """Return M = Σ_p β_p H_p W_p."""
    return (partitions @ (weights[:, None, None] * rotations)).sum(axis=0)


def view_weights(agreement: Array, before: Array) -> Array:
    """Return the best β ≥ 0 of norm 1 for these agreements, or the previous weights if no view agrees."""
    positive = agreement.clip(min=0)
    length = np.linalg.norm(positive)
    return positive / length if length > 0 else before


def update_partitions(partitions: Array, state: FusedPartitions) -> tuple[FusedPartitions, float]:
    """Return the next labels, centres, weights and rotations, and the objective tr((Y C)ᵀ M)."""
    labels: Labels = (state.partition @ state.centres.T).argmax(axis=1)
    members = np.eye(len(state.centres))[labels]
    centres = polar(members.T @ state.partition)
    target = centres[labels]
    overlaps = partitions.transpose(0, 2, 1) @ target
    weights = view_weights((overlaps * state.rotations).sum(axis=(1, 2)), state.weights)
    rotations = polar(overlaps)
    partition = fuse_partitions(partitions, rotations, weights)
    return FusedPartitions(labels, centres, weights, rotations, partition), float((target * partition).sum())


def late_fusion(
    partitions: Array, rotations: Array, centres: Array, *, max_iter: int = 100, tol: float = 1e-4
) -> Alternation[FusedPartitions]:
    """Return the fusion of base partitions (views, samples, k) from this start, in linear time."""
    weights = np.full(len(partitions), 1 / np.sqrt(len(partitions)))
    labels = np.zeros(partitions.shape[1], dtype=np.int64)  # replaced in the first iteration
    start = FusedPartitions(labels, centres, weights, rotations, fuse_partitions(partitions, rotations, weights))
    return alternate(partial(update_partitions, partitions), start, max_iter=max_iter, settled=steady(tol, at_least=3))


class OPLFMVC(Clusterer):
    """Cluster several views by late fusion of their kernel k-means partitions; the fusion gives the labels.

    With H_p the leading eigenvectors of view p's kernel matrix, centred and scaled to unit diagonal, the method
    maximises

        tr((Y C)ᵀ Σ_p β_p H_p W_p)

    over labels Y, orthogonal centres C, orthogonal rotations W_p and weights β ≥ 0 of norm 1. Fitting takes memory for
    n² numbers of 8 bytes (two symmetric matrices, for any number of views) and O(n² Σ_v d_v) time for the partitions;
    the fusion itself is linear in n.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, and of columns of each partition.
    kernel : kernel, name, list or mapping
        One kernel for all views, or one for each.
    center : bool
        Whether the kernels are centred. The authors' program expects centred kernels, and does not centre them itself.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    max_iter, tol : int, float
        Stop after max_iter iterations, or if the relative change of the objective is at most tol.
    n_jobs : int, optional
        Number of threads: -1 for all processors; by default as many as BLAS may use. Labels do not depend on it.
    random_state : int, Generator, RandomState or None
        Seed of the bandwidth rule (above 500 samples) and of the k-means that gives the start.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.
    view_weights_ : dict
        β, by view name.
    partitions_ : dict
        H_p, arrays of shape (n_samples, n_clusters) by view name.
    consensus_ : array of shape (n_samples, n_clusters)
        The fused partition Σ_p β_p H_p W_p.
    objective_, n_iter_ : array of shape (n_iter_,), int
        Objective after each iteration, never decreasing, and number of iterations.
    kernels_ : dict
        Kernels with their data-driven parameters, by view name.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    CoReg : Co-regularised embeddings of the views.
    OPMC : k-means with one set of labels for all views.

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

    objective_: Array
    n_iter_: int
    view_weights_: dict[str, float]
    partitions_: dict[str, Array]
    consensus_: Array
    kernels_: dict[str, Kernel]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernel: KernelParameter = RBF(),  # noqa: B008 - a frozen value
        center: bool = True,
        views: Layout = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.center = center
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_model(self, views: Views, report: Progress) -> Model:
        check_iteration_limits(self)
        check_boolean("center", self.center)
        k = int(self.n_clusters)
        kernels, n, rng = kernel_per_view(self.kernel, views.names), views.n_samples, as_generator(self.random_state)
        require_memory(
            2 * SymmetricTiles.nbytes(n, np.float64) + 8 * n * sum(views.n_features.values()),
            f"fitting {n} samples",
            "use fewer samples, or train another method on some of them, as in FixedSize(TMvKSCR(…), n_train=5000)",
        )
        with Workers(self.n_jobs) as workers:
            grams = Grams.learn(views, kernels, np.float64, rng, workers)
            partitions, average, notes = base_partitions(grams, k, self.center)
        rotations, centres = aligned_start(partitions, average, k, rng)
        loop = late_fusion(partitions, rotations, centres, max_iter=self.max_iter, tol=self.tol)
        learnt = {
            **objective_of(loop),
            "kernels_": dict(grams.kernels),
            "partitions_": dict(zip(views, partitions, strict=True)),
            "view_weights_": dict(zip(views, loop.state.weights.tolist(), strict=True)),
            "consensus_": loop.state.partition,
        }
        return model_of_labels(loop.state.labels, k, learnt, *notes, *note_on_convergence(self, loop))
