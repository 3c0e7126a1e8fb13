"""What Coview promises for any data: ties, heavy tails, noise, categories, word counts and samples that lack views."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from coview import Coview, InputError, load, save
from tests.conftest import make_blobs
from tests.preprocess.test_encode import cohort

N = 80


def integers(rng):
    return {name: rng.choice([0.0, 1.0, 2.0, -1.0], size=(N, d)) for name, d in (("a", 3), ("b", 2))}


def heavy_tails(rng):
    return {
        name: rng.standard_cauchy(size=(N, d)) * 10.0 ** rng.integers(-4, 5, size=d) for name, d in (("a", 5), ("b", 9))
    }


def noise(rng):
    return {name: rng.normal(size=(N, d)) for name, d in (("a", 3), ("b", 12))}


def word_counts(rng):
    rates = 0.05 + 0.8 * (np.arange(30) // 10 == np.arange(N)[:, None] % 3)
    return {name: rng.poisson(rates * rng.uniform(1, 3, size=(N, 1))).astype(float) for name in "ab"}


def sparse(rng):
    return {name: sp.csr_array(x) for name, x in word_counts(rng).items()}


def missing(rng):
    views = make_blobs(N, widths=(4, 6, 9), spread=1.2)[0]
    lacking = rng.integers(6, size=N)
    for place, x in enumerate(views.values()):
        x[lacking == place] = np.nan
    return views


def categories(rng):
    clinic, image = cohort()
    return {"clinic": clinic.iloc[:N], "image": image[:N]}


def separate(rng):
    views = make_blobs(N, spread=5.0)[0]
    views["a"][::3], views["b"][1::3] = np.nan, np.nan
    return views


UNCLEAR = {each.__name__: each for each in (integers, heavy_tails, noise, missing)}
KINDS = UNCLEAR | {each.__name__: each for each in (word_counts, sparse, categories, separate)}
CLEAR = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in UNCLEAR])
PROMISE = pytest.mark.parametrize("n_clusters", [3, "auto"])
KIND = pytest.mark.parametrize("kind", KINDS)


def views_of(kind):
    return KINDS[kind](np.random.default_rng(0))


@cache
def fitted(kind, n_clusters):
    return Coview(n_clusters, n_jobs=1, random_state=0).fit(views_of(kind))


def rows_of(views, rows):
    return {name: x.iloc[rows] if isinstance(x, pd.DataFrame) else x[rows] for name, x in views.items()}


def results(model, views):
    """Return all that a model says of samples, with one row for each."""
    found = {"labels": model.predict(views), "membership": model.predict_proba(views)}
    found |= {"usual": model.score_samples(views), "scores": model.transform(views)}
    found |= {f"label by {name}": x for name, x in model.predict(views, per_view=True).items()}
    found |= {f"usual in {name}": x for name, x in model.score_samples(views, per_view=True).items()}
    return found | {f"contribution of {name}": x for name, x in model.view_contributions(views).items()}


@KIND
@PROMISE
def test_predict_gives_the_labels_of_the_training_samples(kind, n_clusters):
    model, views = fitted(kind, n_clusters), views_of(kind)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    np.testing.assert_array_equal(model.predict_proba(views).argmax(axis=1), model.labels_)
    np.testing.assert_allclose(model.transform(views), model.scores_, atol=1e-9)
    assert len(np.unique(model.labels_)) == model.n_clusters_
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()


@KIND
@PROMISE
def test_a_sample_has_the_same_results_alone_and_in_any_batch(kind, n_clusters):
    model, views = fitted(kind, n_clusters), views_of(kind)
    whole = results(model, views)
    for rows in ([5], [N - 1], [40, 3, 77], list(range(10, 30))):
        for name, some in results(model, rows_of(views, rows)).items():
            if some.dtype.kind == "i":
                np.testing.assert_array_equal(some, whole[name][rows], err_msg=name)
            else:  # memberships are rounded to 9 decimals
                np.testing.assert_allclose(some, whole[name][rows], atol=2e-9, err_msg=name)


@KIND
@PROMISE
def test_one_and_two_threads_give_the_same_bits(kind, n_clusters):
    views = views_of(kind)
    two = Coview(n_clusters, n_jobs=2, random_state=0).fit(views)
    one = fitted(kind, n_clusters)
    np.testing.assert_array_equal(two.labels_, one.labels_)
    np.testing.assert_array_equal(two.scores_, one.scores_)
    np.testing.assert_array_equal(two.predict_proba(views), one.predict_proba(views))
    assert (two.number_, two.support_, two.reason_) == (one.number_, one.support_, one.reason_)


@KIND
@PROMISE
def test_the_names_of_the_views_do_not_change_the_clusters(kind, n_clusters):
    views = views_of(kind)
    renamed = {f"{len(views) - place} {name}": x for place, (name, x) in enumerate(views.items())}
    found = Coview(n_clusters, random_state=0).fit(renamed).labels_
    np.testing.assert_array_equal(found, fitted(kind, n_clusters).labels_)


@CLEAR
@PROMISE
def test_the_order_of_the_views_does_not_change_clear_clusters(kind, n_clusters):
    backwards = Coview(n_clusters, random_state=0).fit(dict(reversed(views_of(kind).items())))
    assert adjusted_rand_score(backwards.labels_, fitted(kind, n_clusters).labels_) == 1.0


@CLEAR
@PROMISE
def test_the_order_of_the_samples_does_not_change_clear_clusters(kind, n_clusters):
    order = np.random.default_rng(1).permutation(N)
    permuted = Coview(n_clusters, random_state=0).fit(rows_of(views_of(kind), order))
    assert adjusted_rand_score(permuted.labels_, fitted(kind, n_clusters).labels_[order]) == 1.0


@PROMISE
def test_sparse_word_counts_have_the_clusters_of_dense_ones(n_clusters):
    dense, sparse_one = fitted("word_counts", n_clusters), fitted("sparse", n_clusters)
    np.testing.assert_array_equal(sparse_one.labels_, dense.labels_)
    np.testing.assert_allclose(sparse_one.eigenvalues_, dense.eigenvalues_, atol=1e-5)  # float32
    np.testing.assert_array_equal(sparse_one.predict(views_of("word_counts")), dense.labels_)
    np.testing.assert_array_equal(dense.predict(views_of("sparse")), dense.labels_)


@KIND
@PROMISE
def test_a_loaded_model_says_the_same(kind, n_clusters, tmp_path):
    model, views = fitted(kind, n_clusters), views_of(kind)
    loaded = load(save(model, tmp_path / "model.safetensors"))
    expected = results(model, views)
    for name, found in results(loaded, views).items():
        np.testing.assert_array_equal(found, expected[name], err_msg=name)
    assert (loaded.number_, loaded.support_, loaded.reason_) == (model.number_, model.support_, model.reason_)
    for k in range(1, 9):
        np.testing.assert_array_equal(loaded.model_.level(k), model.model_.level(k))


@KIND
@PROMISE
def test_levels_are_nested(kind, n_clusters):
    model = fitted(kind, n_clusters)
    levels = {k: model.model_.level(k) for k in range(1, 9)}
    for k, labels in levels.items():
        assert len(np.unique(labels)) == k
        if k > 1:
            assert is_division(levels[k - 1], labels)
    assert adjusted_rand_score(levels.get(model.n_clusters_, model.labels_), model.labels_) == 1.0
    np.testing.assert_array_equal(model.model_.labels, model.labels_)


@KIND
@PROMISE
def test_fewer_clusters_are_unions_of_the_labels(kind, n_clusters):
    model = fitted(kind, n_clusters)
    for k in range(1, model.n_clusters_ + 1):
        assert is_division(model.model_.level(k), model.labels_)


def is_division(coarse, fine):
    """Return whether each cluster of a clustering is inside of one cluster of another."""
    return len(np.unique(np.column_stack([coarse, fine]), axis=0)) == len(np.unique(fine))


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.integers(2, 14), st.integers(1, 3), st.integers(1, 5))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_few_samples_with_ties_keep_their_labels(seed, n, n_views, n_clusters):
    rng = np.random.default_rng(seed)
    views = {f"v{i}": rng.choice([0.0, 1.0, 5.0], size=(n, 2)) for i in range(n_views)}
    lacking = rng.integers(4 * n_views, size=n)
    for place, x in enumerate(views.values()):
        x[(lacking == place) & (n_views > 1)] = np.nan
    try:
        model = Coview(min(n_clusters, n), random_state=0).fit(views)
    except InputError as error:
        assume(
            not any(words in str(error) for words in ("same values", "need at least", "needs at least", "no sample"))
        )
        raise
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    alone = [model.predict(rows_of(views, [row]))[0] for row in range(n)]
    np.testing.assert_array_equal(alone, model.labels_)
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()
    table = np.hstack(list(views.values()))
    same = np.unique(np.nan_to_num(table, nan=-9), axis=0, return_inverse=True)[1].ravel()
    for group in np.unique(same):  # equal samples share a cluster
        assert len(np.unique(model.labels_[same == group])) == 1
