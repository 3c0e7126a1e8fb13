"""Valleys between clusters on a graph: cuts in the order of a resolvent, and the merging of clusters without one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from coview import FuzzyGraph
from coview.evaluate import valleys
from coview.evaluate.valleys import DEEP, Valleys, clusters_of, resolvent, weights_between
from tests import naive


def graph_of(rows):
    graph = sp.csr_array(FuzzyGraph().against(rows).gram)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


def gaussian(n=150, width=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width))


def two_groups(distance, n=150, width=4, seed=0):
    """Return the graph of two Gaussians of different sizes at this distance, and the groups."""
    rows = gaussian(n, width, seed)
    truth = (np.arange(n) % 3 == 0).astype(int)
    rows[:, 0] += distance * truth
    return graph_of(rows), truth


@pytest.mark.parametrize(("sizes", "distance"), [((20, 20), 3.0), ((31, 12), 1.0), ((6, 25), 2.0), ((1, 9), 0.0)])
def test_the_ratios_follow_the_definition(sizes, distance):
    n = sum(sizes) + 8  # others belong to neither of the two clusters
    rows = gaussian(n, 3, seed=1)
    order = np.random.default_rng(2).permutation(n)
    first, second = np.sort(order[: sizes[0]]), np.sort(order[sizes[0] : sum(sizes)])
    rows[second, 0] += distance
    graph = graph_of(rows)
    found = Valleys(graph).between(first, second)
    expected = naive.valley(graph.toarray(), first, second)
    # The solution is precise to 1e-8, which leaves the order of samples as it is, and sums have rounding errors.
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_order_of_the_two_clusters_does_not_matter():
    graph, truth = two_groups(2.0, n=60)
    first, second = clusters_of(truth)
    expected = naive.valley(graph.toarray(), *sorted([first, second], key=lambda each: each[0]))
    np.testing.assert_allclose(Valleys(graph).between(second, first), expected, rtol=1e-9)
    np.testing.assert_allclose(Valleys(graph).between(first, second), expected, rtol=1e-9)


def test_the_resolvent_solves_its_equation():
    graph, truth = two_groups(1.0, n=80)
    degrees = graph.sum(axis=1)
    matrix = np.diag((1 + valleys._ENDING) * degrees) - graph.toarray()
    expected = np.linalg.solve(matrix, degrees * truth)
    # The residual is 1e-8 of the right-hand side; the solution is up to 1 / ε times as large as it.
    np.testing.assert_allclose(resolvent(graph, truth.astype(float)), expected, atol=1e-8 / valleys._ENDING * 10)


def test_the_resolvent_of_a_constant_is_constant_and_isolated_samples_do_no_harm():
    graph = graph_of(gaussian(40)).toarray()
    graph[7] = graph[:, 7] = 0
    found = resolvent(sp.csr_array(graph), np.ones(40))
    np.testing.assert_allclose(np.delete(found, 7), 1 / valleys._ENDING, rtol=1e-4)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_gaussian_that_is_cut_in_two_has_no_valley(seed):
    rows = gaussian(200, 5, seed)
    labels = (rows @ gaussian(1, 5, seed + 10)[0] > 0).astype(int)
    found = Valleys(graph_of(rows))
    assert found.between(*clusters_of(labels)).ratio > DEEP
    assert not found.merged(labels).any()


@pytest.mark.parametrize("distance", [5.5, 7.0, 30.0])
def test_distant_groups_have_a_valley(distance):
    graph, truth = two_groups(distance)
    found = Valleys(graph)
    assert found.between(*clusters_of(truth)).ratio < 0.75 * DEEP
    assert adjusted_rand_score(found.merged(truth), truth) == 1.0


def test_only_clusters_without_a_valley_are_merged():
    graph, truth = two_groups(7.0, n=200)
    halves = 2 * truth + (np.random.default_rng(0).random(200) < 0.5)
    merged = Valleys(graph).merged(halves)
    assert adjusted_rand_score(merged, truth) == 1.0
    assert set(merged) == {0, 1}


def test_a_curve_in_pieces_is_merged_to_one():
    place = np.sort(np.random.default_rng(0).random(150)) * 5
    rows = np.column_stack([place, np.sin(place)]) + 0.05 * gaussian(150, 2)
    assert not Valleys(graph_of(rows)).merged(np.arange(150) * 5 // 150).any()


def test_the_pair_of_the_largest_ratio_is_merged_first(monkeypatch):
    """Merges depend on their order: here the middle cluster has no valley to either side, but two merges have one."""
    graph = sp.csr_array(np.kron(np.ones((3, 3)) - np.eye(3), np.ones((2, 2))))
    labels = np.array([0, 0, 1, 1, 2, 2])
    computed = []

    def ratio(self, first, second):
        computed.append((tuple(first.tolist()), tuple(second.tolist())))
        known = {((0, 1), (2, 3)): 0.5, ((2, 3), (4, 5)): 0.9, ((0, 1), (4, 5)): 0.1}
        return valleys.Valley(known.get(computed[-1], 0.3), 1.0)

    monkeypatch.setattr(Valleys, "_computed", ratio)
    found = Valleys(graph).merged(labels)
    assert adjusted_rand_score(found, [0, 0, 1, 1, 1, 1]) == 1.0
    assert computed[-1] == ((0, 1), (2, 3, 4, 5))
    assert len(computed) == 4


def test_merging_goes_on_until_all_ratios_are_deep(monkeypatch):
    graph = sp.csr_array(np.ones((8, 8)) - np.eye(8))
    monkeypatch.setattr(Valleys, "_computed", lambda self, first, second: valleys.Valley(len(second) / 10 + 0.25, 1.0))
    assert not Valleys(graph).merged(np.repeat([0, 1, 2, 3], 2)).any()  # 0.45 is more than 0.4, and grows
    monkeypatch.setattr(Valleys, "_computed", lambda self, first, second: valleys.Valley(0.4, 1.0))
    assert Valleys(graph).merged(np.repeat([0, 1, 2, 3], 2)).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_pairs_of_clusters_with_few_weak_edges_are_not_compared():
    """The prior is a tenth of the mean degree; clusters whose edges weigh less are separate."""
    graph = np.zeros((9, 9))
    for start in (0, 3, 6):
        graph[start : start + 3, start : start + 3] = 1 - np.eye(3)
    mean_degree = 2 * (1 + 0.05 / 9 * 2)
    graph[0, 3] = graph[3, 0] = 0.05
    graph[5, 8] = graph[8, 5] = 1.0
    found = Valleys(sp.csr_array(graph))
    clusters = clusters_of(np.repeat([0, 1, 2], 3))
    assert 0.05 < 0.1 * mean_degree < 1.0
    weights, pairs = found.of_partition(clusters)
    assert list(pairs) == [(1, 2)]
    np.testing.assert_allclose(weights, [[6, 0.05, 0], [0.05, 6, 1], [0, 1, 6]])


def test_the_prior_makes_a_cut_of_weak_edges_no_valley_of_weak_clusters():
    """Two clusters without edges inside have no valley, although no edge joins them to each other either."""
    graph = np.zeros((40, 40))
    graph[:, 20:] = 1
    graph[20:, :] = 1
    np.fill_diagonal(graph, 0)
    graph[:20, :20] = 0
    graph[:10, 10:20] = graph[10:20, :10] = 1e-4
    found = Valleys(sp.csr_array(graph)).between(np.arange(10), np.arange(10, 20))
    assert found.ratio == pytest.approx(1, abs=0.01)


def test_weights_between_clusters_are_sums_over_pairs():
    graph = graph_of(gaussian(30))
    labels = np.random.default_rng(0).integers(3, size=30)
    found, dense = weights_between(graph, clusters_of(labels)), graph.toarray()
    for i, j in np.ndindex(3, 3):
        expected = sum(dense[a, b] for a in range(30) for b in range(30) if labels[a] == i and labels[b] == j)
        assert found[i, j] == pytest.approx(expected, rel=1e-9)
