"""What the tests of graph kernels share: formats and widths of rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from coview import FuzzyGraph, NeighborGraph

FORMATS = pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "csr"])
WIDTHS = pytest.mark.parametrize("width", [2, 20], ids=["narrow", "wide"])
METRICS = pytest.mark.parametrize("metric", ["euclidean", "cosine", "seuclidean"])
KINDS = pytest.mark.parametrize("kind", [NeighborGraph, FuzzyGraph])


def some_rows(n, width, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width))
