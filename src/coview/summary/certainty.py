"""The membership of samples in their clusters and their novelty in a summary."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from coview.core.assign import Labels
from coview.evaluate.coview import Coview
from coview.methods.score_clusterer import ScoreClusterer
from coview.summary.contributions import BLOCK_ROWS
from coview.summary.margins import Numbers
from coview.summary.space import Nested
from coview.views import Array, Views


class Certainty(NamedTuple):
    """Membership and novelty of some samples; None if the model does not have them."""

    rows: Numbers  # in increasing order
    memberships: Array | None  # in the own cluster
    novelties: Array | None  # NaN if no training sample has a view of the sample

    def cluster_memberships(self, rows: Numbers, numbers: Numbers) -> Array | None:
        """Return the mean membership in each cluster of some of the rows, whose clusters are the numbers."""
        memberships, _ = self.at(rows)
        return None if memberships is None else np.bincount(numbers, memberships) / np.bincount(numbers)

    def at(self, rows: Numbers) -> tuple[Array | None, Array | None]:
        """Return memberships and novelties of some of the rows."""
        places = np.searchsorted(self.rows, rows)
        return (
            None if self.memberships is None else self.memberships[places],
            None if self.novelties is None else self.novelties[places],
        )


def gather_certainty(model: Any, nested: Nested, views: Views, labels: Labels, rows: Numbers) -> Certainty:
    """Return memberships and novelties of these rows, given the labels of all; memberships only of several clusters."""
    method = nested.method
    if not isinstance(method, (ScoreClusterer, Coview)):  # a mixture of scikit-learn has densities, and no novelty
        return Certainty(rows, None, None)
    blocks = [rows[part] for part in gen_batches(len(rows), BLOCK_ROWS)]
    memberships = novelties = None
    n_clusters = method.n_clusters_ if isinstance(method, Coview) else method._assignment.n_found
    if hasattr(model, "predict_proba") and n_clusters > 1:
        own = [model.predict_proba(views.take(some))[np.arange(len(some)), labels[some]] for some in blocks]
        memberships = np.concatenate(own)
    if hasattr(model, "score_samples"):
        novelties = 1 - np.concatenate([model.score_samples(views.take(some)) for some in blocks])
    return Certainty(rows, memberships, novelties)
