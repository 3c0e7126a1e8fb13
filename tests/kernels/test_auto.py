"""The kernel that follows from a view: its table, sparse views, saved models, and new rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from coview import AutoKernel, FixedSize, FuzzyGraph, TMvKSCR, load, save
from tests.conftest import make_blobs

SEUCLIDEAN, COSINE = FuzzyGraph(metric="seuclidean"), FuzzyGraph(metric="cosine")


def normal(n, width):
    return np.random.default_rng(0).normal(size=(n, width))


def counts(n, width, mean):
    return np.random.default_rng(0).poisson(mean, size=(n, width)).astype(float)


def in_other_units(x, *units):
    return x * np.r_[units, np.ones(x.shape[1] - len(units))]


@pytest.mark.parametrize(
    ("view", "kernel"),
    [
        pytest.param(normal(50, 1), SEUCLIDEAN, id="one column"),
        pytest.param(normal(50, 8), SEUCLIDEAN, id="8 columns"),
        pytest.param(counts(50, 8, 0.2), SEUCLIDEAN, id="8 columns of counts"),
        pytest.param(sp.csr_array(counts(50, 8, 0.2)), SEUCLIDEAN, id="8 sparse columns"),
        pytest.param(in_other_units(normal(50, 20), 1e3), SEUCLIDEAN, id="one column in another unit"),
        pytest.param(in_other_units(normal(50, 20), 1e3, 1e4), SEUCLIDEAN, id="two columns in other units"),
        pytest.param(in_other_units(normal(50, 20), 100, 100, 100), COSINE, id="three large columns"),
        pytest.param(normal(50, 9), COSINE, id="9 columns"),
        pytest.param(normal(50, 9).astype(np.float32), COSINE, id="float32"),
        pytest.param(counts(50, 20, 5.0), COSINE, id="counts"),
        pytest.param(in_other_units(counts(50, 20, 0.2), 1e3), COSINE, id="mostly zero counts"),
        pytest.param((counts(50, 20, 0.7) > 0).astype(float), COSINE, id="binary"),
        pytest.param(sp.csr_array(counts(50, 20, 0.2)), COSINE, id="sparse"),
        pytest.param(sp.csr_array(in_other_units(normal(50, 20), 1e3)), COSINE, id="sparse, another unit"),
    ],
)
def test_the_metric_follows_from_the_view(view, kernel):
    assert AutoKernel().resolve(view) == kernel
    np.testing.assert_array_equal(AutoKernel()(view), kernel(view))


def test_auto_is_the_default_and_a_name():
    views, _ = make_blobs(60, widths=(4, 12))
    expected = {"a": SEUCLIDEAN, "b": COSINE}
    assert TMvKSCR(3).fit(views).kernels_ == expected
    assert TMvKSCR(3, kernel=AutoKernel()).fit(views).kernels_ == expected
    assert TMvKSCR(3, kernel={"a": "auto", "b": "fuzzy"}).fit(views).kernels_ == {"a": SEUCLIDEAN, "b": FuzzyGraph()}


def test_kernels_do_not_depend_on_the_seed():
    views, _ = make_blobs(3000, widths=(4, 12))  # more rows than the profile of a view reads
    first, second = (TMvKSCR(3, random_state=seed).fit(views) for seed in (0, 1))
    assert first.kernels_ == second.kernels_
    np.testing.assert_array_equal(np.abs(first.scores_), np.abs(second.scores_))


def test_saved_models_keep_the_chosen_kernels(tmp_path):
    views, truth = make_blobs(120, widths=(4, 12))
    views["counts"] = sp.csr_array(np.random.default_rng(0).poisson(1 + 9 * np.eye(20)[truth]).astype(float))
    model = TMvKSCR(3, random_state=0).fit(views)
    same_model = load(save(model, tmp_path / "model.safetensors"))
    assert same_model.kernel == "auto"
    assert same_model.kernels_ == model.kernels_ == {"a": SEUCLIDEAN, "b": COSINE, "counts": COSINE}
    np.testing.assert_array_equal(same_model.transform(views), model.transform(views))
    np.testing.assert_array_equal(same_model.predict(views), model.labels_)


def test_new_rows_are_compared_by_the_kernel_and_statistics_of_the_training_rows():
    rows = in_other_units(normal(60, 12), 1e3)
    model = TMvKSCR(3, random_state=0).fit([rows[:50]])
    new = in_other_units(rows[50:], 1e-3)  # columns of equal size, for which another metric would be chosen
    assert AutoKernel().resolve(rows[:50]) == SEUCLIDEAN
    assert AutoKernel().resolve(new) == COSINE
    explicit = TMvKSCR(3, kernel=SEUCLIDEAN, random_state=0).fit([rows[:50]])
    np.testing.assert_array_equal(model.transform([new]), explicit.transform([new]))
    alone = np.vstack([model.transform([new[i : i + 1]]) for i in range(10)])
    np.testing.assert_array_equal(alone, model.transform([new]))


def test_fixed_size_models_choose_by_the_training_rows():
    views, truth = make_blobs(300, widths=(4, 12))
    model = FixedSize(TMvKSCR(3, random_state=0), n_train=90, random_state=0).fit(views)
    assert model.kernels_ == {"a": SEUCLIDEAN, "b": COSINE}
    assert adjusted_rand_score(truth, model.labels_) == 1


@pytest.mark.parametrize("width", [3, 12])
@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "csr"])
def test_a_constant_view_is_uninformative(make, width):
    views, truth = make_blobs(200, spread=9.0)
    for rho in (1.0, 0.5):
        model = TMvKSCR(3, rho=rho, random_state=0).fit({**views, "constant": make(np.full((200, width), 3.0))})
        assert adjusted_rand_score(truth, model.labels_) == 1
        assert set(model.view_labels_["constant"]) == {0}
        rows = {**views, "constant": make(np.random.default_rng(0).normal(size=(200, width)))}
        assert (model.transform(rows, per_view=True)["constant"] == 0).all()  # also for rows that differ
    gram = AutoKernel()(make(np.full((5, width), 3.0)))
    np.testing.assert_array_equal(gram, np.eye(5)[[0] * 5])  # all rows are treated as the first


def test_multiples_of_one_row_are_compared_by_their_length():
    truth = np.repeat([0, 1, 2], 30)
    lengths = 1 + 10 * truth + np.random.default_rng(0).random(90)
    rows = np.outer(lengths, np.arange(1.0, 13))
    model = TMvKSCR(3, random_state=0).fit([rows])
    assert model.kernels_["view0"] == SEUCLIDEAN
    assert adjusted_rand_score(truth, model.labels_) == 1
