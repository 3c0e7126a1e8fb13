"""Comparison of clusters with known classes; the names of clusters and classes do not matter."""

from __future__ import annotations

from typing import Any

import numpy as np

from coview.core.agreement import contingency, matched
from coview.data.view import Array
from coview.errors import InputError

__all__ = ["accuracy", "purity", "scores"]


def accuracy(truth: Any, labels: Any) -> float:
    """Return the fraction of samples in the class of their cluster, under the best one-to-one matching of the two.

    If there are more clusters than classes, or fewer, the samples of the unmatched ones count as wrong.

    Parameters
    ----------
    truth, labels : array-like of shape (n_samples,)
        The class and the cluster of each sample.

    Returns
    -------
    float

    Examples
    --------
    >>> accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    >>> accuracy([0, 0, 1, 1], [0, 1, 2, 2])
    0.75
    """
    counts = contingency(*_aligned(truth, labels))
    return float(counts[matched(counts)].sum() / counts.sum())


def purity(truth: Any, labels: Any) -> float:
    """Return the fraction of samples in the most frequent class of their cluster; it grows with more, smaller clusters.

    Parameters
    ----------
    truth, labels : array-like of shape (n_samples,)
        The class and the cluster of each sample.

    Returns
    -------
    float

    Examples
    --------
    >>> purity(["cat", "cat", "dog", "dog"], [0, 1, 2, 3])
    1.0
    >>> purity(["cat", "cat", "dog", "dog"], [0, 0, 0, 0])
    0.5
    """
    counts = contingency(*_aligned(truth, labels))
    return float(counts.max(axis=0).sum() / counts.sum())


def scores(truth: Any, labels: Any) -> dict[str, float]:
    """Return the adjusted Rand index, the normalised mutual information (arithmetic mean), accuracy and purity.

    Parameters
    ----------
    truth, labels : array-like of shape (n_samples,)
        The class and the cluster of each sample.

    Returns
    -------
    dict with the keys "ari", "nmi", "accuracy" and "purity"

    Examples
    --------
    >>> scores([0, 0, 1, 1], [1, 1, 0, 0])
    {'ari': 1.0, 'nmi': 1.0, 'accuracy': 1.0, 'purity': 1.0}
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    truth, labels = _aligned(truth, labels)
    return {
        "ari": float(adjusted_rand_score(truth, labels)),
        "nmi": float(normalized_mutual_info_score(truth, labels)),
        "accuracy": accuracy(truth, labels),
        "purity": purity(truth, labels),
    }


def _aligned(truth: Any, labels: Any) -> tuple[Array, Array]:
    """Return classes and clusters, each numbered from 0."""
    truth, labels = np.asarray(truth), np.asarray(labels)
    for name, given in (("truth", truth), ("labels", labels)):
        if given.ndim != 1:
            raise InputError(f"{name} is {given.ndim}-D; give a 1-D array with one entry for each sample")
    if len(truth) != len(labels):
        raise InputError(f"truth has {len(truth)} entries and labels has {len(labels)}; give both for the same samples")
    if len(truth) == 0:
        raise InputError("truth and labels are empty; give at least one sample")
    return np.unique(truth, return_inverse=True)[1], np.unique(labels, return_inverse=True)[1]
