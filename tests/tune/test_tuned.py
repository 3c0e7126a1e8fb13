"""Tuned: the consensus of several models, and the number of clusters that is selected."""

import json
import pickle
from dataclasses import asdict, fields
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from coview import Consensus, FixedSize, InputError, Tuned, as_views, load, save, stack_views, summarize
from coview.core.agreement import size_entropy
from coview.core.select import draw_rows
from coview.core.tiles import SymmetricTiles
from coview.datasets import digits_views
from coview.formats import decimals
from coview.report.sentences import overview
from coview.tune.models import models_of
from coview.tune.record import CONSENSUS, EvaluatedModel, evaluated_models, evaluated_numbers
from tests.conftest import make_blobs


def test_clear_clusters_are_found_with_their_number():
    views, truth = make_blobs(spread=8.0)
    model = Tuned("auto", random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_the_same_seed_gives_the_same_model():
    views, _ = make_blobs(spread=0.8)
    first, second = (Tuned(3, random_state=4).fit(views) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.evaluations_ == second.evaluations_
    assert first.reason_ == second.reason_
    assert clone(first).get_params() == first.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict(views), first.labels_)


def test_a_stacked_table_is_tuned_like_its_views():
    views, _ = make_blobs(spread=2.0)
    X, layout = stack_views(views)
    stacked = Tuned(3, views=layout, random_state=0).fit(X)
    np.testing.assert_array_equal(stacked.labels_, Tuned(3, random_state=0).fit(views).labels_)


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]])
def test_one_cluster_needs_no_selection(tmp_path, names):
    views, _ = make_blobs(spread=8.0)
    views = {name: views[name] for name in names}
    model = Tuned(1, random_state=0).fit(views)
    assert set(model.labels_) == {0}
    assert model.evaluations_ == ()
    assert model.reason_ == "One cluster needs no selection."
    assert summarize(model, views).tuning is None
    save(model, tmp_path / "one.safetensors")
    again = load(tmp_path / "one.safetensors")
    np.testing.assert_array_equal(again.predict(views), model.labels_)
    assert again.evaluations_ == ()


def test_noise_has_one_cluster_unless_another_number_is_given(tmp_path):
    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(200, 6)), "b": rng.normal(size=(200, 9))}
    model = Tuned("auto", random_state=0).fit(views)
    assert model.n_clusters_ == 1
    assert set(model.labels_) == set(model.predict(views)) == {0}
    assert model.validity_.level == "none"
    assert model.reason_.startswith("No cluster structure found. These data show no clusters that a second half")
    selected = model.evaluations_[model.selected_]
    assert selected.n_clusters > 1  # the number whose clusters are not valid
    assert f"The best of several clusters would be {selected.n_clusters} clusters, the consensus" in model.reason_
    assert "lack views" not in model.reason_
    assert isinstance(model.estimator_, Consensus)
    save(model, tmp_path / "noise.safetensors")
    again = load(tmp_path / "noise.safetensors")
    assert again.validity_ == model.validity_
    assert again.final_ == model.final_
    np.testing.assert_array_equal(again.predict(views), model.labels_)
    assert Tuned(range(1, 5), random_state=0).fit(views).n_clusters_ == 1
    assert Tuned(range(2, 5), random_state=0).fit(views).n_clusters_ > 1
    assert Tuned(3, random_state=0).fit(views).validity_.level == "none"


def test_scikit_learns_checks_pass():
    check_estimator(Tuned(2, random_state=0), on_skip=None)


def test_a_view_without_differences_is_refused_by_name():
    views, _ = make_blobs(spread=8.0)
    with pytest.raises(InputError, match="view 'flat' has the same values in all 90 samples; drop the view"):
        Tuned(3, random_state=0).fit(views | {"flat": np.ones((90, 2))})
    with pytest.raises(InputError, match="n_samples=1 is too few"):
        Tuned("auto").fit(np.ones((1, 3)))


