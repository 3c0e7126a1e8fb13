"""The tree of clusters of a fitted model: which cluster splits into which as the number of clusters grows."""

from __future__ import annotations

from typing import Any

from coview.core.drawn import draw_by_cluster
from coview.core.tree import Branch, cluster_tree
from coview.methods.nested import nested_models
from coview.methods.score_clusterer import ScoreClusterer
from coview.tune import Tuned

MOST_NUMBERS = 20  # of clusters, besides that of the model
_MOST_SAMPLES = 5000


def tree_of(model: Any) -> tuple[Branch, ...] | None:
    """Return the branches of the training samples; None for methods without scores, and below three clusters.

    The numbers of clusters are those that `Tuned` has compared, with the labels of its search. Otherwise they are all
    from 2 to that of the model, by its first components: the decomposition of the model is used, not computed again.
    """
    *outer, method = nested_models(model)
    for each in outer:
        if isinstance(each, Tuned) and len(each._searched_labels) > 1:
            return _tree_of_search(each)
    if not isinstance(method, ScoreClusterer):
        return None
    n_clusters = method._view_assigner.n_clusters
    if n_clusters < 3:
        return None
    rows = draw_by_cluster(method.labels_, _MOST_SAMPLES)
    scores = method.scores_[rows]
    fewer = range(2, min(n_clusters, MOST_NUMBERS + 1))
    labels = {k: method._fewer_clusters(scores, k) for k in fewer}
    return cluster_tree({**labels, n_clusters: method.labels_[rows]}, n_clusters)


def _tree_of_search(tuned: Tuned) -> tuple[Branch, ...]:
    """Return the branches of the samples of the search; those of the selected number have the labels of the model."""
    rows, labels = tuned._tree_labels()
    selected = tuned.evaluations_[tuned.selected_].n_clusters
    if tuned.n_clusters_ == selected:  # not if one cluster has replaced it
        labels[selected] = tuned.estimator_.labels_[rows]
    return cluster_tree(labels, selected)
