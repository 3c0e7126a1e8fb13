"""Scores in two dimensions, without an iterative method: their principal plane, or one component as a histogram."""

from __future__ import annotations

import numpy as np

from coview.core.eigen import with_fixed_signs
from coview.data.view import Array

_BINS = 50  # columns of samples, if there is one component


def principal_plane(points: Array) -> Array:
    """Return the coordinates along the first two principal axes."""
    left, values, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    plane = np.zeros((len(points), 2))
    plane[:, : len(values)] = (with_fixed_signs(left) * values)[:, :2]
    return plane


def histogram_plane(scores: Array) -> Array:
    """Return the scores as x, and as y the place among the samples in the same of 50 intervals of scores."""
    edges = np.histogram_bin_edges(scores, _BINS)
    column = np.digitize(scores, edges[1:-1])
    order = np.lexsort((scores, column))
    sizes = np.bincount(column, minlength=_BINS)
    within = np.empty(len(scores))
    within[order] = np.arange(len(scores)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    y = within - (sizes[column] - 1) / 2
    return np.column_stack([scaled(scores[:, None]).ravel(), y / max(sizes.max(), 1)])


def scaled(positions: Array) -> Array:
    """Return the positions centred, and divided by the largest coordinate."""
    centred: Array = positions - (positions.max(axis=0) + positions.min(axis=0)) / 2
    return centred / (np.abs(centred).max() or 1.0)
