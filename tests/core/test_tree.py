"""The tree of clusters: counts between successive numbers of clusters, and labels that follow a cluster."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from coview.core.tree import Branch, cluster_tree
from tests import naive


def test_a_cluster_that_does_not_split_keeps_its_label():
    four = np.array([0, 0, 0, 1, 1, 2, 2, 3])
    three = np.array([2, 2, 2, 0, 0, 1, 1, 1])  # 2 and 3 together
    two = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    assert cluster_tree({2: two, 4: four, 3: three}, known=4) == (
        Branch(2, 0, 3, 0, 3),
        Branch(2, 2, 3, 1, 2),
        Branch(2, 2, 3, 2, 3),
        Branch(3, 0, 4, 0, 3),
        Branch(3, 1, 4, 1, 2),
        Branch(3, 2, 4, 2, 2),
        Branch(3, 2, 4, 3, 1),
    )


def test_further_clusters_have_further_labels():
    two, three = np.array([0, 0, 0, 4]), np.array([0, 0, 1, 2])
    assert cluster_tree({2: two, 3: three}, known=2) == (
        Branch(2, 0, 3, 0, 2),
        Branch(2, 0, 3, 1, 1),
        Branch(2, 4, 3, 4, 1),
    )


@pytest.mark.parametrize("known", [2, 4, 6])
def test_branches_count_samples_and_labels_match_as_many_as_possible(known):
    rng = np.random.default_rng(known)
    labels = {k: rng.integers(k, size=60) for k in range(2, 7)}
    tree = cluster_tree(labels, known)
    for k, more in pairwise(range(2, 7)):
        branches = [branch for branch in tree if (branch.n_clusters, branch.next_n_clusters) == (k, more)]
        expected = Counter(zip(labels[k].tolist(), labels[more].tolist(), strict=True))
        assert sorted(branch.size for branch in branches) == sorted(expected.values())
        kept = sum(branch.size for branch in branches if branch.cluster == branch.next_cluster)
        assert kept == naive.best_overlap(labels[k].tolist(), labels[more].tolist())
    of_known = Counter()
    for branch in tree:
        if branch.n_clusters == known:
            of_known[branch.cluster] += branch.size
        elif branch.next_n_clusters == known:
            of_known[branch.next_cluster] += branch.size
    assert {c: n // (1 + (2 < known < 6)) for c, n in of_known.items()} == dict(Counter(labels[known].tolist()))
