"""Saved models: a fitted model in one file, which holds no code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coview.errors import InputError, InputTypeError, kind_of
from coview.methods.base import FittedModel, MultiViewClusterer
from coview.persist.codec import convert_model, converter, state_hints, view_widths
from coview.persist.file import Json, Tensors, open_file, read_arrays, read_document, write_file
from coview.state import Sizes, StateError

__all__ = ["describe_model", "load", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file, which appears when it is complete; return the path.

    `load` returns the model with everything but `progress` and `verbose`. Kernels, assigners and estimators of other
    libraries are refused, because a file holds no code.

    Parameters
    ----------
    model : fitted estimator with predict
        A method, or FixedSize, Preprocessed, Concat and PerView around them.
    path : path
        By convention it ends in ".safetensors".

    Returns
    -------
    pathlib.Path

    See Also
    --------
    load : Read the file.
    coview.persist.describe_model : Describe a file without reading its arrays.

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
    if not isinstance(model, MultiViewClusterer):
        raise InputTypeError(
            f"model is {kind_of(model)}; give a fitted estimator of coview and then the path, as in save(model, path)"
        )
    path, name = Path(path), type(model).__name__
    if not hasattr(model, "predict"):
        raise InputError(f"{name} cannot label new samples, so a saved model has no use; save its labels_ instead")
    if "view_names_" not in vars(model):
        raise InputError(f"{name} is not fitted; call fit before saving it")
    tensors = Tensors()
    try:
        write_file(path, convert_model(model, tensors), tensors.arrays)
    except StateError as error:
        raise InputError(f"{name} cannot be saved: {error}") from None
    return path


def load(path: str | os.PathLike[str]) -> FittedModel:
    """Return the model in a file made by `save`.

    A file holds no code. A file that is missing, damaged, foreign, of a newer format or inconsistent gives
    `ModelFileError`, and never a part of a model. Loading takes memory for about twice the file.

    Parameters
    ----------
    path : path

    Returns
    -------
    fitted estimator

    See Also
    --------
    save : Write the file.

    Examples
    --------
    A model predicts the same labels after it was saved and loaded:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from coview import KSC
    >>> rows = np.random.default_rng(0).normal(size=(20, 2))
    >>> model = KSC(2, random_state=0).fit(rows)
    >>> with TemporaryDirectory() as folder:
    ...     loaded = load(save(model, Path(folder, "model.safetensors")))
    >>> bool((loaded.predict(rows) == model.labels_).all())
    True
    """
    with open_file(path) as file:
        document = read_document(file)
        model: FittedModel = convert_model(document["model"], Tensors(read_arrays(file, document)))
        return model


def describe_model(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the contents of a file made by `save` as plain values; only the beginning of the file is read.

    It refuses the files that `load` refuses as damaged, except for changed values of arrays, which are not read.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict
        With the keys class, method (the class inside all wrappers), parameters, n_clusters (also if it was selected),
        views (a list of name, n_features, columns, which are None if they had no names, and categories, the columns of
        categories), and the versions coview and format.
    """
    with open_file(path) as file:
        document = read_document(file)
        try:
            described = _model_description(document["model"])
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            raise StateError("it is inconsistent") from None
        return {**described, "coview": document["coview"], "format": document["format"]}


def _nested_descriptions(model: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield a model and those inside it; of the models of all views, the first."""
    yield model
    inner = model["learnt"].get("estimator_") or model["learnt"].get("estimators_")
    if inner:
        yield from _nested_descriptions(inner if "learnt" in inner else next(iter(inner.values())))


def _model_description(model: Mapping[str, Json]) -> dict[str, Any]:
    *_, method = _nested_descriptions(model)
    tensors = Tensors({})
    widths = view_widths(model["learnt"], tensors)
    read_columns = converter(state_hints(MultiViewClusterer)["_view_columns"])
    columns = read_columns(model["learnt"]["_view_columns"], tensors, Sizes(widths))
    categories: dict[str, list[str]] = {name: [] for name in widths}
    for name, encoding in model["learnt"]["_encodings"].items():  # the columns are those before the encoding
        columns[name] = tuple(map(str, encoding["columns"]))
        widths[name] = len(columns[name])
        pairs = zip(columns[name], encoding["categories"], strict=True)
        categories[name] = [column for column, found in pairs if found is not None]
    return {
        "class": model["class"],
        "method": method["class"],
        "parameters": {name: _parameter_text(node) for name, node in model["parameters"].items()},
        # A method that selects the number has learnt it.
        "n_clusters": method["learnt"].get("n_clusters_", _parameter_text(method["parameters"]["n_clusters"])),
        "views": [
            {
                "name": name,
                "n_features": width,
                "columns": columns[name] and list(columns[name]),
                "categories": categories[name],
            }
            for name, width in widths.items()
        ],
    }


def _parameter_text(node: Json) -> Any:
    """Return a parameter in the form in which a person would write it, as plain values."""
    if isinstance(node, list):
        return [_parameter_text(item) for item in node]
    if not isinstance(node, dict):
        return node
    ((tag, inner),) = node.items()
    if tag in ("estimator", "value"):
        parameters = {name: _parameter_text(item) for name, item in inner["parameters"].items()}
        if tag == "estimator":
            return {"class": inner["class"], "parameters": parameters}
        return f"{inner['class']}({', '.join(f'{name}={item!r}' for name, item in parameters.items())})"
    if tag == "dict":
        return {str(key): _parameter_text(item) for key, item in inner}
    if tag == "scalar":
        return _parameter_text(inner[1])
    if tag in ("slice", "range"):
        return f"{tag}({', '.join(map(str, inner))})"
    return _parameter_text(inner) if tag in ("tuple", "float", "type", "dtype") else tag
