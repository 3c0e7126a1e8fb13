"""Kernels as frozen values: a few parameters and a function from rows to similarities."""

from coview.kernels.base import Kernel, Similarity
from coview.kernels.graph import NeighborGraph, NeighborSimilarity
from coview.kernels.per_view import KernelParameter, by_view_name, kernel_per_view
from coview.kernels.precomputed import Precomputed, PrecomputedSimilarity
from coview.kernels.products import RBF, Cosine, Linear, NormalizedPolynomial, Polynomial

__all__ = [
    "RBF",
    "Cosine",
    "Kernel",
    "KernelParameter",
    "Linear",
    "NeighborGraph",
    "NeighborSimilarity",
    "NormalizedPolynomial",
    "Polynomial",
    "Precomputed",
    "PrecomputedSimilarity",
    "Similarity",
    "by_view_name",
    "kernel_per_view",
]
