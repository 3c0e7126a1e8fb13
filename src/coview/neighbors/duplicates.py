"""Duplicates: which rows of a view are equal, and which of them a new row is equal to."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.rows import as_float64
from coview.views import Array, Matrix

Integers = NDArray[np.int64]

_SLAB_BYTES = 2**19  # stays in the cache while the bits are stirred


class Duplicates:
    """The distinct rows among some rows, numbered by where each first appears, and the rows equal to each.

    Rows are known by fingerprints of 64 bits. Two of a million different rows share one with a chance of some 1e-8.
    """

    def __init__(self, rows: Matrix) -> None:
        marks = fingerprints(rows)
        self._marks, first, of_row = np.unique(marks, return_index=True, return_inverse=True)
        order = np.argsort(first)
        self._number = np.empty(len(first), dtype=np.int64)
        self._number[order] = np.arange(len(first))
        self.first: Integers = first[order].astype(np.int64)
        self.of_row: Integers = self._number[of_row.ravel()]
        self.counts: Integers = np.bincount(self.of_row)
        self._rows = np.argsort(self.of_row, kind="stable")
        self._starts = np.cumsum(self.counts) - self.counts

    def __len__(self) -> int:
        return len(self.first)

    @property
    def all_distinct(self) -> bool:
        return len(self.first) == len(self.of_row)

    def find(self, x: Matrix) -> Integers:
        """Return the number of the distinct row that each row of x is equal to, or -1."""
        marks = fingerprints(x)
        place = np.searchsorted(self._marks, marks).clip(max=len(self._marks) - 1)
        found: Integers = np.where(self._marks[place] == marks, self._number[place], -1)
        return found

    def members(self, numbers: Integers, most: Integers | int) -> tuple[Integers, Integers]:
        """Return the rows equal to each of these distinct rows, the first few of each.

        Both arrays are as long as all these rows together: the position in `numbers`, and the row.
        """
        sizes = np.minimum(self.counts[numbers], most)
        position = np.repeat(np.arange(len(numbers)), sizes)
        within = np.arange(len(position)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return position, self._rows[self._starts[numbers][position] + within]


def fingerprints(x: Matrix) -> NDArray[np.uint64]:
    """Return a number for each row that equal rows have in common, dense or CSR, whatever their precision."""
    factors = np.random.default_rng(0).integers(2**64, size=x.shape[1], dtype=np.uint64) | np.uint64(1)
    if sp.issparse(x):
        terms = _mixed(x.data) * factors[x.indices]
        # Sums of the entries before each row starts; whole numbers that wrap around, so differences are exact.
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        found: NDArray[np.uint64] = sums[x.indptr[1:]] - sums[x.indptr[:-1]]
        return found
    step = max(_SLAB_BYTES // (8 * x.shape[1]), 1)
    slabs = [_mixed(as_float64(x[start : start + step])) @ factors for start in range(0, x.shape[0], step)]
    return np.concatenate(slabs)


def _mixed(values: Array) -> NDArray[np.uint64]:
    """The bits of the numbers, stirred: small whole numbers differ in a few leading bits only. Zero stays zero."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 one number
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    return bits
