"""What the kernel methods share: the pipeline from views to labels, for training and new samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Lock
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from coview.core.assign import DECIMALS, Assigner, Deferred, as_assigner
from coview.core.eigen import dominant_rows, top_eigenpairs
from coview.core.fuse import Fused, fuses_sparse
from coview.core.gram import Centering, Grams
from coview.core.novelty import joint_quantiles, quantiles
from coview.core.score import ScoreMap, zero_within
from coview.core.tiles import SymmetricTiles
from coview.errors import InputError
from coview.kernels import (
    RBF,
    AutoKernel,
    Graph,
    Kernel,
    KernelParameter,
    PrecomputedSimilarity,
    kernel_per_view,
)
from coview.methods.base import Seed, ViewWeights
from coview.methods.score_clusterer import ScoreClusterer
from coview.parameters import check_integer
from coview.parts import is_part_of_measurement
from coview.progress import Progress, ProgressParameter, reporting
from coview.rows import narrowed
from coview.runtime import Map, Workers, require_memory
from coview.state import (
    OPTIONAL,
    PARAMETER,
    ByView,
    FloatArray,
    IntegerArray,
    Range,
    Sizes,
    SomeViews,
    require,
)
from coview.views import Array, Matrix, Views, among_all

_FLOAT64_UP_TO = 2000
_LEAST_CONTRAST = 1e-3
_CONTRAST_ROWS = 128
_BLOCK_BYTES = 2**21
_FEWEST_ROWS = 256  # that are scored in float32; for fewer the copy of the training rows is not worth while
_TRIAL_ROWS = 256  # scored in float32 to see whether this helps, if there are many more rows
_TRIAL_PART = 8
_MOST_LEFT = 0.25  # fraction of rows that need float64 beyond which all rows are scored in float64
_ROWS_AGAIN = 8192
_FURTHER = 3  # eigenvalues beyond those of the components, to show the gap
_SOLVER_VECTORS = 16  # for each component
_FEWEST_COMPLETE = 5  # training samples with all views, from which the loadings of the views are computed
_MOST_COMPLETE = 256  # of these, because the scores of each view take long with dense kernels
_MOST_REFERENCE = 1000  # training samples with each view, whose closeness new samples are compared with
_LEAST_LOADING = 1e-3  # of a view that is unrelated to the ensemble
_SAMPLES_OF_A_COMPONENT = 10  # the reciprocal of the fraction of a mean cluster that may dominate a component

Score: TypeAlias = Callable[[Matrix], tuple[Array, Array]]  # of rows of one view; with errors


@dataclass(frozen=True)
class LatentSpace:
    """What a kernel method learns from its Gram matrices; views that share a latent space have the same array."""

    eigenvalues: Array
    latent: Mapping[str, Array]  # hidden features (n, components) by view name
    centerings: dict[str, Centering]
    scores: Array | None  # ensemble scores of the training samples; None if they must be computed from similarities
    explained_variance_ratio: Any = None  # None if the problem has no trace
    further_eigenvalues: Array | None = None  # the next few after those of the components, if the solver has them
    dominant_rows: Array = field(default_factory=lambda: np.arange(0))  # samples that dominate a component


def solve_shared(fused: Fused, n_components: int, beta: Mapping[str, float]) -> LatentSpace:
    """Return the latent space H = D^{-1/2} U that all views share, with U the leading eigenvectors of the problem."""
    eigenpairs = top_eigenpairs(fused.problem, n_components, n_further=0 if is_part_of_measurement() else _FURTHER)
    latent = eigenpairs.vectors / np.sqrt(fused.degree)[:, None]
    return LatentSpace(
        eigenpairs.values,
        dict.fromkeys(fused.centerings, latent),
        fused.centerings,
        fused.scores(latent, beta),
        eigenpairs.explained_variance_ratio,
        dominant_rows=dominant_rows(eigenpairs.vectors, len(latent) / (_SAMPLES_OF_A_COMPONENT * (n_components + 1))),
        further_eigenvalues=eigenpairs.further_values,
    )


class KernelClusterer(ScoreClusterer):
    """Base class of kernel methods: views → Gram matrices → latent space → scores → labels.

    A subclass computes its latent space from the Gram matrices (`_latent_space`). New samples are scored and labelled
    with the same kernels, centring, latent space and assignment.
    """

    kernel: Any
    assigner: Any
    dtype: Any
    batch_size: Any
    n_jobs: Any
    progress: Any
    _fuses_sparse: ClassVar[bool] = True  # whether sparse Gram matrices stay sparse in `_latent_space`
    latent_: Annotated[Any, FloatArray("train", "components")]
    eigenvalues_: Annotated[Array, FloatArray("components", infinite=True)]  # views may hold huge numbers
    _further_eigenvalues: Annotated[Array, FloatArray("further", infinite=True, empty=True), OPTIONAL]
    kernels_: ByView[Annotated[Kernel, PARAMETER]]
    _beta: ViewWeights
    _score_maps: ByView[ScoreMap]
    # Of views that some training samples lack: the rows of the others. The scores of a view are of these; they are
    # stored if they cannot be computed again.
    _present_rows: SomeViews[Annotated[Array, IntegerArray("_observed", least=0, increasing=True)]]
    _view_scores: SomeViews[Annotated[Array, FloatArray("_observed", "components")]]
    _view_loadings: SomeViews[Annotated[float, Range(above=0)]]  # see `_loadings`
    # Of the training samples in `_reference_rows`, for views in which it cannot be computed again.
    _closeness: SomeViews[Annotated[Array, FloatArray("_reference")]]

    @abstractmethod
    def _latent_space(self, grams: Grams, n_components: int) -> LatentSpace:
        """Return the solution of the method's eigenproblem."""

    def _n_matrices(self, views: Views) -> int:
        """Return the number of n×n matrices in memory: that of the current view, and the sum."""
        return 2

    def _stays_sparse(self, kernels: Mapping[str, Kernel], views: Views) -> bool:
        """Return whether no n×n matrix is formed."""
        incomplete = not views.complete and self._n_matrices(views) > 2
        sparse = [kernel.sparse for kernel in kernels.values()]
        return self._fuses_sparse and fuses_sparse(sparse, incomplete_product=incomplete)

    def _could_be_sparse(self, kernels: Mapping[str, Kernel], views: Views) -> bool:
        """Return whether no n×n matrix would be formed with other kernels."""
        return self._fuses_sparse and fuses_sparse([True] * len(kernels)) and not self._stays_sparse(kernels, views)

    def _bytes_to_fit(self, views: Views, kernels: Mapping[str, Kernel], dtype: Any) -> int:
        """Return the memory of a fit, as far as it grows with the number of samples."""
        n, itemsize = views.n_samples, np.dtype(dtype).itemsize
        if self._stays_sparse(kernels, views):
            # For each view its graph, its part of the union of graphs, distances, and the rows; then the basis of the
            # eigensolver.
            graphs = [kernel for kernel in kernels.values() if isinstance(kernel, (Graph, AutoKernel))]
            entries = sum(2 * min(graph.n_neighbors, n) + 1 for graph in graphs)
            rows = 12 * sum(views.n_features.values())
            return int(n * (entries * (2 * itemsize + 24) + rows + 8 * _SOLVER_VECTORS * (self._k + 6)))
        rows = n * sum(views.n_features.values()) * itemsize
        return int(self._n_matrices(views) * SymmetricTiles.nbytes(n, dtype) + rows)

    def _views_to_fit(self, X: Any) -> Views:
        """Return the validated views, after the parameters are checked; views have equal weights by default."""
        views = super()._views_to_fit(X)
        if not (isinstance(self.batch_size, str) and self.batch_size == "auto"):
            check_integer("batch_size", self.batch_size, 1, or_else=", or 'auto'")
        self._beta = dict.fromkeys(views, 1 / len(views))
        return views

    def _fit(self, X: Any, learn_grams: Callable[..., Grams] | None = None) -> None:
        """Fit; `learn_grams` replaces the method `_learn_grams` if the rows are elsewhere."""
        views = self._views_to_fit(X)
        # BLAS has one thread until the labels are assigned: after a product with several, its idle threads spin for
        # a while, on the processors that compute the tiles.
        with reporting(self.progress) as progress, Workers(self.n_jobs) as workers:
            report = _stage_counter(progress, total=len(views) + 3)
            self._fit_views(views, workers, report, learn_grams or self._learn_grams)

    def _learn_grams(
        self,
        views: Views,
        kernels: Mapping[str, Kernel],
        dtype: type[np.floating[Any]],
        rng: np.random.Generator,
        workers: Workers,
        report: Callable[[str], object],
    ) -> Grams:
        require_memory(
            self._bytes_to_fit(views, kernels, dtype),
            f"fitting {views.n_samples} samples in {np.dtype(dtype)}",
            f"train on some of them, as in FixedSize({type(self).__name__}(…), n_train=5000)"
            + (", or use kernel='auto'" if self._could_be_sparse(kernels, views) else "")
            + (", or set dtype='float32'" if dtype == np.float64 else ""),
        )
        return Grams.learn(views, kernels, dtype, rng, workers, report)

    def _fit_views(
        self, views: Views, workers: Workers, report: Callable[[str], object], learn_grams: Callable[..., Grams]
    ) -> None:
        rng = self._generator()
        assigner = as_assigner(self.assigner)
        kernels = kernel_per_view(self.kernel, views.names)
        dtype = _gram_dtype(self.dtype, kernels, assigner, views)
        grams = learn_grams(views, kernels, dtype, rng, workers, report)
        space = self._latent_space(grams, max(1, self._k - 1))
        report("eigenvectors")
        maps = {}
        for name, similarity in grams.similarities.items():
            rows = views.present.get(name, slice(None))
            maps[name] = ScoreMap.learn(similarity, space.centerings[name].of_present(), space.latent[name][rows])
        scores = space.scores
        if scores is None:
            of_views = {name: each.of_training_samples(workers.map) for name, each in maps.items()}
        of_complete = {} if views.complete else _scores_of_complete_samples(views, maps, workers.map)

        self.kernels_ = dict(grams.kernels)
        self.eigenvalues_ = space.eigenvalues
        if space.further_eigenvalues is not None:
            self._further_eigenvalues = space.further_eigenvalues
        self._n_features_out = len(space.eigenvalues)
        self._present_rows = {name: np.flatnonzero(mask) for name, mask in views.present.items()}
        self._view_loadings = {}
        if scores is None:
            scores, tolerance = self._sum(views, {name: (of_views[name], maps[name].tolerance) for name in views})
        else:
            tolerance = np.sum([self._beta[name] * each.tolerance for name, each in maps.items()], axis=0)
        if not views.complete:
            self._view_loadings = self._loadings_of(of_complete)
            scores, tolerance = self._divided(views, scores, tolerance)
        self._store_latent(space, views.dtype)
        scores = zero_within(scores, tolerance)
        self.scores_ = narrowed(scores, views.dtype)
        report("scores")

        decimals = min(DECIMALS[each.similarity.dtype] for each in maps.values())
        self._assignment = assigner.fit(scores, self._k, rng, decimals)
        self.labels_ = self._assignment.assign(scores)
        self._view_assigner = Deferred(assigner, self._k, decimals, seed=int(rng.integers(2**31)))
        self._view_assignments, self._computed = {}, {}
        # A precomputed Gram matrix of the training samples is not stored, so scores and closeness of its view are.
        self._score_maps = {
            name: replace(each, similarity=each.similarity.forget_training()) for name, each in maps.items()
        }
        self._view_scores = {
            name: each(views.observed(name))
            for name, each in maps.items()
            if each.similarity is not self._score_maps[name].similarity
        }
        self._closeness = {name: self._training_closeness(name, maps) for name in self._view_scores}
        report("labels")
        self._warn_if_fewer(self._assignment.n_found)

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        complete = not self._view_loadings or tuple(self._view_loadings) == self.view_names_
        require(complete, "expected the loadings of all views, or of none")
        for name, score_map in self._score_maps.items():
            n_rows = sizes.known("train")
            if name in self._present_rows:
                inside = self._present_rows[name][-1] < n_rows
                require(inside, f"expected rows of view {name!r} below {n_rows}")
                n_rows = len(self._present_rows[name])
            require(score_map.n_training == n_rows, f"expected {n_rows} training samples of view {name!r}")
            if name in self._closeness:
                expected, given = len(self._reference_rows_with(name)), len(self._closeness[name])
                require(
                    given == expected, f"expected the closeness of {expected} samples in view {name!r}, got {given}"
                )
            similarity: Any = score_map.similarity
            if isinstance(similarity, PrecomputedSimilarity):  # its training scores cannot be computed again
                known = name in self._view_scores and name in self._closeness
                require(known, f"expected the scores and the closeness of view {name!r}")
                width = self.view_n_features_[name]
                require(score_map.n_training == width, f"expected one column of view {name!r} per training sample")
            else:
                same = self.kernels_[name] == similarity.kernel
                require(same, f"expected one kernel for view {name!r}, got two")

    def _store_latent(self, space: LatentSpace, dtype: Any) -> None:
        """Store the hidden features that all views share."""
        self.latent_ = narrowed(next(iter(space.latent.values())), dtype)
        self.explained_variance_ratio_ = space.explained_variance_ratio

    def _training_scores(self, name: str) -> Array:
        """Return a view's own scores of the training samples; NaN for samples that lack it."""
        scores = self._scores_with_view(name)
        if name not in self._present_rows:
            return scores
        return among_all(scores, _mask(self._present_rows[name], len(self.labels_)))

    def _scores_with_view(self, name: str) -> Array:
        """Return a view's own scores of the training samples that have it, computed when they are first used."""
        scores = self._view_scores.get(name)
        if scores is None:
            score_map = self._score_maps[name]
            scores = self._once(
                ("scores", name), lambda: zero_within(score_map.of_training_samples(), score_map.tolerance)
            )
        self._require_finite(name, scores)
        return scores

    def _ensemble(self, views: Views) -> Array:
        """Return the ensemble scores of a block: the weighted sum of the views' scores."""
        return self._block_scores(views, with_views=False)[:, 0]

    def _scores_of(self, views: Views) -> tuple[Array, dict[str, Array]]:
        """Return the ensemble scores and each view's own scores."""
        ensemble, *of_views = np.ascontiguousarray(np.moveaxis(self._by_block(self._block_scores, views), 1, 0))
        return ensemble, dict(zip(views, of_views, strict=True))

    def _scores_and_parts(self, views: Views) -> tuple[Array, dict[str, Array]]:
        divisors = self._divisors(views)
        ensemble, of_views = self._scores_of(views)
        return ensemble, {name: self._beta[name] * scores / divisors for name, scores in of_views.items()}

    @property
    def _weights_of_views(self) -> dict[str, float]:
        return self._beta

    def _block_scores(self, views: Views, with_views: bool = True) -> Array:
        """Return the ensemble scores of a block, followed by each view's own, (rows, 1 + views, components)."""
        scores = np.zeros((views.n_samples, 1 + len(views) * with_views, self._n_features_out))
        of_views = self._scored({name: self._score_maps[name].with_tolerance for name in views}, views)
        for v, (name, (of_view, tolerance)) in enumerate(of_views.items(), start=1):
            self._require_finite(name, of_view)
            if with_views:
                if name in views.present:
                    scores[:, v] = np.nan
                scores[views.present.get(name, slice(None)), v] = zero_within(of_view.copy(), tolerance)
        scores[:, 0] = zero_within(*self._combined(views, of_views))
        return scores

    def _scored(self, score: Mapping[str, Score], views: Views) -> dict[str, tuple[Array, Array]]:
        """Return the scores of the samples that have each view, and their errors."""
        nothing = np.empty((0, self._n_features_out)), np.zeros(self._n_features_out)
        return {name: score[name](views.observed(name)) if views.n_present(name) else nothing for name in views}

    def _combined(self, views: Views, of_views: Mapping[str, tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return the ensemble scores and their rounding errors, from those of the samples that have each view."""
        return self._divided(views, *self._sum(views, of_views))

    def _sum(self, views: Views, of_views: Mapping[str, tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return Σ_v beta_v e_v over the views of each sample, and the rounding errors."""
        scores = np.zeros((views.n_samples, self._n_features_out))
        error = np.zeros(1 if views.complete else scores.shape)
        for name, (of_view, tolerance) in of_views.items():
            if self._beta[name] == 0:  # the errors may be infinite
                continue
            rows = views.present.get(name, slice(None))
            scores[rows] += self._beta[name] * of_view
            if views.complete:
                error = error + self._beta[name] * tolerance
            else:
                error[rows] += self._beta[name] * tolerance
        return scores, error

    def _divided(self, views: Views, scores: Array, error: Array) -> tuple[Array, Array]:
        """Return Σ_v beta_v e_v of samples that lack views divided by the sum of beta times loading over their views.

        The scores are changed in place.
        """
        if views.complete:
            return scores, error
        divisors = self._divisors(views)
        scores /= divisors
        return scores, np.broadcast_to(error, scores.shape) / divisors

    def _divisors(self, views: Views) -> Array:
        """Return the sum of beta times loading over the views of each sample, 1 for all views, (n_samples, 1)."""
        if views.complete:
            return np.ones((views.n_samples, 1))
        loadings, total, weight = self._loadings(), np.zeros(views.n_samples), np.zeros(views.n_samples)
        for name in views:
            rows = views.present.get(name, slice(None))
            total[rows] += self._beta[name] * loadings[name]
            weight[rows] += self._beta[name]
        if not weight.all():
            without = np.flatnonzero(weight == 0)
            raise InputError(
                f"{len(without)} of {views.n_samples} samples (first: row {without[0]}) have only views with beta 0; "
                "drop them, or give one of their views a positive beta"
            )
        divisors: Array = np.where(views.has_all(), 1.0, np.maximum(total, _LEAST_LOADING))[:, None]
        return divisors

    def _quantiles_of(self, views: Views, per_view: bool) -> Any:
        known = {name: self._closeness_in(name) for name in views}  # before there are threads
        closeness = self._by_block(self._block_closeness, views)
        tolerances = {name: self._score_maps[name].similarity.closeness_tolerance for name in views}
        of_views = {name: quantiles(closeness[:, v], known[name], tolerances[name]) for v, name in enumerate(views)}
        if per_view:
            return of_views
        rows, reference = self._reference_rows(), {}
        for name in views:
            rows_with = self._present_rows.get(name, rows)
            scores = quantiles(known[name], known[name], tolerances[name])
            reference[name] = among_all(scores[:, None], np.isin(rows, rows_with))[:, 0]
        return joint_quantiles(of_views, reference)

    def _closeness_in(self, name: str) -> Array:
        """Return the closeness of the training samples that new samples are compared with in a view."""
        if name in self._closeness:
            return self._closeness[name]
        return self._once(("closeness", name), lambda: self._training_closeness(name, self._score_maps))

    def _block_closeness(self, views: Views) -> Array:
        """Return how close the samples of a block are to the training samples in each view, (rows, views)."""
        closeness = np.full((views.n_samples, len(views)), np.nan)
        for v, name in enumerate(views):
            if views.n_present(name):
                rows = views.present.get(name, slice(None))
                closeness[rows, v] = self._score_maps[name].similarity.closeness(views.observed(name))
        return closeness

    def _reference_rows(self) -> Array:
        """Return the numbers of the training samples whose closeness new samples are compared with.

        They are evenly spaced among all samples, and if some lack views, among the samples that have each view.
        """
        n = len(self.labels_)
        having = [self._present_rows.get(name, np.arange(n)) for name in self.view_names_]
        return np.unique(np.concatenate([rows[_spread_rows(len(rows), _MOST_REFERENCE)] for rows in having]))

    def _reference_rows_with(self, name: str) -> Array:
        """Return the numbers of those of the `_reference_rows` that have a view, among the samples that have it."""
        rows = self._reference_rows()
        return np.flatnonzero(np.isin(self._present_rows[name], rows)) if name in self._present_rows else rows

    def _training_closeness(self, name: str, maps: Mapping[str, ScoreMap]) -> Array:
        """Return the closeness of these samples, given similarities that know the training rows."""
        return maps[name].similarity.training_closeness(self._reference_rows_with(name))

    def _loadings(self) -> dict[str, float]:
        """Return for each view <e_v, e> / <e, e>, with e the ensemble scores of training samples with all views.

        The loadings times beta sum to 1, up to a lower bound of a loading. A model of complete data computes them when
        samples first lack views.
        """
        return self._view_loadings or self._once(("loadings", ""), self._loadings_of_complete_data)

    def _loadings_of_complete_data(self) -> dict[str, float]:
        rows = _spread_rows(len(self.labels_), _MOST_COMPLETE)
        enough = len(rows) >= _FEWEST_COMPLETE
        return self._loadings_of(
            {name: self._scores_with_view(name)[rows] for name in self.view_names_} if enough else {}
        )

    def _loadings_of(self, of_views: Mapping[str, Array]) -> dict[str, float]:
        """Return the loadings from each view's own scores of the same samples; equal ones if there are none."""
        if not of_views:
            return dict.fromkeys(self.view_names_, 1 / sum(self._beta.values()))
        ensemble = np.sum([self._beta[name] * scores for name, scores in of_views.items()], axis=0)
        squares = float((ensemble**2).sum()) or 1.0
        return {
            name: max(float((scores * ensemble).sum()) / squares, _LEAST_LOADING) for name, scores in of_views.items()
        }

    def _require_finite(self, name: str, scores: Array) -> None:
        if not np.isfinite(scores).all():
            raise InputError(
                f"view {name!r} has similarities too large to compute with under {self.kernels_[name]}; scale the view"
            )

    def _by_nearness(self, function: Callable[[Array], Array], views: Views) -> Array:
        """Return a function of the nearness of all rows to the clusters; its values must not be negative.

        With dtype="auto", many rows are first scored in float32. Rows whose cluster could be another one in float64 are
        scored again in float64.
        """
        n = views.n_samples
        score = self._scores_in_float32() if n >= _FEWEST_ROWS else {}
        if not score:
            return super()._by_nearness(function, views)

        def screen(block: Views) -> Array:
            scores, errors = self._combined(block, self._scored(score, block))
            nearness = self._assignment.nearness(scores)
            certain = self._assignment.is_certain(nearness, scores, np.broadcast_to(errors, scores.shape)[:, 0])
            found = function(nearness)
            found[~certain] = -1  # to be computed again
            return found

        def rows_left(found: Array) -> Array:
            return np.flatnonzero(found.reshape(len(found), -1)[:, 0] < 0)

        if n > _TRIAL_PART * _TRIAL_ROWS:
            some = views.take(_spread_rows(n, _TRIAL_ROWS))
            if len(rows_left(self._by_block(screen, some))) > _TRIAL_ROWS * _MOST_LEFT:
                return super()._by_nearness(function, views)
        found = self._by_block(screen, views)
        left = rows_left(found)
        for start in range(0, len(left), _ROWS_AGAIN):  # a copy of all rows may not fit into memory
            rows = left[start : start + _ROWS_AGAIN]
            found[rows] = super()._by_nearness(function, views.take(rows))
        return found

    def _scores_in_float32(self) -> dict[str, Score]:
        """Return for each view the function of rows that returns their scores and errors; empty if all are float64."""
        if not (isinstance(self.dtype, str) and self.dtype == "auto"):
            return {}
        narrow = {name: self._once(("float32", name), each.in_float32) for name, each in self._score_maps.items()}
        if not any(narrow.values()):
            return {}
        return {name: each or self._score_maps[name].with_bound for name, each in narrow.items()}

    def _by_block(self, function: Callable[[Views], Array], views: Views) -> Array:
        """Return a function of all rows, computed in blocks of rows and in threads, with memory for a few blocks."""
        n, rows = views.n_samples, self.batch_size
        if rows == "auto":
            maps = [self._score_maps[name] for name in views]
            widest = max((each.n_training for each in maps if not each.similarity.sparse), default=0)
            rows = min(max(_BLOCK_BYTES // (4 * max(widest, 1)), 64), 8192)
        if n <= rows:
            return function(views)
        found: list[Array] = []  # the result, once the first block has its shape; blocks and result would need twice
        lock = Lock()

        def fill(block: slice) -> None:
            part = function(views.take(block))
            with lock:
                if not found:
                    found.append(np.empty((n, *part.shape[1:]), part.dtype))
            found[0][block] = part

        with Workers(self.n_jobs) as workers:
            workers.map(fill, [slice(start, start + rows) for start in range(0, n, rows)])
        return found[0]


class OneViewKernelClusterer(KernelClusterer):
    """Base class of kernel methods of one view."""

    latent_: Annotated[Array, FloatArray("train", "components")]
    explained_variance_ratio_: Annotated[Array, FloatArray("components")]

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

    def _views_to_fit(self, X: Any) -> Views:
        views = super()._views_to_fit(X)
        if len(views) > 1:
            raise InputError(
                f"{type(self).__name__} clusters one view and got {len(views)} ({', '.join(views)}); pass one of them, "
                f"wrap it as Concat({type(self).__name__}(…)) or PerView({type(self).__name__}(…)), or use TMvKSCR"
            )
        return views


def _spread_rows(n: int, most: int) -> Array:
    """Return the numbers of evenly spaced rows, all if there are few."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


def _scores_of_complete_samples(views: Views, maps: Mapping[str, ScoreMap], map_views: Map) -> dict[str, Array]:
    """Return each view's own scores of some samples that have all views; none if there are too few."""
    complete = np.flatnonzero(views.has_all())
    some = views.take(complete[_spread_rows(len(complete), _MOST_COMPLETE)])
    if some.n_samples < _FEWEST_COMPLETE:
        return {}
    scores = map_views(lambda name: maps[name].with_tolerance(some[name])[0], list(views))
    return dict(zip(views, scores, strict=True))


def _mask(rows: Array, n: int) -> Array:
    mask = np.zeros(n, dtype=bool)
    mask[rows] = True
    return mask


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
            1 - kernel(x[_spread_rows(x.shape[0], _CONTRAST_ROWS)]).mean() < _LEAST_CONTRAST for kernel, x in smooth
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
