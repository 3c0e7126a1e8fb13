"""The final fit: the best setting of a search whose measures on all samples are near those of the search."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from coview.compose.preprocessed import Preprocessed
from coview.core.agreement import adjusted_rand, size_entropy
from coview.core.select import draw_rows
from coview.tune.candidates import Candidate
from coview.tune.record import EvaluatedSetting, FinalMeasures
from coview.validity import Validity, measure_validity
from coview.views import Views

_MOST_FITS = 3
_ROWS = 2000  # whose labels by each view are computed


class FinalFit(NamedTuple):
    """A model of all samples, its measures and validity, and the index of its setting among the evaluations."""

    model: Preprocessed
    measures: FinalMeasures
    validity: Validity | None
    selected: int


def fit_best(
    ranking: Sequence[tuple[Candidate, int]],
    evaluations: Sequence[EvaluatedSetting],
    make: Callable[[Candidate], Preprocessed],
    views: Views,
) -> FinalFit:
    """Fit settings on all samples, best first, and return the first whose measures are not far below the search's.

    The evaluations of a search describe some of the samples. On all samples, a few outliers can dominate a component
    that they did not dominate there. If the first settings all fall far below their evaluations, the first one is
    returned, with a warning.
    """
    fits = []
    for candidate, index in ranking[:_MOST_FITS]:
        final = _measured(make(candidate).fit(views), index, views)
        if not final.measures.falls(evaluations[index]):
            return final
        fits.append(final)
    warnings.warn(fall_in_words(fits[0].measures, evaluations[fits[0].selected]), UserWarning, stacklevel=5)
    return fits[0]


def fall_in_words(final: FinalMeasures, found: EvaluatedSetting) -> str:
    """Return which measures on all samples are far below those of the search."""
    falls = [
        f"{name.replace('_', ' ')} {now:.2f} instead of {before:.2f}"
        for name, (before, now) in final.falls(found).items()
    ]
    return (
        f"on all {final.n_samples} samples the selected setting is worse than on the {found.n_samples} of the search: "
        f"{', '.join(falls)}; check for outliers"
    )


def _measured(model: Preprocessed, index: int, views: Views) -> FinalFit:
    labels, number = model.labels_, model.estimator_.n_clusters
    agreement = None
    if len(views) > 1:
        rows = draw_rows(views.n_samples, _ROWS, np.random.default_rng(0))
        by_view = model.view_labels_ if len(rows) == len(labels) else model.predict(views.take(rows), per_view=True)
        agreement = float(np.mean([adjusted_rand(labels[rows], each) for each in by_view.values()]))
    validity = measure_validity(model, views, labels)
    measures = FinalMeasures(
        views.n_samples,
        agreement,
        None if validity is None else validity.stability,
        0 if validity is None else validity.n_samples,
        size_entropy(labels, number),
    )
    return FinalFit(model, measures, validity, index)
