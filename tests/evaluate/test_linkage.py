"""The tree of a consensus: average linkage of samples by the clusterings that separate them."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coview.evaluate import consensus, linkage
from coview.evaluate.linkage import Tree, average_linkage, differing_fractions
from coview.evaluate.pool import Clusterings
from tests import naive


@pytest.fixture
def any_size(monkeypatch):
    """Let single samples be clusters."""
    monkeypatch.setattr(linkage, "LEAST_SAMPLES", 1)


def noisy_clusterings(n=30, n_clusterings=997, n_groups=5, noise=0.5, n_distinct=None, seed=0):
    """Return clusterings of the same groups with errors, and the groups; all samples are duplicates of n_distinct."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    wrong = rng.random((n, n_clusterings)) < noise * rng.random((n, 1))
    labels = np.where(wrong, rng.integers(n_groups, size=(n, n_clusterings)), groups[:, None])
    if n_distinct is not None:
        of = rng.integers(n_distinct, size=n)
        labels, groups = labels[of], groups[of]
    return labels, groups


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize(("n_distinct", "seed"), [(None, 0), (12, 2), (5, 3)])
def test_the_partitions_are_those_of_average_linkage_on_all_samples(n_distinct, seed):
    labels, _ = noisy_clusterings(n_distinct=n_distinct, seed=seed)
    expected, gap = naive.average_linkage(labels)
    assert gap > 1e-5  # no ties, and more than the rounding error of float32
    tree = Tree.learn(labels)
    assert tree.n_leaves == len(np.unique(labels, axis=0))
    for k in range(1, tree.n_leaves + 1):
        assert adjusted_rand_score(tree.cut(k), expected[k]) == 1.0
        assert len(np.unique(tree.cut(k))) == k


@pytest.mark.usefixtures("any_size")
def test_the_heights_are_mean_distances_in_increasing_order():
    labels, _ = noisy_clusterings(n_distinct=12, seed=2)
    tree = Tree.learn(labels)
    assert (np.diff(tree.heights) >= 0).all()
    apart = (labels[:, None] != labels).mean(axis=2)
    for step, height in enumerate(tree.heights):
        before, after = tree.cut(tree.n_leaves - step), tree.cut(tree.n_leaves - step - 1)
        merged = next(each for each in np.unique(after) if len(np.unique(before[after == each])) == 2)
        first, second = (before == each for each in np.unique(before[after == merged]))
        assert height == pytest.approx(apart[np.ix_(first, second)].mean(), rel=1e-5)  # distances are float32


@pytest.mark.parametrize("n_clusterings", [997, 3])  # with 3 clusterings, most distances are equal
def test_the_order_of_the_samples_does_not_change_the_partitions(n_clusterings):
    labels, _ = noisy_clusterings(60, n_clusterings)
    order = np.random.default_rng(1).permutation(60)
    tree, permuted = Tree.learn(labels), Tree.learn(labels[order])
    for k in (2, 3, 5, 9, 20):
        assert adjusted_rand_score(tree.cut(k)[order], permuted.cut(k)) == 1.0


def test_each_level_divides_one_cluster_of_the_level_above():
    labels, _ = noisy_clusterings(n_clusterings=4)  # with ties
    tree = Tree.learn(labels)
    for k in range(1, tree.n_leaves):
        pairs = np.unique(np.column_stack([tree.cut(k), tree.cut(k + 1)]), axis=0)
        assert len(pairs) == k + 1


def test_the_groups_that_most_clusterings_agree_on_are_found():
    labels, groups = noisy_clusterings(120, 15, noise=0.35)
    assert adjusted_rand_score(Tree.learn(labels).cut(5), groups) == 1.0


def test_a_cluster_of_duplicates_counts_with_its_size():
    """Three tuples on a line, where the middle one has many samples: the merged distance is a weighted mean."""
    distances = np.array([[0, 1, 4, 6], [1, 0, 4, 2.5], [4, 4, 0, 3.5], [6, 2.5, 3.5, 0]], dtype=np.float32)
    merges, heights = average_linkage(distances.copy(), np.array([1, 9, 1, 1]))
    assert merges.tolist() == [[0, 1], [4, 3], [5, 2]]  # (6 + 9 * 2.5) / 10 < 3.5
    np.testing.assert_allclose(heights, [1, 2.85, (10 * 4 + 3.5) / 11], rtol=1e-6)
    merges, _ = average_linkage(distances.copy(), np.array([9, 1, 1, 1]))
    assert merges.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_distances_are_fractions_of_clusterings():
    labels = np.array([[0, 0, 1, 2], [0, 1, 1, 0], [3, 1, 0, 1]])
    np.testing.assert_allclose(differing_fractions(labels), [[0, 0.5, 1], [0.5, 0, 0.75], [1, 0.75, 0]])


