"""How close rows are to the training rows, which novelty depends on."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from coview import RBF, Cosine, FuzzyGraph, Linear, NeighborGraph, NormalizedPolynomial, Polynomial, Precomputed
from tests import naive

RNG = np.random.default_rng
GRAPHS = [FuzzyGraph(5), NeighborGraph(6, 3), NeighborGraph(3, 7)]
PRODUCTS = [RBF(0.5), RBF(3.0), Linear(), Polynomial(), NormalizedPolynomial(), Cosine()]


def similarity(kernel, x):
    return kernel.resolve(x).against(x)


def rows_with_duplicates(seed):
    x = RNG(seed).normal(size=(40, 3))
    x[[3, 9, 20]] = x[0]
    return x, RNG(seed + 1).normal(size=(30, 3))


@pytest.mark.parametrize("kernel", GRAPHS, ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_graphs_compare_distances_with_those_of_the_neighbours(kernel, form):
    x, new = rows_with_duplicates(0)
    similar = similarity(kernel, form(x))
    own = cdist(x, x)
    np.fill_diagonal(own, np.inf)
    radii = np.sort(own, axis=1)[:, kernel.n_neighbors - 1]
    np.testing.assert_allclose(similar.radii, radii, rtol=1e-9)
    expected = naive.graph_closeness(own, radii, kernel.n_neighbors)
    np.testing.assert_allclose(similar.training_closeness(np.arange(40)), expected, rtol=1e-9)
    np.testing.assert_allclose(similar.closeness(form(x)), expected, rtol=1e-9)
    expected = naive.graph_closeness(cdist(new, x), radii, kernel.n_neighbors)
    np.testing.assert_allclose(similar.closeness(form(new)), expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", PRODUCTS, ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_products_have_the_mean_of_the_largest_similarities(kernel, form):
    x, new = rows_with_duplicates(1)
    full = kernel(np.vstack([x, new]))
    full /= np.sqrt(np.outer(full.diagonal(), full.diagonal()))
    own, other = full[:40, :40].copy(), full[40:, :40]
    np.fill_diagonal(own, -np.inf)
    expected, of_new = (np.sort(block, axis=1)[:, -10:].mean(axis=1) for block in (own, other))
    similar = similarity(kernel, form(x))
    np.testing.assert_allclose(similar.training_closeness(np.arange(40)), expected, atol=1e-12)
    np.testing.assert_allclose(similar.closeness(form(x)), expected, atol=1e-12)
    np.testing.assert_allclose(similar.closeness(form(new)), of_new, atol=1e-12)


def test_training_rows_many_bandwidths_from_the_mean_are_compared_by_differences():
    x = np.vstack([RNG(0).normal(size=(20, 2)), RNG(1).normal(size=(20, 2)) + 1e5])
    similar = similarity(RBF(1.0), x)
    np.testing.assert_allclose(similar.training_closeness(np.arange(40)), similar.closeness(x), atol=1e-9)
    assert similar.training_closeness(np.arange(20, 40)).min() > 1e-3


def test_precomputed_similarities_leave_out_the_diagonal_of_the_training_rows():
    x, new = rows_with_duplicates(2)
    gram = RBF(1.0)(x)
    similar = Precomputed().against(gram)
    rows = np.array([0, 5, 39])
    expected = similarity(RBF(1.0), x).training_closeness(rows)
    np.testing.assert_allclose(similar.training_closeness(rows), expected, atol=1e-12)
    expected = similarity(RBF(1.0), x).closeness(new)
    np.testing.assert_allclose(similar.closeness(RBF(1.0)(new, x)), expected, atol=1e-12)


@pytest.mark.parametrize("kernel", [*GRAPHS, RBF(1.0)], ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_are_enough(kernel, n):
    x = np.arange(float(n))[:, None]
    closeness = similarity(kernel, x).closeness(np.array([[0.0], [0.4], [1e8]]))
    assert np.isfinite(closeness).all()
    assert closeness[2] < 1e-6


@pytest.mark.parametrize("kernel", GRAPHS, ids=repr)
def test_a_row_beyond_all_distances_is_not_close(kernel):
    x = RNG(0).normal(size=(30, 12))
    closeness = similarity(kernel, x).closeness(np.vstack([x[:1] + 1e12, x[:1] + 3.0, x[:1]]))
    assert closeness[0] == 0 < closeness[1] < closeness[2]
