"""Score variables: the coordinates of any row, training or new, in the latent space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    """Scores Ω_c(x) H of rows x of one view, with the centring folded into coefficients and bias.

    Parameters
    ----------
    similarity : Similarity
        To the training rows.
    coefficients : (n_training, components)
    bias : (components,)
    largest : float
        The largest absolute similarity among training rows.
    tolerance : (components,)
        The rounding error of a score; scores within it are zero.
    """

    similarity: Similarity
    coefficients: Annotated[Array, FloatArray("train", "components")]
    bias: Annotated[Array, FloatArray("components")]
    largest: Annotated[float, Range(least=0)]
    tolerance: Annotated[Array, FloatArray("components", least=0)]

    @classmethod
    def learn(cls, similarity: Similarity, centering: Centering, latent: Array) -> ScoreMap:
        """Fold the centring into the latent space, and bound the rounding error of a score."""
        coefficients, bias = centering.fold(latent)
        # Rounding errors of the similarities, of a sum of so many of them, and (always in float64) of the folding,
        # whose terms may cancel.
        norms, terms = np.linalg.norm(latent, axis=0) + np.linalg.norm(coefficients, axis=0), np.sqrt(len(latent))
        if similarity.sparse:  # few terms, each at most the largest
            norms, terms = np.abs(latent).max(axis=0) + np.abs(coefficients).max(axis=0), _SPARSE_TERMS
        folded = np.abs(centering.means) @ np.abs(latent) + abs(centering.mean) * np.abs(latent.sum(axis=0))
        terms = terms + similarity.noise + 8
        tolerance = terms / 2 * np.finfo(similarity.dtype).eps * (centering.largest * norms + np.abs(bias))
        tolerance += 4 * terms * np.finfo(np.float64).eps * folded
        return cls(similarity, coefficients.astype(similarity.dtype), bias, centering.largest, tolerance)

    def without_training_gram(self) -> ScoreMap:
        """Return the map for new rows only: a precomputed Gram matrix of the training rows is dropped."""
        return replace(self, similarity=self.similarity.forget_training())

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

    def of_training_rows(self, map_blocks: Map = serial_map) -> Array:
        """Return the scores of the training rows as computed, block by block."""
        n = self.n_training

        def one(start: int) -> Array:
            rows = slice(start, min(start + _BLOCK_ROWS, n))
            scores: Array = self.similarity.training_block(rows, n) @ self.coefficients + self.bias
            return scores

        return np.concatenate(map_blocks(one, range(0, n, _BLOCK_ROWS)))


def ensemble_of_training_rows(
    score_maps: Mapping[str, ScoreMap], beta: Mapping[str, float], map_blocks: Map = serial_map
) -> Array:
    """Return Σ_v beta_v e_v of the training rows as computed, from their similarities."""
    parts = [beta[name] * score_map.of_training_rows(map_blocks) for name, score_map in score_maps.items()]
    total: Array = np.sum(parts, axis=0)
    return total


def zero_within(scores: Array, tolerance: Array) -> Array:
    """Set scores within their rounding error to zero, in place: their signs would depend on the batch."""
    scores[np.abs(scores) <= tolerance] = 0.0
    return scores
