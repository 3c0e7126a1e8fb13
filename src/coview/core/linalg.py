"""Small linear algebra that several methods share."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from coview.views import Array, Matrix


def polar(x: Array) -> Array:
    """Return U Vᵀ of the thin singular value decomposition U S Vᵀ, the orthogonal polar factor (Procrustes)."""
    u, _, vt = np.linalg.svd(x, full_matrices=False)
    factor: Array = u @ vt
    return factor


def coordinates(samples: Matrix) -> Array:
    """Return dense rows with the same inner products as these, with no more columns than there are samples.

    A view with at most as many features as samples is returned as it is. A wider one is replaced by its coordinates
    along orthonormal axes of the space that its samples span; sparse views are not made dense on the way. Costs O(n³)
    time and a few n×n matrices.
    """
    n, n_features = samples.shape
    if n_features <= n:
        dense: Array = samples.toarray() if sp.issparse(samples) else samples
        return dense
    products = samples @ samples.T
    values, vectors = np.linalg.eigh(products.toarray() if sp.issparse(products) else products)
    seen = values > n * np.finfo(np.float64).eps * values[-1]
    seen[-1] = True  # a view of zeros keeps one column of them
    along: Array = vectors[:, seen] * np.sqrt(np.maximum(values[seen], 0.0))
    return along
