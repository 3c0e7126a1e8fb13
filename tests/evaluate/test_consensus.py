"""The consensus: memberships, and labels of new samples in all situations that training samples can be in."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coview import Views
from coview.base.runtime import Workers
from coview.evaluate.consensus import Consensus, label_fractions, mean_fraction
from coview.evaluate.coview import Coview
from coview.evaluate.pool import Clusterings, Pool, filled
from tests import naive
from tests.conftest import make_blobs

OVERLAPPING = 1.2  # distances of group centres: some samples are between clusters


def blobs(kind, n=90, spread=OVERLAPPING, seed=0):
    """Return views of one kind, and the groups."""
    views, truth = make_blobs(n, widths=(4, 6, 9), spread=spread, seed=seed)
    if kind == "sparse":
        views["c"] = sp.csr_array(np.abs(views["c"]) * (np.abs(views["c"]) > 1))
    if kind == "float32":
        views = {name: x.astype(np.float32) for name, x in views.items()}
    if kind == "duplicates":
        of = np.random.default_rng(1).integers(n // 3, size=n)
        views, truth = {name: x[of] for name, x in views.items()}, truth[of]
    if kind == "missing":
        views["a"][5:20] = np.nan
        views["b"][15:30] = np.nan
        views["c"][3] = np.nan
    if kind == "one view":
        views = {"a": views["a"]}
    return Views(views), truth


KINDS = ["dense", "sparse", "float32", "duplicates", "missing", "one view"]
KIND = pytest.mark.parametrize("kind", KINDS)
COUNT = pytest.mark.parametrize("n_clusters", [3, "auto"])


def fitted(kind="dense", n_clusters=3, **other):
    views, truth = blobs(kind, **other)
    return Coview(n_clusters, random_state=0).fit(views), views, truth


def test_fractions_of_labels_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    clusters, member_labels = rng.integers(4, size=50), rng.integers(5, size=(50, 6))
    member_labels[:, 2] %= 2
    new = np.minimum(rng.integers(5, size=(9, 6)), member_labels.max(axis=0))
    members = [SimpleNamespace(centres=range(labels.max() + 1)) for labels in member_labels.T]
    tables = label_fractions(clusters, member_labels, members)
    for table, labels in zip(tables, member_labels.T, strict=True):
        np.testing.assert_allclose(table, naive.label_fractions(clusters.tolist(), labels.tolist()), rtol=1e-12)
    expected = [naive.mean_fraction(clusters.tolist(), member_labels.tolist(), own) for own in new.tolist()]
    np.testing.assert_allclose(mean_fraction(tables, new), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "missing"])
def test_membership_follows_the_plain_formula(kind):
    model, views, _ = fitted(kind)
    consensus = model.model_.predictor
    samples = consensus.located(views)
    steps = samples.steps[-1]
    own = np.column_stack([member.labels(samples) for member in consensus.members])
    assert (own < 0).any() == (kind == "missing")
    assert consensus.neighbours_vote
    own = filled(own, consensus.member_labels, steps)
    found = model.predict_proba(views)
    assert ((found > 0.05) & (found < 0.95)).any()
    for row in range(0, 90, 5):
        expected = naive.consensus_membership(
            steps.toarray()[row], consensus.clusters.tolist(), consensus.member_labels.tolist(), own[row]
        )
        np.testing.assert_allclose(found[row], expected, atol=1e-9)  # rounded to 9 decimals


@pytest.mark.parametrize(
    ("kind", "n_clusters"),
    [*((kind, 3) for kind in KINDS), ("dense", "auto"), ("duplicates", "auto"), ("missing", "auto")],
)
def test_memberships_sum_to_one_and_predict_gives_the_training_labels(kind, n_clusters):
    model, views, _ = fitted(kind, n_clusters)
    membership = model.predict_proba(views)
    assert membership.shape == (90, model.n_clusters_)
    np.testing.assert_allclose(membership.sum(axis=1), 1, atol=model.n_clusters_ * 5e-10)  # rounded to 9 decimals
    assert (membership >= 0).all()
    np.testing.assert_array_equal(membership.argmax(axis=1), model.labels_)
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_predict_gives_the_training_labels_of_samples_without_groups(seed, missing):
    """All clusters meet in dense regions, so many samples have nearly equal memberships."""
    rng = np.random.default_rng(seed)
    views = {name: rng.normal(size=(120, d)) for name, d in (("a", 3), ("b", 8))}
    if missing:
        views["a"][rng.random(120) < 0.1] = np.nan
    model = Coview(7, random_state=seed).fit(views)
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@KIND
def test_predict_is_the_same_row_by_row_and_in_any_order(kind):
    model, _, _ = fitted(kind)
    new, _ = blobs(kind, n=60, seed=0)
    new = new.take(np.arange(60))
    batch = model.predict(new)
    assert len(np.unique(batch)) == 3
    rows = np.concatenate([model.predict(new.take([row])) for row in range(60)])
    np.testing.assert_array_equal(rows, batch)
    order = np.random.default_rng(0).permutation(60)
    np.testing.assert_array_equal(model.predict(new.take(order)), batch[order])
    membership, alone = model.predict_proba(new), model.predict_proba(new.take([7]))
    np.testing.assert_allclose(alone[0], membership[7], atol=2e-9)  # rounded to 9 decimals
    scores = model.score_samples(new)
    np.testing.assert_allclose([model.score_samples(new.take([row]))[0] for row in (0, 9)], scores[[0, 9]], atol=1e-12)


def test_new_samples_may_lack_other_views_than_training_samples():
    model, views, truth = fitted("missing", spread=4.0)
    new, new_truth = make_blobs(90, widths=(4, 6, 9), spread=4.0)
    new["b"][:30] = np.nan
    new["c"][30:60] = np.nan
    new["a"][60:] = np.nan
    new["b"][80:] = np.nan
    batch = model.predict(new)
    assert adjusted_rand_score(batch, new_truth) == 1.0
    rows = [model.predict({name: x[row : row + 1] for name, x in new.items()})[0] for row in range(90)]
    np.testing.assert_array_equal(rows, batch)
    only = model.predict({"b": views["b"][30:]})
    assert adjusted_rand_score(only, truth[30:]) == 1.0


def test_new_samples_join_the_cluster_they_lie_in():
    views, truth = blobs("dense", n=150, spread=4.0)
    model = Coview(3, random_state=0).fit(views.take(np.arange(90)))
    assert adjusted_rand_score(model.predict(views.take(np.arange(90, 150))), truth[90:]) == 1.0


@pytest.mark.parametrize(("kind", "n_clusters"), [("dense", 3), ("sparse", 3), ("missing", 3), ("missing", "auto")])
def test_the_number_of_threads_does_not_change_the_result(kind, n_clusters):
    views, _ = blobs(kind)
    one, two = (Coview(n_clusters, n_jobs=n_jobs, random_state=0).fit(views) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.predict_proba(views), two.predict_proba(views))


@COUNT
def test_the_seed_determines_the_result(n_clusters):
    views, _ = blobs("dense")
    first, second = (Coview(n_clusters, random_state=4).fit(views) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(views), second.predict_proba(views))


@pytest.mark.parametrize(("kind", "n_clusters"), [("dense", 3), ("sparse", 3), ("missing", 3), ("missing", "auto")])
def test_the_order_of_the_views_does_not_change_clear_clusters(kind, n_clusters):
    views, truth = blobs(kind, spread=4.0)
    for names in ("abc", "cab", "bca"):
        model = Coview(n_clusters, random_state=0).fit(views.select(list(names)))
        assert adjusted_rand_score(model.labels_, truth) == 1.0
        np.testing.assert_array_equal(model.predict(views), model.labels_)


@COUNT
def test_the_order_of_the_samples_does_not_change_clear_clusters(n_clusters):
    views, truth = blobs("missing", spread=4.0)
    order = np.random.default_rng(3).permutation(90)
    model = Coview(n_clusters, random_state=0).fit(views.take(order))
    assert adjusted_rand_score(model.labels_, truth[order]) == 1.0


def test_clusters_are_numbered_by_decreasing_size():
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat([0, 1, 2], [15, 50, 25]))
    views = [rng.normal(size=(3, d))[truth] * 6 + rng.normal(size=(90, d)) for d in (4, 5)]
    for n_clusters in (3, "auto"):
        model = Coview(n_clusters, random_state=0).fit(views)
        assert np.bincount(model.labels_).tolist() == [50, 25, 15]
        np.testing.assert_array_equal(model.predict(views), model.labels_)


@KIND
def test_contributions_are_between_minus_one_and_one_and_nan_for_missing_views(kind):
    model, views, _ = fitted(kind)
    found = model.view_contributions(views)
    assert list(found) == list(views)
    for name, values in found.items():
        present = views.present.get(name, np.ones(90, dtype=bool))
        np.testing.assert_array_equal(np.isnan(values), ~present)
        assert (np.abs(values[present]) <= 1 + 1e-12).all()
        assert values[present].mean() > 0.02


def test_contributions_follow_the_neighbours_in_each_view():
    model, views, _ = fitted("missing")
    consensus = model.model_.predictor
    found, membership = model.view_contributions(views), model.predict_proba(views)
    places = [place for place, graph in enumerate(consensus.graphs) if graph.views == ("b",)]
    weights = sum(consensus.graphs[place].of(views).similarities.toarray() for place in places)
    for row in (0, 17, 40, 88):
        first, second = np.argsort(-membership[row], kind="stable")[:2]
        if np.isnan(found["b"][row]):
            assert not weights[row].any()
            continue
        share = [weights[row][consensus.clusters == c].sum() / weights[row].sum() for c in (first, second)]
        assert found["b"][row] == pytest.approx(share[0] - share[1], abs=1e-9)


def test_a_view_that_contradicts_the_label_has_a_negative_contribution():
    views, truth = make_blobs(90, widths=(4, 6, 9), spread=6.0)
    model = Coview(3, random_state=0).fit(views)
    other = np.flatnonzero(truth == (truth[0] + 1) % 3)[0]
    sample = {name: x[[0]] for name, x in views.items()} | {"a": views["a"][[other]]}
    found = model.view_contributions(sample)
    assert found["a"][0] == pytest.approx(-1)
    assert found["b"][0] == pytest.approx(1)
    assert found["c"][0] == pytest.approx(1)


def test_one_cluster_has_contributions_of_zero():
    views, _ = blobs("dense")
    model = Coview(1, random_state=0).fit(views)
    assert model.n_clusters_ == 1
    assert not model.labels_.any()
    np.testing.assert_array_equal(model.predict_proba(views), np.ones((90, 1)))
    for values in model.view_contributions(views).values():
        np.testing.assert_array_equal(values, 0)


def test_per_view_labels_follow_the_neighbours_in_the_view_and_are_minus_one_if_it_is_missing():
    model, views, truth = fitted("missing", spread=4.0)
    found = model.predict(views, per_view=True)
    assert list(found) == ["a", "b", "c"]
    for name, labels in found.items():
        present = views.present[name]
        np.testing.assert_array_equal(labels == -1, ~present)
        assert adjusted_rand_score(labels[present], truth[present]) > 0.9
    contradicting = {name: np.array(x[30:]) for name, x in views.items()}
    contradicting["a"] = np.roll(contradicting["a"], 1, axis=0)
    moved = model.predict(contradicting, per_view=True)["a"]
    assert adjusted_rand_score(moved, np.roll(truth[30:], 1)) > 0.9


def test_far_samples_have_a_low_score_and_training_samples_any():
    model, views, _ = fitted("missing", spread=4.0)
    scores = model.score_samples(views)
    assert scores.shape == (90,)
    assert (scores >= 0).all()
    assert (scores <= 1).all()
    assert 0.35 < np.median(scores) < 0.65
    far = {name: 100 + np.zeros((2, x.shape[1])) for name, x in views.items()}
    assert (model.score_samples(far) <= 0.02).all()
    assert (model.predict(far, novel_below=0.05) == -1).all()
    assert (model.predict(far) >= 0).all()
    per_view = model.score_samples(views, per_view=True)
    for name, values in per_view.items():
        np.testing.assert_array_equal(np.isnan(values), ~views.present[name])
    far["b"] = np.array(views["b"][50:52])
    of_views = model.score_samples(far, per_view=True)
    assert (of_views["a"] <= 0.02).all()
    assert (of_views["b"] > 0.02).any()
    labels = model.predict(far, per_view=True, novel_below=0.02)
    assert (labels["a"] == -1).all()


def test_extremely_far_samples_without_any_edge_have_a_label():
    model, views, _ = fitted()
    far = {name: np.full((2, x.shape[1]), 1e30) for name, x in views.items()}
    for values in (model.predict_proba(far), *model.view_contributions(far).values(), model.transform(far)):
        assert np.isfinite(values).all()
    assert (model.score_samples(far) < 1e-3).all()


@pytest.mark.parametrize("kind", ["dense", "missing", "float32"])
def test_transform_of_the_training_samples_gives_their_scores(kind):
    model, views, _ = fitted(kind)
    assert model.scores_.dtype == views.dtype
    assert model.scores_.shape == (90, len(model.eigenvalues_))
    np.testing.assert_allclose(model.transform(views), model.scores_, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(model.scores_, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(("n_distinct", "n_clusters"), [(5, 4), (5, 5), (5, 8), (5, 12), (11, 12), (11, 30)])
def test_predict_works_with_fewer_distinct_samples_than_clusters(n_distinct, n_clusters):
    truth = np.arange(66) % n_distinct
    x = (np.random.default_rng(0).normal(size=(n_distinct, 4)) * 5)[truth]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer clusters
        model = Coview(n_clusters, random_state=0).fit([x])
    assert model.n_clusters_ == min(n_distinct, n_clusters)
    np.testing.assert_array_equal(model.predict([x]), model.labels_)
    if n_clusters >= n_distinct:
        assert adjusted_rand_score(model.labels_, truth) == 1.0


def test_fewer_clusters_than_given_are_reported():
    x = np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 20, axis=0)
    with pytest.warns(ConvergenceWarning, match="found 3 distinct clusters instead of n_clusters=5"):
        Coview(5, random_state=0).fit([x])


@pytest.mark.parametrize("n_both", [1, 2, 4])
@COUNT
def test_a_few_samples_with_all_views_suffice(n_both, n_clusters):
    views, _ = make_blobs(60, widths=(4, 6), spread=4.0)
    views["a"][: 30 - n_both] = np.nan
    views["b"][30:] = np.nan
    model = Coview(n_clusters, random_state=0).fit(views)
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@COUNT
def test_no_sample_needs_all_views(n_clusters):
    views, truth = make_blobs(90, spread=4.0)
    for i, name in enumerate(views):
        views[name][30 * i : 30 * i + 30] = np.nan
    model = Coview(n_clusters, random_state=0).fit(views)
    assert adjusted_rand_score(model.labels_, truth) == 1.0
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def learnt_with(clusters, labels):
    """Return the consensus with these clusters if all members have these labels, its labels, and its memberships."""
    views = Views([np.random.default_rng(0).normal(size=(len(clusters), width)) for width in (3, 4)])
    with Workers(1) as workers:
        pool = Pool.learn(views, 2, workers)
        members = pool.cluster([2], 0, workers).members
    of_members = np.repeat(labels[:, None], len(members), axis=1)
    model, found = Consensus.learn(pool, Clusterings((2,), members, of_members, of_members), clusters)
    return model, found, model.membership_of(pool.samples.steps[-1], of_members)


@pytest.mark.parametrize("first", [0, 1])
def test_a_cluster_of_one_sample_is_kept_whatever_its_number(first):
    """Its neighbours are in the other cluster and all members support it, so both memberships are equal with votes."""
    single = (np.arange(60) == 7).astype(int)
    model, labels, membership = learnt_with((single + first) % 2, single)
    np.testing.assert_array_equal(labels, single)  # by decreasing size
    np.testing.assert_array_equal(model.clusters, single)
    np.testing.assert_array_equal(membership.argmax(axis=1), labels)


def test_neighbours_do_not_count_if_a_small_cluster_would_be_lost():
    single = (np.arange(60) == 7).astype(int)
    model, _, membership = learnt_with(single, single)
    assert not model.neighbours_vote
    np.testing.assert_array_equal(membership, np.eye(2)[single])
    halves = np.arange(60) % 2
    assert learnt_with(halves, halves)[0].neighbours_vote


def test_a_cluster_to_which_no_sample_belongs_most_is_dropped():
    """The members do not separate one sample from the others, and neither do its neighbours."""
    clusters = np.where(np.arange(60) == 7, 2, np.arange(60) % 2)
    model, labels, membership = learnt_with(clusters, np.arange(60) % 2)
    assert model.n_clusters == 2
    assert set(labels) == set(model.clusters) == {0, 1}
    np.testing.assert_array_equal(membership.argmax(axis=1), labels)
    assert adjusted_rand_score(np.delete(labels, 7), np.delete(clusters, 7)) == 1.0
