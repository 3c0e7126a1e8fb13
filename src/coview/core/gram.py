"""Gram matrices: their degrees, and the weighted centring learnt from training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coview.errors import InputError
from coview.kernels import Given, Kernel, Similarity
from coview.views import Array, Matrix

_EPS = np.finfo(np.float64).eps


def training_gram(name: str, kernel: Kernel, similarity: Similarity, x: Matrix) -> Array:
    """Return the kernel matrix of the training rows (n×n), or say which view has none that can be used."""
    with np.errstate(over="ignore", invalid="ignore"):
        gram = similarity(x)
    if not np.isfinite(gram).all():
        raise InputError(f"view {name!r} gives similarities too large to compute with under {kernel}; scale the view")
    if isinstance(similarity, Given):
        if gram.shape[0] != gram.shape[1]:
            raise InputError(
                f"view {name!r} is {gram.shape[0]}×{gram.shape[1]}; Precomputed() fits a square Gram matrix"
            )
        if not np.allclose(gram, gram.T, rtol=1e-7, atol=1e-7 * np.abs(gram).max()):
            raise InputError(f"view {name!r} is not symmetric; Precomputed() fits a symmetric Gram matrix")
    return gram


def positive_degrees(name: str, kernel: Kernel, gram: Array) -> Array:
    """Return the row sums of a Gram matrix; the methods divide by them, so they must be positive."""
    degree: Array = gram.sum(axis=1)
    # A sum that cancels down to its own rounding error counts as zero.
    rounding = _EPS * gram.shape[0] * np.abs(gram).sum(axis=1) if gram.min() < 0 else 0.0
    bad = int(np.count_nonzero(degree <= rounding))
    if bad:
        raise InputError(
            f"view {name!r} has {bad} of {len(degree)} samples with degree <= 0 under {kernel}; "
            "scale the view to be non-negative, drop all-zero samples, or use RBF()"
        )
    return degree


@dataclass(frozen=True)
class Centering:
    """Weighted centring in feature space, learnt from training rows and applied to any block of rows.

    Subtracting the weighted mean w of the training rows from both sides turns a block K into
    K - (K w) 1ᵀ - 1 aᵀ + c, where a = Ω w and c = wᵀ Ω w come from the training Gram matrix Ω. No statistic of the
    block itself is used, so a row gets the same answer alone and in any batch.
    """

    weights: Array
    means: Array
    mean: float

    @classmethod
    def learn(cls, gram: Array, weights: Array) -> Centering:
        """Learn from a training Gram matrix; the weights are scaled to sum to 1."""
        weights = weights / weights.sum()
        means = gram @ weights
        return cls(weights, means, float(weights @ means))

    def centre(self, block: Array) -> Array:
        """Return the centred block, (rows, training rows)."""
        centred: Array = block - (block @ self.weights)[:, None]
        centred -= self.means - self.mean
        return centred

    def fold(self, latent: Array) -> tuple[Array, Array]:
        """Return coefficients and bias with which `block @ coefficients + bias` equals `centre(block) @ latent`."""
        total = latent.sum(axis=0)
        return latent - np.outer(self.weights, total), self.mean * total - self.means @ latent
