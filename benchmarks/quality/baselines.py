"""Adjusted Rand indices of the methods that `Coview` is compared with."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getsource
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score

from benchmarks.provenance import commit
from benchmarks.quality.rows import Row, code_hash
from benchmarks.real_data import sampled
from benchmarks.sweep import standard_or_l2
from coview import Preprocessed, TMvKSCR
from coview.data.views import Views
from coview.preprocess.steps import parse_steps

DEFAULT, PUBLISHED = "`TMvKSCR`, default", "`TMvKSCR`, as published"
KM_L2, NN_L2, UMAP_L2 = "k-means, L2", "spectral, neighbours, L2", "UMAP + k-means, L2"
KM_STANDARD, NN_STANDARD, RBF_STANDARD = "k-means, std", "spectral, neighbours, std", "spectral, RBF, std"
MEASURED_CODE = ("neighbors", "kernels", "core", "model", "methods", "compose", "preprocess", "data")


def measure(name: str, seed: int) -> Row:
    """Return the scores of all methods on at most 3,000 samples of one data set."""
    views, truth = sampled(name, seed)
    k = len(np.unique(truth))

    def score(labels: Any) -> float:
        return round(float(adjusted_rand_score(truth, labels)), 4)

    published = Preprocessed(TMvKSCR.as_published(k, random_state=seed), steps=list(standard_or_l2(views)))
    scores = {
        DEFAULT: score(TMvKSCR(k, random_state=seed).fit(views).labels_),
        PUBLISHED: score(published.fit(views).labels_),
        **{title: score(fit(views, k, seed)) for title, fit in BASELINES.items()},
    }
    return {"commit": commit(), "samples": views.n_samples, "clusters": k, "scores": scores}


def version() -> str:
    """Return a hash of the measured code."""
    return code_hash(__file__, MEASURED_CODE, more=getsource(sampled))


def side_by_side(views: Views, step: str) -> Any:
    """Return one table of all columns, after preprocessing each view."""
    parts = [parse_steps(step).learn(x, view)(x, view) for view, x in views.items()]
    return sp.csr_matrix(sp.hstack(parts)) if any(map(sp.issparse, parts)) else np.hstack(parts)


def k_means(table: Any, k: int, seed: int) -> np.ndarray:
    """Return the labels of k-means with ten starts."""
    return KMeans(k, n_init=10, random_state=seed).fit_predict(table)


def _spectral(table: Any, k: int, seed: int, **affinity: Any) -> np.ndarray:
    return SpectralClustering(k, random_state=seed, **affinity).fit_predict(table)


def _spectral_rbf(views: Views, k: int, seed: int) -> np.ndarray:
    table = side_by_side(views, "standard")
    # With the default gamma of 1 and many columns the affinity is the identity, and the solver does not stop.
    return _spectral(table, k, seed, affinity="rbf", gamma=1 / table.shape[1])


def umap(table: Any, seed: int) -> np.ndarray:
    """Return ten coordinates of UMAP, with the settings that its documentation suggests for clustering."""
    from umap import UMAP  # an optional package that needs seconds to import

    return UMAP(**UMAP_SETTINGS, random_state=seed).fit_transform(table)


UMAP_SETTINGS = {"n_components": 10, "n_neighbors": 15, "min_dist": 0.0}
_NEAREST = {"affinity": "nearest_neighbors"}
# Methods for one table, on all columns side by side: functions of the views, the number of clusters and the seed.
BASELINES: dict[str, Callable[[Views, int, int], np.ndarray]] = {
    KM_STANDARD: lambda views, k, seed: k_means(side_by_side(views, "standard"), k, seed),
    KM_L2: lambda views, k, seed: k_means(side_by_side(views, "l2"), k, seed),
    NN_STANDARD: lambda views, k, seed: _spectral(side_by_side(views, "standard"), k, seed, **_NEAREST),
    NN_L2: lambda views, k, seed: _spectral(side_by_side(views, "l2"), k, seed, **_NEAREST),
    RBF_STANDARD: _spectral_rbf,
    UMAP_L2: lambda views, k, seed: k_means(umap(side_by_side(views, "l2"), seed), k, seed),
}
