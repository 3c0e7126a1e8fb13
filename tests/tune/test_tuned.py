"""Tuned: the settings that are selected from the data, and the fitted model."""

import json
import pickle
from dataclasses import asdict, fields

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from coview import FixedSize, InputError, Preprocessed, TMvKSCR, Tuned, load, save, stack_views, summarize
from coview.core.agreement import size_entropy
from coview.datasets import digits_views
from coview.preprocess.steps import parse_steps
from coview.tune.record import MEASURES, EvaluatedSetting
from tests.conftest import make_blobs


def test_clear_clusters_are_found_with_their_number():
    views, truth = make_blobs(spread=8.0)
    model = Tuned("auto", budget="small", random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_the_selected_setting_is_fitted_on_all_samples():
    views, _ = make_blobs(600, spread=2.0)
    model = Tuned(3, budget="small", random_state=0).fit(views)
    assert {each.n_samples for each in model.evaluations_} == {500}
    assert model.latent_.shape == (600, 2)
    assert model.transform(views).shape == (600, 2)
    assert set(model.predict(views, per_view=True)) == set(views)
    inner = model.estimator_
    assert isinstance(inner, Preprocessed)
    assert isinstance(inner.estimator, TMvKSCR)
    np.testing.assert_array_equal(clone(inner).fit(views).labels_, model.labels_)
    best = max(model.evaluations_, key=lambda each: each.criterion)
    assert (tuple(inner.steps), str(inner.estimator.kernel), inner.estimator.rho) == best.setting[:3]


def test_the_index_of_the_selected_setting_is_recorded_by_the_search():
    views, _ = make_blobs(600, spread=1.2)
    views["noise"] = np.random.default_rng(1).normal(size=(600, 30))
    for budget in ("small", "full"):
        model = Tuned([2, 3], budget=budget, random_state=0).fit(views)
        selected, method = model.evaluations_[model.selected_], model.estimator_.estimator
        assert selected.n_clusters == model.n_clusters_
        assert selected.setting == (tuple(model.estimator_.steps), str(method.kernel), method.rho, tuple(method.kappa))
        later = [each for each in model.evaluations_[model.selected_ + 1 :] if each.setting == selected.setting]
        assert all(each.n_clusters != selected.n_clusters for each in later)


def test_the_reason_names_the_selected_setting_and_its_measures():
    views, _ = make_blobs(spread=8.0)
    model = Tuned([2, 3, 4], budget="small", random_state=0).fit(views)
    selected = model.evaluations_[model.selected_]
    n_settings = len({each.setting for each in model.evaluations_})
    steps = parse_steps(selected.steps[0]).description
    assert model.reason_ == (
        f"Selected {selected.kernel} on {steps} with rho = {selected.rho:g} and 3 clusters (from 2 to 4), the best of "
        f"{n_settings} settings. On 90 samples of the search: agreement between views {selected.agreement:.2f}, "
        f"split-half stability {selected.stability:.2f}, size entropy {selected.size_entropy:.2f}. On all 90 samples: "
        f"agreement between views {model.final_.agreement:.2f}, split-half stability (90 samples) "
        f"{model.final_.stability:.2f}, size entropy {model.final_.size_entropy:.2f}."
    )
    small = Tuned(3, budget="small", random_state=0).fit(views)
    assert "clusters" not in small.reason_
    assert "rounds" not in small.reason_
    more, _ = make_blobs(600, spread=8.0)
    assert " settings over 2 rounds. On 600 samples of the search" in Tuned(3, random_state=0).fit(more).reason_


def test_the_reason_names_views_of_different_preprocessing_or_weight():
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
        assert (f"{weight:g} for {name}" in uneven.reason_) == (weight != 1)
    assert ("kappa = " in uneven.reason_) == (set(weights.values()) != {1.0})


def test_the_evaluations_are_plain_values_and_become_a_data_frame():
    views, _ = make_blobs(spread=2.0)
    evaluations = Tuned(range(2, 5), budget="small", random_state=0).fit(views).evaluations_
    stored = json.loads(json.dumps([asdict(each) for each in evaluations]))
    plain = [each | {"steps": tuple(each["steps"]), "kappa": tuple(each["kappa"])} for each in stored]
    assert tuple(EvaluatedSetting(**each) for each in plain) == evaluations
    table = pd.DataFrame(evaluations)
    assert list(table) == [field.name for field in fields(EvaluatedSetting)]
    assert set(table["n_clusters"]) == {2, 3, 4}
    assert table[list(MEASURES)].notna().all(axis=None)


def test_the_same_seed_gives_the_same_model():
    views, _ = make_blobs(spread=0.8)
    first, second = (Tuned(3, budget="small", random_state=4).fit(views) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.evaluations_ == second.evaluations_
    assert first.reason_ == second.reason_
    assert clone(first).get_params() == first.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict(views), first.labels_)


def test_a_stacked_table_is_tuned_like_its_views():
    views, _ = make_blobs(spread=2.0)
    X, layout = stack_views(views)
    stacked = Tuned(3, budget="small", views=layout, random_state=0).fit(X)
    np.testing.assert_array_equal(stacked.labels_, Tuned(3, budget="small", random_state=0).fit(views).labels_)


def test_the_reason_of_one_view_does_not_mention_agreement():
    views, truth = make_blobs(spread=8.0)
    model = Tuned("auto", budget="small", random_state=0).fit(views["a"])
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert "agree" not in model.reason_


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]])
def test_one_cluster_needs_no_selection(tmp_path, names):
    views, _ = make_blobs(spread=8.0)
    views = {name: views[name] for name in names}
    model = Tuned(1, random_state=0).fit(views)
    assert set(model.labels_) == {0}
    assert model.evaluations_ == ()
    assert model.reason_ == "One cluster needs no selection of settings."
    assert summarize(model, views).tuning is None
    save(model, tmp_path / "one.safetensors")
    again = load(tmp_path / "one.safetensors")
    np.testing.assert_array_equal(again.predict(views), model.labels_)
    assert again.evaluations_ == ()


