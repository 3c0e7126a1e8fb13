"""Noise, real data and outliers: whether Tuned("auto") finds clusters only where there are any. Prints three tables.

Run as `python -m benchmarks.validity`. Real data sets are those in the folder COVIEW_DATA. Known classes are used only
to compute scores.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

# Before NumPy is imported: data sets run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

from benchmarks.data import load, stored_names  # noqa: E402
from coview import Tuned  # noqa: E402
from coview.rows import as_array  # noqa: E402
from coview.views import Views, as_views  # noqa: E402

NOISE_SETS = 20
NOISE_SIZES = (100, 200, 500, 1000, 2000)
NOISE_KINDS = ("normal", "uniform", "permuted rows", "permuted columns")
MOST_COLUMNS = 3000  # of real views, which are made dense
MAX_SAMPLES = 1500
MAX_CLUSTERS = 12  # up to which "auto" searches
OUTLIERS = 0.01
OUTLIER_KINDS = ("distant", "scaled", "shuffled")


def noise(number: int) -> tuple[str, Views]:
    """Return the kind of a set of views without common clusters, and the views."""
    rng = np.random.default_rng(number)
    kind, n = NOISE_KINDS[number % len(NOISE_KINDS)], NOISE_SIZES[number % len(NOISE_SIZES)]
    if kind in ("normal", "uniform"):
        draw = rng.standard_normal if kind == "normal" else rng.random
        return kind, as_views([draw((n, width)) for width in rng.choice([2, 5, 10, 50, 200], rng.integers(1, 4))])
    views, _, _ = load(str(rng.choice(stored_names())))
    tables = _dense(views.take(rng.permutation(views.n_samples)[:n]), rng)
    permute = rng.permutation if kind == "permuted rows" else lambda x: rng.permuted(x, axis=0)
    permuted = {name: permute(x) for name, x in tables.items()}
    return kind, as_views({name: x for name, x in permuted.items() if np.ptp(x, axis=0).any()})


def measure_noise(number: int) -> dict[str, Any]:
    """Return what is selected for a set of noise."""
    kind, views = noise(number)
    auto = _tuned("auto", views)
    level = auto.validity_.level if auto.validity_ else "none"
    return {"kind": kind, "samples": views.n_samples, "clusters": auto.n_clusters_, "level": level}


def measure_real(name: str) -> dict[str, Any]:
    """Return what is selected for a data set, and the score with the true number of clusters."""
    views, truth = _draw(name)
    k = len(np.unique(truth))
    auto, known = _tuned("auto", views), _tuned(k, views)
    return {
        "data": name,
        "true number": k,
        "ari": adjusted_rand_score(truth, known.labels_),
        "level": known.validity_.level if known.validity_ else "unknown",
        "auto": auto.n_clusters_,
        "auto ari": adjusted_rand_score(truth, auto.labels_),
        "auto level": auto.validity_.level if auto.validity_ else "unknown",
    }


def measure_outliers(name: str) -> dict[str, Any]:
    """Return the scores of a data set without and with outliers, on the samples that stay as they are."""
    views, truth = _draw(name)
    k = len(np.unique(truth))
    rng = np.random.default_rng(0)
    tables = _dense(views, rng)
    rows = rng.permutation(len(truth))[: max(1, round(OUTLIERS * len(truth)))]
    kept = np.setdiff1d(np.arange(len(truth)), rows)
    row: dict[str, Any] = {"data": name, "clean": adjusted_rand_score(truth[kept], _tuned(k, tables).labels_[kept])}
    for kind in OUTLIER_KINDS:
        spoilt = {view: _with_outliers(x, rows, kind, rng) for view, x in tables.items()}
        row[kind] = adjusted_rand_score(truth[kept], _tuned(k, spoilt).labels_[kept])
    return row


def _with_outliers(x: np.ndarray, rows: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return a copy whose rows are 30 standard deviations away, 50 times as long, or have their columns shuffled."""
    spoilt = x.copy()
    if kind == "distant":
        far = x.mean(axis=0) + 30 * x.std(axis=0) * rng.standard_normal((len(rows), x.shape[1]))
        spoilt[rows] = abs(far) if x.min() >= 0 else far
    elif kind == "scaled":
        spoilt[rows] *= 50
    else:
        spoilt[rows] = rng.permuted(x[rows], axis=1)
    return spoilt


def _draw(name: str) -> tuple[Views, np.ndarray]:
    """Return at most 1500 samples, in random order."""
    views, truth, _ = load(name)
    rows = np.random.default_rng(0).permutation(len(truth))[:MAX_SAMPLES]
    return views.take(rows), np.asarray(truth)[rows]


def _dense(views: Views, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return dense tables in float64, with some of the columns of wide views."""
    return {
        name: as_array(x[:, np.sort(rng.permutation(x.shape[1])[:MOST_COLUMNS])]).astype(np.float64)
        for name, x in views.items()
    }


def _tuned(n_clusters: Any, views: Any) -> Tuned:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Tuned(n_clusters, random_state=0).fit(views)


def _table(rows: list[dict[str, Any]]) -> None:
    print("|", " | ".join(rows[0]), "|")
    print("|", " | ".join("---" for _ in rows[0]), "|")
    for row in rows:
        cells = (f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values())
        print("|", " | ".join(cells), "|", flush=True)


def main() -> None:
    run = Parallel(n_jobs=-1)
    few = [name for name in stored_names() if len(np.unique(load(name)[1])) <= MAX_CLUSTERS]
    _table(run(delayed(measure_noise)(number) for number in range(NOISE_SETS)))
    _table(run(delayed(measure_real)(name) for name in few))
    spoilt = run(delayed(measure_outliers)(name) for name in stored_names())
    _table([*spoilt, {"data": "mean"} | {k: float(np.mean([r[k] for r in spoilt])) for k in ("clean", *OUTLIER_KINDS)}])


if __name__ == "__main__":
    main()
