"""What the kernel methods share: from views to Gram matrices, a latent space, scores and clusters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from coview.base.parameters import check_integer
from coview.base.progress import Progress, ProgressParameter
from coview.base.runtime import Workers, require_memory
from coview.core.assign import DECIMALS, Assigner, Deferred, as_assigner
from coview.core.eigen import dominant_rows, top_eigenpairs
from coview.core.fuse import Fused, fuses_sparse
from coview.core.gram import Centering, Grams
from coview.core.score import ScoreMap, divided, divisors_of, ensemble_scores, loadings_of, zero_within
from coview.core.tiles import SymmetricTiles
from coview.data.rows import evenly_spaced, narrowed
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, Note
from coview.kernels import RBF, AutoKernel, Graph, Kernel, KernelParameter, kernel_per_view
from coview.model.clusterer import RECLUSTERS, Clusterer
from coview.model.fitting import Seed, as_generator, note_on_fewer
from coview.model.kernel_predictor import (
    FEWEST_COMPLETE,
    MOST_COMPLETE,
    KernelPredictor,
    reference_rows,
    rows_with_view,
)
from coview.model.model import Model

_FLOAT64_UP_TO = 2000
_LEAST_CONTRAST = 1e-3
_CONTRAST_ROWS = 128
_FURTHER = 3  # eigenvalues beyond those of the components, to show the gap
_SOLVER_VECTORS = 16  # for each component
_SAMPLES_OF_A_COMPONENT = 10  # the reciprocal of the fraction of a mean cluster that may dominate a component

LearnGrams: TypeAlias = Callable[..., Grams]  # with the arguments of `Grams.learn`


@dataclass(frozen=True)
class Weights:
    """The weights of the views: `beta` in the scores, and those of the eigenproblem of a method."""

    beta: dict[str, float]
    own: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LatentSpace:
    """What a kernel method learns from its Gram matrices; views that share a latent space have the same array."""

    eigenvalues: Array
    latent: Mapping[str, Array]  # hidden features (n, components) by view name
    centerings: dict[str, Centering]
    scores: Array | None  # ensemble scores of the training samples; None if they must be computed from similarities
    learnt: Mapping[str, Any] = field(default_factory=dict)  # further attributes
    dominant_rows: Array = field(default_factory=lambda: np.arange(0))  # samples that dominate a component
    notes: tuple[Note, ...] = ()


def solve_shared(fused: Fused, n_components: int, beta: Mapping[str, float]) -> LatentSpace:
    """Return the latent space H = D^{-1/2} U that all views share, with U the leading eigenvectors of the problem."""
    eigenpairs = top_eigenpairs(fused.problem, n_components, n_further=_FURTHER)
    latent = eigenpairs.vectors / np.sqrt(fused.degree)[:, None]
    learnt = {"explained_variance_ratio_": eigenpairs.explained_variance_ratio}
    if eigenpairs.further_values is not None:
        learnt["_further_eigenvalues"] = eigenpairs.further_values
    return LatentSpace(
        eigenpairs.values,
        dict.fromkeys(fused.centerings, latent),
        fused.centerings,
        fused.scores(latent, beta),
        learnt,
        dominant_rows(eigenpairs.vectors, len(latent) / (_SAMPLES_OF_A_COMPONENT * (n_components + 1))),
        eigenpairs.notes,
    )


class KernelMethod(Clusterer):
    """Base class of kernel methods: views → Gram matrices → latent space → scores → labels.

    A subclass computes its latent space from the Gram matrices (`latent_space`). New samples are scored and labelled
    with the same kernels, centring, latent space and assignment.
    """

    abilities = RECLUSTERS
    kernel: Any
    assigner: Any
    dtype: Any
    batch_size: Any
    n_jobs: Any
    progress: Any
    fuses_sparse: ClassVar[bool] = True  # whether sparse Gram matrices stay sparse in `latent_space`
    scores_: Array
    eigenvalues_: Array
    kernels_: dict[str, Kernel]

    @abstractmethod
    def latent_space(self, grams: Grams, weights: Weights, n_components: int) -> LatentSpace:
        """Return the solution of the method's eigenproblem."""

    def view_weights(self, names: tuple[str, ...]) -> Weights:
        """Return the weights of the views, which are equal by default, after they are checked."""
        return Weights(dict.fromkeys(names, 1 / len(names)))

    def n_matrices(self, views: Views) -> int:
        """Return the number of n×n matrices in memory: that of the current view, and the sum."""
        return 2

    def fit_model(self, views: Views, report: Progress, learn_grams: LearnGrams | None = None) -> Model:
        """Return what is learnt from validated views; `learn_grams` replaces `Grams.learn` if rows are elsewhere."""
        if not (isinstance(self.batch_size, str) and self.batch_size == "auto"):
            check_integer("batch_size", self.batch_size, 1, or_else=", or 'auto'")
        weights = self.view_weights(views.names)
        # BLAS has one thread until the labels are assigned: after a product with several, its idle threads spin for
        # a while, on the processors that compute the tiles.
        with Workers(self.n_jobs) as workers:
            return self._fit_views(views, weights, workers, _stage_counter(report, len(views) + 3), learn_grams)

    def _fit_views(
        self,
        views: Views,
        weights: Weights,
        workers: Workers,
        report: Callable[[str], object],
        learn_grams: LearnGrams | None,
    ) -> Model:
        k, beta, rng = int(self.n_clusters), weights.beta, as_generator(self.random_state)
        assigner, kernels = as_assigner(self.assigner), kernel_per_view(self.kernel, views.names)
        dtype = _gram_dtype(self.dtype, kernels, assigner, views)
        if learn_grams is None:
            self._require_memory(views, kernels, dtype)
        grams = (learn_grams or Grams.learn)(views, kernels, dtype, rng, workers, report)
        space = self.latent_space(grams, weights, max(1, k - 1))
        report("eigenvectors")
        maps = {}
        for name, similarity in grams.similarities.items():
            rows = views.present.get(name, slice(None))
            maps[name] = ScoreMap.learn(similarity, space.centerings[name].of_present(), space.latent[name][rows])
        scores, loadings = _training_scores(views, space, maps, beta, workers)
        report("scores")
        decimals = min(DECIMALS[each.similarity.dtype] for each in maps.values())
        assignment = assigner.fit(scores, k, rng, decimals)
        present_rows = {name: np.flatnonzero(mask) for name, mask in views.present.items()}
        # A precomputed Gram matrix of the training samples is not kept, so scores and closeness of its view are.
        kept = {name: replace(each, similarity=each.similarity.forget_training()) for name, each in maps.items()}
        lost = [name for name, each in maps.items() if each.similarity is not kept[name].similarity]
        references = reference_rows(views.n_samples, present_rows, maps)
        predictor = KernelPredictor(
            kept,
            beta,
            assignment,
            Deferred(assigner, k, decimals, seed=int(rng.integers(2**31))),
            views.n_samples,
            present_rows,
            {name: maps[name](views.observed(name)) for name in lost},
            {
                name: maps[name].similarity.training_closeness(rows_with_view(references, present_rows, name))
                for name in lost
            },
            loadings,
            batch_size=self.batch_size,
            n_jobs=self.n_jobs,
            in_float32=isinstance(self.dtype, str) and self.dtype == "auto",
        )
        report("labels")
        learnt = {
            **self.published_space(space, views.dtype),
            "scores_": narrowed(scores, views.dtype),
            "eigenvalues_": space.eigenvalues,
            "kernels_": dict(grams.kernels),
            **space.learnt,
        }
        notes = (*space.notes, *note_on_fewer(assignment.n_found, k))
        return Model(assignment.assign(scores), learnt, predictor, notes=notes)

    def published_space(self, space: LatentSpace, dtype: Any) -> dict[str, Any]:
        """Return the attributes with the hidden features, which all views share."""
        return {"latent_": narrowed(next(iter(space.latent.values())), dtype)}

    def _require_memory(self, views: Views, kernels: Mapping[str, Kernel], dtype: type[np.floating[Any]]) -> None:
        sparse, could_be = self._stays_sparse(kernels, views), fuses_sparse([True] * len(kernels))
        require_memory(
            self.bytes_to_fit(views, kernels, dtype),
            f"fitting {views.n_samples} samples in {np.dtype(dtype)}",
            f"train on some of them, as in FixedSize({type(self).__name__}(…), n_train=5000)"
            + (", or use kernel='auto'" if self.fuses_sparse and could_be and not sparse else "")
            + (", or set dtype='float32'" if dtype == np.float64 else ""),
        )

    def _stays_sparse(self, kernels: Mapping[str, Kernel], views: Views) -> bool:
        """Return whether no n×n matrix is formed."""
        incomplete = not views.complete and self.n_matrices(views) > 2
        sparse = [kernel.sparse for kernel in kernels.values()]
        return self.fuses_sparse and fuses_sparse(sparse, incomplete_product=incomplete)

    def bytes_to_fit(self, views: Views, kernels: Mapping[str, Kernel], dtype: Any) -> int:
        """Return the memory of a fit, as far as it grows with the number of samples."""
        n, itemsize = views.n_samples, np.dtype(dtype).itemsize
        if self._stays_sparse(kernels, views):
            # For each view its graph, its part of the union of graphs, distances, and the rows; then the basis of the
            # eigensolver.
            graphs = [kernel for kernel in kernels.values() if isinstance(kernel, (Graph, AutoKernel))]
            entries = sum(2 * min(graph.n_neighbors, n) + 1 for graph in graphs)
            rows = 12 * sum(views.n_features.values())
            return int(n * (entries * (2 * itemsize + 24) + rows + 8 * _SOLVER_VECTORS * (int(self.n_clusters) + 6)))
        rows = n * sum(views.n_features.values()) * itemsize
        return int(self.n_matrices(views) * SymmetricTiles.nbytes(n, dtype) + rows)


