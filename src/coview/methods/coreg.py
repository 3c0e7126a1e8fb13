"""CoReg: co-regularised multi-view spectral clustering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coview.base.parameters import check_choice, is_integer, is_number
from coview.base.progress import Progress
from coview.base.runtime import Workers, require_memory
from coview.core.alternate import alternate, steady
from coview.core.assign import Directions
from coview.core.eigen import Eigenpairs, Problem, top_eigenpairs
from coview.core.gram import Grams
from coview.core.sparse import PlusLowRank
from coview.core.tiles import SymmetricTiles
from coview.data.as_views import Layout
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, Note
from coview.kernels import RBF, Kernel, KernelParameter, kernel_per_view
from coview.model.clusterer import Clusterer
from coview.model.fitting import (
    Seed,
    WeightsParameter,
    as_generator,
    check_iteration_limits,
    model_of_labels,
    note_on_convergence,
    objective_of,
    weights_per_view,
)
from coview.model.model import Model

_ZERO = 1e-7  # singular values below count as zero, relative to the largest


@dataclass(frozen=True)
class Embeddings:
    """U_v of all views, (views, samples, k), and sums of their k eigenvalues by sweep, (views, 1 + sweeps)."""

    views: Array
    eigenvalue_sums: Array
    notes: tuple[Note, ...]  # of the last sweep

    def then(self, pairs: Sequence[Eigenpairs]) -> Embeddings:
        """Return the embeddings after one more sweep, given those of each view."""
        sums = np.array([each.values.sum() for each in pairs])
        return Embeddings(
            np.stack([each.vectors for each in pairs]),
            np.column_stack([self.eigenvalue_sums, sums]),
            tuple(note for each in pairs for note in each.notes),
        )


def embed_each(similarities: Sequence[SymmetricTiles], k: int, bandwidth: str = "") -> Embeddings:
    """Return every view's own spectral embedding, the start of both schemes."""
    pairs = [top_eigenpairs(Problem.of(similarity, bandwidth=bandwidth), k) for similarity in similarities]
    return Embeddings(np.empty(0), np.empty((len(pairs), 0)), ()).then(pairs)


def pairwise_sweep(
    similarities: Sequence[SymmetricTiles], coupling: float, state: Embeddings
) -> tuple[Embeddings, float]:
    """Return new embeddings: U_v holds the leading eigenvectors of L_v + λ Σ_{u≠v} U_u U_uᵀ."""
    views, found, pulled = state.views.copy(), dict[int, Eigenpairs](), 0.0
    for v in [*range(1, len(views)), 0]:  # the authors' order: the first view is updated last
        pull = np.sqrt(coupling) * side_by_side(np.delete(views, v, axis=0))
        found[v] = top_eigenpairs(Problem.of(PlusLowRank(similarities[v], pull)), views.shape[2], start=views[v])
        views[v] = found[v].vectors
        pulled += np.square(pull.T @ views[v]).sum()
    # The eigenvalue sums contain tr(U_vᵀ L_v U_v) and the agreement with the other views at the time of the update.
    agreement = sum(np.square(views[u].T @ views[v]).sum() for v in range(len(views)) for u in range(v))
    after = state.then([found[v] for v in range(len(views))])
    return after, float(after.eigenvalue_sums[:, -1].sum() - pulled + coupling * agreement)


def centroid_sweep(
    similarities: Sequence[SymmetricTiles], weights: Array, state: Embeddings
) -> tuple[Embeddings, float]:
    """Return new embeddings: U_v holds the leading eigenvectors of L_v + λ_v U* U*ᵀ, with the consensus U*."""
    shared = consensus_embedding(state.views, weights)
    pairs = []
    for v, weight in enumerate(weights):
        problem = Problem.of(PlusLowRank(similarities[v], np.sqrt(weight) * shared))
        pairs.append(top_eigenpairs(problem, state.views.shape[2], start=state.views[v]))
    after = state.then(pairs)
    return after, float(after.eigenvalue_sums[:, -1].sum())  # the objective


def consensus_embedding(views: Array, weights: Array) -> Array:
    """Return U*, the leading eigenvectors of Σ_v λ_v U_v U_vᵀ."""
    factor = side_by_side(np.sqrt(weights)[:, None, None] * views)
    vectors, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    k = views.shape[2]
    return vectors[:, :k] * (sizes[:k] > _ZERO * sizes[0])  # the vector of an eigenvalue zero is zero


def side_by_side(views: Array) -> Array:
    """Turn (views, samples, k) into (samples, views × k)."""
    return np.moveaxis(views, 0, 1).reshape(views.shape[1], -1)


