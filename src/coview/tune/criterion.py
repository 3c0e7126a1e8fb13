"""The criterion by which settings and numbers of clusters are selected without known classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coview.core.agreement import mean_agreements
from coview.core.assign import Labels
from coview.rows import l2_normalize
from coview.tune.candidates import Candidate
from coview.tune.record import EvaluatedSetting
from coview.views import Array

# These constants are fixed by leaving out one data set at a time: benchmarks/quality.
_STABILITY, _AGREEMENT, _CONSENSUS = 1, 2, 1
_SIZE_ENTROPY_POWER = 1.5
_PER_LOG_CLUSTER, _PER_GAP = 0.75, 0.5  # between numbers of clusters
_LINES = 0.75  # of the balanced line fit


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A candidate, its labels for one number of clusters, and its record, still without criterion and consensus."""

    candidate: Candidate
    labels: Labels
    record: EvaluatedSetting


def consensus_values(evaluations: Sequence[Evaluation]) -> Array:
    """Return the mean adjusted Rand index between the labels of each candidate and those of the others."""
    return mean_agreements([each.labels for each in evaluations])


def criterion_values(evaluations: Sequence[Evaluation]) -> Array:
    """Return the criterion of each candidate, all for the same number of clusters and the same samples."""
    stability, agreement, size_entropy = (
        np.array([getattr(each.record, name) for each in evaluations], dtype=np.float64)
        for name in ("stability", "agreement", "size_entropy")
    )
    # A single view always agrees with itself, which is not informative.
    weight = _AGREEMENT if len(evaluations[0].candidate.kappa) > 1 else 0
    total = _STABILITY * stability + weight * agreement + _CONSENSUS * consensus_values(evaluations)
    return np.maximum(total, 0) / (_STABILITY + weight + _CONSENSUS) * size_entropy**_SIZE_ENTROPY_POWER


def compare_numbers(gaps: Mapping[int, Array], criteria: Mapping[int, Array]) -> dict[int, Array]:
    """Return the criterion of each candidate in a form that is comparable between numbers of clusters.

    Few clusters agree more easily than many, so the criterion is raised by the logarithm of their number, and by a
    large eigengap after the last eigenvalue that is used. All arguments are by number of clusters.
    """
    largest = np.maximum.reduce(list(gaps.values()))
    compared = {}
    for k, values in criteria.items():
        relative = np.divide(gaps[k], largest, out=np.zeros_like(values), where=largest > 0)
        compared[k] = values * (1 + _PER_LOG_CLUSTER * np.log(k)) * (1 + _PER_GAP * relative)
    return compared


@dataclass(frozen=True)
class EvaluatedNumber:
    """A number of clusters, its criterion in the form of `compare_numbers`, and its best setting."""

    n_clusters: int
    criterion: float
    best: EvaluatedSetting


def evaluated_numbers(evaluations: Sequence[EvaluatedSetting]) -> tuple[EvaluatedNumber, ...]:
    """Return the numbers of clusters of the first round, in increasing order, each with its best setting."""
    by_number: dict[int, list[EvaluatedSetting]] = {}
    for each in evaluations:
        # Weights of views are evaluated for the selected number only.
        if each.round == 1 and each.criterion is not None and not each.weights:
            by_number.setdefault(each.n_clusters, []).append(each)
    gaps, criteria = (
        {k: np.array([getattr(each, name) for each in some]) for k, some in sorted(by_number.items())}
        for name in ("eigengap", "criterion")
    )
    compared = compare_numbers(gaps, criteria) if criteria else {}
    return tuple(
        EvaluatedNumber(k, float(values.max()), by_number[k][int(values.argmax())]) for k, values in compared.items()
    )


def line_fit(scores: Array, labels: Labels, degrees: Array) -> float:
    """Return the balanced line fit (Alzate and Suykens, 2010): 1 for clusters of one size whose scores lie on lines.

    Its first term, of weight 3/4, is the excess of the largest eigenvalue of a cluster's covariance over equal
    eigenvalues, as a mean over the clusters that have members. The second is the smallest size over the largest. For
    two clusters, whose scores have one column, the mean similarities to the training samples are the second column.
    """
    points = scores if scores.shape[1] > 1 else np.column_stack([scores, degrees])
    width, fits, sizes = points.shape[1], [], []
    for cluster in np.unique(labels):
        members = points[labels == cluster]
        variances = np.linalg.svd(members - members.mean(axis=0), compute_uv=False) ** 2
        ratio = variances[0] / variances.sum() if variances.sum() > 0 else 1.0
        fits.append((ratio - 1 / width) * width / (width - 1))
        sizes.append(len(members))
    return float(_LINES * np.mean(fits) + (1 - _LINES) * min(sizes) / max(sizes))


def membership_strength(scores: Array, labels: Labels, centres: Array) -> float:
    """Return the mean membership of samples in their own cluster, by cosine distances (Langone et al., 2013).

    It is a mean over the clusters that have members; `centres` has the mean scores of each. It is near 1 for two
    clusters, because their scores have one dimension and only signs as directions.
    """
    distances = np.clip(1 - l2_normalize(scores) @ l2_normalize(centres).T, 1e-12, None)
    closeness = 1 / distances  # the product of the distances to all other centres, up to a factor of the sample
    memberships = closeness / closeness.sum(axis=1, keepdims=True)
    own = memberships[np.arange(len(labels)), labels]
    return float(np.mean([own[labels == cluster].mean() for cluster in np.unique(labels)]))
