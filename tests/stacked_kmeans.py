"""A made-up method in one file, as a contributor would write it: k-means on the stacked columns of all views.

`register` has the one line for METHODS; `pytest -p tests.stacked_kmeans` calls it before tests are collected.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from coview.core.assign import label_and_tie, new_numbers, number_by_size
from coview.data.as_views import stack_views
from coview.data.view import Array
from coview.model.clusterer import PREDICTS, Clusterer
from coview.model.fitting import as_generator, note_on_fewer
from coview.model.model import Model, Predictor, Renumbered
from coview.registry import METHODS, Entry


class StackedKMeans(Clusterer):
    """Cluster the stacked columns of all views by k-means."""

    abilities = PREDICTS

    def __init__(self, n_clusters=2, *, views=None, random_state=None):
        self.n_clusters = n_clusters
        self.views = views
        self.random_state = random_state

    def fit_model(self, views, report):
        k, seed = int(self.n_clusters), int(as_generator(self.random_state).integers(2**31))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the model has a note on fewer clusters
            found = KMeans(k, n_init=5, random_state=seed).fit(stack_views(views)[0])
        labels, order = number_by_size(found.labels_)
        centres = found.cluster_centers_[order].astype(np.float64)
        notes = note_on_fewer(len(order), k)
        return Model(labels, {"centres_": centres}, NearestStackedCentre(centres), notes=notes)


@dataclass(frozen=True)
class NearestStackedCentre(Predictor):
    """The nearest centre of the stacked columns."""

    centres: Array  # (n_clusters, n_features)

    @property
    def n_clusters(self):
        return len(self.centres)

    def labels_and_ties(self, views):
        stacked = stack_views(views)[0]
        # |x - c|² without |x|², which is the same for all centres; row by row, so that a batch changes no rounding.
        products = np.stack([np.asarray(stacked[[i]] @ self.centres.T)[0] for i in range(stacked.shape[0])])
        return label_and_tie(2 * products - np.square(self.centres).sum(axis=1))

    def renumbered(self, order, labels, learnt):
        order, numbers = new_numbers(order, self.n_clusters)
        centres = self.centres[order]
        return Renumbered(NearestStackedCentre(centres), numbers[labels], {"centres_": centres})


def register():
    METHODS["stackedkmeans"] = Entry("tests.stacked_kmeans:StackedKMeans", "k-means on stacked views", "n")


def pytest_configure(config):
    register()
