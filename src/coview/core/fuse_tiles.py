"""Fusion in tiles, for Gram matrices of which at least one is dense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from coview.core.eigen import Problem
from coview.core.gram import Centering, Gram, Grams
from coview.core.tiles import SymmetricTiles
from coview.data.view import Array

# The largest entry of the running product is kept below 2^60: float32 then has room for one more view.
_LARGEST_EXPONENT = 60
# Typical entries of the running product between 2^-30 and 2^30 are not rescaled: float32 ends at 2^-126.
_TYPICAL_EXPONENT = 30
_SAMPLE_ROWS = 64


@dataclass(frozen=True)
class WeightedSum:
    """Σ_v kappa_v Ω_v of the centred Gram matrices, stored divided by root on both sides and by 2^exponent."""

    matrix: SymmetricTiles
    kappa: Mapping[str, float]
    root: Array | None = None
    exponent: int = 0

    def scores(self, latent: Array, beta: Mapping[str, float]) -> Array | None:
        """Return Σ_v beta_v Ω_v H if beta is proportional to kappa, otherwise None."""
        ratios = {beta[name] / weight if weight else np.nan for name, weight in self.kappa.items()}
        if max(ratios) - min(ratios) > 1e-12 * max(ratios) or np.isnan(list(ratios)).any():
            return None
        if self.root is None:
            scores = self.matrix @ latent
        else:
            root = self.root[:, None]
            scores = np.ldexp(root * (self.matrix @ (root * latent)), self.exponent)
        scores *= max(ratios)
        return scores


class TiledFusion:
    """The sum and the product of the views added so far, rho Σ_v kappa_v Ω_v + (1 - rho) ⊙_v Ω_v, in tiles.

    The memory holds the current view, the sum and the product, for any number of views. The weights are
    kappa × 2^kappa_exponent. If typical entries of the product become small (or large), the next views are multiplied
    by a power of two that makes their typical entry about 1, so that the product of many small entries is neither zero
    nor denormal. The powers are undone when sum and product are combined.

    A pair of samples of which one lacks a view has the entry 0 in the sum, and in the product the mean absolute entry
    of the view, so that products over fewer views have a comparable size.
    """

    def __init__(self, grams: Grams, kappa: Mapping[str, float], kappa_exponent: int, rho: float) -> None:
        n, dtype, workers = grams.n_samples, grams.dtype, grams.workers
        self._kappa, self._kappa_exponent, self._rho = kappa, kappa_exponent, rho
        self._added = SymmetricTiles(n, dtype, workers, allocate=workers.empty)
        self._added_diagonal = np.zeros(n)
        self._multiplied = SymmetricTiles(n, dtype, workers, allocate=workers.empty) if self._rho < 1 else None
        self._multiplied_diagonal = np.ones(n)
        self._exponent = 0  # the true product is the stored one times 2^exponent
        self._typical = 0  # the power of two near typical entries of the stored product
        self._started = False

    def add(self, gram: Gram, centering: Centering) -> None:
        """Add the next view; its buffer is overwritten."""
        added, multiplied, source = self._added, self._multiplied, gram.matrix
        kappa, first = self._kappa[gram.name], not self._started
        diagonal = centering.centred_diagonal(source.diagonal())
        if gram.is_zero_up_to_rounding(diagonal) and gram.is_zero_up_to_rounding(_largest_centred(source, centering)):
            self._add_zero()
            return
        typical = _typical_exponent(source, centering) if multiplied is not None else 0
        centred, missing, factors = False, 0.0, diagonal
        if multiplied is not None and centering.present is not None:
            centred, missing = True, _centre_and_average(source, centering)
            factors = np.where(centering.present, diagonal, missing)
        shift = self._shift(typical, factors) if multiplied is not None else 0
        weight, factor = source.dtype.type(kappa), source.dtype.type(2.0**shift)

        def accumulate(t: int, rows: slice, columns: slice) -> None:
            tile = source.tiles[t] if centred else centering.centred(source.tiles[t], rows, columns)
            if first:
                np.multiply(tile, weight, out=added.tiles[t])
            else:
                added.tiles[t] += tile if kappa == 1 else weight * tile
            if multiplied is not None:
                centering.fill_missing(tile, rows, columns, missing)
                if shift:
                    tile *= factor
                if first:
                    multiplied.tiles[t][...] = tile
                else:
                    multiplied.tiles[t] *= tile

        added.for_each(accumulate)
        self._added_diagonal += kappa * diagonal
        if multiplied is not None:
            self._multiplied_diagonal *= np.ldexp(factors, shift)
            self._exponent -= shift
        self._started = True

    def _add_zero(self) -> None:
        """Add a view whose rows are all equal: its centred matrix is zero up to rounding."""
        for matrix in (self._multiplied, *((self._added,) if not self._started else ())):
            if matrix is not None:
                matrix.for_each(lambda t, rows, columns, tiles=matrix.tiles: tiles[t].fill(0))
        self._multiplied_diagonal[:] = 0
        self._started = True

    def _shift(self, typical: int, diagonal: Array) -> int:
        """Return the exponent that brings typical entries near 1; 0 if not needed, less to avoid overflow."""
        # No entry of a product of positive semi-definite matrices exceeds its diagonal; graphs have entries up to 4.
        with np.errstate(divide="ignore"):
            highest = float((np.log2(np.abs(self._multiplied_diagonal)) + np.log2(np.abs(diagonal))).max())
        shift = 0 if abs(self._typical + typical) <= _TYPICAL_EXPONENT else -typical
        if highest > -np.inf:
            shift = min(shift, _LARGEST_EXPONENT - int(highest))
        self._typical += typical + shift
        return shift

    def finish(self, degree: Array) -> tuple[Problem, WeightedSum]:
        """Return the symmetric problem D^{-1/2} M D^{-1/2} and the sum.

        The problem overwrites the product, or the sum if there is no product.
        """
        largest = exponent_above(degree)
        root = np.sqrt(np.ldexp(degree, -largest))
        unit = self._unit()
        for_sum = self._rho * 2.0 ** (self._kappa_exponent - unit) if self._rho > 0 else 0.0
        for_product = (1 - self._rho) * 2.0 ** (self._exponent - unit)
        added, multiplied = self._added, self._multiplied
        target = added if multiplied is None else multiplied
        scale = (1 / root).astype(target.dtype)

        def combine(t: int, rows: slice, columns: slice) -> None:
            tile = target.tiles[t]
            tile *= target.dtype.type(for_sum if multiplied is None else for_product)
            if multiplied is not None:
                tile += target.dtype.type(for_sum) * added.tiles[t]
            tile *= scale[rows, None]
            tile *= scale[columns]

        target.for_each(combine)
        diagonal = for_sum * self._added_diagonal
        if multiplied is not None:
            diagonal += for_product * self._multiplied_diagonal
        trace = float((diagonal / root**2).sum())
        problem = Problem(target, unit - largest, trace, target.workers.map)
        if target is not added:
            return problem, WeightedSum(added, self._kappa)
        return problem, WeightedSum(target, self._kappa, root, unit - self._kappa_exponent)

    def _unit(self) -> int:
        """Return the exponent of the power of two just above the largest entry of the fused matrix."""
        exponents = []
        if self._rho > 0 and self._added_diagonal.any():
            exponents.append(exponent_above(self._rho * self._added_diagonal) + self._kappa_exponent)
        if self._multiplied is not None and self._multiplied_diagonal.any():
            exponents.append(exponent_above((1 - self._rho) * self._multiplied_diagonal) + self._exponent)
        return max(exponents, default=0)


def _largest_centred(source: SymmetricTiles, centering: Centering) -> Array:
    """Return the largest absolute entry of each tile after centring."""

    def one(t: int, rows: slice, columns: slice) -> float:
        return float(np.abs(centering.centred(source.tiles[t], rows, columns)).max())

    return np.array(source.for_each(one))


def _typical_exponent(source: SymmetricTiles, centering: Centering) -> int:
    """Return the exponent of the power of two above the mean absolute entry of some centred rows."""
    number = min(1, len(source.tiles) - 1)  # not on the diagonal, if there are several tiles
    rows, columns = source.places[number]
    rows = slice(rows.start, min(rows.start + _SAMPLE_ROWS, rows.stop))
    sample = source.tiles[number][:_SAMPLE_ROWS].astype(np.float64)
    return exponent_above(np.abs(centering.centred(sample, rows, columns)).mean())


def _centre_and_average(source: SymmetricTiles, centering: Centering) -> float:
    """Centre all tiles in place; return the mean absolute entry of pairs of samples that have the view."""
    assert centering.present is not None
    sum_of_absolute_values = scipy.linalg.get_blas_funcs("asum", dtype=source.dtype)  # without a temporary array

    def one(t: int, rows: slice, columns: slice) -> float:
        tile = source.tiles[t]
        centering.centre(tile, rows, columns)
        return float(sum_of_absolute_values(tile.ravel())) * (1 if rows == columns else 2)

    return sum(source.for_each(one)) / np.count_nonzero(centering.present) ** 2


def exponent_above(x: Array | float) -> int:
    """Return the exponent of the power of two just above the largest absolute entry; 0 for zeros."""
    return int(np.frexp(np.abs(x).max())[1])
