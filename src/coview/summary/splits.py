"""The tree of clusters of a fitted model: which cluster splits into which as the number of clusters grows."""

from __future__ import annotations

from typing import Any

from coview.core.drawn import draw_by_cluster
from coview.core.tree import Branch, cluster_tree
from coview.model.model import Model

MOST_NUMBERS = 20  # of clusters, besides that of the model
_MOST_SAMPLES = 5000


def tree_of(model: Model) -> tuple[Branch, ...] | None:
    """Return the branches of the training samples; None for methods without scores, and below three clusters.

    The numbers of clusters are all from 2 to that of the model: the levels of the consensus of `Coview`, and otherwise
    the clusters by the first components, as the decomposition of the model is not computed again.
    """
    predictor: Any = getattr(model.predictor, "of_best", model.predictor)
    labels = model.trained_labels
    if not (hasattr(predictor, "level") or hasattr(predictor, "fewer_clusters")):
        return None
    n_clusters = predictor.n_clusters if hasattr(predictor, "level") else predictor.of_view.n_clusters
    if n_clusters < 3:
        return None
    rows = draw_by_cluster(labels, _MOST_SAMPLES)
    fewer = range(2, min(n_clusters, MOST_NUMBERS + 1))
    if hasattr(predictor, "level"):
        of_fewer = {k: predictor.level(k)[rows] for k in fewer}
    else:
        of_fewer = {k: predictor.fewer_clusters(model.learnt["scores_"][rows], k) for k in fewer}
    return cluster_tree({**of_fewer, n_clusters: labels[rows]}, n_clusters)
