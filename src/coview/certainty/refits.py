"""Models of parts of the samples, and the labels that they give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coview.core.assign import Labels
from coview.data.view import Array, View
from coview.data.views import Views
from coview.kernels import Kernel, Precomputed
from coview.model.clusterer import Clusterer
from coview.model.fitting import check_coverage


def rows_of(views: Views, rows: Array, kernels: Mapping[str, Kernel], training: Array | None = None) -> Views:
    """Return some rows; of a Gram matrix also the columns of the training rows, by default the same."""
    columns = rows if training is None else training

    def some(name: str, view: View) -> View:
        chosen = view.take(rows)
        return chosen.take_columns(columns) if isinstance(kernels.get(name), Precomputed) else chosen

    return views.map(some)


def labels_by_part(
    method: Clusterer, views: Views, kernels: Mapping[str, Kernel], part: Array, shared: Array
) -> Labels:
    """Return the labels of the shared rows by a model of one part of the samples."""
    own = rows_of(views, part, kernels)
    method.check_views(own)
    check_coverage(own, 1, kernels)  # a part may have fewer samples with a view than a fit of all samples accepts
    model = method.fit_model(own, lambda stage, done, total: None)
    if model.predictor is None:
        return model.labels[np.isin(part, shared)]
    return model.predict(rows_of(views, shared, kernels, part))
