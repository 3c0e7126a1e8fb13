"""Score variables: the coordinates of training and new samples in the latent space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coview.base.runtime import Map, serial_map
from coview.core.gram import Centering
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.errors import InputError
from coview.kernels import Float32Products, Similarity, in_float32, sum_error

_TERMS = 512  # similarities that are summed in float32; their sums are summed in float64
_COLUMNS = 16  # products with a multiple of 16 columns are the fastest
_LARGEST = 1.3  # no bounded similarity is larger in float32
_SPARSE_TERMS = 16.0  # rounding errors of a sum of about ten similarities
_LEAST_LOADING = 1e-3  # of a view that is unrelated to the ensemble


@dataclass(frozen=True)
class ScoreMap:
    """Scores Ω_c(x) H of rows x of one view, with the centring folded into coefficients and bias."""

    similarity: Similarity  # to the training samples
    coefficients: Array
    bias: Array
    largest: float  # the largest absolute similarity of training samples
    tolerance: Array  # the rounding error of a score

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
            # New rows may have larger norms. Scores without a finite tolerance are refused, as are infinite scores.
            sizes = np.maximum(np.abs(block).max(axis=1) / (self.largest or 1.0), 1.0)[:, None]
            scores[~np.isfinite(sizes[:, 0])] = np.inf
            return scores, sizes * self.tolerance

    def with_bound(self, x: Matrix) -> tuple[Array, Array]:
        """Return the scores as computed, and how much they can change (L2 norm) by rounding and by `zero_within`."""
        scores, tolerance = self.with_tolerance(x)
        return scores, 2 * np.linalg.norm(np.atleast_2d(tolerance), axis=1, keepdims=True)

    def in_float32(self) -> Float32Scores | None:
        """Return the same scores in float32; None if there is no bound of their error."""
        products = in_float32(self.similarity)
        return None if products is None else Float32Scores.of(self, products)

    def of_training_samples(self, map_blocks: Map = serial_map) -> Array:
        """Return the scores of the training samples as computed, block by block."""
        return self.similarity.training_product(self.coefficients, map_blocks) + self.bias


@dataclass(frozen=True)
class Float32Scores:
    """Scores ẽ that are computed in float32, with a bound of |ẽ - e| (L2 norm), where e is the score in float64.

    With the coefficients c_j of the training rows, |Σ_j k̃_j c_j - Σ_j k_j c_j| <= Σ_j |k̃_j - k_j| |c_j|, and the sum
    of the products k̃_j c_j in float32 has an error of at most γ Σ_j |k̃_j| |c_j|. For the bounds of |k̃_j - k_j| and γ
    see `coview.kernels.float32`. Both sums are two further columns of the product with the coefficients.
    """

    products: Float32Products
    coefficients: Array  # c_j / scale, |c_j| / scale, |c_j| / scale times the column error, and columns of zeros
    bias: Array
    scale: float  # divided out, because float32 has a small range
    total: float  # Σ_j |c_j| / scale
    constant: float  # the part of the error that is the same for all rows

    @classmethod
    def of(cls, scores: ScoreMap, products: Float32Products) -> Float32Scores:
        """Return the scores in float32, given the similarities in float32."""
        norms = np.linalg.norm(scores.coefficients, axis=1)
        scale = float(norms.max()) or 1.0
        columns = np.column_stack([scores.coefficients, norms]) / scale
        total, columns = float(columns[:, -1].sum()), columns[products.kept]
        columns = np.column_stack([columns, columns[:, -1] * products.column_errors])
        padded = np.zeros((len(columns), -(-columns.shape[1] // _COLUMNS) * _COLUMNS), np.float32)
        padded[:, : columns.shape[1]] = columns
        # Scores in float64 that are within their tolerance become zero; and the tolerance exceeds the rounding error of
        # adding the bias.
        constant = products.absolute * total * scale + 2 * float(np.linalg.norm(scores.tolerance))
        return cls(products, padded, scores.bias, scale, total, constant)

    def __call__(self, x: Matrix) -> tuple[Array, Array]:
        """Return the scores of these rows and the bounds of their errors, (rows, 1), infinite for some rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            block, errors = self.products(x)
            sums = np.zeros((len(block), self.coefficients.shape[1]))
            for start in range(0, block.shape[1], _TERMS):
                terms = slice(start, start + _TERMS)
                sums += block[:, terms] @ self.coefficients[terms]
        without = np.isinf(errors)
        sums[without], errors[without] = 0.0, 0.0
        n_components = len(self.bias)
        scores = self.scale * sums[:, :n_components] + self.bias
        absolute, of_columns = sums[:, n_components], sums[:, n_components + 1]
        if not self.products.products.nonnegative:
            absolute = np.full(len(sums), _LARGEST * self.total)
        bounds = ((errors + sum_error(_TERMS)) * absolute + of_columns) * self.scale + self.constant
        bounds[without] = np.inf
        # The factor covers rounding errors in the bounds themselves.
        return scores, 1.01 * bounds[:, None]


