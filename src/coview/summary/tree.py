"""The tree of clusters of a fitted model: which cluster splits into which as the number of clusters grows."""

from __future__ import annotations

from typing import Any

from coview.core.drawn import draw_by_cluster
from coview.core.tree import Branch, cluster_tree
from coview.evaluate.coview import Coview
from coview.methods.nested import nested_models
from coview.methods.score_clusterer import ScoreClusterer

MOST_NUMBERS = 20  # of clusters, besides that of the model
_MOST_SAMPLES = 5000


def tree_of(model: Any) -> tuple[Branch, ...] | None:
    """Return the branches of the training samples; None for methods without scores, and below three clusters.

    The numbers of clusters are all from 2 to that of the model: the levels of the consensus of `Coview`, and otherwise
    the clusters by the first components, as the decomposition of the model is not computed again.
    """
    *_, method = nested_models(model)
    if isinstance(method, Coview):
        n_clusters = method.n_clusters_
    elif isinstance(method, ScoreClusterer):
        n_clusters = method._view_assigner.n_clusters
    else:
        return None
    if n_clusters < 3:
        return None
    rows = draw_by_cluster(method.labels_, _MOST_SAMPLES)
    fewer = range(2, min(n_clusters, MOST_NUMBERS + 1))
    if isinstance(method, Coview):
        labels = {k: method.model_.level(k)[rows] for k in fewer}
    else:
        labels = {k: method._fewer_clusters(method.scores_[rows], k) for k in fewer}
    return cluster_tree({**labels, n_clusters: method.labels_[rows]}, n_clusters)
