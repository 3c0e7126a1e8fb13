import numpy as np
import pytest

from coview import RBF, InputError, Linear
from coview.base.runtime import Workers
from coview.core.gram import Centering, Grams
from tests import naive


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(9, 3))


def gram_of(kernel, x, dtype=np.float64, n_jobs=1):
    with Workers(n_jobs) as workers:
        (gram,) = Grams({"text": kernel.against(x, dtype)}, {"text": kernel}, len(x), dtype, workers)
    return gram


def test_degrees_are_the_row_sums_of_the_matrix(rows):
    x = np.random.default_rng(0).normal(size=(1100, 3))  # three strips of tiles
    expected = RBF(2.0)(x)
    for n_jobs in (1, 2):
        gram = gram_of(RBF(2.0), x, n_jobs=n_jobs)
        np.testing.assert_allclose(gram.matrix.to_dense(), expected, atol=1e-12)
        np.testing.assert_allclose(gram.positive_degrees(), expected.sum(axis=1), rtol=1e-12)
    single = gram_of(RBF(2.0), x, np.float32)
    np.testing.assert_allclose(single.matrix.to_dense(), expected, atol=1e-5)
    np.testing.assert_allclose(single.positive_degrees(), expected.sum(axis=1), rtol=1e-5)


def test_centring_is_the_papers_matrix_on_both_sides(rows):
    gram = RBF(2.0)(rows)
    centring = naive.centring_matrix(gram)
    expected = centring @ gram @ centring.T
    centering = Centering.learn(gram, weights=1 / gram.sum(axis=1))
    tile = gram[2:5, 4:9].copy()
    centering.centre(tile, slice(2, 5), slice(4, 9))
    np.testing.assert_allclose(tile, expected[2:5, 4:9], atol=1e-14)
    np.testing.assert_allclose(centering.centred_diagonal(gram.diagonal()), expected.diagonal(), atol=1e-14)


def test_folded_centring_scores_new_rows_by_training_samples_alone(rows):
    gram = RBF(2.0)(rows)
    train = gram[:6, :6]
    latent = np.random.default_rng(1).normal(size=(6, 2))
    coefficients, bias = Centering.learn(train, weights=1 / train.sum(axis=1)).fold(latent)
    expected = [naive.new_row_scores(row, train, latent) for row in gram[:, :6]]
    np.testing.assert_allclose(gram[:, :6] @ coefficients + bias, expected, atol=1e-14)


def test_degrees_that_cancel_to_rounding_error_count_as_zero():
    x = np.random.default_rng(0).normal(size=(50, 3))
    x = x - x.mean(axis=0)
    assert (Linear()(x).sum(axis=1) > 0).any()  # rounding errors of either sign
    with pytest.raises(InputError, match=r"view 'text' has 50 of 50 samples with degree <= 0 under Linear\(\)"):
        gram_of(Linear(), x).positive_degrees()
