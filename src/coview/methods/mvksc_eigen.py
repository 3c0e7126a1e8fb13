"""Eigenpairs of coupled matrices, one for each view, without forming the coupled matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from coview.core.tiles import SymmetricTiles
from coview.data.view import Array
from coview.errors import InputError, Note

_TOLERANCE = {np.float64: 1e-10, np.float32: 1e-5}  # residuals relative to the largest eigenvalue
_LEAST = {np.float64: 2e-13, np.float32: 1e-6}  # squared norms in the inner product that count as zero
_NEGLIGIBLE = 1e-7  # a residual whose square is below the rounding error of the inner product
_ZERO = 1e-12  # eigenvalues below count as zero, relative to the largest
_EXTRA = 3  # vectors beyond the requested ones, so that the last of these converges as well
_BASIS = 8  # blocks in the basis before it is condensed
_PASSES = 150
_DENSE_ROWS = 600  # rows of all views up to which LAPACK solves the problem
_DENSE_FALLBACK_ROWS = 4000  # and up to which it solves a problem that has not converged


@dataclass(frozen=True)
class CoupledPairs:
    """Eigenvalues in decreasing order, the part of each eigenvector in each view, and its product with the matrix.

    Vectors and images (the products) have shape (views, samples, k). The vectors of an eigenvalue that is not positive
    are zero, because the views do not agree in them.
    """

    values: Array
    vectors: Array
    images: Array
    notes: tuple[Note, ...] = ()  # if they have not converged


def coupled_eigenpairs(matrices: Sequence[SymmetricTiles], shrink: Array, k: int, bandwidth: str = "") -> CoupledPairs:
    """Return the k algebraically largest λ with Σ_{u≠v} G_u x_u = λ (I - c_v G_v) x_v in every view v.

    Small problems are solved by LAPACK, cubic in the number of rows of all views; all others by a block Krylov method.

    The matrices G_v are positive semi-definite, and c_v (`shrink`) times the largest eigenvalue of G_v is below 1.
    """
    values, images, notes = _solve(matrices, shrink, k, bandwidth)
    missing = max(0, k - len(values))
    values = np.pad(values[:k], (0, missing))
    images = np.pad(images[:, :, :k], ((0, 0), (0, 0), (0, missing)))
    positive = values > _ZERO * np.abs(values).max(initial=0.0)
    images = images * positive
    # The equation gives the vectors from their images, without a part in the null space of the matrices.
    vectors = _coupling(images) / np.where(positive, values, 1.0) + shrink[:, None, None] * images
    # One sign for all views of a pair.
    largest = np.abs(_flat(vectors)).argmax(axis=0)
    vectors *= np.where(_flat(vectors)[largest, np.arange(k)] < 0, -1.0, 1.0)
    return CoupledPairs(values, vectors, _multiply(matrices, vectors), notes)


def _solve(
    matrices: Sequence[SymmetricTiles], shrink: Array, k: int, bandwidth: str
) -> tuple[Array, Array, tuple[Note, ...]]:
    """Return at least k eigenvalues in decreasing order (fewer if fewer exist), their images, and warnings."""
    rows = len(matrices) * matrices[0].shape[0]
    if rows <= _DENSE_ROWS:
        return *_solve_coupled_dense(matrices, shrink), ()
    values, images, error = _coupled_krylov(matrices, shrink[:, None, None], k)
    if error <= _TOLERANCE[matrices[0].dtype.type]:
        return values, images, ()
    dense = rows <= _DENSE_FALLBACK_ROWS
    outcome = "used the dense solver" if dense else "kept the approximation"
    advice = f"; another {bandwidth} may separate them" if bandwidth else ""
    sentence = (
        f"the {k} largest coupled eigenvalues are nearly equal to others or to zero (relative residual "
        f"{error:.0e}); {outcome}{advice}"
    )
    solution = _solve_coupled_dense(matrices, shrink) if dense else (values, images)
    return *solution, (Note(sentence, ConvergenceWarning),)


def _coupled_krylov(matrices: Sequence[SymmetricTiles], c: Array, k: int) -> tuple[Array, Array, float]:
    """Return eigenvalues, images and the largest relative residual of the first k pairs.

    Multiplied by G_v the problem is a symmetric pencil, which depends on vectors x_v only through their images G_v x_v.
    Rayleigh-Ritz in its inner product ⟨x, y⟩ = Σ_v x_vᵀ G_v (I - c_v G_v) y_v, on a basis that grows by residuals,
    uses only products with each view's matrix. The inner product does not see the null space of G_v, in which errors
    could grow. Therefore the basis starts from vectors that the equation gives for random images.
    """
    shape, width = (len(matrices), matrices[0].shape[0]), 4 * ceil((k + _EXTRA) / 4)
    tolerance = _TOLERANCE[matrices[0].dtype.type]

    basis, images = np.empty((*shape, 0)), np.empty((*shape, 0))
    new = _coupling(_multiply(matrices, np.random.default_rng(0).standard_normal((*shape, width))))
    new_images = _multiply(matrices, new)
    # About the largest eigenvalue of all matrices, as the unit of rounding errors.
    unit = float((np.linalg.norm(_flat(new_images), axis=0) / _lengths(new)).max())
    least = _LEAST[matrices[0].dtype.type] * unit
    values, rotation, error = np.empty(0), np.empty((0, 0)), 0.0
    for _ in range(_PASSES):
        new, new_images = _orthonormal_in_pencil(new, new_images, basis, images, c, least)
        if new.shape[2] == 0:  # the basis is complete
            error = 0.0 if error <= _NEGLIGIBLE else error
            break
        basis, images = np.concatenate([basis, new], axis=2), np.concatenate([images, new_images], axis=2)
        total, flat = images.sum(axis=0), _flat(images)
        values, rotation = np.linalg.eigh(total.T @ total - flat.T @ flat)
        values, rotation = values[::-1], rotation[:, ::-1]

        vectors, image = basis @ rotation[:, :width], images @ rotation[:, :width]
        new = _coupling(image) - values[:width] * (vectors - c * image)
        new_images = _multiply(matrices, new)
        # In the norm of the pencil, up to a factor near 1.
        errors = np.sqrt(np.abs((new * new_images).sum(axis=(0, 1)))) / np.abs(values).max()
        error = float(errors[:k].max())
        if error <= tolerance:
            break
        if basis.shape[2] + width > _BASIS * width:
            kept = rotation[:, : 2 * width]
            basis, images = basis @ kept, images @ kept
        unconverged = errors > tolerance / 10
        new, new_images = new[:, :, unconverged], new_images[:, :, unconverged]
    return values, images @ rotation, error


def _orthonormal_in_pencil(
    new: Array, image: Array, basis: Array, images: Array, c: Array, least: float
) -> tuple[Array, Array]:
    """Return the new vectors orthonormalised in the inner product of the pencil, and images; drop dependent ones."""
    for _ in range(2):
        lengths = _lengths(new)
        new, image = new / lengths, image / lengths
        overlap = _flat(basis - c * images).T @ _flat(image)
        new, image = new - basis @ overlap, image - images @ overlap
        inner = _flat(new - c * image).T @ _flat(image)
        sizes, directions = np.linalg.eigh((inner + inner.T) / 2)
        _require_positive(sizes, 1e3 * least)
        kept = sizes > least
        change = directions[:, kept] / np.sqrt(sizes[kept])
        new, image = new @ change, image @ change
    return new, image


def _require_positive(sizes: Array, rounding: float) -> None:
    if sizes.min(initial=0.0) < -rounding:
        raise InputError(
            "gamma is too large for these kernels, or one of them is not positive semi-definite; use gamma below "
            "n_samples divided by the largest eigenvalue of a view's centred and normalised kernel matrix, which is at "
            "most 1 for kernels without negative values"
        )


def _solve_coupled_dense(matrices: Sequence[SymmetricTiles], shrink: Array) -> tuple[Array, Array]:
    """Return all eigenvalues and their images, from the problem reduced to the range of the matrices.

    With G_v = Q_v Λ_v Q_vᵀ and x_v = Q_v (Λ_v - c_v Λ_v²)^{-1/2} z_v the reduced problem is an ordinary symmetric one,
    Fᵀ F z = λ z without the diagonal blocks, F_v = Q_v Λ_v (Λ_v - c_v Λ_v²)^{-1/2}.
    """
    factors = []
    for matrix, c in zip(matrices, shrink, strict=True):
        size, directions = scipy.linalg.eigh(matrix.to_dense(), check_finite=False)
        least = _LEAST[matrix.dtype.type]
        _require_positive(size, 1e3 * least * size[-1] + 4 * np.finfo(matrix.dtype).eps)
        seen = size > max(1e-10, least) * size[-1]
        _require_positive(1 - c * size[seen], 0.0)
        factors.append(directions[:, seen] * np.sqrt(size[seen] / (1 - c * size[seen])))
    all_factors = np.hstack(factors)
    reduced = all_factors.T @ all_factors
    ends = np.cumsum([0, *(factor.shape[1] for factor in factors)])
    for start, end in pairwise(ends):
        reduced[start:end, start:end] = 0
    values, vectors = scipy.linalg.eigh(reduced, check_finite=False)
    images = [factor @ vectors[start:end] for factor, (start, end) in zip(factors, pairwise(ends), strict=True)]
    return values[::-1], np.stack(images)[:, :, ::-1]


def _coupling(images: Array) -> Array:
    """Return for each view the sum of the other views' images."""
    return images.sum(axis=0) - images


def _multiply(matrices: Sequence[SymmetricTiles], x: Array) -> Array:
    return np.stack([matrix @ part for matrix, part in zip(matrices, x, strict=True)])


def _lengths(x: Array) -> Array:
    return np.linalg.norm(_flat(x), axis=0).clip(min=np.finfo(np.float64).tiny)


def _flat(x: Array) -> Array:
    """Return the views below each other, (views × samples, vectors)."""
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])
