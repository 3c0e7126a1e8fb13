"""Declarations of saved state: type hints that say what the learnt attributes of a class hold.

A fitted model is saved and loaded by the hints of its class, so each class declares its state beside its code:

    class KSC:
        eigenvalues_: Annotated[Array, FloatArray("components")]
        scores_: Annotated[Array, FloatArray("train", "components")]
        kernels_: ByView[Annotated[Kernel, PARAMETER]]

Every annotated attribute of an estimator with a leading or a trailing underscore is state; of a dataclass every field.
Relations between attributes are checked by a method `_check_state(self, sizes)`, before saving and after loading.

Sizes have names, and all arrays with a side called "train" must agree on it. "features" and names with a leading
underscore, such as "_clusters", are sizes of one view; all others are sizes of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from coview.views import Array

T = TypeVar("T")

# Notes for `typing.Annotated`.
OPTIONAL = "optional"  # the attribute may be missing
PARAMETER = "parameter"  # a value that a caller gives to a constructor, with the types that the caller gave
FITTED = "fitted"  # a fitted estimator
CHAIN = "chain"  # each entry has as many features as the one before returns, by its method `width`
OWN_SIZES = "own sizes"  # each entry of a list has its own sizes of "features" and names with a leading underscore
CACHE = "cache"  # a dictionary of results that are computed when they are first used; it is not saved
BY_VIEW = "by view"
SOME_VIEWS = "some views"

ByView: TypeAlias = Annotated[dict[str, T], BY_VIEW]  # an entry for each view, in their order
SomeViews: TypeAlias = Annotated[dict[str, T], SOME_VIEWS]  # entries for some of the views
ListByView: TypeAlias = Annotated[list[T], BY_VIEW]


class StateError(Exception):
    """A value differs from its declaration; the message names the value by its path and says what was expected."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path

    def inside(self, name: str) -> StateError:
        """Return the same error about a part of something larger."""
        return StateError(self.reason, f"{name}{'.' if self.path and self.path[0] != '[' else ''}{self.path}")


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Add a name to the path of state errors."""
    try:
        yield
    except StateError as error:
        raise error.inside(name) from None


def require(condition: object, reason: str) -> None:
    """Raise a StateError unless the condition holds."""
    if not condition:
        raise StateError(reason)


class Sizes:
    """Number of features of each view, and sizes by name: the first array sets a size, and the others must agree."""

    def __init__(self, views: Mapping[str, int]) -> None:
        self.views = views
        self._of_model = {"views": len(views)}
        self._of_view: dict[str, int] = {}

    def of_view(self, n_features: int) -> Sizes:
        """Return the sizes of a view with so many features: its own ones, and those of the model."""
        sizes = self.of_entry()
        sizes._of_view = {"features": n_features}
        return sizes

    def of_entry(self) -> Sizes:
        """Return the sizes of the model, with none that belong to one view or entry."""
        sizes = Sizes(self.views)
        sizes._of_model = self._of_model
        return sizes

    def known(self, name: str) -> int | None:
        """Return the size of this name, None before the first array that has it."""
        return self._scope(name).get(name)

    def agree(self, name: str, size: int) -> None:
        """Compare a size with those of the same name."""
        expected = self._scope(name).setdefault(name, size)
        require(size == expected, f"expected {expected} for size {name!r}, got {size}")

    def _scope(self, name: str) -> dict[str, int]:
        return self._of_view if name == "features" or name.startswith("_") else self._of_model


@dataclass(frozen=True)
class Size:
    """An integer that is the size of this name, or a sequence of so many entries."""

    name: str


@dataclass(frozen=True)
class Range:
    """Bounds of a number: `least` and `most` are accepted themselves, `above` is not."""

    least: float = -math.inf
    most: float = math.inf
    above: float | None = None

    def check(self, value: float) -> None:
        """Raise a StateError unless the number is within the bounds."""
        bounds = {"at least": (self.least, value >= self.least), "at most": (self.most, value <= self.most)}
        if self.above is not None:
            bounds["above"] = (self.above, value > self.above)
        for words, (bound, holds) in bounds.items():
            require(holds, f"expected a number {words} {bound:g}, got {value:g}")


class NumberArray:
    """A dense array whose sides have these sizes, with values within the bounds of a `Range`.

    All values are below the size `below`. `infinite` and `empty` accept infinite values and arrays without values.
    """

    dtypes: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        *sides: str,
        below: str | None = None,
        increasing: bool = False,
        infinite: bool = False,
        empty: bool = False,
        **bounds: float,
    ) -> None:
        self.sides = sides
        self.range = Range(**bounds)
        self.below = below
        self.increasing = increasing
        self.infinite = infinite
        self.empty = empty

    def check(self, array: Any, sizes: Sizes) -> None:
        """Raise a StateError unless this is such an array."""
        require(isinstance(array, np.ndarray), f"expected an array, got {type(array).__name__}")
        require(array.ndim == len(self.sides), f"expected ndim={len(self.sides)}, got ndim={array.ndim}")
        self.check_values(array, array.shape, sizes)

    def check_values(self, values: Array, shape: tuple[int, ...], sizes: Sizes) -> None:
        """Check type and range of these values, and the shape that they belong to."""
        require(values.dtype.name in self.dtypes, f"expected {' or '.join(self.dtypes)}, got {values.dtype}")
        for side, size in zip(self.sides, shape, strict=True):
            require(size > 0 or (size == 0 and self.empty), f"expected at least 1 for size {side!r}, got {size}")
            sizes.agree(side, size)
        if values.size:
            for value in (float(values.min()), float(values.max())):  # NaN if there is one
                require(not math.isnan(value), "expected numbers, got NaN")
                require(self.infinite or math.isfinite(value), "expected finite numbers, got infinite ones")
                self.range.check(value)
            if self.below is not None:
                limit = sizes.known(self.below) or 0
                require(values.max() < limit, f"expected numbers below {limit} ({self.below!r}), got {values.max()}")
            require(not self.increasing or (np.diff(values) > 0).all(), "expected increasing numbers")


class FloatArray(NumberArray):
    """An array of float32 or float64 numbers; see `NumberArray`."""

    dtypes = ("float32", "float64")


class IntegerArray(NumberArray):
    """An array of int32 or int64 numbers; see `NumberArray`."""

    dtypes = ("int32", "int64")


class SparseMatrix(FloatArray):
    """A csr_array of float32 or float64 numbers; see `NumberArray`."""

    def check(self, array: Any, sizes: Sizes) -> None:
        """Raise a StateError unless this is such a matrix."""
        require(isinstance(array, sp.csr_array), f"expected a csr_array, got {type(array).__name__}")
        self.check_parts(array.data, array.indices, array.indptr, array.shape, sizes)

    def check_parts(self, data: Array, indices: Array, indptr: Array, shape: tuple[int, ...], sizes: Sizes) -> None:
        """Raise a StateError unless these are the parts of a CSR matrix; SciPy's own check replaces the parts."""
        dtypes, integers = {indices.dtype.name, indptr.dtype.name}, IntegerArray.dtypes
        require(dtypes <= {*integers}, f"expected {' or '.join(integers)} as indices, got {' and '.join(dtypes)}")
        require(data.ndim == indices.ndim == indptr.ndim == 1, "expected vectors as parts of a CSR matrix")
        self.check_values(data, shape, sizes)
        fits = len(indptr) == shape[0] + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
        require(fits and (np.diff(indptr) >= 0).all(), "expected increasing indptr, from 0 to the number of values")
        inside_columns = len(indices) == 0 or (indices.min() >= 0 and indices.max() < shape[1])
        require(inside_columns, f"expected column indices below {shape[1]}")


class DenseOrSparse(SparseMatrix):
    """A matrix of float32 or float64 numbers, as an array or as a csr_array; see `NumberArray`."""

    def check(self, array: Any, sizes: Sizes) -> None:
        """Raise a StateError unless this is such a matrix."""
        (SparseMatrix if sp.issparse(array) else FloatArray).check(self, array, sizes)


@dataclass(frozen=True)
class StringArray:
    """A vector of objects that are strings, of this size; scikit-learn keeps names of columns so."""

    side: str
