"""The validity of clusters: high for clusters that every view shows, none for noise."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.stats import skew
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

from coview import KSC, OPMC, RBF, Concat, CoReg, FixedSize, PerView, Preprocessed, TMvKSCR, Tuned
from coview.validity import Validity, measure_validity
from coview.validity.measure import _cluster_stability, _distances
from coview.validity.reference import DISTRIBUTIONS, Reference, compressed
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
    assert validity.views_agreement > 0.99
    assert validity.silhouette > 0.5
    assert len(validity.cluster_stability) == 3
    assert min(validity.cluster_stability) > 0.95


def test_the_validity_does_not_depend_on_the_number_of_threads():
    views = as_views(make_blobs(80, spread=1.5)[0])
    model = TMvKSCR(3, random_state=0).fit(views)
    one, two = (measure_validity(model, views, model.labels_, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one == two


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
    validity = validity_of(TMvKSCR(3, kernel="rbf", random_state=0), repaired)
    assert not validity.views_agree
    assert len(validity.stable_views) >= 2
    assert validity.level == "none"
    assert abs(validity.views_agreement) < 0.05
    assert validity_in_words(validity)[0] == UNRELATED_VIEWS
    assert "no two views agree more than with rows that are paired at random" in " ".join(validity_in_words(validity))


def test_clusters_of_one_view_beside_views_of_noise_have_weak_support():
    views, truth = make_blobs(150, spread=8.0)
    rng = np.random.default_rng(0)
    mixed = {"clusters": views["a"], "noise": rng.normal(size=(150, 8)), "more noise": rng.uniform(size=(150, 5))}
    model = Tuned("auto", random_state=0).fit(mixed)
    assert model.validity_.stable_views == ("clusters",)
    assert model.validity_.level == "weak"
    assert model.validity_.stable_agreement > 0.95
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert "only the view 'clusters' has stable clusters, and no other view agrees with it" in " ".join(
        validity_in_words(model.validity_)
    )


def test_a_gram_matrix_gives_the_validity_of_its_rows():
    views, _ = make_blobs(120, spread=8.0)
    grams = {name: np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / 40) for name, x in views.items()}
    validity = validity_of(TMvKSCR(3, kernel="precomputed", random_state=0), grams)
    assert validity.stability > 0.99
    assert validity.reference_stability is None  # there are no rows to draw from
    assert validity.views_agreement > 0.99
    assert validity.silhouette > 0.2


def test_the_validity_is_deterministic_and_changes_neither_model_nor_views():
    views, _ = make_blobs(700, spread=1.0)
    given = {name: x.copy() for name, x in views.items()}
    model = TMvKSCR(3, random_state=0).fit(views)
    before = {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    first, second = (measure_validity(model, as_views(views), model.labels_) for _ in range(2))
    assert first == second
    assert first.n_samples == 400
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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("distribution", ["lognormal", "standard_t"])
def test_skewed_or_heavy_tailed_noise_does_not_have_strong_support(distribution, seed):
    rng = np.random.default_rng(seed)
    x = rng.lognormal(size=(300, 8)) if distribution == "lognormal" else rng.standard_t(2, size=(300, 8))
    validity = Tuned("auto", random_state=0).fit(x).validity_
    assert validity.level in ("none", "weak")


def test_clusters_of_one_view_beside_a_constant_view_have_the_support_of_that_view():
    views, _ = make_blobs(200, spread=8.0)
    alone = validity_of(TMvKSCR(3, random_state=0), {"a": views["a"], "constant": np.ones((200, 2))})
    assert alone.views_agreement is None
    assert alone.level == "strong"


def test_unrelated_views_with_clusters_have_no_common_clusters():
    views, _ = make_blobs(200, spread=8.0)
    repaired = {"a": views["a"], "b": np.random.default_rng(0).permutation(views["b"])}
    model = Tuned("auto", random_state=0).fit(repaired)
    assert model.n_clusters_ == 1
    assert model.validity_.stable_views == ("a", "b")
    assert model.reason_.startswith("No common clusters found. The clusters of the views are unrelated")


def test_similarities_to_training_samples_have_no_validity():
    x = noise(150)["view0"]
    model = TMvKSCR(2, kernel="precomputed", random_state=0).fit(x[:60] @ x[:60].T + 30)
    assert measure_validity(model, as_views([x[60:] @ x[:60].T + 30]), np.arange(90) % 2) is None


def test_a_method_of_another_library_that_cannot_be_refitted_has_no_validity():
    views, _ = make_blobs(100, spread=8.0)
    everything = AgglomerativeClustering(3, connectivity=np.ones((100, 100)))
    assert validity_of(Concat(everything), views) is None


def test_clusters_with_few_samples_in_the_subset_have_no_stability():
    views, truth = make_blobs(100, spread=8.0)
    labels = truth.copy()
    labels[:3] = 3
    validity = measure_validity(TMvKSCR(3, random_state=0).fit(views), as_views(views), labels)
    assert [value is None for value in validity.cluster_stability] == [False, False, False, True]


def test_too_few_samples_or_one_cluster_have_no_measures():
    few = {name: x[:12] for name, x in noise().items()}
    assert validity_of(TMvKSCR(2, random_state=0), few) is None
    assert validity_of(TMvKSCR(1, random_state=0), noise()) is None
    assert validity_of(TMvKSCR(60, random_state=0), noise()) is None  # halves would have fewer than two of each


def test_distances_in_the_input_need_no_bandwidth(monkeypatch):
    def refuse(self, *given):
        raise AssertionError("the bandwidth is not used")

    rows = np.random.default_rng(0).normal(size=(20, 3))
    monkeypatch.setattr(RBF, "resolve", refuse)
    np.testing.assert_allclose(_distances(rows, RBF()), cdist(rows, rows), atol=1e-7)


def test_the_silhouette_is_that_of_the_input_and_not_of_the_scores():
    views = noise(150)
    model = TMvKSCR(3, kernel="rbf", random_state=0).fit(views)
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
    np.testing.assert_allclose(np.cov(made.T) / scale, np.cov(real.T) / scale, atol=0.1)
    labels = [KMeans(3, n_init=5, random_state=0).fit_predict(each) for each in (real, made)]
    assert silhouette_score(real, labels[0]) > silhouette_score(made, labels[1]) + 0.2


def test_rows_of_one_norm_have_reference_data_of_this_norm():
    views, _ = make_blobs(50)
    views = Views({"a": 3 * views["a"] / np.linalg.norm(views["a"], axis=1, keepdims=True), "b": views["b"]})
    drawn = Reference(views).draw("normal", np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(drawn["a"], axis=1), 3)
    assert np.ptp(np.linalg.norm(drawn["b"], axis=1)) > 0.1


def test_log_normal_reference_data_have_the_skewness_of_the_samples():
    x = np.random.default_rng(0).lognormal(sigma=0.6, size=(5000, 1))
    drawn = Reference(Views({"a": x})).draw("log-normal", np.random.default_rng(1))["a"]
    assert skew(drawn)[0] == pytest.approx(skew(x)[0], rel=0.4)
    assert drawn.std() == pytest.approx(x.std(), rel=0.1)


def test_wide_sparse_views_are_written_in_as_many_columns_as_samples():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(20, 50))
    wide = Views({"a": sp.csr_array(dense), "b": rng.normal(size=(20, 3)), "c": dense})
    short = compressed(wide)
    assert {name: x.shape for name, x in short.items()} == {"a": (20, 20), "b": (20, 3), "c": (20, 50)}
    np.testing.assert_allclose(short["a"] @ short["a"].T, dense @ dense.T, atol=1e-9)
    assert short["c"] is wide["c"]  # models may standardise its columns
    assert compressed(Views({"a": rng.normal(size=(4, 20_001))}))["a"].shape == (4, 4)


def test_reference_data_of_counts_are_not_negative():
    counts = Views({"a": np.random.default_rng(0).poisson(1.0, size=(60, 4)).astype(float)})
    assert Reference(counts).draw("normal", np.random.default_rng(0))["a"].min() == 0


def test_two_directions_that_preprocessing_makes_of_one_line_are_not_clusters():
    rng = np.random.default_rng(0)
    line = rng.normal(size=(300, 1))
    views = {name: line @ rng.normal(size=(1, d)) + 0.3 * rng.normal(size=(300, d)) for name, d in (("a", 8), ("b", 9))}
    assert validity_of(Preprocessed(TMvKSCR(2, random_state=0), steps="l2"), views).level == "none"


MEASURES = Validity(600, 0.9, 0.3, 0.4, None, 0.5, 20.0, 3.0, None, None, 0.1, (0.9, 0.8))


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "strong"),
        ({"stability": 0.75}, "moderate"),
        ({"stability": 0.5}, "weak"),
        ({"stability": 0.35}, "none"),  # below the largest value without clusters
        ({"stability": 0.31, "reference_maximum": 0.3}, "none"),  # above, but by too little
        ({"agreement_ratio": 2.9, "stable_views": ()}, "none"),
        ({"agreement_ratio": 2.9, "stable_views": ("a", "b")}, "none"),  # rows may be paired wrongly
        ({"agreement_ratio": 2.9, "stable_views": ("a",), "stable_agreement": 0.9}, "weak"),  # others have no clusters
        ({"agreement_ratio": 2.9, "stable_views": ("a",), "stable_agreement": 0.4}, "none"),  # and disturb those of a
        ({"views_agreement": None, "agreement_ratio": None, "random_ratio": None}, "strong"),  # one view
        ({"reference_stability": None, "reference_maximum": None}, "weak"),  # a stable split of noise is possible
        ({"permuted_stability": 0.6}, "strong"),
        ({"permuted_stability": 0.88}, "weak"),
        ({"reference_stability": 1.0, "reference_maximum": 1.0, "stability": 1.0}, "none"),
    ],
)
def test_the_level_follows_from_the_measures(changes, level):
    validity = replace(MEASURES, **changes)
    assert validity.level == level
    unrelated = validity.is_stable and not validity.views_agree and validity.only_stable_view is None
    said = validity_in_words(validity)[0]
    assert said.startswith(UNRELATED_VIEWS if unrelated else STATEMENTS[level].rstrip("."))
    assert ("only the view 'a' has stable clusters" in said) == (validity.stable_agreement == 0.9)


def test_every_level_has_a_statement():
    assert tuple(STATEMENTS) == LEVELS
    assert STATEMENTS["none"] == "These data show no clusters that a second half of the samples would confirm."


def test_the_measures_in_words():
    assert validity_in_words(MEASURES) == [
        "The support for these clusters is strong.",
        "Two models, fitted on halves of 600 samples, agree with an adjusted Rand index of 0.90, compared with 0.30 "
        "(at most 0.40) on samples with the same covariance and without clusters.",
        "The mean adjusted Rand index between two views, each clustered alone, is 0.50; some views agree more than "
        "with rows that are paired at random.",
        "The mean silhouette in the input is 0.10, on a scale from −1 to 1.",
    ]
