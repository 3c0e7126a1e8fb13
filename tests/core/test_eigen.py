import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coview.core.eigen import Problem, top_eigenpairs
from tests.core.test_tiles import tiles_of


def symmetric(values, seed=0):
    """A matrix with these eigenvalues."""
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    return (rotation * values) @ rotation.T


def problem_of(matrix, exponent=0, dtype=np.float64):
    return Problem(tiles_of(matrix, dtype, tile_rows=128), exponent, float(np.trace(matrix)))


@pytest.mark.parametrize("n", [30, 600])  # dense, Lanczos
def test_the_algebraically_largest_come_first(n):
    values = np.linspace(-5, 1, n)
    pairs = top_eigenpairs(problem_of(symmetric(values)), 4)
    np.testing.assert_allclose(pairs.values, values[::-1][:4], rtol=1e-10)
    matrix = symmetric(values)
    np.testing.assert_allclose(matrix @ pairs.vectors, pairs.vectors * pairs.values, atol=1e-8)


@pytest.mark.parametrize("n", [30, 600])
def test_signs_are_fixed(n):
    vectors = top_eigenpairs(problem_of(symmetric(np.arange(n, dtype=float))), 3).vectors
    largest = vectors[np.abs(vectors).argmax(axis=0), range(3)]
    assert (largest > 0).all()


@pytest.mark.parametrize("n", [30, 600])
def test_shares_are_of_the_trace(n):
    values = np.linspace(0, 1, n)
    pairs = top_eigenpairs(problem_of(symmetric(values), exponent=900), 2)
    np.testing.assert_allclose(pairs.shares, values[::-1][:2] / values.sum(), rtol=1e-9)
    np.testing.assert_allclose(np.ldexp(pairs.values, -900), values[::-1][:2], rtol=1e-9)


@pytest.mark.parametrize("n", [30, 600])
def test_a_zero_matrix_has_eigenvalues_zero(n):
    if n > 400:
        with pytest.warns(ConvergenceWarning, match="used the dense solver"):
            pairs = top_eigenpairs(problem_of(np.zeros((n, n))), 3)
    else:
        pairs = top_eigenpairs(problem_of(np.zeros((n, n))), 3)
    assert pairs.values.tolist() == [0.0] * 3
    assert pairs.shares.tolist() == [0.0] * 3
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("n", [30, 600])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_repeated_eigenvalues_give_orthogonal_vectors(n):
    matrix = np.eye(n) - 1 / n  # all eigenvalues equal but one: a kernel with a bandwidth far too small
    pairs = top_eigenpairs(problem_of(matrix), 5)
    np.testing.assert_allclose(pairs.values, 1, rtol=1e-10)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(5), atol=1e-8)
    np.testing.assert_allclose(matrix @ pairs.vectors, pairs.vectors, atol=1e-8)


def test_float32_problems_are_solved_to_their_own_precision():
    values = np.append(np.linspace(0, 1, 597), [2.0, 3.0, 5.0])
    pairs = top_eigenpairs(problem_of(symmetric(values), dtype=np.float32), 3)
    np.testing.assert_allclose(pairs.values, [5.0, 3.0, 2.0], rtol=1e-5)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-10)
