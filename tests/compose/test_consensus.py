"""Consensus: one clustering from the scores of several models."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from coview import (
    KSC,
    OPMC,
    Codebook,
    Concat,
    Consensus,
    FixedSize,
    InputError,
    NeighborGraph,
    Preprocessed,
    TMvKSCR,
    load,
    save,
    stack_views,
)
from coview.compose.wrapper import nested_models
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
        ([OPMC(3)], None, "OPMC has no scores; Consensus needs models with transform"),
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
