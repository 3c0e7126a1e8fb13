"""Fusion: the weighted sum and the Hadamard product of the views' centred Gram matrices, as one eigenproblem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coview.core.fuse_sparse import fuse_sparse
from coview.core.fuse_tiles import fuse_tiles
from coview.core.fused import DegreeRule, Fused
from coview.core.gram import Gram, Grams

# The low-rank part of a sparse fusion has 2^views columns; with more views, tiles are as cheap.
_MOST_SPARSE_VIEWS = 8


def fuse(grams: Grams, kappa: Mapping[str, float], rho: float, degree_of: DegreeRule = Gram.positive_degrees) -> Fused:
    """Return the eigenproblem of rho Σ_v kappa_v Ω_v + (1 - rho) ⊙_v Ω_v, with Ω_v the centred Gram matrix of view v.

    Matrices stay sparse if all of them are, for up to 8 views; otherwise they are fused in tiles.

    Parameters
    ----------
    grams : Grams
        Its matrices are computed here, and overwritten.
    kappa : mapping
        Weights of the views in the sum; the product has none.
    rho : float
        Weight of the sum against the product.
    degree_of : function
        Returns the degrees of a Gram matrix: they weigh the rows in the centring and normalise the problem.

    Returns
    -------
    Fused
        The symmetric problem, the centring of each view and the total degrees.
    """
    sparse = fuses_sparse([similarity.sparse for similarity in grams.similarities.values()])
    return (fuse_sparse if sparse else fuse_tiles)(grams, kappa, rho, degree_of)


def fuses_sparse(sparse: Sequence[bool]) -> bool:
    """Return whether views are fused without an n×n matrix, given which of them have a sparse Gram matrix."""
    return all(sparse) and len(sparse) <= _MOST_SPARSE_VIEWS
