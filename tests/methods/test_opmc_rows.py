import numpy as np
import pytest
import scipy.sparse as sp

from coview.data import rows as row_operations
from coview.data.rows import row_blocks
from coview.methods.opmc_rows import ColumnScaling, learn_scaling

NORMALIZE = pytest.mark.parametrize("normalize", ["feature", "sample", None])


def counts(n=30, width=7, seed=0):
    """Small counts, mostly zero, with an empty row, a constant row, an empty column and a constant column."""
    x = np.random.default_rng(seed).poisson(0.7, size=(n, width)).astype(np.float64)
    x[3], x[4] = 0.0, 2.0
    x[:, 1], x[:, 2] = 0.0, 5.0
    return x


def standardised(x, normalize):
    """The definition, one number at a time."""
    if normalize == "sample":
        return standardised(x.T, "feature").T
    z = np.zeros(x.shape)
    for j in range(x.shape[1]):
        if len(set(x[:, j])) > 1:
            z[:, j] = (x[:, j] - x[:, j].mean()) / (x[:, j].std(ddof=1) if normalize == "feature" else 1.0)
    return z


def members_of(labels, n_clusters):
    return sp.csc_array(np.eye(n_clusters)[labels].T)


@NORMALIZE
@pytest.mark.parametrize("sparse", [False, True])
def test_every_operation_is_that_of_the_standardised_matrix(normalize, sparse):
    x = counts()
    z = standardised(x, normalize)
    given = sp.csr_array(x) if sparse else x
    rows = learn_scaling(given, normalize)(given)
    assert sp.issparse(rows.matrix) == sparse
    others, labels = np.random.default_rng(1).normal(size=(4, 7)), np.arange(30) % 3
    assert rows.n_rows == 30
    np.testing.assert_allclose(rows.take(np.arange(30)), z, atol=1e-14)
    np.testing.assert_allclose(rows.take(np.array([9, 2])), z[[9, 2]], atol=1e-14)
    np.testing.assert_allclose(rows.squared_norms, (z**2).sum(axis=1), atol=1e-13)
    np.testing.assert_allclose(rows.products(slice(5, 12), others), z[5:12] @ others.T, atol=1e-13)
    sums = np.array([z[labels == j].sum(axis=0) for j in range(3)])
    np.testing.assert_allclose(rows.sums(members_of(labels, 3)), sums, atol=1e-13)


@NORMALIZE
@pytest.mark.parametrize("sparse", [False, True])
def test_new_rows_are_standardised_as_they_were_in_training(normalize, sparse):
    train, new = counts(), counts(seed=1) + 1
    scaling = learn_scaling(sp.csr_array(train) if sparse else train, normalize)
    whole = scaling(sp.csr_array(new) if sparse else new).take(np.arange(30))
    for i in range(30):
        row = sp.csr_array(new[[i]]) if sparse else new[[i]]
        np.testing.assert_array_equal(scaling(row).take(np.array([0]))[0], whole[i])
    if normalize == "feature":
        informative = train.std(axis=0) > 0
        expected = (new[:, informative] - train[:, informative].mean(axis=0)) / train[:, informative].std(
            axis=0, ddof=1
        )
        np.testing.assert_allclose(whole[:, informative], expected, atol=1e-13)
        assert not whole[:, ~informative].any()  # a column that is constant in training is ignored


def test_a_sample_of_one_column_has_no_spread():
    x = np.array([[1.0], [5.0], [0.0]])
    for given in (x, sp.csr_array(x)):
        assert not learn_scaling(given, "sample")(given).take(np.arange(3)).any()


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e150])
def test_a_constant_column_is_constant_for_any_rounding_of_its_mean(value):
    x = np.column_stack([np.full(1001, value), np.full(1001, value)])
    x[::2, 1] *= 1 + np.finfo(float).eps  # a rounding error
    for given in (x, sp.csr_array(x)):
        assert not learn_scaling(given, "feature")(given).take(np.arange(1001)).any()
        assert not learn_scaling(given, None)(given).take(np.arange(1001)).any()
        assert not learn_scaling(given, "sample")(given).take(np.arange(1001)).any()


@pytest.mark.parametrize("normalize", ["feature", "sample"])
@pytest.mark.parametrize("factor", [1e-290, 1e-150, 1e150, 1e290])
@pytest.mark.parametrize("sparse", [False, True])
def test_extreme_units_do_not_matter(normalize, factor, sparse):
    x = counts()
    scaled = sp.csr_array(x * factor) if sparse else x * factor
    ours = learn_scaling(scaled, normalize)(scaled).take(np.arange(30))
    np.testing.assert_allclose(ours, standardised(x, normalize), atol=1e-13)


@pytest.mark.parametrize("normalize", ["feature", None])
def test_centroids_are_restored_in_the_units_of_the_view(normalize):
    x = counts()
    scaling = learn_scaling(x, normalize)
    np.testing.assert_allclose(scaling.restore(scaling(x).matrix), x, atol=1e-14)


def test_standardised_samples_are_not_restored():
    z = learn_scaling(counts(), "sample")(counts()).matrix
    assert learn_scaling(counts(), "sample").restore(z) is z


@NORMALIZE
def test_views_are_copied_in_float64_and_not_changed(normalize):
    x = np.asfortranarray(counts().astype(np.float32))
    sparse = sp.csr_array(x)
    for given in (x, sparse):
        before = given.copy()
        rows = learn_scaling(given, normalize)(given)
        assert rows.take(np.arange(3)).dtype == np.float64
        np.testing.assert_allclose(rows.take(np.arange(30)), standardised(counts(), normalize), atol=1e-6)
        assert (given != before).sum() == 0
    assert learn_scaling(x, normalize)(x).matrix.flags.c_contiguous


@NORMALIZE
def test_a_wide_sparse_view_is_never_made_dense(normalize):
    rng = np.random.default_rng(0)
    x = sp.random_array((5000, 1_000_000), density=1e-6, format="csr", rng=rng)  # 40 GB when dense
    rows = learn_scaling(x, normalize)(x)
    assert rows.squared_norms.shape == (5000,)
    sums = rows.sums(members_of(np.arange(5000) % 2, 2))
    assert rows.products(slice(None), sums).shape == (5000, 2)


def test_statistics_do_not_depend_on_the_blocks(monkeypatch):
    x = np.random.default_rng(0).normal(3.0, 2.0, size=(50, 4))
    whole = learn_scaling(x, "feature")
    monkeypatch.setattr(row_operations, "_BLOCK_NUMBERS", 12)
    blocks = learn_scaling(x, "feature")
    assert isinstance(whole, ColumnScaling)
    np.testing.assert_allclose(blocks.centre, whole.centre, rtol=1e-14)
    np.testing.assert_allclose(blocks.spread, whole.spread, rtol=1e-14)


def test_row_blocks_contain_every_row_once_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(row_operations, "_BLOCK_NUMBERS", 10)
    assert list(row_blocks(7, 4)) == [slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 7)]
    assert list(row_blocks(2, 100)) == [slice(0, 1), slice(1, 2)]
