"""Agreement between clusterings, and the entropy of cluster sizes."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coview.core.agreement import adjusted_rand, mean_agreements, size_entropy


def test_adjusted_rand_equals_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for k in (1, 2, 7):
        a, b = rng.integers(k, size=60), rng.integers(3, size=60)
        assert adjusted_rand(a, b) == pytest.approx(adjusted_rand_score(a, b), abs=1e-12)
    assert adjusted_rand(a, a) == 1.0
    assert adjusted_rand(a[:1], b[:1]) == 1.0
    assert adjusted_rand(a - 1, b) == adjusted_rand(a, b)  # some methods have a label for noise


def test_size_entropy_is_one_for_equal_sizes_and_zero_for_one_cluster():
    assert size_entropy(np.array([0, 1, 2] * 5), 3) == pytest.approx(1.0)
    assert size_entropy(np.zeros(9, int), 3) == 0.0
    assert 0 < size_entropy(np.array([0] * 8 + [-1]), 2) < 0.6
    assert size_entropy(np.zeros(9, int), 1) == 0.0


def test_mean_agreements_average_over_all_other_clusterings():
    labels = [np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), np.array([0, 1, 0, 1])]
    apart = adjusted_rand_score(labels[0], labels[2])
    np.testing.assert_allclose(mean_agreements(labels), [(1 + apart) / 2, (1 + apart) / 2, apart])
    np.testing.assert_array_equal(mean_agreements(labels[:1]), [1.0])
