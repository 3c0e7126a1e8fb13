"""The fused eigenproblem, and what fusion in tiles and fusion of sparse matrices share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from coview.core.eigen import Problem
from coview.core.gram import Centering, Gram
from coview.views import Array

DegreeRule = Callable[[Gram], Array]


@dataclass(frozen=True)
class Fused(ABC):
    """A fused eigenproblem.

    Parameters
    ----------
    problem : Problem
        D^{-1/2} M D^{-1/2}, for the fused matrix M and the total degrees D.
    centerings : dict
        How each view is centred.
    degree : (n,)
        D, the sum of the views' degrees.
    """

    problem: Problem
    centerings: dict[str, Centering]
    degree: Array

    @abstractmethod
    def scores(self, latent: Array, beta: Mapping[str, float]) -> Array | None:
        """Return Σ_v beta_v Ω_v H of the training rows, or None if their similarities must be computed again."""


def centre_by_degrees(gram: Gram, degree: Array) -> Centering:
    """Return the centring of KSC: the weighted mean of the training rows with weights 1 / degree."""
    return Centering.learn(gram.matrix, degree.min() / degree, gram.largest)


def normalised_weights(kappa: Mapping[str, float], rho: float) -> tuple[dict[str, float], int, float]:
    """Return kappa divided by a power of two, its exponent, and rho: float32 might not hold kappa itself."""
    if len(kappa) == 1:  # one view is its own product
        kappa = {name: 1 + rho * (weight - 1) for name, weight in kappa.items()}
        rho = 1.0
    exponent = exponent_above(np.array(list(kappa.values())))
    return {name: float(np.ldexp(weight, -exponent)) for name, weight in kappa.items()}, exponent, rho


def exponent_above(x: Array | float) -> int:
    """Return the power of two just above the largest absolute entry; 0 for zeros."""
    return int(np.frexp(np.abs(x).max())[1])
