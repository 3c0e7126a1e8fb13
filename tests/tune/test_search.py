"""Candidates from the profiles of the views, their evaluation, and the search."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coview import RBF, InputError, NeighborGraph, TMvKSCR, as_views
from coview.compose import Preprocessed
from coview.core.agreement import size_entropy
from coview.core.assign import Directions
from coview.preprocess.profile import ViewProfile
from coview.tune.candidates import Candidate, affordable, candidates
from coview.tune.criterion import (
    Evaluation,
    compare_numbers,
    consensus_values,
    criterion_values,
    line_fit,
    membership_strength,
)
from coview.tune.evaluation import Evaluator
from coview.tune.record import EvaluatedSetting
from coview.tune.search import ROUNDS, Round, Search
from tests import naive
from tests.conftest import make_blobs


def blobs(n=90, spread=8.0):
    views, truth = make_blobs(n, spread=spread)
    return as_views(views), truth


def evaluation(labels, n_clusters=2, stability=0.5, agreement=0.5):
    labels, candidate = np.asarray(labels), Candidate(("l2",), RBF(), 1.0, (1.0,))
    measures = {"stability": stability, "agreement": agreement, "size_entropy": size_entropy(labels, n_clusters)}
    record = EvaluatedSetting(1, len(labels), candidate.steps, "RBF()", 1.0, (1.0,), n_clusters, **measures)
    return Evaluation(candidate, labels, record)


# ---------------------------------------------------------------- profiles and candidates


def test_profiles_distinguish_words_counts_and_measurements():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.2, size=(50, 40)).astype(float)
    assert ViewProfile.of(counts) == ViewProfile(no_direction=False, word_counts=True, wide_range=counts.max() > 2)
    assert ViewProfile.of(sp.csr_array(counts)) == ViewProfile.of(counts)
    assert ViewProfile.of(rng.normal(size=(50, 40))) == ViewProfile(False, word_counts=False, wide_range=False)
    assert ViewProfile.of(100 * rng.random((50, 40))) == ViewProfile(False, word_counts=False, wide_range=True)
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
    assert {c.steps for c in candidates(as_views([mixed, measured]))} == {("standard", "l2")}


def test_a_view_of_zeros_has_a_profile():
    assert (
        ViewProfile.of(sp.csr_array((5, 20)))
        == ViewProfile.of(np.zeros((5, 20)))
        == ViewProfile(False, word_counts=True, wide_range=False)
    )


def test_candidates_depend_on_the_profile_of_each_view():
    rng = np.random.default_rng(0)
    words, measured, few = rng.poisson(0.2, (30, 40)) * 9.0, rng.normal(size=(30, 20)), rng.normal(size=(30, 2))
    pool = candidates(as_views([words, measured, few]))
    assert {c.steps for c in pool} == {
        ("l2", "l2", "standard"),
        ("tfidf+l2", "l2", "standard"),
        ("log1p+l2", "l2", "standard"),
    }
    assert {type(c.kernel) for c in pool} == {NeighborGraph, RBF}
    assert all(c.kappa == (1.0, 1.0, 1.0) for c in pool)
    assert len(set(pool)) == len(pool)


def test_rules_that_give_the_same_steps_count_once():
    alike = candidates(as_views([np.random.default_rng(0).normal(size=(30, 20))] * 2))
    assert {c.steps for c in alike} == {("l2", "l2")}


def test_only_graphs_are_affordable_if_memory_is_short(monkeypatch):
    views, _ = blobs()
    monkeypatch.setattr("coview.runtime.available_memory", lambda: 1000)
    assert {type(c.kernel) for c in candidates(views) if affordable(c, 90)} == {NeighborGraph}
    monkeypatch.setattr("coview.runtime.available_memory", lambda: None)
    assert all(affordable(c, 10**9) for c in candidates(views))


def test_one_view_has_no_rho_to_select():
    assert {c.rho for c in candidates(as_views([np.random.default_rng(0).normal(size=(30, 20))]))} == {1.0}


# ---------------------------------------------------------------- criterion


def test_line_fit_equals_the_reference_implementation_and_is_one_on_lines():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(40, 3)), rng.integers(4, size=40)
    assert line_fit(scores, labels, np.ones(40)) == pytest.approx(naive.line_fit(scores, labels))
    rays = rng.random((40, 1)) * rng.normal(size=(4, 3))[labels]
    even = min(np.bincount(labels)) / max(np.bincount(labels))
    assert line_fit(rays, labels, np.ones(40)) == pytest.approx(0.75 + 0.25 * even)
    two, degrees = rng.normal(size=(40, 1)), rng.random(40)
    expected = naive.line_fit(np.column_stack([two, degrees]), labels % 2)
    assert line_fit(two, labels % 2, degrees) == pytest.approx(expected)
    assert line_fit(np.ones((4, 2)), np.zeros(4, int), np.ones(4)) == 1.0


def test_membership_strength_equals_the_reference_implementation():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 3))
    labels = rng.integers(4, size=40)
    scores = centres[labels] + 0.3 * rng.normal(size=(40, 3))
    assert membership_strength(scores, labels, centres) == pytest.approx(
        naive.membership_strength(scores, labels, centres)
    )


def test_consensus_is_the_mean_agreement_with_the_others():
    found = [evaluation([0, 0, 1, 1]), evaluation([1, 1, 0, 0]), evaluation([0, 1, 0, 1])]
    apart = adjusted_rand_score([0, 0, 1, 1], [0, 1, 0, 1])
    np.testing.assert_allclose(consensus_values(found), [(1 + apart) / 2, (1 + apart) / 2, apart])
    np.testing.assert_array_equal(consensus_values(found[:1]), [1.0])


def test_equal_clusters_that_agree_less_are_preferred_to_one_large_cluster():
    uneven = evaluation([0] * 19 + [1], stability=1.0, agreement=1.0)
    even = evaluation([0, 1] * 10, stability=0.5, agreement=0.5)
    assert criterion_values([uneven, even]).argmax() == 1


def test_the_agreement_of_a_single_view_with_itself_does_not_count():
    one = [evaluation([0, 1] * 10, agreement=1.0, stability=s) for s in (0.2, 0.4)]
    np.testing.assert_allclose(criterion_values(one), [(0.2 + 1) / 2, (0.4 + 1) / 2])


def test_agreement_below_chance_gives_a_criterion_of_zero():
    found = [evaluation([0, 1] * 10, stability=-0.5), evaluation([0, 0, 1, 1] * 5, stability=-0.5)]
    assert (criterion_values(found) == 0).all()


def test_the_criterion_between_numbers_grows_with_their_logarithm_and_their_eigengap():
    same = {2: np.array([0.5]), 4: np.array([0.5])}
    flat = compare_numbers({2: np.array([0.0]), 4: np.array([0.0])}, same)
    assert flat[4][0] / flat[2][0] == pytest.approx((1 + 0.75 * np.log(4)) / (1 + 0.75 * np.log(2)))
    steep = compare_numbers({2: np.array([0.3]), 4: np.array([0.15])}, same)
    assert steep[2][0] == pytest.approx(1.5 * flat[2][0])
    assert steep[4][0] == pytest.approx(1.25 * flat[4][0])


# ---------------------------------------------------------------- evaluation


def candidate(kernel=None, rho=1.0, views=3):
    return Candidate(("standard",) * views, kernel or NeighborGraph(), rho, (1.0,) * views)


@pytest.mark.parametrize("kernel", [NeighborGraph(), RBF()])
def test_measures_are_those_of_the_fitted_methods(kernel):
    views, _ = blobs(spread=1.5)
    (found,) = Evaluator(views, n_splits=1, seed=3).evaluate(candidate(kernel, rho=0.25), [3])
    model = Preprocessed(TMvKSCR(3, kernel=kernel, rho=0.25, random_state=3), steps="standard").fit(views)

    def labels(scores):
        return Directions(3).fit(scores, 3, np.random.default_rng(3)).assign(scores)

    expected = labels(model.scores_)
    assert adjusted_rand_score(found.labels, expected) == 1.0
    by_view = [
        adjusted_rand_score(expected, labels(scores)) for scores in model.transform(views, per_view=True).values()
    ]
    assert found.record.agreement == pytest.approx(np.mean(by_view))
    assert found.record.eigengap == pytest.approx(_gap(views, kernel), rel=1e-6)
    assert found.record.n_clusters == 3
    assert 0.5 < found.record.stability <= 1
    assert 0 < found.record.line_fit <= 1
    assert 0 < found.record.membership <= 1


def _gap(views, kernel):
    values = Preprocessed(TMvKSCR(4, kernel=kernel, rho=0.25, random_state=0)).fit(views).eigenvalues_
    return values[1] - values[2]


def test_clear_clusters_have_the_largest_measures():
    views, truth = blobs()
    (found,) = Evaluator(views, n_splits=2, seed=0).evaluate(candidate(), [3])
    assert adjusted_rand_score(truth, found.labels) == 1.0
    assert found.record.stability == found.record.agreement == 1.0
    assert found.record.line_fit > 0.9
    assert found.record.membership > 0.9


def test_one_decomposition_serves_all_numbers_of_clusters():
    views, _ = blobs(spread=2.0)
    together = Evaluator(views, n_splits=1, seed=0).evaluate(candidate(RBF()), [2, 3, 5])
    alone = [Evaluator(views, n_splits=1, seed=0).evaluate(candidate(RBF()), [k])[0] for k in (2, 3, 5)]
    for one, other in zip(together, alone, strict=True):
        assert adjusted_rand_score(one.labels, other.labels) == 1.0
        assert one.record.stability == pytest.approx(other.record.stability)
        assert one.record.eigengap == pytest.approx(other.record.eigengap)


def test_gram_matrices_are_computed_once(monkeypatch):
    views, _ = blobs()
    evaluator, made = Evaluator(views, n_splits=1, seed=0), []
    original = RBF.against
    monkeypatch.setattr(RBF, "against", lambda self, *a, **k: made.append(1) or original(self, *a, **k))
    evaluator.evaluate(candidate(RBF(), rho=1.0), [3])
    once = len(made)
    evaluator.evaluate(candidate(RBF(), rho=0.25), [3])
    assert once == len(made) == 3 * 3  # views, times the whole and two halves
    monkeypatch.setattr("coview.tune.evaluation._KEPT_BYTES", 0)
    evaluator.evaluate(candidate(NeighborGraph()), [3])
    evaluator.evaluate(candidate(RBF(), rho=0.25), [3])
    assert len(made) == 2 * once  # released, because they would take too much memory


def test_warnings_of_evaluations_are_not_shown():
    views = as_views([np.repeat(np.eye(3) + 1, 10, axis=0)] * 2)  # three distinct samples
    with pytest.warns(ConvergenceWarning):
        TMvKSCR(6, random_state=0).fit(views)
    (found,) = Evaluator(views, n_splits=1, seed=0).evaluate(candidate(RBF(), views=2), [6])
    assert found.labels.max() == 2


def test_a_view_that_is_constant_among_the_samples_drawn_is_left_out():
    views, truth = blobs()
    flag = np.zeros((90, 9))
    with_flag = as_views({"flag": flag, **views})
    (found,) = Evaluator(with_flag, n_splits=1, seed=0).evaluate(candidate(views=4), [3])
    (without,) = Evaluator(views, n_splits=1, seed=0).evaluate(candidate(views=3), [3])
    np.testing.assert_array_equal(found.labels, without.labels)
    only_flag = Candidate(("standard",) * 4, RBF(), 1.0, (1.0, 0.0, 0.0, 0.0))
    (found,) = Evaluator(with_flag, n_splits=1, seed=0).evaluate(only_flag, [3])
    assert adjusted_rand_score(truth, found.labels) == 1.0
    with pytest.raises(InputError, match="all views are constant among 90 samples"):
        Evaluator(as_views([flag, sp.csr_array(flag)]), n_splits=1, seed=0).evaluate(candidate(views=2), [3])


def test_evaluation_does_not_depend_on_data_frame_output():
    views, truth = blobs()
    with config_context(transform_output="pandas"):
        (found,) = Evaluator(views, n_splits=1, seed=0).evaluate(candidate(), [3])
    assert adjusted_rand_score(truth, found.labels) == 1.0


def test_few_samples_are_not_split_into_halves():
    views = blobs()[0].take(np.array([0, 1, 40, 41, 80, 81]))
    (found,) = Evaluator(views, n_splits=1, seed=0).evaluate(candidate(RBF()), [6])
    assert found.record.stability == found.record.line_fit == found.record.membership == 0.0
    assert found.record.eigengap == 0.0
    assert len(np.unique(found.labels)) == 6


# ---------------------------------------------------------------- search


def test_the_search_goes_from_all_candidates_on_few_samples_to_some_on_more():
    views, truth = blobs(300, spread=2.0)
    calls = []
    rounds = (Round(60, 1, 1.0), Round(120, 1, 0.5))
    found = Search(views, [3], rounds, seed=0, progress=lambda *call: calls.append(call)).run(candidates(views))
    first, second = ([each for each in found.evaluations if each.round == number] for number in (1, 2))
    assert {each.n_samples for each in first} == {60}
    assert {each.n_samples for each in second} == {120}
    even = [each for each in first if set(each.kappa) == {1.0}]  # the others are evaluations of weights
    assert len(even) == len(candidates(views))
    assert len(second) == -(-len(even) // 2)
    best = max(even, key=lambda each: each.criterion)
    assert any((each.steps, each.kernel) == (best.steps, best.kernel) for each in second)
    assert calls[-1] == ("weights of views", 3, 3)
    assert found.n_clusters == 3
    model = Preprocessed(TMvKSCR(3, kernel=found.ranking[0][0].kernel, rho=found.ranking[0][0].rho, random_state=0))
    assert adjusted_rand_score(truth, model.set_params(steps=list(found.ranking[0][0].steps)).fit(views).labels_) > 0.9


def test_the_criterion_of_the_first_round_counts_in_the_last(monkeypatch):
    views = as_views(make_blobs(120, 3)[0])
    one, other = candidate(rho=1.0, views=len(views)), candidate(rho=0.25, views=len(views))
    criteria = {120: {1.0: 0.5, 0.25: 0.9}, 110: {1.0: 0.8, 0.25: 0.7}}  # by number of samples and rho

    def given(evaluations):
        return np.array([criteria[len(e.labels)][e.candidate.rho] for e in evaluations])

    monkeypatch.setattr("coview.tune.search.criterion_values", given)
    found = Search(views, [3], (Round(110, 1, 1.0), Round(120, 1, 1.0)), seed=0).run([one, other])
    assert found.ranking[0][0].rho == 0.25  # 0.7 + 0.9 against 0.8 + 0.5
    monkeypatch.setitem(criteria, 120, {1.0: 0.9, 0.25: 0.5})
    assert (
        Search(views, [3], (Round(110, 1, 1.0), Round(120, 1, 1.0)), seed=0).run([one, other]).ranking[0][0].rho == 1.0
    )
    monkeypatch.setitem(criteria, 120, {1.0: 0.71, 0.25: 0.8})  # the last round alone would select the other
    assert (
        Search(views, [3], (Round(110, 1, 1.0), Round(120, 1, 1.0)), seed=0).run([one, other]).ranking[0][0].rho == 1.0
    )


def test_a_round_without_more_samples_is_left_out():
    views, _ = blobs()
    found = Search(views, [3], ROUNDS["full"], seed=0).run(candidates(views))
    assert {each.round for each in found.evaluations} == {1}


def test_the_number_of_clusters_is_found():
    views, _ = blobs()
    found = Search(views, range(2, 7), (Round(90, 1, 1.0),), seed=0).run(candidates(views))
    assert found.n_clusters == 3
    assert {each.n_clusters for each in found.evaluations if set(each.kappa) == {1.0}} == {2, 3, 4, 5, 6}


@pytest.mark.parametrize("sizes", [(300, 60, 40), (340, 40, 20), (200, 30), (100, 100, 100, 100)])
def test_the_number_of_clear_clusters_of_different_size_is_found(sizes):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    views = as_views([1.5 * rng.normal(size=(len(sizes), 20))[truth] + rng.normal(size=(len(truth), 20)) for _ in "ab"])
    found = Search(views, range(2, 8), (Round(400, 1, 1.0),), seed=0).run(candidates(views))
    assert found.n_clusters == len(sizes)


def test_rounds_have_samples_for_many_clusters():
    views, _ = blobs(300)
    found = Search(views, [40], (Round(50, 1, 1.0),), seed=0).run(candidates(views)[:2])
    assert {each.n_samples for each in found.evaluations} == {200}


def test_a_view_of_noise_never_has_more_weight_than_the_others():
    views, _ = make_blobs(150, spread=1.2)
    views = as_views(views | {"noise": np.random.default_rng(1).normal(size=(150, 30))})
    found = Search(views, [3], (Round(150, 1, 1.0),), seed=0).run([candidate(RBF(), rho=1.0, views=4)])
    weights = {each.kappa for each in found.evaluations}
    assert (1.0, 1.0, 1.0, 0.0) in weights
    assert found.ranking[0][0].kappa[3] <= min(found.ranking[0][0].kappa[:3])


def test_at_least_one_view_keeps_its_weight(monkeypatch):
    monkeypatch.setattr(
        "coview.tune.search._LEAST_GAIN", 0.0
    )  # any change that lowers neither stability nor consensus is made
    monkeypatch.setattr("coview.tune.search._WEIGHTS", (0.0,))
    views, _ = blobs()
    views = views.select(views.names[:2])
    found = Search(views, [3], (Round(90, 1, 1.0),), seed=0).run([candidate(views=2)])
    assert found.ranking[0][0].kappa == (0.0, 1.0)


def test_weights_that_lower_stability_or_consensus_are_not_selected(monkeypatch):
    monkeypatch.setattr("coview.tune.search._LEAST_GAIN", 0.0)
    views, _ = make_blobs(150, spread=1.2)
    views = as_views(views | {"noise": np.random.default_rng(1).normal(size=(150, 30))})
    pool = [candidate(kernel, rho=1.0, views=4) for kernel in (RBF(), NeighborGraph())]
    found = Search(views, [3], (Round(150, 1, 1.0),), seed=0).run(pool)
    alike = [each for each in found.evaluations if each.kernel == str(found.ranking[0][0].kernel)]
    selected = found.evaluations[found.ranking[0][1]]
    assert selected.kappa == found.ranking[0][0].kappa
    assert selected.stability >= alike[0].stability
    assert selected.consensus >= alike[0].consensus
    assert any(each.stability < selected.stability or each.consensus < selected.consensus for each in alike)


def test_candidates_that_cannot_be_fitted_are_recorded_and_the_others_go_on():
    views = as_views([np.abs(np.random.default_rng(0).normal(size=(40, 20)))] * 2)
    bad = Candidate(("tfidf", "standard+log1p"), RBF(), 1.0, (1.0, 1.0))
    good = Candidate(("l2", "l2"), RBF(), 1.0, (1.0, 1.0))
    found = Search(views, [2], (Round(40, 1, 1.0),), seed=0).run([bad, good])
    assert found.ranking[0][0].steps == ("l2", "l2")
    (failed,) = [each for each in found.evaluations if each.error]
    assert "log1p" in failed.error
    assert failed.criterion is None
    with pytest.raises(InputError, match="none of 1 candidates"):
        Search(views, [2], (Round(40, 1, 1.0),), seed=0).run([bad])


def test_the_same_seed_gives_the_same_search():
    views, _ = blobs(spread=1.0)
    first, second = (Search(views, [2, 3], ROUNDS["small"], seed=5).run(candidates(views)) for _ in range(2))
    assert first == second
