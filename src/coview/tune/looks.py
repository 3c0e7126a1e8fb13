"""Looks: what the values of a view tell about how to prepare it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from coview.views import Matrix

_MOSTLY = 0.5
_FEW_COLUMNS = 8
_WIDE_RANGE = 2.0


@dataclass(frozen=True)
class Look:
    """What a view looks like.

    Parameters
    ----------
    few_columns : at most 8, so that a row's direction says little
    words : non-negative and mostly zeros, as counts of words are
    wide_range : non-negative with values of more than 2, so that logarithms matter
    """

    few_columns: bool
    words: bool
    wide_range: bool

    @classmethod
    def of(cls, x: Matrix) -> Look:
        values = x.data if sp.issparse(x) else x
        nonnegative = bool(values.min(initial=0) >= 0)
        zeros = 1 - np.count_nonzero(values) / (x.shape[0] * x.shape[1])
        return cls(
            few_columns=x.shape[1] <= _FEW_COLUMNS,
            words=nonnegative and x.shape[1] > _FEW_COLUMNS and zeros > _MOSTLY,
            wide_range=nonnegative and bool(values.max(initial=0) > _WIDE_RANGE),
        )


def varies(x: Matrix) -> bool:
    """Whether rows differ at all."""
    if sp.issparse(x):
        return bool((abs(x.max(axis=0) - x.min(axis=0))).max() > 0)
    return bool((x != x[0]).any())
