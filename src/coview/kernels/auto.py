"""The kernel that follows from a view: a fuzzy neighbour graph with the metric that suits the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coview.base.runtime import Map, serial_map
from coview.data.view import Matrix
from coview.kernels.base import Kernel, Similarity
from coview.kernels.fuzzy import FuzzyGraph
from coview.kernels.graph import check_search_parameters
from coview.preprocess.profile import ViewProfile


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
    recall : float
        As in `FuzzyGraph`.

    See Also
    --------
    FuzzyGraph : The graph, with a metric that is given.

    Examples
    --------
    >>> import numpy as np
    >>> AutoKernel().resolve(np.random.default_rng(0).normal(size=(10, 3)))
    FuzzyGraph(n_neighbors=15, metric='seuclidean', recall=0.95)
    """

    n_neighbors: int = 15
    recall: float = 0.95

    bounded = True
    sparse = True

    def __post_init__(self) -> None:
        check_search_parameters(self)

    def on_common_scale(self) -> Kernel:
        return FuzzyGraph(self.n_neighbors, "euclidean", self.recall)

    def resolve(self, x: Matrix, rng: np.random.Generator | None = None, name: str = "x") -> Kernel:
        return self.choose(ViewProfile.of(x), lambda graph: graph.is_constant(x))

    def choose(self, profile: ViewProfile, is_constant: Callable[[FuzzyGraph], bool]) -> FuzzyGraph:
        """Return the graph of a view, given its profile and a function that says if a graph has no distances."""
        cosine = FuzzyGraph(self.n_neighbors, "cosine", self.recall)
        if profile.no_direction or is_constant(cosine):
            return FuzzyGraph(self.n_neighbors, "seuclidean", self.recall)
        return cosine

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        return self.resolve(rows).against(rows, dtype, map_blocks)
