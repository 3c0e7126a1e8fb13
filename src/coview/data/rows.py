"""Operations on the rows of one view, dense or CSR: norms, normalisation, column statistics, blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import frexp
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.data.view import Array, Matrix

_BLOCK_NUMBERS = 2**20  # 8 MiB of float64
_LEAST_FILLED = 0.15  # of CSR rows that are made dense, see docs/performance.md
# Squares of values between 2^-e and 2^e, and sums of many of them, stay in the range of the precision.
SAFE_EXPONENT = {np.dtype(np.float64): 400, np.dtype(np.float32): 45}


def as_array(x: Matrix) -> Array:
    """Return the rows as a dense array of the same dtype."""
    return x.toarray() if sp.issparse(x) else x


def as_float64(x: Matrix) -> Array:
    """Return the rows as a dense array in float64."""
    return as_array(x).astype(np.float64, copy=False)


def narrowed(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers in this precision, or unchanged if the largest of them is outside its range."""
    if x.dtype == dtype:
        return x
    # Without NaN, and without a temporary array.
    ends = np.fmax.reduce(x, axis=None, initial=0.0), np.fmin.reduce(x, axis=None, initial=0.0)
    largest, limits = float(max(ends[0], -ends[1])), np.finfo(dtype)
    outside = largest > float(limits.max) or 0 < largest < float(limits.tiny)
    return x if outside else x.astype(dtype, copy=False)


def stored_like(other: Matrix, x: Matrix) -> Matrix:
    """Return the rows of x as CSR if the other matrix is sparse, and as a dense array otherwise."""
    if not sp.issparse(other):
        return as_array(x)
    return x if sp.issparse(x) else sp.csr_array(x)


def stored_for_products(x: Matrix) -> Matrix:
    """Return CSR rows as a dense array if at least 15 % of the entries are stored, because products are then faster.

    The array takes at most 4.5 times the memory.
    """
    return x.toarray() if sp.issparse(x) and x.nnz >= _LEAST_FILLED * x.shape[0] * x.shape[1] else x


def column(x: Matrix, j: int) -> Array:
    """Return one column as an array of shape (rows,)."""
    return x[:, [j]].toarray().ravel() if sp.issparse(x) else x[:, j]


def append_columns(x: Matrix, *columns: Array) -> Matrix:
    """Return the rows with more columns on the right."""
    if sp.issparse(x):
        return sp.csr_array(sp.hstack([x, sp.csr_array(np.column_stack(columns))], format="csr"))
    return np.column_stack([x, *columns])


def with_entries(x: Matrix, entries: Array) -> Matrix:
    """Return a CSR matrix with the pattern of x, in the same memory, and other stored entries."""
    return sp.csr_array((entries, x.indices, x.indptr), shape=x.shape)


