"""The largest eigenpairs of a symmetric problem."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from coview.core.tiles import SymmetricTiles
from coview.views import Array

_DENSE_UP_TO = 400
# Relative accuracy of eigenvalues. Products in float32 carry errors of about 1e-7; asking for less would never end.
_TOLERANCE = {np.float64: 1e-13, np.float32: 1e-6}


@dataclass(frozen=True)
class Problem:
    """A symmetric matrix to decompose, stored as matrix × 2^exponent so that extreme scales stay in range."""

    matrix: SymmetricTiles
    exponent: int
    trace: float  # of the stored matrix

    @property
    def size(self) -> int:
        return self.matrix.shape[0]


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
    shares = values / problem.trace if problem.trace > 0 else np.zeros(k)
    with np.errstate(over="ignore"):
        return Eigenpairs(np.ldexp(values, problem.exponent), _fix_signs(vectors), shares)


def _dense(problem: Problem, k: int) -> tuple[Array, Array]:
    n, matrix = problem.size, problem.matrix.to_dense()
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[n - k, n - 1], check_finite=False)
    if len(values) < k:  # LAPACK's subset solver loses some of many equal eigenvalues
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", check_finite=False)
    return values[: -k - 1 : -1], vectors[:, : -k - 1 : -1]


def _lanczos(problem: Problem, k: int) -> tuple[Array, Array]:
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    n, matrix = problem.size, problem.matrix
    operator = LinearOperator((n, n), matvec=matrix.__matmul__, dtype=np.float64)
    # Not a constant vector: with equal degrees that is an eigenvector of eigenvalue 0, blind to all others.
    start = np.random.default_rng(0).standard_normal(n)
    for basis in (max(2 * k + 1, 20), max(8 * k, 80)):
        try:
            values, vectors = eigsh(
                operator,
                k,
                which="LA",
                v0=start,
                ncv=min(basis, n),
                maxiter=20 * basis,
                tol=_TOLERANCE[matrix.dtype.type],
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
