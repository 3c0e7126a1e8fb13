"""What a model says of each sample, as the columns of a label file."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from coview.core.assign import Labels
from coview.errors import InputError
from coview.registry import CLUSTER_COLUMN, LABEL_COLUMNS
from coview.views import Array, Views

Columns: TypeAlias = dict[str, Array | None]  # a value for each sample, by name; None if there are none


def sample_columns(model: Any, views: Views, labels: Labels | None = None) -> Columns:
    """Return the values of all `LABEL_COLUMNS` for these samples; None for those that the model does not have.

    The labels are those of the training samples, if these are the samples; by default they are predicted.
    """
    columns: Columns = dict.fromkeys(LABEL_COLUMNS)
    membership = np.array(model.predict_proba(views)) if hasattr(model, "predict_proba") else None
    if labels is None:
        labels = predicted_labels(model, views) if membership is None else membership.argmax(axis=1)
    columns[CLUSTER_COLUMN] = labels
    if membership is not None:
        own = np.arange(len(labels)), labels
        columns["membership"] = membership[own]
        if membership.shape[1] > 1:
            membership[own] = -1.0
            columns["second_cluster"] = membership.argmax(axis=1)
    if hasattr(model, "score_samples"):
        columns["novelty"] = 1 - model.score_samples(views)
    return columns


def predicted_labels(model: Any, views: Views) -> Labels:
    """Return the labels that any model predicts, after a check that there is an integer for each sample."""
    labels = np.asarray(model.predict(views))
    if labels.shape != (views.n_samples,) or labels.dtype.kind not in "iu":
        raise InputError(
            f"{type(model).__name__}.predict returned {labels.dtype} of shape {labels.shape} for {views.n_samples} "
            "rows; expected one integer per row"
        )
    return labels
