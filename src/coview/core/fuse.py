"""Fusion: the weighted sum and the Hadamard product of the views' centred Gram matrices, as one eigenproblem."""

from __future__ import annotations

import numpy as np

from coview.core.eigen import Problem
from coview.views import Array


class Fusion:
    """Collect centred Gram matrices one view at a time: rho Σ_v kappa_v Ω_v + (1 - rho) ⊙_v Ω_v.

    Memory is two n×n matrices however many views there are. Powers of two are taken out of the product after each
    view, so that many small (or large) entries neither vanish nor overflow before the two parts meet.
    """

    def __init__(self, rho: float) -> None:
        self.rho = rho
        self._added: Array | None = None
        self._multiplied: Array | None = None
        self._exponent = 0

    def add(self, centred: Array, kappa: float) -> None:
        """Fold in the next view."""
        if self._added is None or self._multiplied is None:
            self._added, self._multiplied = kappa * centred, centred.copy()
        else:
            self._added += kappa * centred
            factor = _exponent(centred)
            self._multiplied *= np.ldexp(centred, -factor)
            self._exponent += factor
        shift = _exponent(self._multiplied)
        np.ldexp(self._multiplied, -shift, out=self._multiplied)
        self._exponent += shift

    def problem(self, degree: Array) -> Problem:
        """Return the symmetric problem D^{-1/2} M D^{-1/2} of the fused matrix M and the diagonal D of degrees."""
        assert self._added is not None
        assert self._multiplied is not None
        shift = _exponent(self._added)
        parts = [(self.rho, self._added, 0, shift), (1 - self.rho, self._multiplied, self._exponent, self._exponent)]
        parts = [part for part in parts if part[0] > 0 and part[1].any()]
        unit = max((size for *_, size in parts), default=0)
        matrix = np.zeros_like(self._added)
        for weight, part, exponent, _ in parts:
            matrix += weight * np.ldexp(part, exponent - unit)
        largest = _exponent(degree)
        root = np.sqrt(np.ldexp(degree, -largest))
        matrix /= root[:, None]
        matrix /= root
        return Problem(matrix, exponent=unit - largest)


def _exponent(x: Array) -> int:
    """The power of two just above the largest entry; 0 for a matrix of zeros."""
    return int(np.frexp(max(x.max(), -x.min()))[1])
