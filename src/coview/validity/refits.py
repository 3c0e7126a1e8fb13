"""Models of parts of the samples, and the labels that they give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from coview.core.assign import Labels
from coview.kernels import Kernel, Precomputed
from coview.methods.base import MultiViewClusterer
from coview.views import Array, Views


def rows_of(views: Views, rows: Array, kernels: Mapping[str, Kernel], training: Array | None = None) -> Views:
    """Return some rows; of a Gram matrix also the columns of the training rows, by default the same."""
    columns = rows if training is None else training
    chosen = {
        name: x[rows][:, columns] if isinstance(kernels.get(name), Precomputed) else x[rows]
        for name, x in views.items()
    }
    present = {name: mask[rows] for name, mask in views.present.items()}
    return Views.trusted(
        chosen, dict.fromkeys(views), present=present, empty_cells=views.empty_cells, encoded=views.encoded
    )


def labels_by_part(method: Any, views: Views, kernels: Mapping[str, Kernel], part: Array, shared: Array) -> Labels:
    """Return the labels of the shared rows by a model of one part of the samples."""
    model = clone(method).fit(_method_input(method, rows_of(views, part, kernels)))
    if not hasattr(method, "predict"):
        return model.labels_[np.isin(part, shared)]
    return model.predict(_method_input(method, rows_of(views, shared, kernels, part)))


def _method_input(method: Any, views: Views) -> Any:
    return views if isinstance(method, MultiViewClusterer) else next(iter(views.values()))
