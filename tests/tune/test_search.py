"""Candidates from the look of the data, what speaks for them, and the search among them."""

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
    Evidence,
    consensus,
    criterion,
    for_numbers,
    line_fit,
    membership_strength,
)
from coview.tune.evaluation import Trials
from coview.tune.search import BUDGETS, Round, Search
from tests import naive
from tests.conftest import make_blobs


def blobs(n=90, spread=8.0):
    views, truth = make_blobs(n, spread=spread)
    return as_views(views), truth


def evidence(labels, n_clusters=2, **measures):
    settings = dict.fromkeys(("stability", "agreement", "line_fit", "membership", "eigengap"), 0.5) | measures
    labels = np.asarray(labels)
    settings.setdefault("size_entropy", size_entropy(labels, n_clusters))
    return Evidence(Candidate(("l2",), RBF(), 1.0, (1.0,)), n_clusters, labels, **settings)


# ---------------------------------------------------------------- looks and candidates


def test_looks_tell_words_counts_and_measurements_apart():
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


def test_a_view_of_zeros_has_a_look():
    assert (
        ViewProfile.of(sp.csr_array((5, 20)))
        == ViewProfile.of(np.zeros((5, 20)))
        == ViewProfile(False, word_counts=True, wide_range=False)
    )


def test_candidates_follow_the_look_of_each_view():
    rng = np.random.default_rng(0)
    words, measured, few = rng.poisson(0.2, (30, 40)) * 9.0, rng.normal(size=(30, 20)), rng.normal(size=(30, 2))
    tried = candidates(as_views([words, measured, few]))
    ways = {c.steps for c in tried}
    assert ways == {("l2", "l2", "standard"), ("tfidf+l2", "l2", "standard"), ("log1p+l2", "l2", "standard")}
    assert {type(c.kernel) for c in tried} == {NeighborGraph, RBF}
    assert all(c.kappa == (1.0, 1.0, 1.0) for c in tried)
    assert len(set(tried)) == len(tried)


def test_ways_that_come_to_the_same_are_tried_once():
    alike = candidates(as_views([np.random.default_rng(0).normal(size=(30, 20))] * 2))
    assert {c.steps for c in alike} == {("l2", "l2")}


def test_only_graphs_are_affordable_where_memory_is_short(monkeypatch):
    views, _ = blobs()
    monkeypatch.setattr("coview.runtime.available_memory", lambda: 1000)
    assert {type(c.kernel) for c in candidates(views) if affordable(c, 90)} == {NeighborGraph}
    monkeypatch.setattr("coview.runtime.available_memory", lambda: None)
    assert all(affordable(c, 10**9) for c in candidates(views))


def test_one_view_has_no_balance_to_choose():
    assert {c.rho for c in candidates(as_views([np.random.default_rng(0).normal(size=(30, 20))]))} == {1.0}


# ---------------------------------------------------------------- criterion


def test_line_fit_is_its_slow_twin_and_one_on_lines():
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


def test_membership_strength_is_its_slow_twin():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 3))
    labels = rng.integers(4, size=40)
    scores = centres[labels] + 0.3 * rng.normal(size=(40, 3))
    assert membership_strength(scores, labels, centres) == pytest.approx(
        naive.membership_strength(scores, labels, centres)
    )


def test_consensus_is_the_mean_agreement_with_the_others():
    found = [evidence([0, 0, 1, 1]), evidence([1, 1, 0, 0]), evidence([0, 1, 0, 1])]
    apart = adjusted_rand_score([0, 0, 1, 1], [0, 1, 0, 1])
    np.testing.assert_allclose(consensus(found), [(1 + apart) / 2, (1 + apart) / 2, apart])
    np.testing.assert_array_equal(consensus(found[:1]), [1.0])


def test_a_huge_cluster_and_crumbs_is_judged_below_clusters_that_agree_less():
    crumbs = evidence([0] * 19 + [1], stability=1.0, agreement=1.0)
    even = evidence([0, 1] * 10, stability=0.5, agreement=0.5)
    assert criterion([crumbs, even]).argmax() == 1


def test_a_single_view_gains_nothing_by_agreeing_with_itself():
    one = [evidence([0, 1] * 10, agreement=1.0, stability=s) for s in (0.2, 0.4)]
    np.testing.assert_allclose(criterion(one), [(0.2 + 1) / 2, (0.4 + 1) / 2])