def test_fixed_size_trains_a_tuned_model_on_some_samples():
    views, truth = make_blobs(2500, spread=8.0)
    model = FixedSize(Tuned("auto", random_state=0), n_train=300, random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert len(model.estimator_.labels_) == 300
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def test_what_a_fit_prints_is_not_saved(tmp_path):
    views, _ = make_blobs(spread=8.0)
    model = Tuned(3, verbose=1, random_state=0).fit(views)
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
        ({"verbose": "yes"}, "verbose='yes': expected a number of at least 0"),
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
    Tuned(3, random_state=0).fit(views)
    for name, x in views.items():
        np.testing.assert_array_equal(x, before[name])


def test_the_consensus_is_fitted_on_all_samples_with_the_weights_of_the_search():
    views, _ = make_blobs(700, spread=2.0)
    model = Tuned(3, random_state=0).fit(views)
    assert {each.n_samples for each in model.evaluations_} == {600}
    assert isinstance(model.estimator_, Consensus)
    assert len(model.labels_) == len(model.scores_) == 700
    assert model.transform(views).shape == model.scores_.shape
    assert set(model.predict(views, per_view=True)) == set(model.view_labels_) == set(views)
    weights = [each.weight for each in model.evaluations_ if each.model != CONSENSUS]
    assert model.estimator_.weights == weights
    assert max(weights) == 1.0
    np.testing.assert_array_equal(clone(model.estimator_).fit(views).labels_, model.labels_)


def test_the_selected_number_has_the_largest_criterion():
    views, _ = make_blobs(200, spread=1.2)
    model = Tuned(range(2, 7), random_state=0).fit(views)
    numbers = evaluated_numbers(model.evaluations_)
    assert [each.n_clusters for each in numbers] == [2, 3, 4, 5, 6]
    assert model.evaluations_[model.selected_] == max(numbers, key=lambda each: each.criterion)
    assert model.n_clusters_ == model.evaluations_[model.selected_].n_clusters
    assert all(each.criterion is None for each in model.evaluations_ if each.model != CONSENSUS)


def test_the_reason_names_the_models_the_next_numbers_and_the_measures():
    views, _ = make_blobs(spread=8.0)
    model = Tuned([2, 3, 4], random_state=0).fit(views)
    selected = model.evaluations_[model.selected_]
    others = sorted((e for e in evaluated_numbers(model.evaluations_) if e != selected), key=lambda e: -e.criterion)
    models = [each for each in evaluated_models(model.evaluations_, 3) if each.model != CONSENSUS]
    named = ", ".join(f"{each.model} ({each.weight:.2f})" for each in models)
    next_best = " and ".join(f"{each.n_clusters} ({decimals(each.criterion)})" for each in others)
    assert model.reason_ == (
        f"3 clusters, the consensus of {len(models)} models with weights: {named}. Of 2 to 4 clusters, 3 has the "
        f"largest criterion ({decimals(selected.criterion)}), before {next_best}. On 90 samples of the search: "
        f"agreement between models {decimals(selected.model_agreement)}, stability {decimals(selected.stability)}, "
        f"size entropy {decimals(selected.size_entropy)}. On all 90 samples: agreement between models "
        f"{decimals(model.final_.model_agreement)}, size entropy {decimals(model.final_.size_entropy)}, "
        f"split-half stability {decimals(model.validity_.stability)}."
    )
    assert " Of 2 and 4 clusters, " in Tuned([2, 4], random_state=0).fit(views).reason_
    assert "largest criterion" not in Tuned(3, random_state=0).fit(views).reason_


def test_the_reason_says_that_the_largest_number_is_selected():
    views, _ = make_blobs(spread=8.0)
    limit = "; 3 is the largest number of clusters that was compared, so compare larger numbers, too."
    model = Tuned([2, 3], random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert limit in model.reason_
    assert limit.removeprefix("; ") in " ".join(overview(summarize(model, views)).parts["What to check"])
    for numbers in (3, [3, 4]):
        assert "is the largest number" not in Tuned(numbers, random_state=0).fit(views).reason_


def test_a_pair_of_numbers_that_is_probably_meant_as_a_range_gives_a_warning():
    views, _ = make_blobs(spread=8.0)
    with pytest.warns(
        UserWarning,
        match=r"n_clusters=\(2, 30\) compares 2 and 30 clusters only; give range\(2, 31\) for all .*, or \[2, 30\]",
    ) as given:
        Tuned((2, 30), random_state=0).fit(views)
    assert given[0].filename == __file__
    for numbers in ([2, 4], (2, 3), (2, 3, 5)):  # nothing is probably meant otherwise
        Tuned(numbers, random_state=0).fit(views)


def test_the_evaluations_are_plain_values_and_become_a_data_frame():
    views, _ = make_blobs(spread=2.0)
    evaluations = Tuned(range(2, 5), random_state=0).fit(views).evaluations_
    stored = json.loads(json.dumps([asdict(each) for each in evaluations]))
    assert tuple(EvaluatedModel(**each) for each in stored) == evaluations
    table = pd.DataFrame(evaluations)
    assert list(table) == [field.name for field in fields(EvaluatedModel)]
    assert set(table["n_clusters"]) == {2, 3, 4}
    assert table[["stability", "model_agreement", "size_entropy", "eigengap"]].notna().all(axis=None)


def test_the_measures_of_the_final_fit_are_those_of_all_samples():
    views, _ = make_blobs(700, spread=1.5)
    model = Tuned(3, random_state=0).fit(views)
    assert model.final_.n_samples == 700
    assert model.final_.size_entropy == pytest.approx(size_entropy(model.labels_, 3))
    agreements = [adjusted_rand_score(a, b) for a, b in combinations(model.estimator_.model_labels(), 2)]
    assert model.final_.model_agreement == pytest.approx(np.mean(agreements))


def test_only_models_of_all_columns_fit_many_views_if_memory_is_short(monkeypatch):
    views, truth = make_blobs(spread=8.0)
    rng = np.random.default_rng(0)
    many = {f"{name}{i}": x + 0.1 * rng.normal(size=x.shape) for i in range(3) for name, x in views.items()}
    assert all(
        name.startswith("stacked") == (free < 1e6) for free in (1e3,) for name in _names(monkeypatch, many, free)
    )
    model = Tuned(3, random_state=0).fit(many)
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def test_one_cluster_of_many_views_needs_no_dense_matrix(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    views = {f"v{i}": rng.normal(size=(300, 2)) for i in range(9)}
    too_large = 3 * SymmetricTiles.nbytes(300, np.float32)  # the matrices of nine views
    monkeypatch.setattr("coview.runtime.available_memory", lambda: too_large - 1)
    for n_clusters in (1, [1, 2, 3]):
        model = Tuned(n_clusters, random_state=0).fit(views)
        assert model.n_clusters_ == 1
        assert set(model.labels_) == set(model.predict(views)) == {0}
        again = load(save(model, tmp_path / "one.safetensors"))
        assert set(again.recluster(views).labels_) == {0}
        assert summarize(again, views).n_clusters == 1
    assert {each.model for each in model.evaluations_} == {"stacked", CONSENSUS}
    assert "the consensus of 1 model with weights: stacked (1.00)." in model.reason_


def test_only_evaluated_models_are_in_the_consensus():
    views, _ = make_blobs(1500, widths=(4, 20), spread=8.0)
    drawn = draw_rows(1500, 600, np.random.default_rng(0))  # as the search draws them
    views["b"][drawn] = 0
    assert len(models_of(as_views(views), 3)) == 4
    with pytest.warns(UserWarning, match="on all 1500 samples the clusters are worse"):
        model = Tuned(3, random_state=0).fit(views)
    evaluated = {each.model: each.weight for each in model.evaluations_ if each.model != CONSENSUS}
    assert list(evaluated) == ["each view", "stacked"]
    assert model.estimator_.weights == list(evaluated.values())
    assert model.reason_.startswith("3 clusters, the consensus of 2 models with weights: each view (")


def test_only_models_of_all_samples_are_evaluated(monkeypatch):
    views, _ = make_blobs(700, spread=8.0)
    many = {f"{name}{i}": x + i * np.eye(*x.shape) for i in range(3) for name, x in views.items()}
    monkeypatch.setattr(
        "coview.tune.models.fits_in_memory", lambda size: size < 3 * SymmetricTiles.nbytes(700, np.float32)
    )
    assert "each view" in models_of(as_views(many).take(np.arange(600)), 3)
    model = Tuned(3, random_state=0).fit(many)
    evaluated = [each.model for each in model.evaluations_ if each.model != CONSENSUS]
    assert all(name.startswith("stacked") for name in evaluated)
    assert len(evaluated) == len(model.estimator_.estimators_)


def test_an_error_says_so_if_no_evaluated_model_fits_into_memory_any_more(monkeypatch):
    views, _ = make_blobs(spread=8.0)
    monkeypatch.setattr("coview.tune.tuned.models_of", lambda *given, **settings: {})
    with pytest.raises(MemoryError, match=r"the models of 90 samples do not fit into memory \(each view"):
        Tuned(3, random_state=0).fit(views)


def _names(monkeypatch, views, free):
    monkeypatch.setattr("coview.tune.models.fits_in_memory", lambda size: size < free)
    return list(models_of(as_views(views), 3))


def test_progress_is_called_from_the_first_model_to_the_labels():
    views, _ = make_blobs(spread=8.0)
    stages = []
    Tuned(3, progress=lambda stage, done, total: stages.append((stage, done, total)), random_state=0).fit(views)
    assert stages[0][0] == "models of 90 samples"
    search = [(done, total) for stage, done, total in stages if stage == "models of 90 samples"]
    assert search[-1] == (len(search), len(search))
    assert "labels" in [stage for stage, *_ in stages]
    assert stages[-1] == ("validity", *[stages[-1][2]] * 2)


@pytest.mark.parametrize(("verbose", "n_lines"), [(0, 0), (False, 0), (1, 2), (True, 2)])
def test_verbose_prints_the_stages_of_the_search_and_the_selection(verbose, n_lines, capsys):
    views, _ = make_blobs(spread=8.0)
    model = Tuned(3, verbose=verbose, random_state=0).fit(views)
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == n_lines
    assert printed == "" or printed.endswith(f"\n[Tuned] {model.reason_}\n")


def test_a_higher_verbose_prints_each_model(capsys):
    views, _ = make_blobs(spread=8.0)
    Tuned(3, verbose=2, random_state=0).fit(views)
    assert "[Tuned] models of 90 samples: 1 of " in capsys.readouterr().out


def test_the_selection_does_not_depend_on_the_seed_or_the_number_of_threads():
    views, _ = make_blobs(120, spread=1.0)
    models = [
        Tuned(range(2, 6), random_state=seed, n_jobs=n_jobs).fit(views) for seed, n_jobs in ((0, 1), (1, 1), (0, 2))
    ]
    assert len({model.evaluations_ for model in models}) == 1
    np.testing.assert_array_equal(models[0].labels_, models[2].labels_)


def test_the_demonstration_finds_the_digits():
    views, truth = digits_views()
    assert adjusted_rand_score(truth, Tuned(10, random_state=0).fit(views).labels_) > 0.8


def test_recluster_learns_the_clusters_again():
    views, _ = make_blobs(120, spread=8.0)
    model = Tuned(3, random_state=0).fit(views)
    before = model.labels_.copy()
    assert adjusted_rand_score(model.recluster(views).labels_, before) == 1.0
