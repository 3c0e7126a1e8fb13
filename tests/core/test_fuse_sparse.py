from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp

from coview import RBF, NeighborGraph
from coview.base.runtime import Workers
from coview.core.eigen import top_eigenpairs
from coview.core.fuse import fuse
from coview.core.gram import Grams
from coview.core.sparse import PlusLowRank, SymmetricSparse, row_slabs
from coview.core.tiles import SymmetricTiles
from tests import naive

N = 60


def similarities(n_views, n=N, dtype=np.float64, near=5):
    rng = np.random.default_rng(0)
    return {f"v{v}": NeighborGraph(near, 3).against(rng.normal(size=(n, 3)), dtype) for v in range(n_views)}


def fuse_similarities(similar, rho, kappa, n=N, dtype=np.float64, workers=None, sparse=True):
    """Fuse these similarities as sparse matrices or in tiles."""
    kernels = {name: similarity.kernel for name, similarity in similar.items()}
    grams = Grams(similar, kernels, n, dtype, workers or Workers(1))
    with patch("coview.core.fuse._MOST_SPARSE_VIEWS", 8 if sparse else 0):
        return fuse(grams, kappa, rho)


def weights(n_views, largest=3.0):
    return {f"v{v}": float(w) for v, w in enumerate(np.linspace(0.5, largest, n_views))}


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_views", range(1, 9))
def test_sparse_plus_low_rank_is_the_papers_eigenproblem(n_views, rho):
    similar, kappa = similarities(n_views), weights(n_views)
    matrix, degrees = naive.fused_problem([s.gram.toarray() for s in similar.values()], kappa.values(), rho)
    root = np.sqrt(np.diag(degrees))
    problem = fuse_similarities(similar, rho, kappa).problem
    scaled = matrix / np.outer(root, root)
    np.testing.assert_allclose(np.ldexp(problem.matrix.to_dense(), problem.exponent), scaled, atol=1e-14)
    np.testing.assert_allclose(np.ldexp(problem.trace, problem.exponent), np.trace(scaled), rtol=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_views", [1, 2, 5, 8])
@pytest.mark.parametrize("largest", [3.0, 1e200])
def test_sparse_and_dense_fusion_have_the_same_eigenpairs(n_views, rho, largest):
    similar, kappa = similarities(n_views), weights(n_views, largest)
    sparse, dense = (
        top_eigenpairs(fuse_similarities(similar, rho, kappa, sparse=sparse).problem, 3) for sparse in (True, False)
    )
    np.testing.assert_allclose(sparse.values, dense.values, rtol=1e-10)
    np.testing.assert_allclose(sparse.vectors, dense.vectors, atol=1e-10)
    np.testing.assert_allclose(sparse.explained_variance_ratio, dense.explained_variance_ratio, rtol=1e-10)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-6)])
def test_products_are_those_of_the_dense_matrix(dtype, tolerance):
    similar = similarities(3, dtype=dtype)
    problem = fuse_similarities(similar, 0.25, weights(3), dtype=dtype).problem
    block = np.random.default_rng(1).normal(size=(N, 4))
    expected = problem.matrix.to_dense() @ block
    assert problem.matrix.dtype == dtype
    assert problem.matrix.shape == (N, N)
    np.testing.assert_allclose(problem.matrix @ block, expected, atol=tolerance * np.abs(expected).max())


def test_products_are_the_same_bits_in_any_number_of_threads():
    n = 9000  # three slabs
    similar = similarities(2, n)
    block = np.random.default_rng(1).normal(size=(n, 4))
    products = []
    for threads in (1, 2):
        with Workers(threads) as workers:
            problem = fuse_similarities(similar, 0.25, weights(2), n, workers=workers).problem
            products.append(problem.matrix @ block)
    np.testing.assert_array_equal(*products)


def test_graphs_are_fused_as_sparse_matrices_and_others_in_tiles():
    def matrix_of(similar):
        kernels = {name: NeighborGraph() for name in similar}
        grams = Grams(similar, kernels, N, np.float64, Workers(1))
        return type(fuse(grams, dict.fromkeys(similar, 1.0), 0.5).problem.matrix)

    assert matrix_of(similarities(8)) is PlusLowRank
    assert matrix_of(similarities(9)) is SymmetricTiles
    assert matrix_of({**similarities(1), "dense": RBF(1.0).against(np.zeros((N, 1)))}) is SymmetricTiles


def test_scores_are_computed_from_the_similarities():
    fused = fuse_similarities(similarities(2), 0.5, weights(2))
    assert fused.scores(np.ones((N, 1)), weights(2)) is None


def test_slabs_hold_every_row_once():
    for n in (1, 4096, 4097, 1_000_000):
        slabs = row_slabs(n)
        assert [slab.start for slab in slabs] == [0, *(slab.stop for slab in slabs[:-1])]
        assert slabs[-1].stop == n
        assert len(slabs) <= 64


def test_a_sparse_matrix_multiplies_vectors_and_blocks():
    matrix = sp.csr_array(np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]))
    symmetric = SymmetricSparse.of(matrix, Workers(1))
    np.testing.assert_array_equal(symmetric @ np.array([1.0, 2.0, 3.0]), [5, 0, 10])
    np.testing.assert_array_equal(symmetric @ np.eye(3), matrix.toarray())
    np.testing.assert_array_equal(symmetric.diagonal(), [2, 0, 3])
    np.testing.assert_array_equal(symmetric.to_dense(), matrix.toarray())
