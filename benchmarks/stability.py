"""What the stability of clusters and samples means with and without groups; writes the tables of docs/stability.md.

Run as `python -m benchmarks.stability`. Real data sets are those in the folder COVIEW_DATA, with the true number of
clusters (at most 20) and at most 400 samples. Data without groups are all kinds of benchmarks/situations.py. Known
classes are used only to compute scores. Resampling schemes are compared on one half of the real data sets
(benchmarks.quality.paired) and on data without groups; the other tables are of the other half.
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
from scipy.stats import spearmanr  # noqa: E402

from benchmarks.data import load, stored_names  # noqa: E402
from benchmarks.markdown import ROOT, table, write_block  # noqa: E402
from benchmarks.quality.paired import halves  # noqa: E402
from benchmarks.situations import WITHOUT_GROUPS  # noqa: E402
from coview import Coview  # noqa: E402
from coview.certainty.refits import labels_by_part  # noqa: E402
from coview.certainty.stability import DOUBTFUL, READINGS, STABLE, hennig_reading, summarize_halves  # noqa: E402
from coview.core.agreement import jaccard_indices  # noqa: E402
from coview.data.as_views import as_views  # noqa: E402
from coview.data.views import Views  # noqa: E402

MAX_SAMPLES = 400
MAX_CLUSTERS = 20  # halves have ten samples of each cluster on average
REPEATS = 10
CLUSTERS_WITHOUT_GROUPS = 5
SCHEMES = ("halves", "80 %", "bootstrap")
STAYS = (0.0, 0.5, 0.75, 0.95)  # lower bounds of the rows of the table of samples


def drawn(scheme: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of one resample."""
    if scheme == "bootstrap":
        return np.sort(rng.integers(n, size=n))
    return np.sort(rng.permutation(n)[: n // 2 if scheme == "halves" else round(0.8 * n)])


def resampled(model: Any, views: Views, scheme: str) -> tuple[list[float], np.ndarray]:
    """Return the stability of each cluster and of each sample, by the labels of all samples."""
    rng, found, every = np.random.default_rng(0), [], np.arange(views.n_samples)
    for seed in range(REPEATS):
        rows = drawn(scheme, views.n_samples, rng)
        try:
            found.append((every, labels_by_part(model.of_part(model.model_, rows, seed), views, {}, rows, every)))
        except ValueError:  # a resample without enough distinct samples
            continue
    clusters, samples = summarize_halves(model.labels_, found)
    return [each.jaccard for each in clusters], np.array(samples)


def fitted(n_clusters: int, views: Views) -> Coview:
    """Return the consensus of these samples."""
    return Coview(n_clusters, random_state=0, n_jobs=1).fit(views)


def measure_without_groups(kind: str) -> dict[str, Any]:
    """Return the stability of the clusters of data without groups."""
    warnings.simplefilter("ignore")
    views = as_views(WITHOUT_GROUPS[kind](MAX_SAMPLES, np.random.default_rng(0)))
    model = fitted(CLUSTERS_WITHOUT_GROUPS, views)
    found = {scheme: resampled(model, views, scheme)[0] for scheme in SCHEMES}
    print(kind, *(f"{scheme} {np.mean(clusters):.3f}" for scheme, clusters in found.items()), flush=True)
    return found


def measure_real(name: str, schemes: tuple[str, ...]) -> dict[str, Any]:
    """Return the stability of clusters and samples, and how well they agree with the known classes."""
    warnings.simplefilter("ignore")
    views, truth, _ = load(name)
    rows = np.random.default_rng(0).permutation(len(truth))[:MAX_SAMPLES]
    views, classes = views.take(rows), np.unique(np.asarray(truth)[rows], return_inverse=True)[1]
    model = fitted(classes.max() + 1, views)
    labels = np.unique(model.labels_, return_inverse=True)[1]
    indices = jaccard_indices(labels, classes, labels.max() + 1)
    main = np.array([np.bincount(classes[labels == c]).argmax() for c in range(labels.max() + 1)])
    found = {scheme: resampled(model, views, scheme) for scheme in schemes}
    print(name, *(f"{scheme} {np.mean(clusters):.3f}" for scheme, (clusters, _) in found.items()), flush=True)
    return {"found": found, "classes": indices.max(axis=1).tolist(), "in main": main[labels] == classes}


def scheme_table(without_groups: list[dict[str, Any]], real: list[dict[str, Any]]) -> list[str]:
    """Return how each scheme separates clusters that agree with a class from others, and from those without groups."""
    body = []
    for scheme in SCHEMES:
        values = np.concatenate([each[scheme] for each in without_groups])
        stable = np.concatenate([each["found"][scheme][0] for each in real])
        classes = np.concatenate([each["classes"] for each in real])
        trusted = [f"{np.mean(values >= bound):.0%}".replace("%", " %") for bound in (DOUBTFUL, STABLE)]
        body.append([scheme, float(spearmanr(stable, classes).statistic), float(stable.mean()), *trusted])
    head = ["resamples", "rank correlation with the classes", "mean stability"]
    return table(head + [f"without groups, above {bound}" for bound in (DOUBTFUL, STABLE)], body)


def cluster_table(real: list[dict[str, Any]]) -> list[str]:
    """Return how well the clusters of each reading agree with a known class."""
    stable = np.concatenate([each["found"]["halves"][0] for each in real])
    classes = np.concatenate([each["classes"] for each in real])
    readings = np.array([hennig_reading(value) for value in stable])
    body = [[name, int((readings == name).sum()), float(classes[readings == name].mean())] for name in READINGS]
    return table(["reading", "clusters", "mean Jaccard index with the most similar class"], body)


def sample_table(real: list[dict[str, Any]]) -> list[str]:
    """Return how many samples that stay in so many models are in the main class of their cluster."""
    stays = np.concatenate([each["found"]["halves"][1] for each in real])
    right = np.concatenate([each["in main"] for each in real])
    body = []
    for low, high in zip(STAYS, (*STAYS[1:], np.inf), strict=True):
        some = (stays >= low) & (stays < high)
        words = f"{low} to {high}" if high < np.inf else f"from {low} on"
        body.append([words, int(some.sum()), float(right[some].mean())])
    return table(["fraction of the models in which it stays", "samples", "in the main class of their cluster"], body)


def main() -> None:
    run = Parallel(n_jobs=int(os.environ.get("JOBS", "-1")))
    few = [name for name in stored_names() if len(np.unique(load(name)[1])) <= MAX_CLUSTERS]
    fixing, reporting = halves(few)
    without_groups = run(delayed(measure_without_groups)(kind) for kind in WITHOUT_GROUPS)
    fixed = run(delayed(measure_real)(name, SCHEMES) for name in fixing)
    reported = run(delayed(measure_real)(name, ("halves",)) for name in reporting)
    blocks = {"schemes": scheme_table(without_groups, fixed), "clusters": cluster_table(reported)}
    for name, lines in (blocks | {"samples": sample_table(reported)}).items():
        print(*lines, sep="\n")
        page = ROOT / "docs" / "stability.md"
        if page.exists():
            write_block(page, f"<!-- begin: {name} -->", f"<!-- end: {name} -->", lines)


if __name__ == "__main__":
    main()
