"""What the kernel methods share: the pipeline from views to labels, for training rows and for new ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coview.core.assign import DECIMALS, Assigner, Assignment, Deferred, Labels, as_assigner
from coview.core.eigen import top_eigenpairs
from coview.core.fuse import fuses_sparse
from coview.core.fused import Fused
from coview.core.gram import Centering, Grams, learn_similarities
from coview.core.score import ScoreMap, ensemble_of_training_rows, zero_within
from coview.core.tiles import SymmetricTiles
from coview.errors import InputError
from coview.kernels import RBF, Kernel, NeighborGraph, PrecomputedSimilarity, kernel_per_view
from coview.methods.base import MultiViewClusterer, ViewWeights
from coview.parameters import check_integer
from coview.runtime import Workers, require_memory
from coview.state import PARAMETER, ByView, FloatArray, Size, Sizes, SomeViews, require
from coview.views import Array, Views

_FLOAT64_UP_TO = 2000
_LEAST_CONTRAST = 1e-3
_BLOCK_BYTES = 2**21
_SOLVER_VECTORS = 16  # for each component


@dataclass(frozen=True)
class LatentSpace:
    """What a kernel method learns from its Gram matrices.

    Parameters
    ----------
    eigenvalues : (components,)
    latent : by view, (n, components)
        The hidden features; one and the same array if the views share them.
    centerings : by view
    scores : (n, components), optional
        Ensemble scores of the training rows as computed; None if their similarities must be computed again.
    explained_variance_ratio : (components,), optional
        For problems that have a trace.
    """

    eigenvalues: Array
    latent: Mapping[str, Array]
    centerings: dict[str, Centering]
    scores: Array | None
    explained_variance_ratio: Any = None


def solve_shared(fused: Fused, n_components: int, beta: Mapping[str, float]) -> LatentSpace:
    """Solve a fused problem: H = D^{-1/2} U holds the leading eigenvectors U, and all views share it."""
    eigenpairs = top_eigenpairs(fused.problem, n_components)
    latent = eigenpairs.vectors / np.sqrt(fused.degree)[:, None]
    return LatentSpace(
        eigenpairs.values,
        dict.fromkeys(fused.centerings, latent),
        fused.centerings,
        fused.scores(latent, beta),
        eigenpairs.explained_variance_ratio,
    )


class KernelClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiViewClusterer):
    """Kernel methods: views → Gram matrices → latent space → scores → labels; new rows take the same steps.

    A method defines only how its latent space follows from the Gram matrices (`_latent_space`).
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
    scores_: Annotated[Array, FloatArray("train", "components")]
    kernels_: ByView[Annotated[Kernel, PARAMETER]]
    _beta: ViewWeights
    _n_features_out: Annotated[int, Size("components")]
    _score_maps: ByView[ScoreMap]
    _assignment: Assignment
    _view_assigner: Deferred
    _view_assignments: SomeViews[Assignment]
    _view_scores: SomeViews[Annotated[Array, FloatArray("train", "components")]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @abstractmethod
    def _latent_space(self, grams: Grams, n_components: int) -> LatentSpace:
        """Solve the method's eigenproblem."""

    def _n_matrices(self, views: Views) -> int:
        """Return how many n×n matrices a fit holds at a time: that of the current view, and their sum."""
        return 2

    def _bytes_to_fit(self, views: Views, kernels: Mapping[str, Kernel], dtype: Any) -> int:
        """Return the memory of a fit, without what does not grow with it."""
        n, itemsize = views.n_samples, np.dtype(dtype).itemsize
        if self._fuses_sparse and fuses_sparse([kernel.sparse for kernel in kernels.values()]):
            # Per view a graph and its part of their union, distances while it is made, and the rows; then the basis of
            # the eigensolver.
            graphs = [kernel for kernel in kernels.values() if isinstance(kernel, NeighborGraph)]
            entries = sum(2 * min(graph.n_neighbors, n) + 1 for graph in graphs)
            rows = 12 * sum(views.n_features.values())
            return int(n * (entries * (2 * itemsize + 24) + rows + 8 * _SOLVER_VECTORS * (self.n_clusters + 6)))
        rows = n * sum(views.n_features.values()) * itemsize
        return int(self._n_matrices(views) * SymmetricTiles.nbytes(n, dtype) + rows)

    def _views_to_fit(self, X: Any) -> Views:
        """Check the views and parameters; the views have equal weights in the ensemble score by default."""
        views = super()._views_to_fit(X)
        if self.batch_size != "auto":
            check_integer("batch_size", self.batch_size, 1, or_else=", or 'auto'")
        self._beta = dict.fromkeys(views, 1 / len(views))
        return views

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        rng = self._generator()
        assigner = as_assigner(self.assigner)
        kernels = kernel_per_view(self.kernel, views.names)
        dtype = _gram_dtype(self.dtype, kernels, assigner, views)
        require_memory(
            self._bytes_to_fit(views, kernels, dtype),
            f"fitting {views.n_samples} samples in {np.dtype(dtype)}",
            "fit on a part of the samples and predict the others"
            + (", or set dtype='float32'" if dtype == np.float64 else ""),
        )
        report = _Stages(self.progress, total=len(views) + 3)
        with Workers(self.n_jobs) as workers:
            kernels, similarities = learn_similarities(views, kernels, dtype, rng, workers.map)
            grams = Grams(similarities, kernels, views.n_samples, dtype, workers, report)
            space = self._latent_space(grams, max(1, self.n_clusters - 1))
            report("eigenvectors")
            self._score_maps = {
                name: ScoreMap.learn(similarity, space.centerings[name], space.latent[name])
                for name, similarity in similarities.items()
            }
            scores = space.scores
            if scores is None:
                scores = ensemble_of_training_rows(self._score_maps, self._beta, workers.map)

        self.kernels_ = kernels
        self.eigenvalues_ = space.eigenvalues
        self._n_features_out = len(space.eigenvalues)
        self._keep_latent(space, views.dtype)
        scores = zero_within(scores, self._ensemble_tolerance())
        self.scores_ = scores.astype(views.dtype, copy=False)
        report("scores")

        decimals = min(DECIMALS[similarity.dtype] for similarity in similarities.values())
        self._assignment = assigner.fit(scores, self.n_clusters, rng, decimals)
        self.labels_ = self._assignment.assign(scores)
        self._view_assigner = Deferred(assigner, int(self.n_clusters), decimals, seed=int(rng.integers(2**31)))
        self._view_assignments = {}
        # The scores of single views follow from the stored training rows; a precomputed Gram matrix is not stored.
        self._view_scores = {
            name: self._score_maps[name](views[name])
            for name, similarity in similarities.items()
            if similarity.forget_training() is not similarity
        }
        self._score_maps = {name: each.without_training_gram() for name, each in self._score_maps.items()}
        report("labels")
        self._warn_if_fewer(self._assignment.n_found)

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        for name, score_map in self._score_maps.items():
            similarity: Any = score_map.similarity
            if isinstance(similarity, PrecomputedSimilarity):  # its training scores cannot be computed again
                require(name in self._view_scores, f"expected the scores of view {name!r}")
                width = self.view_n_features_[name]
                require(score_map.n_training == width, f"expected one column of view {name!r} per training sample")
            else:
                same = self.kernels_[name] == similarity.kernel
                require(same, f"expected one kernel for view {name!r}, got two")

    def recluster(self, X: Any) -> Self:
        """Learn the clusters again, from the scores of these samples; the latent space does not change.

        More samples than the latent space was learnt from show the clusters more clearly, and cost only their scores.

        Parameters
        ----------
        X : views, as in `as_views`
            More samples, among which all clusters occur.

        Returns
        -------
        self
        """
        views = self._views_to_predict(X)
        assigner, decimals = self._view_assigner.assigner, self._view_assigner.decimals
        scores = self._by_block(self._ensemble, views)
        self._assignment = assigner.fit(scores, self.n_clusters, self._generator(), decimals)
        self.labels_ = self._assignment.assign(self.scores_)
        self._view_assignments = {name: self._view_assigner.fit(e) for name, e in self._per_view(views).items()}
        self._warn_if_fewer(self._assignment.n_found)
        return self

    def _keep_latent(self, space: LatentSpace, dtype: Any) -> None:
        """Keep the hidden features that all views share."""
        self.latent_ = next(iter(space.latent.values())).astype(dtype, copy=False)
        self.explained_variance_ratio_ = space.explained_variance_ratio

    def transform(self, X: Any, per_view: bool = False) -> Any:
        """Return the score variables of these samples.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return each view's own scores instead of their weighted mean.

        Returns
        -------
        array of shape (n_samples, n_clusters - 1), or a dictionary of such arrays by view
        """
        if per_view and _wraps_output(self):
            raise InputError("transform(per_view=True) returns a dictionary; reset set_output to 'default' to get it")
        views = self._views_to_predict(X)
        if per_view:
            return {name: scores.astype(views.dtype, copy=False) for name, scores in self._per_view(views).items()}
        return self._by_block(self._ensemble, views).astype(views.dtype, copy=False)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the score variables of the training samples.

        Parameters
        ----------
        X : views, as in `as_views`
        y : ignored

        Returns
        -------
        array of shape (n_samples, n_clusters - 1)
        """
        return self.fit(X).scores_

    def predict(self, X: Any, per_view: bool = False) -> Any:
        """Return the cluster of each sample; a sample gets the same label alone and in any batch.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return labels by each view's own scores (individual assignment) instead of those by the ensemble score.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view
        """
        views = self._views_to_predict(X)
        if per_view:
            return {name: self._view_assignment(name).assign(e) for name, e in self._per_view(views).items()}
        return self._by_block(lambda block: self._assignment.assign(self._ensemble(block)), views)

    @property
    def view_labels_(self) -> dict[str, Labels]:
        """Clusters of the training samples by each view's own scores (individual assignment)."""
        check_is_fitted(self)
        return {name: self._view_assignment(name).assign(self._training_scores(name)) for name in self.view_names_}

    def _view_assignment(self, name: str) -> Assignment:
        """Return a view's own clusters, learnt when they are first used."""
        if name not in self._view_assignments:
            self._view_assignments[name] = self._view_assigner.fit(self._training_scores(name))
        return self._view_assignments[name]

    def _training_scores(self, name: str) -> Array:
        """Return a view's own scores of the training rows, computed when they are first used."""
        if name not in self._view_scores:
            score_map = self._score_maps[name]
            self._view_scores[name] = zero_within(score_map.of_training_rows(), score_map.tolerance)
        self._require_finite(name, self._view_scores[name])
        return self._view_scores[name]

    def _ensemble(self, views: Views) -> Array:
        """Return the weighted mean of the views' scores."""
        total, error = np.zeros((views.n_samples, self._n_features_out)), np.zeros(1)
        for name, x in views.items():
            scores, tolerance = self._score_maps[name].with_tolerance(x)
            self._require_finite(name, scores)
            total += self._beta[name] * scores
            error = error + self._beta[name] * tolerance
        return zero_within(total, error)

    def _ensemble_tolerance(self) -> Array:
        """Return the rounding error of the ensemble scores of the training rows."""
        tolerances = [self._beta[name] * score_map.tolerance for name, score_map in self._score_maps.items()]
        total: Array = np.sum(tolerances, axis=0)
        return total

    def _per_view(self, views: Views) -> dict[str, Array]:
        def scores(block: Views) -> Array:
            ((name, x),) = block.items()
            of_view = self._score_maps[name](x)
            self._require_finite(name, of_view)
            return of_view

        return {name: self._by_block(scores, views.select([name])) for name in views}

    def _require_finite(self, name: str, scores: Array) -> None:
        if not np.isfinite(scores).all():
            raise InputError(
                f"view {name!r} has similarities too large to compute with under {self.kernels_[name]}; scale the view"
            )

    def _by_block(self, function: Callable[[Views], Array], views: Views) -> Array:
        """Apply a function to blocks of rows, in threads, with memory for a few blocks."""
        n, rows = views.n_samples, self.batch_size
        if rows == "auto":
            maps = [self._score_maps[name] for name in views]
            widest = max((each.n_training for each in maps if not each.similarity.sparse), default=0)
            rows = min(max(_BLOCK_BYTES // (4 * max(widest, 1)), 64), 8192)
        if n <= rows:
            return function(views)
        with Workers(self.n_jobs) as workers:
            blocks = [slice(start, start + rows) for start in range(0, n, rows)]
            return np.concatenate(workers.map(lambda block: function(views.take(block)), blocks))


class OneViewKernelClusterer(KernelClusterer):
    """Kernel methods of one view."""

    explained_variance_ratio_: Annotated[Array, FloatArray("components")]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernel: Any = RBF(),  # noqa: B008 - a frozen value
        assigner: Any = "directions",
        dtype: Any = "auto",
        batch_size: Any = "auto",
        n_jobs: int | None = None,
        progress: Any = None,
        random_state: Any = None,
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


def _gram_dtype(dtype: Any, kernels: Mapping[str, Kernel], assigner: Assigner, views: Views) -> type[np.floating[Any]]:
    """Return the precision of Gram matrices; "auto" is float32 if that is faster and does not change labels.

    "auto" is float64 up to 2000 samples, where there is little to gain; for unbounded kernels; for the codebook, which
    depends on signs; and for a kernel so flat (a bandwidth far too large) that the differences between samples are
    lost in the rounding errors of float32.
    """
    if dtype == "auto":
        bounded = all(kernel.bounded for kernel in kernels.values())
        if views.n_samples <= _FLOAT64_UP_TO or not bounded or assigner.reads_signs:
            return np.float64
        rows = np.linspace(0, views.n_samples - 1, 256).astype(int)
        smooth = [name for name in views if not kernels[name].sparse]
        flat = any(1 - kernels[name](views[name][rows]).mean() < _LEAST_CONTRAST for name in smooth)
        return np.float64 if flat else np.float32
    try:
        known = {np.dtype(kind): kind for kind in (np.float32, np.float64)}
        return known[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise InputError(f"dtype={dtype!r}: expected 'auto', 'float32' or 'float64'") from None


class _Stages:
    """Call the caller's function after each stage of a fit: progress(stage, number done, number in total)."""

    def __init__(self, progress: Callable[[str, int, int], object] | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def __call__(self, stage: str) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(stage, self._done, self._total)


def _wraps_output(estimator: Any) -> bool:
    """Whether scikit-learn will turn what `transform` returns into one data frame."""
    chosen = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    return bool((chosen or get_config()["transform_output"]) != "default")
