import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coview import Codebook, Directions
from tests import naive

RNG = np.random.default_rng
ASSIGNER = pytest.mark.parametrize("assigner", [Codebook(), Directions()])


def rays(n_per_ray=20, k=4, noise=0.05, seed=0):
    """Return scores as in theory: clusters on rays from the origin, towards the corners of a simplex."""
    rng = RNG(seed)
    corners = np.linalg.svd(np.eye(k) - 1 / k)[0][:, : k - 1]
    truth = np.repeat(np.arange(k), n_per_ray)
    scores = corners[truth] * rng.uniform(0.1, 3, size=(len(truth), 1)) + noise * rng.normal(size=(len(truth), k - 1))
    return scores, truth


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_the_codebook_equals_its_reference_implementation(k):
    for seed in range(5):
        scores = RNG(seed).normal(size=(60, k - 1)) + RNG(seed).normal(size=(k, k - 1))[np.arange(60) % k]
        labels = Codebook().fit(scores, k, RNG(0)).assign(scores)
        assert adjusted_rand_score(naive.codebook(scores, k), labels) == 1


def test_directions_find_clusters_on_rays():
    scores, truth = rays()
    labels = Directions().fit(scores, 4, RNG(0)).assign(scores)
    assert adjusted_rand_score(truth, labels) > 0.9


@ASSIGNER
@pytest.mark.parametrize("seed", range(4))
def test_labels_do_not_depend_on_the_signs_of_eigenvectors(assigner, seed):
    scores = RNG(seed).normal(size=(80, 5))
    flipped = scores * RNG(seed).choice([-1.0, 1.0], size=5)
    labels, other = (assigner.fit(e, 6, RNG(0)).assign(e) for e in (scores, flipped))
    assert adjusted_rand_score(labels, other) == 1


@ASSIGNER
def test_labels_do_not_depend_on_the_unit_of_the_scores(assigner):
    scores, _ = rays()
    labels = assigner.fit(scores, 4, RNG(0)).assign(scores)
    for factor in (1e-160, 1e160):
        np.testing.assert_array_equal(assigner.fit(scores * factor, 4, RNG(0)).assign(scores * factor), labels)


@ASSIGNER
def test_clusters_are_numbered_by_size(assigner):
    scores = np.repeat([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]], [3, 9, 5], axis=0)
    assert np.bincount(assigner.fit(scores, 3, RNG(0)).assign(scores)).tolist() == [9, 5, 3]


@ASSIGNER
def test_fewer_patterns_than_clusters_give_fewer_clusters(assigner):
    scores = np.repeat([[1.0, 1.0], [-1.0, 1.0]], [4, 6], axis=0)
    assignment = assigner.fit(scores, 5, RNG(0))
    assert assignment.n_found == 2
    assert np.bincount(assignment.assign(scores)).tolist() == [6, 4]


def test_a_tie_in_frequency_goes_to_the_larger_scores():
    scores = np.array([[2.0, 2.0]] * 3 + [[1.0, -1.0]] * 2 + [[-3.0, 3.0]] * 2)
    words = Codebook().fit(scores, 2, RNG(0)).words
    assert words.tolist() == [[1, 1], [-1, 1]]


def test_a_tie_in_hamming_distance_goes_to_the_nearer_direction():
    scores = np.array([[2.0, 2.0]] * 3 + [[-2.0, -2.0]] * 2)
    codebook = Codebook().fit(scores, 2, RNG(0))
    assert codebook.assign(np.array([[3.0, -1.0], [1.0, -3.0]])).tolist() == [0, 1]  # one sign differs from both
