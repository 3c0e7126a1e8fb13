"""The public interface: all names with their signatures, and the public attributes of classes."""

from __future__ import annotations

import inspect
import re

import coview
from coview.model.clusterer import RECLUSTERS, Clusterer


def interface() -> dict[str, str]:
    """Return the signature of each public name and public method."""
    found = {}
    for name in sorted(coview.__all__):
        value = getattr(coview, name)
        found[name] = _signature(value)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for attribute, method in inspect.getmembers(value):
                own = getattr(method, "__module__", "") or ""
                public = not attribute.startswith("_") and inspect.isroutine(method) and own.startswith("coview")
                if public and (not issubclass(value, Clusterer) or for_users(value, attribute)):
                    found[f"{name}.{attribute}"] = _signature(method)
    return found


def for_users(estimator: type[Clusterer], name: str) -> bool:
    """Return whether users call a method; those for subclasses and other packages have a docstring of one line."""
    able = isinstance(estimator.abilities, property) or name in estimator.abilities or name not in RECLUSTERS
    return able and "Returns\n" in (inspect.getdoc(getattr(estimator, name)) or "")


def _signature(value: object) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return type(value).__name__
