"""The split of the data sets into halves, and bootstrap intervals of paired differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

SPLIT_SEED = 0
BOOTSTRAP_SEED = 0
RESAMPLES = 10_000


def halves(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the data sets on which constants are fixed, and those on which results are reported."""
    ordered = sorted(names)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(ordered))
    half = len(ordered) // 2
    return sorted(ordered[i] for i in order[:half]), sorted(ordered[i] for i in order[half:])


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean, by resampling the differences, one of each data set."""
    values = np.asarray(differences)
    drawn = np.random.default_rng(BOOTSTRAP_SEED).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
