"""Fingerprints of views: whether two sets of views hold the same samples."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import scipy.sparse as sp

from coview.rows import row_blocks
from coview.views import Views

_MOST_VALUES = 2**24  # hashed per view, which takes about a tenth of a second


def fingerprint(views: Views) -> str:
    """Return a hash of the shapes and values of the views; of a view beyond 2^24 values, of evenly spaced rows.

    Values count to the precision of float32, and names do not count: views of the same values have the same
    fingerprint as arrays, data frames, sparse matrices or memory-mapped files of either precision.
    """
    digest = sha256()
    for x in views.values():
        n, width = x.shape
        digest.update(np.array(x.shape, dtype=np.int64).tobytes())
        rows = np.linspace(0, n - 1, min(n, max(1, _MOST_VALUES // width))).astype(np.intp)
        for some in row_blocks(len(rows), width):
            block = x[some] if len(rows) == n else x[rows[some]]
            block = np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)
            # In units of a power of two, because float32 does not hold values such as 1e200.
            exponent = max(np.frexp(max(block.max(), -block.min()))[1], -1000)
            values = (block * 2.0**-exponent).astype(np.float32, order="C")
            values += 0.0  # -0 becomes 0
            digest.update(np.int64(exponent).tobytes())
            digest.update(values)
    return digest.hexdigest()
