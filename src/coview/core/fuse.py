"""Fusion: the weighted sum and the Hadamard product of the views' centred Gram matrices, as one eigenproblem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from coview.core.eigen import Problem
from coview.core.gram import Centering, Gram, Grams
from coview.core.tiles import SymmetricTiles
from coview.views import Array

# The largest entry of the running product is kept below 2^60: room for one more view in float32.
_HIGHEST = 60
# Typical entries of the running product between 2^-30 and 2^30 are left alone: float32 ends at 2^-126.
_CALM = 30
_SAMPLE_ROWS = 64


class Fused(ABC):
    """Collect the views' Gram matrices one at a time, and turn them into one eigenproblem."""

    @abstractmethod
    def grams(self) -> Iterator[Any]:
        """Yield the Gram matrices in the form in which they are collected."""

    @abstractmethod
    def add(self, gram: Any, centering: Centering) -> None:
        """Fold in the next view."""

    @abstractmethod
    def problem(self, degree: Array) -> Problem:
        """Return the symmetric problem D^{-1/2} M D^{-1/2} of the fused matrix M and the diagonal D of degrees."""

    @abstractmethod
    def ensemble(self, latent: Array, beta: Mapping[str, float]) -> Array | None:
        """Return Σ_v beta_v Ω_v H, or None where similarities have to be computed again for it."""


