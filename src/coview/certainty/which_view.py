"""Which view: how much the labels depend on each view, and in which views new samples are novel."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coview.base.text import count, listed
from coview.certainty.columns import SampleColumns
from coview.core.agreement import adjusted_rand
from coview.core.assign import Labels
from coview.data.rows import evenly_spaced
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError
from coview.model.model import Model

NOVEL = 0.99  # novelty
_COMPARED = 1000  # samples of a block
# New samples of the same distribution are novel in 1 % of the cases on average. The fraction varies with the training
# samples; it is above 10 % with probability 0.9^99 = 3e-5 for 99 of them, the fewest that have a quantile of 1 %.
_USUAL_FRACTION = 0.1
_CHANCE = 1e-4  # probability of a note if this fraction of the samples is novel, by the binomial distribution


def agreements_without(model: Model, views: Views, labels: Labels) -> dict[str, float]:
    """Return for each view the adjusted Rand index between the labels and those that are predicted without the view.

    The model is not fitted again: samples without a view are labelled by the views that they have. Samples that have no
    other view are left out, and so are views that no sample has, or without which no sample is left. The result is
    empty for models that need all views, and for a single cluster.
    """
    schema = model.schema
    if model.predictor is None or not (schema and schema.may_lack_views) or len(views) < 2 or np.ptp(labels) == 0:
        return {}
    found = {}
    for name in views:
        others = views.select([each for each in views if each != name])
        rows = np.flatnonzero(others.has_any())
        if not len(rows) or not views.n_present(name):
            continue
        try:
            found[name] = adjusted_rand(labels[rows], model.predict(schema.completed(others.take(rows))))
        except InputError:  # the other views have no weight in the scores
            continue
    return found


def count_novel(model: Model, views: Views, columns: SampleColumns) -> dict[str, Array]:
    """Return for each view, or jointly for "", the number of novel samples and that of the samples, at most 1,000."""
    if not model.can("usualness"):
        return {}
    rows = evenly_spaced(views.n_samples, _COMPARED)
    usual = columns.take(rows).usualness or model.usualness(views.take(rows))
    scores = usual if model.seen_names == model.names else {"": model.joint_usualness(usual)}
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
