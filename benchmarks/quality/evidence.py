"""What the first round of the search sees, and how good it was: from this the constants of the criterion are fixed.

The measures of a candidate do not depend on those constants, so they can be chosen afterwards, on all data sets but
one, and judged on that one (page.py). Beside the real data sets there are generated ones, whose number of clusters is
beyond doubt.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

import coview
from benchmarks.data import load, stored_names
from coview.core.select import draw_rows
from coview.tune.candidates import candidates
from coview.tune.criterion import consensus_values
from coview.tune.evaluation import Evaluator
from coview.views import Views, as_views

SAMPLES = 500
NUMBERS = range(2, 13)
BEHIND = ("neighbors", "kernels", "core", "methods", "preprocess", "rows.py", "views.py")  # what candidates are made of
# Sizes of the clusters.
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
    """All data sets; generated ones have a blank in their names."""
    return [*stored_names(), *GENERATED]


def measure(name: str, seed: int) -> dict[str, Any]:
    """The evidence for each candidate, for the true number of clusters and, up to 12 of them, for others."""
    views, truth = _drawn(name, seed)
    k = len(np.unique(truth))
    numbers = list(NUMBERS) if k <= max(NUMBERS) else [k]
    evaluator = Evaluator(views, n_splits=1, seed=seed)
    found = [evaluator.evaluate(candidate, numbers) for candidate in candidates(views)]
    table = []
    for of_number in zip(*found, strict=True):
        for i, (one, shared) in enumerate(zip(of_number, consensus_values(of_number), strict=True)):
            measures = {
                "stability": one.record.stability,
                "agreement": one.record.agreement,
                "consensus": shared,
                "size_entropy": one.record.size_entropy,
                "eigengap": one.record.eigengap,
                "ari": adjusted_rand_score(truth, one.labels),
            }
            rounded = {title: float(f"{value:.5g}") for title, value in measures.items()}
            table.append({"candidate": i, "n_clusters": one.record.n_clusters} | rounded)
    return {"version": version(), "data": name, "seed": seed, "clusters": k, "table": table}


def version() -> str:
    """A mark of the code that makes and measures candidates: rows of another one do not count."""
    return mark_of(__file__, "tune/candidates.py", "tune/evaluation.py", *BEHIND)


def mark_of(script: str, *parts: str) -> str:
    """A mark of files and folders of coview, and of a script."""
    places = [Path(coview.__file__).parent / part for part in parts]
    files = [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    return sha256(b"".join(path.read_bytes() for path in [*files, Path(script)])).hexdigest()[:12]


def _drawn(name: str, seed: int) -> tuple[Views, np.ndarray]:
    rng = np.random.default_rng(seed)
    if name in GENERATED:
        return _generated(GENERATED[name], rng)
    views, truth, _ = load(name)
    rows = draw_rows(len(truth), SAMPLES, rng)
    return views.take(rows), truth[rows]


def _generated(sizes: tuple[int, ...], rng: np.random.Generator) -> tuple[Views, np.ndarray]:
    """Three views of Gaussian clusters, whose centres are some five standard deviations apart in each."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    views = [1.2 * rng.normal(size=(len(sizes), d))[truth] + rng.normal(size=(len(truth), d)) for d in (8, 12, 16)]
    return as_views(views), truth
