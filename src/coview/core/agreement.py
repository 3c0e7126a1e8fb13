"""Agreement between labels of the same samples: contingency table, matching, indices, and entropy of cluster sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from coview.core.assign import Labels
from coview.data.view import Array


def contingency(a: Labels, b: Labels, shape: tuple[int, int] | None = None) -> Array:
    """Return how many samples have each label of `a` (rows) and each label of `b` (columns); labels are 0, 1, …"""
    shape = shape or (int(a.max()) + 1, int(b.max()) + 1)
    return np.bincount(np.ravel_multi_index((a, b), shape), minlength=shape[0] * shape[1]).reshape(shape)


def matched(counts: Any) -> tuple[Array, Array]:
    """Return rows of a table, and the columns that they match one to one with the largest sum of entries."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(counts, maximize=True)
    return rows, columns


def adjusted_rand(a: Labels, b: Labels) -> float:
    """Return the adjusted Rand index of integer labels; scikit-learn's function takes any labels and is slower."""
    if len(a) < 2:
        return 1.0
    table = contingency(a - a.min(), b - b.min())
    together, in_a, in_b = _pairs(table), _pairs(table.sum(axis=1)), _pairs(table.sum(axis=0))
    expected, largest = in_a * in_b / (len(a) * (len(a) - 1) / 2), (in_a + in_b) / 2
    return (together - expected) / (largest - expected) if largest > expected else 1.0


def _pairs(counts: Array) -> float:
    return float((counts * (counts - 1)).sum()) / 2


def jaccard_indices(a: Labels, b: Labels, n_clusters: int) -> Array:
    """Return the Jaccard index of each of the clusters 0, …, n_clusters - 1 of `a` (rows) with each cluster of `b`.

    It is the number of samples in both clusters over the number in any of the two. Rows of clusters without samples are
    NaN.
    """
    both = contingency(a, b, (n_clusters, int(b.max()) + 1))
    of_a, of_b = both.sum(axis=1, keepdims=True), both.sum(axis=0)
    indices: Array = np.where(of_a > 0, both / np.maximum(of_a + of_b - both, 1), np.nan)
    return indices


def mean_agreements(labels: Sequence[Labels]) -> Array:
    """Return the mean adjusted Rand index between each clustering and the others; 1 if there is only one."""
    if len(labels) == 1:
        return np.ones(1)
    between = np.eye(len(labels))
    for i, j in combinations(range(len(labels)), 2):
        between[i, j] = between[j, i] = adjusted_rand(labels[i], labels[j])
    return (between.sum(axis=1) - 1) / (len(labels) - 1)


def size_entropy(labels: Labels, n_clusters: int) -> float:
    """Return the entropy of the cluster sizes divided by its maximum for n_clusters clusters: 1 for equal sizes."""
    fractions = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(fractions * np.log(fractions)).sum() / np.log(n_clusters)) if n_clusters > 1 else 0.0
