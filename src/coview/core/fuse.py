"""Fusion: the weighted sum and the Hadamard product of the views' centred Gram matrices, as one eigenproblem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coview.core.eigen import Problem
from coview.core.fuse_sparse import SparseFusion
from coview.core.fuse_tiles import TiledFusion, WeightedSum, exponent_above
from coview.core.gram import Centering, Gram, Grams
from coview.data.view import Array

# The low-rank part of a sparse fusion has 2^views columns; with more views, tiles are as cheap. It has 3^views columns
# if samples lack views and there is a product.
_MOST_SPARSE_VIEWS = 8
_MOST_INCOMPLETE_VIEWS = 5


@dataclass(frozen=True)
class Fused:
    """A fused eigenproblem D^{-1/2} M D^{-1/2}, for the fused matrix M and the total degrees D."""

    problem: Problem
    centerings: dict[str, Centering]  # of each view
    degree: Array  # D, the sum of the views' degrees
    total: WeightedSum | None  # of the views, if it gives the scores of the training samples

    def scores(self, latent: Array, beta: Mapping[str, float]) -> Array | None:
        """Return Σ_v beta_v Ω_v H of the training samples, or None if it must be computed from their similarities."""
        return None if self.total is None else self.total.scores(latent, beta)


def fuse(
    grams: Grams, kappa: Mapping[str, float], rho: float, degree_of: Callable[[Gram], Array] = Gram.positive_degrees
) -> Fused:
    """Return the eigenproblem of rho Σ_v kappa_v Ω_v + (1 - rho) ⊙_v Ω_v, with Ω_v the centred Gram matrix of view v.

    The Gram matrices are computed here, and overwritten. They stay sparse if all of them are, for up to 8 views;
    otherwise they are fused in tiles. The degrees weigh the rows in the centring and normalise the problem.
    """
    if len(kappa) == 1:  # the product of one view is the view itself
        kappa, rho = {name: 1 + rho * (weight - 1) for name, weight in kappa.items()}, 1.0
    exponent = exponent_above(np.array(list(kappa.values())))  # float32 might not hold kappa itself
    kappa = {name: float(np.ldexp(weight, -exponent)) for name, weight in kappa.items()}
    sparse = fuses_sparse(
        [similarity.sparse for similarity in grams.similarities.values()],
        incomplete_product=bool(grams.present) and rho < 1,
    )
    fusion = (SparseFusion if sparse else TiledFusion)(grams, kappa, exponent, rho)
    centerings, degree = {}, np.zeros(grams.n_samples)
    for gram in grams.sparse() if sparse else grams:
        own = degree_of(gram)
        centerings[gram.name] = gram.centre_by(own)
        fusion.add(gram, centerings[gram.name])
        degree += own
    problem, total = fusion.finish(degree)
    # A graph scores training samples as new samples, so that duplicate rows have equal scores.
    problem = replace(problem, bandwidth=grams.bandwidth)
    return Fused(problem, centerings, degree, None if grams.n_sparse else total)


def fuses_sparse(sparse: Sequence[bool], *, incomplete_product: bool = False) -> bool:
    """Return whether views are fused without an n×n matrix, given which of them have a sparse Gram matrix.

    An incomplete product is one of views that some samples lack.
    """
    return all(sparse) and len(sparse) <= (_MOST_INCOMPLETE_VIEWS if incomplete_product else _MOST_SPARSE_VIEWS)
