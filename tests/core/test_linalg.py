import numpy as np
import pytest
import scipy.sparse as sp

from coview.core.linalg import coordinates


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_wide_views_keep_their_inner_products_in_as_many_columns_as_samples(kind):
    x = np.random.default_rng(0).normal(size=(9, 40)) * (np.random.default_rng(1).random((9, 40)) < 0.3)
    along = coordinates(kind(x))
    assert along.shape == (9, 9)
    np.testing.assert_allclose(along @ along.T, x @ x.T, atol=1e-13)


def test_no_more_columns_than_the_samples_span():
    x = np.random.default_rng(0).normal(size=(3, 40))[[0, 1, 2, 0, 1, 2, 0]]
    along = coordinates(x)
    assert along.shape == (7, 3)
    np.testing.assert_allclose(along @ along.T, x @ x.T, atol=1e-12)
    assert not coordinates(np.zeros((4, 6))).any()
    assert coordinates(np.zeros((4, 6))).shape == (4, 1)


def test_narrow_views_are_returned_unchanged():
    x = np.random.default_rng(0).normal(size=(9, 9))
    assert coordinates(x) is x
    np.testing.assert_array_equal(coordinates(sp.csr_array(x)), x)
