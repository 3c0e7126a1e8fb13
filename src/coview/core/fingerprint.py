"""Fingerprints of views: whether two sets of views hold the same samples."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.data.rows import row_blocks
from coview.data.view import Array
from coview.data.views import Views

_MOST_VALUES = 2**24  # hashed per view, which takes a few hundredths of a second


def fingerprint(views: Views) -> str:
    """Return a checksum of the shapes and values of the views; of a view beyond 2^24 values, of evenly spaced rows.

    Values count to the precision of float32, and names do not count: views of the same values have the same
    fingerprint as arrays, data frames, sparse matrices or memory-mapped files of either precision.
    """
    checksum = 0
    for name, x in views.items():
        n, width = x.shape
        if name in views.present:
            checksum = crc32(views.present[name].tobytes(), checksum)
        checksum = crc32(np.array(x.shape, dtype=np.int64).tobytes(), checksum)
        rows = hashed_rows(n, width)
        for some in row_blocks(len(rows), width):
            block = x[some] if len(rows) == n else x[rows[some]]
            block = block.toarray() if sp.issparse(block) else block
            if name in views.present:  # what a sample has in the place of a view that it lacks does not count
                block = block[views.present[name][rows[some]]]
            if len(block):
                checksum = crc32(_as_float32(block).data, checksum)
    return f"{checksum:08x}"


def hashed_rows(n: int, width: int) -> NDArray[np.intp]:
    """Return the rows of a view of this shape that count."""
    return np.linspace(0, n - 1, min(n, max(1, _MOST_VALUES // width))).astype(np.intp)


def block_checksum(block: Array) -> tuple[int, int]:
    """Return the checksum of some rows of a view, and the number of bytes that it covers."""
    return crc32(_as_float32(block).data), 4 * block.size


def fingerprint_of_blocks(views: Sequence[tuple[tuple[int, int], Sequence[tuple[int, int]]]]) -> str:
    """Return the fingerprint of complete views, from the shape of each and the checksums of its blocks of hashed rows.

    It is that of the whole views, unless float32 does not hold some of their values.
    """
    checksum = 0
    for shape, blocks in views:
        checksum = crc32(np.array(shape, dtype=np.int64).tobytes(), checksum)
        for of_block, n_bytes in blocks:
            # The checksum is linear in the one before it, up to a constant that zeros show.
            zeros = bytes(n_bytes)
            checksum = crc32(zeros, checksum) ^ crc32(zeros) ^ of_block
    return f"{checksum:08x}"


def _as_float32(block: Array) -> Array:
    """Return the values in C order, in units of a power of two if float32 does not hold them, as 1e200."""
    with np.errstate(over="ignore"):
        values = block.astype(np.float32, order="C")
    if not np.isfinite(values).all() or not values.any():
        largest = np.float64(max(block.max(), -block.min()))
        values = (block * 2.0 ** -max(np.frexp(largest)[1], -1000)).astype(np.float32, order="C")
    values += 0.0  # -0 becomes 0
    return values
