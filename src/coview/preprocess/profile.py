"""Profiles of views: properties of the values that decide which preprocessing suits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from coview.data.view import Array, Matrix

_MOSTLY_ZERO = 0.5
_FEW_COLUMNS = 8
_NEARLY_ALL = 0.95
_SAMPLED_ROWS = 2000


@dataclass(frozen=True)
class ViewProfile:
    """Properties of the values of a view.

    The direction of a row is uninformative if the view has at most 8 columns, or if two columns have nearly all of the
    variance, as if columns have different units.
    """

    no_direction: bool  # whether the direction of a row is uninformative
    word_counts: bool  # whether the values are non-negative and mostly zero, as word counts are

    @classmethod
    def of(cls, x: Matrix) -> ViewProfile:
        """Return the profile of a view, a float array or csr_array of shape (n_samples, n_features)."""
        values = x.data if sp.issparse(x) else x
        # Columns of sparse views are assumed comparable.
        some = None if sp.issparse(x) else x[sampled_rows(x.shape[0])]
        return cls.from_counts(x.shape, int(np.count_nonzero(values)), values.min(initial=0), some)

    @classmethod
    def from_counts(cls, shape: tuple[int, int], n_nonzero: int, smallest: float, some: Array | None) -> ViewProfile:
        """Return the profile of a view of this shape, given its smallest value and its `sampled_rows`."""
        zeros = 1 - n_nonzero / (shape[0] * shape[1])
        word_counts = smallest >= 0 and shape[1] > _FEW_COLUMNS and zeros > _MOSTLY_ZERO
        dominated = some is not None and not word_counts and _two_columns_dominate(some)
        return cls(no_direction=shape[1] <= _FEW_COLUMNS or dominated, word_counts=bool(word_counts))


def sampled_rows(n: int) -> slice:
    """Return the rows that show the variances of columns."""
    return slice(0, n, max(n // _SAMPLED_ROWS, 1))


def _two_columns_dominate(some: Array) -> bool:
    """Return whether two columns have nearly all of the variance."""
    some = some.astype(np.float64)
    variances = (some / (np.abs(some).max() or 1.0)).var(axis=0)  # in units in which squares stay in range
    return bool(np.sort(variances)[-2:].sum() > _NEARLY_ALL * variances.sum())


def varies(x: Matrix) -> bool:
    """Return whether any two rows differ."""
    if sp.issparse(x):
        return bool((abs(x.max(axis=0) - x.min(axis=0))).max() > 0)
    return bool((x != x[0]).any())
