import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from coview.base.runtime import Workers
from coview.core.eigen import Eigenpairs, Problem, _solve_dense, dominant_rows, top_eigenpairs
from coview.core.sparse import PlusLowRank, SymmetricSparse
from tests.core.test_tiles import tiles_of

SIZES = pytest.mark.parametrize("n", [30, 900])  # dense, block Krylov


def symmetric(values, seed=0):
    """A matrix with these eigenvalues."""
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    return (rotation * values) @ rotation.T


def problem_of(matrix, exponent=0, dtype=np.float64):
    return Problem(tiles_of(matrix, dtype, tile_rows=256), exponent, float(np.trace(matrix)))


def assert_eigenpairs(pairs, matrix, atol=1e-9):
    """Residuals and orthogonality; eigenvectors themselves are only as sharp as the gaps."""
    k = len(pairs.values)
    np.testing.assert_allclose(matrix @ pairs.vectors, pairs.vectors * pairs.values, atol=atol)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=1e-10)


@SIZES
def test_the_algebraically_largest_come_first(n):
    values = np.append(np.linspace(-9, 0, n - 4), [1.0, 2.0, 3.0, 4.0])  # the largest absolute value is that of -9
    matrix = symmetric(values)
    pairs = top_eigenpairs(problem_of(matrix), 4)
    np.testing.assert_allclose(pairs.values, [4.0, 3.0, 2.0, 1.0], rtol=1e-10)
    assert_eigenpairs(pairs, matrix)


@SIZES
def test_signs_are_fixed(n):
    vectors = top_eigenpairs(problem_of(symmetric(1.01 ** np.arange(n))), 3).vectors
    largest = vectors[np.abs(vectors).argmax(axis=0), range(3)]
    assert (largest > 0).all()


@SIZES
def test_explained_variance_ratios_are_fractions_of_the_trace(n):
    values = 1.05 ** -np.arange(n, dtype=float)
    pairs = top_eigenpairs(problem_of(symmetric(values), exponent=900), 2)
    np.testing.assert_allclose(pairs.explained_variance_ratio, values[:2] / values.sum(), rtol=1e-9)
    np.testing.assert_allclose(np.ldexp(pairs.values, -900), values[:2], rtol=1e-9)


@pytest.mark.parametrize("n", [3, 30, 900])
def test_the_next_eigenvalues_are_known_approximately(n):
    values = 2.0 ** -np.arange(n)
    pairs = top_eigenpairs(problem_of(symmetric(values), exponent=3), 2, n_further=3)
    # The Krylov solver stops when the requested pairs have converged, so these have a few correct digits.
    np.testing.assert_allclose(pairs.further_values, 8 * values[2:5], rtol=1e-3)
    alone = top_eigenpairs(problem_of(symmetric(values), exponent=3), 2)
    assert len(alone.further_values) == 0
    np.testing.assert_array_equal(alone.vectors, pairs.vectors)


def test_there_are_no_eigenvalues_beyond_all_of_them():
    assert len(top_eigenpairs(problem_of(symmetric(np.arange(5.0))), 5, n_further=3).further_values) == 0


@SIZES
def test_a_zero_matrix_has_eigenvalues_zero(n):
    pairs = top_eigenpairs(problem_of(np.zeros((n, n))), 3, n_further=3)
    assert pairs.values.tolist() == pairs.further_values.tolist() == [0.0] * 3
    assert pairs.explained_variance_ratio.tolist() == [0.0] * 3
    assert not pairs.vectors.any()  # any other choice would be arbitrary


@SIZES
def test_a_matrix_that_is_almost_the_identity_has_orthogonal_eigenvectors(n):
    matrix = np.eye(n) - 1 / n  # a kernel with a bandwidth that is far too small
    pairs = top_eigenpairs(problem_of(matrix), 5)
    np.testing.assert_allclose(pairs.values, 1, rtol=1e-10)
    assert_eigenpairs(pairs, matrix)


