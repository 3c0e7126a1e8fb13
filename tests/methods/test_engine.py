"""The engine behind the kernel methods: precision, order, memory, progress."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coview import (
    KSC,
    OPLFMVC,
    RBF,
    CoReg,
    Cosine,
    InputError,
    Linear,
    NeighborGraph,
    NormalizedPolynomial,
    Polynomial,
    Precomputed,
    TMvKSCR,
)
from tests import naive
from tests.conftest import make_blobs

KERNELS = pytest.mark.parametrize(
    "kernel", [RBF(), RBF(1e-7), Linear(), Polynomial(), NormalizedPolynomial(), Cosine()], ids=repr
)


def test_clusters_that_do_not_touch_are_all_found():
    """Their eigenvalues are all equal, and a single start vector finds only one of them."""
    cluster = np.arange(1000) % 5
    x = np.column_stack([20.0 * cluster, np.zeros(1000)]) + np.random.default_rng(0).normal(size=(1000, 2))
    model = KSC(5, kernel=RBF(1.0), random_state=0).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, 1, atol=1e-6)
    assert adjusted_rand_score(cluster, model.labels_) == 1


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (KSC(3, kernel=NeighborGraph(5)), "; a larger n_neighbors may separate them"),
        (KSC(3, kernel="auto"), "; a larger n_neighbors may separate them"),
        (KSC(3, kernel=RBF(1e-5)), "; a larger sigma2 may separate them"),
        (KSC(3, kernel=NormalizedPolynomial(degree=10**6)), ""),
        (OPLFMVC(3, kernel=NeighborGraph(5), max_iter=1, tol=np.inf), "; a larger n_neighbors may separate them"),
        (CoReg(3, kernel=RBF(1e-5), max_iter=1, tol=np.inf), "; a larger sigma2 may separate them"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # CoReg and OPLFMVC are stopped early
def test_advice_on_nearly_equal_eigenvalues_names_a_parameter_of_the_kernel(model, advice):
    angles = np.linspace(0, 2 * np.pi, 4100, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    sentence = rf"eigenvalues are nearly equal to others \(.* after 60 passes\); kept the approximation{advice}$"
    with pytest.warns(ConvergenceWarning, match=sentence):
        model.fit({"a": circle})


@pytest.mark.parametrize("rho", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("widths", [(4, 6, 3), (3,) * 12])
def test_float32_gives_the_labels_of_float64(rho, widths):
    rng = np.random.default_rng(0)
    truth = np.arange(1100) % 4
    views = [rng.normal(size=(4, d))[truth] * 1.5 + rng.normal(size=(1100, d)) for d in widths]
    narrow, wide = (
        TMvKSCR(4, kernel=RBF(), rho=rho, dtype=d, random_state=0).fit(views) for d in ("float32", "float64")
    )
    np.testing.assert_allclose(narrow.eigenvalues_, wide.eigenvalues_, rtol=1e-5)
    assert adjusted_rand_score(narrow.labels_, wide.labels_) == 1
    np.testing.assert_array_equal(narrow.predict(views), narrow.labels_)


def test_huge_raw_values_are_centred_before_they_become_float32():
    views, truth = make_blobs(300)
    huge = [1e9 + 1e3 * x for x in views.values()]
    model = TMvKSCR(3, kernel=RBF(), rho=0.5, dtype="float32", random_state=0).fit(huge)
    assert adjusted_rand_score(truth, model.labels_) == 1


def test_auto_uses_float32_only_if_it_is_safe():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2100, 3))

    def precision(kernel, rows, assigner="directions"):
        model = KSC(2, kernel=kernel, assigner=assigner, random_state=0).fit(rows)
        return model.model_.predictor.score_maps["view0"].similarity.dtype

    assert precision(RBF(), x) == np.float32
    assert precision(RBF(), x[:2000]) == np.float64  # little to gain
    assert precision(Linear(), np.abs(x)) == np.float64  # no bound
    assert precision(RBF(1e5), x) == np.float64  # nearly constant
    assert precision(RBF(), x, assigner="codebook") == np.float64  # signs need all digits
    with pytest.raises(InputError, match="dtype='float16'"):
        KSC(2, dtype="float16").fit(x)


def test_scores_do_not_need_equal_weights():
    views, _ = make_blobs(800, spread=1.0)
    by_sum = TMvKSCR(3, kernel=RBF(), rho=0.5, kappa=[1, 2, 3], beta=[0.1, 0.2, 0.3], random_state=0).fit(views)
    by_rows = TMvKSCR(3, kernel=RBF(), rho=0.5, kappa=[1, 2, 3], beta=[0.1, 0.2, 0.3 + 1e-9], random_state=0).fit(views)
    np.testing.assert_allclose(by_sum.scores_, by_rows.scores_, atol=1e-8 * np.abs(by_sum.scores_).max())


def test_the_result_is_that_of_plain_numpy():
    views = list(make_blobs(900, spread=1.0)[0].values())
    sigma2 = [8.0, 12.0, 6.0]
    values, labels = naive.plain_fit(views, sigma2, 0.25, 3)
    model = TMvKSCR(3, rho=0.25, kernel=[RBF(s) for s in sigma2], random_state=0).fit(views)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-6)
    assert adjusted_rand_score(labels, model.labels_) == 1


@pytest.mark.parametrize("assigner", ["directions", "codebook"])
def test_the_order_of_views_does_not_matter(assigner):
    views, _ = make_blobs(700, spread=0.7)
    model = TMvKSCR(4, kernel=RBF(), rho=0.5, assigner=assigner, random_state=0).fit(views)
    turned = TMvKSCR(4, kernel=RBF(), rho=0.5, assigner=assigner, random_state=0).fit(dict(reversed(views.items())))
    assert turned.kernels_ == model.kernels_
    assert adjusted_rand_score(turned.labels_, model.labels_) == 1


@pytest.mark.parametrize(("assigner", "spread"), [("directions", 4.0), ("codebook", 0.7)])
def test_the_order_of_samples_does_not_matter(assigner, spread):
    views, _ = make_blobs(700, spread=spread)
    model = TMvKSCR(3, kernel=RBF(), rho=0.5, assigner=assigner, random_state=0).fit(views)
    order = np.random.default_rng(1).permutation(700)
    kernels = model.kernels_  # with their bandwidths, which are drawn from 500 samples otherwise
    shuffled = TMvKSCR(3, assigner=assigner, kernel=kernels, random_state=0).fit(
        {name: x[order] for name, x in views.items()}
    )
    assert adjusted_rand_score(shuffled.labels_, model.labels_[order]) == 1


def test_k_means_of_many_samples_starts_from_a_subset():
    views, truth = make_blobs(2500)
    first, second = (TMvKSCR(3, kernel=RBF(), rho=0.5, random_state=7).fit(views) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert adjusted_rand_score(truth, first.labels_) == 1


@KERNELS
@pytest.mark.parametrize("sparse", [False, True])
def test_changing_the_arrays_after_the_fit_does_not_change_the_model(kernel, sparse):
    x = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
    mine = sp.csr_array(x) if sparse else x.copy()
    model = KSC(2, kernel=kernel, random_state=0).fit(mine)
    before = model.transform(x)
    (mine.data if sparse else mine)[...] *= 3
    np.testing.assert_array_equal(model.transform(x), before)


def test_a_failed_fit_does_not_change_the_model():
    views, _ = make_blobs()
    model = TMvKSCR(3, kernel=RBF(), rho=0.5, random_state=0).fit(views)
    before = pickle.dumps(model)
    with pytest.raises(InputError):
        model.set_params(kernel="cosine").fit({"q": np.zeros((9, 2))})
    assert pickle.dumps(model.set_params(kernel=RBF())) == before


def test_parameters_set_after_the_fit_apply_to_the_next_one():
    views, _ = make_blobs(spread=1.0)
    model = TMvKSCR(4, kernel=RBF(), rho=0.5, random_state=0).fit(views)
    model.set_params(n_clusters=7, assigner="codebook", beta=[1, 0, 0])
    assert max(labels.max() for labels in model.view_labels_.values()) <= 3
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_single_views_of_precomputed_gram_matrices_have_labels():
    views, _ = make_blobs(spread=1.0)
    kernels = {name: RBF(5.0) for name in views}
    by_rows = TMvKSCR(3, kernel=kernels, random_state=0).fit(views)
    grams = {name: RBF(5.0)(x) for name, x in views.items()}
    precomputed = TMvKSCR(3, kernel=Precomputed(), random_state=0).fit(grams)
    np.testing.assert_array_equal(precomputed.labels_, by_rows.labels_)
    for name, labels in precomputed.view_labels_.items():
        np.testing.assert_array_equal(labels, by_rows.view_labels_[name])
    assert len(pickle.dumps(precomputed)) < 8 * 90 * 90  # no Gram matrix is stored


@pytest.mark.parametrize("scale", [1e152, 1e153, 1.5e153, 1e154])
def test_sums_that_overflow_are_refused_with_the_name_of_the_view(scale):
    x = np.abs(np.random.default_rng(0).normal(size=(200, 3)))
    for kernel, size in (("linear", scale), ("poly", np.sqrt(scale))):
        sizes = np.bincount(KSC(2, kernel=kernel, random_state=0).fit(x * 1e10).labels_)
        try:
            model = KSC(2, kernel=kernel, random_state=0).fit(x * size)
        except InputError as error:
            assert "view 'view0' has similarities too large" in str(error)
        else:
            assert np.bincount(model.labels_).tolist() == sizes.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kappa", [1e-46, 1e39, 1e200])
def test_labels_depend_only_on_the_ratios_of_weights(dtype, kappa):
    views, truth = make_blobs()
    extreme, plain = (
        TMvKSCR(3, kernel=RBF(), rho=1.0, kappa=k, dtype=dtype, random_state=0).fit(views) for k in (kappa, 1.0)
    )
    np.testing.assert_allclose(extreme.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-5)
    assert adjusted_rand_score(truth, extreme.labels_) == 1


@pytest.mark.filterwarnings("ignore:the views .* have the same values")
def test_a_graph_without_loops_is_a_valid_kernel():
    """Its diagonal is zero and it is indefinite; its algebraically largest eigenvalues still separate the clusters."""
    rng = np.random.default_rng(0)
    cluster = np.arange(60) % 2
    graph = np.triu(rng.random((60, 60)) < np.where(cluster[:, None] == cluster, 0.8, 0.05), 1).astype(float)
    graph += graph.T
    for views in ([graph], [graph, graph]):
        model = TMvKSCR(2, kernel="precomputed", rho=1.0, random_state=0).fit(views)
        expected = naive.tmvkscr(views, 1, [1.0] * len(views), 1.0)[0]
        np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-9)
        assert adjusted_rand_score(cluster, model.labels_) == 1


def test_small_eigenvalues_are_kept_in_float32():
    rng = np.random.default_rng(0)
    truth = np.arange(3000) % 3
    x = np.column_stack([np.where(truth == 0, 0, 100.0), (truth == 2) * 1.0]) + 0.05 * rng.normal(size=(3000, 2))
    for dtype in ("float32", "float64"):
        model = KSC(3, kernel=RBF(1000.0), dtype=dtype, random_state=0).fit(x)
        assert model.eigenvalues_[1] < 1e-3 * model.eigenvalues_[0]
        assert adjusted_rand_score(truth, model.labels_) == 1


def test_a_precomputed_gram_matrix_in_float32_gives_consistent_labels():
    rng = np.random.default_rng(0)
    half = np.abs(rng.normal(size=(300, 2))) + np.array([2.0, 0.0])
    middle = np.abs(rng.normal(size=(60, 1))) + 1
    gram = RBF(2.0)(np.vstack([half, half[:, ::-1], np.hstack([middle, middle])]))
    model = KSC(2, kernel="precomputed", dtype="float32", random_state=0).fit(gram)
    np.testing.assert_array_equal(model.predict(gram), model.labels_)


def test_new_rows_too_large_to_compare_are_refused():
    x = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
    model = KSC(2, kernel="poly", random_state=0).fit(x)
    with pytest.raises(InputError, match="view 'view0' has similarities too large"):
        model.predict(np.full((2, 3), 1e200))


def test_one_outlier_in_a_sparse_view_does_no_harm():
    rng = np.random.default_rng(0)
    cluster = np.arange(60) % 2
    x = sp.csr_array((rng.random((60, 4000)) < 0.01 + 0.05 * (np.arange(4000) % 2 == cluster[:, None])) * 1.0)
    outlier = sp.csr_array(([1e6], ([0], [7])), shape=(1, 4000))
    model = KSC(3, kernel=RBF(100.0), random_state=0).fit(sp.vstack([x, outlier]))
    dense = KSC(3, kernel=RBF(100.0), random_state=0).fit(sp.vstack([x, outlier]).toarray())
    np.testing.assert_allclose(model.eigenvalues_, dense.eigenvalues_, rtol=1e-9)
    np.testing.assert_array_equal(model.labels_, dense.labels_)


def test_a_fit_that_exceeds_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 2**20)
    x = np.random.default_rng(0).normal(size=(600, 2))
    with pytest.raises(MemoryError, match=r"fitting 600 samples in float64 needs about .* or set dtype='float32'"):
        KSC(2).fit(x)
    with pytest.raises(
        MemoryError,
        match=r"FixedSize\(KSC\(…\), n_train=5000\), or use kernel='auto'$",
    ):
        KSC(2, dtype="float32").fit(x)


def test_progress_is_reported_after_each_stage():
    reported = []
    views, _ = make_blobs()
    TMvKSCR(3, kernel=RBF(), rho=0.5, random_state=0, progress=lambda *step: reported.append(step)).fit(views)
    stages = ["similarities of a", "similarities of b", "similarities of c", "eigenvectors", "scores", "labels"]
    assert reported == [(stage, i, 6) for i, stage in enumerate(stages, start=1)]


@pytest.mark.parametrize("batch_size", [0, -3, 2.5, True, "many"])
def test_invalid_batch_sizes_are_refused(batch_size):
    with pytest.raises(InputError, match="batch_size"):
        KSC(2, batch_size=batch_size).fit(np.eye(5))


def test_one_view_needs_no_name_to_predict():
    views, _ = make_blobs()
    model = KSC(3, random_state=0).fit({"a": views["a"]})
    np.testing.assert_array_equal(model.predict(views["a"]), model.labels_)
    np.testing.assert_array_equal(model.predict(pd.DataFrame(views["a"])), model.labels_)


@pytest.mark.parametrize("first", [True, False])
def test_a_constant_view_is_uninformative(first):
    views, truth = make_blobs(200, spread=9.0)
    constant = np.full((200, 2), 3.0)
    both = [constant, views["a"]] if first else [views["a"], constant]
    with_it = TMvKSCR(3, kernel=RBF(), rho=1.0, random_state=0).fit(both)
    assert adjusted_rand_score(truth, with_it.labels_) == 1
    half = TMvKSCR(3, kernel=RBF(), rho=0.5, random_state=0).fit(both)
    assert adjusted_rand_score(with_it.labels_, half.labels_) == 1
    with pytest.warns(ConvergenceWarning, match="found 1 distinct clusters"):  # the product of all views is zero
        nothing = TMvKSCR(3, kernel=RBF(), rho=0.0, random_state=0).fit(both)
    assert nothing.eigenvalues_.tolist() == [0.0, 0.0]
    assert nothing.labels_.tolist() == [0] * 200
