"""Adjusted Rand indices of `TMvKSCR`, `Tuned`, the models of its consensus, and baselines."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score

from benchmarks.data import load
from benchmarks.provenance import commit
from benchmarks.quality.evaluations import MEASURED_CODE, NUMBERS
from benchmarks.quality.rows import Row, code_hash
from benchmarks.sweep import standard_or_l2
from coview import Preprocessed, TMvKSCR, Tuned
from coview.preprocess.steps import parse_steps
from coview.tune.models import models_of
from coview.views import Views

MAX_SAMPLES = 3000
TUNED, DEFAULT, PUBLISHED = "`Tuned`", "`TMvKSCR`, default", "`TMvKSCR`, as published"
BEST_MODEL, MODEL = "best model, by the labels", "model: "
KM_L2, NN_L2, UMAP_L2 = "k-means, L2", "spectral, neighbours, L2", "UMAP + k-means, L2"
KM_STANDARD, NN_STANDARD, RBF_STANDARD = "k-means, std", "spectral, neighbours, std", "spectral, RBF, std"
BASELINES = (KM_STANDARD, KM_L2, NN_STANDARD, NN_L2, RBF_STANDARD, UMAP_L2)


def measure(name: str, seed: int) -> Row:
    """Return all scores on at most 3,000 samples of one data set."""
    start = perf_counter()
    views, truth, _ = load(name)
    rows = np.random.default_rng(seed).permutation(len(truth))[:MAX_SAMPLES]
    views, truth = views.take(rows), truth[rows]
    k = len(np.unique(truth))

    def score(labels: Any) -> float:
        return round(float(adjusted_rand_score(truth, labels)), 4)

    tuned = Tuned(k, random_state=seed).fit(views)
    models = {MODEL + title: score(labels) for title, labels in _labels_of_models(tuned, views)}
    published = Preprocessed(TMvKSCR.as_published(k, random_state=seed), steps=list(standard_or_l2(views)))
    scores = {
        TUNED: score(tuned.labels_),
        BEST_MODEL: max(models.values()),
        **models,
        DEFAULT: score(TMvKSCR(k, random_state=seed).fit(views).labels_),
        PUBLISHED: score(published.fit(views).labels_),
        **{title: score(labels) for title, labels in _baselines(views, k, seed)},
    }
    row: Row = {"commit": commit(), "samples": views.n_samples, "clusters": k, "scores": scores}
    if k in NUMBERS:
        auto = Tuned("auto", random_state=seed).fit(views)
        row["auto"] = {"n_clusters": auto.n_clusters_, "ari": score(auto.labels_)}
    return row | {"seconds": round(perf_counter() - start, 1)}


def version() -> str:
    """Return a hash of the measured code."""
    return code_hash(__file__, [*MEASURED_CODE, "tune", "validity"])


def _labels_of_models(tuned: Tuned, views: Views) -> Iterator[tuple[str, np.ndarray]]:
    failed = {each.model for each in tuned.evaluations_ if each.error is not None}
    names = [name for name in models_of(views, tuned.n_clusters_) if name not in failed]
    yield from zip(names, tuned.estimator_.model_labels(), strict=True)


def _baselines(views: Views, k: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the labels of methods for one table, on all columns side by side."""

    def k_means(table: Any) -> np.ndarray:
        return KMeans(k, n_init=10, random_state=seed).fit_predict(table)

    def spectral(table: Any, **affinity: Any) -> np.ndarray:
        return SpectralClustering(k, random_state=seed, **affinity).fit_predict(table)

    standard, l2 = _table(views, "standard"), _table(views, "l2")
    yield KM_STANDARD, k_means(standard)
    yield KM_L2, k_means(l2)
    yield NN_STANDARD, spectral(standard, affinity="nearest_neighbors")
    yield NN_L2, spectral(l2, affinity="nearest_neighbors")
    # With the default gamma of 1 and many columns the affinity is the identity, and the solver does not stop.
    yield RBF_STANDARD, spectral(standard, affinity="rbf", gamma=1 / standard.shape[1])
    yield UMAP_L2, k_means(_umap(l2, seed))


def _table(views: Views, step: str) -> Any:
    parts = [parse_steps(step).learn(x, view)(x, view) for view, x in views.items()]
    return sp.csr_matrix(sp.hstack(parts)) if any(map(sp.issparse, parts)) else np.hstack(parts)


def _umap(table: Any, seed: int) -> np.ndarray:
    from umap import UMAP  # an optional package that needs seconds to import

    return UMAP(n_components=10, n_neighbors=15, min_dist=0.0, random_state=seed).fit_transform(table)
