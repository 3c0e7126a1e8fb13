"""Kernels that are elementwise functions of a matrix product.

Rows are transformed once, into the factors of the product. A block of similarities is then one matrix product and an
elementwise function in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.base.parameters import check_number
from coview.base.runtime import Map, serial_map
from coview.data.rows import (
    append_columns,
    as_array,
    l2_normalize,
    largest_value,
    stored_like,
)
from coview.data.view import Array, Matrix
from coview.kernels.base import Kernel, Similarity, check_integer_parameter, mean_of_largest, refuse_underflow
from coview.neighbors.duplicates import Duplicates, Integers


@dataclass(frozen=True)
class Products(Similarity):
    """Similarities by one matrix product, whose right factor is made of the training rows."""

    kernel: InnerProductKernel
    factor: Matrix
    centre: Array | None = None

    @property
    def dtype(self) -> type[np.floating[Any]]:  # type: ignore[override]
        return self.factor.dtype.type

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        return self.kernel.nonnegative

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.kernel.bounded

    def __call__(self, x: Matrix) -> Array:
        return self.of_factor(self.factor_of(x))

    def factor_of(self, x: Matrix) -> Matrix:
        """Return new rows as rows of the factor, stored like the training rows, because rounding depends on it."""
        return self.kernel.factor(stored_like(self.factor, x), self.centre, self.dtype)

    def of_factor(self, factor: Matrix) -> Array:
        """Return the similarities of rows that are transformed as the training rows."""
        block = as_array(self.kernel.left_factor(factor) @ self.factor.T)
        self.kernel.finish(block)
        return block

    def closeness(self, x: Matrix) -> Array:
        factor = self.factor_of(x)
        return self._closeness(self(x), factor, self._duplicates.find(self.kernel.identifying_columns(factor)) >= 0)

    def training_closeness(self, rows: Integers) -> Array:
        return self._closeness(self._of_training(rows), self.factor[rows], itself=True)

    def _closeness(self, block: Array, factor: Matrix, itself: Any) -> Array:
        if not self.bounded:  # cosines in the feature space, because long rows are not closer
            norms, other_norms = self.kernel.norms(factor)[:, None], self._norms
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                block = np.nan_to_num(block / norms / other_norms, posinf=0.0, neginf=0.0)
        return mean_of_largest(block, itself)

    def _of_training(self, rows: Integers) -> Array:
        """Return the similarities of these training rows to all of them."""
        return self.of_factor(self.factor[rows])

    @cached_property
    def _norms(self) -> Array:
        return self.kernel.norms(self.factor)

    @cached_property
    def _duplicates(self) -> Duplicates:
        return Duplicates(self.kernel.identifying_columns(self.factor))

    def tile(self, rows: slice, columns: slice, out: Array) -> None:
        left, right = self.kernel.left_factor(self.factor[rows]), self.factor[columns]
        if sp.issparse(right) or self.dtype != out.dtype:
            block = as_array(left @ right.T)
            self.kernel.finish(block)
            out[...] = block
        else:
            np.matmul(left, right.T, out=out)
            self.kernel.finish(out)


class InnerProductKernel(Kernel):
    """A kernel that is an elementwise function of inner products of transformed rows."""

    @property
    def nonnegative(self) -> bool:
        """Whether no similarity is negative."""
        return False

    def factor(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        """Return the right factor of the product; by default the rows themselves."""
        with np.errstate(over="ignore"):  # similarities that are not finite are refused
            return x.astype(dtype, copy=False)

    def left_factor(self, factor: Matrix) -> Matrix:
        """Return rows of the right factor as rows of the left factor."""
        return factor

    def identifying_columns(self, factor: Matrix) -> Matrix:
        """Return the columns of the factor by which equal rows are found, with the same bits in any batch."""
        return factor

    def finish(self, block: Array) -> None:
        """Replace inner products by similarities, in place."""

    def check_training(self, name: str, x: Matrix, dtype: type[np.floating[Any]] = np.float64) -> None:
        if not self.bounded:
            largest = largest_value(x)
            similarity = np.array([[largest]])
            with np.errstate(over="ignore"):
                self.finish(np.square(similarity, out=similarity))
            refuse_underflow(self, name, largest, float(similarity[0, 0]), dtype)

    def norms(self, factor: Matrix) -> Array:
        """Return the square root of the similarity of each row to itself."""
        squares = np.asarray((self.left_factor(factor) * factor).sum(axis=1), dtype=np.float64).reshape(-1, 1)
        with np.errstate(over="ignore"):
            self.finish(squares)
        roots: Array = np.sqrt(np.maximum(squares[:, 0], 0))
        return roots

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        factor = self.factor(rows, None, dtype)
        return Products(self, rows.copy() if factor is rows else factor)  # the caller may change the rows later


@dataclass(frozen=True)
class Linear(InnerProductKernel):
    """Inner product xᵀy of the rows. Degrees must be positive, so views should be mostly non-negative.

    See Also
    --------
    Cosine : Inner products of L2-normalised rows.
    Polynomial : Powers of inner products.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 0.0], [1.0, 2.0]]))
    array([[1., 1.],
           [1., 5.]])
    """


@dataclass(frozen=True)
class Polynomial(InnerProductKernel):
    """Polynomial kernel (xᵀy + offset²)^degree.

    Parameters
    ----------
    degree : int
        The exponent, at least 1.
    offset : float
        Its square is added to the inner product; at least 0.

    See Also
    --------
    NormalizedPolynomial : The same, scaled to 1 on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(degree=2, offset=1.0)(np.array([[1.0, 0.0], [1.0, 2.0]]))
    array([[ 4.,  4.],
           [ 4., 36.]])
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        _check_polynomial(self)

    @property
    def nonnegative(self) -> bool:
        return self.degree % 2 == 0

    def finish(self, block: Array) -> None:
        block += float(self.offset) ** 2
        _power(block, self.degree)


