"""Contributions of the views to the labels: how much nearer each view brings a sample to its cluster than to the next.

The score of a sample is a sum of one part for each view. With the direction u of the score and the centres p of its
cluster and q of the next nearest one, the decision margin is (|u - q|² - |u - p|²) / 2 = u·(p - q) - (|p|² - |q|²) / 2.
Its first term is a sum over the views, for a given norm of the score.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coview.core.assign import Assignment, Labels
from coview.data.rows import divide_rows, l2_norms, squared_norms
from coview.data.view import Array


def first_and_second(assignment: Assignment, scores: Array) -> tuple[Labels, Labels]:
    """Return the cluster of each row, and the nearest other one; the same for both if there is only one."""
    nearness = assignment.nearness(scores)
    first = nearness.argmax(axis=1)
    if assignment.n_found < 2:
        return first, first
    nearness[np.arange(len(first)), first] = -np.inf
    return first, nearness.argmax(axis=1)


def normalised_parts(parts: Mapping[str, Array], scores: Array) -> dict[str, Array]:
    """Return the parts of scores divided by the norms of the scores; zeros if these are zero."""
    norms = l2_norms(scores)
    return {name: np.where(norms[:, None] > 0, divide_rows(part, norms), 0 * part) for name, part in parts.items()}


def decision_margins(
    parts: Mapping[str, Array], weights: Mapping[str, float], centres: Array, first: Labels, second: Labels
) -> dict[str, Array]:
    """Return the part of the decision margin of each sample that is due to each view.

    Parameters
    ----------
    parts : arrays of shape (n_samples, n_components) by view name
        The summands of the directions u; NaN for samples that lack the view.
    weights : numbers by view name
        The term (|p|² - |q|²) / 2, which no view causes, is divided among the views of a sample in proportion to these.
    centres : array of shape (n_clusters, n_components)
    first, second : arrays of shape (n_samples,)
        The cluster of each sample and the next nearest one.

    Returns
    -------
    dict
        Arrays of shape (n_samples,) by view name; NaN for samples that lack the view. Their sum is the margin.
    """
    towards, halves = centres[first] - centres[second], squared_norms(centres) / 2
    offset = halves[first] - halves[second]
    total = np.sum([weights[name] * ~np.isnan(part[:, 0]) for name, part in parts.items()], axis=0)
    offset = np.divide(offset, total, out=np.zeros_like(offset), where=total > 0)
    return {name: np.einsum("ij,ij->i", part, towards) - weights[name] * offset for name, part in parts.items()}