class OneViewKernelMethod(KernelMethod):
    """Base class of kernel methods of one view."""

    latent_: Array

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernel: KernelParameter = RBF(),  # noqa: B008 - a frozen value
        assigner: Assigner | str = "directions",
        dtype: DTypeLike = "auto",
        batch_size: int | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        progress: ProgressParameter = None,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.assigner = assigner
        self.dtype = dtype
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def check_views(self, views: Views) -> tuple[Note, ...]:
        found = super().check_views(views)
        if len(views) > 1:
            raise InputError(
                f"{type(self).__name__} clusters one view and got {len(views)} ({', '.join(views)}); pass one of them, "
                f"wrap it as Concat({type(self).__name__}(…)) or PerView({type(self).__name__}(…)), or use TMvKSCR"
            )
        return found


def _training_scores(
    views: Views, space: LatentSpace, maps: Mapping[str, ScoreMap], beta: Mapping[str, float], workers: Workers
) -> tuple[Array, dict[str, float]]:
    """Return the ensemble scores of the training samples, and the loadings of the views if samples lack views."""
    loadings: dict[str, float] = {}
    if space.scores is None:
        of_views = {name: (each.of_training_samples(workers.map), each.tolerance) for name, each in maps.items()}
        scores, error = ensemble_scores(views, of_views, beta, len(space.eigenvalues))
    else:
        scores, error = space.scores, np.sum([beta[name] * each.tolerance for name, each in maps.items()], axis=0)
    if not views.complete:
        complete = np.flatnonzero(views.has_all())
        some, of_complete = views.take(complete[evenly_spaced(len(complete), MOST_COMPLETE)]), {}
        if some.n_samples >= FEWEST_COMPLETE:
            found = workers.map(lambda name: maps[name].with_tolerance(some[name])[0], list(views))
            of_complete = dict(zip(views, found, strict=True))
        loadings = loadings_of(of_complete, beta)
        scores, error = divided(scores, error, divisors_of(views, beta, loadings))
    return zero_within(scores, error), loadings


