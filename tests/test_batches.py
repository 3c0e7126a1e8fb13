"""A row gets the same label alone and in any batch, also on exact ties of symmetric data."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from coview import (
    KSC,
    RBF,
    Codebook,
    Cosine,
    Coview,
    Directions,
    FuzzyGraph,
    Linear,
    NeighborGraph,
    NormalizedPolynomial,
    Polynomial,
    TMvKSCR,
    save,
)

ASSIGNER = pytest.mark.parametrize("assigner", [Codebook(), Directions(n_init=2)])
DTYPE = pytest.mark.parametrize("dtype", ["float32", "float64"])
KERNEL = pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        Cosine(),
        Linear(),
        Polynomial(),
        NormalizedPolynomial(),
        FuzzyGraph(8),
        FuzzyGraph(8, "cosine"),
        NeighborGraph(metric="seuclidean"),
    ],
    ids=repr,
)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def assert_same_in_any_batch(model, views):
    n = len(views[0]) if not sp.issparse(views[0]) else views[0].shape[0]
    whole = model.predict(views)
    single = np.concatenate([model.predict([x[[i]] for x in views]) for i in range(n)])
    pairs = np.concatenate([model.predict([x[i : i + 2] for x in views]) for i in range(0, n, 2)])
    np.testing.assert_array_equal(single, whole)
    np.testing.assert_array_equal(pairs, whole)
    membership = model.predict_proba(views)
    np.testing.assert_array_equal(membership.argmax(axis=1), whole)
    single = np.concatenate([model.predict_proba([x[[i]] for x in views]) for i in range(n)])
    np.testing.assert_array_equal(single.argmax(axis=1), whole)
    np.testing.assert_allclose(single, membership, atol=1e-4)  # of float32; one unit of the last decimal is 1e-6


def mirrored(rng, n=20, shift=2.0):
    """Return rows and their mirror images: on the mirror axis, the two sides are tied."""
    half = np.abs(rng.normal(size=(n, 2))) + np.array([shift, 0])
    return np.vstack([half, half[:, ::-1]])


@ASSIGNER
@DTYPE
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:the views .* have the same values")
def test_views_that_contradict_each_other(assigner, dtype, seed):
    x = np.random.default_rng(seed).normal(size=(10, 1))
    x = np.vstack([x, -x])
    model = TMvKSCR(2, kernel=RBF(1.0), assigner=assigner, dtype=dtype, random_state=0).fit([x, x])
    new = np.linspace(0.05, 3, 60)[:, None]
    assert_same_in_any_batch(model, [new, -new])


@ASSIGNER
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(), NormalizedPolynomial(), Cosine(), RBF()], ids=repr)
@pytest.mark.parametrize("length", [1.0, 1000.0])
@pytest.mark.parametrize("n_clusters", [2, 3])
def test_new_rows_on_the_mirror_axis_of_symmetric_data(assigner, kernel, length, n_clusters):
    rng = np.random.default_rng(0)
    model = KSC(n_clusters, kernel=kernel, assigner=assigner, random_state=0).fit(mirrored(rng))
    p = np.abs(rng.normal(size=40)) * length
    assert_same_in_any_batch(model, [np.column_stack([p, p])])


@ASSIGNER
@pytest.mark.parametrize("distance", [30.0, 100.0, 650.0, 1e5])
@pytest.mark.parametrize("n_clusters", [2, 3, 4])
@pytest.mark.parametrize("sparse", [False, True])
def test_clusters_many_bandwidths_from_the_mean(assigner, distance, n_clusters, sparse):
    rng = np.random.default_rng(0)
    half = mirrored(rng, n=10, shift=1.0)
    x = np.vstack([half + distance, half - distance])
    p = rng.normal(size=60) + rng.choice([-distance, distance], size=60)
    new = np.column_stack([p, p])
    if sparse:
        x, new = sp.csr_array(x), sp.csr_array(new)
    model = KSC(n_clusters, kernel=RBF(1.0), assigner=assigner, random_state=0).fit(x)
    assert_same_in_any_batch(model, [new])


@DTYPE
@pytest.mark.parametrize("batch_size", [1, 7, "auto"])
def test_labels_do_not_depend_on_batch_size_and_number_of_threads(dtype, batch_size):
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(3, d))[np.arange(900) % 3] + rng.normal(size=(900, d)) for d in (4, 6)]
    train = [x[:800] for x in views]
    expected = TMvKSCR(3, kernel=RBF(), rho=0.5, dtype=dtype, n_jobs=1, random_state=0).fit(train)
    for n_jobs in (1, 2, 3):
        model = TMvKSCR(
            3, kernel=RBF(), rho=0.5, dtype=dtype, n_jobs=n_jobs, batch_size=batch_size, random_state=0
        ).fit(train)
        np.testing.assert_array_equal(model.eigenvalues_, expected.eigenvalues_)
        np.testing.assert_array_equal(model.scores_, expected.scores_)
        np.testing.assert_array_equal(model.predict(views), expected.predict(views))


def test_rows_are_read_from_files_block_by_block(tmp_path):
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(500, d)).astype(np.float32) for d in (4, 6)]
    model = TMvKSCR(3, kernel=RBF(), rho=0.5, batch_size=64, random_state=0).fit(views)
    for i, x in enumerate(views):
        np.save(tmp_path / f"{i}.npy", x)
    mapped = [np.load(tmp_path / f"{i}.npy", mmap_mode="r") for i in range(2)]
    np.testing.assert_array_equal(model.predict(mapped), model.labels_)


@KERNEL
@DTYPE
@pytest.mark.parametrize("form", [np.asfortranarray, pd.DataFrame])
def test_scores_of_training_rows_do_not_depend_on_the_batch_and_the_order_in_memory(kernel, dtype, form):
    rows = np.random.default_rng(0).normal(size=(80, 20)) + 1
    table = form(dict(enumerate(rows.T))) if form is pd.DataFrame else form(rows)
    model = KSC(3, kernel=kernel, dtype=dtype, random_state=0).fit(table)
    expected = model.score_samples(np.ascontiguousarray(rows))
    np.testing.assert_array_equal(model.score_samples(table), expected)
    single = np.concatenate([model.score_samples(table[i : i + 1]) for i in range(80)])
    np.testing.assert_array_equal(single, expected)


@KERNEL
@pytest.mark.parametrize("forms", [(sp.csr_array, np.asarray), (np.asarray, sp.csr_array)], ids=["sparse", "dense"])
@pytest.mark.parametrize("filled", [0.1, 0.4])
def test_scores_of_training_rows_are_the_same_dense_and_sparse(kernel, forms, filled):
    fitted, scored = forms
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(80, 20)) * (rng.uniform(size=(80, 20)) < filled)
    rows[:, 0] = 0.5  # a row of zeros has no similarity to others in some kernels
    model = KSC(3, kernel=kernel, random_state=0).fit(fitted(rows))
    np.testing.assert_array_equal(model.score_samples(scored(rows)), model.score_samples(fitted(rows)))


@KERNEL
@DTYPE
def test_a_sparse_table_with_many_entries_has_the_scores_of_the_dense_table(kernel, dtype):
    rng = np.random.default_rng(0)
    rows = rng.gamma(2.0, size=(150, 30)) * (rng.uniform(size=(150, 30)) < 0.48)
    rows[:, :10] *= 1 + 3 * (np.arange(150) % 3 == np.arange(10)[:, None] % 3).T
    new = rng.gamma(2.0, size=(40, 30)) * (rng.uniform(size=(40, 30)) < np.linspace(0, 1, 40)[:, None])
    new[:, 0] = 0.5
    dense, sparse = (
        KSC(3, kernel=kernel, dtype=dtype, random_state=0).fit(form(rows)) for form in (np.array, sp.csr_array)
    )
    np.testing.assert_array_equal(sparse.scores_, dense.scores_)
    for form in (np.array, sp.csr_array):
        np.testing.assert_array_equal(sparse.transform(form(new)), dense.transform(new))
        single = [sparse.predict(form(new[i : i + 1])) for i in range(40)]  # of a batch of any density
        np.testing.assert_array_equal(np.concatenate(single), dense.predict(new))


@KERNEL
def test_a_sparse_table_with_few_entries_stays_sparse(kernel, tmp_path):
    rng = np.random.default_rng(0)
    rows = (rng.uniform(size=(100, 500)) < 0.02) * 1.0
    rows[:, 0] = 0.5
    dense, sparse = (
        save(KSC(3, kernel=kernel, random_state=0).fit(form(rows)), tmp_path / f"{form.__name__}.safetensors")
        for form in (np.array, sp.csr_array)
    )
    assert sparse.stat().st_size < dense.stat().st_size / 3


@pytest.mark.parametrize("n_clusters", [2, 3, "auto"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coview_labels_rows_on_the_mirror_axis_of_symmetric_data(n_clusters, dtype):
    rng = np.random.default_rng(0)
    model = Coview(n_clusters, random_state=0).fit([mirrored(rng).astype(dtype)])
    p = np.abs(rng.normal(size=40)) * 3
    new = [np.column_stack([p, p]).astype(dtype)]
    assert_same_in_any_batch(model, new)
    np.testing.assert_array_equal(model.score_samples([new[0][7:8]])[0], model.score_samples(new)[7])


@pytest.mark.parametrize("form", [np.asfortranarray, pd.DataFrame, "memory-mapped"])
def test_results_of_coview_do_not_depend_on_the_order_in_memory(form, tmp_path):
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(100, d)) for d in (4, 12)]
    if form == "memory-mapped":
        for place, x in enumerate(views):
            np.save(tmp_path / f"{place}.npy", x)
        tables = [np.load(tmp_path / f"{place}.npy", mmap_mode="r") for place in range(2)]
    else:
        tables = [form(x) for x in views]
    expected, model = (Coview(3, random_state=0).fit(each) for each in (views, tables))
    for each in (views, tables):
        np.testing.assert_array_equal(model.predict_proba(each), expected.predict_proba(views))
        np.testing.assert_array_equal(model.score_samples(each), expected.score_samples(views))
    np.testing.assert_array_equal(model.scores_, expected.scores_)