def test_nothing_speaks_for_less_than_chance():
    assert (criterion([evidence([0, 1] * 10, stability=-0.5), evidence([0, 0, 1, 1] * 5, stability=-0.5)]) == 0).all()


def test_numbers_of_clusters_gain_by_their_logarithm_and_by_the_gap_behind_them():
    same = {2: np.array([0.5]), 4: np.array([0.5])}
    flat = for_numbers({2: np.array([0.0]), 4: np.array([0.0])}, same)
    assert flat[4][0] / flat[2][0] == pytest.approx((1 + 0.75 * np.log(4)) / (1 + 0.75 * np.log(2)))
    steep = for_numbers({2: np.array([0.3]), 4: np.array([0.15])}, same)
    assert steep[2][0] == pytest.approx(1.5 * flat[2][0])
    assert steep[4][0] == pytest.approx(1.25 * flat[4][0])


# ---------------------------------------------------------------- trials


def candidate(kernel=None, rho=1.0, views=3):
    return Candidate(("standard",) * views, kernel or NeighborGraph(), rho, (1.0,) * views)


@pytest.mark.parametrize("kernel", [NeighborGraph(), RBF()])
def test_evidence_is_what_the_methods_themselves_say(kernel):
    views, _ = blobs(spread=1.5)
    (found,) = Trials(views, n_splits=1, seed=3).evidence(candidate(kernel, rho=0.25), [3])
    model = Preprocessed(TMvKSCR(3, kernel=kernel, rho=0.25, random_state=3), steps="standard").fit(views)

    def labels(scores):
        return Directions(3).fit(scores, 3, np.random.default_rng(3)).assign(scores)

    expected = labels(model.scores_)
    assert adjusted_rand_score(found.labels, expected) == 1.0
    by_view = [
        adjusted_rand_score(expected, labels(scores)) for scores in model.transform(views, per_view=True).values()
    ]
    assert found.agreement == pytest.approx(np.mean(by_view))
    assert found.eigengap == pytest.approx(_gap(views, kernel), rel=1e-6)
    assert found.n_clusters == 3
    assert 0.5 < found.stability <= 1
    assert 0 < found.line_fit <= 1
    assert 0 < found.membership <= 1


def _gap(views, kernel):
    values = Preprocessed(TMvKSCR(4, kernel=kernel, rho=0.25, random_state=0)).fit(views).eigenvalues_
    return values[1] - values[2]


def test_clear_clusters_have_all_the_evidence():
    views, truth = blobs()
    (found,) = Trials(views, n_splits=2, seed=0).evidence(candidate(), [3])
    assert adjusted_rand_score(truth, found.labels) == 1.0
    assert found.stability == found.agreement == 1.0
    assert found.line_fit > 0.9
    assert found.membership > 0.9


def test_one_decomposition_serves_all_numbers_of_clusters():
    views, _ = blobs(spread=2.0)
    together = Trials(views, n_splits=1, seed=0).evidence(candidate(RBF()), [2, 3, 5])
    alone = [Trials(views, n_splits=1, seed=0).evidence(candidate(RBF()), [k])[0] for k in (2, 3, 5)]
    for one, other in zip(together, alone, strict=True):
        assert adjusted_rand_score(one.labels, other.labels) == 1.0
        assert one.stability == pytest.approx(other.stability)
        assert one.eigengap == pytest.approx(other.eigengap)


def test_gram_matrices_are_made_once(monkeypatch):
    views, _ = blobs()
    trials, made = Trials(views, n_splits=1, seed=0), []
    original = RBF.against
    monkeypatch.setattr(RBF, "against", lambda self, *a, **k: made.append(1) or original(self, *a, **k))
    trials.evidence(candidate(RBF(), rho=1.0), [3])
    once = len(made)
    trials.evidence(candidate(RBF(), rho=0.25), [3])
    assert once == len(made) == 3 * 3  # views, times the whole and two halves
    monkeypatch.setattr("coview.tune.evaluation._KEPT_BYTES", 0)
    trials.evidence(candidate(NeighborGraph()), [3])
    trials.evidence(candidate(RBF(), rho=0.25), [3])
    assert len(made) == 2 * once  # forgotten, when they would take too much memory


def test_warnings_of_trial_fits_are_not_the_users():
    views = as_views([np.repeat(np.eye(3) + 1, 10, axis=0)] * 2)  # three distinct samples
    with pytest.warns(ConvergenceWarning):
        TMvKSCR(6, random_state=0).fit(views)
    (found,) = Trials(views, n_splits=1, seed=0).evidence(candidate(RBF(), views=2), [6])
    assert found.labels.max() == 2