def row_of_entries(x: Matrix) -> Array:
    """Return the row of each stored entry of a CSR matrix."""
    return np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows for work in bounded memory, if each row takes `width` numbers."""
    step = max(1, _BLOCK_NUMBERS // width)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def slab_places(heights: Sequence[int]) -> list[slice]:
    """Return the rows of consecutive slabs, given the number of rows of each."""
    return [slice(start, stop) for start, stop in pairwise(accumulate(heights, initial=0))]


def largest_value(x: Matrix) -> float:
    """Return the largest absolute value."""
    return max(float(x.max()), -float(x.min()))


def safe_unit(largest: float, dtype: Any = np.float64) -> float:
    """Return the factor of rows with this largest absolute value: 1, or a power of 2 if squares leave the range."""
    exponent = frexp(largest)[1]
    return 1.0 if abs(exponent) < SAFE_EXPONENT[np.dtype(dtype)] else 2.0 ** -max(exponent, -1000)


def in_safe_unit(x: Matrix) -> Matrix:
    """Return the rows, in float64 and multiplied by a power of 2 if squares leave the range."""
    unit = safe_unit(largest_value(x), x.dtype)
    return x if unit == 1 else x.astype(np.float64) * unit


def squared_norms(x: Matrix) -> Array:
    """Return the squared L2 norm of each row."""
    if sp.issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", x, x)


def l2_norms(x: Matrix) -> Array:
    """Return the L2 norm of each row; the largest entry is divided out first, because squares can overflow."""
    largest = largest_in_rows(x)
    return largest * np.sqrt(squared_norms(divide_rows(x, largest)))


def largest_in_rows(x: Matrix) -> Array:
    """Return the largest absolute value of each row."""
    if sp.issparse(x):
        return np.asarray(abs(x).max(axis=1).toarray()).ravel()
    return np.asarray(np.maximum(x.max(axis=1), -x.min(axis=1)))


def divide_rows(x: Matrix, divisors: Array) -> Matrix:
    """Return each row divided by its divisor; rows whose divisor is 0 are not changed."""
    divisors = np.where(divisors > 0, divisors, 1.0)
    if sp.issparse(x):
        return with_entries(x, x.data / divisors[row_of_entries(x)])
    return x / divisors[:, None]


def l2_normalize(x: Matrix) -> Matrix:
    """Return the rows in float64, divided by their L2 norms; zero rows stay zero."""
    # In C order, sums over a row are rounded alike in any block.
    x = x.astype(np.float64, copy=False) if sp.issparse(x) else np.ascontiguousarray(x, dtype=np.float64)
    # The largest entry is divided out first, because squares can overflow.
    scaled = divide_rows(x, largest_in_rows(x))
    return divide_rows(scaled, np.sqrt(squared_norms(scaled)))


def column_statistics(x: Matrix, ddof: int = 1) -> tuple[Array, Array]:
    """Return the mean and standard deviation of each column; a constant column has an infinite standard deviation.

    Dense views are read in blocks and sparse views stay sparse, so neither is copied as a whole.
    """
    n, width = x.shape
    if sp.issparse(x):
        return statistics_of_entries(x.data, x.indices, width, n, ddof)
    unit = largest_along(x, axis=0)
    blocks = list(row_blocks(n, width))
    mean = sum((column_sums(x[rows], unit) for rows in blocks), start=np.zeros(width)) / n
    squares = sum((column_squares(x[rows], unit, mean) for rows in blocks), start=np.zeros(width))
    return mean * unit, standard_deviation(squares, mean, n, ddof) * unit


def column_sums(x: Array, unit: Array) -> Array:
    """Return the sum of each column of a block of rows, in these units."""
    return np.asarray((x / unit).sum(axis=0))


def column_squares(x: Array, unit: Array, mean: Array) -> Array:
    """Return the sum of squared deviations from the mean of each column of a block of rows, in these units."""
    return np.asarray((((x / unit) - mean) ** 2).sum(axis=0))


def statistics_of_entries(
    entries: Array, group: Array, n_groups: int, count: int, ddof: int = 1
) -> tuple[Array, Array]:
    """Return the mean and standard deviation of groups of `count` numbers, given the nonzero entries of each group."""
    unit = np.zeros(n_groups)
    np.maximum.at(unit, group, np.abs(entries))
    unit[unit == 0] = 1.0
    entries = entries / unit[group]
    mean = np.bincount(group, entries, n_groups) / count
    absent = count - np.bincount(group, minlength=n_groups)
    squares = np.bincount(group, (entries - mean[group]) ** 2, n_groups) + absent * mean**2
    return mean * unit, standard_deviation(squares, mean, count, ddof) * unit


def largest_along(x: Array, axis: int) -> Array:
    """Return the largest absolute value along an axis, or 1 if all are zero; divide by it to keep squares finite."""
    return positive_or_one(np.maximum(x.max(axis=axis), -x.min(axis=axis)).astype(np.float64))


def positive_or_one(largest: Array) -> Array:
    """Return the numbers, which are not negative, with 1 for 0."""
    return np.where(largest > 0, largest, 1.0)


def standard_deviation(squares: Array, mean: Array, count: int, ddof: int = 1) -> Array:
    """Return the standard deviation from sums of squared deviations; infinite if it is within rounding of the mean."""
    deviation = np.sqrt(squares / max(count - ddof, 1))
    return np.where(deviation > count * np.finfo(np.float64).eps * np.abs(mean), deviation, np.inf)


def evenly_spaced(n: int, most: int) -> Array:
    """Return at most `most` of the numbers below n, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)
