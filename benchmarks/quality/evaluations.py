"""Measures of the consensus for each number of clusters, from which the constants of the criterion are fixed.

The measures do not depend on these constants. Generated data sets, whose number of clusters is unambiguous, complement
the real ones.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.data import list_datasets, load, stored_names
from benchmarks.quality.rows import Row, code_hash
from coview.tune.criterion import model_weights
from coview.tune.record import evaluated_numbers
from coview.tune.search import Search
from coview.views import Views, as_views

NUMBERS = range(2, 13)  # those of Tuned("auto") without 1, which is not a result of the search
MEASURES = ("stability", "model_agreement", "size_entropy", "eigengap")
MEASURED_CODE = ("neighbors", "kernels", "core", "methods", "compose", "preprocess", "rows.py", "views.py")
# Cluster sizes.
GENERATED = {
    "2 even": (200, 200),
    "3 uneven": (300, 60, 40),
    "4 even": (100,) * 4,
    "5 uneven": (200, 100, 50, 30, 20),
    "6 even": (70,) * 6,
    "8 uneven": (100, 80, 60, 50, 40, 30, 20, 20),
    "10 even": (40,) * 10,
}


def names() -> list[str]:
    """Return the stored data sets with at most 12 clusters, and the generated ones."""
    few = {each.name for each in list_datasets() if each.clusters in NUMBERS}
    return [*(name for name in stored_names() if name in few), *GENERATED]


def measure(name: str, seed: int) -> Row:
    """Return the measures for 2 to 12 clusters, and the scores on the samples of the search."""
    views, truth = _generated(name, seed) if name in GENERATED else load(name)[:2]
    search = Search.run(views, NUMBERS, seed, n_jobs=1, progress=lambda *_: None)
    evaluations = search.evaluate(NUMBERS).evaluations
    found = evaluated_numbers(evaluations)
    truth = truth[search.rows]
    columns = {title: [_rounded(getattr(each, title) or 0.0) for each in found] for title in MEASURES}
    scores = [adjusted_rand_score(truth, search.labels(evaluations, each.n_clusters)) for each in found]
    return {"clusters": len(np.unique(truth)), "measures": columns, "ari": [_rounded(score) for score in scores]}


def version() -> str:
    """Return a hash of the measured code; of criterion.py only the weights of the models have an effect."""
    parts = (*MEASURED_CODE, "tune/models.py", "tune/search.py")
    return code_hash(__file__, parts, more=str(model_weights([0.0, 0.1, 0.5, 0.9])))


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def _generated(name: str, seed: int) -> tuple[Views, np.ndarray]:
    """Return three views of Gaussian clusters with centres about five standard deviations apart."""
    sizes, rng = GENERATED[name], np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    views = [1.2 * rng.normal(size=(len(sizes), d))[truth] + rng.normal(size=(len(truth), d)) for d in (8, 12, 16)]
    return as_views(views), truth
