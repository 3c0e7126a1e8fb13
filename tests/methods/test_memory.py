"""Memory of a fit in addition to the views, compared with docs/methods/README.md."""

import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coview import METHODS, Coview
from coview.data import rows as row_operations

N, V, D = 1500, 3, 10
SQUARE = 8 * N * N
TABLE = 8 * N * V * D

# Numbers of 8 bytes; tiles take slightly more than half of a matrix, and vectors, blocks and rows are added.
STATED = {
    "tmvkscr": 1.5 * SQUARE,
    "ksc": SQUARE,
    "kpca": SQUARE,
    "mvksc": V / 2 * SQUARE,
    "coreg": V / 2 * SQUARE,
    "tsvdmsc": (3 * V + 4) * SQUARE,
    "comic": 4 * TABLE,
    "oplfmvc": SQUARE,
    "opmc": TABLE,
    "sfmc": 8 * N * V * 11 * 16,
    "mvscbp": 8 * N * V * 5 * 4,
}
IN_ADDITION = {
    "comic": 12e6,  # 256 rows of distances, and arrays to sort them
    "mvksc": 8 * N * V * 64 * 5,  # a basis of 64 vectors and their images, twice while it grows
}
ITERATIONS = {"tsvdmsc": 2, "comic": 2, "sfmc": 1, "coreg": 2}  # more take no more memory


def peak(model, views):
    tracemalloc.start()
    try:
        model.fit(views)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def four_clusters(n_samples):
    rng = np.random.default_rng(0)
    cluster = np.arange(n_samples) % 4
    return {f"v{v}": rng.normal(size=(4, D))[cluster] * 3 + rng.normal(size=(n_samples, D)) for v in range(V)}


def test_memory_of_coview_is_linear_in_the_samples(monkeypatch):
    monkeypatch.setattr(row_operations, "_BLOCK_NUMBERS", 2**16)
    model = Coview(4, n_jobs=1, random_state=0).fit(four_clusters(150))  # imports are not counted
    few, twice_as_many = (peak(model, four_clusters(n_samples)) for n_samples in (N, 2 * N))
    assert twice_as_many <= 2.2 * few  # 4 times, if it were quadratic


@pytest.mark.parametrize("name", [name for name in METHODS if name != "coview"])
def test_memory_is_as_documented(name, monkeypatch):
    monkeypatch.setattr(row_operations, "_BLOCK_NUMBERS", 2**16)  # the size of a block does not depend on the samples
    views = four_clusters(N)
    if name in ("ksc", "kpca"):
        views = {"v0": views["v0"]}
    model = METHODS[name](random_state=0)
    wanted = {"n_jobs": 1, "n_clusters": 4, "max_iter": ITERATIONS.get(name), "n_anchors": 100}
    known = model.get_params()
    model.set_params(**{key: value for key, value in wanted.items() if key in known and value is not None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early
        model.fit({view: x[:150] for view, x in views.items()})  # imports are not counted
        taken = peak(model, views)
    tiles = 1.45 if STATED[name] >= SQUARE else 1.0  # (n + 576) / n, and the vectors
    assert taken <= tiles * STATED[name] + IN_ADDITION.get(name, 2e6)
