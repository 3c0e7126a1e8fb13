"""What every method shares: the gate, the scikit-learn contract, and the road from kernels to labels."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from coview.core.assign import Assignment, Labels, as_assigner
from coview.core.eigen import Eigenpairs
from coview.core.gram import Centering, training_gram
from coview.core.score import ScoreMap
from coview.errors import InputError
from coview.kernels import RBF, by_view_name, kernel_per_view
from coview.views import Array, Views, as_views, holds_several


class MultiViewClusterer(ClusterMixin, BaseEstimator, ABC):
    """The gate for fit and predict, for any method."""

    n_clusters: int
    views: Any = None  # methods that know one view have no such parameter
    random_state: Any
    view_names_: tuple[str, ...]
    view_n_features_: dict[str, int]
    _view_columns: dict[str, tuple[str, ...] | None]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the views."""

    def _views_to_fit(self, X: Any) -> Views:
        """Check the views and the number of clusters, and remember the shape of the views."""
        views = as_views(X, self.views)
        # scikit-learn's contract fits a plain X with n_clusters=1, so for one view the trivial answer is given.
        least = 1 if len(views) == 1 else 2
        if not isinstance(self.n_clusters, Integral) or self.n_clusters < least:
            raise InputError(f"n_clusters={self.n_clusters!r} must be a whole number of at least 2")
        if views.n_samples < max(2, self.n_clusters):
            raise InputError(
                f"n_samples={views.n_samples} is too few for n_clusters={self.n_clusters}; "
                "give more samples or ask for fewer clusters"
            )
        self._remember(X, views, reset=True)
        self.view_names_ = views.names
        self.view_n_features_ = views.n_features
        self._view_columns = views.columns
        return views

    def _views_to_predict(self, X: Any) -> Views:
        """Check new views against those of fit, and bring them into the same order."""
        check_is_fitted(self)
        views = as_views(X, self.views if not holds_several(X) else None)
        if holds_several(X) and not isinstance(X, Mapping) and len(views) == len(self.view_names_):
            views = Views(  # a list has no names of its own: its order counts
                dict(zip(self.view_names_, views.values(), strict=True)),
                dict(zip(self.view_names_, views.columns.values(), strict=True)),
            )
        self._remember(X, views, reset=False)
        given, known = set(views.names), set(self.view_names_)
        if given != known:
            missing = f"; missing: {', '.join(sorted(known - given))}" if known - given else ""
            unknown = f"; unknown: {', '.join(sorted(given - known))}" if given - known else ""
            raise InputError(
                f"{type(self).__name__} was fitted on the views {', '.join(self.view_names_)}{missing}{unknown}"
            )
        for name, x in views.items():
            if x.shape[1] != self.view_n_features_[name]:
                raise InputError(
                    f"view {name!r} has {x.shape[1]} columns, but it had {self.view_n_features_[name]} when "
                    f"{type(self).__name__} was fitted"
                )
            before, now = self._view_columns[name], views.columns[name]
            if before is not None and now is not None and before != now and holds_several(X):
                first = next((a, b) for a, b in zip(before, now, strict=True) if a != b)
                raise InputError(
                    f"view {name!r} has the column {first[1]!r} where {first[0]!r} was when {type(self).__name__} was "
                    "fitted; use the same columns in the same order"
                )
        return Views({name: views[name] for name in self.view_names_})

    def _remember(self, X: Any, views: Views, *, reset: bool) -> None:
        """Let scikit-learn record, or compare, the columns of one stacked table."""
        if not holds_several(X):
            try:
                validate_data(self, X, reset=reset, skip_check_array=True)
            except ValueError as error:
                raise InputError(str(error)) from None
        elif reset:
            self.n_features_in_ = sum(views.n_features.values())
            self.__dict__.pop("feature_names_in_", None)

    def _generator(self) -> np.random.Generator:
        """The one source of randomness of a fit."""
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31)
        try:
            return np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise InputError(f"random_state={seed!r} must be a whole number, a NumPy generator or None") from None

    def _warn_if_fewer(self, found: int) -> None:
        if found < self.n_clusters:
            warnings.warn(
                f"found {found} distinct clusters instead of n_clusters={self.n_clusters}: "
                "the samples do not differ enough under these kernels",
                ConvergenceWarning,
                stacklevel=3,
            )


@dataclass(frozen=True)
class LatentSpace:
    """What a kernel method learns from its Gram matrices: one latent space and how each view is centred."""

    eigenpairs: Eigenpairs
    latent: Array
    centerings: dict[str, Centering]


class KernelClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiViewClusterer):
    """Kernel methods: views → Gram matrices → latent space → scores → labels, the same road for new rows.

    A method says only how its latent space comes from the Gram matrices (`_latent_space`).
    """

    kernel: Any
    assigner: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @abstractmethod
    def _latent_space(self, grams: Mapping[str, Array], n_components: int) -> LatentSpace:
        """Solve the method's eigenproblem."""

    def _views_to_fit(self, X: Any) -> Views:
        """Check the views and parameters; the views weigh the same in the ensemble score unless a method says more."""
        views = super()._views_to_fit(X)
        self._beta = dict.fromkeys(views, 1 / len(views))
        return views

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the shared latent space and the clusters.

        Parameters
        ----------
        X : views, as in `as_views`
            The training samples.
        y : ignored
        """
        views = self._views_to_fit(X)
        rng = self._generator()
        assigner = as_assigner(self.assigner)
        kernels = kernel_per_view(self.kernel, views.names)
        self.kernels_ = {name: kernels[name].resolve(x, rng) for name, x in views.items()}
        similarities = {name: self.kernels_[name].against(x) for name, x in views.items()}
        grams = {name: training_gram(name, self.kernels_[name], similarities[name], x) for name, x in views.items()}
        space = self._latent_space(grams, max(1, self.n_clusters - 1))

        self.eigenvalues_ = space.eigenpairs.values
        self.explained_variance_ratio_ = space.eigenpairs.shares
        self.latent_ = space.latent.astype(views.dtype, copy=False)
        self._n_features_out = space.latent.shape[1]
        self._score_maps = {
            name: ScoreMap.learn(
                similarities[name], space.centerings[name], space.latent, float(np.abs(grams[name]).max())
            )
            for name in views
        }
        per_view = self._scores(views)
        scores = self._ensemble(per_view)
        self.scores_ = scores.astype(views.dtype, copy=False)
        self._assignment = assigner.fit(scores, self.n_clusters, rng)
        self._assigner = assigner
        self._view_scores = per_view
        self._view_assignments: dict[str, Assignment] = {}
        self._view_seed = int(rng.integers(2**31))
        self.labels_ = self._assignment.assign(scores)
        self._warn_if_fewer(self._assignment.n_found)
        return self

    def transform(self, X: Any, per_view: bool = False) -> Any:
        """Return the score variables of these samples.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return a dictionary of every view's own scores instead of their weighted mean.
        """
        if per_view and _wraps_output(self):
            raise InputError("transform(per_view=True) returns a dictionary; reset set_output to 'default' to get it")
        views = self._views_to_predict(X)
        scores = self._scores(views)
        if per_view:
            return {name: e.astype(views.dtype, copy=False) for name, e in scores.items()}
        return self._ensemble(scores).astype(views.dtype, copy=False)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the score variables of the training samples."""
        return self.fit(X).scores_

    def predict(self, X: Any, per_view: bool = False) -> Any:
        """Return the cluster of each sample; a sample gets the same label alone and in any batch.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return a dictionary of labels by every view's own codebook (individual assignment) instead of the
            labels by the ensemble of the views.
        """
        scores = self._scores(self._views_to_predict(X))
        if per_view:
            return {name: self._view_assignment(name).assign(e) for name, e in scores.items()}
        labels: Labels = self._assignment.assign(self._ensemble(scores))
        return labels

    @property
    def view_labels_(self) -> dict[str, Labels]:
        """Clusters of the training samples by each view's own scores (individual assignment)."""
        check_is_fitted(self)
        return {name: self._view_assignment(name).assign(e) for name, e in self._view_scores.items()}

    def _view_assignment(self, name: str) -> Assignment:
        """Learn a view's own clusters when somebody first asks for them: most never do."""
        if name not in self._view_assignments:
            rng = np.random.default_rng(self._view_seed)
            scores = self._view_scores[name]
            self._view_assignments[name] = self._assigner.fit(scores, self.n_clusters, rng)
        return self._view_assignments[name]

    def _scores(self, views: Views) -> dict[str, Array]:
        return {name: self._score_maps[name](x) for name, x in views.items()}

    def _ensemble(self, per_view: Mapping[str, Array]) -> Array:
        total = sum(self._beta[name] * scores for name, scores in per_view.items())
        return np.asarray(total)


def _wraps_output(estimator: Any) -> bool:
    """Whether scikit-learn will turn what `transform` returns into one data frame."""
    chosen = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    return bool((chosen or get_config()["transform_output"]) != "default")


def weights_per_view(parameter: str, weights: Any, names: tuple[str, ...], default: float) -> dict[str, float]:
    """Check weights given as one number, a list in the order of the views, or a mapping by view name."""
    if weights is None:
        return dict.fromkeys(names, default)
    if isinstance(weights, Real):
        weights = [weights] * len(names)
    if isinstance(weights, Mapping):
        weights = list(by_view_name(parameter, weights, names).values())
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{parameter}={weights!r} must be one number for each view") from None
    if given.shape != (len(names),):
        raise InputError(f"{parameter} has {given.size} numbers for {len(names)} views ({', '.join(names)})")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
        raise InputError(f"{parameter}={given.tolist()} must be finite, not negative, and not all zero")
    return dict(zip(names, given.tolist(), strict=True))


class OneViewKernelClusterer(KernelClusterer):
    """Kernel methods that know one view only."""

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernel: Any = RBF(),  # noqa: B008 - a frozen value
        assigner: Any = "directions",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.assigner = assigner
        self.random_state = random_state

    def _views_to_fit(self, X: Any) -> Views:
        views = super()._views_to_fit(X)
        if len(views) > 1:
            raise InputError(
                f"{type(self).__name__} clusters one view and got {len(views)} ({', '.join(views)}); "
                "use TMvKSCR, pass one of them, or put them side by side with stack_views"
            )
        return views
