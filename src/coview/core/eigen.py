"""The largest eigenpairs of a symmetric problem."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from coview.base.runtime import Map, serial_map
from coview.data.view import Array
from coview.errors import Note

# Residuals relative to the largest eigenvalue. Products in float32 have errors of about 1e-7, so less is not reached.
_TOLERANCE = {np.float64: 1e-11, np.float32: 1e-6}
_ZERO = {np.float64: 1e-13, np.float32: 1e-6}  # eigenvalues below count as zero, relative to the largest
_EXTRA = 3  # pairs beyond the requested ones, so that the last of these converges as well
_BASIS = 6  # blocks in the basis before it is condensed
_PASSES = 60  # problems with a gap between eigenvalues take 5 to 30
_MIN_PASSES = 24  # before the rate of convergence is measured: errors often fall late
_RATE_PASSES = 12  # over which the rate is measured
_SMALL = 700  # rows up to which LAPACK is faster
_DENSE_FALLBACK = 4000  # rows up to which LAPACK solves a problem that has not converged
_BLOCK_ROWS = 8192  # of vectors; with fewer, threads wait for each other

_Solution: TypeAlias = tuple[Array, Array, tuple[Note, ...]]  # values, vectors as columns, warnings


@dataclass(frozen=True)
class Problem:
    """A symmetric matrix to decompose, stored as matrix × 2^exponent so that extreme scales stay in range."""

    matrix: Any  # has shape, dtype, products (`@`) with blocks of vectors, and a dense copy (`to_dense`)
    exponent: int
    trace: float  # of the stored matrix
    map_blocks: Map = serial_map  # for operations on blocks of rows of the vectors
    tolerance: float | None = None  # residual relative to the largest eigenvalue; by default near the rounding error
    bandwidth: str = ""  # the parameter that makes more samples similar, for the message if it is too small

    @classmethod
    def of(cls, matrix: Any, *, bandwidth: str = "", tolerance: float | None = None) -> Problem:
        """Return the problem of a matrix that gives its own diagonal and has workers."""
        return cls(matrix, 0, float(matrix.diagonal().sum()), matrix.workers.map, tolerance, bandwidth)

    @property
    def size(self) -> int:
        return int(self.matrix.shape[0])


@dataclass(frozen=True)
class Eigenpairs:
    """Eigenvalues in decreasing order, their eigenvectors as columns, and the fraction of the trace of each.

    The vector of an eigenvalue that is zero up to rounding is zero, because any other choice would be arbitrary. The
    further values are the next eigenvalues, to show the gap after the requested ones. They can be fewer than requested.
    """

    values: Array
    vectors: Array
    explained_variance_ratio: Array
    further_values: Array
    notes: tuple[Note, ...] = ()  # if they have not converged


def top_eigenpairs(problem: Problem, k: int, start: Array | None = None, n_further: int = 0) -> Eigenpairs:
    """Return the k algebraically largest eigenpairs, always with the same signs for the same problem.

    Problems with few rows, or with few rows for each requested pair, are solved by LAPACK, cubic in the number of rows.
    All others are solved by a block Krylov method in about ten passes over the matrix, from a fixed start or from at
    most k vectors near the solution (`start`). The Krylov method has up to three further values anyway, to a few digits
    because it does not wait for them to converge. LAPACK needs up to 30 milliseconds for them, and they are left out if
    it solves a problem of more than 700 rows.
    """
    n = problem.size
    small = n <= _SMALL or n <= min(20 * k, 3000) or n <= 2 * _BASIS * (k + _EXTRA)
    found, vectors, notes = _solve_dense(problem, k) if small else _block_krylov(problem, k, start)
    values, further = found[:k], found[k : k + n_further]
    if n_further and k < n <= _SMALL:
        # In a second call, because the vectors of the first one would change if they were computed with more of them.
        # All values, because LAPACK's subset solver fails on some matrices with many equal eigenvalues.
        further = np.linalg.eigvalsh(problem.matrix.to_dense())[max(n - k - n_further, 0) : n - k][::-1]
    ratio = values / problem.trace if problem.trace > 0 else np.zeros(k)
    vectors = with_fixed_signs(vectors)
    vectors *= np.abs(values) > _ZERO[problem.matrix.dtype.type] * np.abs(values).max()
    with np.errstate(over="ignore"):
        scaled, further = np.ldexp(values, problem.exponent), np.ldexp(further, problem.exponent)
    return Eigenpairs(scaled, vectors, ratio, further, notes)


def with_fixed_signs(vectors: Array) -> Array:
    """Return the columns with signs such that in each the entry of largest absolute value is positive."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    signed: Array = vectors * np.where(largest < 0, -1.0, 1.0)
    return signed


def dominant_rows(vectors: Array, least: float) -> Array:
    """Return the rows that dominate one of the unit vectors, in increasing order.

    The effective number of rows of a unit vector u is 1 / Σ u⁴: n for equal entries, 1 for a single nonzero entry. A
    vector with fewer than `least` effective rows is dominated by its rows with u² > 1 / least; there is at least one.
    """
    masses = vectors**2
    few = (masses**2).sum(axis=0) * least > 1
    return np.flatnonzero((masses[:, few] * least > 1).any(axis=1))


def _solve_dense(problem: Problem, k: int) -> _Solution:
    n, matrix = problem.size, problem.matrix.to_dense()
    try:
        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[n - k, n - 1], check_finite=False)
    except np.linalg.LinAlgError:
        values = vectors = np.empty((0, 0))
    if len(values) < k:  # LAPACK's subset solver loses some of many equal eigenvalues, or fails
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", check_finite=False)
    return values[: -k - 1 : -1], vectors[:, : -k - 1 : -1], ()


