"""Orthogonal factors: the matrix with orthonormal columns (or rows) nearest to a given one."""

from __future__ import annotations

import numpy as np

from coview.views import Array


def polar(x: Array) -> Array:
    """Return U Vᵀ of the thin singular value decomposition U S Vᵀ, the orthogonal polar factor (Procrustes)."""
    u, _, vt = np.linalg.svd(x, full_matrices=False)
    factor: Array = u @ vt
    return factor
