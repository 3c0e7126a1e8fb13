import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from coview.methods import bipartite
from coview.methods.bipartite import components, join_nearest, leading_triplets, n_components, normalise


def random_graph(n, m, density, seed=0):
    rng = np.random.default_rng(seed)
    return sp.csr_array(rng.random((n, m)) * (rng.random((n, m)) < density))


def test_normalised_graphs_are_divided_by_the_roots_of_both_degrees():
    dense = np.array([[1.0, 3.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    normalised, left, right = normalise(sp.csr_array(dense))
    np.testing.assert_allclose(left[:, 0], [0.5, 0.5**0.5, 0])
    np.testing.assert_allclose(right[:, 0], [3**-0.5, 3**-0.5, 0])
    np.testing.assert_allclose(normalised.toarray(), left * dense * right.T)


@pytest.mark.parametrize(("n", "m", "density"), [(60, 25, 0.3), (1500, 800, 0.02)])  # LAPACK, block Krylov
def test_leading_triplets_are_those_of_the_full_decomposition(n, m, density):
    z = normalise(random_graph(n, m, density))[0]
    left, values, right = leading_triplets(z, 4)
    expected = np.linalg.svd(z.toarray())[1][:4]
    np.testing.assert_allclose(values, expected, atol=1e-10)
    np.testing.assert_allclose(left.T @ left, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(z @ right, left * values, atol=1e-12)
    np.testing.assert_allclose(z.T @ left, right * values, atol=1e-9)


@pytest.mark.parametrize("m", [20, 180])
def test_equal_singular_values_are_all_found(m):
    block = random_graph(2 * m, m, 0.3)
    z = normalise(sp.csr_array(sp.block_diag([block] * 5)))[0]
    np.testing.assert_allclose(leading_triplets(z, 6).values[:5], 1, atol=1e-12)
    assert leading_triplets(z, 6).values[5] < 0.99


def test_a_start_near_the_solution_does_not_change_it():
    z = normalise(random_graph(1500, 800, 0.02))[0]
    plain = leading_triplets(z, 3)
    again = leading_triplets(z, 3, plain.right)
    np.testing.assert_allclose(again.values, plain.values, atol=1e-10)
    np.testing.assert_allclose(np.abs((again.right * plain.right).sum(axis=0)), 1, atol=1e-8)


def test_triplets_beyond_the_rank_are_zero():
    left, values, right = leading_triplets(sp.csr_array(np.ones((5, 2))), 4)
    np.testing.assert_allclose(values, [10**0.5, 0, 0, 0], atol=1e-7)
    for vectors in (left, right):
        assert vectors.shape[1] == 4
        assert not vectors[:, 1:].any()


def test_components_are_counted_by_their_samples():
    graph = sp.csr_array(np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]))
    assert components(graph).tolist() == [0, 1, 0, 1, 2]
    assert n_components(graph) == 3  # the third anchor has no edges


def ward(labels, views, n_clusters):
    """Compare all pairs of groups, with their current means, in every step."""
    labels = labels.copy()
    groups = np.unique(labels)
    scales = []
    for x in views.values():
        means = np.array([x[labels == g].mean(axis=0) for g in groups])
        scales.append(((means[:, None] - means[None]) ** 2).sum(axis=2).mean())

    def cost(a, b):
        between = sum(
            ((x[labels == a].mean(axis=0) - x[labels == b].mean(axis=0)) ** 2).sum() / scale
            for x, scale in zip(views.values(), scales, strict=True)
        )
        n, m = (labels == a).sum(), (labels == b).sum()
        return n * m / (n + m) * between

    while len(np.unique(labels)) > n_clusters:
        pairs = [(a, b) for a in np.unique(labels) for b in np.unique(labels) if a < b]
        a, b = min(pairs, key=lambda pair: cost(*pair))
        labels[labels == b] = a
    return labels


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 8])
def test_groups_are_joined_by_wards_rule(n_clusters):
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(9), rng.integers(9, size=60) // 2])
    views = {"a": rng.normal(size=(69, 3)) + labels[:, None], "b": rng.normal(size=(69, 2)) * 100}
    joined = join_nearest(labels, views, n_clusters)
    assert adjusted_rand_score(joined, ward(labels, views, n_clusters)) == 1
    assert np.array_equal(np.unique(joined), np.arange(n_clusters))
    sparse = {name: sp.csr_array(x) for name, x in views.items()}
    np.testing.assert_array_equal(join_nearest(labels, sparse, n_clusters), joined)


def test_few_groups_are_not_joined():
    labels = np.array([0, 1, 1, 2])
    assert join_nearest(labels, {"a": np.zeros((4, 1))}, 3) is labels


def test_among_very_many_groups_small_ones_first_join_the_nearest_large_one(monkeypatch):
    monkeypatch.setattr(bipartite, "_MOST_GROUPS", 3)
    x = np.concatenate([np.repeat([0.0, 10.0, 20.0], 5), [0.1, 9.9, 20.1, 0.2]])[:, None]
    labels = np.concatenate([np.repeat([0, 1, 2], 5), [3, 4, 5, 6]])
    joined = join_nearest(labels, {"a": x}, 2)
    assert adjusted_rand_score(join_nearest(labels, {"a": x}, 3), x[:, 0].round(-1)) == 1
    assert len(np.unique(joined)) == 2
