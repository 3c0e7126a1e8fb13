"""The method inside the wrappers of a fitted model: its scores, and the labels by each view."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from coview.compose import Concat
from coview.compose.concat import stacks_views
from coview.core.assign import Labels
from coview.evaluate.coview import Coview
from coview.methods.base import MultiViewClusterer
from coview.methods.kernel_clusterer import KernelClusterer
from coview.methods.nested import kept_scores, nested_models
from coview.summary.margins import Numbers
from coview.views import Array, Views

_BLOCK_ROWS = 16_384


class Nested:
    """A fitted model and the models inside it, from the outermost wrapper to the method."""

    def __init__(self, model: Any) -> None:
        self.models = tuple(nested_models(model))
        self.method = self.models[-1]  # it has the scores, the kernels and the eigenvalues

    @property
    def view_names(self) -> tuple[str, ...]:
        """The views that the method sees as such; inside Concat it sees none."""
        return () if stacks_views(self.models[0]) else getattr(self.method, "view_names_", ())

    @property
    def kernels(self) -> dict[str, Any]:
        """The kernels of these views."""
        kernels = getattr(self.method, "kernels_", {})
        return {name: kernels[name] for name in self.view_names if name in kernels}

    def method_input(self, views: Views) -> Any:
        """Return the samples in the form that the method is fitted on."""
        for model in self.models[:-1]:
            views = model.inner_views(views)
        return views if isinstance(self.method, MultiViewClusterer) else next(iter(views.values()))


def all_scores(nested: Nested, views: Views, fitted: bool) -> Array | None:
    """Return the scores of the samples, which the method may keep if it is fitted on them; None without score space."""
    method, known = nested.method, kept_scores(nested.method)
    if fitted and known is not None and len(known) == views.n_samples:
        return known
    if not hasattr(method, "transform"):
        return None
    transform = _with_array_output(method).transform
    blocks = map(views.take, gen_batches(views.n_samples, _BLOCK_ROWS))
    return np.concatenate([transform(nested.method_input(block)) for block in blocks])


def _with_array_output(method: Any) -> Any:
    """Return a copy of the method that returns arrays even if it is set to return data frames."""
    plain = copy(method)
    plain._sklearn_output_config = {"transform": "default"}
    return plain


def view_scores(nested: Nested, views: Views, fitted: bool, drawn: Numbers) -> dict[str, Array]:
    """Return the scores of the drawn samples by each view, for views that have their own."""
    method = nested.method
    if isinstance(method, KernelClusterer):
        scores = _with_array_output(method).transform(nested.method_input(views.take(drawn)), per_view=True)
    else:
        known = getattr(method, "embeddings_", None) or getattr(method, "partitions_", {})
        scores = {name: of_view[drawn] for name, of_view in known.items()} if fitted else {}
    return {name: scores[name] for name in nested.view_names if name in scores}


def view_labels(model: Any, views: Views, fitted: bool, drawn: Numbers) -> tuple[dict[str, Labels], Numbers]:
    """Return the labels by each view alone, and their rows: all if the model keeps them, or those drawn."""
    if fitted and hasattr(model, "view_labels_"):
        return dict(model.view_labels_), np.arange(views.n_samples)
    for each in nested_models(model):
        if hasattr(each, "view_labels_") or isinstance(each, Coview):
            return model.predict(views.take(drawn), per_view=True), drawn
        if isinstance(each, Concat):
            break
    return {}, drawn
