"""PerView: one model for each view, and the view whose clusters agree best with those of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, overload

import numpy as np
from sklearn.base import clone

from coview.compose.wrapper import (
    has_own,
    inner_has,
    prediction_settings,
    require_clusterer,
    require_safe_range,
    warn_for_other_libraries,
)
from coview.core.agreement import mean_agreements, size_entropy
from coview.core.assign import Labels
from coview.kernels import by_view_name
from coview.methods.base import MultiViewClusterer, TrainingLabels, ViewWeights
from coview.state import FITTED, ByView, Sizes, require
from coview.views import Array, Layout, Views


class PerView(MultiViewClusterer):
    """Cluster each view separately, and select the view whose clusters agree best with those of the others.

    No known classes are used. The merit of a view is the mean adjusted Rand index between its clusters and those of
    every other view (0 if negative), times the normalised entropy of its cluster sizes, because one large cluster and a
    few tiny ones are not informative. Two views agree with each other equally, so the size entropy decides.

    Parameters
    ----------
    estimator : clusterer, or mapping from view name to clusterer
        The estimator of a view, such as KSC(3) or a clusterer of scikit-learn.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.

    Attributes
    ----------
    estimators_ : dict
        The fitted estimator of each view.
    view_labels_ : dict
        Clusters of the training samples by each view.
    merits_ : dict
        The merit of each view.
    best_view_ : str
        The view with the highest merit.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples by the best view.

    See Also
    --------
    Concat : One model of the columns of all views.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import KSC
    >>> height = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> weight = np.array([[20.0], [21.0], [25.0], [80.0], [81.0]])
    >>> noise = np.array([[3.0], [9.0], [3.0], [9.0], [3.0]])
    >>> model = PerView(KSC(2)).fit({"noise": noise, "height": height, "weight": weight})
    >>> model.best_view_, model.labels_
    ('height', array([0, 0, 0, 1, 1]))
    """

    estimators_: ByView[Annotated[Any, FITTED]]
    view_labels_: ByView[TrainingLabels]
    merits_: ViewWeights
    best_view_: str

    def __init__(self, estimator: Any, *, views: Layout = None) -> None:
        self.estimator = estimator
        self.views = views

    @property
    def inner_model(self) -> Any:
        """The fitted estimator of the best view; None before fit."""
        return self.estimators_[self.best_view_] if hasattr(self, "best_view_") else None

    def inner_views(self, views: Views) -> Views:
        # The best view.
        return views.select([self.best_view_])

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimators check it; those of other libraries do not warn."""
        estimators = self.estimator.values() if isinstance(self.estimator, Mapping) else [self.estimator]
        warn_for_other_libraries(estimators, views)

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        require(self.best_view_ in self.view_names_, f"expected one of the views as best_view_, got {self.best_view_}")
        for name, estimator in self.estimators_.items():
            fits = estimator.view_n_features_ == {name: self.view_n_features_[name]}
            require(fits, f"expected an estimator of view {name!r}, got one of {', '.join(estimator.view_names_)}")

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        estimators = dict.fromkeys(views, self.estimator)
        if isinstance(self.estimator, Mapping):
            estimators = by_view_name("estimator", self.estimator, views.names)
        for estimator in estimators.values():
            require_clusterer(estimator)
        self.estimators_ = {name: clone(estimators[name]) for name in views}
        self.view_labels_ = {
            name: e.fit_predict(_one(views, name, e, to_fit=True)) for name, e in self.estimators_.items()
        }
        most = max(len(np.unique(labels)) for labels in self.view_labels_.values())
        size_entropies = {name: size_entropy(labels, most) for name, labels in self.view_labels_.items()}
        # Agreement below chance counts as none: otherwise a larger size entropy would lower the merit.
        agreements = np.maximum(mean_agreements(list(self.view_labels_.values())), 0.0)
        self.merits_ = {name: float(a * size_entropies[name]) for name, a in zip(views, agreements, strict=True)}
        self.best_view_ = max(views, key=lambda name: (self.merits_[name], size_entropies[name]))
        self.labels_ = self.view_labels_[self.best_view_]

    @overload
    def predict(self, X: Any, per_view: Literal[False] = False, novel_below: float | None = None) -> Labels: ...

    @overload
    def predict(self, X: Any, per_view: Literal[True], novel_below: float | None = None) -> dict[str, Labels]: ...

    @overload
    def predict(self, X: Any, per_view: bool, novel_below: float | None = None) -> Labels | dict[str, Labels]: ...

    @inner_has("predict")
    def predict(self, X: Any, per_view: bool = False, novel_below: float | None = None) -> Labels | dict[str, Labels]:
        """Return the cluster of each sample by the best view.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return the labels by every view instead.
        novel_below : float in [0, 1], optional
            Samples whose `score_samples` in the view is below this have the label -1, if the estimator has these
            scores.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view
        """
        return self._by_views("predict", X, per_view, novel_below=novel_below)

    @overload
    def score_samples(self, X: Any, per_view: Literal[False] = False) -> Array: ...

    @overload
    def score_samples(self, X: Any, per_view: Literal[True]) -> dict[str, Array]: ...

    @inner_has("score_samples", has_own)  # others have log-likelihoods
    def score_samples(self, X: Any, per_view: bool = False) -> Array | dict[str, Array]:
        """Return how usual each sample is among the training samples in the best view.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return the score in every view instead.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view
        """
        scores: Array | dict[str, Array] = self._by_views("score_samples", X, per_view)
        return scores

    def _by_views(self, method: str, X: Any, per_view: bool, novel_below: float | None = None) -> Any:
        """Return what a method of the estimator of the best view returns, or of all by name."""
        views, found = self._views_to_predict(X), {}
        for name in views.names if per_view else [self.best_view_]:
            estimator = self.estimators_[name]
            settings = prediction_settings(estimator, per_view=False, novel_below=novel_below)
            found[name] = getattr(estimator, method)(_one(views, name, estimator, to_fit=False), **settings)
        return found if per_view else found[self.best_view_]

    @inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Return the membership of each sample in each cluster of the best view.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        array of shape (n_samples, n_clusters)
        """
        return np.asarray(self._by_views("predict_proba", X, per_view=False))


def _one(views: Views, name: str, estimator: Any, *, to_fit: bool) -> Any:
    """Return one view, under its name if the estimator knows views, because its messages then name the view."""
    one = views.select([name])
    require_safe_range(estimator, one, to_fit=to_fit)
    return one if isinstance(estimator, MultiViewClusterer) else one[name]