def test_noise_has_one_cluster_unless_another_number_is_given(tmp_path):
    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(200, 6)), "b": rng.normal(size=(200, 9))}
    model = Tuned("auto", budget="small", random_state=0).fit(views)
    assert model.n_clusters_ == 1
    assert set(model.labels_) == set(model.predict(views)) == {0}
    assert model.validity_.level == "none"
    assert model.reason_.startswith("No cluster structure found. These data show no clusters that a second half")
    selected = model.evaluations_[model.selected_]
    assert selected.n_clusters > 1  # the setting whose clusters are not valid
    inner = model.estimator_
    assert (tuple(inner.steps), str(inner.estimator.kernel)) == (selected.steps, selected.kernel)
    save(model, tmp_path / "noise.safetensors")
    again = load(tmp_path / "noise.safetensors")
    assert again.validity_ == model.validity_
    assert again.final_ == model.final_
    np.testing.assert_array_equal(again.predict(views), model.labels_)
    assert Tuned(range(1, 5), budget="small", random_state=0).fit(views).n_clusters_ == 1
    assert Tuned(range(2, 5), budget="small", random_state=0).fit(views).n_clusters_ > 1
    assert Tuned(3, budget="small", random_state=0).fit(views).validity_.level == "none"


def test_the_measures_of_the_final_fit_are_those_of_all_samples():
    views, _ = make_blobs(600, spread=1.5)
    model = Tuned(3, budget="small", random_state=0).fit(views)
    assert model.final_.n_samples == 600
    assert model.final_.size_entropy == pytest.approx(size_entropy(model.labels_, 3))
    agreements = [adjusted_rand_score(model.labels_, theirs) for theirs in model.view_labels_.values()]
    assert model.final_.agreement == pytest.approx(np.mean(agreements))
    assert model.final_.stability == model.validity_.stability


def test_scikit_learns_checks_pass():
    check_estimator(Tuned(2, budget="small", random_state=0), on_skip=None)


def test_a_view_without_differences_is_refused_by_name():
    views, _ = make_blobs(spread=8.0)
    with pytest.raises(InputError, match="view 'flat' has the same values in all 90 samples; drop the view"):
        Tuned(3, random_state=0).fit(views | {"flat": np.ones((90, 2))})
    with pytest.raises(InputError, match="n_samples=1 is too few"):
        Tuned("auto").fit(np.ones((1, 3)))