@pytest.mark.parametrize("n_blocks", [3, 10, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_eigenvalues_are_all_found(n_blocks, dtype):
    """Separate clusters: as many eigenvalues 1 as clusters, the typical case of spectral clustering."""
    cluster = np.arange(1200) % n_blocks
    matrix = (cluster[:, None] == cluster) * n_blocks / 1200.0
    problem = problem_of(matrix, dtype=dtype)
    pairs = top_eigenpairs(problem, n_blocks)
    np.testing.assert_allclose(pairs.values, np.ones(n_blocks), rtol=1e-6)
    np.testing.assert_allclose(pairs.values, _solve_dense(problem, n_blocks)[0], atol=1e-6)


def test_a_failure_of_the_subset_solver_does_not_reach_the_user(monkeypatch):
    """LAPACK fails with an internal error for some matrices of 13 rows with nearly equal eigenvalues."""
    solve, matrix = scipy.linalg.eigh, symmetric([3.0, 2.0, 1.0, 0.5])

    def fail(*arguments, subset_by_index=None, **settings):
        if subset_by_index is not None:
            raise np.linalg.LinAlgError("Internal Error.")
        return solve(*arguments, **settings)

    monkeypatch.setattr(scipy.linalg, "eigh", fail)
    assert_eigenpairs(top_eigenpairs(problem_of(matrix), 2), matrix)


def test_low_rank_problems_give_zeros_beyond_their_rank():
    factor = np.random.default_rng(0).normal(size=(900, 2))
    pairs = top_eigenpairs(problem_of(factor @ factor.T), 5)
    np.testing.assert_allclose(pairs.values[2:], 0, atol=1e-9 * pairs.values[0])
    assert not pairs.vectors[:, 2:].any()
    first = Eigenpairs(pairs.values[:2], pairs.vectors[:, :2], pairs.explained_variance_ratio[:2], pairs.values[2:])
    assert_eigenpairs(first, factor @ factor.T, atol=1e-9 * pairs.values[0])


class Counted:
    """A matrix that counts its products and conversions to a dense matrix."""

    def __init__(self, matrix):
        self._matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype
        self.n_products = self.n_dense = 0

    def __matmul__(self, x):
        self.n_products += 1
        return self._matrix @ x

    def to_dense(self):
        self.n_dense += 1
        return self._matrix


def test_a_problem_without_a_gap_soon_uses_the_dense_solver():
    matrix = symmetric(1 + 1e-6 * np.linspace(0, 1, 900))
    counted = Counted(matrix)
    pairs = top_eigenpairs(Problem(counted, 0, float(np.trace(matrix))), 3)
    assert counted.n_dense == 1
    assert counted.n_products < 30
    assert_eigenpairs(pairs, matrix, atol=1e-12)


def test_errors_that_fall_slowly_do_not_stop_the_iterations():
    matrix = symmetric(np.concatenate([np.linspace(0, 0.9, 890), 1 - 0.002 * np.arange(10)]))
    counted = Counted(matrix)
    pairs = top_eigenpairs(Problem(counted, 0, float(np.trace(matrix))), 10)
    assert counted.n_dense == 0
    assert counted.n_products > 40
    assert_eigenpairs(pairs, matrix, atol=1e-9)


def test_a_large_problem_without_a_gap_gives_a_warning(monkeypatch):
    monkeypatch.setattr("coview.core.eigen._DENSE_FALLBACK", 0)
    matrix = symmetric(1 + 1e-6 * np.linspace(0, 1, 900))
    pairs = top_eigenpairs(problem_of(matrix), 3)
    (note,) = pairs.notes
    assert note.category is ConvergenceWarning
    assert "kept the approximation" in note.message
    assert_eigenpairs(pairs, matrix, atol=1e-6)  # any vector is an eigenvector to the width of the spectrum


def test_float32_problems_are_solved_to_float32_precision():
    values = np.append(np.linspace(0, 1, 897), [2.0, 3.0, 5.0])
    pairs = top_eigenpairs(problem_of(symmetric(values), dtype=np.float32), 3)
    np.testing.assert_allclose(pairs.values, [5.0, 3.0, 2.0], rtol=1e-6)
    assert_eigenpairs(pairs, symmetric(values), atol=5e-5)


def test_many_rows_give_the_same_eigenpairs_on_any_number_of_threads():
    values = np.append(np.linspace(0, 0.5, 19_995), [1.0, 0.9, 0.8, 0.7, 0.6])
    reflection = np.ones((20_000, 1)) / np.sqrt(20_000)  # I - 2 u uᵀ, so that the eigenvectors have no zeros
    found = []
    for n_jobs in (1, 2, 3):
        with Workers(n_jobs) as workers:
            diagonal = SymmetricSparse.of(sp.diags_array(values, format="csr"), workers)
            factor = np.column_stack([reflection, values[:, None] * reflection])
            overlap = float(values @ np.square(reflection[:, 0]))
            form = np.array([[4 * overlap, -2.0], [-2.0, 0.0]])
            found.append(top_eigenpairs(Problem.of(PlusLowRank(diagonal, factor, form)), 4))
    np.testing.assert_allclose(found[0].values, [1.0, 0.9, 0.8, 0.7], rtol=1e-10)
    expected = -2 * reflection @ reflection[-5:-1].T
    expected[-5:-1] += np.eye(4)
    np.testing.assert_allclose(np.abs(found[0].vectors), np.abs(expected), atol=1e-9)
    for other in found[1:]:
        np.testing.assert_array_equal(other.values, found[0].values)
        np.testing.assert_array_equal(other.vectors, found[0].vectors)


@pytest.mark.parametrize("n_passes", [5, 6, 7, 8])  # the basis is condensed after the sixth
def test_an_approximation_is_that_of_the_last_pass(monkeypatch, n_passes):
    monkeypatch.setattr("coview.core.eigen._DENSE_FALLBACK", 0)
    monkeypatch.setattr("coview.core.eigen._PASSES", n_passes)
    matrix = symmetric(np.concatenate([np.linspace(0, 0.9, 890), 1 - 0.002 * np.arange(10)]))
    pairs = top_eigenpairs(problem_of(matrix), 10)
    assert len(pairs.notes) == 1
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(10), atol=1e-10)
    np.testing.assert_allclose((pairs.vectors * (matrix @ pairs.vectors)).sum(axis=0), pairs.values, rtol=1e-9)


def test_rows_that_own_a_vector_are_found():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(500, 3))
    vectors[[4, 77], 1] = 60, -90
    vectors /= np.linalg.norm(vectors, axis=0)
    assert dominant_rows(vectors, 500 / 30).tolist() == [4, 77]
    assert dominant_rows(vectors[:, [0, 2]], 500 / 30).tolist() == []
    assert dominant_rows(np.zeros((5, 1)), 3.0).tolist() == []  # the eigenvalue is zero
    single = np.eye(6)[:, :1]
    assert dominant_rows(single, 2.0).tolist() == [0]
