"""The kernel that follows from a view: a fuzzy neighbour graph with the metric that suits the values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coview.kernels.base import Kernel, Similarity, check_integer_parameter
from coview.kernels.fuzzy import FuzzyGraph
from coview.preprocess.profile import ViewProfile
from coview.runtime import Map, serial_map
from coview.views import Matrix


@dataclass(frozen=True)
class AutoKernel(Kernel):
    """`FuzzyGraph` with a metric that depends on the view.

    ================================================================== ==========
    view                                                               metric
    ================================================================== ==========
    at most 8 columns                                                  seuclidean
    two columns have nearly all of the variance, as in different units seuclidean
    all rows are multiples of one row                                  seuclidean
    categories, which are encoded to columns of a common scale         euclidean
    all others: dense, counts, binary, sparse                          cosine
    ================================================================== ==========

    The fitted attribute `kernels_` of a method holds the kernel that was chosen; new samples are compared by the same.
    A view whose rows are all equal is uninformative: its graph has no edges.

    Parameters
    ----------
    n_neighbors : int
        As in `FuzzyGraph`.

    See Also
    --------
    FuzzyGraph : The graph, with a metric that is given.

    Examples
    --------
    >>> import numpy as np
    >>> AutoKernel().resolve(np.random.default_rng(0).normal(size=(10, 3)))
    FuzzyGraph(n_neighbors=15, metric='seuclidean')
    """

    n_neighbors: int = 15

    bounded = True
    sparse = True

    def __post_init__(self) -> None:
        check_integer_parameter(self, "n_neighbors")

    def on_common_scale(self) -> Kernel:
        return FuzzyGraph(self.n_neighbors, metric="euclidean")

    def resolve(self, x: Matrix, rng: np.random.Generator | None = None, name: str = "x") -> Kernel:
        cosine = FuzzyGraph(self.n_neighbors, metric="cosine")
        if ViewProfile.of(x).no_direction or cosine.is_constant(x):
            return FuzzyGraph(self.n_neighbors, metric="seuclidean")
        return cosine

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        return self.resolve(rows).against(rows, dtype, map_blocks)