def test_a_view_that_is_constant_among_the_samples_drawn_is_left_out():
    views, truth = blobs()
    flag = np.zeros((90, 9))
    with_flag = as_views({"flag": flag, **views})
    (found,) = Trials(with_flag, n_splits=1, seed=0).evidence(candidate(views=4), [3])
    (without,) = Trials(views, n_splits=1, seed=0).evidence(candidate(views=3), [3])
    np.testing.assert_array_equal(found.labels, without.labels)
    only_flag = Candidate(("standard",) * 4, RBF(), 1.0, (1.0, 0.0, 0.0, 0.0))
    (found,) = Trials(with_flag, n_splits=1, seed=0).evidence(only_flag, [3])
    assert adjusted_rand_score(truth, found.labels) == 1.0
    with pytest.raises(InputError, match="all views are the same in each of 90 samples"):
        Trials(as_views([flag, sp.csr_array(flag)]), n_splits=1, seed=0).evidence(candidate(views=2), [3])


def test_output_as_data_frames_does_not_disturb_trials():
    views, truth = blobs()
    with config_context(transform_output="pandas"):
        (found,) = Trials(views, n_splits=1, seed=0).evidence(candidate(), [3])
    assert adjusted_rand_score(truth, found.labels) == 1.0


def test_few_samples_are_not_cut_into_halves():
    views = blobs()[0].take(np.array([0, 1, 40, 41, 80, 81]))
    (found,) = Trials(views, n_splits=1, seed=0).evidence(candidate(RBF()), [6])
    assert found.stability == found.line_fit == found.membership == found.eigengap == 0.0
    assert len(np.unique(found.labels)) == 6


# ---------------------------------------------------------------- search


