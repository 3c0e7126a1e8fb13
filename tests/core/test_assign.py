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


@ASSIGNER
@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_memberships_equal_their_reference_implementation(assigner, k):
    for seed in range(5):
        scores = RNG(seed).normal(size=(60, k - 1)) + RNG(seed).normal(size=(k, k - 1))[np.arange(60) % k]
        clusters = assigner.fit(scores, k, RNG(0))
        # The nearness is rounded to nine decimals.
        np.testing.assert_allclose(
            clusters.softmax(clusters.nearness(scores)), naive.membership(scores, clusters), atol=1e-7
        )


@ASSIGNER
@pytest.mark.parametrize("decimals", [6, 9])
@pytest.mark.parametrize("k", [2, 4, 30])
def test_the_largest_membership_is_that_of_the_cluster(assigner, decimals, k):
    """Also of scores with exact ties, of scores that nearly have ties, and of zeros."""
    rng = RNG(0)
    train = rng.normal(size=(200, k - 1))
    clusters = assigner.fit(train, k, rng, decimals)
    middles = (clusters.centres[:, None] + clusters.centres).reshape(-1, k - 1)
    few_values = rng.choice([-1.0, 0.0, 1.0], size=(300, k - 1))
    near_ties = [middles + size * rng.normal(size=middles.shape) for size in (1e-4, 1e-7, 1e-10, 1e-16)]
    for scores in (train, middles, few_values, np.zeros((1, k - 1)), *near_ties):
        membership = clusters.softmax(clusters.nearness(scores))
        np.testing.assert_array_equal(membership.argmax(axis=1), clusters.assign(scores))
        np.testing.assert_allclose(membership.sum(axis=1), 1, rtol=1e-12)
        assert membership.min() >= 0


@ASSIGNER
def test_ties_of_memberships_go_to_the_first_cluster(assigner):
    scores = np.array([[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0], [0.0, 1.0], [0.0, 2.0]])
    clusters = assigner.fit(scores[:3], 2, RNG(0))
    tied = clusters.softmax(clusters.nearness(np.array([[0.0, 1.0]])))
    if isinstance(assigner, Directions):  # the codebook counts zero as positive
        assert tied[0, 0] == tied[0, 1] == 0.5
    assert tied.argmax() == clusters.assign(np.array([[0.0, 1.0]])) == 0


@ASSIGNER
def test_a_single_cluster_has_membership_1(assigner):
    clusters = assigner.fit(np.ones((5, 1)), 1, RNG(0))
    np.testing.assert_array_equal(clusters.softmax(clusters.nearness(np.array([[2.0], [-1.0], [0.0]]))), 1.0)


@ASSIGNER
@pytest.mark.parametrize("k", [2, 3, 6])
def test_rows_that_are_certain_keep_their_cluster(assigner, k):
    """Also if scores change towards the other centres, which are the worst changes for Directions."""
    rng = RNG(0)
    train = rng.normal(size=(300, k - 1)) + 2 * rng.normal(size=(k, k - 1))[np.arange(300) % k]
    clusters = assigner.fit(train, k, rng)
    scores = rng.normal(size=(400, k - 1)) * rng.uniform(0, 3, size=(400, 1))
    some = 0
    for error in 10.0 ** np.arange(-9, 1):
        errors = np.full(len(scores), error)
        nearness = clusters.nearness(scores)
        certain = clusters.is_certain(nearness, scores, errors)
        some += 0 < certain.sum() < len(certain)
        changes = [rng.normal(size=scores.shape) for _ in range(20)]
        changes += [np.where(rng.random(scores.shape) < 0.5, -scores, 0 * scores) for _ in range(5)]  # of signs
        changes += [c - d + 0 * scores for c in clusters.centres for d in clusters.centres if (c != d).any()]
        for change in changes:
            norms = np.linalg.norm(change, axis=1, keepdims=True)
            moved = scores + error * np.divide(change, norms, out=np.zeros_like(change), where=norms > 0)
            np.testing.assert_array_equal(clusters.assign(moved)[certain], nearness.argmax(axis=1)[certain])
    assert some > 3  # otherwise the errors are too small or too large


@ASSIGNER
def test_rows_on_the_edge_between_clusters_and_zero_scores_are_not_certain(assigner):
    scores = np.array([[1.0, 1.0], [1.0, 1.1], [-1.0, 1.0], [-1.0, 1.1]])
    clusters = assigner.fit(scores, 2, RNG(0))
    edge = np.array([[0.0, 1.0], [0.0, 0.0], [3e-10, 1.0], [1e-3, 1.0]])
    certain = clusters.is_certain(clusters.nearness(edge), edge, np.full(4, 1e-9))
    assert certain.tolist() == [False, False, False, True]
    assert clusters.is_certain(clusters.nearness(edge), edge, np.full(4, np.inf)).tolist() == [False] * 4


def test_a_single_cluster_is_certain():
    clusters = Directions().fit(np.ones((5, 1)), 1, RNG(0))
    assert clusters.is_certain(np.ones((2, 1)), np.ones((2, 1)), np.full(2, np.inf)).all()
