"""Small linear algebra that several methods use."""

from __future__ import annotations

import numpy as np

from coview.data.rows import as_array
from coview.data.view import Array, Matrix


def polar(x: Array) -> Array:
    """Return the orthogonal polar factor U Vᵀ of the thin singular value decomposition U S Vᵀ (Procrustes)."""
    u, _, vt = np.linalg.svd(x, full_matrices=False)
    return u @ vt


def coordinates(samples: Matrix) -> Array:
    """Return dense rows with the same inner products as these, with no more columns than there are samples.

    A view with at most as many features as samples is returned unchanged. A wider view is replaced by its coordinates
    along orthonormal axes of the span of its samples; sparse views stay sparse in the product. Takes O(n³) time and
    memory for a few n×n matrices.
    """
    n, n_features = samples.shape
    if n_features <= n:
        return as_array(samples)
    values, vectors = np.linalg.eigh(as_array(samples @ samples.T))
    spanned = values > n * np.finfo(np.float64).eps * values[-1]
    spanned[-1] = True  # a view of zeros keeps one column
    return vectors[:, spanned] * np.sqrt(np.maximum(values[spanned], 0.0))