class Fusion(Fused):
    """Collect centred Gram matrices one view at a time: rho Σ_v kappa_v Ω_v + (1 - rho) ⊙_v Ω_v.

    Memory is the buffer of the current view, the sum and the product, however many views there are. Once typical
    entries of the product become small (or large), further views are multiplied in after a power of two that makes
    their typical entry about 1, so that the product of many small entries neither vanishes nor turns denormal; the
    powers are put back where sum and product meet.
    """

    def __init__(self, grams: Grams, rho: float, kappa: Mapping[str, float]) -> None:
        n, dtype, workers = grams.n_samples, grams.dtype, grams.workers
        self._grams = grams
        self._rho, self._kappa, self._kappa_exponent = settled(rho, kappa)
        self._added = SymmetricTiles(n, dtype, workers)
        self._added_diagonal = np.zeros(n)
        self._multiplied = SymmetricTiles(n, dtype, workers) if self._rho < 1 else None
        self._multiplied_diagonal = np.ones(n)
        self._exponent = 0  # the true product is the stored one times 2^exponent
        self._typical = 0  # the power of two near typical entries of the stored product
        self._started = False
        self._solved: tuple[SymmetricTiles, Array, int]

    def grams(self) -> Iterator[Gram]:
        return iter(self._grams)

    def add(self, gram: Gram, centering: Centering) -> None:
        """Fold in the next view; its buffer is used up."""
        added, multiplied, source = self._added, self._multiplied, gram.matrix
        kappa, first = self._kappa[gram.name], not self._started
        diagonal = centering.centred_diagonal(source.diagonal())
        if gram.is_rounding(diagonal) and gram.is_rounding(_largest_centred(source, centering)):
            self._add_nothing()
            return
        shift = self._shift(source, centering, diagonal) if multiplied is not None else 0
        weight, factor = source.dtype.type(kappa), source.dtype.type(2.0**shift)

        def fold(t: int, rows: slice, columns: slice) -> None:
            tile = source.tiles[t]
            centering.centre(tile, rows, columns)
            if first:
                np.multiply(tile, weight, out=added.tiles[t])
            else:
                added.tiles[t] += tile if kappa == 1 else weight * tile
            if multiplied is not None:
                if shift:
                    tile *= factor
                if first:
                    multiplied.tiles[t][...] = tile
                else:
                    multiplied.tiles[t] *= tile

        added.for_each(fold)
        self._added_diagonal += kappa * diagonal
        if multiplied is not None:
            self._multiplied_diagonal *= np.ldexp(diagonal, shift)
            self._exponent -= shift
        self._started = True

    def _add_nothing(self) -> None:
        """Fold in a view whose rows are all alike: what centring leaves of it is rounding."""
        for matrix in (self._multiplied, *((self._added,) if not self._started else ())):
            if matrix is not None:
                matrix.for_each(lambda t, rows, columns, tiles=matrix.tiles: tiles[t].fill(0))
        self._multiplied_diagonal[:] = 0
        self._started = True

    def _shift(self, source: SymmetricTiles, centering: Centering, diagonal: Array) -> int:
        """The power of two for this view: none, or typical entries near 1; less if the product would grow too far."""
        number = min(1, len(source.tiles) - 1)  # beside the diagonal where there is such a tile
        rows, columns = source.places[number]
        rows = slice(rows.start, min(rows.start + _SAMPLE_ROWS, rows.stop))
        sample = source.tiles[number][:_SAMPLE_ROWS].astype(np.float64)
        centering.centre(sample, rows, columns)
        typical = _exponent(np.abs(sample).mean())
        # Nothing in a product of positive semi-definite matrices exceeds its diagonal, and graphs have entries up to 4.
        with np.errstate(divide="ignore"):
            highest = float((np.log2(np.abs(self._multiplied_diagonal)) + np.log2(np.abs(diagonal))).max())
        shift = 0 if abs(self._typical + typical) <= _CALM else -typical
        if highest > -np.inf:
            shift = min(shift, _HIGHEST - int(highest))
        self._typical += typical + shift
        return shift

    def problem(self, degree: Array) -> Problem:
        """Return the symmetric problem D^{-1/2} M D^{-1/2} of the fused matrix M and the diagonal D of degrees.

        It takes the place of the product (of the sum, where there is no product), so this is done once.
        """
        largest = _exponent(degree)
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
        self._solved = (target, root, unit)
        return Problem(target, exponent=unit - largest, trace=float((diagonal / root**2).sum()))

    def _unit(self) -> int:
        """The power of two just above the largest entry of the fused matrix."""
        exponents = []
        if self._rho > 0 and self._added_diagonal.any():
            exponents.append(_exponent(self._rho * self._added_diagonal) + self._kappa_exponent)
        if self._multiplied is not None and self._multiplied_diagonal.any():
            exponents.append(_exponent((1 - self._rho) * self._multiplied_diagonal) + self._exponent)
        return max(exponents, default=0)

    def ensemble(self, latent: Array, beta: Mapping[str, float]) -> Array | None:
        """Return Σ_v beta_v Ω_v H from the running sum, which serves when beta is kappa but for a factor."""
        ratios = {beta[name] / weight if weight else np.nan for name, weight in self._kappa.items()}
        if max(ratios) - min(ratios) > 1e-12 * max(ratios) or np.isnan(list(ratios)).any():
            return None
        target, root, unit = self._solved
        if target is not self._added:
            scores = self._added @ latent
        else:  # the sum has become the problem itself: undo the degrees around the product
            scores = np.ldexp(root[:, None] * (target @ (root[:, None] * latent)), unit - self._kappa_exponent)
        scores *= max(ratios)
        return scores


def settled(rho: float, kappa: Mapping[str, float]) -> tuple[float, dict[str, float], int]:
    """Return rho, and kappa without the power of two that is returned last, which float32 might not hold."""
    if len(kappa) == 1:  # one view is its own product
        kappa = {name: 1 + rho * (weight - 1) for name, weight in kappa.items()}
        rho = 1.0
    exponent = _exponent(np.array(list(kappa.values())))
    return rho, {name: float(np.ldexp(weight, -exponent)) for name, weight in kappa.items()}, exponent


def _largest_centred(source: SymmetricTiles, centering: Centering) -> Array:
    """Largest entry in size of each tile once it is centred."""

    def one(t: int, rows: slice, columns: slice) -> float:
        tile = source.tiles[t].copy()
        centering.centre(tile, rows, columns)
        return float(np.abs(tile).max())

    return np.array(source.for_each(one))


def _exponent(x: Array | float) -> int:
    """The power of two just above the largest entry; 0 for zeros."""
    return int(np.frexp(np.abs(x).max())[1])
