"""What was run: the method, its parameters, and the versions of what it ran on."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from coview._version import __version__
from coview.compose import Concat, FixedSize, PerView, Preprocessed
from coview.methods.base import MultiViewClusterer
from coview.tune import Tuned


def n_train(model: Any, n: int) -> int:
    """Return how many samples the model, or the one inside, has learnt from; n where it does not say."""
    best = getattr(model, "best_view_", None)
    inner = getattr(model, "estimator_", None) if best is None else model.estimators_[best]
    if inner is not None and not hasattr(model, "train_rows_"):
        return n_train(inner, n)
    for learnt in ("train_rows_", "labels_", "scores_"):
        rows = getattr(model, learnt, None)
        if rows is not None:
            return len(rows)
    return n


def nested_name(model: Any) -> str:
    """Return the name of the class with those inside, such as FixedSize(TMvKSCR)."""
    inner = getattr(model, "estimator", None)
    if isinstance(inner, Mapping):
        return f"{type(model).__name__}({', '.join(nested_name(each) for each in inner.values())})"
    return type(model).__name__ if inner is None else f"{type(model).__name__}({nested_name(inner)})"


def prepared_in_words(model: Any) -> dict[str, str]:
    """Return what a fitted model does to the rows of each view before its method sees them, in words."""
    return {name: ", ".join(steps) or "as it is" for name, steps in _preparations(model).items()}


def _preparations(model: Any) -> dict[str, list[str]]:
    """What wrappers do to each view, the outermost first."""
    names = model.view_names_
    own: dict[str, list[str]] = {name: [] for name in names}
    if isinstance(model, Preprocessed):
        for name, learnt in model.preprocessing_.items():
            own[name] = [learnt.preprocessing.description] if learnt.steps else []
    if isinstance(model, PerView):
        trained = {name: model.estimators_[name] for name in names}
    elif isinstance(model, (Preprocessed, Tuned, FixedSize, Concat)):
        trained = dict.fromkeys(names, model.estimator_)
    else:
        return own
    for name, estimator in trained.items():
        if isinstance(estimator, MultiViewClusterer):
            inner = _preparations(estimator)
            if isinstance(model, Concat):  # one table, under a name of its own
                own[name] += [f"{words} (of all views side by side)" for words in next(iter(inner.values()))]
            else:
                own[name] += inner[name]
    return own


def parameters(model: Any) -> dict[str, Any]:
    """Return the parameters as JSON knows them; estimators inside as dictionaries with their class."""
    return {name: _plain(value) for name, value in model.get_params(deep=False).items()}


def _plain(value: Any) -> Any:
    """A parameter in words that JSON knows."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return {"class": type(value).__name__, **parameters(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= 100 else f"array of shape {value.shape}"
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", getattr(value, "__name__", repr(value)))


def versions() -> dict[str, str]:
    """Return the versions that the numbers may depend on."""
    import scipy
    import sklearn

    return {
        "coview": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
