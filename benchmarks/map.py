"""Cost and quality of the map for several numbers of arranged samples; writes the table of docs/reading-a-summary.md.

Each data set has at most 3,000 samples, drawn with one seed, and is clustered by `TMvKSCR` with default settings and
the number of known classes. No known classes are used otherwise. Some samples, drawn with some of every cluster, are
arranged by t-SNE, and all are placed by these.

`python -m benchmarks.map`
"""

from __future__ import annotations

import os
from time import process_time
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors

from benchmarks.markdown import ROOT, table, write_block
from benchmarks.real_data import load_preprocessed, require_data_sets
from coview import TMvKSCR
from coview.core.drawn import draw_by_cluster
from coview.data.rows import l2_normalize
from coview.data.view import Array
from coview.summary import map as maps

MAX_SAMPLES = 3000
ARRANGED = (250, 500, 1000, 2000, 3000)
ITERATIONS = (350, 500, 1000)
NEIGHBOURS = 10


def quality(scores: Array, labels: Array, positions: Array) -> list[float]:
    """Return the trustworthiness, and the fraction of the nearest samples on the map that have the same cluster."""
    near = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(positions).kneighbors(return_distance=False)
    same = float((labels[near] == labels[:, None]).mean())
    return [float(trustworthiness(l2_normalize(scores), positions, n_neighbors=NEIGHBOURS)), same]


def measure(name: str) -> dict[str, list[float]]:
    """Return by setting the processor seconds, the trustworthiness and the fraction of the same cluster."""
    views, truth = load_preprocessed(name, MAX_SAMPLES)
    model = TMvKSCR(len(np.unique(truth)), random_state=0).fit(views)
    scores, labels = model.scores_.astype(float), model.labels_
    if scores.shape[1] < 2:  # the map of one component is not arranged by t-SNE
        return {}
    found = {"first two components": [0.0, *quality(scores, labels, scores[:, :2])]}
    settings = [(m, 500) for m in ARRANGED] + [(1000, i) for i in ITERATIONS if i != 500]
    for arranged, iterations in settings:
        with patch.object(maps, "_ITERATIONS", iterations):
            start = process_time()
            rows = draw_by_cluster(labels, arranged)
            positions = maps.place(scores, scores[rows], maps.arrange(scores[rows]))
            seconds = process_time() - start
        found[f"{arranged:,} arranged, {iterations} iterations"] = [seconds, *quality(scores, labels, positions)]
    return found


def main() -> None:
    """Measure all data sets and write the means."""
    by_set = {}
    for name in require_data_sets():
        found = measure(name)
        if found:
            by_set[name] = found
        print(name, {setting: [round(value, 3) for value in values] for setting, values in found.items()}, flush=True)
    settings = list(next(iter(by_set.values())))
    rows = [
        [setting, *(float(np.mean([found[setting][i] for found in by_set.values()])) for i in range(3))]
        for setting in settings
    ]
    head = ["map", "processor seconds", "trustworthiness", "same cluster"]
    page = ROOT / "docs" / "reading-a-summary.md"
    write_block(page, "<!-- map -->", "<!-- end of map -->", ["", *table(head, rows), ""])
    print(f"{page}: means of {len(by_set)} data sets")


if __name__ == "__main__":
    main()
