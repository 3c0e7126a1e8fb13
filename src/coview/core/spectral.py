"""Similarity graphs for spectral methods: both sides scaled in place, and a low-rank term that is never formed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coview.core.eigen import Eigenpairs, Problem, top_eigenpairs
from coview.core.gram import Gram
from coview.core.tiles import SymmetricTiles
from coview.views import Array


def scale_both_sides(matrix: SymmetricTiles, scale: Array) -> SymmetricTiles:
    """Multiply the rows and the columns by these numbers, in place, and return the matrix."""

    def one(t: int, rows: slice, columns: slice) -> None:
        matrix.tiles[t] *= scale[rows, None]
        matrix.tiles[t] *= scale[columns]

    matrix.for_each(one)
    return matrix


def normalised_similarity(gram: Gram) -> SymmetricTiles:
    """Return D^{-1/2} K D^{-1/2}, with D the degrees; it takes the place of the Gram matrix K."""
    return scale_both_sides(gram.matrix, 1 / np.sqrt(gram.positive_degrees()))


@dataclass(frozen=True)
class PlusLowRank:
    """The symmetric matrix L + F Fᵀ for a factor F of shape (samples, few)."""

    matrix: SymmetricTiles
    factor: Array

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.factor), len(self.factor)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.factor.dtype

    @property
    def trace(self) -> float:
        return float(self.matrix.diagonal().sum() + np.square(self.factor).sum())

    def __matmul__(self, x: Array) -> Array:
        product: Array = self.factor @ (self.factor.T @ x) + self.matrix @ x
        return product

    def to_dense(self) -> Array:
        dense: Array = self.factor @ self.factor.T + self.matrix.to_dense()
        return dense

    def top_eigenpairs(self, k: int, start: Array | None = None) -> Eigenpairs:
        """Return the k algebraically largest eigenpairs, sought from a start that may be near them."""
        return top_eigenpairs(Problem(self, exponent=0, trace=self.trace), k, start)
