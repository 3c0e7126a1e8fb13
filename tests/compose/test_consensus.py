"""Consensus: one clustering from the scores of several models."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import DBSCAN, KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

from coview import (
    KSC,
    OPMC,
    RBF,
    Codebook,
    Concat,
    Consensus,
    FixedSize,
    InputError,
    NeighborGraph,
    Preprocessed,
    TMvKSCR,
    Tuned,
    load,
    save,
    stack_views,
    summarize,
)
from coview.methods.nested import nested_models
from coview.rows import l2_normalize
from tests.conftest import make_blobs


def models(k=3):
    return [
        TMvKSCR(k, random_state=0),
        Preprocessed(Concat(TMvKSCR(k, kernel=NeighborGraph(), random_state=0)), "standard+block"),
        Preprocessed(TMvKSCR(k, kernel="rbf", random_state=0)),
    ]


def fitted(spread=1.5, n=120, **parameters):
    views, truth = make_blobs(n, spread=spread)
    return Consensus(models(), random_state=0, **parameters).fit(views), views, truth


def test_inner_products_are_weighted_means_of_cosine_similarities():
    weights = [1.0, 2.0, 0.5]
    model, views, _ = fitted(weights=weights)
    expected = np.zeros((120, 120))
    for weight, each in zip(weights, models(), strict=True):
        scores = each.fit(views).transform(views)
        values = list(nested_models(each))[-1].eigenvalues_
        directions = l2_normalize(scores * (values / values[0]).clip(0) ** 3)
        expected += weight / sum(weights) * directions @ directions.T
    np.testing.assert_allclose(model.scores_ @ model.scores_.T, expected, atol=1e-9)


def test_the_scores_are_those_along_principal_axes():
    model, views, _ = fitted()
    moments = model.scores_.T @ model.scores_
    np.testing.assert_allclose(moments, np.diag(moments.diagonal()), atol=1e-8)
    np.testing.assert_allclose(model.eigenvalues_, moments.diagonal() / np.trace(moments), atol=1e-9)
    assert (np.diff(model.eigenvalues_) <= 1e-12).all()
    np.testing.assert_allclose(model.transform(views), model.scores_, atol=1e-9)


def test_the_clusters_are_those_of_k_means_on_the_scores():
    model, _, _ = fitted(spread=2.0)
    plain = KMeans(3, n_init=10, random_state=0).fit_predict(model.scores_)
    assert adjusted_rand_score(plain, model.labels_) == 1.0


def test_a_model_with_weight_zero_has_no_effect():
    views, _ = make_blobs(120, spread=1.0)
    alone = Consensus(models()[:1], random_state=0).fit(views)
    both = Consensus(models()[:2], weights=[1, 0], random_state=0).fit(views)
    assert adjusted_rand_score(alone.labels_, both.labels_) == 1.0


def test_new_samples_get_the_same_label_alone_and_in_any_batch():
    model, views, _ = fitted(spread=0.8)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    new = {name: x[:20] + 0.1 for name, x in views.items()}
    together = model.predict(new)
    for i in range(20):
        assert model.predict({name: x[i : i + 1] for name, x in new.items()})[0] == together[i]


def test_each_view_has_labels_in_the_same_space():
    model, views, truth = fitted(spread=8.0)
    assert list(model.view_labels_) == list(views)
    for name, labels in model.predict(views, per_view=True).items():
        np.testing.assert_array_equal(labels, model.view_labels_[name])
        assert adjusted_rand_score(truth, labels) == 1.0
    scores = model.transform(views, per_view=True)
    assert {each.shape for each in scores.values()} == {model.scores_.shape}
    assert list(model.kernels_) == list(views)


def test_models_of_stacked_columns_have_no_labels_of_views():
    views, _ = make_blobs(90, spread=8.0)
    model = Consensus([Concat(TMvKSCR(3, random_state=0))], random_state=0).fit(views)
    assert model.view_labels_ == model.transform(views, per_view=True) == model.predict(views, per_view=True) == {}
    assert model.kernels_ == {}


def test_a_saved_model_predicts_as_before(tmp_path):
    model, views, _ = fitted(spread=0.8, weights=[1, 0.5, 0.25], assigner=Codebook())
    by_view = model.predict(views, per_view=True)
    again = load(save(model, tmp_path / "consensus.safetensors"))
    np.testing.assert_array_equal(again.predict(views), model.labels_)
    for name, labels in again.predict(views, per_view=True).items():
        np.testing.assert_array_equal(labels, by_view[name])
    np.testing.assert_array_equal(clone(model).fit(views).labels_, model.labels_)


def test_a_stacked_table_and_fixed_size_training():
    views, truth = make_blobs(400, spread=8.0)
    X, layout = stack_views(views)
    stacked = Consensus([TMvKSCR(3), Concat(KSC(3))], views=layout, random_state=0)
    assert adjusted_rand_score(truth, stacked.fit(X).labels_) == 1.0
    some = FixedSize(Consensus(models(), random_state=0), n_train=100, random_state=0).fit(views)
    assert adjusted_rand_score(truth, some.labels_) == 1.0


def test_recluster_learns_the_clusters_from_other_samples():
    model, views, truth = fitted(spread=8.0)
    model.recluster({name: x[::2] for name, x in views.items()})
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert adjusted_rand_score(truth, next(iter(model.view_labels_.values()))) == 1.0


def test_models_may_have_other_numbers_of_components():
    views, truth = make_blobs(120, spread=8.0)
    model = Consensus([TMvKSCR(4), Concat(TMvKSCR(5))], 3, random_state=0).fit(views)
    assert model.scores_.shape == (120, 3 + 4)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    for labels in model.model_labels():
        assert labels.max() == 2


@pytest.mark.parametrize(
    ("estimators", "weights", "words"),
    [
        ([], None, "expected a list such as"),
        (TMvKSCR(3), None, "expected a list such as"),
        ([TMvKSCR], None, "expected an instance such as"),
        ([OPMC(3)], None, "OPMC has no scores; Consensus needs models with transform, such as TMvKSCR"),
        ([DBSCAN()], None, "DBSCAN has no scores; Consensus needs models with transform, such as TMvKSCR"),
        ([KMeans(3)], None, r"methods of this library; wrap KMeans, as in Concat\(KMeans"),
        ([Tuned([2, 3]), TMvKSCR(3)], None, r"have the numbers of clusters \[2, 3\], 3; give n_clusters"),
        ([TMvKSCR(100)], None, "n_samples=90 is too few for n_clusters=100"),
        ([TMvKSCR(3)], 5, "weights=5: expected a list with one number for each estimator"),
        ([TMvKSCR(3)], "1", "weights='1': expected a list"),
        ([TMvKSCR(3)], ["1"], "weights='1': expected a number"),
        ([TMvKSCR(3), TMvKSCR(4)], None, "have the numbers of clusters 3, 4"),
        ([TMvKSCR(3)], [1, 2], "weights has 2 entries for 1 estimators"),
        ([TMvKSCR(3)], [0], "weights are all zero"),
        ([TMvKSCR(3)], [-1], "weights=-1"),
    ],
)
def test_bad_settings_get_one_clear_sentence(estimators, weights, words):
    views, _ = make_blobs(spread=8.0)
    model = Consensus(estimators, weights=weights)
    with pytest.raises((InputError, TypeError), match=words):
        model.fit(views)
    with pytest.raises(NotFittedError):
        model.predict(views)


def test_more_clusters_than_samples_are_refused():
    views, _ = make_blobs(60)
    with pytest.raises(InputError, match="n_samples=60 is too few for n_clusters=100; give more samples"):
        Consensus([TMvKSCR(3)], 100).fit(views)


def test_huge_weights_are_relative():
    model, views, _ = fitted(spread=8.0, weights=[1e308, 1e308, 1e308])
    np.testing.assert_array_equal(model.labels_, fitted(spread=8.0)[0].labels_)
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("as_given", [lambda x: x, lambda x: [x]])
def test_one_view_without_a_name_is_not_the_table_inside_concat(as_given):
    x = as_given(make_blobs(90, spread=8.0)[0]["a"])
    one, stacked = TMvKSCR(3, random_state=0), Concat(TMvKSCR(3, kernel=NeighborGraph(), random_state=0))
    model = Consensus([stacked, one], random_state=0).fit(x)
    assert model.kernels_ == model.estimators_[1].kernels_
    scores = model.transform(x, per_view=True)["view0"]
    directions = l2_normalize(model.estimators_[1].scores_ * model._diffusion[2:])
    np.testing.assert_allclose(scores @ scores.T, directions @ directions.T / 2, atol=1e-9)
    np.testing.assert_array_equal(model.predict(x, per_view=True)["view0"], model.view_labels_["view0"])
    assert summarize(model, x).points.view_scores
    assert Consensus([stacked], random_state=0).fit(x).view_labels_ == {}


def test_tuned_summarizes_one_array():
    x = make_blobs(90, spread=8.0)[0]["a"]
    model = Tuned(3, random_state=0).fit(x)
    assert list(model.predict(x, per_view=True)) == list(model.transform(x, per_view=True)) == ["view0"]
    assert summarize(model, x).n_clusters == 3


def test_the_labels_of_each_view_are_learnt_one_by_one(tmp_path):
    model, views, _ = fitted(spread=0.8)
    expected = model.predict(views, per_view=True)
    again = load(save(model, tmp_path / "consensus.safetensors"))
    again._view_assignment("b")  # before the others
    for name, labels in again.predict(views, per_view=True).items():
        np.testing.assert_array_equal(labels, expected[name])


class WarnsOfItsSolver(TMvKSCR):
    """A method whose solver has not converged."""

    def _latent_space(self, grams, n_components):
        warnings.warn("the solver has not converged", ConvergenceWarning, stacklevel=2)
        return super()._latent_space(grams, n_components)


def test_warnings_of_a_solver_are_shown():
    views, _ = make_blobs(60, spread=8.0)
    with pytest.warns(ConvergenceWarning, match="the solver has not converged"):
        Consensus([WarnsOfItsSolver(3, random_state=0)], random_state=0).fit(views)


def test_the_numbers_of_clusters_of_single_models_give_no_warning():
    three_rows = {name: np.repeat(x[:3], 5, axis=0) for name, x in make_blobs(60)[0].items()}
    model = Consensus([TMvKSCR(4, random_state=0), TMvKSCR(9, random_state=0)], 3, random_state=0).fit(three_rows)
    assert model.labels_.max() == 2


def test_signs_of_the_axes_are_fixed():
    axes = fitted()[0]._axes
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    assert (largest > 0).all()


def test_data_frames_have_the_row_labels_of_the_views():
    model, views, _ = fitted(spread=8.0)
    index = pd.Index([f"s{i}" for i in range(120)])
    tables = {name: pd.DataFrame(x, index=index) for name, x in views.items()}
    model.set_output(transform="pandas")
    assert model.transform(tables).index.equals(index)
    assert clone(model).fit_transform(tables).index.equals(index)
    with pytest.raises(InputError, match="reset set_output to 'default'"):
        model.transform(tables, per_view=True)


def test_labels_by_view_do_not_depend_on_the_output_that_is_set():
    model, views, _ = fitted(spread=0.8)
    expected = model.predict(views, per_view=True)
    framed = Consensus(
        [
            TMvKSCR(3, random_state=0).set_output(transform="pandas"),
            Preprocessed(Concat(TMvKSCR(3, kernel=NeighborGraph(), random_state=0)), "standard+block"),
            Preprocessed(TMvKSCR(3, kernel="rbf", random_state=0).set_output(transform="pandas")),
        ],
        random_state=0,
    ).fit(views)
    for name, labels in framed.predict(views, per_view=True).items():
        np.testing.assert_array_equal(labels, expected[name])
    with config_context(transform_output="pandas"):
        for name, labels in model.predict(views, per_view=True).items():
            np.testing.assert_array_equal(labels, expected[name])
        assert summarize(framed, views).points.view_scores


def test_scores_of_float32_views_are_float32():
    views = {name: x.astype(np.float32) for name, x in make_blobs(90, spread=8.0)[0].items()}
    model = Consensus(models(), random_state=0)
    assert model.fit_transform(views).dtype == model.scores_.dtype == model.transform(views).dtype == np.float32
    assert {scores.dtype.name for scores in model.transform(views, per_view=True).values()} == {"float32"}
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_labels_of_models_do_not_depend_on_the_weights():
    equal, views, _ = fitted(spread=0.8)
    model = Consensus(models(), weights=[1, 0, 0.5], random_state=0).fit(views)
    for labels, expected in zip(model.model_labels(), equal.model_labels(), strict=True):
        np.testing.assert_array_equal(labels, expected)


def test_models_of_some_samples_have_no_scores_of_views():
    views, truth = make_blobs(120, spread=8.0)
    some = FixedSize(TMvKSCR(3, random_state=0), n_train=60, random_state=0)
    model = Consensus([some, TMvKSCR(3, random_state=0)], random_state=0).fit(views)
    for name, labels in model.view_labels_.items():
        assert adjusted_rand_score(truth, labels) == 1.0
        np.testing.assert_array_equal(labels, model.predict(views, per_view=True)[name])
    assert all(len(labels) == 120 for labels in model.model_labels())


def test_fewer_clusters_than_those_of_the_models_are_noted():
    view = np.repeat([[0.0], [5.0]], 10, axis=0)
    with pytest.warns(match="found 2 distinct clusters"):
        model = Consensus([KSC(3, kernel=RBF(1.0), random_state=0)], random_state=0).fit(view)
    assert "3 clusters were requested, and 2 have members." in summarize(model, view).notes


def test_axes_without_variance_do_not_decide_memberships():
    views = make_blobs(90, n_clusters=2, spread=1.0)[0]
    model = Consensus([TMvKSCR(2), Concat(KSC(2))], assigner="codebook", random_state=0).fit(views)
    together = model.predict_proba(views)
    alone = np.vstack([model.predict_proba({name: x[[i]] for name, x in views.items()}) for i in range(90)])
    np.testing.assert_allclose(alone, together, atol=1e-9)
