"""The models of a consensus: they differ in what is similar, rows of each view or of all views side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.compose import Concat, Preprocessed
from coview.core.fuse import fuses_sparse
from coview.core.tiles import SymmetricTiles
from coview.kernels import AutoKernel, FuzzyGraph, Kernel, NeighborGraph
from coview.methods.tmvkscr import TMvKSCR
from coview.preprocess.profile import ViewProfile
from coview.runtime import fits_in_memory
from coview.views import Views

EACH_VIEW = "each view"


def number_of_components(n_clusters: int, n_samples: int) -> int:
    """Return the number of components of the models: one for each cluster, if there are more samples than that.

    A view that few samples have does not limit it: with fewer components than clusters, the directions of the scores
    would divide clusters in the same way in all subsets, and such clusters would seem to be stable.
    """
    return max(1, min(n_clusters, n_samples - 1))


def models_of(views: Views, n_components: int, **parameters: Any) -> dict[str, Any]:
    """Return the models by name, each with this number of components and further parameters of TMvKSCR.

    Graphs of each view are fused, by the direction of the rows and by standardised columns; and there is one graph of
    all columns side by side, of rows preprocessed in both ways. Columns of counts, and of sparse views with more than 8
    columns, are not standardised. Models that would be the same, or that do not fit into memory, are left out, and so
    are those of all columns if samples lack views.
    """
    profiles = {name: ViewProfile.of(views.observed(name)) for name in views}
    # The rows of encoded categories have no direction: the origin is the mean of numbers, but not of categories.
    by_direction = {name: not (profile.no_direction or name in views.encoded) for name, profile in profiles.items()}
    by_column = {name: not (sp.issparse(x) or profiles[name].word_counts) for name, x in views.items()}

    def fused(kernel: Kernel | Mapping[str, Kernel]) -> Any:
        return TMvKSCR(n_components + 1, kernel=kernel, **parameters)

    def stacked(steps: Mapping[str, str]) -> Any:
        return Preprocessed(Concat(fused(NeighborGraph())), list(steps.values()))

    models = {
        EACH_VIEW: fused(AutoKernel()),
        "stacked": stacked({name: "l2" if each else "standard+block" for name, each in by_direction.items()}),
    }
    if any(by_direction[name] and by_column[name] for name in views):  # otherwise the columns are the same
        kernels = {name: FuzzyGraph(metric="seuclidean") if each else AutoKernel() for name, each in by_column.items()}
        steps = {name: "standard+block" if by_column[name] or not by_direction[name] else "l2" for name in by_column}
        models |= {f"{EACH_VIEW} (standardised)": fused(kernels), "stacked (standardised)": stacked(steps)}
    dense = 3 * SymmetricTiles.nbytes(views.n_samples, np.float32)  # of many views, which are not fused as graphs
    fits = fuses_sparse([True] * len(views)) or fits_in_memory(dense)
    return {name: model for name, model in models.items() if (fits if name.startswith(EACH_VIEW) else views.complete)}
