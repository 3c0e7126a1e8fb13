"""Adjusted Rand indices of `Coview` on stored data sets: for a given number of clusters, on new samples, and "auto"."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getsource
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.data import list_datasets, stored_names
from benchmarks.provenance import commit
from benchmarks.quality.rows import Row, code_hash
from benchmarks.real_data import sampled
from coview import Coview
from coview.data.views import Views

TRAINING_PART = 0.7  # of the samples, if the others are new
MOST_CLUSTERS = 12  # of the data sets on which the number is selected
# What the rows depend on. The words of the support and of the selection have no effect on them.
MEASURED_CODE = ("evaluate", "neighbors", "kernels", "core", "preprocess", "data")
NOT_MEASURED = ("evaluate/words.py",)


def measure_known(name: str, seed: int) -> Row:
    """Return the score for the number of classes."""

    def fit(views: Views, truth: np.ndarray, k: int) -> Row:
        return {"ari": _score(truth, Coview(k, random_state=seed).fit(views).labels_)}

    return _measured(name, seed, fit)


def measure_new(name: str, seed: int) -> Row:
    """Return the scores of the training samples and of new samples, for the number of classes."""

    def fit(views: Views, truth: np.ndarray, k: int) -> Row:
        n_training = round(TRAINING_PART * len(truth))  # rows are in random order
        rows, others = np.arange(n_training), np.arange(n_training, len(truth))
        model = Coview(k, random_state=seed).fit(views.take(rows))
        new = model.predict(views.take(others))
        return {"ari": _score(truth[rows], model.labels_), "new_ari": _score(truth[others], new)}

    return _measured(name, seed, fit)


def measure_auto(name: str, seed: int) -> Row:
    """Return the selected number of clusters, the score, and the level of the support."""

    def fit(views: Views, truth: np.ndarray, k: int) -> Row:
        model = Coview("auto", random_state=seed).fit(views)
        level = None if model.support_ is None else model.support_.level
        return {"number": model.n_clusters_, "ari": _score(truth, model.labels_), "level": level}

    return _measured(name, seed, fit)


def _measured(name: str, seed: int, fit: Callable[[Views, np.ndarray, int], Row]) -> Row:
    views, truth = sampled(name, seed)
    k, start = len(np.unique(truth)), perf_counter()
    row = {"commit": commit(), "samples": views.n_samples, "clusters": k}
    return row | fit(views, truth, k) | {"seconds": round(perf_counter() - start, 1)}


def _score(truth: np.ndarray, labels: Any) -> float:
    return round(float(adjusted_rand_score(truth, labels)), 4)


def names_for_auto() -> list[str]:
    """Return the stored data sets with at most 12 classes."""
    few = {each.name for each in list_datasets() if each.clusters <= MOST_CLUSTERS}
    return [name for name in stored_names() if name in few]


def version() -> str:
    """Return a hash of the measured code."""
    return code_hash(__file__, MEASURED_CODE, more=getsource(sampled), without=NOT_MEASURED)
