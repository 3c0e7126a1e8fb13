"""Looks: what the values of a view tell about how to prepare it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from coview.views import Matrix

_MOSTLY = 0.5
_FEW_COLUMNS = 8
_WIDE_RANGE = 2.0
_NEARLY_ALL = 0.95
_SOME_ROWS = 2000


@dataclass(frozen=True)
class ViewProfile:
    """What a view looks like.

    Parameters
    ----------
    no_direction : a row's direction says little: at most 8 columns, or two that have nearly all of the variance, as
        where columns are in different units
    words : non-negative and mostly zeros, as counts of words are
    wide_range : non-negative with values of more than 2, so that logarithms matter
    """

    no_direction: bool
    words: bool
    wide_range: bool

    @classmethod
    def of(cls, x: Matrix) -> ViewProfile:
        values = x.data if sp.issparse(x) else x
        nonnegative = bool(values.min(initial=0) >= 0)
        zeros = 1 - np.count_nonzero(values) / (x.shape[0] * x.shape[1])
        words = nonnegative and x.shape[1] > _FEW_COLUMNS and zeros > _MOSTLY
        return cls(
            no_direction=x.shape[1] <= _FEW_COLUMNS or (not words and _two_columns_are_nearly_all(x)),
            words=words,
            wide_range=nonnegative and bool(values.max(initial=0) > _WIDE_RANGE),
        )


def _two_columns_are_nearly_all(x: Matrix) -> bool:
    """Whether two columns have nearly all of the variance; sparse views are taken to be of one unit."""
    if sp.issparse(x):
        return False
    some = x[:: max(x.shape[0] // _SOME_ROWS, 1)].astype(np.float64)
    variances = (some / (np.abs(some).max() or 1.0)).var(axis=0)  # in units in which squares stay in range
    return bool(np.sort(variances)[-2:].sum() > _NEARLY_ALL * variances.sum())


def varies(x: Matrix) -> bool:
    """Whether rows differ at all."""
    if sp.issparse(x):
        return bool((abs(x.max(axis=0) - x.min(axis=0))).max() > 0)
    return bool((x != x[0]).any())
