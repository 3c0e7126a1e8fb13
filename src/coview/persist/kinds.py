"""Kinds of values that a saved model is made of: how each is written and read, and what is accepted.

The same checks hold in both directions, so whatever was saved can be loaded, and what is loaded has the types and sizes
that the methods count on. Sizes have names: all arrays with a side called "train" must agree on it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from coview.views import Array, Matrix

Json: TypeAlias = Any  # what JSON can hold: None, bool, int, float, str, list, dict

FLOATS = ("float32", "float64")
INTEGERS = ("int32", "int64")
_OF_ONE_VIEW = {"features", "factor", "far", "clusters of the view"}
_MAY_BE_ZERO = {"far"}


class MisfitError(Exception):
    """A value is not what it has to be; the message says where, and why."""

    def __init__(self, reason: str, where: Sequence[str] = ()) -> None:
        super().__init__(f"{'.'.join(where)} {reason}" if where else reason)
        self.reason = reason
        self.where = where


@contextmanager
def part(name: str) -> Iterator[None]:
    """Say in messages which part of a value was looked at."""
    try:
        yield
    except MisfitError as misfit:
        raise MisfitError(misfit.reason, (name, *misfit.where)) from None


def require(condition: object, reason: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise MisfitError(reason)


def fields_of(node: Json, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Json]:
    """Return a JSON object that has exactly these fields."""
    require(isinstance(node, dict), "is not an object")
    missing, unknown = [key for key in required if key not in node], set(node) - {*required, *optional}
    require(not missing, f"lacks {', '.join(missing)}")
    require(not unknown, f"has the unknown {', '.join(sorted(map(repr, unknown)))[:100]}")
    return dict(node)


class Tensors:
    """The arrays of a file by name; an array that is met twice is stored once, and is one array again when read."""

    def __init__(self, arrays: Mapping[str, Array] | None = None) -> None:
        self.arrays: dict[str, Array] = dict(arrays or {})
        self._unread = set(self.arrays)
        self._nodes: dict[int, Json] = {}
        self._met: list[Array] = []  # kept alive, because a number that identifies an array is given out again

    def write(self, array: Array) -> Json:
        if id(array) not in self._nodes:
            by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
            name = str(len(self.arrays))
            native = array.dtype.newbyteorder("=")
            self.arrays[name] = np.asarray(array.T if by_columns else array, native, order="C")
            # Products of matrices may be rounded differently in another layout, so the layout is kept.
            self._nodes[id(array)] = {"tensor": name, "by_columns": True} if by_columns else {"tensor": name}
            self._met.append(array)
        return self._nodes[id(array)]

    def read(self, node: Json) -> Array:
        fields = fields_of(node, ["tensor"], ["by_columns"])
        name = fields["tensor"]
        require(isinstance(name, str) and name in self.arrays, "names no tensor of this file")
        require(fields.get("by_columns", True) is True, "has a layout that is not known")
        self._unread.discard(name)
        return self.arrays[name].T if "by_columns" in fields else self.arrays[name]

    def require_all_read(self) -> None:
        require(not self._unread, "holds tensors that belong to nothing")


class Sizes:
    """Numbers of rows, columns and so on by name: the first array says how many, and the others must agree.

    Parameters
    ----------
    views : mapping
        Widths of the views by name.
    """

    def __init__(self, views: Mapping[str, int]) -> None:
        self.views = views
        self._known: dict[str, int] = {"views": len(views)}
        self._model = self

    def of_view(self, name: str) -> Sizes:
        """Sizes for one view: some are its own, the others are those of the model."""
        sizes = Sizes(self.views)
        sizes._known, sizes._model = {"features": self.views[name]}, self._model
        return sizes

    def known(self, name: str) -> int | None:
        return self._place(name).get(name)

    def agree(self, name: str, size: int) -> None:
        require(size > 0 or (size == 0 and name in _MAY_BE_ZERO), f"has size {size} for {name}")
        expected = self._place(name).setdefault(name, size)
        require(size == expected, f"has size {size} for {name}, elsewhere {expected}")

    def _place(self, name: str) -> dict[str, int]:
        return self._known if name in _OF_ONE_VIEW else self._model._known


class Kind(ABC):
    """One kind of value."""

    @abstractmethod
    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        """Check the value and return it as JSON, with arrays put among the tensors."""

    @abstractmethod
    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Any:
        """Return the value, checked."""


@dataclass(frozen=True)
class Maybe(Kind):
    """An attribute that may be absent."""

    kind: Kind

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        return self.kind.write(value, tensors, sizes)

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Any:
        return self.kind.read(node, tensors, sizes)


@dataclass(frozen=True)
class OrNone(Kind):
    """A value, or None."""

    kind: Kind

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        return None if value is None else self.kind.write(value, tensors, sizes)

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Any:
        return None if node is None else self.kind.read(node, tensors, sizes)


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number."""

    least: int = 0
    most: int = 2**53

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        require(isinstance(value, Integral), f"is {value!r}, not a whole number")
        return self.read(int(value), tensors, sizes)

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> int:
        require(type(node) is int and self.least <= node <= self.most, "is not a whole number in range")
        return int(node)


