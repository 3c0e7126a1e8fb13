"""The models inside a fitted model, and the scores and labels of the training samples that they keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coview.core.assign import Labels
from coview.views import Array


def nested_models(model: Any) -> Iterator[Any]:
    """Yield a fitted model and the models inside it, from the outermost wrapper to the method."""
    while model is not None:
        yield model
        model = getattr(model, "inner_model", None)


def kept_scores(model: Any) -> Array | None:
    """Return the scores of the samples that the method is fitted on, if it keeps them."""
    *_, method = nested_models(model)
    kept = (getattr(method, name, None) for name in ("scores_", "consensus_", "embedding_"))
    return next((np.asarray(scores) for scores in kept if scores is not None), None)


def kept_labels(model: Any, n_samples: int) -> Labels | None:
    """Return the labels of these training samples, which may be some of those of a wrapper; None without any."""
    kept = (vars(each).get("labels_") for each in nested_models(model))
    return next((np.asarray(labels) for labels in kept if labels is not None and len(labels) == n_samples), None)
