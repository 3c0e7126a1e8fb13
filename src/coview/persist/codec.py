"""The codec of saved state: values to JSON and arrays, and back, by the type hints that declare them.

One function converts in both directions, so the same checks hold when a model is saved and when it is loaded. The
hints are those of `coview.state`, and str, bool, int, float, Any (a plain value), Literal, `X | None`, list[X],
tuple[X, ...], dict[str, X], dataclasses, classes with annotated attributes, and abstract classes, which stand for their
concrete subclasses in the same package. A file can name no other classes, and no class by its module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from inspect import isabstract
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp

from coview.errors import InputError
from coview.persist.file import Json, Tensors, entries
from coview.persist.parameters import (
    FLOATS,
    NOT_SAVED,
    check_parameters,
    concrete_classes,
    read_object,
    read_value,
    write_object,
    write_value,
)
from coview.state import (
    BY_VIEW,
    CACHE,
    CHAIN,
    FITTED,
    OPTIONAL,
    OWN_SIZES,
    PARAMETER,
    SOME_VIEWS,
    NumberArray,
    Range,
    Size,
    Sizes,
    SparseMatrix,
    StateError,
    StringArray,
    inside,
    require,
)

Convert: TypeAlias = Callable[[Any, Tensors, Sizes], Any]
Notes: TypeAlias = tuple[Any, ...]  # of Annotated

_SCALARS: Mapping[Any, tuple[Any, str]] = {
    str: (str, "a string"),
    bool: (bool, "true or false"),
    int: (Integral, "an integer"),
    float: (Real, "a finite number"),
}
_LARGEST: Mapping[Any, float] = {int: 2**53, float: sys.float_info.max}


def record_to_json(record: Any) -> Json:
    """Return a dataclass of plain values as JSON."""
    cls: Any = type(record)
    return converter(cls)(record, Tensors(), Sizes({}))


def record_from_json(cls: Any, node: Json, name: str) -> Any:
    """Return the dataclass that was written as this JSON, or raise an InputError about the record of this name."""
    try:
        return converter(cls)(node, Tensors({}), Sizes({}))
    except StateError as error:
        raise InputError(str(error.inside(name))) from None


@cache
def converter(hint: Any) -> Convert:
    """Return the function that converts values of a type hint, given the arrays of the file and the known sizes."""
    base, notes = (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())
    origin, options = get_origin(base), get_args(base)
    for note in notes:
        if isinstance(note, NumberArray):
            return partial(_convert_numbers, note)
        if isinstance(note, StringArray):
            return partial(_convert_strings, note)
    if PARAMETER in notes or FITTED in notes:
        return convert_model if FITTED in notes else partial(_convert_parameter, base)
    if origin in (Union, UnionType):
        (inner,) = (converter(option) for option in options if option is not NoneType)
        return lambda item, tensors, sizes: None if item is None else inner(item, tensors, sizes)
    if origin in (list, tuple):
        return partial(_convert_sequence, origin, converter(options[0]), notes)
    if origin is dict:
        return partial(_convert_mapping, converter(options[1]), notes)
    if origin in (Literal, type):
        return partial(_convert_one_of, FLOATS if origin is type else {option: option for option in options})
    if base in _SCALARS:
        return partial(_convert_scalar, base, notes)
    if base is Any:
        return _convert_plain
    require(isinstance(base, type), f"the type hint {hint} does not say what to save; see coview.state")
    return partial(_convert_object, base)


@cache
def state_hints(cls: Any) -> dict[str, Any]:
    """Return the type hints of the state of a class, by name."""
    declared = get_type_hints(cls, include_extras=True)
    hints = {name: hint for name, hint in declared.items() if get_origin(hint) is not ClassVar and not _is_cache(hint)}
    if is_dataclass(cls):
        return {field.name: hints[field.name] for field in fields(cls)}
    if hasattr(cls, "get_params"):  # the others are parameters
        return {name: hint for name, hint in hints.items() if name.startswith("_") or name.endswith("_")}
    return hints


@cache
def _caches(cls: Any) -> tuple[str, ...]:
    """Return the names of attributes with results that are not saved, because they can be computed again."""
    return tuple(name for name, hint in get_type_hints(cls, include_extras=True).items() if _is_cache(hint))


def _is_cache(hint: Any) -> bool:
    return CACHE in getattr(hint, "__metadata__", ())


def convert_model(item: Any, tensors: Tensors, sizes: Sizes | None = None) -> Any:
    """Convert a fitted estimator: its class, its parameters, and what it has learnt."""
    if tensors.reading:
        node = entries(item, ["class", "parameters", "learnt"])
        learnt = node.pop("learnt")
        model = read_object(node, tensors)
    else:
        model, node = item, write_object(item, tensors)
        kind: Any = type(item)
        not_learnt = {*node["parameters"], *NOT_SAVED, *_caches(kind)}
        learnt = {key: value for key, value in vars(item).items() if key not in not_learnt}
    require(hasattr(model, "predict"), "expected an estimator that can predict")
    cls: Any = type(model)
    hints = state_hints(cls)
    required = [key for key, hint in hints.items() if OPTIONAL not in getattr(hint, "__metadata__", ())]
    undeclared = [key for key in learnt if key not in hints] if not tensors.reading else []
    advice = f"{cls.__name__} declares no type hint for it; add one to the class, or delete the attribute"
    require(not undeclared, f"attribute {', '.join(undeclared)}: {advice}")
    learnt = entries(learnt, required, list(hints))
    sizes = Sizes(view_widths(learnt, tensors))
    done = _convert_attributes(hints, learnt, tensors, sizes)
    if tensors.reading:
        vars(model).update(done, **{name: {} for name in _caches(cls)})
    _check_relations(model, sizes)
    return model if tensors.reading else {**node, "learnt": done}


def view_widths(learnt: Mapping[str, Any], tensors: Tensors) -> dict[str, int]:
    """Return the number of features of each view, with which all arrays are compared."""
    read_width = partial(_convert_scalar, int, (Range(least=1),))
    with inside("view_n_features_"):
        widths = _convert_mapping(read_width, (), learnt.get("view_n_features_"), tensors, Sizes({}))
        require(widths, "expected at least one view")
    return widths


def _convert_attributes(
    hints: Mapping[str, Any], given: Mapping[str, Any], tensors: Tensors, sizes: Sizes
) -> dict[str, Any]:
    done = {}
    for key, item in given.items():
        with inside(key):
            done[key] = converter(hints[key])(item, tensors, sizes)
    return done


def _check_relations(value: Any, sizes: Sizes) -> None:
    try:
        if hasattr(value, "get_params"):
            check_parameters(value)
        getattr(value, "_check_state", lambda sizes: None)(sizes)
    except InputError as error:
        raise StateError(str(error)) from None


def _convert_object(cls: Any, item: Any, tensors: Tensors, sizes: Sizes) -> Any:
    """Convert an object by its attributes; that of an abstract class has the name of its own class beside them."""
    known, tag = concrete_classes(cls), ["class"] if isabstract(cls) else []
    name: Any = type(item).__name__
    require(not hasattr(item, "not_saved"), getattr(item, "not_saved", ""))
    if tensors.reading:
        name = item.get("class") if tag and isinstance(item, dict) else cls.__name__
    found: Any = known.get(name) if isinstance(name, str) else None
    require(found and (tensors.reading or type(item) is found), f"expected {' or '.join(known)}, got {str(name)[:50]}")
    hints = state_hints(found)
    source = item if tensors.reading else {"class": name, **vars(item)}  # may hold cached properties beside its state
    given = entries(source, [*tag, *hints], () if tensors.reading else list(source))
    done = _convert_attributes(hints, {key: given[key] for key in hints}, tensors, sizes)
    value: Any = item
    if tensors.reading:
        value = object.__new__(found)
        vars(value).update(done)
    _check_relations(value, sizes)
    return value if tensors.reading else {**dict.fromkeys(tag, name), **done}


def _convert_parameter(cls: Any, item: Any, tensors: Tensors, sizes: Sizes) -> Any:
    value = read_value(item, tensors) if tensors.reading else item
    require(isinstance(value, cls), f"expected {cls.__name__}, got {type(value).__name__}")
    _check_relations(value, sizes)
    return value if tensors.reading else write_value(value, tensors)


def _convert_mapping(inner: Convert, notes: Notes, item: Any, tensors: Tensors, sizes: Sizes) -> dict[str, Any]:
    if not isinstance(item, dict) or not all(isinstance(key, str) for key in item):
        raise _expected("an object", item)
    by_view, done = SOME_VIEWS in notes or BY_VIEW in notes, {}
    if by_view:
        fits = list(item) == list(sizes.views) if BY_VIEW in notes else set(item) <= set(sizes.views)
        require(fits, f"expected the views {', '.join(sizes.views)}, got {', '.join(item)}")
    for name, entry in item.items():
        with inside(name):
            done[name] = inner(entry, tensors, sizes.of_view(sizes.views[name]) if by_view else sizes)
    return done


def _convert_sequence(kind: Any, inner: Convert, notes: Notes, item: Any, tensors: Tensors, sizes: Sizes) -> Any:
    if not isinstance(item, list if tensors.reading else kind):
        raise _expected("a list", item)
    for note in notes:
        if isinstance(note, Size):
            sizes.agree(note.name, len(item))
    widths = list(sizes.views.values())
    require(BY_VIEW not in notes or len(item) == len(widths), f"expected one entry for each of {len(widths)} views")
    done = []
    for i, entry in enumerate(item):
        scope = sizes.of_view(widths[i]) if BY_VIEW in notes else sizes.of_entry() if OWN_SIZES in notes else sizes
        try:  # cheaper than `inside`, for long lists of numbers
            done.append(inner(entry, tensors, scope))
        except StateError as error:
            raise error.inside(f"[{i}]") from None
        if CHAIN in notes:
            sizes = sizes.of_view((done[-1] if tensors.reading else entry).width(sizes.known("features")))
    return kind(done) if tensors.reading else done


def _convert_numbers(note: NumberArray, item: Any, tensors: Tensors, sizes: Sizes) -> Any:
    if not tensors.reading:
        note.check(item, sizes)
        if not sp.issparse(item):
            return tensors.write(item)
        parts = [tensors.write(part) for part in (item.data, item.indices, item.indptr)]
        return {"csr": parts, "shape": [int(side) for side in item.shape]}
    if not (isinstance(note, SparseMatrix) and isinstance(item, dict) and "csr" in item):
        array = tensors.read(item)
        note.check(array, sizes)
        return array
    node = entries(item, ["csr", "shape"])
    require(isinstance(node["csr"], list) and len(node["csr"]) == 3, "expected the three parts of a CSR matrix")
    shape = node["shape"]
    require(isinstance(shape, list) and [type(side) for side in shape] == [int, int], "expected a shape")
    data, indices, indptr = (tensors.read(part) for part in node["csr"])
    note.check_parts(data, indices, indptr, tuple(shape), sizes)
    return sp.csr_array((data, indices, indptr), shape=tuple(shape))


def _convert_strings(note: StringArray, item: Any, tensors: Tensors, sizes: Sizes) -> Any:
    strings = item if tensors.reading else list(item)
    _convert_sequence(list, converter(str), (Size(note.side),), strings, tensors, sizes)
    return np.asarray(strings, dtype=object) if tensors.reading else strings


def _convert_one_of(known: Mapping[str, Any], item: Any, tensors: Tensors, sizes: Sizes) -> Any:
    for name, value in known.items():
        expected = name if tensors.reading else value
        if type(item) is type(expected) and item == expected:
            return value if tensors.reading else name
    raise StateError(f"expected one of {', '.join(known)}, got {str(item)[:50]}")


def _convert_scalar(kind: Any, notes: Notes, item: Any, tensors: Tensors, sizes: Sizes) -> Any:
    accepted, what = _SCALARS[kind]
    if not isinstance(item, kind if tensors.reading else accepted) or isinstance(item, bool) != (kind is bool):
        raise _expected(what, item)
    value = kind(item)
    if kind in _LARGEST and not abs(value) <= _LARGEST[kind]:  # NaN is not, either
        raise StateError(f"expected {what} within ±{_LARGEST[kind]:g}")
    for note in notes:
        if isinstance(note, Range):
            note.check(value)
        elif isinstance(note, Size):
            sizes.agree(note.name, value)
    return value


def _convert_plain(item: Any, tensors: Tensors, sizes: Sizes) -> Any:
    if isinstance(item, dict):
        return _convert_mapping(_convert_plain, (), item, tensors, sizes)
    if isinstance(item, (list, tuple)):
        return list(_convert_sequence(type(item), _convert_plain, (), item, tensors, sizes))
    if isinstance(item, float):
        return _convert_scalar(float, (), item, tensors, sizes)
    if not (item is None or isinstance(item, (str, int))):
        raise _expected("a plain value", item)
    return item


def _expected(what: str, item: Any) -> StateError:
    return StateError(f"expected {what}, got {type(item).__name__}")
