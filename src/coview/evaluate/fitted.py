"""The fit of a consensus: from views to a model, for a given number of clusters or a selected one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from coview.base.progress import Progress
from coview.base.runtime import Workers
from coview.core.assign import Labels
from coview.core.select import draw_rows
from coview.data.views import Views
from coview.evaluate.consensus import Consensus, clusters_of_tree
from coview.evaluate.number import ClusterNumber, numbers_for, select_number
from coview.evaluate.pool import Pool, numbers_of_members
from coview.evaluate.support import MOST_COMPARED, Support, support_of
from coview.evaluate.valleys import Valleys

_SEARCH_SEED = 0  # always the same, so that the number does not depend on the seed of the estimator


class Fit(NamedTuple):
    """What is learnt from training samples."""

    model: Consensus
    labels: Labels
    n_clusters: int  # that was given or chosen; fewer may be found
    number: ClusterNumber | None = None  # None if the number of clusters is given
    support: Support | None = None  # of the selected number of clusters


def fit_consensus(views: Views, n_clusters: int, seed: int, workers: Workers, report: Progress) -> Fit:
    """Return the consensus for this number of clusters."""
    report("graphs", 0, 2)
    numbers = numbers_of_members(n_clusters)
    pool = Pool.learn(views, max(numbers), workers)
    report("clusterings", 1, 2)
    members = pool.cluster(numbers, seed, workers)
    report("clusterings", 2, 2)
    return Fit(*Consensus.learn(pool, members, clusters_of_tree(members, n_clusters)), n_clusters)


def fit_with_selected_number(
    views: Views, seed: int, workers: Workers, report: Progress, choose: Callable[[int], int] = lambda found: found
) -> Fit:
    """Return the consensus for the number of clusters that is selected on at most 2,000 samples.

    `choose` returns the number for the one that is found. If there are more samples, the consensus of these samples
    labels all, and the members of all samples refine the clusters.
    """
    n = views.n_samples
    rows = draw_rows(n, MOST_COMPARED, np.random.default_rng(_SEARCH_SEED))
    some = views if len(rows) == n else views.take(rows)
    report("graphs", 0, 3)
    pool = Pool.learn(some, max(numbers_for(len(rows))), workers)
    report("number of clusters", 1, 3)
    valleys = Valleys(pool.graphs.sum(-1))
    number, members, clusters = select_number(some, pool, valleys, _SEARCH_SEED, workers)
    chosen = choose(number.n_clusters)
    if chosen != number.n_clusters:
        fit = fit_consensus(views, chosen, seed, workers, lambda stage, done, _: report(stage, 1 + done, 3))
        return fit._replace(number=replace(number, chosen=chosen))
    model, labels = Consensus.learn(pool, members, clusters)
    report("all samples", 2, 3)
    if some is not views:
        clusters = model.labels(views)
        numbers = numbers_of_members(number.n_clusters)
        pool = Pool.learn(views, max(numbers), workers)
        members = pool.cluster(numbers, seed, workers)
        model, labels = Consensus.learn(pool, members, np.unique(clusters, return_inverse=True)[1])
    support = support_of(some, labels[rows], valleys, number.parts[0].structure if len(number.parts) == 1 else None)
    report("all samples", 3, 3)
    return Fit(model, labels, chosen, number, support)
