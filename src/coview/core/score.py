"""Score variables: where any row, new or old, lies in the shared latent space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coview.core.gram import Centering
from coview.kernels import Similarity
from coview.views import Array, Matrix

_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class ScoreMap:
    """The road from rows of one view to their scores, Ω_c(x) H, with the centring folded into the coefficients."""

    similarity: Similarity
    coefficients: Array
    bias: Array
    floor: Array

    @classmethod
    def learn(cls, similarity: Similarity, centering: Centering, latent: Array, largest: float) -> ScoreMap:
        """Fold centring and latent space together; `largest` is the largest similarity among training rows."""
        coefficients, bias = centering.fold(latent)
        # A score smaller than its own rounding error is zero: else its sign would depend on the batch it came in.
        floor = 16 * _EPS * largest * np.abs(coefficients).sum(axis=0)
        return cls(similarity, coefficients, bias, floor)

    def __call__(self, x: Matrix) -> Array:
        """Return the scores of these rows, (rows, components)."""
        scores = self.similarity(x) @ self.coefficients
        scores += self.bias
        scores[np.abs(scores) <= self.floor] = 0.0
        return scores
