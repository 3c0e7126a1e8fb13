"""Saved models: a fitted model in one file, which holds nothing that could run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coview.errors import InputError, InputTypeError
from coview.methods.base import MultiViewClusterer
from coview.persist.file import open_file, read_arrays, read_document, write_file
from coview.persist.kinds import Json, MisfitError, Sizes, Tensors
from coview.persist.models import MODEL, VIEW_COLUMNS, read_views

__all__ = ["describe_model", "load", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file, which appears when it is complete; return the path.

    Everything comes back with `load` but `progress`, which is a function. Kernels, assigners and estimators that are
    not of this library are refused: a file holds no code.

    Parameters
    ----------
    model : fitted estimator with predict
        A method, Tuned, or FixedSize, Preprocessed, Concat and PerView around them.
    path : path
        The ending ".safetensors" tells people and programs what it is.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from coview import KSC
    >>> x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    >>> model = KSC(n_clusters=2).fit(x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     same = load(save(model, folder + "/model.safetensors"))
    >>> same.predict(x)
    array([0, 0, 0, 1, 1])
    """
    path, name = Path(path), type(model).__name__
    if not isinstance(model, MultiViewClusterer):
        raise InputTypeError(f"model is a {name}; only fitted estimators of coview can be saved")
    if not hasattr(model, "predict"):
        raise InputError(f"{name} cannot label new samples, so there is nothing to use again; keep its labels_ instead")
    if "view_names_" not in vars(model):
        raise InputError(f"{name} is not fitted; call fit before saving it")
    tensors = Tensors()
    try:
        write_file(path, MODEL.write(model, tensors), tensors)
    except MisfitError as misfit:
        raise InputError(f"{name} cannot be saved: {misfit}") from None
    return path


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model in a file made by `save`.

    Nothing in a file can run. A file that is missing, damaged, foreign, of a newer format or inconsistent gives
    `ModelFileError`, and never a part of a model. Takes memory for about twice the file.

    Parameters
    ----------
    path : path
    """
    with open_file(path) as file:
        document = read_document(file)
        tensors = Tensors(read_arrays(file, document))
        model = MODEL.read(document["model"], tensors)
        tensors.require_all_read()
        return model


def describe_model(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a file made by `save` holds, as plain values; only the beginning of the file is read.

    The keys are class, method (the class inside all wrappers), parameters, n_clusters, views (a list of name,
    n_features and columns, None where these had no names), and the versions coview and format.

    Parameters
    ----------
    path : path
    """
    with open_file(path) as file:
        document = read_document(file)
        try:
            described = _described(document["model"])
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            raise MisfitError("it is inconsistent") from None
        return {**described, "coview": document["coview"], "format": document["format"]}


def _described(model: Mapping[str, Json]) -> dict[str, Any]:
    inner = model
    while trained := inner["learnt"].get("estimator_") or inner["learnt"].get("estimators_"):
        inner = trained if "learnt" in trained else next(iter(trained.values()))  # one for each view
    widths = read_views(model["learnt"])
    columns = VIEW_COLUMNS.read(model["learnt"]["_view_columns"], Tensors(), Sizes(widths))
    return {
        "class": model["class"],
        "method": inner["class"],
        "parameters": {name: _shown(node) for name, node in model["parameters"].items()},
        "n_clusters": _shown(inner["parameters"]["n_clusters"]),
        "views": [
            {"name": name, "n_features": width, "columns": columns[name] and list(columns[name])}
            for name, width in widths.items()
        ],
    }


def _shown(node: Json) -> Any:
    """A setting as people would write it, in plain values."""
    if isinstance(node, list):
        return [_shown(item) for item in node]
    if not isinstance(node, dict):
        return node
    ((tag, inner),) = node.items()
    if tag == "estimator":
        return {
            "class": inner["class"],
            "parameters": {name: _shown(item) for name, item in inner["parameters"].items()},
        }
    if tag == "value":
        fields = ", ".join(f"{name}={_shown(item)!r}" for name, item in inner.items() if name != "class")
        return f"{inner['class']}({fields})"
    if tag == "dict":
        return {str(key): _shown(item) for key, item in inner}
    if tag == "scalar":
        return _shown(inner[1])
    if tag in ("slice", "range"):
        return f"{tag}({', '.join(map(str, inner))})"
    return _shown(inner) if tag in ("tuple", "float", "type", "dtype") else tag
