"""Which view: the one that contributes most to each label, how much labels depend on each, and where samples differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coview.compose.concat import stacks_views
from coview.core.agreement import adjusted_rand
from coview.core.assign import Labels
from coview.errors import InputError
from coview.evaluate.coview import Coview
from coview.formats import count, listed
from coview.methods.nested import nested_models
from coview.methods.score_clusterer import ScoreClusterer
from coview.neighbors.cells import evenly_spaced
from coview.views import Array, Views

NOVEL = 0.99  # novelty
_DECIMALS = 6  # contributions are rounded before they are compared, so that equal views are a tie in any batch
_COMPARED = 1000  # samples of a block
# New samples of the same distribution are novel in 1 % of the cases on average. The fraction varies with the training
# samples; it is above 10 % with probability 0.9^99 = 3e-5 for 99 of them, the fewest that have a quantile of 1 %.
_USUAL_FRACTION = 0.1
_CHANCE = 1e-4  # probability of a note if this fraction of the samples is novel, by the binomial distribution


def n_found(model: Any) -> int:
    """Return the number of clusters of a fitted model that has memberships in these; 0 for other models."""
    *_, method = nested_models(model)
    if isinstance(method, Coview):
        return method.n_clusters_
    return method._assignment.n_found if isinstance(method, ScoreClusterer) else 0


def several_contributions(model: Any, views: Views) -> dict[str, Array]:
    """Return the contributions of the views to the labels of these samples; none without several views."""
    if not hasattr(model, "view_contributions") or len(model.view_names_) < 2:
        return {}
    contributions: dict[str, Array] = model.view_contributions(views)
    return contributions


def largest_contribution(contributions: Mapping[str, Array]) -> Array:
    """Return for each sample the view that contributes most to its label; the first of equal ones."""
    names = np.array(list(contributions))
    table = np.nan_to_num(np.round(np.array(list(contributions.values())), _DECIMALS), nan=-np.inf)
    return names[table.argmax(axis=0)]


def best_views(model: Any, views: Views) -> Array | None:
    """Return for each sample the view that contributes most to its label, alone and in any batch the same.

    Parameters
    ----------
    model : fitted estimator of this library
    views : Views
        Training or new samples.

    Returns
    -------
    array of str of shape (n_samples,), or None if the model has one view, one cluster, or no contributions of each view
    """
    if n_found(model) < 2:  # there is no other cluster
        return None
    contributions = several_contributions(model, views)
    return largest_contribution(contributions) if contributions else None


def agreements_without(model: Any, views: Views, labels: Labels) -> dict[str, float]:
    """Return for each view the adjusted Rand index between the labels and those that are predicted without the view.

    The model is not fitted again: samples without a view are labelled by the views that they have. Samples that have no
    other view are left out, and so are views that no sample has, or without which no sample is left. The result is
    empty for models that need all views, and for a single cluster.
    """
    if len(views) < 2 or not (hasattr(model, "predict") and model._samples_may_lack_views) or np.ptp(labels) == 0:
        return {}
    found = {}
    for name in views:
        others = views.select([each for each in views if each != name])
        rows = np.flatnonzero(others.has_any())
        if not len(rows) or not views.n_present(name):
            continue
        try:
            found[name] = adjusted_rand(labels[rows], model.predict(others.take(rows)))
        except InputError:  # the other views have no weight in the scores
            continue
    return found


def count_novel(model: Any, views: Views) -> dict[str, Array]:
    """Return for each view, or jointly for "", the number of novel samples and that of the samples, at most 1,000."""
    if not hasattr(model, "score_samples"):
        return {}
    some = views.take(evenly_spaced(views.n_samples, _COMPARED))
    of_views = {} if stacks_views(model) else model.score_samples(some, per_view=True)
    scores = of_views or {"": model.score_samples(some)}
    return {name: np.array([np.sum(x < 1 - NOVEL), np.sum(~np.isnan(x))]) for name, x in scores.items()}


def notes_on_novelty(counts: Mapping[str, Array]) -> list[str]:
    """Return a note on the views of `count_novel` in which more samples are novel than chance explains."""
    from scipy.special import bdtrc

    unlike = [
        f"{count(novel)} of {count(total)} compared samples" + (f" in view {name!r}" if name else "")
        for name, (novel, total) in counts.items()
        if novel and bdtrc(novel - 1, total, _USUAL_FRACTION) < _CHANCE
    ]
    verb = f"are unlike the training samples (novelty above {NOVEL}); check the units and the columns"
    return [f"{listed(unlike)} {verb}"] if unlike else []
