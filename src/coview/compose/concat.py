"""Concat: the columns of all views side by side, as one table."""

from __future__ import annotations

from typing import Annotated, Any

from sklearn.base import clone

from coview.compose.wrapper import inner_has, require_clusterer
from coview.core.assign import Labels
from coview.methods.base import MultiViewClusterer
from coview.state import FITTED, Sizes, require
from coview.views import Matrix, Views, stack_views


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

    estimator_: Annotated[Any, FITTED]

    def __init__(self, estimator: Any, *, views: Any = None) -> None:
        self.estimator = estimator
        self.views = views

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimator does."""

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        width, inner = sum(self.view_n_features_.values()), self.estimator_.n_features_in_
        require(inner == width, f"estimator_ expects {inner} columns, not {width}")

    def _fit(self, X: Any) -> None:
        require_clusterer(self.estimator)
        views = self._views_to_fit(X)
        self.estimator_ = clone(self.estimator)
        self.labels_ = self.estimator_.fit_predict(_side_by_side(views))

    @inner_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Labels:
        """Return the cluster of each sample.

        Parameters
        ----------
        X : views, as in `as_views`
        """
        views = self._views_to_predict(X)
        labels: Labels = self.estimator_.predict(_side_by_side(views))
        return labels


def _side_by_side(views: Views) -> Matrix:
    return stack_views(views)[0]
