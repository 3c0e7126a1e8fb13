"""Settings: the values that a caller gives to an estimator, from a closed list of types.

Everything that is not on the list is refused when a model is saved, with what can be done about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coview.compose import Concat, FixedSize, PerView, Preprocessed
from coview.core.assign import Assigner, Codebook, Directions
from coview.core.select import Entropy, KMeansRows, Selector, Stratified, Uniform
from coview.errors import InputError
from coview.kernels import RBF, Cosine, Kernel, Linear, NeighborGraph, NormalizedPolynomial, Polynomial, Precomputed
from coview.methods.kpca import KPCA
from coview.methods.ksc import KSC
from coview.methods.mvksc import MvKSC
from coview.methods.mvscbp import MVSCBP
from coview.methods.opmc import OPMC
from coview.methods.tmvkscr import TMvKSCR
from coview.persist.kinds import FLOATS, INTEGERS, Json, Kind, MisfitError, Sizes, Tensors, fields_of, part, require
from coview.tune import Tuned
from coview.views import Array

KERNELS: tuple[type[Kernel], ...] = (RBF, Linear, Polynomial, NormalizedPolynomial, Cosine, NeighborGraph, Precomputed)
ASSIGNERS: tuple[type[Assigner], ...] = (Directions, Codebook)
SELECTORS: tuple[type[Selector], ...] = (Uniform, Stratified, Entropy, KMeansRows)

# Values that are nothing but their fields, and estimators that can label new samples: a file may name no other class.
VALUES: Mapping[str, type] = {cls.__name__: cls for cls in (*KERNELS, *ASSIGNERS, *SELECTORS)}
ESTIMATORS: Mapping[str, Any] = {
    cls.__name__: cls
    for cls in (TMvKSCR, KSC, KPCA, MvKSC, OPMC, MVSCBP, FixedSize, Preprocessed, Tuned, Concat, PerView)
}

_SCALARS = ("bool", *INTEGERS, *FLOATS)
_ARRAYS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_LARGEST = 2**128
_NOT_FINITE = {repr(value): value for value in (math.inf, -math.inf, math.nan)}


class Setting(Kind):
    """Any value on the list, as it was given. A file has plain values as they are, and others under a tag."""

    def write(self, value: Any, tensors: Tensors, sizes: Sizes | None = None) -> Json:
        if _is_plain(value):
            return value
        if type(value) is list:
            return _write_all(value, tensors)
        for name, tag in _TAGS.items():
            if tag.accepts(value):
                return {name: tag.write(value, tensors)}
        raise MisfitError(f"is a {type(value).__name__}, which cannot be saved; {_advice(value)}")

    def read(self, node: Json, tensors: Tensors, sizes: Sizes | None = None) -> Any:
        if type(node) is list:
            return _read_all(node, tensors)
        if isinstance(node, dict):
            require(len(node) == 1 and next(iter(node)) in _TAGS, "is no setting")
            ((name, inner),) = node.items()
            return _TAGS[name].read(inner, tensors)
        require(_is_plain(node), "is too large a number")
        return node


SETTING = Setting()


def write_parameters(estimator: Any, tensors: Tensors) -> Json:
    """All parameters of an estimator but `progress`, a function."""
    node = {}
    for name, value in estimator.get_params(deep=False).items():
        if name != "progress":
            with part(name):
                node[name] = SETTING.write(value, tensors)
    return node


def read_parameters(name: Json, node: Json, tensors: Tensors) -> Any:
    """An estimator with these parameters, not fitted."""
    require(isinstance(name, str) and name in ESTIMATORS, "is of a class that is not known")
    cls, values = ESTIMATORS[name], {}
    for parameter, inner in fields_of(node, [p for p in cls._get_param_names() if p != "progress"]).items():
        with part(parameter):
            values[parameter] = SETTING.read(inner, tensors)
    return cls(**values)


@dataclass(frozen=True)
class _Tag:
    """Which values these are, and how they are written and read."""

    accepts: Callable[[Any], bool]
    write: Callable[[Any, Tensors], Json]
    read: Callable[[Json, Tensors], Any]


def _is_plain(value: Any) -> bool:
    if type(value) in (int, float):
        return abs(value) < _LARGEST if type(value) is int else math.isfinite(value)
    return value is None or type(value) in (bool, str)


def _write_all(values: Any, tensors: Tensors) -> list[Json]:
    return [SETTING.write(value, tensors) for value in values]


def _read_all(nodes: Json, tensors: Tensors) -> list[Any]:
    require(isinstance(nodes, list), "is not a list")
    return [SETTING.read(node, tensors) for node in nodes]


def _read_not_finite(node: Json, tensors: Tensors) -> float:
    require(isinstance(node, str) and node in _NOT_FINITE, "is not inf, -inf or nan")
    return _NOT_FINITE[node]


def _is_dict(value: Any) -> bool:
    return type(value) is dict and all(type(key) in (str, int) for key in value)


def _read_dict(node: Json, tensors: Tensors) -> dict[Any, Any]:
    pairs = _read_all(node, tensors)
    require(all(type(pair) is list and len(pair) == 2 for pair in pairs), "is not a list of pairs")
    require(all(type(key) in (str, int) for key, _ in pairs), "has keys that are not names")
    require(len({key for key, _ in pairs}) == len(pairs), "has two entries of one name")
    return dict(pairs)


def _is_whole_slice(value: Any) -> bool:
    return type(value) is slice and all(b is None or type(b) is int for b in (value.start, value.stop, value.step))


def _write_bounds(value: slice | range, tensors: Tensors) -> Json:
    return [value.start, value.stop, value.step]


def _read_bounds(node: Json, tensors: Tensors) -> list[Any]:
    bounds = _read_all(node, tensors)
    require(len(bounds) == 3 and all(b is None or type(b) is int for b in bounds), "has no start, stop and step")
    require(bounds[2] != 0, "has step 0")
    return bounds


def _read_range(node: Json, tensors: Tensors) -> range:
    bounds = _read_bounds(node, tensors)
    require(None not in bounds, "has no start, stop and step")
    return range(*bounds)


def _read_scalar(node: Json, tensors: Tensors) -> Any:
    require(isinstance(node, list) and len(node) == 2 and node[0] in _SCALARS, "is no scalar")
    value, kind = SETTING.read(node[1], tensors), np.dtype(node[0])
    require(type(value) is {"b": bool, "i": int, "f": float}[kind.kind], "is no scalar")
    if kind.kind == "i":
        require(abs(value) < 2 ** (8 * kind.itemsize - 1), "is too large a number")
    with np.errstate(over="ignore"):
        return kind.type(value)


def _is_array(value: Any) -> bool:
    if type(value) is not np.ndarray:
        return False
    text = value.dtype.kind == "U" and value.ndim == 1 and value.dtype.itemsize > 0
    objects = value.dtype.kind == "O" and value.ndim == 1 and all(map(_is_plain, value.tolist()))
    return text or objects or value.dtype.name in _ARRAYS


def _write_array(value: Array, tensors: Tensors) -> Json:
    if value.dtype.kind == "O":
        return {"objects": value.tolist()}
    if value.dtype.kind == "U":  # as the numbers of the characters, a row for each text
        native = value.astype(value.dtype.newbyteorder("="), order="C")
        codes = native.view(np.uint32).reshape(len(value), value.dtype.itemsize // 4)
        return {"texts": tensors.write(codes)}
    return {"numbers": tensors.write(value)}


def _read_array(node: Json, tensors: Tensors) -> Array:
    require(isinstance(node, dict) and len(node) == 1, "is no array")
    ((form, inner),) = node.items()
    if form == "objects":
        require(isinstance(inner, list) and all(map(_is_plain, inner)), "is no array of plain values")
        objects = np.empty(len(inner), dtype=object)
        objects[:] = inner
        return objects
    require(form in ("texts", "numbers"), "is no array")
    numbers = tensors.read(inner)
    if form == "numbers":
        require(numbers.dtype.name in _ARRAYS, f"holds {numbers.dtype}")
        return numbers
    require(numbers.dtype == np.uint32 and numbers.ndim == 2 and numbers.shape[1] > 0, "is no array of text")
    require(numbers.max(initial=0) <= 0x10FFFF, "holds what is no character")
    texts: Array = np.ascontiguousarray(numbers).view(f"U{numbers.shape[1]}").reshape(len(numbers))
    return texts


def _is_float_type(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, (np.float32, np.float64))


def _read_dtype(node: Json, tensors: Tensors) -> np.dtype[Any]:
    require(node in FLOATS, "is no type of numbers")
    return np.dtype(node)


def _write_value(value: Any, tensors: Tensors) -> Json:
    node = {"class": type(value).__name__}
    for field in fields(value):
        with part(field.name):
            node[field.name] = SETTING.write(getattr(value, field.name), tensors)
    return node


def _read_value(node: Json, tensors: Tensors) -> Any:
    name = node.get("class") if isinstance(node, dict) else None
    require(isinstance(name, str) and name in VALUES, "is no kernel, assigner or selector")
    cls = VALUES[str(name)]
    given = fields_of(node, ["class", *(field.name for field in fields(cls))])
    del given["class"]
    try:
        return cls(**{key: SETTING.read(inner, tensors) for key, inner in given.items()})
    except InputError as error:  # the value looks at its own numbers
        raise MisfitError(f"is no {name}: {error}") from None


def _is_generator(value: Any) -> bool:
    return type(value) is np.random.Generator and type(value.bit_generator) is np.random.PCG64


def _write_generator(value: np.random.Generator, tensors: Tensors) -> Json:
    state: Any = value.bit_generator.state
    return [state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"]]


def _read_generator(node: Json, tensors: Tensors) -> np.random.Generator:
    numbers = _read_all(node, tensors)
    require(_all_below(numbers, (_LARGEST, _LARGEST, 2, 2**32)), "is no state of a generator")
    state, increment, has_uint32, uinteger = numbers
    bits = np.random.PCG64(0)
    words: Any = {"state": state, "inc": increment}
    bits.state = {"bit_generator": "PCG64", "state": words, "has_uint32": has_uint32, "uinteger": uinteger}
    return np.random.Generator(bits)


def _is_random_state(value: Any) -> bool:
    return type(value) is np.random.RandomState and value.get_state(legacy=False)["bit_generator"] == "MT19937"


def _write_random_state(value: np.random.RandomState, tensors: Tensors) -> Json:
    state: Any = value.get_state(legacy=False)
    place = [int(state["state"]["pos"]), int(state["has_gauss"])]
    return {"key": tensors.write(state["state"]["key"]), "place": place, "gauss": float(state["gauss"])}


def _read_random_state(node: Json, tensors: Tensors) -> np.random.RandomState:
    given = fields_of(node, ["key", "place", "gauss"])
    key, place, gauss = tensors.read(given["key"]), given["place"], given["gauss"]
    require(key.dtype == np.uint32 and key.shape == (624,), "is no state of a generator")
    # A place beyond the key would be read from memory that is not the generator's.
    require(isinstance(place, list) and _all_below(place, (625, 2)), "is no state of a generator")
    require(type(gauss) is float and math.isfinite(gauss), "is no state of a generator")
    state = np.random.RandomState(0)
    state.set_state(("MT19937", key, place[0], place[1], gauss))
    return state


def _all_below(numbers: list[Any], limits: tuple[int, ...]) -> bool:
    return len(numbers) == len(limits) and all(
        type(number) is int and 0 <= number < limit for number, limit in zip(numbers, limits, strict=True)
    )


def _write_estimator(value: Any, tensors: Tensors) -> Json:
    return {"class": type(value).__name__, "parameters": write_parameters(value, tensors)}


def _read_estimator(node: Json, tensors: Tensors) -> Any:
    given = fields_of(node, ["class", "parameters"])
    return read_parameters(given["class"], given["parameters"], tensors)


def _advice(value: Any) -> str:
    if isinstance(value, (Kernel, Assigner, Selector)):
        return "only the kernels, assigners and selectors of coview can be, as a file holds no code"
    if hasattr(value, "get_params"):
        return "only estimators of coview that predict can be, as a file holds no code"
    return "give it as a plain number, text, list, dictionary or array, with set_params"


_TAGS: Mapping[str, _Tag] = {
    "float": _Tag(lambda v: type(v) is float, lambda v, tensors: repr(v), _read_not_finite),
    "tuple": _Tag(lambda v: type(v) is tuple, _write_all, lambda node, tensors: tuple(_read_all(node, tensors))),
    "dict": _Tag(_is_dict, lambda v, tensors: [_write_all(pair, tensors) for pair in v.items()], _read_dict),
    "slice": _Tag(_is_whole_slice, _write_bounds, lambda node, tensors: slice(*_read_bounds(node, tensors))),
    "range": _Tag(lambda v: type(v) is range, _write_bounds, _read_range),
    "scalar": _Tag(
        lambda v: isinstance(v, np.generic) and v.dtype.name in _SCALARS,
        lambda v, tensors: [v.dtype.name, SETTING.write(v.item(), tensors)],
        _read_scalar,
    ),
    "array": _Tag(_is_array, _write_array, _read_array),
    "type": _Tag(
        _is_float_type, lambda v, tensors: np.dtype(v).name, lambda node, tensors: _read_dtype(node, tensors).type
    ),
    "dtype": _Tag(lambda v: isinstance(v, np.dtype) and v.name in FLOATS, lambda v, tensors: v.name, _read_dtype),
    "value": _Tag(lambda v: type(v) in VALUES.values(), _write_value, _read_value),
    "generator": _Tag(_is_generator, _write_generator, _read_generator),
    "random_state": _Tag(_is_random_state, _write_random_state, _read_random_state),
    "estimator": _Tag(lambda v: type(v) in ESTIMATORS.values(), _write_estimator, _read_estimator),
}
