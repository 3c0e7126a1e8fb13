"""Models of parts of the samples, and the labels that they give."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone

from coview.core.assign import Labels
from coview.kernels import Kernel, Precomputed
from coview.methods.base import MultiViewClusterer
from coview.parts import part_of_measurement
from coview.views import Array, Views


@contextmanager
def without_warnings(method: Any) -> Iterator[None]:
    """Return a context in which fits of the method, and of methods inside it, give no warnings."""
    with part_of_measurement(), ExitStack() as filters:
        if not _is_own(method):
            filters.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
        yield


def _is_own(estimator: Any) -> bool:
    """Return whether an estimator and those inside it are of this library."""
    inner = getattr(estimator, "estimator", [])
    several = inner.values() if isinstance(inner, Mapping) else inner if isinstance(inner, (list, tuple)) else [inner]
    return isinstance(estimator, MultiViewClusterer) and all(map(_is_own, several))


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
