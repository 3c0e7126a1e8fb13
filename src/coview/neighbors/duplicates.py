"""Duplicate rows: the rows of a view that are equal to each other, or to a new row."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.data.rows import as_float64
from coview.data.view import Array, Matrix

Integers = NDArray[np.int64]

_HASHED_BYTES = 2**19  # at a time: the bits stay in the cache of one core


class Duplicates:
    """The distinct rows of a matrix, numbered in order of appearance, and the rows that are equal to each.

    Rows are identified by fingerprints of 64 bits. The probability that any two of a million different rows have the
    same fingerprint is about 1e-8. `first` and `counts` are the first row that is equal to each distinct row and the
    number of such rows; `of_row` is the number of the distinct row that each row is equal to.
    """

    def __init__(self, rows: Matrix) -> None:
        self._learn(fingerprints(rows))

    @classmethod
    def of_fingerprints(cls, of_rows: NDArray[np.uint64]) -> Self:
        """Return the duplicates among rows with these fingerprints."""
        duplicates = cls.__new__(cls)
        duplicates._learn(of_rows)
        return duplicates

    def _learn(self, of_rows: NDArray[np.uint64]) -> None:
        self._fingerprints, first, of_row = np.unique(of_rows, return_index=True, return_inverse=True)
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
        """Whether no two rows are equal."""
        return len(self.first) == len(self.of_row)

    def find(self, x: Matrix) -> Integers:
        """Return the number of the distinct row that each row of x is equal to, or -1."""
        wanted = fingerprints(x)
        place = np.searchsorted(self._fingerprints, wanted).clip(max=len(self._fingerprints) - 1)
        return np.where(self._fingerprints[place] == wanted, self._number[place], -1)

    def members(self, numbers: Integers, most: Integers | int) -> tuple[Integers, Integers]:
        """Return the rows that are equal to each of these distinct rows, the first `most` of each.

        The result is two arrays of equal length: positions in `numbers`, and a row that is equal to each.
        """
        sizes = np.minimum(self.counts[numbers], most)
        position = np.repeat(np.arange(len(numbers)), sizes)
        within = np.arange(len(position)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return position, self._rows[self._starts[numbers][position] + within]


def fingerprints(x: Matrix) -> NDArray[np.uint64]:
    """Return a hash of each row; equal rows have equal hashes, dense or CSR, in any precision."""
    factors = np.random.default_rng(0).integers(2**64, size=x.shape[1], dtype=np.uint64) | np.uint64(1)
    if sp.issparse(x):
        terms = _mixed(x.data) * factors[x.indices]
        # Cumulative sums of the entries before each row; integers wrap around, so differences are exact.
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return sums[x.indptr[1:]] - sums[x.indptr[:-1]]
    step = max(_HASHED_BYTES // (8 * x.shape[1]), 1)
    return np.concatenate(
        [_mixed(as_float64(x[start : start + step])) @ factors for start in range(0, x.shape[0], step)]
    )


def _mixed(values: Array) -> NDArray[np.uint64]:
    """Return the bits of the numbers, mixed because small integers differ only in a few leading bits; zero stays 0."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    return bits
