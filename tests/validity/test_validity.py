"""The validity of clusters: high for clusters that every view shows, none for noise."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from coview import KSC, OPMC, Concat, CoReg, FixedSize, PerView, Preprocessed, TMvKSCR
from coview.validity import Validity, measure_validity
from coview.validity.measure import _cluster_stability
from coview.validity.reference import DISTRIBUTIONS, Reference
from coview.validity.values import LEVELS
from coview.validity.words import STATEMENTS, UNRELATED_VIEWS, validity_in_words
from coview.views import Views, as_views
from tests.conftest import make_blobs


def noise(n=200, widths=(5, 8), seed=0):
    rng = np.random.default_rng(seed)
    return {f"view{i}": rng.normal(size=(n, width)) for i, width in enumerate(widths)}


def validity_of(model, views):
    views = as_views(views)
    return measure_validity(model, views, model.fit(views).labels_)


@pytest.mark.parametrize(
    "model",
    [
        TMvKSCR(3, random_state=0),
        TMvKSCR(3, kernel="graph", random_state=0),
        OPMC(3, random_state=0),
        CoReg(3, random_state=0),  # cannot label new samples
        Preprocessed(TMvKSCR(3, random_state=0), steps="standard"),
        FixedSize(TMvKSCR(3, random_state=0), n_train=60, random_state=0),
        Concat(KSC(3, random_state=0)),
        Concat(KMeans(3, n_init=3, random_state=0)),
        PerView(KSC(3, random_state=0)),
    ],
    ids=lambda model: repr(model)[:40],
)
def test_clusters_that_every_view_shows_are_strongly_supported(model):
    views, _ = make_blobs(150, spread=8.0)
    validity = validity_of(model, views)
    assert validity.level == "strong"
    assert validity.stability > 0.99
    assert validity.agreement > 0.99
    assert validity.silhouette > 0.5
    assert len(validity.cluster_stability) == 3
    assert min(validity.cluster_stability) > 0.95


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("n_views", [1, 2])
@pytest.mark.parametrize("kernel", ["rbf", "graph"])
def test_noise_is_not_supported(kernel, n_views, k):
    validity = validity_of(TMvKSCR(k, kernel=kernel, random_state=0), noise(widths=(5, 8)[:n_views]))
    assert validity.level == "none"


def test_clusters_of_views_whose_rows_are_paired_at_random_are_not_supported():
    views, _ = make_blobs(150, spread=8.0)
    rng = np.random.default_rng(0)
    repaired = {name: rng.permutation(x) for name, x in views.items()}
    validity = validity_of(TMvKSCR(3, random_state=0), repaired)
    assert not validity.views_agree
    assert validity.level == "none"
    assert abs(validity.agreement) < 0.05
    assert validity_in_words(validity)[0] == UNRELATED_VIEWS
    assert "no two views agree more than with rows that are paired at random" in " ".join(validity_in_words(validity))


def test_a_gram_matrix_gives_the_validity_of_its_rows():
    views, _ = make_blobs(120, spread=8.0)
    grams = {name: np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / 40) for name, x in views.items()}
    validity = validity_of(TMvKSCR(3, kernel="precomputed", random_state=0), grams)
    assert validity.stability > 0.99
    assert validity.reference_stability is None  # there are no rows to draw from
    assert validity.agreement > 0.99
    assert validity.silhouette > 0.2


def test_the_validity_is_deterministic_and_changes_neither_model_nor_views():
    views, _ = make_blobs(700, spread=1.0)
    given = {name: x.copy() for name, x in views.items()}
    model = TMvKSCR(3, random_state=0).fit(views)
    before = {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    first, second = (measure_validity(model, as_views(views), model.labels_) for _ in range(2))
    assert first == second
    assert first.n_samples == 600
    for name, x in views.items():
        np.testing.assert_array_equal(x, given[name])
    for name, value in before.items():
        np.testing.assert_array_equal(value, vars(model)[name])


def test_sparse_views_and_views_with_more_columns_than_samples():
    views, _ = make_blobs(60, spread=8.0)
    wide = np.hstack([views["a"], np.zeros((60, 200))])
    model = TMvKSCR(3, random_state=0)
    dense, sparse = (validity_of(model, {"a": x, "b": views["b"]}) for x in (wide, sp.csr_array(wide)))
    assert dense.level == sparse.level == "strong"
    assert dense.stability == pytest.approx(sparse.stability)
    assert dense.silhouette == pytest.approx(sparse.silhouette)


def test_too_few_samples_or_one_cluster_have_no_measures():
    few = {name: x[:12] for name, x in noise().items()}
    assert validity_of(TMvKSCR(2, random_state=0), few) is None
    assert validity_of(TMvKSCR(1, random_state=0), noise()) is None
    assert validity_of(TMvKSCR(60, random_state=0), noise()) is None  # halves would have fewer than two of each


def test_the_silhouette_is_that_of_the_input_and_not_of_the_scores():
    views = noise(150)
    model = TMvKSCR(3, random_state=0).fit(views)
    validity = measure_validity(model, as_views(views), model.labels_)
    expected = np.mean([silhouette_score(x, model.labels_) for x in views.values()])
    assert validity.silhouette == pytest.approx(expected)
    assert validity.silhouette < silhouette_score(model.scores_, model.labels_) - 0.2


def test_the_stability_of_a_cluster_is_the_mean_of_its_largest_jaccard_indices():
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 2, 5], 40)
    refits = [
        (rows, rng.integers(4, size=len(rows)), rng.integers(3, size=len(rows)))
        for rows in (np.arange(40), np.arange(10, 30))
    ]
    found = _cluster_stability(refits, labels, np.array([0, 2, 5]))
    for name, value in zip((0, 2, 5), found, strict=True):
        indices = []
        for rows, *by_model in refits:
            mine = {row for row in rows if labels[row] == name}
            for other in by_model:
                theirs = [{row for row, o in zip(rows, other, strict=True) if o == each} for each in set(other)]
                indices.append(max(len(mine & them) / len(mine | them) for them in theirs))
        assert value == pytest.approx(np.mean(indices))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_reference_data_have_the_covariance_of_the_samples_but_not_their_clusters(distribution):
    views, _ = make_blobs(4000, spread=8.0)
    views = as_views(views)
    drawn = Reference(views).draw(distribution, np.random.default_rng(0))
    real, made = (np.hstack(list(each.values())) for each in (views, drawn))
    np.testing.assert_allclose(made.mean(axis=0), real.mean(axis=0), atol=0.5)
    scale = np.abs(np.cov(real.T)).max()
    np.testing.assert_allclose(np.cov(made.T) / scale, np.cov(real.T) / scale, atol=0.06)
    labels = [KMeans(3, n_init=5, random_state=0).fit_predict(each) for each in (real, made)]
    assert silhouette_score(real, labels[0]) > silhouette_score(made, labels[1]) + 0.2


def test_reference_data_of_wide_views_have_as_many_columns_as_samples():
    rng = np.random.default_rng(0)
    wide = Views({"a": rng.normal(size=(20, 50)), "b": rng.normal(size=(20, 3))})
    drawn = Reference(wide).draw("normal", rng)
    assert {name: x.shape for name, x in drawn.items()} == {"a": (20, 20), "b": (20, 3)}


MEASURES = Validity(600, 0.9, 0.3, 0.4, 0.5, 20.0, 3.0, 0.1, (0.9, 0.8))


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "strong"),
        ({"stability": 0.7}, "moderate"),
        ({"stability": 0.45}, "weak"),
        ({"stability": 0.35}, "none"),  # below the largest value without clusters
        ({"stability": 0.31, "reference_maximum": 0.3}, "none"),  # above, but by too little
        ({"agreement_ratio": 2.9}, "none"),
        ({"agreement": None, "agreement_ratio": None, "random_ratio": None}, "strong"),  # one view
        ({"reference_stability": None, "reference_maximum": None, "stability": 0.5}, "moderate"),
        ({"reference_stability": 1.0, "reference_maximum": 1.0, "stability": 1.0}, "none"),
    ],
)
def test_the_level_follows_from_the_measures(changes, level):
    validity = replace(MEASURES, **changes)
    assert validity.level == level
    unrelated = validity.is_stable and not validity.views_agree
    assert validity_in_words(validity)[0] == (UNRELATED_VIEWS if unrelated else STATEMENTS[level])


def test_every_level_has_a_statement():
    assert tuple(STATEMENTS) == LEVELS
    assert STATEMENTS["none"] == "These data show no clusters that a second half of the samples would confirm."


def test_the_measures_in_words():
    assert validity_in_words(MEASURES) == [
        "The support for these clusters is strong.",
        "Two models, fitted on halves of 600 samples, agree with an adjusted Rand index of 0.90, compared with 0.30 "
        "(at most 0.40) on normal or uniform samples with the same covariance, which have no clusters.",
        "The mean adjusted Rand index between two views, each clustered alone, is 0.50; some views agree more than "
        "with rows that are paired at random.",
        "The mean silhouette in the input is 0.10, on a scale from −1 to 1.",
    ]
