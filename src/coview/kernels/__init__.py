"""Kernels as frozen values: a few numbers that turn rows into similarities."""

from coview.kernels.base import Kernel, Run, Similarity, in_turn
from coview.kernels.given import Given, Precomputed
from coview.kernels.graph import NeighborGraph, NeighborSimilarity
from coview.kernels.products import (
    RBF,
    Cosine,
    GaussianProducts,
    InnerProductKernel,
    Linear,
    NormalizedPolynomial,
    Polynomial,
    Products,
)
from coview.kernels.table import KERNELS, by_view_name, kernel_per_view

__all__ = [
    "KERNELS",
    "RBF",
    "Cosine",
    "GaussianProducts",
    "Given",
    "InnerProductKernel",
    "Kernel",
    "Linear",
    "NeighborGraph",
    "NeighborSimilarity",
    "NormalizedPolynomial",
    "Polynomial",
    "Precomputed",
    "Products",
    "Run",
    "Similarity",
    "by_view_name",
    "in_turn",
    "kernel_per_view",
]
