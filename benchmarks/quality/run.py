"""How good clusters are without labels, on real data sets: `make quality` measures, and writes docs/quality.md.

First comes the evidence from which the constants of the criterion are fixed, then the quality that they reach. Rows are
kept as they are made, one for each data set and seed, so a run that was stopped goes on where it was. Data sets are
those of the folder COVIEW_DATA. Only measuring sees the true labels.
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

# Before NumPy is loaded: data sets are worked on beside each other, so that each has one thread.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402
from sklearn.cluster import KMeans, SpectralClustering  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

from benchmarks.data import load, stored_names  # noqa: E402
from benchmarks.quality import evidence, page  # noqa: E402
from coview import Preprocessed, TMvKSCR, Tuned  # noqa: E402
from coview.preprocess.steps import parse_steps  # noqa: E402
from coview.tune.candidates import Candidate, candidates  # noqa: E402
from coview.views import Views  # noqa: E402

HERE = Path(__file__).parent
MOST_SAMPLES = 3000
MOST_CLUSTERS = 12  # up to which the number of clusters is also searched for
SEEDS = 5

Row = dict[str, Any]


def measure(name: str, seed: int) -> Row:
    """All that is measured on one data set with one seed."""
    start = perf_counter()
    views, truth = _drawn(name, seed)
    k = len(np.unique(truth))

    def score(labels: Any) -> float:
        return round(float(adjusted_rand_score(truth, labels)), 4)

    tuned, seconds = _timed(lambda: Tuned(k, random_state=seed).fit(views))
    tried = [{"candidate": _key(c), "ari": score(_fitted(c, k, seed, views))} for c in candidates(views)]
    row: Row = {
        "version": version(),
        "data": name,
        "seed": seed,
        "samples": views.n_samples,
        "views": len(views),
        "clusters": k,
        "tuned": score(tuned.labels_),
        "tuned_seconds": round(seconds, 2),
        "chosen": _chosen(tuned),
        "candidates": tried,
        "table": _short(tuned.evaluations_),
        "default": score(_default(k, seed, views)),
        "baselines": {title: score(labels) for title, labels in _baselines(views, k, seed)},
    }
    if k <= MOST_CLUSTERS:
        auto = Tuned("auto", random_state=seed).fit(views)
        row |= {"auto_clusters": auto.n_clusters_, "auto": score(auto.labels_), "auto_table": _short(auto.evaluations_)}
    return row | {"seconds": round(perf_counter() - start, 1)}


def version() -> str:
    """A mark of the code that chooses settings: rows of another one do not count."""
    return evidence.mark_of(__file__, "tune", "compose", *evidence.BEHIND)


def _drawn(name: str, seed: int) -> tuple[Views, np.ndarray]:
    """At most so many samples, in an order of their own."""
    views, truth, _ = load(name)
    rows = np.random.default_rng(seed).permutation(len(truth))[:MOST_SAMPLES]
    return views.take(rows), truth[rows]


def _timed(function: Any) -> tuple[Any, float]:
    start = perf_counter()
    return function(), perf_counter() - start


def _fitted(candidate: Candidate, k: int, seed: int, views: Views) -> np.ndarray:
    method = TMvKSCR(k, kernel=candidate.kernel, rho=candidate.rho, random_state=seed)
    return Preprocessed(method, steps=list(candidate.steps)).fit(views).labels_


def _default(k: int, seed: int, views: Views) -> np.ndarray:
    """One setting for all: dense views standardised, rows of sparse views of length 1, everything else by default."""
    how = {name: "l2" if sp.issparse(x) else "standard" for name, x in views.items()}
    return Preprocessed(TMvKSCR(k, random_state=seed), steps=how).fit(views).labels_


def _baselines(views: Views, k: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """What a user would try first, on all columns side by side."""
    for title, how in (("standardised", "standard"), ("row-normalised", "l2")):
        parts = [parse_steps(how).learn(x, view)(x, view) for view, x in views.items()]
        table = sp.csr_matrix(sp.hstack(parts)) if any(map(sp.issparse, parts)) else np.hstack(parts)
        yield f"k-means, {title}", KMeans(k, n_init=10, random_state=seed).fit_predict(table)
        nearest = SpectralClustering(k, affinity="nearest_neighbors", random_state=seed)
        yield f"spectral, nearest neighbours, {title}", nearest.fit_predict(table)
        if how == "standard":
            # Its own gamma of 1 makes the affinity of many columns the identity, and the solver never ends.
            rbf = SpectralClustering(k, affinity="rbf", gamma=1 / table.shape[1], random_state=seed)
            yield f"spectral, rbf, {title}", rbf.fit_predict(table)


def _key(candidate: Candidate) -> list[Any]:
    return [list(candidate.steps), type(candidate.kernel).__name__, candidate.rho]


def _chosen(tuned: Tuned) -> dict[str, Any]:
    method = tuned.estimator_.estimator
    return {"candidate": [tuned.estimator_.steps, type(method.kernel).__name__, method.rho], "kappa": method.kappa}


def _short(evaluations: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows of a search with few digits."""
    return [
        {name: float(f"{v:.5g}") if isinstance(v, float) else v for name, v in vars(row).items()} for row in evaluations
    ]


def _go_on(
    path: Path, measured: Callable[[str, int], Row], version: str, names: Sequence[str], seeds: int, jobs: int
) -> None:
    """Measure all data sets with all seeds, but for those that are on file."""
    done = {(row["data"], row["seed"]) for row in page.read(path, version)}
    left = [(name, seed) for seed in range(seeds) for name in names if (name, seed) not in done]
    work = Parallel(n_jobs=jobs, return_as="generator_unordered")
    for row in work(delayed(_quietly)(measured, name, seed) for name, seed in left):
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{path.stem}: {row['data']} {row['seed']}", flush=True)


def _quietly(measured: Callable[[str, int], Row], name: str, seed: int) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured(name, seed)


def _complete(rows: list[Row], names: Sequence[str]) -> list[Row]:
    """Rows of seeds with which all data sets were measured: a mean over others would not be one of the same sets."""
    counts = Counter(row["seed"] for row in rows)
    return [row for row in rows if counts[row["seed"]] == len(names)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="data sets at a time")
    parser.add_argument("--rows", type=Path, default=HERE, help="folder of the rows, which are resumed")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "docs" / "quality.md")
    parser.add_argument(
        "--stage", choices=["evidence", "quality", "page"], help="only this; the page is always written"
    )
    options = parser.parse_args()
    stages = {
        "evidence": (evidence.measure, evidence.version(), evidence.names()),
        "quality": (measure, version(), stored_names()),
    }
    found = {}
    for stage, (measured, mark, names) in stages.items():
        path = options.rows / f"{stage}.jsonl"
        if options.stage in (None, stage):
            _go_on(path, measured, mark, names, options.seeds, options.jobs)
        found[stage] = _complete(page.read(path, mark), names)
    missing = [stage for stage, rows in found.items() if not rows]
    if missing:
        sys.exit(f"no page yet: it wants one seed with all data sets, of {' and of '.join(missing)}")
    page.write(found["quality"], found["evidence"], options.out)


if __name__ == "__main__":
    main()
