"""Data without clusters and with the covariance of the samples: the reference that a measure must exceed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.stats import skew

from coview.rows import as_float64, l2_norms
from coview.views import Array, Matrix, Views

_LARGEST_SHAPE = 2.0  # of a log-normal distribution, whose skewness is then 414
_EQUAL_NORMS = 1e-6
_MOST_DENSE_COLUMNS = 20_000
_FEW_VALUES = 10  # of booleans and ranks
_ZERO = 1e-9  # of a standard deviation, relative to the largest


class Reference:
    """Views whose principal components, of all views together, are drawn from distributions with one mode.

    The expected mean and covariance of all columns, also between views, are those of the samples. If all rows of a view
    have the same norm, as after L2 normalisation, so do the rows drawn. If a view has no negative values, negative
    values are replaced by 0. In views with categories, the rows drawn have the categories and the discrete values of
    the samples: otherwise any column of categories would seem to have clusters.
    """

    def __init__(self, views: Views, n_samples: int | None = None) -> None:
        self._names = views.names
        self._n_samples = views.n_samples if n_samples is None else n_samples  # that are drawn
        tables = [as_float64(x) for x in views.values()]
        self._least = [0.0 if x.min() >= 0 else -np.inf for x in tables]
        self._norms = [_common_norm(x) for x in tables]
        self._ends = np.cumsum([x.shape[1] for x in tables])[:-1]
        self._table = np.hstack(tables)
        self._one_hot, self._discrete = _discrete_columns(views, self._table)
        self._mean = self._table.mean(axis=0)
        left, lengths, axes = np.linalg.svd(self._table - self._mean, full_matrices=False)
        vary = lengths > _ZERO * lengths.max(initial=0)
        self._axes, self._deviations = axes[vary], lengths[vary] / np.sqrt(len(left))
        self._shapes = np.array([_log_normal_shape(each) for each in skew(left[:, vary], axis=0)])

    def draw(self, distribution: str, rng: np.random.Generator) -> Views:
        """Return samples, by default as many as the views have."""
        size = self._n_samples, len(self._axes)
        components = DISTRIBUTIONS[distribution](rng, size, self._shapes) * self._deviations
        table = components @ self._axes + self._mean
        for columns in self._one_hot:
            drawn = table[:, columns]
            chosen = drawn.argmax(axis=1)[:, None] == np.arange(drawn.shape[1])
            table[:, columns] = chosen * self._table[:, columns].max()
        for j in self._discrete:
            quantiles = (np.argsort(np.argsort(table[:, j])) + 0.5) / len(table)
            table[:, j] = np.quantile(self._table[:, j], quantiles, method="inverted_cdf")
        return self._views(table)

    def permute(self, rng: np.random.Generator) -> Views:
        """Return the samples with columns that are permuted independently, which keeps the values of each column."""
        table = rng.permuted(self._table, axis=0)
        for columns in self._one_hot:  # a row keeps one category
            table[:, columns] = rng.permutation(self._table[:, columns])
        return self._views(table)

    def _views(self, table: Array) -> Views:
        parts = np.split(table, self._ends, axis=1)
        tables = [np.maximum(x, least) for x, least in zip(parts, self._least, strict=True)]
        scaled = [x if norm is None else _with_norm(x, norm) for x, norm in zip(tables, self._norms, strict=True)]
        return Views(dict(zip(self._names, scaled, strict=True)))


def _discrete_columns(views: Views, table: Array) -> tuple[list[slice], list[int]]:
    """Return the places of one-hot columns, and of other columns with few values, in the views with categories."""
    one_hot, discrete, start = [], [], 0
    for name, x in views.items():
        ends = np.cumsum([start, *views.encoded.get(name, ())]).tolist()
        one_hot += [slice(a, b) for a, b in pairwise(ends) if b - a > 1]
        single = [a for a, b in pairwise(ends) if b - a == 1]
        discrete += [j for j in single if len(np.unique(table[:, j])) <= _FEW_VALUES]
        start += x.shape[1]
    return one_hot, discrete


def _normal(rng: np.random.Generator, size: tuple[int, ...], shapes: Array) -> Array:
    return rng.standard_normal(size)


def _uniform(rng: np.random.Generator, size: tuple[int, ...], shapes: Array) -> Array:
    return rng.uniform(-np.sqrt(3), np.sqrt(3), size)


def _log_normal(rng: np.random.Generator, size: tuple[int, ...], shapes: Array) -> Array:
    """Return log-normal components with the skewness of those of the samples."""
    shape = np.abs(shapes)
    drawn = np.exp(shape * rng.standard_normal(size))
    mean, deviation = np.exp(shape**2 / 2), np.exp(shape**2 / 2) * np.sqrt(np.expm1(shape**2))
    return np.sign(shapes) * (drawn - mean) / deviation


# Distributions with one mode, mean 0 and variance 1.
DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, ...], Array], Array]] = {
    "normal": _normal,
    "uniform": _uniform,
    "log-normal": _log_normal,
}


def _log_normal_shape(skewness: float) -> float:
    """Return the standard deviation of the logarithm, with the sign of the skewness; nearly normal for none."""

    def excess(shape: float) -> float:
        return float((np.exp(shape**2) + 2) * np.sqrt(np.expm1(shape**2)) - abs(skewness))

    least = 1e-3
    if not np.isfinite(skewness) or excess(least) >= 0:
        return least
    largest = excess(_LARGEST_SHAPE) <= 0
    return float(np.copysign(_LARGEST_SHAPE if largest else brentq(excess, least, _LARGEST_SHAPE), skewness))


def _common_norm(x: Array) -> float | None:
    """Return the norm of the rows if it is the same for all."""
    norms = l2_norms(x)
    return float(norms.mean()) if np.ptp(norms) <= _EQUAL_NORMS * norms.max() else None


def _with_norm(x: Array, norm: float) -> Array:
    return x * (norm / np.maximum(l2_norms(x), np.finfo(np.float64).tiny))[:, None]


def compressed(views: Views) -> Views:
    """Return views with fewer columns, and the same inner products between rows up to rounding.

    Sparse views have at most as many columns as rows. Dense views stay as they are up to 20,000 columns, because
    models may standardise the columns, and standardised principal coordinates would have equal variances.
    """

    def is_wide(x: Matrix) -> bool:
        return x.shape[1] > max(x.shape[0], 0 if sp.issparse(x) else _MOST_DENSE_COLUMNS)

    narrow = Views({name: _coordinates(x) if is_wide(x) else x for name, x in views.items()})
    encoded = {name: widths for name, widths in views.encoded.items() if not is_wide(views[name])}
    return Views.trusted(narrow, narrow.columns, encoded=encoded)


def _coordinates(x: Matrix) -> Array:
    values, vectors = np.linalg.eigh(as_float64(x @ x.T))
    return vectors * np.sqrt(np.maximum(values, 0))
