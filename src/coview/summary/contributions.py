"""The contributions of the views to the labels in a summary: by cluster, and the best view of each sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from coview.certainty.which_view import largest_contribution, several_contributions
from coview.summary.margins import Numbers, indicators
from coview.views import Array, Views

BLOCK_ROWS = 4096  # views may be files


class Contributions(NamedTuple):
    """The contributions of the views to the labels of some samples; empty if the model has none."""

    means: tuple[dict[str, float], ...]  # by cluster and view; a view that a sample lacks contributes nothing
    contradicted: tuple[dict[str, float], ...]  # by cluster and view: fraction of the samples with the view
    best_views: tuple[str, ...] | None  # of each of the samples


def gather_contributions(model: Any, views: Views, numbers: Numbers, rows: Numbers, n_clusters: int) -> Contributions:
    """Return the contributions to the labels of these rows, whose clusters are the numbers."""
    nothing = Contributions(({},) * n_clusters, ({},) * n_clusters, None)
    if n_clusters < 2:
        return nothing
    blocks = [several_contributions(model, views.take(rows[part])) for part in gen_batches(len(rows), BLOCK_ROWS)]
    by_view = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    if not by_view:
        return nothing
    members = indicators(numbers[rows], n_clusters)
    means = {name: members @ np.nan_to_num(each) / members.sum(axis=1) for name, each in by_view.items()}
    fractions = {name: _negative(members, each) for name, each in by_view.items()}
    return Contributions(_by_cluster(means), _by_cluster(fractions), tuple(largest_contribution(by_view).tolist()))


def _negative(members: Any, contributions: Array) -> Array:
    """Return for each cluster the fraction of negative contributions; NaN without any."""
    known = members @ ~np.isnan(contributions)
    return np.divide(members @ (contributions < 0), known, out=np.full(len(known), np.nan), where=known > 0)


def _by_cluster(by_view: Mapping[str, Array]) -> tuple[dict[str, float], ...]:
    """Return one dictionary by view for each cluster, with five significant digits, without NaN."""
    return tuple(
        {name: float(f"{value:.5g}") for name, value in zip(by_view, values, strict=True) if not np.isnan(value)}
        for values in zip(*by_view.values(), strict=True)
    )
