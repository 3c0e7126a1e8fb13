"""The data sets of the comparison, by name: stored, generated, with missing views, and generated for times."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from benchmarks.data import list_datasets, stored_names
from benchmarks.missing import random_masks, with_masks
from benchmarks.real_data import MAX_SAMPLES, sampled
from benchmarks.wnn import GENES, PROTEINS, TYPES, make_counts
from coview.data.as_views import as_views
from coview.data.view import Array
from coview.data.views import Views

MISSING_RATE = 0.3
MISSING = f", {MISSING_RATE:.0%} missing"
MOST_WITH_MISSING = 1000  # samples of the data sets that have a variant with missing views
GAUSSIAN, CELLS = "generated Gaussian", "generated cells"
N_CELLS, N_GAUSSIAN = 2000, 1000
GAUSSIAN_SPREAD = 0.25  # the clusters overlap
SPEED_SAMPLES, LARGE_SAMPLES = (1_000, 2_000, 10_000, 50_000), (100_000, 1_000_000)
SPEED_WIDTHS, SPEED_CLUSTERS = (20, 50, 100), 10


def quality_sets() -> list[str]:
    """Return the names of all complete data sets, by number of samples."""
    return sorted([*stored_names(), GAUSSIAN, CELLS], key=lambda name: (size_of(name).samples, name))


class Size(NamedTuple):
    """What the time of a fit depends on."""

    samples: int
    columns: int
    views: int
    clusters: int


def size_of(name: str) -> Size:
    """Return the size of a data set; one that is not in the catalogue has the most columns, views and clusters."""
    name = name.removesuffix(MISSING)
    gaussian = Size(N_GAUSSIAN, sum(SPEED_WIDTHS), len(SPEED_WIDTHS), SPEED_CLUSTERS)
    if sized := re.fullmatch(r"(\d+) samples", name):
        return gaussian._replace(samples=int(sized[1]))
    made = {GAUSSIAN: gaussian, CELLS: Size(N_CELLS, GENES + PROTEINS, 2, TYPES)}
    known = {d.name: Size(min(d.samples, MAX_SAMPLES), sum(d.widths), d.views, d.clusters) for d in list_datasets()}
    return (made | known).get(name, Size(MAX_SAMPLES, *[10**9] * 3))


def missing_sets() -> list[str]:
    """Return the names of the variants with missing views, by size."""
    return [name + MISSING for name in quality_sets() if size_of(name).samples <= MOST_WITH_MISSING]


def speed_sets() -> list[str]:
    """Return the names of the generated data sets for times and memory."""
    return [f"{n} samples" for n in SPEED_SAMPLES]


def large_sets() -> list[str]:
    """Return the names of the generated data sets for methods whose time is linear in the number of samples."""
    return [f"{n} samples" for n in LARGE_SAMPLES]


def read(name: str, seed: int) -> tuple[Views, Array]:
    """Return a data set by its name: views, of which some samples may lack some, and classes."""
    if name.endswith(MISSING):
        views, truth = read(name.removesuffix(MISSING), seed)
        rng = np.random.default_rng(seed)
        return with_masks(views, random_masks(len(truth), len(views), MISSING_RATE, rng)), truth
    if name == GAUSSIAN:
        return make_clusters(N_GAUSSIAN, seed, GAUSSIAN_SPREAD)
    if name == CELLS:
        return make_cells(N_CELLS, seed)
    if sized := re.fullmatch(r"(\d+) samples", name):
        return make_clusters(int(sized[1]), seed)
    return sampled(name, seed)


def make_cells(n: int, seed: int) -> tuple[Views, Array]:
    """Return CITE-seq-like cells: log-normalised RNA, of which muon uses principal components, and protein."""
    rna, protein, kind = make_counts(n, seed)
    logs = np.log1p(protein)
    normalised = np.log1p(1e4 * rna / rna.sum(axis=1, keepdims=True))
    assert len(np.unique(kind)) == TYPES
    return as_views({"rna": normalised, "protein": logs - logs.mean(axis=1, keepdims=True)}), kind


def make_clusters(n: int, seed: int, spread: float = 1.0) -> tuple[Views, Array]:
    """Return three views of ten Gaussian clusters; `spread` is that of their means, and 1 makes them easy to find."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(SPEED_CLUSTERS, size=n)
    return as_views(
        {
            f"view{v}": spread * rng.normal(size=(SPEED_CLUSTERS, d))[truth] + rng.normal(size=(n, d))
            for v, d in enumerate(SPEED_WIDTHS, start=1)
        }
    ), truth
