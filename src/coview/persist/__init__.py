"""Saved models: a fitted model in one file, which holds no code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from coview.base.records import Json, StateError, entries, require
from coview.core.assign import Labels
from coview.errors import InputError, InputTypeError, kind_of
from coview.model.clusterer import Clusterer
from coview.model.model import Model
from coview.persist.codec import read_estimator, read_value, write_estimator, write_value
from coview.persist.file import Tensors, open_file, read_arrays, read_document, write_file

__all__ = ["describe_model", "load", "save"]


class FittedModel(Protocol):
    """What every saved model has; type checkers would accept any attribute of estimators, whose bases have no types."""

    @property
    def labels_(self) -> Labels: ...

    @property
    def view_names_(self) -> tuple[str, ...]: ...

    @property
    def view_n_features_(self) -> dict[str, int]: ...

    @property
    def n_features_in_(self) -> int: ...

    def predict(self, X: Any) -> Labels: ...


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
    if not isinstance(model, Clusterer):
        raise InputTypeError(
            f"model is {kind_of(model)}; give a fitted estimator of coview and then the path, as in save(model, path)"
        )
    path, name = Path(path), type(model).__name__
    if "predict" not in model.abilities:
        raise InputError(f"{name} cannot label new samples, so a saved model has no use; save its labels_ instead")
    if "model_" not in vars(model):
        raise InputError(f"{name} is not fitted; call fit before saving it")
    tensors = Tensors()
    try:
        write_file(path, _written(model, tensors), tensors.arrays)
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
        model: FittedModel = _read(document["model"], Tensors(read_arrays(file, document)))
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
        estimator = _read(document["model"], Tensors(skipped=True))
        with _consistent():
            described = _description(estimator)
        return {**described, "coview": document["coview"], "format": document["format"]}


_BESIDE = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")  # what scikit-learn stores


def _written(estimator: Any, tensors: Tensors) -> Json:
    beside = {name: value for name, value in vars(estimator).items() if name in _BESIDE}
    return {
        **write_estimator(estimator, tensors),
        "learnt": write_value(estimator.model_, tensors),
        "beside": write_value(beside, tensors),
    }


def _read(node: Json, tensors: Tensors) -> Any:
    """Return a fitted estimator."""
    given = entries(node, ["class", "parameters", "learnt", "beside"])
    with _consistent():
        estimator = read_estimator({name: given[name] for name in ("class", "parameters")}, tensors)
        learnt, beside = (read_value(given[name], tensors) for name in ("learnt", "beside"))
        require(isinstance(learnt, Model) and learnt.schema and learnt.predictor, "expected a model that can predict")
        vars(estimator).update(entries(beside, _BESIDE[:1], _BESIDE))
        estimator.publish(learnt)
    return estimator


@contextmanager
def _consistent() -> Iterator[None]:
    """Give one error about a file whose values do not belong together."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise StateError(f"it is inconsistent: {error}") from None


def _description(estimator: Any) -> dict[str, Any]:
    schema, views = estimator.model_.schema, []
    for name, width in schema.n_features.items():
        columns, categories = schema.columns[name], []
        if name in schema.encodings:  # the columns are those before the encoding
            columns, categories = schema.encodings[name].columns, list(schema.encodings[name].categorical)
            width = len(columns)
        listed = None if columns is None else list(columns)
        views.append({"name": name, "n_features": width, "columns": listed, "categories": categories})
    method = estimator.method
    while isinstance(method, Mapping):
        method = next(iter(method.values())).method
    return {
        "class": type(estimator).__name__,
        "method": type(method).__name__,
        "parameters": {name: _as_text(value) for name, value in estimator.get_params(deep=False).items()},
        # A method that selects the number has learnt it.
        "n_clusters": estimator.model_.learnt.get("n_clusters_", _as_text(getattr(method, "n_clusters", None))),
        "views": views,
    }


def _as_text(value: Any) -> Any:
    """Return a parameter as plain values: kernels, slices and the like as they are written in Python."""
    if isinstance(value, Clusterer):
        parameters = {name: _as_text(item) for name, item in value.get_params(deep=False).items()}
        return {"class": type(value).__name__, "parameters": parameters}
    if isinstance(value, Mapping):
        return {str(key): _as_text(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_text(item) for item in value]
    if isinstance(value, np.ndarray):
        return "array"
    if isinstance(value, type):  # a dtype
        return value.__name__
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        shown = [f"{name}={'array' if isinstance(item, np.ndarray) else repr(item)}" for name, item in given.items()]
        return f"{type(value).__name__}({', '.join(shown)})"
    return repr(value) if isinstance(value, (slice, range)) else value
