"""Fingerprints of views: whether two sets of views hold the same samples."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import scipy.sparse as sp

from coview.views import Views

_VALUES = 2**13  # hashed per view, so that a fingerprint takes about a millisecond
_LEAST_ROWS = 8


def fingerprint(views: Views) -> str:
    """Return a hash of the shapes of the views and of evenly spaced rows of each.

    Values count to the precision of float32, and names do not count: views of the same values have the same
    fingerprint as arrays, data frames, sparse matrices or memory-mapped files of either precision.
    """
    digest = sha256()
    for x in views.values():
        n, width = x.shape
        per_row = x.nnz / n if sp.issparse(x) else width
        count = min(n, max(_LEAST_ROWS, int(_VALUES / max(per_row, 1))))
        rows = sp.csr_array(x[np.linspace(0, n - 1, count).astype(np.intp)])
        rows.eliminate_zeros()
        rows.sort_indices()
        # Mantissa and exponent are hashed, because float32 itself does not hold values such as 1e200.
        mantissa, exponent = np.frexp(rows.data.astype(np.float64))
        mantissa, carry = np.frexp(mantissa.astype(np.float32))
        for part in (x.shape, rows.indptr, rows.indices, exponent + carry):
            digest.update(np.asarray(part, dtype=np.int64).tobytes())
        digest.update(mantissa.tobytes())
    return digest.hexdigest()[:32]
