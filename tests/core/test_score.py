import numpy as np

from coview import RBF
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
