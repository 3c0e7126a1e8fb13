"""The largest eigenpairs of a symmetric problem."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from coview.views import Array

_DENSE_UP_TO = 400


@dataclass(frozen=True)
class Problem:
    """A symmetric matrix to decompose, stored as matrix × 2^exponent so that extreme scales stay in range."""

    matrix: Array
    exponent: int = 0

    @property
    def size(self) -> int:
        return len(self.matrix)

    def trace(self) -> float:
        """Trace of the stored matrix: in units of 2^exponent."""
        return float(np.trace(self.matrix))


@dataclass(frozen=True)
class Eigenpairs:
    """Eigenvalues in decreasing order, their eigenvectors as columns, and each one's share of the trace."""

    values: Array
    vectors: Array
    shares: Array


def top_eigenpairs(problem: Problem, k: int) -> Eigenpairs:
    """Return the k algebraically largest eigenpairs, always with the same signs for the same problem.

    Up to 400 rows (or when a large part of the spectrum is wanted) a dense solver is used, cubic in the number of
    rows; above, Lanczos (ARPACK) with a fixed start vector, some tens of products with the matrix.
    """
    values, vectors = _dense(problem, k) if problem.size <= max(_DENSE_UP_TO, 4 * k) else _lanczos(problem, k)
    trace = problem.trace()
    shares = values / trace if trace > 0 else np.zeros(k)
    with np.errstate(over="ignore"):
        return Eigenpairs(np.ldexp(values, problem.exponent), _fix_signs(vectors), shares)


def _dense(problem: Problem, k: int) -> tuple[Array, Array]:
    n = problem.size
    values, vectors = scipy.linalg.eigh(problem.matrix, subset_by_index=[n - k, n - 1], check_finite=False)
    if len(values) < k:  # LAPACK's subset solver loses some of many equal eigenvalues
        values, vectors = scipy.linalg.eigh(problem.matrix, driver="evd", check_finite=False)
    return values[: -k - 1 : -1], vectors[:, : -k - 1 : -1]


def _lanczos(problem: Problem, k: int) -> tuple[Array, Array]:
    from scipy.sparse.linalg import ArpackError, eigsh

    # Not a constant vector: with equal degrees that is an eigenvector of eigenvalue 0, blind to all others.
    start = np.random.default_rng(0).standard_normal(problem.size)
    for basis in (max(2 * k + 1, 20), max(8 * k, 80)):
        try:
            values, vectors = eigsh(
                problem.matrix, k, which="LA", v0=start, ncv=min(basis, problem.size), maxiter=20 * basis
            )
        except ArpackError:  # no convergence, or nothing to converge to (a zero matrix)
            continue
        order = np.argsort(-values)
        return values[order], vectors[:, order]
    warnings.warn(
        f"Lanczos did not converge for the {k} largest eigenpairs (they are nearly equal, as with a bandwidth far too "
        "small); used the dense solver",
        ConvergenceWarning,
        stacklevel=2,
    )
    return _dense(problem, k)


def _fix_signs(vectors: Array) -> Array:
    """Make the entry of largest size positive in every column."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)
