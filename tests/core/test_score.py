import numpy as np
import pytest

from coview import RBF, Cosine, NormalizedPolynomial
from coview.core.gram import Centering
from coview.core.score import ScoreMap
from tests import naive


def test_scores_of_new_rows_are_inner_products_in_feature_space():
    rng = np.random.default_rng(0)
    train, new, latent = rng.normal(size=(8, 3)), rng.normal(size=(4, 3)), rng.normal(size=(8, 2))
    kernel = RBF(1.5)
    gram = naive.rbf(train, train, 1.5)
    score = ScoreMap.learn(kernel.against(train), Centering.learn(gram, 1 / gram.sum(axis=1)), latent)
    expected = [naive.new_row_scores(row, gram, latent) for row in naive.rbf(new, train, 1.5)]
    np.testing.assert_allclose(score(new), expected, atol=1e-13)


def test_a_score_below_its_rounding_error_is_zero():
    gram = np.ones((5, 5))
    latent = np.random.default_rng(0).normal(size=(5, 2))
    score = ScoreMap.learn(RBF(1.0).against(np.zeros((5, 1))), Centering.learn(gram, np.ones(5)), latent)
    assert score(np.zeros((3, 1))).tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize("kernel", [RBF(), RBF(0.3), Cosine(), NormalizedPolynomial(degree=3)], ids=repr)
@pytest.mark.parametrize("unit", [1e-60, 1.0, 1e60])
@pytest.mark.parametrize("width", [1, 20])
def test_errors_of_float32_scores_are_within_their_bound(kernel, unit, width):
    rng = np.random.default_rng(0)
    train, new, latent = rng.normal(size=(600, width)) + 1, rng.normal(size=(80, width)) + 1, rng.normal(size=(600, 4))
    train[0] = 300  # far from the others
    similarity = kernel.resolve(train).against(train)
    score = ScoreMap.learn(similarity, Centering.learn(similarity(train), np.ones(600)), unit * latent)
    scores, bounds = score.in_float32()(new)
    errors = np.linalg.norm(scores - score(new), axis=1)
    assert (errors <= bounds[:, 0]).all()
    assert errors.max() > 0
    assert bounds.max() < 1e-2 * np.linalg.norm(score(new), axis=1).max()  # small enough to be of use


def test_scores_of_rows_without_a_bound_have_infinite_errors():
    train = np.random.default_rng(0).normal(size=(30, 2))
    similarity = RBF(1.0).against(train)
    score = ScoreMap.learn(similarity, Centering.learn(similarity(train), np.ones(30)), train)
    scores, bounds = score.in_float32()(np.vstack([train[:2], 1e200 * train[:2]]))
    assert np.isfinite(scores).all()
    assert np.isinf(bounds[:, 0]).tolist() == [False, False, True, True]
