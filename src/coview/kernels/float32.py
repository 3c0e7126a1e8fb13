"""Similarities in float32, with a bound of their difference from the same similarities in float64.

The bounds hold for any order of summation and any data. Here u = 2^-24 is the largest relative error of one rounding in
float32, and γ_n = n u / (1 - n u).

- **Products.** A sum of n products of rounded factors has an error of at most γ_{n+2} Σ|s_i t_i|: each term is rounded
  at most n times, and its two factors once (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).
  One more unit covers the rounding errors of the float64 similarity.
- **RBF.** The exponent s·t - E(s) - E(t), with E(s) = |s|² / 2, is one product of n columns. Because |s| |t| is at most
  E(s) + E(t), its error is at most 2 γ (E(s) + E(t)). An error ε <= 1/4 of the exponent changes the similarity by less
  than the fraction 1.3 ε of it. This holds for rows with E <= F = 1 / (16 γ). Training rows t with E(t) > F are left
  out. There is then a bound only for rows s with √E(s) <= √F - √70, whose similarity to t is below 2^-100, because it
  is at most exp(-(√E(s) - √E(t))²).
- **Powers of cosines.** Rows have the norm 1, so a cosine has an error of at most γ. The power p then changes by less
  than 1.3 p γ, if p γ <= 1/4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.data.rows import column
from coview.data.view import Array, Matrix
from coview.kernels.products import Cosine, NormalizedPolynomial, Products
from coview.kernels.rbf import RBF, GaussianProducts

_UNIT = 2.0**-24
_FUNCTION = 16 * _UNIT  # relative error of exp and power: NumPy computes them to 4 units in the last place, of 2 u each
_SECOND_ORDER = 1.3  # (e^ε - 1) / ε for ε <= 1/4 is less
_MOST = 0.25
_UNDERFLOW = 2.0**-100  # numbers below 2^-126 have fewer digits
_LEFT_OUT = 70.0  # more than minus the logarithm of it


def sum_error(n: int) -> float:
    """Return the bound γ of the error of a sum of n products in float32, relative to the sum of absolute values."""
    units = (n + 3) * _UNIT
    return units / (1 - units) if units < _MOST else np.inf


@dataclass(frozen=True)
class Float32Products:
    """Similarities k̃ to some of the training rows, with |k̃ - k| <= (row error + column error) |k̃| + `absolute`.

    Training rows that are left out have |k| <= `absolute`.
    """

    products: Products
    kept: Array  # which training rows are not left out
    absolute: float
    of_functions: float
    per_exponent: float = 0.0  # RBF: relative error for each unit of E
    largest_exponent: float = np.inf  # RBF: E of rows beyond which there is no bound

    def __call__(self, x: Matrix) -> tuple[Array, Array]:
        """Return the similarities of these rows, and the row errors."""
        kernel, products = self.products.kernel, self.products
        factor = products.factor_of(x)
        errors = np.full(x.shape[0], self.of_functions)
        if isinstance(kernel, RBF):
            exponents = -column(factor, -1).astype(np.float64)
            errors += self.per_exponent * exponents
            errors[exponents > self.largest_exponent] = np.inf
        return products.of_factor(factor), errors

    @property
    def column_errors(self) -> Array:
        """The part of the relative error that depends on the training row."""
        factor = self.products.factor
        return (
            -self.per_exponent * column(factor, -1).astype(np.float64) if self.per_exponent else np.zeros(len(factor))
        )


def in_float32(similarity: Any) -> Float32Products | None:
    """Return a float64 similarity in float32; None if it is sparse or has no bound of the error."""
    if not isinstance(similarity, Products) or similarity.dtype != np.float64 or sp.issparse(similarity.factor):
        return None
    error, of_functions = sum_error(similarity.factor.shape[1]), _SECOND_ORDER * _FUNCTION
    if isinstance(similarity, GaussianProducts):
        limit = 1 / (16 * error)
        kept = -similarity.factor[:, -1] <= limit
        if not kept.all():
            root = math.sqrt(limit) - math.sqrt(_LEFT_OUT)
            limit = root**2 if root > 0 else -1.0  # negative: no row has a bound
        products = Products(similarity.kernel, similarity.factor[kept].astype(np.float32), similarity.centre)
        return Float32Products(products, kept, _UNDERFLOW, of_functions, 2 * _SECOND_ORDER * error, limit)
    if isinstance(similarity.kernel, (Cosine, NormalizedPolynomial)):
        change = getattr(similarity.kernel, "degree", 1) * error
        if change > _MOST:
            return None
        products = Products(similarity.kernel, similarity.factor.astype(np.float32))
        kept = np.ones(len(similarity.factor), dtype=bool)
        return Float32Products(products, kept, _SECOND_ORDER * change + _UNDERFLOW, of_functions)
    return None
