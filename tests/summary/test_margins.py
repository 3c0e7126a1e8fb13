import numpy as np
import pytest

from coview.data import rows as row_operations
from coview.summary.margins import margins, shortened_directions


def naive_margins(points, numbers):
    centres = np.array([points[numbers == c].mean(axis=0) for c in range(numbers.max() + 1)])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    found = []
    for x, own in zip(points, numbers, strict=True):
        distances = np.linalg.norm(centres - x, axis=1)
        a, others = distances[own], np.delete(distances, own)
        found.append(
            ((others.min() - a) / (others.min() + a), np.delete(np.arange(len(centres)), own)[others.argmin()])
        )
    return map(np.array, zip(*found, strict=True))


def test_margins_are_those_of_the_definition(monkeypatch):
    rng = np.random.default_rng(0)
    numbers = rng.permutation(np.arange(60) % 4)
    scores = rng.normal(size=(4, 3))[numbers] * 3 + rng.normal(size=(60, 3))
    points = shortened_directions(scores, numbers)
    expected, others = naive_margins(points, numbers)
    monkeypatch.setattr(row_operations, "_BLOCK_NUMBERS", 100)  # several blocks
    found, nearest_others = margins(points, numbers, 4)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(nearest_others, others)


def test_rows_that_are_short_for_their_cluster_are_in_doubt():
    scores = np.array([[8.0], [4.0], [2.0], [-1.0], [-1.0], [-0.5], [0.0]])
    points = shortened_directions(scores, np.array([0, 0, 0, 1, 1, 1, 1]))
    np.testing.assert_allclose(points[:, 0], [1, 1, 0.5, -1, -1, -2 / 3, 0])  # medians 4 and 0.75
    found, nearest_others = margins(points, np.array([0, 0, 0, 1, 1, 1, 1]), 2)
    np.testing.assert_allclose(found, [1, 1, 0.5, 1, 1, 2 / 3, 0])
    np.testing.assert_array_equal(nearest_others, [1, 1, 1, 0, 0, 0, 0])


def test_directions_do_not_depend_on_the_unit_of_the_scores():
    rng = np.random.default_rng(0)
    scores, numbers = rng.normal(size=(30, 2)), np.arange(30) % 3
    for unit in (1e-200, 1e200):
        np.testing.assert_allclose(
            shortened_directions(scores * unit, numbers), shortened_directions(scores, numbers), rtol=1e-12
        )


def test_a_sample_nearer_to_another_cluster_has_a_negative_margin():
    points = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.9, 0.1]])
    found, nearest_others = margins(points, np.array([0, 0, 1, 1, 1, 1]), 2)
    assert (found[:5] > 0.5).all()
    assert found[5] < -0.5
    assert nearest_others[5] == 0


@pytest.mark.parametrize("n_components", [1, 3])
def test_scores_of_zeros_give_margins_of_zero(n_components):
    numbers = np.array([0, 1, 0, 1])
    found, _ = margins(shortened_directions(np.zeros((4, n_components)), numbers), numbers, 2)
    np.testing.assert_array_equal(found, 0)
