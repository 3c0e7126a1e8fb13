"""The fused eigenproblem, and what fusion in tiles and fusion of sparse matrices share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from coview.core.eigen import Problem
from coview.core.gram import Centering, Gram
from coview.core.tiles import SymmetricTiles
from coview.views import Array

DegreeRule = Callable[[Gram], Array]


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


@dataclass(frozen=True)
class Fused:
    """A fused eigenproblem.

    Parameters
    ----------
    problem : Problem
        D^{-1/2} M D^{-1/2}, for the fused matrix M and the total degrees D.
    centerings : dict
        The centring of each view.
    degree : (n,)
        D, the sum of the views' degrees.
    total : WeightedSum, optional
        The weighted sum of the views, if it is available and gives the scores of the training samples.
    """

    problem: Problem
    centerings: dict[str, Centering]
    degree: Array
    total: WeightedSum | None = None

    def scores(self, latent: Array, beta: Mapping[str, float]) -> Array | None:
        """Return Σ_v beta_v Ω_v H of the training samples, or None if it must be computed from their similarities."""
        return None if self.total is None else self.total.scores(latent, beta)


def centre_by_degrees(gram: Gram, degree: Array) -> Centering:
    """Return the centring of KSC: by the mean of the training samples with weights 1 / degree."""
    return Centering.learn(gram.matrix, degree.min() / degree, gram.largest)


def normalised_weights(kappa: Mapping[str, float], rho: float) -> tuple[dict[str, float], int, float]:
    """Return kappa divided by a power of two, its exponent, and rho: float32 might not hold kappa itself."""
    if len(kappa) == 1:  # the product of one view is the view itself
        kappa = {name: 1 + rho * (weight - 1) for name, weight in kappa.items()}
        rho = 1.0
    exponent = exponent_above(np.array(list(kappa.values())))
    return {name: float(np.ldexp(weight, -exponent)) for name, weight in kappa.items()}, exponent, rho


def exponent_above(x: Array | float) -> int:
    """Return the exponent of the power of two just above the largest absolute entry; 0 for zeros."""
    return int(np.frexp(np.abs(x).max())[1])
