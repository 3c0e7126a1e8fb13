"""Contributions of the views to the labels: they sum to the decision margin, and name the views that contradict."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from coview import (
    KSC,
    RBF,
    Concat,
    CoReg,
    Coview,
    FixedSize,
    MvKSC,
    PerView,
    Preprocessed,
    TMvKSCR,
    Views,
    as_views,
    load,
    save,
    summarize,
)
from coview.certainty.columns import sample_columns
from coview.certainty.which_view import agreements_without
from coview.summary import Summary
from coview.summary.sentences import contribution_fractions, contributions_in_words, loss_in_words
from tests import naive
from tests.conftest import make_blobs
from tests.summaries import bare, make_summary

MODELS = {
    "tmvkscr": TMvKSCR(4),
    "codebook": TMvKSCR(4, assigner="codebook"),
    "rbf and beta": TMvKSCR(4, kernel=RBF(), rho=0.5, beta=[0.2, 0.5, 0.3]),
    "mvksc": MvKSC(4),
    "preprocessed": Preprocessed(TMvKSCR(4), steps="l2"),
    "fixed size": FixedSize(TMvKSCR(4), n_train=60, random_state=0),
}


def best_views(model, views):
    return sample_columns(model.model_, views, wanted=["best_view"]).best_views


def overlapping(n_samples=90):
    return make_blobs(n_samples, n_clusters=4, spread=1.0)[0]


def seeded(model):
    names = [name for name in model.get_params() if name.rpartition("__")[2] == "random_state"]
    return clone(model).set_params(**dict.fromkeys(names, 0))


def decision_margins(model, views):
    """Half the difference of squared distances to the centre of the second cluster and to that of the own one."""
    scores, membership = model.transform(views), model.predict_proba(views)
    every = np.arange(len(scores))
    own = membership.argmax(axis=1)
    np.testing.assert_array_equal(own, model.predict(views))
    membership[every, own] = -1
    second = membership.argmax(axis=1)
    directions = scores / np.linalg.norm(scores, axis=1, keepdims=True)
    squares = ((directions[:, None] - model.model_.predictor.assignment.centres) ** 2).sum(axis=2)
    return (squares[every, second] - squares[every, own]) / 2


@pytest.mark.parametrize("name", MODELS)
def test_contributions_sum_to_the_decision_margin(name):
    views = overlapping()
    model = seeded(MODELS[name]).fit({view: x[:70] for view, x in views.items()})
    found = model.view_contributions(views)  # training samples and new ones
    assert list(found) == ["a", "b", "c"]
    margins = decision_margins(model, views)
    np.testing.assert_allclose(np.sum(list(found.values()), axis=0), margins, atol=1e-9)
    if name != "codebook":  # which assigns by signs
        assert margins.min() > -1e-6
    assert any((each < 0).any() for each in found.values())


def test_contributions_are_those_of_the_reference_implementation():
    views = overlapping()
    model = TMvKSCR(4, beta=[0.2, 0.5, 0.3], random_state=0).fit(views)
    found, scores = model.view_contributions(views), model.transform(views, per_view=True)
    for i, label in enumerate(model.labels_):
        parts = [0.2 * scores["a"][i], 0.5 * scores["b"][i], 0.3 * scores["c"][i]]
        expected = naive.view_contributions(parts, [0.2, 0.5, 0.3], model.model_.predictor.assignment.centres, label)
        assert [each[i] for each in found.values()] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("model", [TMvKSCR(4), Coview(4), MODELS["fixed size"]], ids=repr)
def test_a_sample_has_the_same_contributions_alone_and_in_any_batch(model):
    views = overlapping()
    model = seeded(model).fit({name: x[:70] for name, x in views.items()})
    whole = model.view_contributions(views)
    for rows in (slice(3, 4), slice(60, 90), [8, 2, 80]):
        some = model.view_contributions({name: x[rows] for name, x in views.items()})
        for name, each in some.items():
            np.testing.assert_allclose(each, whole[name][rows], atol=1e-9)


@pytest.mark.parametrize("model", [TMvKSCR(4), Coview(4), Preprocessed(TMvKSCR(4), steps="l2")], ids=repr)
@pytest.mark.parametrize("trained_on_all", [True, False])
def test_a_view_that_a_sample_lacks_contributes_nothing(model, trained_on_all):
    views = overlapping()
    lacking = {name: x.copy() for name, x in views.items()}
    lacking["a"][:10] = np.nan
    lacking["b"][5:20] = np.nan
    estimator = seeded(model).fit(views if trained_on_all else lacking)
    found = estimator.view_contributions(lacking)
    for name, x in lacking.items():
        np.testing.assert_array_equal(np.isnan(found[name]), np.isnan(x).all(axis=1))
    if not isinstance(estimator, Coview):
        summed = np.nansum(list(found.values()), axis=0)
        np.testing.assert_allclose(summed, decision_margins(estimator, lacking), atol=1e-9)
    alone = estimator.view_contributions({name: x[7:8] for name, x in lacking.items() if name == "c"})
    np.testing.assert_allclose(alone["c"], found["c"][7], atol=1e-9)
    assert np.isnan(alone["a"]).all()


def test_a_view_of_other_clusters_contradicts_and_one_of_the_same_clusters_agrees():
    rng, truth, views = np.random.default_rng(0), np.arange(120) % 2, {}
    wrong = truth.copy()
    wrong[:15] = 1 - wrong[:15]  # view c has fifteen samples in the other cluster
    for name, of_view in {"a": truth, "b": truth, "c": wrong}.items():
        views[name] = np.array([[-8.0], [8.0]])[of_view] + rng.normal(size=(120, 3))
    found = TMvKSCR(2, random_state=0).fit(views).view_contributions(views)
    assert (found["c"][:15] < 0).all()
    assert (found["c"][15:] > 0).all()
    assert (found["a"] > 0).all()
    assert (found["b"] > 0).all()


def test_a_view_without_weight_contributes_zero():
    views = overlapping()
    found = TMvKSCR(4, beta=[1, 0, 1], random_state=0).fit(views).view_contributions(views)
    assert (found["b"] == 0).all()
    assert abs(found["a"]).max() > 0.1


def test_one_cluster_has_no_margin():
    views = overlapping()
    one = {"a": views["a"]}
    found = TMvKSCR(1, random_state=0).fit(one).view_contributions(one)
    found |= Coview(1, random_state=0).fit(views).view_contributions(views)
    assert all((each == 0).all() for each in found.values())


def test_models_without_scores_of_each_view_have_no_contributions():
    for model in (CoReg(4), Concat(KSC(4)), PerView(KSC(4)), Preprocessed(CoReg(4)), FixedSize(Concat(KSC(4)))):
        assert not hasattr(model, "view_contributions")


def test_a_loaded_model_has_the_same_contributions(tmp_path):
    views = overlapping()
    model = Coview(4, random_state=0).fit(views)
    loaded = load(save(model, tmp_path / "model.safetensors"))
    for name, each in model.view_contributions(Views(views)).items():
        np.testing.assert_array_equal(each, loaded.view_contributions(views)[name])


def test_float32_and_precomputed_kernels():
    views, _ = make_blobs(60, spread=8.0)
    grams = {
        name: np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / 40).astype(np.float32) for name, x in views.items()
    }
    model = TMvKSCR(3, kernel="precomputed", random_state=0).fit(grams)
    found = model.view_contributions(grams)
    np.testing.assert_allclose(np.sum(list(found.values()), axis=0), decision_margins(model, grams), atol=1e-5)


@pytest.mark.parametrize("model", [TMvKSCR(4, random_state=0), Coview(4, random_state=0)], ids=repr)
def test_the_best_view_has_the_largest_contribution(model):
    views = as_views(overlapping())
    model = clone(model).fit(views)
    by_view = model.view_contributions(views)
    expected = [max(by_view, key=lambda name: by_view[name][i]) for i in range(90)]
    assert best_views(model, views).tolist() == expected
    assert len(set(expected)) == 3
    assert best_views(model, views.take([7])).tolist() == [expected[7]]


def test_the_best_view_is_one_that_the_sample_has():
    views = overlapping()
    views["a"][:20] = np.nan
    found = best_views(TMvKSCR(4, random_state=0).fit(views), as_views(views))
    assert "a" not in found[:20]
    assert "a" in found[20:]


def test_the_first_of_equal_views_is_the_best():
    views = overlapping()
    twice = as_views({"one": views["a"], "same": views["a"]})  # already validated, so without a warning
    assert set(best_views(TMvKSCR(4, random_state=0).fit(twice), twice)) == {"one"}


def test_one_view_or_no_contributions_have_no_best_view():
    views = as_views(overlapping())
    one = views.select(["a"])
    assert best_views(KSC(4).fit(one), one) is None
    method = CoReg(4).fit(views)
    assert sample_columns(method.model_, views, method.labels_).best_views is None


def test_labels_without_a_view_are_those_that_are_predicted():
    views = as_views(overlapping())
    model = TMvKSCR(4, random_state=0).fit(views)
    found = agreements_without(model.model_, views, model.labels_)
    for name in views:
        others = {each: x for each, x in views.items() if each != name}
        assert found[name] == pytest.approx(adjusted_rand_score(model.labels_, model.predict(others)))
    assert agreements_without(MvKSC(4).fit(views).model_, views, model.labels_) == {}  # needs all views
    assert agreements_without(model.model_, views, np.zeros(90, dtype=int)) == {}


def test_samples_without_another_view_do_not_count_for_the_loss():
    views = overlapping()
    views["b"][:20] = np.nan
    views["c"][:20] = np.nan
    model = TMvKSCR(4, random_state=0).fit(views)
    rest = {name: x[20:] for name, x in views.items() if name != "a"}
    expected = adjusted_rand_score(model.labels_[20:], model.predict(rest))
    assert agreements_without(model.model_, as_views(views), model.labels_)["a"] == pytest.approx(expected)
    one_view = model.check({"a": views["a"]})
    assert list(agreements_without(model.model_, one_view, model.predict(one_view))) == []
    only_a = TMvKSCR(4, beta=[1, 0, 0], random_state=0).fit(overlapping())
    assert list(agreements_without(only_a.model_, as_views(overlapping()), only_a.labels_)) == ["b", "c"]


@pytest.mark.parametrize("model", [TMvKSCR(4, random_state=0), Coview(4, random_state=0)], ids=repr)
@pytest.mark.parametrize("lacking", [False, True])
def test_a_summary_has_the_contributions_by_cluster(model, lacking, monkeypatch):
    monkeypatch.setattr("coview.certainty.columns.BLOCK_ROWS", 32)
    views = overlapping()
    if lacking:
        views["a"][:20] = np.nan
    model = clone(model).fit(views)
    summary, found = summarize(model, views), model.view_contributions(views)
    assert Summary.from_json(summary.to_json()) == summary
    for cluster in summary.clusters:
        for name, each in found.items():
            members = each[model.labels_ == cluster.label]
            assert cluster.contributions[name] == pytest.approx(np.nansum(members) / len(members), rel=1e-4)
            known = members[~np.isnan(members)]
            assert cluster.contradicted[name] == pytest.approx(np.mean(known < 0), rel=1e-4)
        assert sum(contribution_fractions(cluster).values()) == pytest.approx(1)
    assert list(summary.samples.best_views) == best_views(model, as_views(views)).tolist()
    without = agreements_without(model.model_, as_views(views), model.labels_)
    assert {view.name: view.agreement_without for view in summary.views} == pytest.approx(without, rel=1e-4)


def test_contributions_are_described_in_words():
    summary = make_summary(n_clusters=4)
    assert [*contributions_in_words(summary)] == [
        "View pixels contributes most to clusters 0 and 3.",
        "View gradients contributes most to cluster 1.",
        "View fourier contributes most to cluster 2.",
    ]
    assert next(loss_in_words(summary)).startswith(
        "The adjusted Rand index between the joint labels and the labels that the same model predicts without a view "
        "is 0.80 without gradients, 0.70 without fourier and 0.60 without pixels."
    )
    first, *rest = summary.clusters
    equal = replace(first, contributions={"pixels": 0.4, "fourier": 0.3, "gradients": 0.3})
    assert [*contributions_in_words(replace(summary, clusters=(equal, *rest)))][-1] == (
        "No view contributes far more than the others to cluster 0."
    )
    assert [*contributions_in_words(replace(summary, clusters=(equal,)))] == [
        "No view contributes far more than the others to any cluster."
    ]
    assert [*contributions_in_words(bare(summary)), *loss_in_words(bare(summary))] == []
    negative = replace(summary.clusters[0], contributions={"pixels": -0.1, "fourier": 0.05, "gradients": 0.0})
    assert contribution_fractions(negative) == {}