def _gram_dtype(dtype: Any, kernels: Mapping[str, Kernel], assigner: Assigner, views: Views) -> type[np.floating[Any]]:
    """Return the precision of Gram matrices; "auto" is float32 if that is faster and does not change labels.

    "auto" is float64 up to 2000 samples, because there is little to gain; for unbounded kernels; for the codebook,
    which depends on signs; and for a nearly constant kernel (a bandwidth that is far too large), because the rounding
    errors of float32 would hide the differences between samples.
    """
    if dtype == "auto":
        bounded = all(kernel.bounded for kernel in kernels.values())
        if views.n_samples <= _FLOAT64_UP_TO or not bounded or assigner.reads_signs:
            return np.float64
        smooth = [(kernels[name], views.observed(name)) for name in views if not kernels[name].sparse]
        flat = any(
            1 - kernel(x[evenly_spaced(x.shape[0], _CONTRAST_ROWS)]).mean() < _LEAST_CONTRAST for kernel, x in smooth
        )
        return np.float64 if flat else np.float32
    try:
        known = {np.dtype(kind): kind for kind in (np.float32, np.float64)}
        return known[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise InputError(f"dtype={dtype!r}: expected 'auto', 'float32' or 'float64'") from None


def _stage_counter(progress: Progress, total: int) -> Callable[[str], object]:
    """Return a function of a stage that calls progress(stage, number done, total)."""
    done = count(1)
    return lambda stage: progress(stage, next(done), total)
