"""Wrappers around any method: all views as one table, or one model for each view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from coview.core.assign import Labels
from coview.errors import InputError, InputTypeError
from coview.kernels import by_view_name
from coview.methods.base import MultiViewClusterer
from coview.views import Matrix, Views, stack_views


def _inner_has(method: str) -> Any:
    """Offer a method only when the wrapped estimators have it."""

    def check(wrapper: Any) -> bool:
        inner = wrapper.estimator
        return all(hasattr(e, method) for e in (inner.values() if isinstance(inner, Mapping) else [inner]))

    return available_if(check)


class Concat(MultiViewClusterer):
    """Cluster the columns of all views side by side, as one table (early fusion).

    Columns count as they are: scale the views first when their units differ.

    Parameters
    ----------
    estimator : clusterer
        What clusters the table, for example KSC(3); clusterers of scikit-learn serve as well.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`. It changes nothing but the checks of new samples.

    Attributes
    ----------
    estimator_ : clusterer
        The fitted estimator.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import KSC
    >>> height = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> weight = np.array([[20.0], [21.0], [25.0], [80.0], [81.0]])
    >>> Concat(KSC(2)).fit([height, weight]).labels_
    array([0, 0, 0, 1, 1])
    """

    def __init__(self, estimator: Any, *, views: Any = None) -> None:
        self.estimator = estimator
        self.views = views

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimator does."""

    def _fit(self, X: Any) -> None:
        _require_clusterer(self.estimator)
        views = self._views_to_fit(X)
        self.estimator_ = clone(self.estimator).fit(_side_by_side(views))
        self.labels_ = self.estimator_.labels_

    @_inner_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Labels:
        """Return the cluster of each sample.

        Parameters
        ----------
        X : views, as in `as_views`
        """
        views = self._views_to_predict(X)
        labels: Labels = self.estimator_.predict(_side_by_side(views))
        return labels


class PerView(MultiViewClusterer):
    """Cluster each view by itself, and choose the view whose clusters the others confirm best.

    No labels are needed: a view's merit is the mean adjusted Rand index between its clusters and those of every other
    view, times the balance of its clusters (entropy of their sizes over the largest possible), since a split into one
    huge cluster and some crumbs tells little. `view_labels_` has every view's clusters, for those who choose otherwise.

    Parameters
    ----------
    estimator : clusterer, or mapping from view name to clusterer
        What clusters a view, for example KSC(3); clusterers of scikit-learn serve as well.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.

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

    def __init__(self, estimator: Any, *, views: Any = None) -> None:
        self.estimator = estimator
        self.views = views

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimators do."""

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        estimators = dict.fromkeys(views, self.estimator)
        if isinstance(self.estimator, Mapping):
            estimators = by_view_name("estimator", self.estimator, views.names)
        for estimator in estimators.values():
            _require_clusterer(estimator)
        self.estimators_ = {name: clone(estimators[name]).fit(_one(views, name, estimators[name])) for name in views}
        self.view_labels_ = {name: estimator.labels_ for name, estimator in self.estimators_.items()}
        self.merits_ = _merits(self.view_labels_)
        self.best_view_ = max(self.merits_, key=lambda name: self.merits_[name])
        self.labels_ = self.view_labels_[self.best_view_]

    @_inner_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any, per_view: bool = False) -> Any:
        """Return the cluster of each sample by the best view.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return a dictionary of labels by every view instead.
        """
        views = self._views_to_predict(X)
        names = views.names if per_view else [self.best_view_]
        labels = {name: self.estimators_[name].predict(_one(views, name, self.estimators_[name])) for name in names}
        return labels if per_view else labels[self.best_view_]


def _merits(view_labels: Mapping[str, Labels]) -> dict[str, float]:
    from sklearn.metrics import adjusted_rand_score

    def agreement(name: str) -> float:
        others = [labels for other, labels in view_labels.items() if other != name]
        return float(np.mean([adjusted_rand_score(view_labels[name], labels) for labels in others])) if others else 1.0

    return {name: agreement(name) * _balance(labels) for name, labels in view_labels.items()}


def _balance(labels: Labels) -> float:
    """Entropy of the cluster sizes over its largest value: 1 for equal sizes."""
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log(shares)).sum() / np.log(len(shares))) if len(shares) > 1 else 0.0


def _side_by_side(views: Views) -> Matrix:
    return stack_views(views)[0]


def _one(views: Views, name: str, estimator: Any) -> Any:
    """One view, under its name where the estimator knows views: its messages then say which."""
    return views.select([name]) if isinstance(estimator, MultiViewClusterer) else views[name]


def _require_clusterer(estimator: Any) -> None:
    if not (hasattr(estimator, "fit_predict") and hasattr(estimator, "get_params")):
        raise InputTypeError(f"estimator={estimator!r} must be a clusterer such as KSC(3)")
    if isinstance(estimator, type):
        raise InputError(f"estimator={estimator.__name__} is a class; give an instance such as {estimator.__name__}(3)")
