"""What was run: the method, its parameters, and the versions that the numbers may depend on."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from coview._version import __version__
from coview.compose import Concat, FixedSize, PerView, Preprocessed
from coview.evaluate.coview import Coview
from coview.methods.base import MultiViewClusterer
from coview.methods.nested import nested_models

_UNCHANGED = "as it is"  # a view without preprocessing


def n_training_samples(model: Any, n: int) -> int:
    """Return the number of samples that a model or the method inside is fitted on; n if it has no labels."""
    for each in nested_models(model):
        if isinstance(each, FixedSize):
            return len(each.train_rows_)
    return len(getattr(each, "labels_", range(n)))


def nested_name(model: Any) -> str:
    """Return the name of the class with those inside, such as FixedSize(TMvKSCR)."""
    inner = getattr(model, "estimator", None)
    if inner is None:
        return type(model).__name__
    inside = inner.values() if isinstance(inner, Mapping) else [inner]
    return f"{type(model).__name__}({', '.join(map(nested_name, inside))})"


def describe_preprocessing(model: Any) -> dict[str, str]:
    """Return what a fitted model does to the rows of each view before its method sees them, in words."""
    found = _steps_in_words(model)
    words = {name: ", ".join(steps) or _UNCHANGED for name, steps in found.items()}
    for name in model._encodings:  # of the outermost model, before all steps
        words[name] = f"encoded categories, then {words[name]}" if found[name] else "encoded categories"
    return words


def _steps_in_words(model: Any) -> dict[str, list[str]]:
    """Return what wrappers do to each view, the outermost first."""
    found: dict[str, list[str]] = {name: [] for name in model.view_names_}
    if isinstance(model, Coview):
        return {name: ["; ".join(_representations(model, name))] for name in found}
    for name, words in found.items():
        if isinstance(model, Preprocessed) and model.preprocessing_[name].steps:
            words.append(model.preprocessing_[name].preprocessing.description)
        inner = model.estimators_[name] if isinstance(model, PerView) else model.inner_model
        if isinstance(inner, MultiViewClusterer):
            inside = _steps_in_words(inner)
            if isinstance(model, Concat):  # its table is one view, under a name of its own
                words += [f"{each} (of all columns)" for each in inside.popitem()[1]]
            else:
                words += inside[name]
    return found


def _representations(model: Coview, view: str) -> dict[str, None]:
    """Return the preprocessing of a view in each representation, in words, without the last step for stacked views."""
    learnt = [graph.representation.preprocessing for graph in model.model_.graphs]
    return dict.fromkeys(each[view].preprocessing.description.rsplit(", ", 1)[0] for each in learnt if view in each)


def parameters(model: Any) -> dict[str, Any]:
    """Return the parameters as JSON values, with estimators inside as dictionaries that name their class."""
    return {name: _json_value(value) for name, value in model.get_params(deep=False).items()}


def _json_value(value: Any) -> Any:
    """Return a parameter as a JSON value, or its description."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return {"class": type(value).__name__, **parameters(value)}
    if isinstance(value, Mapping):
        return {str(key): _json_value(entry) for key, entry in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= 100 else f"array of shape {value.shape}"
    if isinstance(value, (list, tuple)):
        return [_json_value(entry) for entry in value]
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", getattr(value, "__name__", repr(value)))


def versions() -> dict[str, str]:
    """Return the versions that the numbers may depend on."""
    import scipy
    import sklearn

    modules = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn}
    found = {"coview": __version__, "python": platform.python_version()}
    return found | {name: module.__version__ for name, module in modules.items()}
