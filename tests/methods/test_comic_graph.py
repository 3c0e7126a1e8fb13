import numpy as np
import pytest
import scipy.sparse as sp

from coview.data.rows import l2_normalize
from coview.methods.comic_graph import cosine_neighbors, linked_by_majority, mutual_edges, squared_lengths
from tests.conftest import make_blobs


def unit(x):
    return l2_normalize(np.asarray(x, dtype=np.float64))


def slow_nearest(x, k):
    """Sort every row; equal distances keep the order of the samples."""
    distances = np.array(
        [[np.inf if i == j else round(1 - a @ b, 12) for j, b in enumerate(x)] for i, a in enumerate(x)]
    )
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distances, order, axis=1)


def slow_edges(neighbours, distances):
    """Mutual neighbours by sets, and Kruskal's tree, shortest pairs first."""
    n = len(neighbours)
    lists = [set(row.tolist()) for row in neighbours]
    edges = {(i, j) for i in range(n) for j in lists[i] if i < j and i in lists[j]}
    pairs = {}
    for i in range(n):
        for j, d in zip(neighbours[i].tolist(), distances[i].tolist(), strict=True):
            pairs[min(i, j), max(i, j)] = d
    part = list(range(n))
    for i, j in sorted(pairs, key=lambda pair: (pairs[pair], pair)):
        if part[i] != part[j]:
            edges.add((i, j))
            part = [part[i] if p == part[j] else p for p in part]
    return edges


def as_set(edges):
    return set(map(tuple, edges.tolist()))


def test_neighbours_match_the_reference_implementation_over_several_blocks():
    x = unit(np.random.default_rng(0).normal(size=(300, 5)))
    ours, expected = cosine_neighbors(x, 7), slow_nearest(x, 7)
    np.testing.assert_array_equal(ours[0], expected[0])
    np.testing.assert_allclose(ours[1], expected[1], atol=1e-12)


def test_duplicates_have_the_first_duplicates_as_neighbours_dense_or_sparse():
    x = unit(np.random.default_rng(1).random((6, 4))[[0, 1, 2, 0, 0, 3, 0, 4, 5, 0]])
    neighbours, distances = cosine_neighbors(x, 3)
    assert neighbours[0].tolist() == [3, 4, 6]
    assert neighbours[9].tolist() == [0, 3, 4]
    assert distances[9].tolist() == [0, 0, 0]
    for ours, sparse in zip((neighbours, distances), cosine_neighbors(sp.csr_array(x), 3), strict=True):
        np.testing.assert_array_equal(ours, sparse)


def test_an_all_zero_row_is_equally_far_from_all():
    x = unit([[1.0, 0.0], [0.0, 0.0], [0.9, 0.1], [0.8, 0.3]])
    neighbours, distances = cosine_neighbors(x, 2)
    assert neighbours[1].tolist() == [0, 2]
    assert distances[1].tolist() == [1, 1]
    assert 1 not in neighbours[[0, 2, 3]]


def test_there_are_no_more_neighbours_than_other_samples():
    neighbours, _ = cosine_neighbors(unit(np.random.default_rng(2).normal(size=(4, 3))), 10)
    assert [sorted(row) for row in neighbours.tolist()] == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]


@pytest.mark.parametrize("k", [1, 3, 8])
def test_edges_match_the_reference_implementation(k):
    views, _ = make_blobs(spread=1.0)
    for x in views.values():
        lists = cosine_neighbors(unit(x), k)
        edges = mutual_edges(*lists)
        assert as_set(edges) == slow_edges(*lists)
        assert (edges[:, 0] < edges[:, 1]).all()


def test_duplicates_are_connected_although_their_distance_is_zero():
    x = unit(np.random.default_rng(3).random((2, 4))[[0] * 9 + [1] * 9])
    edges = as_set(mutual_edges(*cosine_neighbors(x, 3)))
    assert {(0, j) for j in range(1, 9)} <= edges
    assert {(9, j) for j in range(10, 18)} <= edges
    assert not any(i < 9 <= j for i, j in edges)  # no edge between different rows


def test_lengths_of_edges_are_summed_over_blocks():
    points = np.random.default_rng(4).normal(size=(100, 3))
    edges = np.stack(np.triu_indices(100, k=1), axis=1)
    assert len(edges) > 4096
    expected = [((points[i] - points[j]) ** 2).sum() for i, j in edges]
    np.testing.assert_allclose(squared_lengths(edges, points), expected, rtol=1e-13)


def slow_components(places, reaches):
    n = len(places[0])
    labels = list(range(n))
    for i in range(n):
        for j in range(i):
            votes = sum(np.linalg.norm(z[i] - z[j]) <= r for z, r in zip(places, reaches, strict=True))
            if votes > len(places) / 2:
                labels = [labels[i] if label == labels[j] else label for label in labels]
    return np.unique(labels, return_inverse=True)[1]


@pytest.mark.parametrize("n_views", [1, 2, 3, 4])
def test_links_match_the_reference_implementation(n_views):
    rng = np.random.default_rng(n_views)
    places = [rng.random((280, 2)) for _ in range(n_views)]
    reaches = [{1: 0.06, 2: 0.17, 3: 0.13, 4: 0.2}[n_views]] * n_views
    ours, expected = linked_by_majority(places, reaches), slow_components(places, reaches)
    assert 2 < expected.max() < 270
    assert len(set(zip(ours.tolist(), expected.tolist(), strict=True))) == ours.max() + 1 == expected.max() + 1


def test_components_extend_across_blocks():
    line = np.random.default_rng(5).permutation(600)[:, None] * 1.0
    assert not linked_by_majority([line], [1.0]).any()
    assert len(set(linked_by_majority([line], [0.9]).tolist())) == 600
    assert not linked_by_majority([np.zeros((600, 1))] * 3, [0.0] * 3).any()
