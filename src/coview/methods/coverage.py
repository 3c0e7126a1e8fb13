"""Samples that lack views: whether the others are enough to cluster by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coview.errors import InputError
from coview.formats import plural
from coview.kernels import Kernel, Precomputed
from coview.parts import is_part_of_measurement
from coview.views import Views

_LEAST_PER_CLUSTER = 2  # samples with a view


def least_samples(n_clusters: int) -> int:
    """Return the least number of samples that need to have a view."""
    return _LEAST_PER_CLUSTER * n_clusters


def check_coverage(views: Views, n_clusters: int, kernels: Mapping[str, Kernel]) -> None:
    """Raise an InputError if a view has too few samples, or if no sample connects some views with the others.

    A part of a measurement, which has fewer samples, needs those of one cluster.
    """
    n_clusters = 1 if is_part_of_measurement() else n_clusters
    least = least_samples(n_clusters)
    for name in views.present:
        if views.n_present(name) < least:
            raise InputError(
                f"view {name!r} has {views.n_present(name)} of {views.n_samples} samples, and "
                f"{plural(n_clusters, 'cluster')} {'need' if n_clusters > 1 else 'needs'} at least {least}; drop the "
                "view, or give more samples that have it (if n_train is set, increase it)"
            )
        if isinstance(kernels.get(name), Precomputed):
            raise InputError(
                f"view {name!r} has a precomputed kernel, which needs all samples, and "
                f"{views.n_samples - views.n_present(name)} lack it; drop these samples or give a table of features"
            )
    connected, others = _connected(views)
    if others:
        raise InputError(
            f"no sample has one of the views {', '.join(connected)} and also one of {', '.join(others)}, so nothing "
            "relates their clusters; cluster them separately, or add samples that have both"
        )


def _connected(views: Views) -> tuple[list[str], list[str]]:
    """Return the views that samples with several views connect to the first one, and the others."""
    everywhere = np.ones(views.n_samples, dtype=bool)
    masks = {name: views.present.get(name, everywhere) for name in views}
    first, *others = masks
    connected, reached = [first], masks[first].copy()
    while found := [name for name in others if (masks[name] & reached).any()]:
        for name in found:
            reached |= masks[name]
        connected += found
        others = [name for name in others if name not in found]
    return connected, others
