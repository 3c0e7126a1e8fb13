import numpy as np
import pytest

from coview import RBF, InputError, Linear
from coview.core.eigen import Problem, top_eigenpairs
from coview.core.sparse import PlusLowRank
from tests.core.test_gram import gram_of
from tests.core.test_tiles import tiles_of


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_normalised_similarity_has_unit_degrees_on_both_sides(n_jobs):
    x = np.random.default_rng(0).normal(size=(700, 3))  # several tiles
    kernel = RBF(2.0)(x)
    degrees = np.diag(1 / np.sqrt(kernel.sum(axis=1)))
    similarity = gram_of(RBF(2.0), x, n_jobs=n_jobs).normalised_similarity()
    np.testing.assert_allclose(similarity.to_dense(), degrees @ kernel @ degrees, atol=1e-15)


def test_degrees_must_be_positive():
    with pytest.raises(InputError, match="view 'text' has 1 of 3 samples with degree <= 0"):
        gram_of(Linear(), np.array([[1.0], [0.0], [2.0]])).normalised_similarity()


def test_both_sides_are_scaled_in_place():
    matrix = np.arange(81.0).reshape(9, 9)
    matrix = matrix + matrix.T
    tiles, scale = tiles_of(matrix), np.arange(9.0)
    assert tiles.scale_both_sides(scale) is tiles
    np.testing.assert_array_equal(tiles.to_dense(), scale[:, None] * matrix * scale)


@pytest.mark.parametrize("columns", [4, 0])
@pytest.mark.parametrize("n", [30, 900])  # dense, block Krylov
def test_a_low_rank_term_is_added_without_being_formed(n, columns):
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(n, columns)) / np.sqrt(n)
    vectors = np.linalg.qr(rng.normal(size=(n, n)))[0]
    own = (vectors * np.linspace(-1, 1, n) ** 9) @ vectors.T
    dense = own + factor @ factor.T
    operator = PlusLowRank(tiles_of(own, tile_rows=256), factor)
    assert operator.shape == dense.shape
    assert operator.dtype == np.float64
    np.testing.assert_allclose(operator.to_dense(), dense, atol=1e-14)
    np.testing.assert_allclose(operator @ vectors[:, :3], dense @ vectors[:, :3], atol=1e-13)
    np.testing.assert_allclose(operator.diagonal(), dense.diagonal(), atol=1e-14)
    values, expected = np.linalg.eigh(dense)
    for start in (None, expected[:, :-4:-1] + 1e-3):
        pairs = top_eigenpairs(Problem.of(operator), 3, start)
        np.testing.assert_allclose(pairs.values, values[:-4:-1], rtol=1e-9)
        np.testing.assert_allclose(np.abs(pairs.vectors), np.abs(expected[:, :-4:-1]), atol=1e-8)