def test_the_search_goes_from_all_candidates_on_few_samples_to_some_on_more():
    views, truth = blobs(300, spread=2.0)
    told = []
    rounds = (Round(60, 1, 1.0), Round(120, 1, 0.5))
    found = Search(views, [3], rounds, seed=0, progress=lambda *step: told.append(step)).run(candidates(views))
    first, second = ([row for row in found.table if row["round"] == number] for number in (1, 2))
    assert {row["n_samples"] for row in first} == {60}
    assert {row["n_samples"] for row in second} == {120}
    even = [row for row in first if set(row["kappa"]) == {1.0}]  # the others are trials of weights
    assert len(even) == len(candidates(views))
    assert len(second) == -(-len(even) // 2)
    best = max(even, key=lambda row: row["criterion"])
    assert any((row["steps"], row["kernel"]) == (best["steps"], best["kernel"]) for row in second)
    assert told[-1] == ("weights of views", 3, 3)
    assert found.n_clusters == 3
    model = Preprocessed(TMvKSCR(3, kernel=found.candidate.kernel, rho=found.candidate.rho, random_state=0))
    assert adjusted_rand_score(truth, model.set_params(steps=list(found.candidate.steps)).fit(views).labels_) > 0.9


def test_what_spoke_for_a_candidate_in_the_first_round_counts_in_the_last(monkeypatch):
    views = as_views(make_blobs(120, 3)[0])
    one, other = candidate(rho=1.0, views=len(views)), candidate(rho=0.25, views=len(views))
    judged = {120: {1.0: 0.5, 0.25: 0.9}, 110: {1.0: 0.8, 0.25: 0.7}}  # by number of samples and rho

    def as_told(evidence):
        return np.array([judged[len(e.labels)][e.candidate.rho] for e in evidence])

    monkeypatch.setattr("coview.tune.search.criterion", as_told)
    found = Search(views, [3], (Round(110, 1, 1.0), Round(120, 1, 1.0)), seed=0).run([one, other])
    assert found.candidate.rho == 0.25  # 0.7 + 0.9 against 0.8 + 0.5
    monkeypatch.setitem(judged, 120, {1.0: 0.9, 0.25: 0.5})
    assert Search(views, [3], (Round(110, 1, 1.0), Round(120, 1, 1.0)), seed=0).run([one, other]).candidate.rho == 1.0
    monkeypatch.setitem(judged, 120, {1.0: 0.71, 0.25: 0.8})  # the last round alone would take the other
    assert Search(views, [3], (Round(110, 1, 1.0), Round(120, 1, 1.0)), seed=0).run([one, other]).candidate.rho == 1.0


def test_a_round_that_would_see_no_more_samples_is_left_out():
    views, _ = blobs()
    found = Search(views, [3], BUDGETS["full"], seed=0).run(candidates(views))
    assert {row["round"] for row in found.table} == {1}


def test_the_number_of_clusters_is_found():
    views, _ = blobs()
    found = Search(views, range(2, 7), (Round(90, 1, 1.0),), seed=0).run(candidates(views))
    assert found.n_clusters == 3
    assert {row["n_clusters"] for row in found.table if set(row["kappa"]) == {1.0}} == {2, 3, 4, 5, 6}


@pytest.mark.parametrize("sizes", [(300, 60, 40), (340, 40, 20), (200, 30), (100, 100, 100, 100)])
def test_clear_clusters_of_different_size_are_counted_right(sizes):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    views = as_views([1.5 * rng.normal(size=(len(sizes), 20))[truth] + rng.normal(size=(len(truth), 20)) for _ in "ab"])
    found = Search(views, range(2, 8), (Round(400, 1, 1.0),), seed=0).run(candidates(views))
    assert found.n_clusters == len(sizes)


def test_rounds_have_samples_for_many_clusters():
    views, _ = blobs(300)
    found = Search(views, [40], (Round(50, 1, 1.0),), seed=0).run(candidates(views)[:2])
    assert {row["n_samples"] for row in found.table} == {200}


def test_a_view_of_noise_never_counts_more_than_the_others():
    views, _ = make_blobs(150, spread=1.2)
    views = as_views(views | {"noise": np.random.default_rng(1).normal(size=(150, 30))})
    found = Search(views, [3], (Round(150, 1, 1.0),), seed=0).run([candidate(RBF(), rho=1.0, views=4)])
    tried = {tuple(row["kappa"]) for row in found.table}
    assert (1.0, 1.0, 1.0, 0.0) in tried
    assert found.candidate.kappa[3] <= min(found.candidate.kappa[:3])


def test_some_view_keeps_its_weight(monkeypatch):
    monkeypatch.setattr("coview.tune.search._LEAST_GAIN", 0.0)  # a change that does no harm is taken
    monkeypatch.setattr("coview.tune.search._WEIGHTS", (0.0,))
    views, _ = blobs()
    views = views.select(views.names[:2])
    found = Search(views, [3], (Round(90, 1, 1.0),), seed=0).run([candidate(views=2)])
    assert found.candidate.kappa == (0.0, 1.0)


def test_weights_that_cost_stability_or_consensus_are_not_taken(monkeypatch):
    monkeypatch.setattr("coview.tune.search._LEAST_GAIN", 0.0)
    views, _ = make_blobs(150, spread=1.2)
    views = as_views(views | {"noise": np.random.default_rng(1).normal(size=(150, 30))})
    pool = [candidate(kernel, rho=1.0, views=4) for kernel in (RBF(), NeighborGraph())]
    found = Search(views, [3], (Round(150, 1, 1.0),), seed=0).run(pool)
    rows = [row for row in found.table if row["kernel"] == str(found.candidate.kernel)]
    (chosen,) = [row for row in rows if row["kappa"] == list(found.candidate.kappa)]
    assert chosen["stability"] >= rows[0]["stability"]
    assert chosen["consensus"] >= rows[0]["consensus"]
    assert any(row["stability"] < chosen["stability"] or row["consensus"] < chosen["consensus"] for row in rows)


def test_candidates_that_cannot_be_fitted_are_noted_and_the_others_go_on():
    views = as_views([np.abs(np.random.default_rng(0).normal(size=(40, 20)))] * 2)
    bad = Candidate(("tfidf", "standard+log1p"), RBF(), 1.0, (1.0, 1.0))
    good = Candidate(("l2", "l2"), RBF(), 1.0, (1.0, 1.0))
    found = Search(views, [2], (Round(40, 1, 1.0),), seed=0).run([bad, good])
    assert found.candidate.steps == ("l2", "l2")
    (failed,) = [row for row in found.table if row["error"]]
    assert "log1p" in failed["error"]
    assert failed["criterion"] is None
    with pytest.raises(InputError, match="none of 1 candidates"):
        Search(views, [2], (Round(40, 1, 1.0),), seed=0).run([bad])


def test_the_same_seed_gives_the_same_search():
    views, _ = blobs(spread=1.0)
    first, second = (Search(views, [2, 3], BUDGETS["small"], seed=5).run(candidates(views)) for _ in range(2))
    assert first == second
