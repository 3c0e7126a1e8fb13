"""What each view has to do with the clusters: its own labels, its contributions, and the labels without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp

from coview.certainty.which_view import agreements_without
from coview.core.agreement import adjusted_rand, contingency, matched
from coview.core.assign import Labels
from coview.data.view import Array
from coview.summary.clustering import Clustering
from coview.summary.margins import Numbers, indicators
from coview.summary.plain import plain_record
from coview.summary.settings import describe_preprocessing
from coview.summary.values import ViewSummary

ByCluster = list[dict[str, float]]  # a number for each cluster and view


def describe_views(found: Clustering, notes: Mapping[str, Sequence[str]]) -> tuple[ViewSummary, ...]:
    """Return a record of each view."""
    model, views, drawn = found.model, found.views, found.drawn
    preprocessing, weights = describe_preprocessing(model), model.learnt.get("kappa_", {})
    own = {view: found.labels_with(view) for view in _compared(found)}
    without = agreements_without(model, views.take(drawn), found.labels[drawn])
    sizes = {
        view: np.bincount(labels)
        for view, labels in found.view_labels.items()
        # Labels of -1 are no cluster, or of samples that lack the view.
        if len(found.labelled) == views.n_samples and labels.min() >= 0
    }
    return tuple(
        plain_record(
            ViewSummary,
            name=name,
            n_features=x.shape[1],
            n_samples=views.n_present(name),
            sparse=sp.issparse(x),
            preprocessing=preprocessing[name],
            kernel=repr(model.kernels[name]) if name in model.kernels else None,
            kappa=float(weights[name]) if name in weights and name in model.seen_names else None,
            agreement=adjusted_rand(*own[name]) if name in own else None,
            agreement_without=without.get(name),
            sizes=sizes.get(name),
            notes=notes[name],
        )
        for name, x in views.items()
    )


def _compared(found: Clustering) -> list[str]:
    """Return the views whose labels are compared with the clusters; one cluster agrees with anything."""
    return [view for view in found.view_labels if found.n_clusters > 1 and len(found.labels_with(view)[0])]


def members_kept_together(found: Clustering) -> ByCluster:
    """Return the fraction of each cluster's members that are in the cluster of a view alone that matches it."""
    k = found.n_clusters
    return _by_cluster({view: fractions_kept_together(*found.labels_with(view), k) for view in _compared(found)}, k)


def fractions_kept_together(numbers: Numbers, labels: Labels, n_clusters: int) -> Array:
    """Return for each cluster the fraction of its members with the label that matches it; NaN without members."""
    groups, place = np.unique(labels, return_inverse=True)
    counts = contingency(numbers, place, (n_clusters, len(groups)))
    fractions = np.where(counts.any(axis=1), 0.0, np.nan)
    rows, columns = matched(counts)
    fractions[rows] += counts[rows, columns] / np.maximum(counts[rows].sum(axis=1), 1)
    return fractions


def mean_contributions(contributions: Mapping[str, Array], numbers: Numbers, n_clusters: int) -> ByCluster:
    """Return the mean contribution of each view by cluster; a view that a sample lacks contributes nothing."""
    members = indicators(numbers, n_clusters)
    means = {view: members @ np.nan_to_num(each) / members.sum(axis=1) for view, each in contributions.items()}
    return _by_cluster(means, n_clusters)


def contradictions(contributions: Mapping[str, Array], numbers: Numbers, n_clusters: int) -> ByCluster:
    """Return for each cluster the fraction of its samples with a view to which the view contributes negatively."""
    members, fractions = indicators(numbers, n_clusters), {}
    for view, each in contributions.items():
        known = members @ ~np.isnan(each)
        fractions[view] = np.divide(members @ (each < 0), known, out=np.full(n_clusters, np.nan), where=known > 0)
    return _by_cluster(fractions, n_clusters)


def _by_cluster(by_view: Mapping[str, Array], n_clusters: int) -> ByCluster:
    """Return the known numbers of each cluster by view."""
    return [{view: x[c] for view, x in by_view.items() if not np.isnan(x[c])} for c in range(n_clusters)]
