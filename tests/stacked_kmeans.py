"""A made-up method in one file, as a contributor would write it: k-means on the stacked columns of all views.

`register` has the one line for METHODS; `pytest -p tests.stacked_kmeans` calls it before tests are collected.
"""

import warnings
from typing import Annotated

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from coview.core.assign import Labels
from coview.methods.base import MultiViewClusterer
from coview.registry import METHODS, Entry
from coview.state import FloatArray
from coview.views import Array, stack_views


class StackedKMeans(MultiViewClusterer):
    """Cluster the stacked columns of all views by k-means."""

    centres_: Annotated[Array, FloatArray("clusters", "columns")]

    def __init__(self, n_clusters=2, *, views=None, random_state=None):
        self.n_clusters = n_clusters
        self.views = views
        self.random_state = random_state

    def _fit(self, X):
        views = self._views_to_fit(X)
        seed = int(self._generator().integers(2**31))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `_store_labels` warns of fewer clusters
            found = KMeans(self.n_clusters, n_init=5, random_state=seed).fit(stack_views(views)[0])
        order = self._store_labels(found.labels_)
        self.centres_ = found.cluster_centers_[order].astype(np.float64)

    def predict(self, X) -> Labels:
        stacked = stack_views(self._views_to_predict(X))[0]
        # |x - c|² without |x|², which is the same for all centres; row by row, so that a batch changes no rounding.
        products = np.stack([np.asarray(stacked[[i]] @ self.centres_.T)[0] for i in range(stacked.shape[0])])
        return np.argmin(np.square(self.centres_).sum(axis=1) - 2 * products, axis=1)


def register():
    METHODS["stackedkmeans"] = Entry("tests.stacked_kmeans:StackedKMeans", "k-means on stacked views", "n")


def pytest_configure(config):
    register()
