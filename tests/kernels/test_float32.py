"""Bounds of the error of float32 similarities."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from coview import RBF, Cosine, FuzzyGraph, Linear, NormalizedPolynomial, Polynomial
from coview.kernels import in_float32

KERNELS = [RBF(), RBF(0.05), RBF(1e4), Cosine(), NormalizedPolynomial(), NormalizedPolynomial(degree=5, offset=0.0)]


def excess(kernel, train, new):
    """Return by how much errors exceed their bounds at most (negative if they do not), and the largest error."""
    similarity = kernel.resolve(train).against(train)
    narrow = in_float32(similarity)
    with np.errstate(over="ignore", invalid="ignore"):
        (block, rows), exact = narrow(new), similarity(new)
    bounded = np.isfinite(rows)
    block, rows, exact = block[bounded], rows[bounded, None], exact[bounded]
    bounds = (rows + narrow.column_errors) * np.abs(block) + narrow.absolute
    errors = np.abs(block - exact[:, narrow.kept])
    assert (np.abs(exact[:, ~narrow.kept]) <= narrow.absolute).all()
    return (errors - bounds).max(initial=-1.0), errors.max(initial=0.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("width", [1, 3, 200, 3000])
def test_errors_are_within_their_bound(kernel, width):
    rng = np.random.default_rng(0)
    largest = []
    for offset, spread in [(0.0, 1.0), (3.0, 0.1), (1e6, 1.0), (0.0, 1e-9)]:
        train, new = (offset + spread * rng.normal(size=(n, width)) for n in (40, 60))
        train[:3] += 30 * spread  # far from the others
        beyond, error = excess(kernel, train, np.vstack([new, train, 1e3 * new[:5]]))
        assert beyond <= 0
        largest.append(error)
    assert max(largest) > 0 or width == 1  # otherwise there is nothing to bound


@given(
    st.sampled_from(KERNELS),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
    st.floats(-8, 8),
    st.floats(-8, 8),
    st.floats(0, 3),
)
def test_errors_of_any_rows_are_within_their_bound(kernel, width, seed, scale, offset, tail):
    rng = np.random.default_rng(seed)
    rows = 10.0**scale * (rng.normal(size=(30, width)) * np.exp(tail * rng.normal(size=(30, 1))) + 10.0**offset)
    assert excess(kernel, rows[:15], rows)[0] <= 0


def test_rows_far_from_the_training_rows_have_no_bound():
    train = np.random.default_rng(0).normal(size=(20, 2))
    narrow = in_float32(RBF(1.0).against(train))
    assert np.isfinite(narrow(train)[1]).all()
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isinf(narrow(1e6 * train)[1]).all()


def test_distant_training_rows_are_left_out():
    train = np.random.default_rng(0).normal(size=(20, 2))
    train[4] += 2000
    narrow = in_float32(RBF(1.0).against(train))
    assert np.flatnonzero(~narrow.kept).tolist() == [4]
    assert narrow(train[:3])[0].shape == (3, 19)


def test_there_is_no_bound_for_unbounded_kernels_sparse_rows_and_float32():
    x = np.random.default_rng(0).uniform(size=(20, 3))
    for similarity in (
        Linear().against(x),
        Polynomial().against(x),
        FuzzyGraph(5).against(x),
        RBF(1.0).against(sp.csr_array(x)),
        RBF(1.0).against(x, np.float32),
        NormalizedPolynomial(degree=10**6).against(x),
    ):
        assert in_float32(similarity) is None


def test_wide_rows_at_the_centre_have_no_bound_if_training_rows_are_left_out():
    train = np.random.default_rng(0).normal(size=(12, 60_000))
    train[0] *= 8
    similarity = RBF().resolve(train).against(train)
    narrow = in_float32(similarity)
    assert not narrow.kept.all()
    assert np.isinf(narrow(similarity.centre[None])[1]).all()