class CoReg(Clusterer):
    """Cluster several views by co-regularised spectral embeddings.

    With L_v = D_v^{-1/2} K_v D_v^{-1/2} the normalised similarity of view v and orthonormal U_v, the method maximises

        Σ_v tr(U_vᵀ L_v U_v) + λ Σ_{u<v} ‖U_uᵀ U_v‖²         (pairwise), or
        Σ_v tr(U_vᵀ L_v U_v) + Σ_v λ_v ‖U_vᵀ U*‖²            (centroid),

    one view at a time; every step is an eigenproblem. The similarities of all views are kept in memory: V n² / 2
    numbers of 8 bytes. Computing them takes O(n² Σ_v d_v) time, and a sweep O(V n² k), or O(V n³) up to 700 samples.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, and of columns of each embedding.
    kernel : kernel, name, list or mapping
        One kernel for all views, or one for each; degrees must be positive.
    scheme : "pairwise" or "centroid"
        Whether the regularisation couples each pair of views, or each view with a consensus.
    coupling : number, or for the centroid scheme also a list or mapping with one for each view
        λ, the strength of the regularisation.
    embedding : name or number of a view, optional
        Cluster the rows of this view's embedding, as the authors do with the most informative view. By default the rows
        of all embeddings side by side (pairwise) or of the consensus (centroid) are clustered.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    max_iter, tol : int, float
        Stop after max_iter sweeps, or if the relative change of the objective is at most tol.
    n_jobs : int, optional
        Number of threads: -1 for all processors; by default as many as BLAS may use. Labels do not depend on it.
    random_state : int, Generator, RandomState or None
        Seed of the bandwidth rule (above 500 samples) and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.
    embeddings_ : dict
        U_v, arrays of shape (n_samples, n_clusters) by view name.
    consensus_ : array
        U* (n_samples, n_clusters), or all U_v side by side (n_samples, views × n_clusters).
    objective_, n_iter_ : array of shape (n_iter_,), int
        Objective after each sweep, never decreasing, and number of sweeps.
    eigenvalue_sums_ : array of shape (views, 1 + n_iter_)
        Sum of the leading eigenvalues of each view's problem, at the start (L_v) and after each sweep.
    kernels_ : dict
        Kernels with their data-driven parameters, by view name.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    TMvKSCR : One latent space for all views, with labels of new samples.
    OPLFMVC : Late fusion of the partitions of the views.

    References
    ----------
    Kumar, Rai, Daumé III: Co-regularized multi-view spectral clustering, NIPS 2011.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = CoReg(n_clusters=3, random_state=0).fit({"text": text, "image": image})
    >>> np.bincount(model.labels_)
    array([20, 20, 20])
    """

    objective_: Array
    n_iter_: int
    embeddings_: dict[str, Array]
    consensus_: Array
    eigenvalue_sums_: Array
    kernels_: dict[str, Kernel]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernel: KernelParameter = RBF(),  # noqa: B008 - a frozen value
        scheme: str = "pairwise",
        coupling: WeightsParameter = 0.05,
        embedding: int | str | None = None,
        views: Layout = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.scheme = scheme
        self.coupling = coupling
        self.embedding = embedding
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_model(self, views: Views, report: Progress) -> Model:
        check_iteration_limits(self)
        weights, chosen, k = self._weights(views), self._chosen(views), int(self.n_clusters)
        kernels, n, rng = kernel_per_view(self.kernel, views.names), views.n_samples, as_generator(self.random_state)
        require_memory(
            len(views) * SymmetricTiles.nbytes(n, np.float64) + 8 * n * sum(views.n_features.values()),
            f"keeping the similarities of {n} samples in {len(views)} views",
            "use fewer samples, or train another method on some of them, as in FixedSize(TMvKSCR(…), n_train=5000)",
        )
        with Workers(self.n_jobs) as workers:
            grams = Grams.learn(views, kernels, np.float64, rng, workers)
            similarities = [gram.normalised_similarity() for gram in grams.kept()]
            if self.scheme == "pairwise":
                sweep = partial(pairwise_sweep, similarities, weights[0])
            else:
                sweep = partial(centroid_sweep, similarities, weights)
            start = embed_each(similarities, k, grams.bandwidth)
            loop = alternate(sweep, start, max_iter=self.max_iter, settled=steady(self.tol))
            embeddings = loop.state.views
            # The authors take the labels from the U* at the start of the last sweep; this is the U* of its result.
            pairwise = self.scheme == "pairwise"
            consensus = side_by_side(embeddings) if pairwise else consensus_embedding(embeddings, weights)
        learnt = {
            **objective_of(loop),
            "kernels_": dict(grams.kernels),
            "eigenvalue_sums_": loop.state.eigenvalue_sums,
            "embeddings_": dict(zip(views, embeddings, strict=True)),
            "consensus_": consensus,
        }
        rows = consensus if chosen is None else embeddings[chosen]
        labels = Directions().fit(rows, k, rng).assign(rows)
        return model_of_labels(labels, k, learnt, *start.notes, *loop.state.notes, *note_on_convergence(self, loop))

    def _weights(self, views: Views) -> Array:
        """Return the coupling of each view, after the scheme is checked."""
        check_choice("scheme", self.scheme, ("pairwise", "centroid"))
        if self.scheme == "pairwise" and not is_number(self.coupling):
            raise InputError(
                f"coupling={self.coupling!r}: expected one number for scheme='pairwise'; "
                "use scheme='centroid' for one number per view"
            )
        return np.array(list(weights_per_view("coupling", self.coupling, views.names, default=0.05).values()))

    def _chosen(self, views: Views) -> int | None:
        """Return the number of the view whose embedding is clustered, or None for all views."""
        embedding: Any = self.embedding
        if embedding is None:
            return None
        if is_integer(embedding) and 0 <= embedding < len(views):
            return int(embedding)
        if isinstance(embedding, str) and embedding in views.names:
            return views.names.index(embedding)
        raise InputError(
            f"embedding={embedding!r} is not a view; use None for all views, one of the names "
            f"{', '.join(views.names)}, or a number from 0 to {len(views) - 1}"
        )