def zero_within(scores: Array, tolerance: Array) -> Array:
    """Set scores below their rounding error to zero, in place, because their signs would depend on the batch."""
    scores[np.abs(scores) <= tolerance] = 0.0
    return scores


def ensemble_scores(
    views: Views, of_views: Mapping[str, tuple[Array, Array]], beta: Mapping[str, float], n_components: int
) -> tuple[Array, Array]:
    """Return Σ_v beta_v e_v over the views of each sample, and the rounding errors."""
    scores = np.zeros((views.n_samples, n_components))
    error = np.zeros(1 if views.complete else scores.shape)
    for name, (of_view, tolerance) in of_views.items():
        if beta[name] == 0:  # the errors may be infinite
            continue
        rows = views.present.get(name, slice(None))
        scores[rows] += beta[name] * of_view
        if views.complete:
            error = error + beta[name] * tolerance
        else:
            error[rows] += beta[name] * tolerance
    return scores, error


def divided(scores: Array, error: Array, divisors: Array | None) -> tuple[Array, Array]:
    """Return scores and errors of samples that lack views divided by `divisors`; the scores are changed in place."""
    if divisors is None:
        return scores, error
    scores /= divisors
    return scores, np.broadcast_to(error, scores.shape) / divisors


def divisors_of(views: Views, beta: Mapping[str, float], loadings: Mapping[str, float]) -> Array:
    """Return the sum of beta times loading over the views of each sample, 1 for all views, (n_samples, 1)."""
    total, weight = np.zeros(views.n_samples), np.zeros(views.n_samples)
    for name in views:
        rows = views.present.get(name, slice(None))
        total[rows] += beta[name] * loadings[name]
        weight[rows] += beta[name]
    if not weight.all():
        without = np.flatnonzero(weight == 0)
        raise InputError(
            f"{len(without)} of {views.n_samples} samples (first: row {without[0]}) have only views with beta 0; "
            "drop them, or give one of their views a positive beta"
        )
    divisors: Array = np.where(views.has_all(), 1.0, np.maximum(total, _LEAST_LOADING))[:, None]
    return divisors


def loadings_of(of_views: Mapping[str, Array], beta: Mapping[str, float]) -> dict[str, float]:
    """Return for each view <e_v, e> / <e, e>, with e the ensemble scores of training samples with all views.

    The loadings times beta sum to 1, up to a lower bound of a loading. They are equal if there are no such samples.
    """
    if not of_views:
        return dict.fromkeys(beta, 1 / sum(beta.values()))
    ensemble = np.sum([beta[name] * scores for name, scores in of_views.items()], axis=0)
    squares = float((ensemble**2).sum()) or 1.0
    return {name: max(float((scores * ensemble).sum()) / squares, _LEAST_LOADING) for name, scores in of_views.items()}
