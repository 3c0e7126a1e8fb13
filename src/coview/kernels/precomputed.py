"""Similarities that the caller computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coview.errors import InputError
from coview.kernels.base import Kernel, Similarity
from coview.rows import as_array
from coview.runtime import Map, serial_map
from coview.state import Sizes, require
from coview.views import Array, Matrix


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The view is itself a block of Gram matrix: samples by samples to fit, samples by training samples to predict."""

    of_features: ClassVar[bool] = False

    def check_training(self, name: str, x: Matrix) -> None:
        if x.shape[0] != x.shape[1]:
            raise InputError(f"view {name!r} is {x.shape[0]}×{x.shape[1]}; Precomputed() fits a square Gram matrix")
        steps = (slice(start, start + 1024) for start in range(0, x.shape[0], 1024))  # no second matrix in memory
        if max(abs(x[rows] - x[:, rows].T).max() for rows in steps) > 1e-7 * abs(x).max():
            raise InputError(f"view {name!r} is not symmetric; Precomputed() fits a symmetric Gram matrix")

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        return PrecomputedSimilarity(rows, dtype)


@dataclass(frozen=True)
class PrecomputedSimilarity(Similarity):
    """Similarities that the caller computed: the Gram matrix of the training rows, while it is needed."""

    gram: Matrix | None = None
    dtype: type[np.floating[Any]] = np.float64

    def _check_state(self, sizes: Sizes) -> None:
        require(self.gram is None, "expected no Gram matrix")

    def __call__(self, x: Matrix) -> Array:
        return as_array(x).astype(self.dtype, copy=False)

    def tile(self, rows: slice, columns: slice, out: Array) -> None:
        assert self.gram is not None
        out[...] = as_array(self.gram[rows, columns])

    def forget_training(self) -> Similarity:
        return PrecomputedSimilarity(None, self.dtype)
