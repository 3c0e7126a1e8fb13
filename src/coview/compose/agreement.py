"""How far clusterings of the same samples confirm each other, and how balanced one is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from coview.core.assign import Labels
from coview.views import Array


def agreements(labels: Sequence[Labels]) -> Array:
    """Mean adjusted Rand index of each with the others; 1 where there are no others."""
    from sklearn.metrics import adjusted_rand_score

    if len(labels) == 1:
        return np.ones(1)
    between = np.eye(len(labels))
    for i, j in combinations(range(len(labels)), 2):
        between[i, j] = between[j, i] = adjusted_rand_score(labels[i], labels[j])
    means: Array = (between.sum(axis=1) - 1) / (len(labels) - 1)
    return means


def balance(labels: Labels, n_clusters: int) -> float:
    """Entropy of the cluster sizes over its largest value for so many clusters: 1 for equal sizes."""
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log(shares)).sum() / np.log(n_clusters)) if n_clusters > 1 else 0.0
