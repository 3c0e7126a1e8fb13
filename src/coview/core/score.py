"""Score variables: where any row, new or old, lies in the shared latent space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coview.core.gram import Centering
from coview.kernels import Similarity
from coview.views import Array, Matrix

_BLOCK_ROWS = 512
_FEW = 16.0  # roundings of a sum of some ten similarities


@dataclass(frozen=True)
class ScoreMap:
    """The road from rows of one view to their scores, Ω_c(x) H, with the centring folded into the coefficients."""

    similarity: Similarity
    coefficients: Array
    bias: Array
    largest: float
    floor: Array

    @classmethod
    def learn(cls, similarity: Similarity, centering: Centering, latent: Array, largest: float) -> ScoreMap:
        """Fold centring and latent space together; `largest` is the largest similarity among training rows."""
        coefficients, bias = centering.fold(latent)
        # What rounding may leave where a score is zero: of similarities and of a sum of so many of them, and (always in
        # float64) of the folding, whose terms may cancel.
        sizes, terms = np.linalg.norm(latent, axis=0) + np.linalg.norm(coefficients, axis=0), np.sqrt(len(latent))
        if similarity.sparse:  # few terms, each at most the largest
            sizes, terms = np.abs(latent).max(axis=0) + np.abs(coefficients).max(axis=0), _FEW
        folded = np.abs(centering.means) @ np.abs(latent) + abs(centering.mean) * np.abs(latent.sum(axis=0))
        terms = terms + similarity.noise + 8
        floor = terms / 2 * np.finfo(similarity.dtype).eps * (largest * sizes + np.abs(bias))
        floor += 4 * terms * np.finfo(np.float64).eps * folded
        return cls(similarity.forget_training(), coefficients.astype(similarity.dtype), bias, largest, floor)

    @property
    def n_training(self) -> int:
        return len(self.coefficients)

    def __call__(self, x: Matrix) -> Array:
        """Return the scores of these rows, (rows, components)."""
        return silence(*self.with_error(x))

    def with_error(self, x: Matrix) -> tuple[Array, Array]:
        """Return the scores of these rows as computed, and how far rounding may have moved them."""
        with np.errstate(over="ignore", invalid="ignore"):
            block = self.similarity.block(x)
            scores: Array = block @ self.coefficients + self.bias
        if self.similarity.bounded:
            return scores, self.floor
        sizes = np.maximum(np.abs(block).max(axis=1) / (self.largest or 1.0), 1.0)  # new rows may be longer
        return scores, sizes[:, None] * self.floor

    def of_training_rows(self) -> Array:
        """Return the scores of the rows that the map was learnt from."""
        return silence(self.of_training_as_computed(), self.floor)

    def of_training_as_computed(self) -> Array:
        """Return the same with what rounding left of scores that are zero."""
        n = self.n_training
        scores = np.empty((n, len(self.bias)))
        for start in range(0, n, _BLOCK_ROWS):
            rows = slice(start, min(start + _BLOCK_ROWS, n))
            scores[rows] = self.similarity.training_block(rows, n) @ self.coefficients + self.bias
        return scores


def silence(scores: Array, floor: Array) -> Array:
    """Set scores within their rounding error to zero: else their signs would depend on the batch they came in."""
    scores[np.abs(scores) <= floor] = 0.0
    return scores