@dataclass(frozen=True)
class NormalizedPolynomial(InnerProductKernel):
    """Polynomial kernel k(x, y) / sqrt(k(x, x) k(y, y)), in which every row has similarity 1 to itself.

    It is the cosine of the rows with one more column, the offset, to the power of the degree.

    Parameters
    ----------
    degree : int
        The exponent, at least 1.
    offset : float
        Its square is added to the inner product; at least 0.

    See Also
    --------
    Polynomial : The same without scaling.

    Examples
    --------
    >>> import numpy as np
    >>> NormalizedPolynomial(degree=2, offset=1.0)(np.array([[1.0, 0.0], [1.0, 2.0]])).round(3)
    array([[1.   , 0.333],
           [0.333, 1.   ]])
    """

    degree: int = 2
    offset: float = 1.0

    bounded = True

    def __post_init__(self) -> None:
        _check_polynomial(self)

    @property
    def nonnegative(self) -> bool:
        return self.degree % 2 == 0

    def factor(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        x = x.astype(np.float64, copy=False)
        if self.offset > 0:
            x = append_columns(x, np.full(x.shape[0], float(self.offset)))
        return l2_normalize(x).astype(dtype, copy=False)

    def finish(self, block: Array) -> None:
        _power(block, self.degree)


@dataclass(frozen=True)
class Cosine(InnerProductKernel):
    """Cosine of the angle between rows; an all-zero row has similarity 0 to all rows.

    See Also
    --------
    Linear : Inner products without normalisation.

    Examples
    --------
    >>> import numpy as np
    >>> Cosine()(np.array([[1.0, 0.0], [3.0, 4.0]]))
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    bounded = True

    def factor(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        return l2_normalize(x).astype(dtype, copy=False)


def _check_polynomial(kernel: Polynomial | NormalizedPolynomial) -> None:
    check_integer_parameter(kernel, "degree")
    check_number(f"{type(kernel).__name__}.offset", kernel.offset, least=0)


def _power(block: Array, degree: int) -> None:
    if degree == 2:
        np.square(block, out=block)  # several times faster than the general power
    elif degree != 1:
        np.power(block, degree, out=block)
