"""Score variables: the coordinates of training and new samples in the latent space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from coview.core.gram import Centering
from coview.kernels import Similarity
from coview.runtime import Map, serial_map
from coview.state import FloatArray, Range
from coview.views import Array, Matrix

_BLOCK_ROWS = 512
_SPARSE_TERMS = 16.0  # rounding errors of a sum of about ten similarities


@dataclass(frozen=True)
class ScoreMap:
    """Scores Ω_c(x) H of rows x of one view, with the centring folded into coefficients and bias."""

    similarity: Similarity  # to the training samples
    coefficients: Annotated[Array, FloatArray("_observed", "components")]
    bias: Annotated[Array, FloatArray("components")]
    largest: Annotated[float, Range(least=0)]  # the largest absolute similarity of training samples
    tolerance: Annotated[Array, FloatArray("components", least=0)]  # the rounding error of a score

    @classmethod
    def learn(cls, similarity: Similarity, centering: Centering, latent: Array) -> ScoreMap:
        """Return the map of a latent space, with the centring folded in and a bound of the rounding error.

        If all training rows are equal, all scores are zero: a graph of such rows would score each like the first one.
        """
        latent = latent if similarity.informative else np.zeros_like(latent)
        coefficients, bias = centering.fold(latent)
        # Rounding errors of the similarities, of their sum, and (always in float64) of the folding, whose terms may
        # cancel.
        norms, terms = np.linalg.norm(latent, axis=0) + np.linalg.norm(coefficients, axis=0), np.sqrt(len(latent))
        if similarity.sparse:  # few terms, each at most the largest
            norms, terms = np.abs(latent).max(axis=0) + np.abs(coefficients).max(axis=0), _SPARSE_TERMS
        folded = np.abs(centering.means) @ np.abs(latent) + abs(centering.mean) * np.abs(latent.sum(axis=0))
        terms = terms + similarity.noise + 8
        tolerance = terms / 2 * np.finfo(similarity.dtype).eps * (centering.largest * norms + np.abs(bias))
        tolerance += 4 * terms * np.finfo(np.float64).eps * folded
        return cls(similarity, coefficients.astype(similarity.dtype), bias, centering.largest, tolerance)

    @property
    def n_training(self) -> int:
        return len(self.coefficients)

    def __call__(self, x: Matrix) -> Array:
        """Return the scores of these rows, (rows, components)."""
        return zero_within(*self.with_tolerance(x))

    def with_tolerance(self, x: Matrix) -> tuple[Array, Array]:
        """Return the scores of these rows as computed, and their rounding errors."""
        with np.errstate(over="ignore", invalid="ignore"):
            block = self.similarity.block(x)
            scores: Array = block @ self.coefficients + self.bias
        if self.similarity.bounded:
            return scores, self.tolerance
        sizes = np.maximum(np.abs(block).max(axis=1) / (self.largest or 1.0), 1.0)  # new rows may have larger norms
        return scores, sizes[:, None] * self.tolerance

    def of_training_samples(self, map_blocks: Map = serial_map) -> Array:
        """Return the scores of the training samples as computed, block by block."""
        n = self.n_training

        def one(start: int) -> Array:
            rows = slice(start, min(start + _BLOCK_ROWS, n))
            return self.similarity.training_block(rows, n) @ self.coefficients + self.bias

        return np.concatenate(map_blocks(one, range(0, n, _BLOCK_ROWS)))


def zero_within(scores: Array, tolerance: Array) -> Array:
    """Set scores below their rounding error to zero, in place, because their signs would depend on the batch."""
    scores[np.abs(scores) <= tolerance] = 0.0
    return scores
