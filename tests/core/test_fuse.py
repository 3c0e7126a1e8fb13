import numpy as np
import pytest

from coview import RBF
from coview.core.eigen import top_eigenpairs
from coview.core.fuse import Fusion
from coview.core.gram import Centering
from tests import naive


def problem_of(grams, kappa, rho):
    fusion = Fusion(rho)
    for gram, weight in zip(grams, kappa, strict=True):
        fusion.add(Centering.learn(gram, weights=1 / gram.sum(axis=1)).centre(gram), weight)
    return fusion.problem(sum(gram.sum(axis=1) for gram in grams))


@pytest.mark.parametrize("rho", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("n_views", [1, 2, 5])
def test_fusion_is_the_papers_eigenproblem(rho, n_views):
    rng = np.random.default_rng(0)
    grams = [RBF(2.0)(rng.normal(size=(12, 3))) for _ in range(n_views)]
    kappa = rng.uniform(0.5, 2, size=n_views)
    matrix, degrees = naive.fused_problem(grams, kappa, rho)
    root = np.sqrt(np.diag(degrees))
    problem = problem_of(grams, kappa, rho)
    np.testing.assert_allclose(np.ldexp(problem.matrix, problem.exponent), matrix / np.outer(root, root), atol=1e-15)


def test_kappa_weighs_the_sum_and_not_the_product():
    grams = [RBF(2.0)(np.random.default_rng(i).normal(size=(8, 2))) for i in range(2)]
    one, three = (problem_of(grams, [weight] * 2, rho=0.0) for weight in (1.0, 3.0))
    np.testing.assert_allclose(np.ldexp(one.matrix, one.exponent), np.ldexp(three.matrix, three.exponent), rtol=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_products_of_many_small_or_large_entries_stay_in_range(size):
    rng = np.random.default_rng(0)
    grams = [RBF(2.0)(rng.normal(size=(10, 2))) for _ in range(4)]
    plain = top_eigenpairs(problem_of(grams, [1.0] * 4, rho=0.0), 3)
    scaled = top_eigenpairs(problem_of([gram * size for gram in grams], [1.0] * 4, rho=0.0), 3)  # (1e±200)⁴
    np.testing.assert_allclose(scaled.shares, plain.shares, rtol=1e-10)
    np.testing.assert_allclose(scaled.vectors, plain.vectors, atol=1e-10)
