"""What a model says of each sample, as the columns of a label file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import numpy as np

from coview.certainty.which_view import best_views
from coview.core.assign import Labels
from coview.errors import InputError, InputTypeError
from coview.registry import CLUSTER_COLUMN, LABEL_COLUMNS, check_name
from coview.views import Array, Views

Columns: TypeAlias = dict[str, Array | None]  # a value for each sample, by name; None if there are none
_OF_MEMBERSHIP = ("membership", "second_cluster")


def sample_columns(
    model: Any,
    views: Views,
    labels: Labels | None = None,
    stability: Sequence[float | None] | None = None,
    wanted: Collection[str] = tuple(LABEL_COLUMNS),
) -> Columns:
    """Return the values of the wanted `LABEL_COLUMNS` for these samples; None for those that the model does not have.

    The labels are those of the training samples, if these are the samples; by default they are predicted. `stability`
    has the values of that column, if they are known.
    """
    columns: Columns = dict.fromkeys(name for name in LABEL_COLUMNS if name in wanted)
    membership = None
    if hasattr(model, "predict_proba") and not {*_OF_MEMBERSHIP}.isdisjoint(columns):
        membership = np.array(model.predict_proba(views))
    if labels is None:
        labels = predicted_labels(model, views) if membership is None else membership.argmax(axis=1)
    found: Columns = {CLUSTER_COLUMN: labels, "stability": None if stability is None else np.array(stability, float)}
    if membership is not None:
        own = np.arange(len(labels)), labels
        found["membership"] = membership[own]
        if membership.shape[1] > 1:
            membership[own] = -1.0
            found["second_cluster"] = membership.argmax(axis=1)
    if "novelty" in columns and hasattr(model, "score_samples"):
        found["novelty"] = 1 - model.score_samples(views)
    if "best_view" in columns:
        found["best_view"] = best_views(model, views)
    return {name: found.get(name) for name in columns}


def check_columns(parameter: str, wanted: Any) -> tuple[str, ...]:
    """Return the names of columns of new samples, all by default; the clusters are always among them."""
    known = tuple(name for name in LABEL_COLUMNS if name != "stability")  # which is a value of training samples
    if wanted is None:
        return known
    if isinstance(wanted, str):
        raise InputTypeError(f"{parameter}={wanted!r}: expected a list of columns, such as [{wanted!r}]")
    chosen = {check_name(parameter, name, known) for name in wanted} | {CLUSTER_COLUMN}
    return tuple(name for name in known if name in chosen)


def predicted_labels(model: Any, views: Views) -> Labels:
    """Return the labels that any model predicts, after a check that there is an integer for each sample."""
    labels = np.asarray(model.predict(views))
    if labels.shape != (views.n_samples,) or labels.dtype.kind not in "iu":
        raise InputError(
            f"{type(model).__name__}.predict returned {labels.dtype} of shape {labels.shape} for {views.n_samples} "
            "rows; expected one integer per row"
        )
    return labels
