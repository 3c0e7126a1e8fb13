"""Neighbour search on a cluster: the lists of the search in memory, exact and approximate."""

import dask
import numpy as np
import pytest
from distributed import Client

from coview.distributed.cluster import DaskCluster
from coview.neighbors.approximate import local_axes
from coview.neighbors.blocks import Blocks
from coview.neighbors.duplicates import Duplicates
from coview.neighbors.nearest import nearest_neighbors, neighbor_lists

N, K = 1500, 10


@pytest.fixture
def cluster():
    """Workers in this process, so that constants can be changed for them as well; closed before other tests run."""
    settings = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with dask.config.set({"distributed.worker.memory.target": False}), Client(**settings):
        yield DaskCluster.active("search")


@pytest.fixture
def small_cells(monkeypatch):
    """Approximate search of few rows, in small blocks, that compares each row with too few others at first."""
    monkeypatch.setattr("coview.neighbors.nearest.EXACT_ROWS", 500)
    monkeypatch.setattr("coview.neighbors.partition.ROWS_PER_BLOCK", 256)
    for limit in ("_LEAST_AROUND", "_MOST_AROUND", "_CHEAP_AROUND"):
        monkeypatch.setattr(f"coview.neighbors.approximate.{limit}", 120)
    monkeypatch.setattr("coview.neighbors.approximate._LEAST_PER_NEIGHBOUR", 0)


def on_cluster(cluster, rows, height=400):
    parts = np.array_split(rows, range(height, len(rows), height))
    return Blocks(cluster, [cluster.share(part) for part in parts], [len(part) for part in parts], rows.shape[1])


def clouds(width, rng):
    return rng.normal(size=(5, width))[rng.integers(5, size=N)] + rng.normal(size=(N, width))


def curved(width, rng):
    """Rows of which a few axes explain most of the distances."""
    hidden = np.tanh(rng.uniform(-1, 1, size=(N, 4)) @ rng.normal(size=(4, 20)))
    return hidden @ rng.normal(size=(20, width)) + 0.01 * rng.normal(size=(N, width))


def with_duplicates(rows):
    rows = rows.copy()
    rows[900:1000], rows[1450:] = rows[100:200], rows[3]
    return rows


def compare(cluster, rows, recall):
    duplicates = Duplicates(rows)
    expected = nearest_neighbors(rows, duplicates, K, recall=recall)
    there = neighbor_lists(on_cluster(cluster, rows), duplicates, K, recall).gathered()
    for part, found in zip(expected, there, strict=True):
        np.testing.assert_array_equal(found, part)
    return expected


@pytest.mark.parametrize("width", [3, 20])
def test_the_exact_search_gives_the_lists_of_the_search_in_memory(cluster, width):
    rng = np.random.default_rng(0)
    compare(cluster, clouds(width, rng), recall=1)
    compare(cluster, with_duplicates(np.round(clouds(width, rng), 1)), recall=1)  # with ties


@pytest.mark.parametrize("make", [clouds, curved])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_approximate_search_gives_the_lists_of_the_search_in_memory(cluster, small_cells, make, dtype):
    rows = make(80, np.random.default_rng(0)).astype(dtype)
    first = compare(cluster, rows, recall=0.1)
    refined = compare(cluster, rows, recall=0.99)
    assert (first.rows != refined.rows).any()
    compare(cluster, with_duplicates(rows), recall=0.99)


def test_cells_with_few_rows_around_them_are_compared_with_all_rows(cluster, small_cells, monkeypatch):
    monkeypatch.setattr("coview.neighbors.approximate._LEAST_SAMPLE", 64)
    monkeypatch.setattr("coview.neighbors.approximate._SAMPLE_ROWS_PER_CELL", 2)
    rows = clouds(20, np.random.default_rng(0))
    rows[:: N // 60] += 50 * np.random.default_rng(1).normal(size=rows[:: N // 60].shape)  # the sample is not typical
    compare(cluster, rows, recall=0.1)


def test_axes_have_the_order_of_memory_that_a_cluster_keeps():
    axes = local_axes(curved(80, np.random.default_rng(0)))
    assert axes.flags.c_contiguous  # otherwise products on the cluster may be rounded differently
