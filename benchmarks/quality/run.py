"""Clustering quality without labels on real data sets: `make quality` measures it and writes docs/quality.md.

The first stage evaluates the candidates from which the constants of the criterion are selected, the second measures the
quality with these constants. Rows are stored as they are computed, one for each data set and seed, so an interrupted
run resumes. The data sets are those in the folder COVIEW_DATA. The true labels are used only to compute scores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

# Before NumPy is imported: data sets run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402
from sklearn.cluster import KMeans, SpectralClustering  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

from benchmarks.data import load, stored_names  # noqa: E402
from benchmarks.provenance import commit  # noqa: E402
from benchmarks.quality import evaluations, page  # noqa: E402
from benchmarks.sweep import standard_or_l2  # noqa: E402
from coview import Preprocessed, TMvKSCR, Tuned  # noqa: E402
from coview.preprocess.steps import parse_steps  # noqa: E402
from coview.tune.candidates import Candidate, candidates  # noqa: E402
from coview.views import Views  # noqa: E402

HERE = Path(__file__).parent
MAX_SAMPLES = 3000
MAX_CLUSTERS = 12  # up to which Tuned("auto") is measured, too
SEEDS = 5

Row = dict[str, Any]


def measure(name: str, seed: int) -> Row:
    """Return all scores on one data set with one seed."""
    start = perf_counter()
    views, truth = _draw(name, seed)
    k = len(np.unique(truth))

    def score(labels: Any) -> float:
        return round(float(adjusted_rand_score(truth, labels)), 4)

    tuned, seconds = _timed(lambda: Tuned(k, random_state=seed).fit(views))
    candidate_scores = [{"candidate": _key(c), "ari": score(_fit(c, k, seed, views))} for c in candidates(views)]
    row: Row = {
        "version": version(),
        "commit": commit(),
        "data": name,
        "seed": seed,
        "samples": views.n_samples,
        "views": len(views),
        "clusters": k,
        "tuned": score(tuned.labels_),
        "tuned_seconds": round(seconds, 2),
        "selected": _selected(tuned),
        "candidates": candidate_scores,
        "table": _rounded(tuned.evaluations_),
        "default": score(_default(k, seed, views)),
        "baselines": {title: score(labels) for title, labels in _baselines(views, k, seed)},
    }
    if k <= MAX_CLUSTERS:
        auto = Tuned("auto", random_state=seed).fit(views)
        row |= {
            "auto_clusters": auto.n_clusters_,
            "auto": score(auto.labels_),
            "auto_table": _rounded(auto.evaluations_),
        }
    return row | {"seconds": round(perf_counter() - start, 1)}


def version() -> str:
    """Return a hash of the code that selects settings; rows with another hash are not used."""
    return evaluations.code_hash(__file__, "tune", "compose", *evaluations.CANDIDATE_CODE)


def _draw(name: str, seed: int) -> tuple[Views, np.ndarray]:
    """Return at most 3000 samples, in random order."""
    views, truth, _ = load(name)
    rows = np.random.default_rng(seed).permutation(len(truth))[:MAX_SAMPLES]
    return views.take(rows), truth[rows]


def _timed(function: Any) -> tuple[Any, float]:
    start = perf_counter()
    return function(), perf_counter() - start


def _fit(candidate: Candidate, k: int, seed: int, views: Views) -> np.ndarray:
    method = TMvKSCR(k, kernel=candidate.kernel, rho=candidate.rho, random_state=seed)
    return Preprocessed(method, steps=list(candidate.steps)).fit(views).labels_


def _default(k: int, seed: int, views: Views) -> np.ndarray:
    """Return the labels of TMvKSCR with its defaults; dense views standardised, sparse views L2-normalised."""
    steps = list(standard_or_l2(views))
    return Preprocessed(TMvKSCR(k, random_state=seed), steps=steps).fit(views).labels_


def _baselines(views: Views, k: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the labels of scikit-learn's methods on all columns side by side."""
    for title, step in (("standardised", "standard"), ("L2-normalised", "l2")):
        parts = [parse_steps(step).learn(x, view)(x, view) for view, x in views.items()]
        table = sp.csr_matrix(sp.hstack(parts)) if any(map(sp.issparse, parts)) else np.hstack(parts)
        yield f"k-means, {title}", KMeans(k, n_init=10, random_state=seed).fit_predict(table)
        nearest = SpectralClustering(k, affinity="nearest_neighbors", random_state=seed)
        yield f"spectral, nearest neighbours, {title}", nearest.fit_predict(table)
        if step == "standard":
            # With the default gamma of 1 and many columns the affinity is the identity, and the solver does not stop.
            rbf = SpectralClustering(k, affinity="rbf", gamma=1 / table.shape[1], random_state=seed)
            yield f"spectral, rbf, {title}", rbf.fit_predict(table)


def _key(candidate: Candidate) -> list[Any]:
    return [list(candidate.steps), type(candidate.kernel).__name__, candidate.rho]


def _selected(tuned: Tuned) -> dict[str, Any]:
    method = tuned.estimator_.estimator
    return {"candidate": [tuned.estimator_.steps, type(method.kernel).__name__, method.rho], "kappa": method.kappa}


def _rounded(evaluations: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the rows of a search with five digits."""
    return [
        {name: float(f"{v:.5g}") if isinstance(v, float) else v for name, v in vars(row).items()} for row in evaluations
    ]


def _resume(
    path: Path, measured: Callable[[str, int], Row], version: str, names: Sequence[str], seeds: int, jobs: int
) -> None:
    """Measure all data sets with all seeds, except for the rows that are stored."""
    done = {(row["data"], row["seed"]) for row in page.read(path, version)}
    left = [(name, seed) for seed in range(seeds) for name in names if (name, seed) not in done]
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered")
    for row in pool(delayed(_without_warnings)(measured, name, seed) for name, seed in left):
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{path.stem}: {row['data']} {row['seed']}", flush=True)


def _without_warnings(measured: Callable[[str, int], Row], name: str, seed: int) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured(name, seed)


def _complete(rows: list[Row], names: Sequence[str]) -> list[Row]:
    """Return the rows of seeds with which all data sets were measured, so that means are over the same data sets."""
    counts = Counter(row["seed"] for row in rows)
    return [row for row in rows if counts[row["seed"]] == len(names)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--rows", type=Path, default=HERE, help="folder of the rows, to resume a run")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "docs" / "quality.md")
    parser.add_argument(
        "--stage", choices=["evaluations", "quality", "page"], help="run only this stage; the page is always written"
    )
    options = parser.parse_args()
    stages = {
        "evaluations": (evaluations.measure, evaluations.version(), evaluations.names()),
        "quality": (measure, version(), stored_names()),
    }
    found = {}
    for stage, (measured, current, names) in stages.items():
        path = options.rows / f"{stage}.jsonl"
        if options.stage in (None, stage):
            _resume(path, measured, current, names, options.seeds, options.jobs)
        found[stage] = _complete(page.read(path, current), names)
    missing = [stage for stage, rows in found.items() if not rows]
    if missing:
        sys.exit(f"the page needs one seed with all data sets; rows are missing of: {', '.join(missing)}")
    page.write(found["quality"], found["evaluations"], options.out)


if __name__ == "__main__":
    main()
