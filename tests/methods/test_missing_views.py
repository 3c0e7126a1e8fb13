"""Samples that lack views: the result of the reference implementation, and what users can rely on."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import get_tags

from coview import (
    KSC,
    OPMC,
    RBF,
    Concat,
    FuzzyGraph,
    MvKSC,
    NeighborGraph,
    Preprocessed,
    TMvKSCR,
    Views,
    load,
    save,
    stack_views,
)
from coview.core.gram import embedded
from coview.errors import InputError
from tests import naive
from tests.conftest import make_blobs

WIDTHS = (5, 12, 9)


def with_missing(views, rate, seed=0):
    """Return the views with random rows of NaN; each sample has at least one view."""
    rng = np.random.default_rng(seed)
    n = len(next(iter(views.values())))
    lacks = rng.random((n, len(views))) < rate
    lacks[lacks.all(axis=1), rng.integers(len(views))] = False
    found = {name: x.astype(float) for name, x in views.items()}
    for mask, x in zip(lacks.T, found.values(), strict=True):
        x[mask] = np.nan
    return found


def present_rows(x):
    return ~np.isnan(x).all(axis=1)


def up_to_sign(found, expected):
    signs = np.sign((found * expected).sum(axis=0))
    return found * signs


@pytest.mark.parametrize("regularization", [0, 0.7])
@pytest.mark.parametrize("rho", [1.0, 0.6, 0.0])
@pytest.mark.parametrize("kernel", [RBF(40.0), NeighborGraph(8), FuzzyGraph(8)], ids=["rbf", "graph", "fuzzy"])
def test_the_result_is_that_of_the_reference_implementation(kernel, rho, regularization):
    views = with_missing(make_blobs(60, spread=2.0, widths=WIDTHS)[0], 0.3)
    kappa, beta = [1.0, 2.0, 0.5], [0.2, 0.5, 0.3]
    model = TMvKSCR(
        4, kernel=kernel, rho=rho, kappa=kappa, beta=beta, regularization=regularization, random_state=0
    ).fit(views)
    masks = [present_rows(x) for x in views.values()]
    grams = [kernel.against(x[mask])(x[mask]) for x, mask in zip(views.values(), masks, strict=True)]
    values, latent, scores = naive.incomplete_tmvkscr(grams, masks, 3, kappa, beta, rho, regularization)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(up_to_sign(model.latent_, latent), latent, atol=1e-10)
    np.testing.assert_allclose(up_to_sign(model.scores_, scores), scores, atol=1e-10)


@pytest.mark.parametrize("n", [60, 900])
def test_sparse_and_dense_fusion_have_the_same_result(n, monkeypatch):
    views = with_missing(make_blobs(n, spread=1.0, widths=WIDTHS)[0], 0.4)
    model = TMvKSCR(4, kernel=NeighborGraph(8), rho=0.6, random_state=0)
    sparse = model.fit(views)
    values, scores = sparse.eigenvalues_, sparse.scores_
    monkeypatch.setattr("coview.core.fuse._MOST_SPARSE_VIEWS", 1)
    dense = model.fit(views)
    np.testing.assert_allclose(dense.eigenvalues_, values, rtol=1e-10)
    np.testing.assert_allclose(up_to_sign(dense.scores_, scores), scores, atol=1e-10)


@pytest.mark.parametrize("kernel", ["auto", "rbf", "linear"])
def test_complete_views_are_not_changed_by_a_mask_of_all_samples(kernel):
    views, _ = make_blobs(80, spread=3.0, widths=WIDTHS)
    views = {name: np.abs(x) for name, x in views.items()}
    expected = TMvKSCR(3, kernel=kernel, random_state=0).fit(views)
    masked = Views(views, present={name: np.ones(80, dtype=bool) for name in views})
    found = TMvKSCR(3, kernel=kernel, random_state=0).fit(masked)
    np.testing.assert_array_equal(found.scores_, expected.scores_)
    np.testing.assert_array_equal(found.labels_, expected.labels_)


@pytest.mark.parametrize("rho", [1.0, 0.5])
@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_clear_clusters_are_found_with_half_of_the_views(kernel, rho):
    views, truth = make_blobs(150, spread=8.0, widths=WIDTHS)
    model = TMvKSCR(3, kernel=kernel, rho=rho, random_state=0).fit(with_missing(views, 0.5))
    assert adjusted_rand_score(truth, model.labels_) > 0.95


@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_training_samples_are_labelled_as_new_samples(kernel):
    views = with_missing(make_blobs(150, spread=2.0, widths=WIDTHS)[0], 0.4)
    model = TMvKSCR(3, kernel=kernel, random_state=0).fit(views)
    np.testing.assert_allclose(model.transform(views), model.scores_, atol=1e-10)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    for name, labels in model.predict(views, per_view=True).items():
        np.testing.assert_array_equal(labels, model.view_labels_[name])
        np.testing.assert_array_equal(labels == -1, np.isnan(views[name][:, 0]))


def test_each_row_has_the_same_result_alone_and_in_a_batch():
    views = with_missing(make_blobs(120, spread=2.0, widths=WIDTHS)[0], 0.4)
    model = TMvKSCR(3, kernel="rbf", random_state=0).fit(views)
    everything = model.transform(views)
    for i in range(0, 120, 7):
        alone = model.transform({name: x[i : i + 1] for name, x in views.items()})
        np.testing.assert_allclose(alone[0], everything[i], atol=1e-12)
    model.set_params(batch_size=11)
    np.testing.assert_allclose(model.transform(views), everything, atol=1e-12)


def test_masks_are_permuted_with_the_rows():
    views = with_missing(make_blobs(90, spread=2.0, widths=WIDTHS)[0], 0.3)
    order = np.random.default_rng(0).permutation(90)
    model = TMvKSCR(3, random_state=0)
    first, second = (model.fit(each).scores_ for each in (views, {name: x[order] for name, x in views.items()}))
    np.testing.assert_allclose(up_to_sign(second, first[order]), first[order], atol=1e-8)


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_new_samples_may_have_a_single_view(name):
    views, truth = make_blobs(150, spread=8.0, widths=WIDTHS)
    model = TMvKSCR(3, random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.predict({name: views[name]})) == 1
    lacking = {other: x if other == name else np.full_like(x, np.nan) for other, x in views.items()}
    np.testing.assert_array_equal(model.predict(lacking), model.predict({name: views[name]}))
    scores = model.transform({name: views[name]}, per_view=True)
    assert {other for other, x in scores.items() if np.isnan(x).all()} == {*views} - {name}


def test_what_a_sample_has_in_the_place_of_a_view_that_it_lacks_does_not_count():
    views = make_blobs(90, spread=3.0, widths=WIDTHS)[0]
    mask = np.arange(90) % 4 > 0
    other = {**views, "b": np.where(mask[:, None], views["b"], 1e6)}
    lacking = {**views, "b": np.where(mask[:, None], views["b"], np.nan)}
    models = [TMvKSCR(3, random_state=0) for _ in range(2)]
    models[0].fit(Views(other, present={"b": mask}))
    models[1].fit(lacking)
    np.testing.assert_array_equal(models[0].scores_, models[1].scores_)
    assert models[0].model_.fingerprint == models[1].model_.fingerprint


def test_sparse_views_have_masks():
    views, truth = make_blobs(120, spread=8.0, widths=WIDTHS)
    mask = np.arange(120) % 3 > 0
    dense = {**views, "b": np.where(mask[:, None], views["b"], np.nan)}
    sparse = Views({**views, "b": sp.csr_array(np.where(mask[:, None], views["b"], 0))}, present={"b": mask})
    found = TMvKSCR(3, random_state=0).fit(sparse)
    assert adjusted_rand_score(truth, found.labels_) == 1
    np.testing.assert_array_equal(found.labels_, TMvKSCR(3, random_state=0).fit(dense).labels_)


@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_a_saved_model_gives_the_same_labels(kernel, tmp_path):
    views = with_missing(make_blobs(90, spread=2.0, widths=WIDTHS)[0], 0.4)
    model = TMvKSCR(3, kernel=kernel, random_state=0).fit(views)
    save(model, tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(views), model.predict(views))
    single = {"a": np.zeros((3, 5))}
    np.testing.assert_array_equal(loaded.transform(single), model.transform(single))


def test_embedded_matrices_have_zero_rows_and_columns():
    gram = sp.csr_array(np.array([[1.0, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]))
    found = embedded(gram, np.array([False, True, True, False, True])).toarray()
    expected = np.zeros((5, 5))
    expected[np.ix_([1, 2, 4], [1, 2, 4])] = gram.toarray()
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), rate=st.floats(0.0, 0.7), n=st.integers(20, 60))
def test_any_pattern_of_missing_views_is_clustered_or_refused_in_words(seed, rate, n):
    views = with_missing(make_blobs(n, spread=3.0, widths=(3, 4))[0], rate, seed)
    try:
        model = TMvKSCR(2, random_state=0).fit(views)
    except InputError as error:
        assert "view" in str(error)
        return
    assert len(model.labels_) == n
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def nan_rows(x, rows):
    found = x.astype(float)
    found[rows] = np.nan
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: {name: nan_rows(x, [4]) for name, x in v.items()}, "1 of 60 samples have no view.*first: row 4"),
        (lambda v: {**v, "b": nan_rows(v["b"], slice(4, None))}, "view 'b' has 4 of 60 samples, and 3 clusters need"),
        (
            lambda v: {"a": nan_rows(v["a"], slice(30)), "b": nan_rows(v["b"], slice(30, None))},
            "no sample has one of the views a and also one of b",
        ),
    ],
)
def test_too_few_views_are_refused(change, message):
    views = make_blobs(60, spread=3.0, widths=WIDTHS)[0]
    with pytest.raises(InputError, match=message):
        TMvKSCR(3).fit(change(views))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (OPMC(3), "OPMC"),
        (Preprocessed(MvKSC(3), "standard"), "MvKSC"),
        (Concat(KSC(3)), "KSC"),
        (Concat(TMvKSCR(3)), "Concat"),
    ],
)
def test_other_methods_say_how_to_fix_it(model, name):
    views = with_missing(make_blobs(60, spread=3.0, widths=WIDTHS)[0], 0.3)
    with pytest.raises(
        InputError, match=rf"^{name} needs all views of each sample.*drop these samples, or use TMvKSCR or Coview"
    ):
        model.fit(views)


@pytest.mark.parametrize(
    ("present", "message"),
    [
        ({"b": [True, False]}, r"present\['b'\] has shape \(2,\) and type bool; give one boolean for each of the 60"),
        ({"b": np.ones(60)}, r"present\['b'\] has shape \(60,\) and type float64"),
        ({"d": np.ones(60, dtype=bool)}, "present names the view 'd'; expected names among a, b, c"),
    ],
)
def test_wrong_masks_are_refused(present, message):
    with pytest.raises(InputError, match=message):
        Views(make_blobs(60, widths=WIDTHS)[0], present=present)


def test_single_cells_that_are_nan_are_refused():
    views = make_blobs(60, spread=3.0, widths=WIDTHS)[0]
    views["b"] = nan_rows(views["b"], [1, 2])
    views["b"][5, 3] = np.nan
    with pytest.raises(InputError, match="view 'b' contains NaN in 1 of 60 samples and 1 of 12 columns"):
        TMvKSCR(3).fit(views)


def test_stacked_views_that_samples_lack_have_the_same_result():
    views = make_blobs(90, spread=3.0, widths=WIDTHS)[0]
    masked = Views(views, present={"b": np.arange(90) % 4 > 0})
    stacked, layout = stack_views(masked)
    expected = TMvKSCR(3, random_state=0).fit(masked).scores_
    np.testing.assert_array_equal(TMvKSCR(3, views=layout, random_state=0).fit(stacked).scores_, expected)
    np.testing.assert_array_equal(TMvKSCR(3, random_state=0).fit(Views(masked)).scores_, expected)


def test_the_tag_for_nan_follows_single_cells():
    """scikit-learn's checks of estimators that allow NaN set single cells to NaN, which are refused."""
    assert not get_tags(TMvKSCR(3)).input_tags.allow_nan


