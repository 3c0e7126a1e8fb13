"""Initial centres of k-means."""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from coview.rows import squared_norms
from coview.views import Array


def initial_rows(x: Array, n_clusters: int, n_init: int, seed: int) -> NDArray[np.intp]:
    """Return the rows of x that greedy k-means++ draws as initial centres, of shape (n_init, n_clusters).

    These are the rows that `KMeans` of scikit-learn draws with this seed, up to rounding errors. All initialisations
    are drawn together, because each one takes many short calls on small arrays.
    """
    n, n_trials, norms = len(x), 2 + int(log(n_clusters)), squared_norms(x)
    uniform = np.random.RandomState(seed).random_sample((n_init, 1 + (n_clusters - 1) * n_trials))
    starts = np.arange(n_init)

    def squared_distances(rows: Array) -> Array:
        return np.maximum(norms[rows][..., None] - 2 * (x[rows] @ x.T) + norms, 0)

    drawn = np.empty((n_init, n_clusters), np.intp)
    drawn[:, 0] = uniform[:, 0] * n
    nearest = squared_distances(drawn[:, 0])
    for c in range(1, n_clusters):
        sums = nearest.cumsum(axis=1)
        draws = uniform[:, 1 + (c - 1) * n_trials : 1 + c * n_trials] * sums[:, -1:]
        trials = np.array([np.searchsorted(*pair) for pair in zip(sums, draws, strict=True)]).clip(max=n - 1)
        distances = np.minimum(nearest[:, None], squared_distances(trials))
        best = distances.sum(axis=2).argmin(axis=1)
        drawn[:, c], nearest = trials[starts, best], distances[starts, best]
    return drawn
