import itertools

import numpy as np
import pytest

from coview.methods.sfmc_simplex import project_segments, smallest_on_simplex


def project(v):
    """The textbook projection: sort, find the last entry that stays positive, subtract the excess."""
    u = np.sort(v)[::-1]
    sums = np.cumsum(u)
    last = max(j for j in range(len(u)) if u[j] - (sums[j] - 1) / (j + 1) > 0)
    return np.maximum(v - (sums[last] - 1) / (last + 1), 0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_segments_are_projected_like_vectors_one_by_one(scale):
    rng = np.random.default_rng(0)
    sizes = np.array([3, 1, 0, 40, 2, 0, 7])
    starts = np.concatenate([[0], sizes.cumsum()])
    values = rng.normal(size=starts[-1]) * scale
    projected = project_segments(values, starts)
    for a, b in itertools.pairwise(starts):
        if b > a:
            np.testing.assert_allclose(projected[a:b], project(values[a:b]), atol=1e-12)


def test_entries_far_below_the_largest_become_exactly_zero():
    np.testing.assert_array_equal(project_segments(np.array([5.0, 1.0, 2.0]), np.array([0, 3])), [1.0, 0.0, 0.0])


def test_shifting_a_segment_changes_nothing():
    values = np.array([0.25, 0.5, 0.125, 0.75])
    np.testing.assert_array_equal(
        project_segments(values + 2.0**40, np.array([0, 4])), project_segments(values, np.array([0, 4]))
    )


def test_an_empty_vector_is_accepted():
    assert project_segments(np.empty(0), np.array([0, 0, 0])).size == 0


def smallest_by_trying_every_support(quadratic, linear):
    best, smallest = None, np.inf
    for size in range(1, len(linear) + 1):
        for support in map(list, itertools.combinations(range(len(linear)), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[size, size] = quadratic[np.ix_(support, support)], 0
            x = np.zeros(len(linear))
            x[support] = np.linalg.lstsq(system, np.append(linear[support], 1.0), rcond=None)[0][:size]
            value = x @ quadratic @ x - 2 * linear @ x
            if (x >= 0).all() and value < smallest:
                best, smallest = x, value
    return best


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_quadratic_problems_are_solved_as_by_trying_every_support(n):
    rng = np.random.default_rng(n)
    for _ in range(30):
        factor = rng.normal(size=(n, n + 1))
        quadratic, linear = factor @ factor.T, 2 * rng.normal(size=n)
        expected = smallest_by_trying_every_support(quadratic, linear)
        np.testing.assert_allclose(smallest_on_simplex(quadratic, linear), expected, atol=1e-8)


def test_the_solution_with_many_unknowns_is_optimal():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(40, 60))
    quadratic, linear = factor @ factor.T, 5 * rng.normal(size=40)
    x = smallest_on_simplex(quadratic, linear)
    slope = quadratic @ x - linear
    assert abs(x.sum() - 1) < 1e-12
    assert (x >= 0).all()
    np.testing.assert_allclose(slope[x > 0], slope @ x, atol=1e-7)
    assert (slope >= slope @ x - 1e-7).all()


def test_equal_unknowns_get_equal_weights():
    point = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    x = smallest_on_simplex(point @ point.T, np.zeros(3))
    np.testing.assert_allclose(x, [0.45, 0.45, 0.1], atol=1e-6)


def test_a_problem_of_zeros_gives_equal_weights():
    np.testing.assert_allclose(smallest_on_simplex(np.zeros((4, 4)), np.zeros(4)), 0.25)
