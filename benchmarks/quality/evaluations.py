"""Measures and scores of all candidates in the first round of the search, from which the criterion's constants are set.

The measures of a candidate do not depend on these constants, so page.py can select the constants on all data sets but
one and evaluate them on that one. Generated data sets, whose number of clusters is unambiguous, complement the real
ones.
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
CANDIDATE_CODE = ("neighbors", "kernels", "core", "methods", "preprocess", "rows.py", "views.py")
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
    """Return all data sets; the names of generated ones contain a space."""
    return [*stored_names(), *GENERATED]


def measure(name: str, seed: int) -> dict[str, Any]:
    """Return the measures of each candidate for 2 to 12 clusters, or only for the true number if it is larger."""
    views, truth = _draw(name, seed)
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
    """Return a hash of the code that creates and evaluates candidates; rows with another hash are not used."""
    return code_hash(__file__, "tune/candidates.py", "tune/evaluation.py", *CANDIDATE_CODE)


def code_hash(script: str, *parts: str) -> str:
    """Return a hash of files and folders of coview and of a script."""
    places = [Path(coview.__file__).parent / part for part in parts]
    files = [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    return sha256(b"".join(path.read_bytes() for path in [*files, Path(script)])).hexdigest()[:12]


def _draw(name: str, seed: int) -> tuple[Views, np.ndarray]:
    rng = np.random.default_rng(seed)
    if name in GENERATED:
        return _gaussian_clusters(GENERATED[name], rng)
    views, truth, _ = load(name)
    rows = draw_rows(len(truth), SAMPLES, rng)
    return views.take(rows), truth[rows]


def _gaussian_clusters(sizes: tuple[int, ...], rng: np.random.Generator) -> tuple[Views, np.ndarray]:
    """Return three views of Gaussian clusters with centres about five standard deviations apart."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    views = [1.2 * rng.normal(size=(len(sizes), d))[truth] + rng.normal(size=(len(truth), d)) for d in (8, 12, 16)]
    return as_views(views), truth
