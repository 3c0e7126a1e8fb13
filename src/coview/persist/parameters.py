"""Parameters of estimators: the values that a caller gives, from a closed list of types.

Plain values stand in a file as they are, others under a tag. A value of any other type is refused when a model is
saved, because a file holds no code that could bring it back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from inspect import isabstract
from numbers import Integral
from typing import Any

import numpy as np

from coview.compose import Concat, FixedSize, PerView, Preprocessed
from coview.core.assign import Assigner
from coview.core.select import Selector
from coview.errors import InputError, kind_of
from coview.kernels import Kernel
from coview.parameters import check_integer
from coview.persist.file import DTYPES, Json, Tensors, entries
from coview.registry import ASSIGNERS, KERNELS, METHODS, SELECTORS, STEPS
from coview.runtime import check_n_jobs
from coview.state import StateError, inside, require
from coview.views import Array

FLOATS: Mapping[str, Any] = {"float32": np.float32, "float64": np.float64}
NOT_SAVED = ("progress", "verbose")  # parameters: a function, and what a fit prints
_NUMPY_SCALARS = (
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    *FLOATS,
)
# Parameters that are newer than format 1. Files without them take the default, with which a model predicts as before.
_ADDED = frozenset({"recall"})
_INTEGER_LIMIT = 2**128
_NOT_FINITE = {repr(value): value for value in (math.inf, -math.inf, math.nan)}
_WRAPPERS: Mapping[str, Any] = {cls.__name__: cls for cls in (Concat, FixedSize, PerView, Preprocessed)}


def known_class(name: Any) -> Any:
    """Return the method, wrapper, kernel, assigner or selector of this name; None for any other name."""
    for key, entry in METHODS.entries.items():
        if entry.class_name == name:
            return METHODS[key]
    for base in (Kernel, Assigner, Selector):
        if name in concrete_classes(base):
            return concrete_classes(base)[name]
    return _WRAPPERS.get(name)


def concrete_classes(base: type) -> dict[str, Any]:
    """Return a class, or the concrete subclasses of an abstract one that are of the same package, by name.

    Classes with the attribute `not_saved`, the reason why, are left out.
    """
    if not isabstract(base):
        return {base.__name__: base}
    for registry in (KERNELS, STEPS, ASSIGNERS, SELECTORS):  # whose modules may not be imported yet
        for name in registry:
            registry[name]
    package = base.__module__.partition(".")[0]
    inherited = (cls for cls in _subclasses(base) if cls.__module__.partition(".")[0] == package)
    return {cls.__name__: cls for cls in inherited if not (isabstract(cls) or hasattr(cls, "not_saved"))}


def _subclasses(base: type) -> list[type]:
    subclasses: list[type] = base.__subclasses__()
    return [each for cls in subclasses for each in (cls, *_subclasses(cls))]


def write_object(value: Any, tensors: Tensors) -> dict[str, Json]:
    """Return class and parameters of an estimator, kernel, assigner or selector as JSON."""
    node, name = {}, type(value).__name__
    require(known_class(name) is type(value), f"{name} cannot be saved; only classes of coview and METHODS can be")
    for parameter in _saved_parameters(type(value)):
        with inside(parameter):
            node[parameter] = write_value(getattr(value, parameter), tensors)
    return {"class": name, "parameters": node}


def read_object(node: Json, tensors: Tensors) -> Any:
    """Return an object of this class with these parameters; an estimator is not fitted."""
    given, values = entries(node, ["class", "parameters"]), {}
    cls: Any = known_class(given["class"]) if isinstance(given["class"], str) else None
    require(cls, f"class: expected a class of coview or METHODS, got {str(given['class'])[:50]}")
    with inside("parameters"):
        names = _saved_parameters(cls)
        required = [name for name in names if name not in _ADDED]
        for name, inner in entries(given["parameters"], required, names).items():
            with inside(name):
                values[name] = read_value(inner, tensors)
    try:
        return cls(**values)
    except InputError as error:  # the class checks its own parameters
        raise StateError(str(error)) from None


def _saved_parameters(cls: Any) -> list[str]:
    """Return the names of the parameters of a class that are saved."""
    names = [field.name for field in fields(cls)] if is_dataclass(cls) else cls._get_param_names()
    return [name for name in names if name not in NOT_SAVED]


def check_parameters(model: Any) -> None:
    """Check the parameters of a fitted model that `predict` reads."""
    given = model.get_params(deep=False)
    if "n_clusters" in given and "n_clusters_" not in vars(model):  # otherwise these are the numbers to select from
        check_integer("n_clusters", given["n_clusters"], 1)
    if "batch_size" in given and not (isinstance(given["batch_size"], str) and given["batch_size"] == "auto"):
        check_integer("batch_size", given["batch_size"], 1)
    check_n_jobs(given.get("n_jobs"))
    # The type only: the representation of nested estimators takes twice as long for each level.
    views = given.get("views")
    require(_is_layout(views), f"views: expected a layout of columns, got {kind_of(views)}")


def _is_layout(views: Any) -> bool:
    """Whether `as_views` accepts it, or refuses it with a message."""
    if not isinstance(views, (dict, list, tuple)):
        return views is None or isinstance(views, np.ndarray)
    return all(
        isinstance(columns, (slice, range, str, Integral, np.ndarray))
        or (isinstance(columns, (list, tuple)) and all(np.isscalar(column) for column in columns))
        for columns in (views.values() if isinstance(views, dict) else views)
    )


def write_value(value: Any, tensors: Tensors) -> Json:
    """Return a parameter as JSON, with its arrays among the tensors."""
    if _is_json_value(value):
        return value
    if type(value) is list:
        return _write_all(value, tensors)
    for name, tag in _TAGS.items():
        if tag.accepts(value):
            return {name: tag.write(value, tensors)}
    advice = "give a number below 2**128, a string, list, dictionary or array, with set_params"
    if isinstance(value, (Kernel, Assigner, Selector)):
        advice = "only the kernels, assigners and selectors of coview can be, because a file holds no code"
    elif hasattr(value, "get_params"):
        advice = "only estimators of coview can be, because a file holds no code"
    raise StateError(f"{type(value).__name__} cannot be saved; {advice}")


def read_value(node: Json, tensors: Tensors) -> Any:
    """Return the parameter that was written as this node."""
    if type(node) is list:
        return _read_all(node, tensors)
    if not isinstance(node, dict):
        require(_is_json_value(node), "expected a number below 2**128")
        return node
    require(len(node) == 1 and next(iter(node)) in _TAGS, f"expected one of the tags {', '.join(_TAGS)}")
    ((name, inner),) = node.items()
    try:
        return _TAGS[name].read(inner, tensors)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise StateError(f"expected {name}: {error}") from None


@dataclass(frozen=True)
class _Tag:
    """Values with a tag: which these are, and how they are written and read."""

    accepts: Callable[[Any], bool]
    write: Callable[[Any, Tensors], Json]
    read: Callable[[Json, Tensors], Any]


def _is_json_value(value: Any) -> bool:
    if type(value) in (int, float):
        return abs(value) < _INTEGER_LIMIT if type(value) is int else math.isfinite(value)
    return value is None or type(value) in (bool, str)


def _write_all(values: Any, tensors: Tensors) -> list[Json]:
    return [write_value(value, tensors) for value in values]


def _read_all(nodes: Json, tensors: Tensors) -> list[Any]:
    require(isinstance(nodes, list), f"expected a list, got {type(nodes).__name__}")
    return [read_value(node, tensors) for node in nodes]


def _is_dict(value: Any) -> bool:
    return type(value) is dict and all(type(key) in (str, int) for key in value)


def _read_dict(node: Json, tensors: Tensors) -> dict[Any, Any]:
    read = {key: read_value(inner, tensors) for key, inner in node}
    require(_is_dict(read) and len(read) == len(node), "expected each key once, a string or an integer")
    return read


def _bounds(value: slice | range) -> list[Any]:
    return [value.start, value.stop, value.step]


def _is_slice(value: Any) -> bool:
    return type(value) is slice and all(bound is None or type(bound) is int for bound in _bounds(value))


def _read_slice(node: Json, tensors: Tensors) -> slice:
    start, stop, step = node
    read = slice(start, stop, step)
    valid = _is_slice(read) and step != 0 and all(map(_is_json_value, node))
    require(valid, "expected integers, and a step other than 0")
    return read


def _read_scalar(node: Json, tensors: Tensors) -> Any:
    name, inner = node
    require(name in _NUMPY_SCALARS, f"expected one of {', '.join(_NUMPY_SCALARS)}")
    value, kind = read_value(inner, tensors), np.dtype(name)
    require(type(value) is type(kind.type(0).item()), f"expected a scalar of type {kind}")
    with np.errstate(over="ignore"):
        return kind.type(value)


def _is_array(value: Any) -> bool:
    if type(value) is not np.ndarray:
        return False
    strings = value.dtype.kind == "U" and value.ndim == 1 and value.dtype.itemsize > 0
    objects = value.dtype.kind == "O" and value.ndim == 1 and all(map(_is_json_value, value.tolist()))
    return strings or objects or value.dtype.name in DTYPES


def _write_array(value: Array, tensors: Tensors) -> Json:
    if value.dtype.kind == "O":
        return {"objects": value.tolist()}
    if value.dtype.kind == "U":  # as code points, a row for each string
        native = value.astype(value.dtype.newbyteorder("="), order="C")
        points = native.view(np.uint32).reshape(len(value), value.dtype.itemsize // 4)
        return {"strings": tensors.write(points)}
    return {"numbers": tensors.write(value)}


def _read_array(node: Json, tensors: Tensors) -> Array:
    ((form, inner),) = node.items()
    require(form in ("objects", "strings", "numbers"), "expected objects, strings or numbers")
    if form == "objects":
        require(isinstance(inner, list) and all(map(_is_json_value, inner)), "expected plain values")
        objects = np.empty(len(inner), dtype=object)
        objects[:] = inner
        return objects
    numbers = tensors.read(inner)
    require(numbers.dtype.name in DTYPES, f"expected numbers, got {numbers.dtype}")
    if form == "numbers":
        return numbers
    points = numbers.dtype == np.uint32 and numbers.ndim == 2 and numbers.shape[1] > 0
    require(points and numbers.max(initial=0) <= 0x10FFFF, "expected code points, a row for each string")
    return np.ascontiguousarray(numbers).view(f"U{numbers.shape[1]}").reshape(len(numbers))


def _is_generator(value: Any) -> bool:
    return type(value) is np.random.Generator and type(value.bit_generator) is np.random.PCG64


def _read_generator(node: Json, tensors: Tensors) -> np.random.Generator:
    bits = np.random.PCG64(0)
    bits.state = read_value(node, tensors)
    return np.random.Generator(bits)


def _is_random_state(value: Any) -> bool:
    return type(value) is np.random.RandomState and value.get_state(legacy=False)["bit_generator"] == "MT19937"


def _read_random_state(node: Json, tensors: Tensors) -> np.random.RandomState:
    read = read_value(node, tensors)
    key, place = read["state"]["key"], read["state"]["pos"]
    # NumPy would read a place beyond the key from memory that does not belong to the generator.
    require(type(place) is int and 0 <= place <= 624, "expected a place within the key")
    require(_is_array(key) and key.dtype == np.uint32 and key.shape == (624,), "expected a key of 624 numbers")
    state = np.random.RandomState(0)
    state.set_state(read)
    return state


_TAGS: Mapping[str, _Tag] = {
    "float": _Tag(lambda v: type(v) is float, lambda v, _: repr(v), lambda node, _: _NOT_FINITE[node]),
    "tuple": _Tag(lambda v: type(v) is tuple, _write_all, lambda node, tensors: tuple(_read_all(node, tensors))),
    "dict": _Tag(_is_dict, lambda v, tensors: [[key, write_value(v[key], tensors)] for key in v], _read_dict),
    "slice": _Tag(_is_slice, lambda v, _: _bounds(v), _read_slice),
    "range": _Tag(
        lambda v: type(v) is range,
        lambda v, _: _bounds(v),
        lambda node, tensors: range(*_bounds(_read_slice(node, tensors))),
    ),
    "scalar": _Tag(
        lambda v: isinstance(v, np.generic) and v.dtype.name in _NUMPY_SCALARS,
        lambda v, tensors: [v.dtype.name, write_value(v.item(), tensors)],
        _read_scalar,
    ),
    "array": _Tag(_is_array, _write_array, _read_array),
    "type": _Tag(
        lambda v: isinstance(v, type) and v in FLOATS.values(),
        lambda v, _: v.__name__,
        lambda node, _: FLOATS[node],
    ),
    "dtype": _Tag(
        lambda v: isinstance(v, np.dtype) and v.name in FLOATS,
        lambda v, _: v.name,
        lambda node, _: np.dtype(FLOATS[node]),
    ),
    "value": _Tag(lambda v: is_dataclass(v) and known_class(type(v).__name__) is type(v), write_object, read_object),
    "generator": _Tag(_is_generator, lambda v, tensors: write_value(v.bit_generator.state, tensors), _read_generator),
    "random_state": _Tag(
        _is_random_state, lambda v, tensors: write_value(v.get_state(legacy=False), tensors), _read_random_state
    ),
    "estimator": _Tag(
        lambda v: hasattr(v, "get_params") and known_class(type(v).__name__) is type(v), write_object, read_object
    ),
}