@pytest.mark.filterwarnings("ignore:the views .* have the same values")
def test_too_many_samples_for_memory_point_to_fixed_size(monkeypatch):
    monkeypatch.setattr("coview.runtime.available_memory", lambda: 1000)
    views, _ = make_blobs(spread=8.0)
    many = {f"{name}{i}": x for i in range(3) for name, x in views.items()}  # too many for sparse fusion
    with pytest.raises(MemoryError, match=r"90 samples of 9 views .* FixedSize\(Tuned"):
        Tuned(3, random_state=0).fit(many)


def test_fixed_size_trains_a_tuned_model_on_some_samples():
    views, truth = make_blobs(2500, spread=8.0)
    model = FixedSize(Tuned("auto", budget="small", random_state=0), n_train=300, random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert model.estimator_.latent_.shape == (300, 2)
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def test_progress_is_called_from_the_first_candidate_to_the_labels():
    views, _ = make_blobs(spread=8.0)
    stages = []
    Tuned(3, budget="small", progress=lambda stage, done, total: stages.append(stage), random_state=0).fit(views)
    assert stages[0].startswith("candidates on")
    assert "weights of views" in stages
    assert stages[-1] == "labels"


@pytest.mark.parametrize(("verbose", "n_lines"), [(0, 0), (False, 0), (1, 3), (True, 3)])
def test_verbose_prints_the_stages_of_the_search_and_the_selection(verbose, n_lines, capsys):
    views, _ = make_blobs(spread=8.0)
    model = Tuned(3, budget="small", verbose=verbose, random_state=0).fit(views)
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == n_lines
    assert printed == "" or printed.endswith(f"[Tuned] weights of views: 3 of 3\n[Tuned] {model.reason_}\n")


def test_a_higher_verbose_prints_each_candidate(capsys):
    views, _ = make_blobs(spread=8.0)
    Tuned(3, budget="small", verbose=2, random_state=0).fit(views)
    assert "[Tuned] candidates on 90 samples: 1 of " in capsys.readouterr().out


def test_what_a_fit_prints_is_not_saved(tmp_path):
    views, _ = make_blobs(spread=8.0)
    model = Tuned(3, budget="small", verbose=1, random_state=0).fit(views)
    again = load(save(model, tmp_path / "model.safetensors"))
    assert again.verbose == 0
    np.testing.assert_array_equal(again.predict(views), model.labels_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_clusters": 0}, "at least 1"),
        ({"n_clusters": 2.5}, "n_clusters=2.5: expected an integer of at least 1, 'auto', or several integers"),
        ({"n_clusters": "many"}, "n_clusters='many': expected an integer of at least 1, 'auto', or several"),
        ({"n_clusters": []}, "an integer of at least 1"),
        ({"n_clusters": 3.0}, "expected an integer"),
        ({"n_clusters": True}, "n_clusters=True: expected an integer"),
        ({"n_clusters": [2, True]}, "an integer of at least 1"),
        ({"n_clusters": 1000}, "too few for n_clusters=1000"),
        ({"budget": ["small"]}, "budget .'small'. is unknown"),
        ({"verbose": "yes"}, "verbose='yes': expected a number of at least 0"),
        ({"budget": "huge"}, "budget 'huge' is unknown. Known: small, full"),
    ],
)
def test_bad_settings_get_one_clear_sentence(settings, words):
    views, _ = make_blobs(spread=8.0)
    model = Tuned(**{"n_clusters": 3} | settings)
    with pytest.raises(InputError, match=words):
        model.fit(views)
    with pytest.raises(NotFittedError):
        model.predict(views)


def test_few_samples_can_be_tuned():
    views, _ = make_blobs(9, spread=8.0)
    model = Tuned("auto", random_state=0).fit(views)
    assert 2 <= model.n_clusters_ <= 4


def test_the_views_of_the_caller_are_not_changed():
    views, _ = make_blobs(spread=2.0)
    before = {name: x.copy() for name, x in views.items()}
    Tuned(3, budget="small", random_state=0).fit(views)
    for name, x in views.items():
        np.testing.assert_array_equal(x, before[name])


def test_the_selected_setting_does_not_depend_on_the_seed():
    views, truth = digits_views()
    models = [Tuned(10, budget="small", random_state=seed).fit(views) for seed in range(3)]
    assert len({model.evaluations_[model.selected_] for model in models}) == 1
    assert all(adjusted_rand_score(truth, model.labels_) > 0.71 for model in models)
