"""What a kernel is, and what it becomes once it knows the rows to compare with."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from coview.errors import InputError
from coview.runtime import Map, serial_map
from coview.views import Array, Matrix, as_views


class Kernel(ABC):
    """A similarity between rows of one view; `kernel(x, y)` is its block of Gram matrix."""

    of_features: ClassVar[bool] = True  # the columns of a view are features, the same for any rows

    def __call__(self, x: Matrix, y: Matrix | None = None) -> Array:
        """Return the similarities of the rows of x with the rows of y (by default: of x itself)."""
        x = _one_table("x", x)
        y = x if y is None else _one_table("y", y)
        if x.shape[1] != y.shape[1] and self.of_features:
            raise InputError(f"x has {x.shape[1]} columns and y has {y.shape[1]}; they must be the same columns")
        return self.resolve(y).against(y)(x)

    def resolve(self, x: Matrix, rng: np.random.Generator | None = None) -> Kernel:
        """Return this kernel with what it leaves open filled in from the rows of x."""
        return self

    def check_training(self, name: str, x: Matrix) -> None:
        """Refuse training rows that this kernel cannot use; `name` is the view's."""

    @property
    def bounded(self) -> bool:
        """Whether no similarity exceeds 1 in size, so that float32 holds it whatever the scale of the rows."""
        return False

    @property
    def sparse(self) -> bool:
        """Whether most pairs of rows have similarity 0, and Gram matrices are kept as sparse ones."""
        return False

    @abstractmethod
    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        """Prepare the rows that others will be compared with, normally the training rows."""


class Similarity(ABC):
    """A kernel and the prepared rows it compares with: call it with any block of rows."""

    dtype: type[np.floating[Any]] = np.float64
    nonnegative: bool = False
    bounded: bool = False
    sparse: bool = False
    noise: float = 0.0  # relative error of a similarity, in units of rounding, beyond that of any product

    @abstractmethod
    def __call__(self, x: Matrix) -> Array:
        """Return the similarities, shape (rows of x, prepared rows), each row independent of the others."""

    @abstractmethod
    def tile(self, rows: slice, columns: slice, out: Array) -> None:
        """Write the similarities of some of the prepared rows with others of them."""

    def block(self, x: Matrix) -> Matrix:
        """Return the same similarities, as a sparse matrix where most are 0."""
        return self(x)

    def training_block(self, rows: slice, n: int) -> Matrix:
        """Return the similarities of some of the n prepared rows with all of them, sparse where most are 0."""
        block = np.empty((rows.stop - rows.start, n), self.dtype)
        self.tile(rows, slice(0, n), out=block)
        return block

    def forget_training(self) -> Similarity:
        """Return what is needed for new rows only."""
        return self


def require_number(kernel: Kernel, parameter: str, holds: Callable[[Any], bool], wanted: str) -> None:
    """Refuse a parameter that is no finite number, or not one that is wanted."""
    value = getattr(kernel, parameter)
    if not (isinstance(value, Real) and math.isfinite(value) and holds(value)):
        raise InputError(f"{type(kernel).__name__}({parameter}={value!r}): {parameter} must be {wanted}")


def _one_table(label: str, x: Any) -> Matrix:
    views = as_views(x)
    if len(views) > 1:
        raise InputError(f"{label} holds {len(views)} views; a kernel compares the rows of one")
    return next(iter(views.values()))