@dataclass(frozen=True)
class Number(Kind):
    """A finite number."""

    least: float = -math.inf
    zero: bool = True

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        require(isinstance(value, Real), f"is {value!r}, not a number")
        return self.read(float(value), tensors, sizes)

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> float:
        require(type(node) is float and math.isfinite(node), "is not a finite number")
        require(node >= self.least and (self.zero or node != 0), "is out of range")
        return float(node)


@dataclass(frozen=True)
class Text(Kind):
    """A string."""

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        return self.read(value, tensors, sizes)

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> str:
        require(isinstance(node, str), "is not a text")
        return str(node)


@dataclass(frozen=True)
class Names(Kind):
    """A tuple of strings, as many as a size says."""

    size: str

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        require(isinstance(value, (tuple, np.ndarray)), f"is a {type(value).__name__}, not names")
        return list(self.read(list(value), tensors, sizes))

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> tuple[str, ...]:
        require(isinstance(node, list) and all(isinstance(name, str) for name in node), "is not a list of names")
        sizes.agree(self.size, len(node))
        return tuple(node)


@dataclass(frozen=True)
class NameArray(Names):
    """Names in an array of objects, as scikit-learn has them."""

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Any:
        return np.asarray(super().read(node, tensors, sizes), dtype=object)


@dataclass(frozen=True)
class OneOf(Kind):
    """One of a few known things, by name."""

    things: Mapping[str, Any]

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        names = [name for name, thing in self.things.items() if thing is value]
        require(names, f"is {value!r} and must be one of {', '.join(self.things)}")
        return names[0]

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Any:
        require(isinstance(node, str) and node in self.things, f"must be one of {', '.join(self.things)}")
        return self.things[node]


@dataclass(frozen=True)
class Numbers(Kind):
    """An array whose sides have these named sizes."""

    sides: tuple[str, ...]
    dtypes: tuple[str, ...] = FLOATS
    least: float = -math.inf
    below: str | None = None  # a size
    increasing: bool = False
    zero: bool = True
    infinite: bool = False

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        require(isinstance(value, np.ndarray), f"is a {type(value).__name__}, not an array")
        self._check(value, sizes)
        return tensors.write(value)

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Array:
        array = tensors.read(node)
        self._check(array, sizes)
        return array

    def _check(self, array: Array, sizes: Sizes) -> None:
        require(array.ndim == len(self.sides), f"has {array.ndim} sides instead of {len(self.sides)}")
        require(array.dtype.name in self.dtypes, f"holds {array.dtype}")
        for side, size in zip(self.sides, array.shape, strict=True):
            sizes.agree(side, size)
        if array.size == 0:
            return
        require(not np.isnan(array).any(), "holds NaN")
        require(self.infinite or np.isfinite(array).all(), "holds infinite numbers")
        require(array.min() >= self.least, "holds numbers that are too small")
        require(self.zero or (array != 0).all(), "holds zeros")
        if self.below is not None:
            require(array.max() < (sizes.known(self.below) or 0), f"holds numbers beyond {self.below}")
        require(not self.increasing or (np.diff(array) > 0).all(), "is not increasing")


