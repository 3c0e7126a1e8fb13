import numpy as np
import pytest

from coview import RBF, InputError, Linear
from coview.core.gram import Centering, positive_degrees
from tests import naive


@pytest.fixture
def gram():
    return RBF(2.0)(np.random.default_rng(0).normal(size=(9, 3)))


def test_centring_is_the_papers_matrix_on_both_sides(gram):
    centering = Centering.learn(gram, weights=1 / gram.sum(axis=1))
    centring = naive.centring_matrix(gram)
    np.testing.assert_allclose(centering.centre(gram), centring @ gram @ centring.T, atol=1e-14)


def test_a_block_is_centred_by_training_rows_alone(gram):
    centering = Centering.learn(gram[:6, :6], weights=1 / gram[:6, :6].sum(axis=1))
    whole = centering.centre(gram[:, :6])
    for i in range(9):
        np.testing.assert_allclose(centering.centre(gram[i : i + 1, :6]), whole[i : i + 1], atol=1e-15)


def test_folded_centring_gives_the_same_scores(gram):
    centering = Centering.learn(gram[:6, :6], weights=1 / gram[:6, :6].sum(axis=1))
    latent = np.random.default_rng(1).normal(size=(6, 2))
    coefficients, bias = centering.fold(latent)
    expected = centering.centre(gram[:, :6]) @ latent
    np.testing.assert_allclose(gram[:, :6] @ coefficients + bias, expected, atol=1e-14)


def test_degrees_that_cancel_to_rounding_error_count_as_zero():
    x = np.random.default_rng(0).normal(size=(50, 3))
    gram = Linear()(x - x.mean(axis=0))
    assert (gram.sum(axis=1) > 0).any()  # noise, of either sign
    with pytest.raises(InputError, match=r"view 'text' has 50 of 50 samples with degree <= 0 under Linear\(\)"):
        positive_degrees("text", Linear(), gram)
