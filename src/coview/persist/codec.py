"""The codec of saved models: values to JSON and arrays, and back.

Plain values stand in a file as they are, others under a tag that names their kind. Classes of this library are named
without their module. Only registered methods and wrappers, dataclasses beside them, and dataclasses in the packages of
this library that hold what is learnt are found: a file holds no code.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.base.records import Json, StateError, entries, inside, require
from coview.data.view import Array
from coview.errors import InputError
from coview.persist.file import DTYPES, Tensors
from coview.registry import ASSIGNERS, KERNELS, METHODS, SELECTORS, STEPS, WRAPPERS

NOT_SAVED = ("progress", "verbose")  # parameters: a function, and what a fit prints
_INTEGER_LIMIT = 2**128
_LONGEST_RANGE = 2**20  # of numbers, which take memory where a range is listed
_DTYPES: Mapping[str, Any] = {"float32": np.float32, "float64": np.float64}
_LEARNT = ("compose", "core", "data", "evaluate", "kernels", "methods", "model", "preprocess")
_PACKAGES = tuple(f"{__name__.partition('.')[0]}.{package}." for package in _LEARNT)  # of what is learnt
_NOT_FINITE = {repr(value): value for value in (math.inf, -math.inf, math.nan)}


def known_estimator(name: Any) -> Any:
    """Return the method or wrapper of this name; None for any other name."""
    for registry in (METHODS, WRAPPERS):
        for key, entry in registry.entries.items():
            if entry.class_name == name:
                return registry[key]
    return None


def _known_value(name: Any) -> Any:
    """Return the dataclass of this name in the packages of what is learnt, or beside a registered estimator."""
    home, _, name = str(name).rpartition(":")
    if home:
        known = home in {*METHODS.homes.values(), *WRAPPERS.homes.values()}
        return _dataclass_in(home, name) if known else None
    for registry in (KERNELS, STEPS, ASSIGNERS, SELECTORS):  # whose modules may not be imported yet
        for key in registry:
            registry[key]
    try:
        return _own_class(name)
    except LookupError:
        return None


@cache  # but not of errors: the module may be imported later
def _own_class(name: str) -> Any:
    for module in list(sys.modules):
        if module.startswith(_PACKAGES) and (found := _dataclass_in(module, name)):
            return found
    raise LookupError(name)


def _dataclass_in(module: str, name: str) -> Any:
    cls = vars(sys.modules[module]).get(name) if module in sys.modules else None
    return cls if isinstance(cls, type) and is_dataclass(cls) and cls.__module__ == module else None


def _name_of(cls: type) -> str:
    """Return the name of a class of this library; of another one with its module, because names may be the same."""
    return cls.__name__ if cls.__module__.startswith(_PACKAGES) else f"{cls.__module__}:{cls.__name__}"


def write_value(value: Any, tensors: Tensors) -> Json:
    """Return a value as JSON, with its arrays among the tensors."""
    if isinstance(value, np.generic):
        value = value.item()
    if _is_plain(value):
        return value
    if type(value) is list:
        return [write_value(item, tensors) for item in value]
    for tag, (accepts, write, _) in _TAGS.items():
        if accepts(value):
            return {tag: write(value, tensors)}
    advice = getattr(value, "not_saved", "a file holds no code; give numbers, strings, lists, dictionaries or arrays")
    if hasattr(value, "get_params"):
        advice = "only estimators of coview can be saved, because a file holds no code"
    raise StateError(f"{type(value).__name__} cannot be saved; {advice}")


def read_value(node: Json, tensors: Tensors) -> Any:
    """Return the value that was written as this node."""
    if type(node) is list:
        return [read_value(item, tensors) for item in node]
    if not isinstance(node, dict):
        require(_is_plain(node), "expected a number below 2**128")
        return node
    require(len(node) == 1 and next(iter(node)) in _TAGS, f"expected one of the tags {', '.join(_TAGS)}")
    ((tag, inner),) = node.items()
    try:
        return _TAGS[tag][2](inner, tensors)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError, InputError) as error:
        raise StateError(f"expected {tag}: {error}") from None


def write_estimator(value: Any, tensors: Tensors) -> dict[str, Json]:
    """Return class and parameters of an estimator as JSON."""
    name, node = type(value).__name__, {}
    require(
        known_estimator(name) is type(value),
        f"{name} cannot be saved; only classes of coview and registered ones can be",
    )
    for parameter in _saved_parameters(type(value)):
        with inside(parameter):
            given = getattr(value, parameter)
            random = isinstance(given, (np.random.Generator, np.random.RandomState))
            node[parameter] = None if random else write_value(given, tensors)
    return {"class": name, "parameters": node}


def read_estimator(node: Json, tensors: Tensors) -> Any:
    """Return an estimator of this class with these parameters; it is not fitted."""
    given, values = entries(node, ["class", "parameters"]), {}
    cls: Any = known_estimator(given["class"]) if isinstance(given["class"], str) else None
    require(cls, f"class: expected a class of coview or a registered one, got {str(given['class'])[:50]}")
    with inside("parameters"):
        for name, inner in entries(given["parameters"], _saved_parameters(cls)).items():
            with inside(name):
                values[name] = read_value(inner, tensors)
    return cls(**values)


def _saved_parameters(cls: Any) -> list[str]:
    return [name for name in cls._get_param_names() if name not in NOT_SAVED]


def _write_object(value: Any, tensors: Tensors) -> Json:
    node, name = {}, _name_of(type(value))
    known = _known_value(name)
    require(known is type(value) and not hasattr(value, "not_saved"), _refusal(value))
    for field in fields(value):
        with inside(field.name):
            node[field.name] = write_value(getattr(value, field.name), tensors)
    return {"class": name, "fields": node}


def _refusal(value: Any) -> str:
    advice = getattr(value, "not_saved", "only the classes of coview can be, because a file holds no code")
    return f"{type(value).__name__} cannot be saved; {advice}"


def _read_object(node: Json, tensors: Tensors) -> Any:
    given, values = entries(node, ["class", "fields"]), {}
    cls: Any = _known_value(given["class"]) if isinstance(given["class"], str) else None
    if cls is None or hasattr(cls, "not_saved"):
        raise StateError(f"class: expected a class of coview, got {str(given['class'])[:50]}")
    for name, inner in entries(given["fields"], [field.name for field in fields(cls)]).items():
        with inside(name):
            values[name] = read_value(inner, tensors)
    return cls(**values)


def _is_plain(value: Any) -> bool:
    if type(value) in (int, float):
        return abs(value) < _INTEGER_LIMIT if type(value) is int else math.isfinite(value)
    return value is None or type(value) in (bool, str)


def _is_dict(value: Any) -> bool:
    return isinstance(value, Mapping) and all(type(key) in (str, int) for key in value)


def _write_dict(value: Mapping[Any, Any], tensors: Tensors) -> Json:
    node = []
    for key, item in value.items():
        with inside(str(key)):
            node.append([key, write_value(item, tensors)])
    return node


def _read_dict(node: Json, tensors: Tensors) -> dict[Any, Any]:
    read = {key: read_value(inner, tensors) for key, inner in node}
    require(_is_dict(read) and len(read) == len(node), "expected each key once, a string or an integer")
    return read


def _write_sequence(value: tuple[Any, ...], tensors: Tensors) -> Json:
    node = []
    for i, item in enumerate(value):
        with inside(f"[{i}]"):
            node.append(write_value(item, tensors))
    return node


def _bounds(value: slice | range) -> list[Any]:
    return [value.start, value.stop, value.step]


def _is_slice(value: Any) -> bool:
    return type(value) is slice and all(bound is None or type(bound) is int for bound in _bounds(value))


def _is_range(value: Any) -> bool:
    return type(value) is range and not value[_LONGEST_RANGE:]


def _read_range(node: Json, tensors: Tensors) -> range:
    read = range(*node)
    require(_is_range(read), f"expected at most {_LONGEST_RANGE} numbers")
    return read


def _is_numbers(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.name in DTYPES


def _is_strings(value: Any) -> bool:
    return type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind == "U" and value.dtype.itemsize > 0


def _write_strings(value: Array, tensors: Tensors) -> Json:
    """Add the code points, a row for each string: as JSON, strings could take much more memory than the file."""
    native = value.astype(value.dtype.newbyteorder("="), order="C")
    return tensors.write(native.view(np.uint32).reshape(len(value), value.dtype.itemsize // 4))


def _read_strings(node: Json, tensors: Tensors) -> Array:
    points = tensors.read(node)
    if tensors.skipped:
        return points
    known = (
        points.dtype == np.uint32 and points.ndim == 2 and points.shape[1] and points.max(initial=0) <= sys.maxunicode
    )
    require(known, "expected code points, a row for each string")
    return np.ascontiguousarray(points).view(f"U{points.shape[1]}")[:, 0]


def _is_objects(value: Any) -> bool:
    return type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind == "O" and all(map(_is_plain, value))


def _read_objects(node: Json, tensors: Tensors) -> Array:
    require(isinstance(node, list) and all(map(_is_plain, node)), "expected a list of plain values")
    return np.array([*node, None], dtype=object)[:-1]


def _write_sparse(value: Any, tensors: Tensors) -> Json:
    return [list(map(int, value.shape)), *(tensors.write(part) for part in (value.data, value.indices, value.indptr))]


def _read_sparse(node: Json, tensors: Tensors) -> Any:
    shape, data, indices, indptr = node
    parts = (tensors.read(data), tensors.read(indices), tensors.read(indptr))
    if tensors.skipped:
        return None
    require(len(parts[0]) == len(parts[1]), "expected one index for each value")
    matrix = sp.csr_array(parts, shape=tuple(shape))
    matrix.check_format(full_check=True)
    return matrix


def _is_dtype(value: Any) -> bool:
    return (isinstance(value, type) and issubclass(value, np.floating)) or isinstance(value, np.dtype)


Tag = tuple[Callable[[Any], bool], Callable[[Any, Tensors], Json], Callable[[Json, Tensors], Any]]
_TAGS: Mapping[str, Tag] = {
    "numbers": (_is_numbers, lambda v, tensors: tensors.write(v), lambda node, tensors: tensors.read(node)),
    "sparse": (lambda v: isinstance(v, sp.csr_array), _write_sparse, _read_sparse),
    "dict": (_is_dict, _write_dict, _read_dict),
    "tuple": (
        lambda v: type(v) is tuple,
        _write_sequence,
        lambda node, tensors: tuple(read_value(item, tensors) for item in node),
    ),
    "float": (lambda v: type(v) is float, lambda v, _: repr(v), lambda node, _: _NOT_FINITE[node]),
    "strings": (_is_strings, _write_strings, _read_strings),
    "objects": (_is_objects, lambda v, _: v.tolist(), _read_objects),
    "slice": (_is_slice, lambda v, _: _bounds(v), lambda node, _: slice(*node)),
    "range": (_is_range, lambda v, _: _bounds(v), _read_range),
    "dtype": (_is_dtype, lambda v, _: np.dtype(v).name, lambda node, _: _DTYPES[node]),
    "estimator": (
        lambda v: hasattr(v, "get_params") and known_estimator(type(v).__name__) is type(v),
        write_estimator,
        read_estimator,
    ),
    "value": (lambda v: is_dataclass(v) and not isinstance(v, type), _write_object, _read_object),
}
