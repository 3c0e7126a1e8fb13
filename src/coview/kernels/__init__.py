"""Kernels as frozen values: a few parameters and a function from rows to similarities."""

from coview.kernels.base import Kernel, KernelParameter, Similarity, by_view_name, kernel_for, kernel_per_view
from coview.kernels.float32 import Float32Products, in_float32, sum_error
from coview.kernels.fuzzy import AutoKernel, FuzzyGraph
from coview.kernels.graph import Graph, GraphSimilarity
from coview.kernels.precomputed import Precomputed, PrecomputedSimilarity
from coview.kernels.products import Cosine, Linear, NormalizedPolynomial, Polynomial
from coview.kernels.rbf import RBF
from coview.kernels.self_tuning import NeighborGraph

__all__ = [
    "RBF",
    "AutoKernel",
    "Cosine",
    "Float32Products",
    "FuzzyGraph",
    "Graph",
    "GraphSimilarity",
    "Kernel",
    "KernelParameter",
    "Linear",
    "NeighborGraph",
    "NormalizedPolynomial",
    "Polynomial",
    "Precomputed",
    "PrecomputedSimilarity",
    "Similarity",
    "by_view_name",
    "in_float32",
    "kernel_for",
    "kernel_per_view",
    "sum_error",
]
