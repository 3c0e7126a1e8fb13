"""The split of the data sets into halves, and bootstrap intervals of paired differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

SPLIT_SEED = 0
BOOTSTRAP_SEED = 0
RESAMPLES = 10_000
# The random half of the 28 data sets. The names are stored, so that a further data set does not change the halves.
FIXING = frozenset(
    {
        "100leaves",
        "ads",
        "bdgp2500",
        "ccv6773",
        "cora",
        "fashion3v_20000_pool",
        "imgc",
        "mfeat",
        "proteinfold",
        "reuters600_5v",
        "scicar_a549",
        "synth1",
        "webkb203",
        "wikipedia2866",
    }
)


def random_half(names: Iterable[str]) -> list[str]:
    """Return half of the names, drawn at random by a fixed seed."""
    ordered = sorted(names)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(ordered))
    return sorted(ordered[i] for i in order[: len(ordered) // 2])


def halves(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the data sets on which constants are fixed, and those on which results are reported."""
    ordered = sorted(names)
    return [name for name in ordered if name in FIXING], [name for name in ordered if name not in FIXING]


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean, by resampling the differences, one of each data set."""
    values = np.asarray(differences)
    drawn = np.random.default_rng(BOOTSTRAP_SEED).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def mean_with_interval(differences: Sequence[float]) -> str:
    """Return the mean of paired differences with its interval, such as "+0.031 [-0.038, +0.117]"."""
    low, high = interval(differences)
    return f"{np.mean(differences):+.3f} [{low:+.3f}, {high:+.3f}]"
