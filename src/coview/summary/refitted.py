"""The stability of clusters and samples in a summary: that of `stability`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coview.certainty.stability import Stability
from coview.core.assign import Labels
from coview.errors import InputError, InputTypeError, kind_of
from coview.summary.values import Refits


def check_stability(given: Any, labels: Labels, names: Labels) -> None:
    """Raise an error unless this is a `Stability` of these samples and clusters, or None."""
    if given is None:
        return
    if not isinstance(given, Stability):
        raise InputTypeError(f"stability is {kind_of(given)}; give the result of coview.stability(model, views)")
    if len(given.samples) != len(labels):
        raise InputError(
            f"stability has {len(given.samples)} samples, but the views have {len(labels)}; compute it for the same "
            "views"
        )
    sizes = {each.label: each.size for each in given.clusters}
    if sizes != {int(name): int((labels == name).sum()) for name in names}:
        raise InputError("stability has other clusters than the model; compute it for the same model")


def stability_by_cluster(given: Stability | None, n_clusters: int) -> Sequence[float | None]:
    """Return the mean Jaccard index of each cluster with the most similar cluster of models of half of the samples."""
    if given is None or n_clusters < 2:  # any model finds a single cluster again
        return [None] * n_clusters
    return [each.jaccard for each in given.clusters]


def refits_of(given: Stability | None) -> Refits | None:
    """Return the models that `stability` has fitted."""
    if given is None:
        return None
    return Refits(given.n_repeats, given.n_drawn, given.predicts, tuple(each.dissolved for each in given.clusters))