@pytest.mark.parametrize("n_distinct", [1, 2, 3])
def test_there_are_no_more_clusters_than_distinct_tuples(n_distinct):
    labels = np.arange(10)[:, None] % n_distinct * np.ones((1, 4), dtype=int)
    tree = Tree.learn(labels)
    assert tree.n_leaves == n_distinct
    for k in (n_distinct, n_distinct + 1, 10):
        assert adjusted_rand_score(tree.cut(k), np.arange(10) % n_distinct) == 1.0
    assert set(tree.cut(1)) == {0}


@pytest.mark.parametrize(("least", "seed"), [(3, 0), (5, 1), (5, 4)])
def test_merges_of_few_samples_are_undone_last(monkeypatch, least, seed):
    monkeypatch.setattr(linkage, "LEAST_SAMPLES", least)
    monkeypatch.setattr(linkage, "_NEARLY_ALL", 1.0)
    labels, _ = noisy_clusterings(seed=seed)
    partitions, gap = naive.average_linkage(labels)
    assert gap > 1e-5
    tree, compared = Tree.learn(labels), 0
    for k in range(1, 12):
        try:
            expected = naive.clusters_of_size(partitions, k, least)
        except AssertionError:  # parts of equal size
            break
        assert adjusted_rand_score(tree.cut(k), expected) == 1.0
        compared += 1
    assert compared > 3


@pytest.mark.parametrize("n_separating", [3, 4])
def test_two_samples_are_a_cluster_before_the_groups_if_nearly_all_clusterings_separate_them(n_separating):
    """They are farther from the others than the groups are from each other."""
    groups = np.repeat([0, 1, 2], [20, 12, 2])
    labels = np.tile(groups[:, None], 4)
    labels[:, :2] = np.where(groups == 1, 0, groups)[:, None]  # half of the clusterings join the groups
    labels[groups == 2, n_separating:] = 0
    tree = Tree.learn(labels)
    assert tree.heights[0] < 0.6 < tree.heights[1]
    expected = groups == 2 if n_separating == 4 else groups == 1
    assert adjusted_rand_score(tree.cut(2), expected) == 1.0
    assert adjusted_rand_score(tree.cut(3), groups) == 1.0


def test_given_clusters_of_few_samples_are_a_level():
    labels, groups = noisy_clusterings(60)
    groups[:2] = 9
    tree = Tree.learn(labels, groups)
    assert adjusted_rand_score(tree.cut(6), groups) == 1.0


def rare_labels():
    """Return clusterings of two groups, three tuples of labels that are rare, and the groups."""
    labels = np.repeat([[0, 0, 0, 0], [1, 1, 1, 1]], [6, 5], axis=0)
    rare = [[0, 0, 0, 1], [1, 0, 1, 1], [1, 1, 0, 1]]
    return np.vstack([rare, labels]), np.array([0, 1, 1, *[0] * 6, *[1] * 5])


@pytest.mark.usefixtures("any_size")
def test_samples_with_rare_labels_are_not_in_the_tree(monkeypatch):
    monkeypatch.setattr(linkage, "_MOST_TUPLES", 2)
    labels, groups = rare_labels()
    tree = Tree.learn(labels)
    assert tree.n_leaves == 2
    for k in (1, 2, 3):
        cut = tree.cut(k)
        assert (cut[:3] == -1).all()
        assert (cut[3:] >= 0).all()
    assert adjusted_rand_score(tree.cut(2)[3:], groups[3:]) == 1.0


def clusterings(labels):
    """Return members with these labels, of whose centres only the number counts."""
    return Clusterings((2,), tuple(SimpleNamespace(centres=range(each.max() + 1)) for each in labels.T), labels, labels)


def test_samples_with_rare_labels_join_the_cluster_that_shares_most_labels(monkeypatch):
    monkeypatch.setattr(linkage, "_MOST_TUPLES", 2)
    labels, groups = rare_labels()
    found = consensus.clusters_of_tree(clusterings(labels), 2)
    assert adjusted_rand_score(found, groups) == 1.0


def test_labels_that_only_rare_samples_have_count_for_no_cluster(monkeypatch):
    monkeypatch.setattr(linkage, "_MOST_TUPLES", 2)
    labels, groups = rare_labels()
    labels[0, 0] = 2  # no other sample has it
    found = consensus.clusters_of_tree(clusterings(labels), 2)
    assert adjusted_rand_score(found, groups) == 1.0