class _Rows:
    """Products of arrays with many rows, in blocks of rows; results do not depend on the number of threads."""

    def __init__(self, n_rows: int, map_blocks: Map) -> None:
        self._blocks = [slice(start, start + _BLOCK_ROWS) for start in range(0, n_rows, _BLOCK_ROWS)]
        self._map = map_blocks

    def inner(self, left: Array, right: Array) -> Array:
        """Return leftᵀ right."""
        first, *others = self._map(lambda rows: left[rows].T @ right[rows], self._blocks)
        for other in others:
            first += other
        return first

    def combine(self, vectors: Array, coefficients: Array, minus: Array | None = None) -> Array:
        """Return vectors @ coefficients, or the difference of another array and this product."""
        result = np.empty((len(vectors), coefficients.shape[1]))

        def one(rows: slice) -> None:
            np.matmul(vectors[rows], coefficients, out=result[rows])
            if minus is not None:
                np.subtract(minus[rows], result[rows], out=result[rows])

        self._map(one, self._blocks)
        return result


def _block_krylov(problem: Problem, k: int, start: Array | None) -> _Solution:
    """Return eigenpairs by Rayleigh-Ritz on a basis that grows by the residuals of all requested pairs at once.

    The values are those of the k pairs, followed by a few more.

    A block of at least k vectors finds equal eigenvalues, which a single start vector (Lanczos) can miss unnoticed;
    k well separated clusters have k - 1 of them. It also reads the matrix once for many products.
    """
    n, matrix, rows = problem.size, problem.matrix, _Rows(problem.size, problem.map_blocks)
    tolerance = problem.tolerance or _TOLERANCE[matrix.dtype.type]
    width = 4 * ceil((k + _EXTRA) / 4)  # a multiple of 4 suits BLAS
    bases, images = np.empty((2, n, _BASIS * width))
    projections = np.empty((_BASIS * width, _BASIS * width))
    used = 0
    worst: list[float] = []
    new = np.random.default_rng(0).standard_normal((n, width))
    if start is not None:  # the other columns stay random, so that no eigenvector is excluded
        new[:, : start.shape[1]] = start
    for _ in range(_PASSES):
        new = _orthonormal(new, bases[:, :used], rows)
        old, used = used, used + new.shape[1]
        basis, image = bases[:, :used], images[:, :used]
        basis[:, old:], image[:, old:] = new, matrix @ new
        side = rows.inner(basis, image[:, old:])
        projections[:used, old:used], projections[old:used, :old] = side, side[:old].T

        # LAPACK reads the lower triangle only; the last block is symmetric up to rounding.
        values, rotation = np.linalg.eigh(projections[:used, :used])
        values, rotation = values[::-1], rotation[:, ::-1]
        of_block = rotation[:, :width]
        residuals = rows.combine(basis, of_block * values[:width], minus=rows.combine(image, of_block))
        errors = _norms(residuals) / max(np.abs(values).max(), np.finfo(np.float64).tiny)
        if (errors[:k] <= tolerance).all():
            return values[: k + _EXTRA], rows.combine(basis, rotation[:, :k]), ()
        worst.append(float(errors[:k].max()))
        if n <= _DENSE_FALLBACK and _will_not_converge(worst, tolerance):
            break
        if used + width > _BASIS * width:
            kept = width + width // 2
            for array in (bases, images):
                array[:, :kept] = rows.combine(array[:, :used], rotation[:, :kept])
            projections[:kept, :kept] = np.diag(values[:kept])
            used, basis, rotation = kept, bases[:, :kept], np.eye(kept)
        new = residuals[:, errors > tolerance / 10]
    if n <= _DENSE_FALLBACK:
        return _solve_dense(problem, k)
    advice = f"; a larger {problem.bandwidth} may separate them" if problem.bandwidth else ""
    sentence = (
        f"the {k} largest eigenvalues are nearly equal to others (relative residual {worst[-1]:.0e} after {_PASSES} "
        f"passes); kept the approximation{advice}"
    )
    return values[: k + _EXTRA], rows.combine(basis, rotation[:, :k]), (Note(sentence, ConvergenceWarning),)


def _will_not_converge(worst: list[float], tolerance: float) -> bool:
    """Return whether errors that fall at the recent rate miss the tolerance in the remaining passes."""
    if len(worst) < _MIN_PASSES:
        return False
    per_pass = (worst[-1] / worst[-1 - _RATE_PASSES]) ** (1 / _RATE_PASSES)
    return bool(worst[-1] * per_pass ** (_PASSES - len(worst)) > tolerance)


def _orthonormal(new: Array, basis: Array, rows: _Rows) -> Array:
    """Return an orthonormal basis of the new columns without their part in the basis; drop dependent columns."""
    for _ in range(2):
        before = _norms(new)
        new = rows.combine(basis, rows.inner(basis, new), minus=new)
        products = rows.inner(new, new)
        after = np.sqrt(products.diagonal())
        scale = 1 / after.clip(min=np.finfo(np.float64).tiny)
        sizes, directions = np.linalg.eigh(products * scale * scale[:, None])
        kept = sizes > 1e-12 * sizes[-1]
        new = rows.combine(new, scale[:, None] * directions[:, kept] / np.sqrt(sizes[kept]))
        if (after > 0.1 * before).all() and sizes[0] > 0.01 * sizes[-1]:
            break  # nothing cancelled, so one pass leaves no more than rounding errors
    return new


def _norms(x: Array) -> Array:
    """Return the norms of the columns, several times faster than `numpy.linalg.norm`."""
    norms: Array = np.sqrt(np.einsum("ij,ij->j", x, x))
    return norms
