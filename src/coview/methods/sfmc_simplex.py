"""The unit simplex (non-negative vectors with sum 1): projections of many rows, and small quadratic programs."""

from __future__ import annotations

import numpy as np

from coview.data.view import Array

_RIDGE = 1e-10
_OPTIMAL = 1e-13


def project_segments(values: Array, starts: Array) -> Array:
    """Return a vector with every segment projected onto the simplex of its own length.

    Segment i is values[starts[i] : starts[i + 1]], as in the `data` and `indptr` of a CSR matrix: rows are projected
    within their own support. Thresholds are found by Michelot's algorithm: subtract the mean excess of the entries,
    drop the entries that become negative, and repeat. That takes about ten passes, without sorting.
    """
    sizes = np.diff(starts)
    starts, sizes = starts[:-1][sizes > 0], sizes[sizes > 0]
    if len(starts) == 0:
        return values
    # The projection is invariant to a shift of the segment; near zero, sums keep their digits.
    values = values - np.repeat(np.maximum.reduceat(values, starts), sizes)
    kept, counts = values, sizes
    while True:
        thresholds = np.repeat((np.add.reduceat(kept, starts) - 1) / counts, sizes)
        above = values > thresholds
        before, counts = counts, np.add.reduceat(above, starts, dtype=np.int64)
        if (counts == before).all():
            return np.where(above, values - thresholds, 0.0)
        kept = np.where(above, values, 0.0)


def smallest_on_simplex(quadratic: Array, linear: Array) -> Array:
    """Return the x of the simplex that minimises xᵀ Q x - 2 cᵀ x, for a positive semi-definite Q of a few rows.

    An active-set method, exact up to rounding: it starts from the best corner, unknowns enter one at a time, and those
    that would become negative leave. A very small ridge selects the minimiser of (nearly) smallest norm, so that equal
    unknowns get equal weights.
    """
    n = len(linear)
    scale = max(float(np.trace(quadratic)) / n, np.finfo(np.float64).tiny)
    quadratic, linear = quadratic / scale + _RIDGE * np.eye(n), linear / scale
    x: Array = np.eye(n)[np.argmin(np.diag(quadratic) - 2 * linear)]
    free = x > 0
    for _ in range(10 * n * n):  # a limit that exact arithmetic does not reach
        slope = quadratic @ x - linear
        slope = np.where(free, 0.0, slope - slope @ x)
        if slope.min() >= -_OPTIMAL * max(1.0, np.abs(linear).max()):
            break
        free[slope.argmin()] = True
        x = _descend(quadratic, linear, x, free)
    return x


def _descend(quadratic: Array, linear: Array, x: Array, free: Array) -> Array:
    """Return the minimiser in the free unknowns; unknowns that reach zero before it are no longer free."""
    while True:
        target = _smallest_on_plane(quadratic, linear, free)
        falling = free & (target <= 0)
        if not falling.any():
            return target
        step = (x[falling] / np.maximum(x[falling] - target[falling], np.finfo(np.float64).tiny)).min()
        x = x + step * (target - x)
        free &= x > _OPTIMAL
        x = np.where(free, x, 0.0)


def _smallest_on_plane(quadratic: Array, linear: Array, free: Array) -> Array:
    """Return the minimiser with sum 1 in the free unknowns, which may be negative here; all others are zero."""
    ones = np.ones((int(free.sum()), 1))
    system = np.block([[quadratic[np.ix_(free, free)], ones], [ones.T, np.zeros((1, 1))]])
    x = np.zeros(len(linear))
    x[free] = np.linalg.solve(system, np.append(linear[free], 1.0))[:-1]
    return x
