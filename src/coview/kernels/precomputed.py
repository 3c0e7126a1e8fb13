"""Precomputed similarities: the view is a block of the Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coview.base.runtime import Map, serial_map
from coview.data.rows import as_array, largest_value
from coview.data.view import Array, Matrix
from coview.errors import InputError
from coview.kernels.base import Kernel, Similarity, mean_of_largest, refuse_underflow
from coview.neighbors.duplicates import Integers


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Similarities that the caller has computed; the view is a block of the Gram matrix.

    The view has shape (n_samples, n_samples) to fit, where it must be symmetric, and (n_samples, n_train) to predict.

    See Also
    --------
    RBF : A kernel that is computed from the view.

    Examples
    --------
    >>> import numpy as np
    >>> Precomputed()(np.array([[1.0, 0.5], [0.5, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    of_features: ClassVar[bool] = False

    def check_training(self, name: str, x: Matrix, dtype: type[np.floating[Any]] = np.float64) -> None:
        if x.shape[0] != x.shape[1]:
            raise InputError(
                f"view {name!r} is {x.shape[0]}×{x.shape[1]}; Precomputed() expects a square Gram matrix to fit"
            )
        blocks = (slice(start, start + 1024) for start in range(0, x.shape[0], 1024))  # no second matrix in memory
        largest = largest_value(x)
        if max(abs(x[rows] - x[:, rows].T).max() for rows in blocks) > 1e-7 * largest:
            raise InputError(f"view {name!r} is not symmetric; Precomputed() expects a symmetric Gram matrix to fit")
        refuse_underflow(self, name, largest, largest, dtype)

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        return PrecomputedSimilarity(rows, dtype)


@dataclass(frozen=True)
class PrecomputedSimilarity(Similarity):
    """Precomputed similarities, with the Gram matrix of the training rows as long as it is needed."""

    gram: Matrix | None = None
    dtype: type[np.floating[Any]] = np.float64

    def __call__(self, x: Matrix) -> Array:
        return as_array(x).astype(self.dtype, copy=False)

    def tile(self, rows: slice, columns: slice, out: Array) -> None:
        assert self.gram is not None
        out[...] = as_array(self.gram[rows, columns])

    def closeness(self, x: Matrix) -> Array:
        # Similarities do not show whether a row is equal to a training row.
        return mean_of_largest(self(x))

    def training_closeness(self, rows: Integers) -> Array:
        assert self.gram is not None
        similarities = as_array(self.gram[rows]).astype(np.float64)
        similarities[np.arange(len(rows)), rows] = np.inf
        return mean_of_largest(similarities, itself=True)

    def forget_training(self) -> Similarity:
        return PrecomputedSimilarity(None, self.dtype)
