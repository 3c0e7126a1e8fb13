import numpy as np
import pytest

from coview import RBF, Precomputed
from coview.base.runtime import Workers
from coview.core.eigen import top_eigenpairs
from coview.core.fuse import fuse
from coview.core.gram import Grams
from tests import naive


def fuse_matrices(matrices, kappa, rho, dtype=np.float64):
    """Fuse these Gram matrices."""
    names = [f"v{i}" for i in range(len(matrices))]
    similarities = {name: Precomputed().against(matrix) for name, matrix in zip(names, matrices, strict=True)}
    grams = Grams(similarities, dict.fromkeys(names, Precomputed()), len(matrices[0]), dtype, Workers(1))
    return fuse(grams, dict(zip(names, kappa, strict=True)), rho)


def dense(problem):
    return np.ldexp(problem.matrix.to_dense(), problem.exponent)


def random_grams(n_views, n=12):
    rng = np.random.default_rng(0)
    return [RBF(2.0)(rng.normal(size=(n, 3))) for _ in range(n_views)]


@pytest.mark.parametrize("rho", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("n_views", [1, 2, 5])
def test_fusion_is_the_papers_eigenproblem(rho, n_views):
    grams = random_grams(n_views)
    kappa = np.random.default_rng(1).uniform(0.5, 2, size=n_views)
    matrix, degrees = naive.fused_problem(grams, kappa, rho)
    root = np.sqrt(np.diag(degrees))
    problem = fuse_matrices(grams, kappa, rho).problem
    np.testing.assert_allclose(dense(problem), matrix / np.outer(root, root), atol=1e-15)
    np.testing.assert_allclose(np.ldexp(problem.trace, problem.exponent), (np.diag(matrix) / root**2).sum())


def test_kappa_weighs_the_sum_and_not_the_product():
    one, three = (fuse_matrices(random_grams(2), [weight] * 2, rho=0.0).problem for weight in (1.0, 3.0))
    np.testing.assert_allclose(dense(one), dense(three), rtol=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("n_views", [1, 3])
def test_the_sum_gives_ensemble_scores_if_beta_is_proportional_to_kappa(rho, n_views):
    grams = random_grams(n_views)
    kappa = np.arange(1.0, n_views + 1)
    latent = np.random.default_rng(2).normal(size=(12, 2))
    fused = fuse_matrices(grams, kappa, rho)
    beta = {f"v{i}": 0.2 * weight for i, weight in enumerate(kappa)}
    centred = [naive.centring_matrix(gram) @ gram @ naive.centring_matrix(gram).T for gram in grams]
    expected = sum(weight * matrix @ latent for weight, matrix in zip(beta.values(), centred, strict=True))
    np.testing.assert_allclose(fused.scores(latent, beta), expected, atol=1e-13)
    if n_views > 1:
        assert fused.scores(latent, dict.fromkeys(beta, 1.0)) is None


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_products_of_many_small_or_large_entries_stay_in_range(size):
    grams = random_grams(4, n=10)
    plain = top_eigenpairs(fuse_matrices(grams, [1.0] * 4, rho=0.0).problem, 3)
    scaled = top_eigenpairs(fuse_matrices([gram * size for gram in grams], [1.0] * 4, rho=0.0).problem, 3)  # (1e±200)⁴
    np.testing.assert_allclose(scaled.explained_variance_ratio, plain.explained_variance_ratio, rtol=1e-10)
    np.testing.assert_allclose(scaled.vectors, plain.vectors, atol=1e-10)


@pytest.mark.parametrize("n_views", [2, 12, 30])
def test_float32_products_of_many_views_are_neither_zero_nor_denormal(n_views):
    rng = np.random.default_rng(0)
    clusters = np.arange(60) % 3
    grams = [RBF()(rng.normal(size=(3, 5))[clusters] + rng.normal(size=(60, 5))) for _ in range(n_views)]
    wide = fuse_matrices(grams, [1.0] * n_views, rho=0.0).problem
    narrow = fuse_matrices(grams, [1.0] * n_views, rho=0.0, dtype=np.float32).problem
    np.testing.assert_allclose(dense(narrow) / dense(wide).max(), dense(wide) / dense(wide).max(), atol=1e-5)
    stored = np.abs(np.concatenate([tile.ravel() for tile in narrow.matrix.tiles]))
    assert np.isfinite(stored).all()
    assert (stored[stored > 0] > np.finfo(np.float32).tiny).mean() > 0.99
    first, second = (top_eigenpairs(problem, 2) for problem in (wide, narrow))
    np.testing.assert_allclose(second.values, first.values, rtol=1e-4)
