"""Samples that lack views: scores by the rate of missing views, beside other ways to deal with them.

`python -m benchmarks.missing` measures the data sets of the folder COVIEW_DATA with at most 2,000 samples and writes
tables and the picture of docs/missing.md. Rows are stored as they are computed, so an interrupted run resumes. True
labels are used only to compute scores. If iMML is installed (pip install imml), three of its methods are compared.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

# Before NumPy is imported: data sets run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
import scipy.linalg  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.metrics import adjusted_rand_score, euclidean_distances  # noqa: E402

from benchmarks.data import HOW_TO_SET, load, stored_names  # noqa: E402
from benchmarks.markdown import ROOT, table, write_block  # noqa: E402
from benchmarks.quality.rows import Row, Stage, code_hash  # noqa: E402
from coview import TMvKSCR  # noqa: E402
from coview.data.rows import as_array, l2_normalize  # noqa: E402
from coview.data.view import Array, among_all  # noqa: E402
from coview.data.views import Views  # noqa: E402
from coview.kernels import AutoKernel, Graph  # noqa: E402

HERE = Path(__file__).parent
PAGE, PICTURE = ROOT / "docs" / "missing.md", ROOT / "docs" / "missing.svg"
MAX_SAMPLES = 2000
RATES = (0.1, 0.3, 0.5, 0.7)
MASKS = 10
COMPLETE, OURS, CASES, MEANS, NEMO = "complete data", "TMvKSCR", "complete cases", "mean imputation", "NEMO"
# Methods of iMML that need neither Octave nor minutes, with a few masks because they are slow.
PEERS, PEER_RATES, PEER_MASKS = ("NEMO", "LFIMVC", "EEIMVC"), ("0.3", "0.5"), 2
MEASURED_CODE = ("neighbors", "kernels", "core", "model", "methods", "data")


def random_masks(n_samples: int, n_views: int, rate: float, rng: np.random.Generator) -> Array:
    """Return which samples have which views: each is missing with this probability, and each sample keeps one."""
    present = rng.random((n_samples, n_views)) >= rate
    without = np.flatnonzero(~present.any(axis=1))
    present[without, rng.integers(n_views, size=len(without))] = True
    return present


def block_masks(n_samples: int, n_views: int, rate: float, rng: np.random.Generator) -> Array:
    """Return the same for a cohort of parts: the samples of a part lack the same view, and others have all."""
    present = np.ones((n_samples, n_views), dtype=bool)
    lacking = rng.permutation(n_samples)[: round(rate * n_samples)]
    for view, rows in enumerate(np.array_split(lacking, n_views)):
        present[rows, view] = False
    return present


def with_masks(views: Views, present: Array) -> Views:
    """Return the views of which samples lack some."""
    masks = dict(zip(views, present.T, strict=True))
    return views.map(lambda name, view: view.among(masks[name]))


def imputed(views: Views) -> Views:
    """Return complete views, with the means of the columns in the place of missing rows."""
    filled = {}
    for name, x in views.items():
        filled[name] = as_array(x).astype(np.float64)
        if name in views.present:
            filled[name][~views.present[name]] = as_array(views.observed(name)).mean(axis=0)
    return Views(filled)


def nemo(views: Views, n_clusters: int, seed: int) -> Array:
    """Return the labels of NEMO (Rappoport and Shamir, 2019): spectral clustering of averaged relative similarities."""
    n = views.n_samples
    total, count = np.zeros((n, n)), np.zeros((n, n))
    for name in views:
        rows = np.flatnonzero(views.present[name]) if name in views.present else np.arange(n)
        k = max(2, min(len(rows) // n_clusters, len(rows) - 1))
        distances = euclidean_distances(_comparable(views.observed(name)))
        nearest = np.argsort(distances, axis=1, kind="stable")[:, 1 : k + 1]
        means = np.take_along_axis(distances, nearest, axis=1).mean(axis=1)
        width = np.maximum((means[:, None] + means + distances) / 3, 1e-9)  # of duplicate rows it would be 0
        similarities = np.exp(-(distances**2) / (2 * (0.5 * width) ** 2))
        near = np.zeros_like(similarities)
        np.put_along_axis(near, nearest, np.take_along_axis(similarities, nearest, axis=1), axis=1)
        near /= np.maximum(near.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        total[np.ix_(rows, rows)] += near + near.T
        count[np.ix_(rows, rows)] += 1
    average = total / np.maximum(count, 1)
    scale = 1 / np.sqrt(np.maximum(average.sum(axis=1), 1e-12))
    normalised = average * scale[:, None] * scale
    _, vectors = scipy.linalg.eigh(normalised, subset_by_index=[n - n_clusters, n - 1])
    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(l2_normalize(vectors))


def _comparable(x: Array) -> Array:
    """Return the rows as the default kernel compares them."""
    kernel = AutoKernel().resolve(x)
    assert isinstance(kernel, Graph)
    return as_array(kernel.normalized(x, kernel.column_scales(x)))


def peer(kind: str, views: Views, n_clusters: int, seed: int) -> Array:
    """Return the labels of a method of iMML, of the rows as the default kernel compares them."""
    import imml.cluster

    tables = []
    for name in views:
        rows = _comparable(views.observed(name))
        tables.append(among_all(rows, views.present[name]) if name in views.present else rows)
    model = getattr(imml.cluster, kind)(n_clusters=n_clusters, random_state=seed)
    return np.asarray(model.fit_predict(tables))


def complete_cases(views: Views, n_clusters: int, seed: int) -> Array:
    """Return the labels of a model of the samples with all views; the others are predicted from the views they have."""
    model = TMvKSCR(n_clusters, random_state=seed).fit(views.take(np.flatnonzero(views.has_all())))
    return model.predict(views)


def measure(name: str, seed: int) -> Row:
    """Return the scores of all methods for all patterns, with one mask each."""
    views, truth, _ = load(name)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(views.n_samples)[:MAX_SAMPLES]
    views, truth = views.take(rows), np.asarray(truth)[rows]
    k, n, v = len(np.unique(truth)), len(truth), len(views)

    def score(labels: Array) -> float:
        return round(float(adjusted_rand_score(truth, labels)), 5)

    scores: dict[str, dict[str, float | None]] = {
        "0": {COMPLETE: score(TMvKSCR(k, random_state=seed).fit(views).labels_), NEMO: score(nemo(views, k, seed))}
    }
    patterns = {f"{rate}": random_masks(n, v, rate, rng) for rate in RATES}
    patterns["blocks"] = block_masks(n, v, 0.5, rng)
    for pattern, present in patterns.items():
        some = with_masks(views, present)
        methods = {
            OURS: lambda some=some: TMvKSCR(k, random_state=seed).fit(some).labels_,
            CASES: lambda some=some: complete_cases(some, k, seed),
            MEANS: lambda some=some: TMvKSCR(k, random_state=seed).fit(imputed(some)).labels_,
            NEMO: lambda some=some: nemo(some, k, seed),
        }
        if find_spec("imml") and pattern in PEER_RATES and seed < PEER_MASKS:
            methods |= {f"iMML {kind}": lambda some=some, kind=kind: peer(kind, some, k, seed) for kind in PEERS}
        scores[pattern] = {title: _or_none(lambda run=run: score(run())) for title, run in methods.items()}
    return {"clusters": k, "samples": n, "scores": scores, "predict": _predicted(views, truth, k, seed)}


def _or_none(run: Callable[[], float]) -> float | None:
    """Return the score; None if the method fails, as with too few samples that have all views."""
    try:
        return run()
    except Exception:  # methods of iMML have errors of many kinds
        return None


def _predicted(views: Views, truth: Array, k: int, seed: int) -> dict[str, list[float]]:
    """Return scores of new samples: with all views, and for each view with this view alone, by two models.

    One model is of all views. The other is of the one view, of the same training samples.
    """
    half = len(truth) // 2
    train, new, classes = views.take(slice(half)), views.take(slice(half, None)), truth[half:]

    def score(labels: Array) -> float:
        return round(float(adjusted_rand_score(classes, labels)), 5)

    joint = TMvKSCR(k, random_state=seed).fit(train)
    singles = [
        score(TMvKSCR(k, random_state=seed).fit({name: train[name]}).predict({name: new[name]})) for name in views
    ]
    return {
        "all views": [score(joint.predict(new))],
        "one view": [score(joint.predict({name: new[name]})) for name in views],
        "one view, clustered alone": singles,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--masks", type=int, default=MASKS, help="number of random masks")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--rows", type=Path, default=HERE / "missing.jsonl", help="file of the rows, to resume a run")
    options = parser.parse_args()
    names = [name for name in stored_names() if load(name)[0].n_samples <= MAX_SAMPLES]
    if not names:
        sys.exit(f"no data sets are found; {HOW_TO_SET}")
    stage = Stage(options.rows, measure, code_hash(__file__, MEASURED_CODE), names)
    stage.resume(range(options.masks), options.jobs)
    write_page(stage.complete_rows())


def write_page(rows: list[Row]) -> None:
    """Write the tables and the picture of the page."""
    titles, columns = (OURS, CASES, MEANS, NEMO), [*map(str, RATES), "blocks"]
    complete = {NEMO: _mean(rows, "0", NEMO)}
    scores = {
        title: [complete.get(title, _mean(rows, "0", COMPLETE)), *(_mean(rows, column, title) for column in columns)]
        for title in titles
    }
    predicted = [
        (title, float(np.mean([np.mean(row["predict"][title]) for row in rows])))
        for title in ("all views", "one view", "one view, clustered alone")
    ]
    n_sets, n_masks = len({row["data"] for row in rows}), len({row["seed"] for row in rows})
    lines = [
        f"Mean adjusted Rand index of {n_sets} data sets and {n_masks} masks:",
        "",
        *table(["method", "0", *columns], [(title, *values) for title, values in scores.items()]),
        "",
        "New samples, of models that are trained on the other half of the samples:",
        "",
        *table(["views of new samples", "mean ARI"], predicted),
    ]
    few = [row for row in rows if any(title.startswith("iMML") for title in row["scores"]["0.3"])]
    if few:
        compared = [OURS, NEMO, *(f"iMML {kind}" for kind in PEERS)]
        body = [(title, *(_mean(few, rate, title) for rate in PEER_RATES)) for title in compared]
        lines += ["", f"With {PEER_MASKS} of these masks, also methods of iMML with their defaults:", ""]
        lines += table(["method", *PEER_RATES], body)
    write_block(PAGE, "<!-- begin: missing -->", "<!-- end: missing -->", lines)
    _draw({title: values[: 1 + len(RATES)] for title, values in scores.items()})


def _mean(rows: list[Row], pattern: str, title: str) -> float:
    """Return the mean score; a method that cannot be fitted has 0."""
    return float(np.mean([row["scores"][pattern][title] or 0.0 for row in rows]))


def _draw(lines: dict[str, list[float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for (title, values), marker in zip(lines.items(), "os^D", strict=True):
        axes.plot([0, *RATES], values, marker=marker, label=title)
    axes.set(xlabel="rate of missing views", ylabel="mean adjusted Rand index", ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
