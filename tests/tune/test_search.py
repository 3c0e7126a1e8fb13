"""The models of a consensus, the criterion of the number of clusters, and the search."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coview import Consensus, FuzzyGraph, InputError, NeighborGraph, TMvKSCR, as_views
from coview.core.assign import Directions
from coview.methods.nested import nested_models
from coview.preprocess.profile import ViewProfile
from coview.tune.criterion import Constants, criterion, model_weights
from coview.tune.models import models_of
from coview.tune.record import CONSENSUS, evaluated_models, evaluated_numbers
from coview.tune.search import Search
from tests.conftest import make_blobs


def blobs(n=90, spread=8.0):
    views, truth = make_blobs(n, spread=spread)
    return as_views(views), truth


def run(views, numbers=(3,), n_jobs=1):
    return Search.run(views, numbers, 0, n_jobs, lambda stage, done, total: None)


# ---------------------------------------------------------------- profiles and models


def test_profiles_distinguish_words_counts_and_measurements():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.2, size=(50, 40)).astype(float)
    assert ViewProfile.of(counts) == ViewProfile(no_direction=False, word_counts=True)
    assert ViewProfile.of(sp.csr_array(counts)) == ViewProfile.of(counts)
    assert ViewProfile.of(rng.normal(size=(50, 40))) == ViewProfile(no_direction=False, word_counts=False)
    assert ViewProfile.of(rng.random((50, 3))).no_direction


def test_columns_in_different_units_have_no_direction():
    rng = np.random.default_rng(0)
    measured = rng.normal(size=(50, 20))
    for units in ([1000.0], [1000.0, 800.0]):
        mixed = measured * np.append(units, np.ones(20 - len(units)))
        assert ViewProfile.of(mixed).no_direction
        assert ViewProfile.of(1e200 * mixed).no_direction
        assert not ViewProfile.of(sp.csr_array(mixed)).no_direction
    assert not ViewProfile.of(measured * np.append([4.0, 4.0], np.ones(18))).no_direction
    words = rng.poisson(0.2, size=(50, 20)) * np.append([1000.0], np.ones(19))
    assert not ViewProfile.of(words).no_direction


def test_a_view_of_zeros_has_a_profile():
    zeros = ViewProfile(no_direction=False, word_counts=True)
    assert ViewProfile.of(sp.csr_array((5, 20))) == ViewProfile.of(np.zeros((5, 20))) == zeros


def test_the_models_depend_on_the_profile_of_each_view():
    rng = np.random.default_rng(0)
    words, measured, few = rng.poisson(0.2, (30, 40)) * 9.0, rng.normal(size=(30, 20)), rng.normal(size=(30, 2))
    models = models_of(as_views([words, measured, few]), 4, random_state=7)
    assert list(models) == [
        "each view",
        "stacked",
        "each view (standardised)",
        "stacked (standardised)",
    ]
    assert models["stacked"].steps == ["l2", "l2", "standard+block"]
    assert models["stacked (standardised)"].steps == ["l2", "standard+block", "standard+block"]
    kernels = models["each view (standardised)"].kernel
    assert [isinstance(kernel, FuzzyGraph) for kernel in kernels.values()] == [False, True, True]
    assert models["each view"].n_clusters == models["stacked"].estimator.estimator.n_clusters == 5  # 4 components


@pytest.mark.parametrize("width", [2, 40])
def test_models_that_would_be_the_same_are_left_out(width):
    x = np.random.default_rng(0).poisson(0.2, (30, width)).astype(float)
    assert list(models_of(as_views([x, x + 1.0 if width == 2 else x]), 2)) == ["each view", "stacked"]


# ---------------------------------------------------------------- criterion


def test_weights_grow_with_the_stability():
    assert model_weights([0.8, 0.4, -0.2]) == pytest.approx([1.0, 0.25, (0.01 / 0.8) ** 2])
    assert model_weights([None, None]) == [1.0, 1.0]


def test_the_criterion_grows_with_the_logarithm_of_the_number_and_its_eigengap():
    numbers, same = np.array([2, 4]), np.array([0.5, 0.5])
    constants = Constants(size_entropy_power=1.5, per_log_cluster=0.75, per_gap=0.5)
    flat = criterion(numbers, same, same, np.ones(2), np.zeros(2), constants=constants)
    np.testing.assert_allclose(flat, 0.5 * (1 + 0.75 * np.log(numbers)))
    steep = criterion(numbers, same, same, np.ones(2), np.array([0.3, 0.15]), constants=constants)
    np.testing.assert_allclose(steep / flat, [1.5, 1.25])
    uneven = criterion(numbers, same, same, np.array([1.0, 0.25]), np.zeros(2), constants=constants)
    np.testing.assert_allclose(uneven / flat, [1.0, 0.125])
    assert (criterion(numbers, -same, same * 0, np.ones(2), np.zeros(2)) == 0).all()


# ---------------------------------------------------------------- search


def test_the_measures_are_those_of_the_fitted_models():
    views, _ = blobs(150, spread=1.2)
    search = run(views)
    assert len(search.subsets) == 6
    assert {len(subset) for subset in search.subsets} == {105}
    evaluations = search.evaluate([3]).evaluations
    first, consensus = evaluations[0], evaluations[-1]

    def labels(model, rows):
        method = list(nested_models(model.fit(rows)))[-1]
        scores = method.scores_ * (method.eigenvalues_ / method.eigenvalues_[0]).clip(0) ** 3
        return Directions().fit(scores, 3, np.random.default_rng(0)).assign(scores)

    models = models_of(views, 3, random_state=0)
    whole = labels(models["each view"], views)
    stability = [
        adjusted_rand_score(whole[subset], labels(models["each view"], views.take(subset))) for subset in search.subsets
    ]
    assert first.model == "each view"
    assert first.stability == pytest.approx(np.mean(stability), abs=0.03)  # initialisations of k-means differ
    assert first.stability_spread == pytest.approx(np.std(stability, ddof=1), abs=0.03)
    others = [labels(model, views) for name, model in models.items() if name != "each view"]
    assert first.model_agreement == pytest.approx(
        np.mean([adjusted_rand_score(whole, each) for each in others]), abs=0.03
    )
    assert consensus.model == CONSENSUS
    weights = [each.weight for each in evaluations[:-1]]
    together = Consensus(list(models.values()), 3, weights=weights, random_state=0).fit(views)
    assert adjusted_rand_score(search.labels(evaluations, 3), together.labels_) > 0.95


def test_the_spread_of_the_criterion_is_that_over_the_subsets():
    views, _ = blobs(150, spread=1.2)
    search, numbers = run(views), [2, 3]
    result = search.evaluate(numbers)
    found = evaluated_numbers(result.evaluations)
    by_subset = []
    for part, rows in enumerate(search.subsets, start=1):
        stability = []
        for each in found:
            weights = {e.model: e.weight for e in evaluated_models(result.evaluations, each.n_clusters)}
            labels = search._consensus(part, weights, each.n_clusters)
            stability.append(adjusted_rand_score(np.array(result.labels[each.n_clusters])[rows], labels))
        others = ([getattr(each, name) for each in found] for name in ("model_agreement", "size_entropy", "eigengap"))
        by_subset.append(criterion(np.array(numbers), *map(np.array, (stability, *others))))
    np.testing.assert_allclose([each.criterion for each in found], np.mean(by_subset, axis=0))
    np.testing.assert_allclose([each.criterion_spread for each in found], np.std(by_subset, axis=0, ddof=1))


def test_one_fit_serves_all_numbers_of_clusters():
    views, _ = blobs(spread=2.0)
    together = run(views, [2, 3, 5]).evaluate([2, 3, 5]).evaluations
    for k in (2, 3, 5):
        alone = run(views, [k, k + 1]).evaluate([k]).evaluations
        for one, other in zip(evaluated_models(together, k), alone, strict=True):
            assert one.model == other.model
            assert one.stability == pytest.approx(other.stability, abs=0.02)
            assert one.eigengap == pytest.approx(other.eigengap, rel=1e-6)


def test_clear_clusters_have_the_largest_measures_and_their_number_is_selected():
    views, _ = blobs()
    found = run(views, range(2, 8)).evaluate(range(2, 8))
    assert found.n_clusters == 3
    selected = found.evaluations[found.selected]
    assert selected.model == CONSENSUS
    assert selected.stability == selected.model_agreement == 1.0
    assert set(found.weights.values()) == {1.0}


def test_a_view_that_is_constant_among_the_samples_drawn_is_left_out():
    views, _ = blobs()
    flag = np.zeros((90, 9))
    with_flag = run(as_views({"flag": flag, **views})).evaluate([3])
    assert with_flag == run(views).evaluate([3])
    with pytest.raises(InputError, match="all views are constant among 90 samples"):
        run(as_views([flag, sp.csr_array(flag)]))


def test_a_model_that_cannot_be_fitted_is_recorded_and_has_no_weight(monkeypatch):
    def refuse(self, *given):
        raise InputError("too large")

    views, _ = blobs()
    monkeypatch.setattr(NeighborGraph, "against", refuse)
    found = run(views).evaluate([3])
    failed = {each.model: each.error for each in found.evaluations if each.error is not None}
    assert failed == {"stacked": "too large"}
    assert set(found.weights) == {"each view"}
    monkeypatch.setattr(FuzzyGraph, "against", refuse)
    with pytest.raises(InputError, match="none of 2 models can cluster these views: too large"):
        run(views)


def test_warnings_of_the_search_are_not_shown():
    views = as_views([np.repeat(np.eye(9) + 1, 5, axis=0)[:, :9]] * 2)  # nine distinct samples
    with pytest.warns(ConvergenceWarning):
        TMvKSCR(12, random_state=0).fit(views)
    run(views, [12]).evaluate([12])


def test_the_search_does_not_depend_on_data_frame_output_or_threads():
    views, _ = blobs(spread=1.0)
    plain = run(views).evaluate([3])
    with config_context(transform_output="pandas"):
        assert run(views, n_jobs=2).evaluate([3]) == plain


def test_few_samples_have_no_subsets():
    views = blobs()[0].take(np.array([0, 1, 40, 41, 80, 81]))
    found = run(views).evaluate([3])
    assert all(each.stability is None for each in found.evaluations)
    assert set(found.weights.values()) == {1.0}


def test_more_clusters_need_more_samples():
    views, _ = blobs(1000, spread=1.0)
    assert len(run(views, [3]).rows) == 600
    assert len(run(views, [40]).rows) == 800
