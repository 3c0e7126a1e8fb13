"""What was run: the method, its parameters, and the versions that the numbers may depend on."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from coview._version import __version__
from coview.model.model import Model

_UNCHANGED = "as it is"  # a view without preprocessing


def nested_name(model: Any) -> str:
    """Return the name of the class with those inside, such as FixedSize(TMvKSCR)."""
    inner = getattr(model, "estimator", None)
    if inner is None:
        return type(model).__name__
    inside = inner.values() if isinstance(inner, Mapping) else [inner]
    return f"{type(model).__name__}({', '.join(map(nested_name, inside))})"


def describe_preprocessing(model: Model) -> dict[str, str]:
    """Return what a fitted model does to the rows of each view before its method sees them, in words."""
    words = {}
    for name in model.names:
        steps = model.words(name)
        words[name] = ", ".join(steps) or _UNCHANGED
        if name in model.encodings:
            words[name] = f"encoded categories, then {words[name]}" if steps else "encoded categories"
    return words


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
