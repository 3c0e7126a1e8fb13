"""Random subsets of the samples with some of every cluster, for what costs too much for all samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coview.core.assign import Labels


def draw_by_cluster(labels: Labels, most: int) -> NDArray[np.intp]:
    """Return at most this many rows, at random but with some of every cluster, in increasing order."""
    if len(labels) <= most:
        return np.arange(len(labels))
    numbers = np.unique(labels, return_inverse=True)[1]
    mixed = np.random.default_rng(0).permutation(len(numbers))
    by_cluster = mixed[np.argsort(numbers[mixed], kind="stable")]
    sizes = np.bincount(numbers)
    place = np.arange(len(numbers)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the cluster
    first = place < max(1, most // (4 * len(sizes)))
    drawn = np.concatenate([by_cluster[first], mixed[~np.isin(mixed, by_cluster[first])]])
    return np.sort(drawn[:most])
