"""Novelty: how close samples are to the training samples, as quantiles of the closeness of training samples.

A sample lacks a view if its closeness in that view is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coview.data.view import Array

_FEWEST = 20  # training samples with all views of a sample; with fewer, those that have any of these views count
_SAME_MEAN = 1e-6  # relative difference of means over the views that counts as none
_LEAST = 1e-9  # quantile; smaller ones are equal


def quantiles(values: Array, reference: Array, tolerance: float) -> Array:
    """Return the fraction of the reference that is smaller than each value, between 0 and 1; NaN stays NaN.

    The tolerance is the relative difference that may be a rounding error. Values of the reference that differ by less
    are ties, with the fraction of their middle rank. A value that differs by less from a tie is part of it.

    Other fractions are interpolated between the values of the reference. Values below all of these still differ: they
    fall to 0 towards the value 0, or if the reference is not positive, towards a value as far below as the reference is
    wide.
    """
    ordered = np.sort(reference)
    n = len(ordered)
    lowest = 0.0 if ordered[0] > 0 else ordered[0] - (float(np.ptp(ordered)) or 1.0)
    ranks = np.interp(values, [lowest, *ordered], np.arange(n + 1))
    starts = _tie_starts(ordered, tolerance)
    counts = np.diff(starts, append=n)
    ties, middle_ranks = np.add.reduceat(ordered, starts) / counts, starts + (counts + 1) / 2
    nearest = np.searchsorted((ties[:-1] + ties[1:]) / 2, values)
    # Rounding errors would otherwise decide between the ranks of a tie.
    tied = np.abs(values - ties[nearest]) <= tolerance * np.abs(ties[nearest])
    fractions: Array = np.where(tied, middle_ranks[nearest], ranks) / (n + 1)
    return fractions


def _tie_starts(ordered: Array, tolerance: float) -> Array:
    """Return the positions of the first values of ties; no tie is wider than the tolerance."""
    following = np.searchsorted(ordered, ordered + tolerance * np.abs(ordered), side="right").tolist()
    starts = [0]
    while following[starts[-1]] < len(ordered):
        starts.append(following[starts[-1]])
    return np.array(starts)


def joint_quantiles(of_views: Mapping[str, Array], reference: Mapping[str, Array]) -> Array:
    """Return the quantile of the mean logarithm over the views that each sample has (Fisher's method).

    `of_views` has the quantiles of the samples in each view, `reference` those of training samples. A mean over few
    views varies more than one over many, so each is compared with the means of training samples over the same views.
    """
    table, known = (np.log(np.maximum(np.column_stack(list(each.values())), _LEAST)) for each in (of_views, reference))
    patterns, member = np.unique(~np.isnan(table), axis=0, return_inverse=True)
    found = np.full(len(table), np.nan)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(member.ravel() == number)
        others = known[:, pattern]
        complete = others[~np.isnan(others).any(axis=1)]
        if len(complete) < _FEWEST:
            complete = others[~np.isnan(others).all(axis=1)]
        if pattern.any() and len(complete):
            # Exponentials of the means are positive, and 0 is the value of the most novel samples.
            means, of_complete = table[rows][:, pattern].mean(axis=1), np.nanmean(complete, axis=1)
            found[rows] = quantiles(np.exp(means), np.exp(of_complete), _SAME_MEAN)
    return found
