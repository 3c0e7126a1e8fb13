"""Effect sizes: the columns of a view that separate each cluster from the other samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from coview.data.rows import row_blocks, with_entries
from coview.data.view import Array, Matrix
from coview.summary.margins import Numbers, indicators

LARGEST = 1000.0  # effects are clipped here: that of a column without variance within the groups would be infinite
_SLAB_NUMBERS = 2**22


@dataclass(frozen=True)
class Effects:
    """Effects of some columns (w of them) for each cluster."""

    columns: Array  # (w,) positions in the view
    values: Array  # (clusters, w) effect sizes
    inside: Array  # (clusters, w) means over the members
    outside: Array  # (clusters, w) means over the other samples
    standardised: Array  # (clusters, w) means over the members of the standardised columns
    constant: Array  # (w,) whether the column has one value only


def effects(x: Matrix, numbers: Numbers, n_clusters: int) -> Iterator[Effects]:
    """Yield the effects of all columns, a block of columns at a time, in bounded memory.

    The effect size is the mean inside minus the mean outside, over the standard deviation within the two groups
    (pooled, n - 2 degrees of freedom). Every column is first shifted by its mean and divided by its largest deviation,
    because large offsets and units would cost precision. O(n d) in time; sparse rows stay sparse.
    """
    step = max(1, _SLAB_NUMBERS // max(n_clusters, 1))
    for start in range(0, x.shape[1], step):
        yield effects_of_columns(x, slice(start, start + step), numbers, n_clusters)


def effects_of_columns(x: Matrix, columns: slice | list[int], numbers: Numbers, n_clusters: int) -> Effects:
    """Return the effects of some columns."""
    places = np.arange(x.shape[1])[columns]
    n, width = x.shape[0], len(places)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, least, most = _ranges(x, columns, width)
        scale = np.maximum(most - mean, mean - least)
        scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
        sums, squares = np.zeros((n_clusters, width)), np.zeros(width)
        for rows in _row_blocks(x, width):
            sums_here, squares_here = _sums(x[rows, columns], mean, scale, indicators(numbers[rows], n_clusters))
            sums += sums_here
            squares += squares_here
        size = np.bincount(numbers, minlength=n_clusters)[:, None]
        rest = np.maximum(n - size, 1)
        inside, outside = sums / size, (sums.sum(axis=0) - sums) / rest
        within = np.maximum(squares - size * inside**2 - rest * outside**2, 0) / max(n - 2, 1)
        constant = least == most
        values = (inside - outside) / np.sqrt(np.maximum(within, np.finfo(float).tiny))
        values = np.where(constant | ~np.isfinite(values) | (size == n), 0.0, np.clip(values, -LARGEST, LARGEST))
        spread = np.where(constant | (squares == 0), np.inf, np.sqrt(squares / n))
        standardised, largest = np.nan_to_num(inside / spread), np.finfo(float).max
        inside, outside = (np.clip(mean + scale * part, -largest, largest) for part in (inside, outside))
    return Effects(places, values, inside, outside, standardised, constant)


def _row_blocks(x: Matrix, width: int) -> Iterator[slice]:
    return row_blocks(x.shape[0], max(1, x.nnz // x.shape[0] if sp.issparse(x) else width))


def _ranges(x: Matrix, columns: slice | list[int], width: int) -> tuple[Array, Array, Array]:
    """Return the mean, the smallest and the largest value of each column."""
    parts = []
    for rows in _row_blocks(x, width):
        block = x[rows, columns]
        total = np.asarray(block.sum(axis=0, dtype=np.float64)).ravel()
        extremes = [block.min(axis=0), block.max(axis=0)]
        parts.append([total, *(e.toarray().ravel() if sp.issparse(e) else e for e in extremes)])
    totals, least, most = (np.asarray(part, dtype=np.float64) for part in zip(*parts, strict=True))
    low, high = least.min(axis=0), most.max(axis=0)
    mean = totals.sum(axis=0) / x.shape[0]
    # The mean of a constant column can have a rounding error, and that of huge numbers can overflow.
    mean = np.where(low == high, low, np.where(np.isfinite(mean), mean, low / 2 + high / 2))
    return mean, low, high


def _sums(block: Matrix, mean: Array, scale: Array, members: sp.csr_array) -> tuple[Array, Array]:
    """Return the sums of the scaled deviations by cluster, and the sums of their squares."""
    if not sp.issparse(block):
        deviations = (block - mean) / scale
        return members @ deviations, np.square(deviations).sum(axis=0)
    # Entries that are not stored all have the same deviation, so it is enough to count them.
    deviations = block.astype(np.float64)  # may have its entries in another order than the block
    deviations.data = (deviations.data - mean[deviations.indices]) / scale[deviations.indices]
    stored = with_entries(deviations, np.ones_like(deviations.data))
    size = np.asarray(members.sum(axis=1)).reshape(-1, 1)
    zeros, zero = size - (members @ stored).toarray(), -mean / scale
    squares = np.asarray(deviations.power(2).sum(axis=0)).ravel() + zeros.sum(axis=0) * zero**2
    return (members @ deviations).toarray() + zeros * zero, squares
