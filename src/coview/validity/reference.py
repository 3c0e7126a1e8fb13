"""Data without clusters and with the covariance of the samples: the reference that a measure must exceed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coview.rows import as_float64
from coview.views import Array, Matrix, Views

# Distributions with one mode, mean 0 and variance 1.
DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.uniform(-np.sqrt(3), np.sqrt(3), shape),
}


class Reference:
    """Views whose principal components, of all views together, are drawn from a distribution with one mode.

    The expected mean and covariance of all columns, also between views, are those of the samples. A view with more
    columns than samples is first written in as many columns as there are samples, with the same inner products.
    """

    def __init__(self, views: Views) -> None:
        self._names = views.names
        tables = [_coordinates(x) for x in views.values()]
        self._ends = np.cumsum([x.shape[1] for x in tables])[:-1]
        stacked = np.hstack(tables)
        self._mean = stacked.mean(axis=0)
        _, lengths, self._axes = np.linalg.svd(stacked - self._mean, full_matrices=False)
        self._deviations = lengths / np.sqrt(len(stacked))
        self._shape = (len(stacked), len(lengths))

    def draw(self, distribution: str, rng: np.random.Generator) -> Views:
        """Return as many samples as the views have."""
        components = DISTRIBUTIONS[distribution](rng, self._shape) * self._deviations
        table = components @ self._axes + self._mean
        return Views(dict(zip(self._names, np.split(table, self._ends, axis=1), strict=True)))


def _coordinates(x: Matrix) -> Array:
    """Return at most as many columns as rows, with the same inner products between rows up to rounding."""
    n, width = x.shape
    if width <= n:
        return as_float64(x)
    values, vectors = np.linalg.eigh(as_float64(x @ x.T))
    return vectors * np.sqrt(np.maximum(values, 0))