@dataclass(frozen=True)
class Table(Kind):
    """A matrix, dense or sparse: a sparse one is the three arrays of its CSR form and its shape."""

    rows: str
    columns: str
    dtypes: tuple[str, ...] = FLOATS

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        if not sp.issparse(value):
            return self._dense.write(value, tensors, sizes)
        require(isinstance(value, sp.csr_array), f"is a {type(value).__name__}, not a csr_array")
        parts = (value.data, value.indices, value.indptr)
        self._check(parts, list(value.shape), sizes)
        return {"csr": [tensors.write(array) for array in parts], "shape": [int(side) for side in value.shape]}

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Matrix:
        if not (isinstance(node, dict) and "csr" in node):
            return self._dense.read(node, tensors, sizes)
        fields = fields_of(node, ["csr", "shape"])
        require(isinstance(fields["csr"], list) and len(fields["csr"]) == 3, "has not the three parts of a CSR matrix")
        shape = fields["shape"]
        require(isinstance(shape, list) and [type(side) for side in shape] == [int, int], "has no shape")
        parts = tuple(tensors.read(each) for each in fields["csr"])
        self._check(parts, shape, sizes)
        return sp.csr_array(parts, shape=tuple(shape))

    @property
    def _dense(self) -> Numbers:
        return Numbers((self.rows, self.columns), self.dtypes)

    def _check(self, parts: tuple[Array, ...], shape: list[int], sizes: Sizes) -> None:
        entries, columns, starts = parts
        for side, size in zip((self.rows, self.columns), shape, strict=True):
            sizes.agree(side, size)
        require(entries.ndim == columns.ndim == starts.ndim == 1, "has parts that are not vectors")
        require(entries.dtype.name in self.dtypes, f"holds {entries.dtype}")
        require(columns.dtype.name in INTEGERS and starts.dtype.name in INTEGERS, "has parts that are not integers")
        require(len(starts) == shape[0] + 1 and starts[0] == 0, "has rows that start wrongly")
        require((np.diff(starts) >= 0).all() and starts[-1] == len(entries) == len(columns), "has rows that overlap")
        if len(entries):
            require(np.isfinite(entries).all(), "holds NaN or infinite numbers")
            require(columns.min() >= 0 and columns.max() < shape[1], "has entries outside its columns")


@dataclass(frozen=True)
class ByView(Kind):
    """A dictionary with a value for each view, in their order; or for some of them."""

    kind: Kind
    some: bool = False

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        return self._each(value, sizes, lambda item, of_view: self.kind.write(item, tensors, of_view))

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> dict[str, Any]:
        return self._each(node, sizes, lambda item, of_view: self.kind.read(item, tensors, of_view))

    def _each(self, items: Any, sizes: Sizes, one: Callable[[Any, Sizes], Any]) -> dict[str, Any]:
        require(isinstance(items, dict), "is not a dictionary by view")
        fits = set(items) <= set(sizes.views) if self.some else list(items) == list(sizes.views)
        require(fits, "does not name the views")
        done = {}
        for name, item in items.items():
            with part(name):
                done[name] = one(item, sizes.of_view(name))
        return done


@dataclass(frozen=True)
class InViewOrder(Kind):
    """A list with a value for each view."""

    kind: Kind

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        return list(ByView(self.kind).write(self._by_view(value, sizes), tensors, sizes).values())

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> list[Any]:
        return list(ByView(self.kind).read(self._by_view(node, sizes), tensors, sizes).values())

    def _by_view(self, items: Any, sizes: Sizes) -> dict[str, Any]:
        require(isinstance(items, list) and len(items) == len(sizes.views), "is not a list with one for each view")
        return dict(zip(sizes.views, items, strict=True))


@dataclass(frozen=True)
class Record(Kind):
    """An object of one known class, by its attributes; `relation` compares them with each other."""

    cls: type
    attributes: Mapping[str, Kind]
    relation: Callable[[Any, Sizes], None] = field(default=lambda value, sizes: None)

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        require(type(value) is self.cls, f"is a {type(value).__name__}, not a {self.cls.__name__}")
        node = {"class": self.cls.__name__}
        for name, kind in self.attributes.items():
            with part(name):
                node[name] = kind.write(getattr(value, name), tensors, sizes)
        self.relation(value, sizes)
        return node

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Any:
        fields = fields_of(node, ["class", *self.attributes])
        require(fields["class"] == self.cls.__name__, f"is not a {self.cls.__name__}")
        values = {}
        for name, kind in self.attributes.items():
            with part(name):
                values[name] = kind.read(fields[name], tensors, sizes)
        value: Any = object.__new__(self.cls)
        vars(value).update(values)
        self.relation(value, sizes)
        return value


@dataclass(frozen=True)
class AnyOf(Kind):
    """An object of one of these classes."""

    records: tuple[Record, ...]

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        record = next((record for record in self.records if record.cls is type(value)), None)
        if record is None:
            raise MisfitError(f"is a {type(value).__name__}, and only {self._names} can be saved")
        return record.write(value, tensors, sizes)

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Any:
        name = node.get("class") if isinstance(node, dict) else None
        record = next((record for record in self.records if record.cls.__name__ == name), None)
        if record is None:
            raise MisfitError(f"is none of {self._names}")
        return record.read(node, tensors, sizes)

    @property
    def _names(self) -> str:
        return ", ".join(record.cls.__name__ for record in self.records)