def test_sparse_views_with_nan_are_refused_by_models_that_fill_cells():
    views = make_blobs(60, spread=3.0, widths=WIDTHS)[0]
    views["b"][5, 3] = np.nan
    views["b"] = sp.csr_array(views["b"])
    with pytest.raises(InputError, match=r"view 'b' contains NaN in 1 of 60 samples .* give the view as a dense table"):
        Preprocessed(TMvKSCR(3), {"b": "median"}).fit(views)


def test_a_model_can_be_shown_after_it_has_labelled_samples_that_lack_views():
    views, _ = make_blobs(60)
    model = TMvKSCR(3, random_state=0).fit(views)
    some = {name: np.array(x[:2], dtype=float) for name, x in views.items()}
    some["a"][0] = np.nan
    model.predict(some)
    assert "svg" in model._repr_html_()


@pytest.mark.parametrize("empty", [np.nan, None])
@pytest.mark.parametrize("lacking", [5, 150])
def test_predict_accepts_the_rows_of_frames_of_objects_that_lack_a_view(lacking, empty):
    views, _ = make_blobs(n_samples=300)
    views["a"] = pd.DataFrame(views["a"]).astype(object)
    views["a"].iloc[:lacking] = empty
    model = TMvKSCR(3, kernel="rbf", random_state=0).fit(views)
    for rows in (slice(None), slice(lacking), slice(1), slice(lacking, None)):
        np.testing.assert_array_equal(model.predict({name: x[rows] for name, x in views.items()}), model.labels_[rows])
