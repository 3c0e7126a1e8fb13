"""Rows of one view, dense or CSR, handled alike."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from coview.views import Array, Matrix


def as_array(x: Matrix) -> Array:
    """Return the rows as an array of their own type."""
    array: Array = x.toarray() if sp.issparse(x) else x
    return array


def dense(x: Matrix) -> Array:
    """Return the rows as an array in float64."""
    return as_array(x).astype(np.float64, copy=False)


def column(x: Matrix, j: int) -> Array:
    """Return one column."""
    column: Array = x[:, [j]].toarray().ravel() if sp.issparse(x) else x[:, j]
    return column


def hstack(x: Matrix, *columns: Array) -> Matrix:
    """Return the rows with more columns on the right."""
    if sp.issparse(x):
        return sp.csr_array(sp.hstack([x, sp.csr_array(np.column_stack(columns))], format="csr"))
    return np.column_stack([x, *columns])


def squared_lengths(x: Matrix) -> Array:
    """Return the sum of squares of each row."""
    if sp.issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1)).ravel()
    lengths: Array = np.einsum("ij,ij->i", x, x)
    return lengths


def unit_rows(x: Matrix) -> Matrix:
    """Rows scaled to length 1; zero rows stay zero. The largest entry comes out first, so nothing overflows."""
    # In one order of memory: sums are then rounded alike in any block.
    x = x.astype(np.float64, copy=False) if sp.issparse(x) else np.ascontiguousarray(x, dtype=np.float64)
    largest = abs(x).max(axis=1)
    largest = largest.toarray().ravel() if sp.issparse(largest) else largest
    scaled = scale_rows(x, largest)
    return scale_rows(scaled, np.sqrt(squared_lengths(scaled)))


def scale_rows(x: Matrix, divisors: Array) -> Matrix:
    """Divide each row by its number; rows whose number is 0 stay."""
    divisors = np.where(divisors > 0, divisors, 1.0)
    if sp.issparse(x):
        data = x.data / np.repeat(divisors, np.diff(x.indptr))
        return sp.csr_array((data, x.indices, x.indptr), shape=x.shape)
    return x / divisors[:, None]
