"""What speaks for a clustering without knowing the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coview.core.agreement import mean_agreements
from coview.core.assign import Labels
from coview.rows import l2_normalize
from coview.tune.candidates import Candidate
from coview.views import Array

# All of these were fixed by leaving out one data set after the other: benchmarks/quality/evaluations.py and page.py.
_STABILITY, _AGREEMENT, _CONSENSUS = 1, 2, 1
_SIZE_ENTROPY_POWER = 1.5
_PER_LOG_CLUSTER, _PER_GAP = 0.75, 0.5  # between numbers of clusters
_LINES = 0.75  # of the balanced line fit


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a candidate's clusters look like, for one number of clusters.

    stability : of the labels of one half of the samples: its own against those that the other half's model gives it
        (views are prepared, and bandwidths chosen, from both halves together)
    agreement : of the labels with those by each view's own scores
    size_entropy : entropy of the cluster sizes, 1 for equal ones
    line_fit, membership, eigengap : criteria from the literature, to look at
    """

    candidate: Candidate
    n_clusters: int
    labels: Labels
    stability: float
    agreement: float
    size_entropy: float
    line_fit: float
    membership: float
    eigengap: float


def consensus(evidence: Sequence[Evidence]) -> Array:
    """How far each one's labels agree with those of the others on average."""
    return mean_agreements([one.labels for one in evidence])


def criterion(evidence: Sequence[Evidence]) -> Array:
    """How much speaks for each of the candidates, which have the same number of clusters and the same samples."""
    stability, agreement, size_entropy = (
        np.array([getattr(one, name) for one in evidence]) for name in ("stability", "agreement", "size_entropy")
    )
    # A single view agrees with itself, which says nothing.
    agreeing = _AGREEMENT if len(evidence[0].candidate.kappa) > 1 else 0
    together = _STABILITY * stability + agreeing * agreement + _CONSENSUS * consensus(evidence)
    judged: Array = np.maximum(together, 0) / (_STABILITY + agreeing + _CONSENSUS) * size_entropy**_SIZE_ENTROPY_POWER
    return judged


def for_numbers(gaps: Mapping[int, Array], criteria: Mapping[int, Array]) -> dict[int, Array]:
    """How much speaks for each number of clusters with each candidate, so that the numbers can be compared.

    Few clusters agree more easily than many, so the criterion grows with the logarithm of their number; and it grows
    where the eigenvalues fall steeply behind the last one used.

    Parameters
    ----------
    gaps, criteria : by number of clusters, the eigengap and the criterion of each candidate
    """
    largest = np.maximum.reduce(list(gaps.values()))
    compared = {}
    for k, judged in criteria.items():
        steepness = np.divide(gaps[k], largest, out=np.zeros_like(judged), where=largest > 0)
        compared[k] = judged * (1 + _PER_LOG_CLUSTER * np.log(k)) * (1 + _PER_GAP * steepness)
    return compared


def line_fit(scores: Array, labels: Labels, degrees: Array) -> float:
    """The balanced line fit of Alzate and Suykens, 2010: 1 for clusters of one size whose scores lie on lines.

    Three quarters of it are the line fit: how far the largest eigenvalue of a cluster's covariance exceeds an even
    share, as a mean over the clusters that have members. One quarter is the smallest cluster over the largest.

    Parameters
    ----------
    scores : (n_samples, n_clusters - 1)
    labels : (n_samples,)
    degrees : (n_samples,)
        Mean similarities with the training samples; the second coordinate of two clusters, whose scores have only one.
    """
    points = scores if scores.shape[1] > 1 else np.column_stack([scores, degrees])
    width, fits, sizes = points.shape[1], [], []
    for cluster in np.unique(labels):
        members = points[labels == cluster]
        spread = np.linalg.svd(members - members.mean(axis=0), compute_uv=False) ** 2
        share = spread[0] / spread.sum() if spread.sum() > 0 else 1.0
        fits.append((share - 1 / width) * width / (width - 1))
        sizes.append(len(members))
    return float(_LINES * np.mean(fits) + (1 - _LINES) * min(sizes) / max(sizes))


def membership_strength(scores: Array, labels: Labels, centres: Array) -> float:
    """Mean membership of samples in their own cluster, by cosine distances (Langone, Mall and Suykens, 2013).

    It is a mean over the clusters that have members; for two clusters it is always near 1, since their scores have one
    dimension and only signs as directions.

    Parameters
    ----------
    scores : (n_samples, n_components)
    labels : (n_samples,)
    centres : (n_clusters, n_components)
        Mean scores of each cluster.
    """
    distances = np.clip(1 - l2_normalize(scores) @ l2_normalize(centres).T, 1e-12, None)
    closeness = 1 / distances  # products of the distances to all others, but for a factor that a sample has in common
    memberships = closeness / closeness.sum(axis=1, keepdims=True)
    own = memberships[np.arange(len(labels)), labels]
    return float(np.mean([own[labels == cluster].mean() for cluster in np.unique(labels)]))
