"""Concat: early fusion, the columns of all views in one table."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from coview.compose.wrapper import (
    OneEstimator,
    has_own,
    inner_has,
    prediction_settings,
    require_clusterer,
    require_safe_range,
    warn_for_other_libraries,
)
from coview.core.assign import Labels
from coview.methods.base import MultiViewClusterer
from coview.methods.nested import nested_models
from coview.state import Sizes, require
from coview.views import Array, Layout, Views, stack_views


class Concat(OneEstimator):
    """Cluster one table that has the columns of all views (early fusion).

    Columns are not rescaled: preprocess the views first if their units differ.

    Parameters
    ----------
    estimator : clusterer
        The estimator of the stacked table, such as KSC(3) or a clusterer of scikit-learn.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`. Only the validation of new samples depends on it.

    Attributes
    ----------
    estimator_ : clusterer
        The fitted estimator.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples.

    See Also
    --------
    PerView : One model for each view.
    Preprocessed : Scale the views before they are stacked.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import KSC
    >>> height = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> weight = np.array([[20.0], [21.0], [25.0], [80.0], [81.0]])
    >>> Concat(KSC(2)).fit([height, weight]).labels_
    array([0, 0, 0, 1, 1])
    """

    def __init__(self, estimator: Any, *, views: Layout = None) -> None:
        self.estimator = estimator
        self.views = views

    def inner_views(self, views: Views) -> Views:
        # The stacked table as one view, under the name by which the estimator knows it.
        name = getattr(self.estimator_, "view_names_", ("all",))[0]
        # If all views are encoded, so is the table.
        widths = tuple(width for each in views.encoded.values() for width in each)
        encoded = {name: widths} if {*views.encoded} == {*views} else {}
        return Views.trusted({name: stack_views(views)[0]}, {name: None}, views.index, encoded=encoded)

    def _table(self, views: Views) -> Any:
        """Return the stacked table, with what is known of its columns for methods of this library."""
        known = self.inner_views(views)
        if known.encoded and isinstance(self.estimator_, MultiViewClusterer):
            return known
        return next(iter(known.values()))

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimator checks it; those of other libraries do not warn."""
        warn_for_other_libraries([self.estimator], views)

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        width, inner = sum(self.view_n_features_.values()), self.estimator_.n_features_in_
        require(inner == width, f"estimator_ expects {inner} columns, not {width}")

    def _fit(self, X: Any) -> None:
        require_clusterer(self.estimator)
        views = self._views_to_fit(X)
        require_safe_range(self.estimator, views, to_fit=True)
        self.estimator_ = clone(self.estimator)
        self.labels_ = self.estimator_.fit_predict(self._table(views))

    def _ask(self, method: str, views: Views, **settings: Any) -> Any:
        """Return what a method of the fitted estimator, which may be of another library, returns for these samples."""
        require_safe_range(self.estimator_, views, to_fit=False)
        return getattr(self.estimator_, method)(self._table(views), **settings)

    @inner_has("predict")
    def predict(self, X: Any, novel_below: float | None = None) -> Labels:
        """Return the cluster of each sample.

        Parameters
        ----------
        X : views, as in `as_views`
        novel_below : float in [0, 1], optional
            Samples whose `score_samples` is below this have the label -1, if the estimator has these scores.

        Returns
        -------
        array of shape (n_samples,)
        """
        views = self._views_to_predict(X)
        labels: Labels = self._ask("predict", views, **prediction_settings(self.estimator_, False, novel_below))
        return labels

    @inner_has("score_samples", has_own)  # others have log-likelihoods
    def score_samples(self, X: Any) -> Array:
        """Return how usual each sample is among the training samples, as the fitted estimator computes it.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        array of shape (n_samples,)
        """
        return np.asarray(self._ask("score_samples", self._views_to_predict(X)))

    @inner_has("transform")
    def transform(self, X: Any) -> Any:
        """Return the score variables of these samples, as the fitted estimator computes them.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        return self._ask("transform", self._views_to_predict(X))


def stacks_views(model: Any) -> bool:
    """Return whether the method inside a fitted model sees one table of all columns instead of the views."""
    return any(isinstance(each, Concat) for each in nested_models(model))
