"""Consensus: one clustering from the scores of several models."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, overload

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from coview.compose.wrapper import nested_models, require_clusterer, setting
from coview.core.assign import FEW_STARTS, Assigner, Assignment, Deferred, Labels, as_assigner
from coview.errors import InputError
from coview.methods.base import MultiViewClusterer, Seed, warn_if_many_clusters
from coview.methods.kernel_clusterer import KernelClusterer
from coview.parameters import check_integer, check_number, is_integer
from coview.rows import l2_normalize
from coview.state import FITTED, FloatArray, Range, Size, Sizes, SomeViews, require
from coview.views import Array, Layout, Views

_DECIMALS = 6  # of scores, some of which may be computed in float32
_DIFFUSION = 3  # the power of the eigenvalues


class Consensus(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiViewClusterer):
    """Cluster by the scores of several models of the same views.

    Each model is fitted. Its components are weighted by the third power of their eigenvalues relative to the largest,
    as in a diffusion map, so that components without clusters count little. The scores of a sample are then
    L2-normalised, so that each model contributes a direction, and set side by side. The inner product of two samples is
    the weighted mean of their cosine similarities in the models. k-means on these directions finds clusters that the
    models have in common; errors of a single model have little effect.

    Parameters
    ----------
    estimators : list of estimators
        Methods or wrappers with `transform`, such as [TMvKSCR(3), Concat(KSC(3))].
    n_clusters : int, optional
        Number of clusters; by default that of the estimators, which must then be the same for all.
    weights : list of numbers, optional
        The weight of each model; equal by default.
    assigner : assigner or name
        As in `TMvKSCR`.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    random_state : int, Generator, RandomState or None
        Seed of the assigner. The models have their own.

    Attributes
    ----------
    estimators_ : list
        The fitted models.
    n_clusters_ : int
        The number of clusters.
    scores_ : array of shape (n_samples, n_components)
        The normalised scores of all models, rotated to their principal axes.
    eigenvalues_ : array of shape (n_components,)
        The fraction of the squared norm of the scores along each axis, in decreasing order. If all models agree, a few
        are large.
    view_labels_ : dict
        Clusters of the training samples by each view's own scores, by view name, if a model has these.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import Concat, TMvKSCR
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = Consensus([TMvKSCR(3), Concat(TMvKSCR(3))], random_state=0).fit({"text": text, "image": image})
    >>> np.bincount(model.labels_)
    array([20, 20, 20])
    """

    estimators_: list[Annotated[Any, FITTED]]
    scores_: Annotated[Array, FloatArray("train", "components")]
    eigenvalues_: Annotated[Array, FloatArray("components")]
    _weights: Annotated[Array, FloatArray("_models", least=0)]
    _axes: Annotated[Array, FloatArray("components", "components")]
    n_clusters_: Annotated[int, Range(least=1)]
    _diffusion: Annotated[Array, FloatArray("components", least=0, most=1)]
    _widths: tuple[Annotated[int, Range(least=1)], ...]
    _n_features_out: Annotated[int, Size("components")]
    _assignment: Assignment
    _view_assigner: Deferred
    _view_assignments: SomeViews[Assignment]

    def __init__(
        self,
        estimators: Sequence[Any],
        n_clusters: int | None = None,
        *,
        weights: Sequence[float] | None = None,
        assigner: Assigner | str = "directions",
        views: Layout = None,
        random_state: Seed = None,
    ) -> None:
        self.estimators = estimators
        self.n_clusters = n_clusters  # type: ignore[assignment]
        self.weights = weights
        self.assigner = assigner
        self.views = views
        self.random_state = random_state

    @property
    def kernels_(self) -> dict[str, Any]:
        """The kernel of each view in the first model that has scores of each view."""
        return next((dict(method.kernels_) for _, method in self._models_of_views() if method is not None), {})

    def _models_of_views(self) -> list[tuple[Any, KernelClusterer | None]]:
        """Return all models, each with the method inside that has scores of each view, or None."""
        methods = (list(nested_models(model))[-1] for model in self.estimators_)
        return [
            (model, method if isinstance(method, KernelClusterer) and method.view_names_ == self.view_names_ else None)
            for model, method in zip(self.estimators_, methods, strict=True)
        ]

    def _check_n_clusters(self, views: Views) -> None:
        """It is checked with the models."""

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        same = len(self.estimators_) == len(self._weights) == len(self._widths)
        require(same, "expected a weight and the number of components of each model")
        require(sum(self._widths) == len(self._axes), f"expected {len(self._axes)} components of all models")
        for model in self.estimators_:
            same = model.view_n_features_ == self.view_n_features_
            require(same, f"estimators_ expect views with {model.view_n_features_}, not {self.view_n_features_}")

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        self.n_clusters_ = n_clusters = self._number_of_clusters()
        self._weights = self._checked_weights()
        warn_if_many_clusters(n_clusters, views.n_samples)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of clusters that only a model has
            self.estimators_ = [clone(each).fit(views) for each in self.estimators]
        rng = self._generator()
        scores = [_training_scores(model, views) for model in self.estimators_]
        diffusion = [diffusion_weights(*each) for each in zip(self.estimators_, scores, strict=True)]
        self._diffusion = np.concatenate(diffusion)
        self._widths = tuple(each.shape[1] for each in scores)
        combined = self._combined(scores)
        values, axes = np.linalg.eigh(combined.T @ combined)
        order = np.argsort(-values, kind="stable")
        self.eigenvalues_, self._axes = np.maximum(values[order], 0) / max(values.sum(), 1e-300), axes[:, order]
        self._n_features_out = len(values)
        self.scores_ = combined @ self._axes
        assigner = as_assigner(self.assigner)
        self._assignment = assigner.fit(self.scores_, n_clusters, rng, _DECIMALS)
        self.labels_ = self._assignment.assign(self.scores_)
        self._view_assigner = Deferred(assigner, n_clusters, _DECIMALS, seed=int(rng.integers(2**31)))
        self._view_assignments = {}
        self._warn_if_fewer(self._assignment.n_found, self.n_clusters_)

    def _number_of_clusters(self) -> int:
        """Return the number of clusters, after the models are checked."""
        if not isinstance(self.estimators, (list, tuple)) or not self.estimators:
            raise InputError(f"estimators={self.estimators!r}: expected a list such as [TMvKSCR(3), Concat(KSC(3))]")
        for each in self.estimators:
            require_clusterer(each)
            if not hasattr(each, "transform"):
                raise InputError(f"{type(each).__name__} has no scores; Consensus needs models with transform")
        if self.n_clusters is not None:
            return check_integer("n_clusters", self.n_clusters, 1)
        numbers = [setting(each, "n_clusters", None) for each in self.estimators]
        if len(set(numbers)) > 1 or not is_integer(numbers[0]):
            raise InputError(
                f"estimators have the numbers of clusters {', '.join(map(str, numbers))}; give n_clusters, or methods "
                "with the same number"
            )
        return int(numbers[0])

    def _checked_weights(self) -> Array:
        weights = [1.0] * len(self.estimators) if self.weights is None else list(self.weights)
        if len(weights) != len(self.estimators):
            raise InputError(f"weights has {len(weights)} entries for {len(self.estimators)} estimators; give one each")
        for weight in weights:
            check_number("weights", weight, 0)
        if not any(weights):
            raise InputError("weights are all zero; give one estimator a positive weight")
        return np.array(weights, dtype=np.float64)

    def _combined(self, scores: Sequence[Array]) -> Array:
        """Return the normalised and weighted scores of all models side by side; rows have at most norm 1."""
        roots = np.sqrt(self._weights / self._weights.sum())
        models = zip(roots, np.split(self._diffusion, np.cumsum(self._widths)[:-1]), scores, strict=True)
        return np.hstack([root * l2_normalize(each * diffusion) for root, diffusion, each in models])

    def _scores(self, views: Views) -> Array:
        return self._combined([np.asarray(model.transform(views)) for model in self.estimators_]) @ self._axes

    def _view_scores(self, views: Views | None = None) -> dict[str, Array]:
        """Return the scores of each view, by default of the training samples, in the space of the joint scores.

        Models without scores of each view contribute zeros.
        """
        n = len(self.labels_) if views is None else views.n_samples
        found: dict[str, list[Array]] = {name: [] for name in self.view_names_}
        models = self._models_of_views()
        if not any(method for _, method in models):
            return {}
        for (model, method), width in zip(models, self._widths, strict=True):
            of_views = None if method is None or views is None else model.transform(views, per_view=True)
            for name, scores in found.items():
                if method is None:
                    scores.append(np.zeros((n, width)))
                else:
                    scores.append(method._training_scores(name) if of_views is None else of_views[name])
        return {name: self._combined(scores) @ self._axes for name, scores in found.items()}

    @property
    def view_labels_(self) -> dict[str, Labels]:
        """Clusters of the training samples by each view's own scores, by view name."""
        check_is_fitted(self)
        scores = self._view_scores()
        self._learn_view_assignments(scores)
        return {name: self._view_assignments[name].assign(of_view) for name, of_view in scores.items()}

    def _learn_view_assignments(self, training_scores: Mapping[str, Array]) -> None:
        """Learn each view's own clusters, when they are first used."""
        for name, scores in training_scores.items():
            if name not in self._view_assignments:
                self._view_assignments[name] = self._view_assigner.fit(scores)

    def model_labels(self) -> list[Labels]:
        """Return the clusters of the training samples by the scores of each model.

        Returns
        -------
        list of arrays of shape (n_samples,), in the order of estimators_
        """
        check_is_fitted(self)
        blocks = np.split(self.scores_ @ self._axes.T, np.cumsum(self._widths)[:-1], axis=1)
        return [FEW_STARTS.fit(each, self.n_clusters_, np.random.default_rng(0)).assign(each) for each in blocks]

    @overload
    def transform(self, X: Any, per_view: Literal[True]) -> dict[str, Array]: ...

    @overload
    def transform(self, X: Any, per_view: bool = False) -> Any: ...  # an array, or a data frame after `set_output`

    def transform(self, X: Any, per_view: bool = False) -> Any:
        """Return the scores of these samples.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return each view's own scores instead, of the models that have these.

        Returns
        -------
        array of shape (n_samples, n_components), or a dictionary of arrays by view name
        """
        views = self._views_to_predict(X)
        if per_view:
            return self._view_scores(views)
        return self._scores(views).astype(views.dtype, copy=False)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the scores of the training samples.

        Parameters
        ----------
        X : views, as in `as_views`
        y : ignored

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        return self.fit(X).scores_

    @overload
    def predict(self, X: Any, per_view: Literal[False] = False) -> Labels: ...

    @overload
    def predict(self, X: Any, per_view: Literal[True]) -> dict[str, Labels]: ...

    @overload
    def predict(self, X: Any, per_view: bool) -> Labels | dict[str, Labels]: ...

    def predict(self, X: Any, per_view: bool = False) -> Labels | dict[str, Labels]:
        """Return the cluster of each sample.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return labels by each view's own scores instead.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view name
        """
        views = self._views_to_predict(X)
        if not per_view:
            return self._assignment.assign(self._scores(views))
        if not self._view_assignments:
            self._learn_view_assignments(self._view_scores())
        return {name: self._view_assignments[name].assign(scores) for name, scores in self._view_scores(views).items()}

    def recluster(self, X: Any) -> Self:
        """Learn the clusters again, from the scores of these samples; the models do not change.

        Parameters
        ----------
        X : views, as in `as_views`
            Samples of all clusters.

        Returns
        -------
        self
        """
        views = self._views_to_predict(X)
        learn = self._view_assigner
        self._assignment = learn.assigner.fit(self._scores(views), learn.n_clusters, self._generator(), _DECIMALS)
        self.labels_ = self._assignment.assign(self.scores_)
        self._view_assignments = {name: learn.fit(scores) for name, scores in self._view_scores(views).items()}
        self._warn_if_fewer(self._assignment.n_found, self.n_clusters_)
        return self


def diffusion_weights(model: Any, scores: Array) -> Array:
    """Return the weight of each component of the scores of a fitted model; 1 if the model has no eigenvalues."""
    *_, method = nested_models(model)
    eigenvalues = getattr(method, "eigenvalues_", np.zeros(0))
    if len(eigenvalues) != scores.shape[1] or not 0 < eigenvalues[0] < np.inf:
        return np.ones(scores.shape[1])
    weights: Array = np.clip(eigenvalues / eigenvalues[0], 0, 1) ** _DIFFUSION
    return weights


def _training_scores(model: Any, views: Views) -> Array:
    """Return the scores of the training samples, which most methods keep."""
    known = getattr(list(nested_models(model))[-1], "scores_", None)
    return np.asarray(known if known is not None and len(known) == views.n_samples else model.transform(views))
