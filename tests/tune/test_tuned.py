"""Tuned: the settings that the data speak for, and the model that they give."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from coview import FixedSize, InputError, Preprocessed, TMvKSCR, Tuned, load, save, stack_views, summarize
from tests.conftest import make_blobs


def test_clear_clusters_are_found_with_their_number():
    views, truth = make_blobs(spread=8.0)
    model = Tuned("auto", budget="small", random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_the_winner_is_fitted_on_all_samples_and_answers_for_the_wrapper():
    views, _ = make_blobs(600, spread=2.0)
    model = Tuned(3, budget="small", random_state=0).fit(views)
    assert {row["n_samples"] for row in model.evaluations_} == {400}
    assert model.latent_.shape == (600, 2)
    assert model.transform(views).shape == (600, 2)
    assert set(model.predict(views, per_view=True)) == set(views)
    inner = model.estimator_
    assert isinstance(inner, Preprocessed)
    assert isinstance(inner.estimator, TMvKSCR)
    np.testing.assert_array_equal(clone(inner).fit(views).labels_, model.labels_)
    best = max(model.evaluations_, key=lambda row: row["criterion"])
    assert [inner.steps, str(inner.estimator.kernel), inner.estimator.rho] == [
        best["steps"],
        best["kernel"],
        best["rho"],
    ]


def test_the_reason_names_what_was_chosen_and_what_speaks_for_it():
    views, _ = make_blobs(spread=8.0)
    model = Tuned([2, 3, 4], budget="small", random_state=0).fit(views)
    assert "3 clusters of 2 to 4" in model.reason_
    assert f"rho = {model.estimator_.estimator.rho:g}" in model.reason_
    assert str(model.estimator_.estimator.kernel) in model.reason_
    assert "standardised columns" in model.reason_ or "L2-normalised rows" in model.reason_
    small = Tuned(3, budget="small", random_state=0).fit(views)
    assert "clusters of" not in small.reason_
    assert "rounds" not in small.reason_
    more, _ = make_blobs(600, spread=8.0)
    assert "in both rounds together" in Tuned(3, random_state=0).fit(more).reason_


def test_the_reason_tells_views_apart_that_are_prepared_differently_or_weigh_differently():
    views, truth = make_blobs(120, spread=1.5)
    rng = np.random.default_rng(0)
    words = rng.poisson(0.05 + 0.9 * rng.random((3, 40))[truth]).astype(float)
    model = Tuned(3, budget="small", random_state=0).fit({"few": views["a"][:, :2], "words": sp.csr_array(words)})
    assert "(few)" in model.reason_
    assert "(words)" in model.reason_
    noise = rng.normal(size=(120, 30))
    uneven = Tuned(3, budget="small", random_state=0).fit(views | {"noise": noise})
    weights = dict(zip(uneven.view_names_, uneven.estimator_.estimator.kappa, strict=True))
    for name, weight in weights.items():
        assert (f"{name} counts {weight:g}" in uneven.reason_) == (weight != 1)


def test_the_table_can_be_written_as_json_and_holds_every_measure():
    views, _ = make_blobs(spread=2.0)
    table = Tuned(range(2, 5), budget="small", random_state=0).fit(views).evaluations_
    assert json.loads(json.dumps(table)) == table
    assert {
        "criterion",
        "stability",
        "agreement",
        "consensus",
        "size_entropy",
        "line_fit",
        "membership",
        "eigengap",
    } <= set(table[0])
    assert {row["n_clusters"] for row in table} == {2, 3, 4}


def test_the_same_seed_gives_the_same_model():
    views, _ = make_blobs(spread=0.8)
    first, second = (Tuned(3, budget="small", random_state=4).fit(views) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.evaluations_ == second.evaluations_
    assert first.reason_ == second.reason_
    assert clone(first).get_params() == first.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict(views), first.labels_)


def test_one_table_cut_into_views_is_tuned_alike():
    views, _ = make_blobs(spread=2.0)
    X, layout = stack_views(views)
    stacked = Tuned(3, budget="small", views=layout, random_state=0).fit(X)
    np.testing.assert_array_equal(stacked.labels_, Tuned(3, budget="small", random_state=0).fit(views).labels_)


def test_one_view_is_tuned_without_a_word_about_agreement():
    views, truth = make_blobs(spread=8.0)
    model = Tuned("auto", budget="small", random_state=0).fit(views["a"])
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert "agree" not in model.reason_


def test_one_cluster_of_one_view_leaves_nothing_to_choose(tmp_path):
    views, _ = make_blobs(spread=8.0)
    model = Tuned(1, random_state=0).fit(views["a"])
    assert set(model.labels_) == {0}
    assert model.evaluations_ == []
    assert model.reason_ == "One cluster leaves nothing to choose."
    assert summarize(model, views["a"]).tuning is None
    save(model, tmp_path / "one.safetensors")
    again = load(tmp_path / "one.safetensors")
    np.testing.assert_array_equal(again.predict(views["a"]), model.labels_)
    assert again.evaluations_ == []


def test_scikit_learns_checks_pass():
    check_estimator(Tuned(2, budget="small", random_state=0), on_skip=None)


def test_a_view_without_differences_is_refused_by_name():
    views, _ = make_blobs(spread=8.0)
    with pytest.raises(InputError, match="view 'flat' has the same values in all 90 samples; drop the view"):
        Tuned(3, random_state=0).fit(views | {"flat": np.ones((90, 2))})
    with pytest.raises(InputError, match="n_samples=1 is too few"):
        Tuned("auto").fit(np.ones((1, 3)))


def test_too_many_samples_for_memory_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr("coview.runtime.available_memory", lambda: 1000)
    views, _ = make_blobs(spread=8.0)
    many = {f"{name}{i}": x for i in range(3) for name, x in views.items()}  # beyond what is fused sparse
    with pytest.raises(MemoryError, match=r"90 samples of 9 views .* FixedSize\(Tuned"):
        Tuned(3, random_state=0).fit(many)


def test_fixed_size_trains_a_tuned_model_on_some_samples():
    views, truth = make_blobs(2500, spread=8.0)
    model = FixedSize(Tuned("auto", budget="small", random_state=0), n_train=300, random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert model.latent_.shape == (300, 2)
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def test_progress_is_told_from_the_first_candidate_to_the_labels():
    views, _ = make_blobs(spread=8.0)
    told = []
    Tuned(3, budget="small", progress=lambda stage, done, total: told.append(stage), random_state=0).fit(views)
    assert told[0].startswith("candidates on")
    assert "weights of views" in told
    assert told[-1] == "labels"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_clusters": 1}, "at least 2"),
        ({"n_clusters": 2.5}, "must be a whole number, 'auto', or several"),
        ({"n_clusters": "many"}, "must be a whole number, 'auto', or several"),
        ({"n_clusters": []}, "whole numbers of at least 2"),
        ({"n_clusters": 3.0}, "must be a whole number"),
        ({"n_clusters": [2, True]}, "whole numbers of at least 2"),
        ({"n_clusters": 1000}, "too few for n_clusters=1000"),
        ({"budget": ["small"]}, "budget=.'small'. is unknown"),
        ({"budget": "huge"}, "budget='huge' is unknown; use one of 'small', 'full'"),
    ],
)
def test_bad_settings_get_one_clear_sentence(settings, words):
    views, _ = make_blobs(spread=8.0)
    model = Tuned(**{"n_clusters": 3} | settings)
    with pytest.raises(InputError, match=words):
        model.fit(views)
    with pytest.raises(NotFittedError):
        model.predict(views)


def test_few_samples_are_enough_for_auto():
    views, _ = make_blobs(9, spread=8.0)
    model = Tuned("auto", random_state=0).fit(views)
    assert 2 <= model.n_clusters_ <= 4


def test_nothing_the_caller_owns_is_changed():
    views, _ = make_blobs(spread=2.0)
    before = {name: x.copy() for name, x in views.items()}
    Tuned(3, budget="small", random_state=0).fit(views)
    for name, x in views.items():
        np.testing.assert_array_equal(x, before[name])
