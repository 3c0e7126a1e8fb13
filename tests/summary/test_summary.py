import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import DBSCAN, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture

from coview import (
    COMIC,
    KSC,
    METHODS,
    MVSCBP,
    OPLFMVC,
    OPMC,
    RBF,
    SFMC,
    TSVDMSC,
    Concat,
    CoReg,
    Coview,
    FixedSize,
    InputError,
    Linear,
    MvKSC,
    NeighborGraph,
    PerView,
    TMvKSCR,
    as_views,
    load,
    save,
)
from coview.compose import Preprocessed
from coview.core.drawn import draw_by_cluster
from coview.core.fingerprint import fingerprint
from coview.methods.kernel_method import OneViewKernelMethod
from coview.summary import Samples, Summary, clustering, distinguishing, gather, similarities, summarize
from coview.summary.by_view import fractions_kept_together
from coview.summary.margins import shortened_directions
from coview.summary.plain import plain_record, significant
from coview.summary.settings import parameters
from tests.conftest import make_blobs
from tests.summaries import make_number, make_summary, make_support


def model(n_clusters=3, **settings):
    return TMvKSCR(n_clusters, random_state=0, **settings)


MODELS = {
    **{
        name: method(random_state=0, **({"n_clusters": 3} if "n_clusters" in method().get_params() else {}))
        for name, method in METHODS.items()
    },
    "fixed size": FixedSize(model(), n_train=60, random_state=0),
    "scaled": Preprocessed(model()),
    "fixed size of scaled": FixedSize(Preprocessed(model(), steps="l2"), n_train=60, random_state=0),
    "fixed size of no scores": FixedSize(OPMC(3, random_state=0), n_train=60, random_state=0),
    "fixed size of one table": FixedSize(Concat(KSC(3, random_state=0)), n_train=60, random_state=0),
    "one table": Concat(KSC(3, random_state=0)),
    "k-means": Concat(KMeans(3, n_init=2, random_state=0)),
    "no space at all": Concat(DBSCAN(eps=4)),
    "selected": Coview(random_state=0),
    "fixed size of selected": FixedSize(Coview([2, 3], random_state=0), n_train=60, random_state=0),
    "table of coview": Concat(Coview(3, random_state=0)),
    "per view": PerView(KSC(3, random_state=0)),
    "k-means per view": PerView(KMeans(3, n_init=2, random_state=0)),
    "different per view": PerView({"a": KSC(3, random_state=0), "b": KMeans(3), "c": OPMC(3, random_state=0)}),
}
SCORES = {
    **dict.fromkeys(["tmvkscr", "ksc", "kpca", "mvksc", "fixed size", "scaled", "fixed size of scaled"], 2),
    **dict.fromkeys(["coview", "selected", "fixed size of selected", "table of coview"], 10),
    **dict.fromkeys(["one table", "fixed size of one table", "per view", "different per view"], 2),
    **dict.fromkeys(["oplfmvc", "mvscbp", "k-means", "k-means per view"], 3),
    "coreg": 9,
}
VIEW_SCORES = {
    **dict.fromkeys(["tmvkscr", "mvksc", "coreg", "oplfmvc", "fixed size", "scaled", "fixed size of scaled"], "abc"),
    **dict.fromkeys(["ksc", "kpca"], "a"),
}
VIEW_LABELS = {
    **dict.fromkeys(["tmvkscr", "mvksc", "fixed size", "scaled", "fixed size of scaled"], "abc"),
    **dict.fromkeys(["coview", "selected", "fixed size of selected"], "abc"),
    **dict.fromkeys(["per view", "k-means per view", "different per view"], "abc"),
    **dict.fromkeys(["ksc", "kpca"], "a"),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_method_and_wrapper_can_be_summarised(name, blobs):
    views, truth = blobs
    estimator = MODELS[name]
    if isinstance(estimator, OneViewKernelMethod):
        views = {"a": views["a"]}
    fitted = estimator.fit(views)
    summary = summarize(fitted, views, truth=truth)
    assert Summary.from_json(summary.to_json()) == summary
    assert [cluster.label for cluster in summary.clusters] == np.unique(fitted.labels_).tolist()
    assert [cluster.size for cluster in summary.clusters] == np.unique(fitted.labels_, return_counts=True)[1].tolist()
    assert summary.n_clusters == len(summary.clusters)
    assert summary.truth.ari == pytest.approx(adjusted_rand_score(truth, fitted.labels_), abs=1e-4)
    assert summary.n_train == (60 if "fixed" in name else 90)
    points = summary.points
    assert points.labels == tuple(fitted.labels_.tolist())
    if name in SCORES:
        assert np.shape(points.scores) == (90, SCORES[name])
        assert summary.silhouette > 0.4
        assert len(summary.uncertain) == 20
        assert min(points.margins) == summary.uncertain[0].margin
    else:
        assert points.scores == ()
        assert points.margins is summary.silhouette is summary.clusters[0].margin is None
        assert any("has no score space" in note for note in summary.notes)
    if name not in ("per view", "different per view"):
        assert "".join(points.view_scores) == VIEW_SCORES.get(name, "")
    assert "".join(points.view_labels) == VIEW_LABELS.get(name, "")
    assert all(set(cluster.kept_together) == set(points.view_labels) for cluster in summary.clusters)


def test_numbers_are_those_of_the_model(blobs):
    views, _ = blobs
    fitted = model().fit(views)
    summary = summarize(
        fitted, views, ids=[f"s{i}" for i in range(90)], seconds={"fit": 1.5}, notes=["hello"], command="x"
    )
    np.testing.assert_allclose(summary.eigenvalues, fitted.eigenvalues_, rtol=1e-4)
    np.testing.assert_allclose(summary.explained_variance_ratio, fitted.explained_variance_ratio_, rtol=1e-4)
    np.testing.assert_allclose(summary.points.scores, fitted.scores_, rtol=1e-4)
    for name, scores in fitted.transform(views, per_view=True).items():
        np.testing.assert_allclose(summary.points.view_scores[name], scores, rtol=1e-4)
    places = shortened_directions(fitted.scores_, fitted.labels_)
    assert summary.silhouette == pytest.approx(silhouette_score(places, fitted.labels_), abs=1e-4)
    assert [view.kernel for view in summary.views] == [repr(kernel) for kernel in fitted.kernels_.values()]
    assert [(view.name, view.n_features, view.sparse) for view in summary.views] == [
        ("a", 4, False),
        ("b", 6, False),
        ("c", 3, False),
    ]
    assert summary.points.samples[7] == "s7"
    assert summary.uncertain[0].sample == f"s{summary.uncertain[0].row}"
    assert summary.uncertain[0].nearest_other != summary.uncertain[0].label
    assert summary.seconds == {"fit": 1.5}
    assert summary.notes == ("hello",)
    assert summary.command == "x"
    assert summary.truth is summary.clusters[0].classes is summary.points.classes is None
    assert {"coview", "python", "numpy", "scipy", "scikit-learn"} == set(summary.versions)


def test_members_kept_together_show_which_view_separates_which_cluster():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40)
    # View a separates cluster 0 from the others, and view b cluster 2.
    views = {
        "a": np.array([[0.0], [9.0], [9.0]])[truth] + rng.normal(size=(120, 4)),
        "b": np.array([[0.0], [0.0], [9.0]])[truth] + rng.normal(size=(120, 4)),
    }
    fitted = model(kernel=RBF(), rho=1.0).fit(views)
    summary = summarize(fitted, views, truth=truth)
    assert summary.truth.ari == 1
    by_class = {next(iter(cluster.classes)): cluster.kept_together for cluster in summary.clusters}
    assert by_class["0"]["a"] > 0.9 > 0.75 > by_class["0"]["b"]
    assert by_class["2"]["b"] > 0.9 > 0.75 > by_class["2"]["a"]
    for view in summary.views:
        assert view.agreement == pytest.approx(adjusted_rand_score(fitted.view_labels_[view.name], truth), abs=1e-4)


def test_a_view_with_fewer_clusters_leaves_some_without_a_match():
    fractions = fractions_kept_together(np.array([0, 0, 0, 1, 1, 2, 2]), np.array([5, 5, 7, 7, 7, 7, 7]), 3)
    np.testing.assert_allclose(sorted(fractions), [0, 2 / 3, 1])


def test_features_have_names_and_the_right_order():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [30, 20])
    height = pd.DataFrame({"noise": rng.normal(size=50), "height": truth * 5 + rng.normal(size=50), "always": 1.0})
    weight = sp.csr_array(np.column_stack([truth * 20 + rng.random(50), np.zeros(50)]))
    views = {"person": height, "scale": weight}
    fitted = model(2).fit(views)
    summary = summarize(fitted, views)
    small = next(cluster for cluster in summary.clusters if cluster.size == 20)
    assert [(f.view, f.name) for f in small.features] == [
        ("scale", "column 0"),
        ("person", "height"),
        ("person", "noise"),
    ]
    inside, outside = height["height"][truth == 1], height["height"][truth == 0]
    spread = np.sqrt((inside.var(ddof=0) * 20 + outside.var(ddof=0) * 30) / 48)
    height_effect = small.features[1]
    assert height_effect.effect == pytest.approx((inside.mean() - outside.mean()) / spread, rel=1e-4)
    assert (height_effect.inside, height_effect.outside) == pytest.approx((inside.mean(), outside.mean()), rel=1e-4)
    assert summary.views[0].notes == ("1 of 3 columns are constant: always",)
    assert summary.views[1].notes == ("1 of 2 columns are constant: column 1",)
    assert summary.views[1].sparse


def test_many_constant_columns_are_counted():
    views = {"a": np.column_stack([make_blobs()[0]["a"], np.ones((90, 8))])}
    summary = summarize(model().fit(views), views)
    assert summary.views[0].notes[0].endswith("column 4, column 5, column 6, column 7, column 8 and 3 more")


def test_at_most_ten_features_and_twenty_samples_are_listed():
    views, _ = make_blobs(widths=(8, 9))
    summary = summarize(model().fit(views), views)
    for cluster in summary.clusters:
        sizes = [abs(feature.effect) for feature in cluster.features]
        assert len(sizes) == 10
        assert sizes == sorted(sizes, reverse=True)
        assert {feature.view for feature in cluster.features} == {"a", "b"}
    assert len(summary.uncertain) == 20


def test_truth_is_compared_class_by_class(blobs):
    views, truth = blobs
    names = np.array(["10", "9", "other"])[truth]
    summary = summarize(model().fit(views), views, truth=names)
    assert summary.truth.classes == ("9", "10", "other")
    assert np.sum(summary.truth.contingency) == 90
    assert (summary.truth.ari, summary.truth.nmi, summary.truth.accuracy, summary.truth.purity) == (1, 1, 1, 1)
    assert all(list(cluster.classes.values()) == [30] for cluster in summary.clusters)
    assert summary.points.classes == tuple(names)
    mixed = summarize(model().fit(views), views, truth=np.where(np.arange(90) < 5, "rare", names))
    for cluster in mixed.clusters:
        counts = list(cluster.classes.values())
        assert counts == sorted(counts, reverse=True)
        assert 0 not in counts


def test_many_samples_are_drawn_at_random_with_some_of_every_cluster(monkeypatch):
    monkeypatch.setattr(clustering, "DRAWN", 100)
    monkeypatch.setattr("coview.model.model._BLOCK_ROWS", 170)
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat([0, 1, 2], [390, 395, 15]))
    views = {name: rng.normal(size=(3, 5))[truth] * 5 + rng.normal(size=(800, 5)) for name in "ab"}
    fitted = FixedSize(model(kernel=RBF(), rho=0.5), n_train=300, random_state=0).fit(views)
    assert adjusted_rand_score(fitted.labels_, truth) > 0.95
    summary = summarize(fitted, views)
    points = summary.points
    assert len(points.rows) == 100
    assert list(points.rows) == sorted(set(points.rows))
    assert np.bincount(points.labels).min() >= 8
    assert points.labels == tuple(fitted.labels_[list(points.rows)].tolist())
    np.testing.assert_allclose(points.scores, fitted.transform(views)[list(points.rows)], rtol=1e-4)
    expected = fitted.predict(views, per_view=True)
    for name, labels in points.view_labels.items():
        assert labels == tuple(expected[name][list(points.rows)].tolist())
    assert summary.notes == (
        "Points, silhouettes and the agreement of the views are those of 100 of the 800 samples, drawn at random with "
        "some from every cluster; all other numbers are of all samples.",
    )
    assert sum(cluster.size for cluster in summary.clusters) == 800
    assert summarize(fitted, views) == summary

    every = model(kernel=RBF(), rho=0.5).fit(views)
    whole = summarize(every, views)
    assert whole.notes[0].startswith("Points and silhouettes are those of 100 of the 800")
    assert whole.views[0].agreement == pytest.approx(
        adjusted_rand_score(every.view_labels_["a"], every.labels_), abs=1e-4
    )


def test_many_components_are_cut_and_noted():
    views, _ = make_blobs(n_samples=150, n_clusters=13, spread=9.0)
    summary = summarize(model(13).fit(views), views)
    assert np.shape(summary.points.scores) == (150, 10)
    assert np.shape(summary.points.view_scores["a"]) == (150, 10)
    assert "Points have the first 10 of 12 components." in summary.notes


def test_new_samples_are_labelled_by_the_model(blobs):
    views, _ = blobs
    half = {name: x[:45] for name, x in views.items()}
    other = {name: x[45:80] for name, x in views.items()}
    for estimator in (model(), FixedSize(model(), n_train=35, random_state=0)):
        fitted = estimator.fit(half)
        summary = summarize(fitted, other)  # as many samples as one of the models was trained on
        assert summary.points.labels == tuple(fitted.predict(other).tolist())
        np.testing.assert_allclose(summary.points.scores, fitted.transform(other), rtol=1e-4)
        expected = {name: tuple(labels.tolist()) for name, labels in fitted.predict(other, per_view=True).items()}
        assert summary.points.view_labels == expected
        assert summary.n_train in (35, 45)
    never_labelled = FixedSize(model(), n_train=35, random_state=0).train(as_views(half))
    assert summarize(never_labelled, half).points.labels == tuple(never_labelled.predict(half).tolist())
    assert summarize(PerView(KMeans(3, n_init=2, random_state=0)).fit(half), other).n_samples == 35
    with pytest.raises(
        InputError, match="CoReg cannot label new samples, and these 35 are not the 45 training samples"
    ):
        summarize(CoReg(3).fit(half), other)


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: FixedSize(m, n_train=40, random_state=0), Preprocessed])
@pytest.mark.parametrize("method", [TMvKSCR, OPMC])
def test_as_many_new_samples_are_not_taken_for_the_training_samples(method, wrap):
    views, truth = make_blobs(n_samples=120)
    mixed = np.random.default_rng(1).permutation(120)
    train, new = ({name: x[rows] for name, x in views.items()} for rows in (mixed[:60], mixed[60:]))
    model = wrap(method(3, random_state=0)).fit(train)
    summary = summarize(model, new, truth=truth[mixed[60:]])
    assert summary.points.labels == tuple(model.predict(new).tolist())
    assert summary.truth.ari > 0.9
    assert summarize(model, train).points.labels == tuple(model.labels_.tolist())


@pytest.mark.parametrize("method", [TMvKSCR, OPMC])
@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: FixedSize(m, n_train=40, random_state=0)])
def test_another_batch_that_mostly_shares_its_labels_is_not_taken_for_the_training_samples(method, wrap):
    """Half of the labels of another batch match by chance for two clusters; here nearly all of them do."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 40)
    train = {name: 9.0 * truth[:, None] + rng.normal(size=(80, 4)) for name in "ab"}
    new = {
        name: 9.0 * np.where(np.arange(80) % 10, truth, 1 - truth)[:, None] + rng.normal(size=(80, 4)) for name in "ab"
    }
    fitted = wrap(method(2, random_state=0)).fit(train)
    assert 0 < np.mean(fitted.predict(new) != fitted.labels_) < 0.5
    assert summarize(fitted, new).points.labels == tuple(fitted.predict(new).tolist())


@pytest.mark.parametrize(
    "form",
    [
        lambda views: list(views.values()),
        lambda views: {name: pd.DataFrame(x) for name, x in views.items()},
        lambda views: {name: x.astype(np.float32) for name, x in views.items()},
        lambda views: {name: sp.csr_array(x) for name, x in views.items()},
        lambda views: dict(reversed(views.items())),
        as_views,
    ],
)
def test_training_samples_have_one_fingerprint_in_every_form(form, blobs):
    views, _ = blobs
    fitted = OPMC(3, random_state=0).fit(views)
    assert fitted.model_.is_of(fitted.check(form(views)))


def test_training_samples_have_one_fingerprint_on_file_and_after_loading(tmp_path, blobs):
    views, _ = blobs
    fitted = FixedSize(OPMC(3, random_state=0), n_train=40, random_state=0).fit(views)
    save(fitted, tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    for name, x in views.items():
        np.save(tmp_path / f"{name}.npy", x)
    mapped = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in views}
    assert loaded.model_.is_of(as_views(mapped))
    assert not loaded.model_.is_of(as_views({name: x[::-1] for name, x in views.items()}))


@pytest.mark.parametrize("row", [1, 700, 1998])
def test_a_change_of_one_row_among_many_changes_the_fingerprint(row):
    x = np.random.default_rng(0).normal(size=(2000, 100))
    changed = x.copy()
    changed[row, 50] += 1e-3
    assert fingerprint(as_views(x)) != fingerprint(as_views(changed))


def test_views_beyond_the_limit_are_hashed_in_evenly_spaced_rows(monkeypatch):
    monkeypatch.setattr("coview.core.fingerprint._MOST_VALUES", 30)
    x = np.random.default_rng(0).normal(size=(100, 3))
    changed = x.copy()
    changed[1] = 0  # between two of the ten rows that are hashed
    assert fingerprint(as_views(x)) == fingerprint(as_views(changed))
    changed[99] = 0
    assert fingerprint(as_views(x)) != fingerprint(as_views(changed))


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_fingerprints_distinguish_values_beyond_float32(scale):
    x = np.random.default_rng(0).normal(size=(20, 3))
    assert fingerprint(as_views(scale * x)) != fingerprint(as_views(scale * x[::-1]))


def test_other_views_of_a_method_without_predict_are_refused(blobs):
    views, _ = blobs
    fitted = CoReg(3, random_state=0).fit(views)
    assert summarize(fitted, views).points.labels == tuple(fitted.labels_.tolist())
    with pytest.raises(
        InputError, match="CoReg cannot label new samples, and these 90 are not the 90 training samples"
    ):
        summarize(fitted, {name: x[::-1] for name, x in views.items()})


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_other_samples_of_the_same_shape_are_summarised_by_their_own_labels(n_clusters):
    """Labels of the training samples in the same order, as those of rows sorted by class, show nothing."""
    rng = np.random.default_rng(0)
    centres, truth = 6 * rng.normal(size=(n_clusters, 4)), np.repeat(np.arange(n_clusters), 60 // n_clusters)
    for seed in range(5):
        drawn = np.random.default_rng(seed)
        x, other = (centres[truth] + drawn.normal(size=(len(truth), 4)) for _ in range(2))
        model = TMvKSCR(n_clusters, random_state=0).fit([x])
        assert model.model_.is_of(as_views(x))
        for data in (other, x[drawn.permutation(len(x))]):
            assert not model.model_.is_of(as_views(data))
            assert summarize(model, [data]).points.labels == tuple(model.predict([data]).tolist())


@pytest.mark.parametrize("method", [COMIC, CoReg, OPLFMVC, SFMC, TSVDMSC])
def test_methods_without_predict_refuse_other_samples_of_the_same_number(method, blobs):
    views, _ = blobs
    model = (method(random_state=0) if method is COMIC else method(3, random_state=0)).fit(views)
    moved = {name: x + (name == "b") * np.eye(*x.shape) for name, x in views.items()}
    with pytest.raises(InputError, match=f"{method.__name__} cannot label new samples, and these 90 are not the 90"):
        summarize(model, moved)


def test_training_samples_of_mvscbp_are_summarised_by_labels_and_others_by_predict():
    x = np.random.default_rng(0).normal(size=(60, 3))
    model = MVSCBP(3, random_state=0).fit([x])
    assert (model.predict([x]) != model.labels_).any()
    assert summarize(model, [x]).points.labels == tuple(model.labels_.tolist())
    assert summarize(model, [x[::-1]]).points.labels == tuple(model.predict([x[::-1]]).tolist())


def test_new_samples_with_the_labels_of_the_training_samples_have_their_own_scores(blobs):
    views, _ = blobs
    model = TMvKSCR(3, random_state=0).fit(views)
    moved = {name: x + 0.3 * np.random.default_rng(0).normal(size=x.shape) for name, x in views.items()}
    np.testing.assert_array_equal(model.predict(moved), model.labels_)
    np.testing.assert_allclose(summarize(model, moved).points.scores, model.transform(moved), rtol=1e-4)


@pytest.mark.parametrize("wrap", [Preprocessed, Concat, PerView])
def test_the_training_samples_of_a_wrapped_model_are_counted(wrap, blobs):
    views, _ = blobs
    inner = FixedSize(KSC(3) if wrap is Concat else TMvKSCR(3), n_train=30, random_state=0)
    assert summarize(wrap(inner).fit(views), views).n_train == 30


def test_classes_are_in_reading_order(blobs):
    views, _ = blobs
    names = ["gene10", "nan", "10", "gene9", "2", "-1", "x" + "9" * 5000]
    classes = [names[i % 7] for i in range(len(next(iter(views.values()))))]
    summary = summarize(TMvKSCR(3, random_state=0).fit(views), views, truth=classes)
    assert summary.truth.classes == ("-1", "2", "10", "gene9", "gene10", "nan", names[-1])


def fused(grams, kappa, rho):
    """Weighted sum and product of centred matrices, entry by entry, scaled to ones on the diagonal."""
    centred = []
    for gram in grams:
        n, weights = len(gram), 1 / gram.sum(axis=1)
        centring = np.eye(n) - np.outer(np.ones(n), weights / weights.sum())
        centred.append(centring @ gram @ centring.T)
    values = rho * sum(k * gram for k, gram in zip(kappa, centred, strict=True)) + (1 - rho) * np.prod(centred, axis=0)
    return values / np.sqrt(np.outer(values.diagonal(), values.diagonal()))


@pytest.mark.parametrize(("kappa", "rho"), [([1.0, 1.0], 0.5), ([0.0, 2.0], 1.0), ([1.0, 1.0], 0.0)])
def test_fused_similarities_have_the_rho_and_kappa_of_the_model(blobs, monkeypatch, kappa, rho):
    views, _ = blobs
    views = {"a": views["a"], "b": np.abs(views["b"])}
    monkeypatch.setattr(similarities, "COMPARED", 90)
    fitted = model(kernel=[RBF(), Linear()], kappa=kappa, rho=rho).fit(views)
    found = summarize(fitted, views).similarities
    order = np.argsort(fitted.labels_, kind="stable")
    grams = [fitted.kernels_[name](x[order]) for name, x in views.items()]
    assert found.name == "fused similarity"
    np.testing.assert_allclose(found.values, fused(grams, kappa, rho), rtol=1e-2, atol=1e-9)


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: Preprocessed(m, "none")])
def test_similarities_of_training_samples_are_those_of_the_graph_of_the_model(blobs, monkeypatch, wrap):
    views, _ = blobs
    monkeypatch.setattr(similarities, "COMPARED", 40)
    fitted = wrap(model(kernel=NeighborGraph(), rho=1.0)).fit(views)
    drawn = np.sort(draw_by_cluster(fitted.labels_, 40))
    some = drawn[np.argsort(fitted.labels_[drawn], kind="stable")]
    grams = [each.similarity.gram[some][:, some].toarray() for each in fitted.model_.predictor.score_maps.values()]
    found = summarize(fitted, views).similarities
    np.testing.assert_allclose(found.values, fused(grams, [1.0] * len(grams), 1.0), rtol=1e-2, atol=1e-3)


def test_some_samples_of_every_cluster_are_compared(blobs, monkeypatch):
    views, _ = blobs
    monkeypatch.setattr(similarities, "COMPARED", 40)
    found = summarize(model().fit(views), views).similarities
    assert len(found.labels) == 40
    assert list(found.labels) == sorted(found.labels)
    assert set(found.labels) == {0, 1, 2}
    values = np.array(found.values)
    np.testing.assert_allclose(values, values.T)
    np.testing.assert_allclose(values.diagonal(), 1, atol=1e-3)


def test_methods_without_rho_have_the_mean_similarity_of_the_views(blobs):
    views, _ = blobs
    views = {"a": views["a"], "b": np.abs(views["b"])}
    fitted = MvKSC(3, kernel=[RBF(), Linear()], random_state=0).fit(views)
    found = summarize(fitted, views).similarities
    order = np.argsort(fitted.labels_, kind="stable")
    a = fitted.kernels_["a"](views["a"][order])
    b = views["b"][order] @ views["b"][order].T
    b /= np.sqrt(np.outer(b.diagonal(), b.diagonal()))
    assert found.name == "mean similarity"
    np.testing.assert_allclose(found.values, (a + b) / 2, rtol=1e-2)


@pytest.mark.parametrize(
    ("wrap", "expected"),
    [
        (lambda m: m, ("as it is", "as it is")),
        (Preprocessed, ("standardised columns", "standardised columns")),
        (
            lambda m: Preprocessed(m, {"b": "l2+pca2"}),
            ("as it is", "L2-normalised rows, at most 2 principal components"),
        ),
        (
            lambda m: FixedSize(Preprocessed(m, ["l2", "none"]), n_train=60, random_state=0),
            ("L2-normalised rows", "as it is"),
        ),
        (
            lambda m: Preprocessed(Preprocessed(m, "l2"), {"a": "pca3"}),
            ("at most 3 principal components, L2-normalised rows", "L2-normalised rows"),
        ),
        (lambda m: PerView({"a": Preprocessed(m), "b": m}), ("standardised columns", "as it is")),
        (lambda m: Concat(Preprocessed(m, "l2")), ("L2-normalised rows (of all columns)",) * 2),
        (
            lambda m: Preprocessed(Concat(KMeans(3, n_init=1, random_state=0)), "l2"),
            ("L2-normalised rows", "L2-normalised rows"),
        ),
    ],
)
def test_the_preprocessing_of_each_view_is_described(blobs, wrap, expected):
    views = {name: blobs[0][name] for name in "ab"}
    summary = summarize(wrap(model()).fit(views), views)
    for view, words in zip(summary.views, expected, strict=True):
        assert view.preprocessing.startswith(words)
    assert Summary.from_json(summary.to_json()) == summary


def test_the_representations_of_coview_are_its_preprocessing():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 40)
    wide = rng.normal(size=(80, 30)) * 3 + groups[:, None]
    views = {"wide": wide, "narrow": groups[:, None] * [100.0, 0.01] + rng.normal(size=(80, 2)) * [10, 0.001]}
    words = [view.preprocessing for view in summarize(Coview(2, random_state=0).fit(views), views).views]
    assert words == ["L2-normalised rows; standardised columns", "standardised columns"]
    wrapped = Preprocessed(Coview(2, random_state=0), {"wide": "pca3"}).fit(views)
    assert summarize(wrapped, views).views[0].preprocessing.startswith("at most 3 principal components, ")


def test_similarities_are_those_of_the_preprocessed_views(blobs):
    views, _ = blobs
    fitted = Preprocessed(model()).fit(views)
    found = summarize(fitted, views).similarities
    scaled = {name: (x - x.mean(axis=0)) / x.std(axis=0) for name, x in views.items()}
    assert found == summarize(model().fit(scaled), scaled).similarities


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_gram_matrices_have_similarities_but_no_features(blobs, kind):
    views, _ = blobs
    grams = {name: RBF(20.0)(x) for name, x in views.items()}
    fitted = model(kernel="precomputed", rho=0.5).fit({name: kind(gram) for name, gram in grams.items()})
    summary = summarize(fitted, {name: kind(gram) for name, gram in grams.items()})
    order = np.argsort(fitted.labels_, kind="stable")
    expected = fused([gram[np.ix_(order, order)] for gram in grams.values()], [1, 1, 1], 0.5)
    np.testing.assert_allclose(summary.similarities.values, expected, rtol=1e-2, atol=1e-9)
    assert all(cluster.features == () for cluster in summary.clusters)
    assert summary.views[0].notes == ("The columns are similarities to samples, not features.",)
    some = summarize(fitted, {name: kind(gram[:30]) for name, gram in grams.items()})
    assert some.similarities is None
    assert len(some.points.scores) == 30


def test_rows_without_self_similarity_have_similarities_of_zero():
    normalised = similarities.with_unit_diagonal(np.array([[4.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(normalised, [[1, 0], [0, 0]])


def test_models_set_to_data_frames_stay_so(blobs):
    views, _ = blobs
    fitted = FixedSize(model(), n_train=60, random_state=0).set_output(transform="pandas").fit(views)
    assert np.shape(summarize(fitted, views).points.view_scores["a"]) == (90, 2)
    assert isinstance(fitted.transform(views), pd.DataFrame)


def test_fewer_clusters_than_requested_are_noted():
    view = np.repeat([[0.0], [5.0]], 10, axis=0)
    with pytest.warns(match="found 2 distinct clusters"):
        fitted = KSC(3, kernel=RBF(1.0), random_state=0).fit(view)
    summary = summarize(fitted, view)
    assert summary.n_clusters == 2
    assert "3 clusters were requested, and 2 have members." in summary.notes


@pytest.mark.filterwarnings("ignore:3 clusters are requested for 3:sklearn.exceptions.ConvergenceWarning")
def test_clusters_of_one_sample_each_have_no_silhouette():
    view = np.array([[0.0], [5.0], [9.0]])
    summary = summarize(KSC(3, random_state=0).fit(view), view)
    assert summary.n_clusters == 3
    assert summary.silhouette is None
    assert len(summary.uncertain) == 3


def test_one_cluster_has_neither_margin_nor_features():
    view = np.random.default_rng(0).normal(size=(20, 2))
    summary = summarize(KSC(1).fit(view), view)
    assert summary.n_clusters == 1
    assert summary.clusters[0].features == ()
    assert summary.clusters[0].margin is summary.silhouette is None
    assert summary.uncertain == ()
    assert "in 1 cluster from 1 view)" in repr(summary)


def test_parameters_are_json_values(blobs):
    views, _ = blobs

    def quiet(stage, done, total):
        pass

    inner = TMvKSCR(
        3,
        kernel={"a": RBF(2.0), "b": RBF(), "c": RBF()},
        kappa=np.ones(3),
        rho=np.float64(0.5),
        progress=quiet,
        random_state=np.random.default_rng(0),
    )
    summary = summarize(FixedSize(inner, n_train=0.9, random_state=0).fit(views), views)
    assert summary.method == "FixedSize(TMvKSCR)"
    assert summary.parameters["n_train"] == 0.9
    found = summary.parameters["estimator"]
    assert found["class"] == "TMvKSCR"
    assert found["kernel"] == {"a": "RBF(sigma2=2.0)", "b": "RBF(sigma2=None)", "c": "RBF(sigma2=None)"}
    assert found["kappa"] == [1.0, 1.0, 1.0]
    assert found["rho"] == 0.5
    assert found["progress"] == "quiet"
    assert found["random_state"] == "Generator(PCG64)"
    stacked = np.hstack(list(views.values()))
    columns = [list(range(4)), slice(4, 13)]
    summary = summarize(OPMC(3, tol=1e-5, views=columns, random_state=0).fit(stacked), stacked)
    assert summary.parameters["views"] == [[0, 1, 2, 3], "slice(4, 13, None)"]
    several = summarize(MODELS["different per view"].fit(views), views)
    assert several.method == "PerView(KSC, KMeans, OPMC)"
    assert several.parameters["estimator"]["b"]["class"] == "KMeans"


def test_large_and_infinite_parameters_are_described():
    inner = parameters(Concat(KMeans(2, tol=np.inf, init=np.zeros((2, 60)))))["estimator"]
    assert inner["tol"] == "inf"
    assert inner["init"] == "array of shape (2, 60)"


def test_bad_arguments_are_refused(blobs):
    views, truth = blobs
    fitted = model().fit(views)
    with pytest.raises(InputError, match="ids has 5 entries, but the views have 90 samples"):
        summarize(fitted, views, ids=range(5))
    with pytest.raises(InputError, match="truth has 89 entries, but the views have 90 samples"):
        summarize(fitted, views, truth=truth[1:])
    with pytest.raises(TypeError, match="model is a KMeans"):
        summarize(KMeans(3), views)
    with pytest.raises(NotFittedError):
        summarize(model(), views)
    with pytest.raises(InputError, match="unknown: d"):
        summarize(fitted, {**views, "d": views["a"]})


def test_summaries_of_many_samples_stay_small():
    rng = np.random.default_rng(0)
    truth = rng.integers(10, size=50_000)
    views = {
        f"view {d}": (rng.normal(size=(10, d))[truth] * 3 + rng.normal(size=(50_000, d))).astype(np.float32)
        for d in (8, 5, 6)
    }
    fitted = FixedSize(model(10), n_train=300, random_state=0).fit(views)
    text = summarize(fitted, views, ids=[f"sample-{i:08}" for i in range(50_000)], truth=truth).to_json()
    assert len(text) < 4_000_000
    assert Summary.from_json(text).n_samples == 50_000


def test_memory_grows_by_a_few_numbers_for_each_sample(tmp_path, monkeypatch):
    """Views on file are read in blocks."""
    monkeypatch.setattr(clustering, "DRAWN", 300)
    monkeypatch.setattr("coview.model.model._BLOCK_ROWS", 1000)
    n, d = 30_000, 200
    x = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(n, d))
    rng = np.random.default_rng(0)
    for start in range(0, n, 1000):
        x[start : start + 1000] = rng.normal(size=(1000, d)) + 3 * rng.integers(2, size=(1000, 1))

    def peak(n_samples):
        fitted = FixedSize(model(2), n_train=50, random_state=0).fit({"a": x[:n_samples]})
        tracemalloc.start()
        try:
            summarize(fitted, {"a": x[:n_samples]})
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)  # imports libraries, whose memory is not that of samples
    large = peak(n)
    assert large - peak(n // 3) < 0.25 * (x.nbytes - x.nbytes // 3)


def small_summary():
    views, truth = make_blobs(n_samples=12, widths=(2, 2))
    return summarize(model().fit(views), views, truth=truth, seconds={"fit": 1.0}, command="coview fit")


def changed(path, value):
    """JSON of a summary in which one entry was changed, or taken out."""
    plain = place = json.loads(small_summary().to_json())
    *parents, last = path
    for key in parents:
        place = place[key]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return json.dumps(plain)


def test_json_has_no_infinity_and_reads_back():
    summary = small_summary()
    assert Summary.from_json(summary.to_json()) == summary
    assert Summary.from_json(summary.to_json().encode()) == summary
    assert json.loads(summary.to_json()) == summary.to_dict()


def test_every_sample_is_listed_with_its_nearest_other_cluster(blobs):
    views, truth = blobs
    fitted = model().fit(views)
    summary = summarize(fitted, views, ids=[f"s{i}" for i in range(90)], truth=truth)
    samples = summary.samples
    assert samples.rows == tuple(range(90))
    assert samples.names[7] == "s7"
    assert samples.labels == tuple(fitted.labels_.tolist())
    assert samples.classes == tuple(map(str, truth))
    assert samples.margins == summary.points.margins
    for least in summary.uncertain:
        assert samples.nearest_others[least.row] == least.nearest_other
    without = summarize(OPMC(3, random_state=0).fit(views), views).samples
    assert (without.classes, without.nearest_others, without.margins) == (None, None, None)


def test_many_samples_are_listed_in_part_and_include_the_plotted_ones(blobs, monkeypatch):
    monkeypatch.setattr(clustering, "DRAWN", 20)
    monkeypatch.setattr(gather, "LISTED", 45)
    views, _ = blobs
    summary = summarize(model().fit(views), views)
    assert len(summary.samples.rows) == 45
    assert set(summary.points.rows) < set(summary.samples.rows)
    assert set(summary.samples.labels) == {0, 1, 2}


CERTAIN = {name: MODELS[name] for name in ("tmvkscr", "mvksc", "kpca", "fixed size", "one table", "per view", "coview")}


@pytest.mark.parametrize("name", CERTAIN)
def test_memberships_and_novelties_are_those_of_the_model(name, blobs):
    views, _ = blobs
    views = {"a": views["a"]} if isinstance(CERTAIN[name], OneViewKernelMethod) else views
    fitted = CERTAIN[name].fit(views)
    summary = summarize(fitted, views)
    samples, points = summary.samples, summary.points
    membership = fitted.predict_proba(views)[np.arange(90), fitted.labels_]
    np.testing.assert_allclose(samples.memberships, membership, rtol=6e-3)  # three significant digits
    np.testing.assert_allclose(samples.novelties, 1 - fitted.score_samples(views), rtol=6e-3)
    assert (points.memberships, points.novelties) == (samples.memberships, samples.novelties)
    means = [membership[fitted.labels_ == cluster.label].mean() for cluster in summary.clusters]
    np.testing.assert_allclose([cluster.membership for cluster in summary.clusters], means, rtol=1e-4)
    for least in summary.uncertain:
        assert least.membership == samples.memberships[least.row]


def test_memberships_and_novelties_of_many_samples_are_those_of_their_rows(blobs, monkeypatch):
    monkeypatch.setattr(clustering, "DRAWN", 20)
    monkeypatch.setattr(gather, "LISTED", 45)
    monkeypatch.setattr("coview.certainty.columns.BLOCK_ROWS", 7)
    views, _ = blobs
    fitted = model().fit(views)
    summary = summarize(fitted, views)
    membership = fitted.predict_proba(views)[np.arange(90), fitted.labels_]
    novelty = 1 - fitted.score_samples(views)
    for part in (summary.samples, summary.points):
        rows = list(part.rows)
        np.testing.assert_allclose(part.memberships, membership[rows], rtol=6e-3)
        np.testing.assert_allclose(part.novelties, novelty[rows], rtol=6e-3)
    listed, labels = list(summary.samples.rows), np.array(summary.samples.labels)
    means = [membership[listed][labels == cluster.label].mean() for cluster in summary.clusters]
    np.testing.assert_allclose([cluster.membership for cluster in summary.clusters], means, rtol=1e-4)
    least = [each.row for each in summary.uncertain]
    assert not set(least) <= set(listed)
    np.testing.assert_allclose([each.membership for each in summary.uncertain], membership[least], rtol=6e-3)


def test_new_samples_far_away_are_novel(blobs):
    views, _ = blobs
    fitted = model().fit(views)
    new = {name: np.concatenate([x[:5], x[:5] + 100]) for name, x in views.items()}
    summary = summarize(fitted, new)
    assert max(summary.samples.novelties[:5]) < 0.99 < min(summary.samples.novelties[5:]) <= 1


@pytest.mark.parametrize("name", ["opmc", "k-means", "no space at all", "different per view"])
def test_models_without_memberships_have_none(name, blobs):
    views, _ = blobs
    summary = summarize(MODELS[name].fit(views), views)
    samples, points = summary.samples, summary.points
    assert samples.memberships is samples.novelties is points.memberships is points.novelties is None
    assert summary.clusters[0].membership is None
    assert all(each.membership is None for each in summary.uncertain)


def test_densities_of_scikit_learn_are_no_novelties(blobs):
    views, _ = blobs
    samples = summarize(Concat(GaussianMixture(3, random_state=0)).fit(views), views).samples
    assert samples.memberships is samples.novelties is None


def test_one_cluster_has_novelties_but_no_memberships():
    views = {"a": np.random.default_rng(0).normal(size=(60, 3))}
    summary = summarize(Coview(random_state=0).fit(views), views)
    assert summary.n_clusters == 1
    assert summary.samples.memberships is summary.clusters[0].membership is None
    assert len(summary.samples.novelties) == 60


def test_novelties_of_samples_that_lack_views(blobs):
    views, _ = blobs
    views["b"][:10] = np.nan
    fitted = model().fit(views)
    samples = summarize(fitted, views).samples
    np.testing.assert_allclose(samples.novelties, 1 - fitted.score_samples(views), rtol=6e-3)


def test_unknown_novelties_are_none_and_others_have_three_digits():
    column = dict.fromkeys(vars(make_summary().samples), (1, 2, 3))
    found = plain_record(Samples, **{**column, "novelties": np.array([0.12345, np.nan, 0.99961])})
    assert found.novelties == (0.123, None, 0.999610000)


def test_the_fraction_of_the_largest_class_is_the_accuracy_of_a_single_cluster(blobs):
    views, _ = blobs
    summary = summarize(model().fit(views), views, truth=["a"] * 70 + ["b"] * 20)
    assert summary.truth.largest_class == pytest.approx(70 / 90, abs=1e-5)


def test_a_measure_is_rounded_to_one_only_if_it_is_one_up_to_rounding_errors():
    assert significant(0.1234567) == 0.12346
    assert significant(0.999997) == 0.999997
    assert significant(1 - 1e-15) == 1


def test_weights_and_further_eigenvalues_are_those_of_the_model(blobs):
    views, _ = blobs
    fitted = Preprocessed(model(rho=0.25, kappa=[1, 2, 0.5])).fit(views)
    summary = summarize(fitted, views)
    assert summary.rho == 0.25
    assert [view.kappa for view in summary.views] == [1, 2, 0.5]
    more = Preprocessed(model(6, rho=0.25, kappa=[1, 2, 0.5])).fit(views).eigenvalues_
    np.testing.assert_allclose(summary.further_eigenvalues, more[2:5], rtol=1e-3)
    assert [sum(view.sizes) for view in summary.views] == [90, 90, 90]
    other = summarize(MvKSC(3, random_state=0).fit(views), views)
    assert other.rho is other.further_eigenvalues is other.views[0].kappa is None
    joined = summarize(Concat(KSC(3, random_state=0)).fit(views), views)
    assert joined.views[0].kappa is joined.views[0].sizes is None
    assert len(joined.further_eigenvalues) == 3


def test_further_eigenvalues_are_saved_with_the_model(blobs, tmp_path):
    views, _ = blobs
    fitted = model().fit(views)
    again = load(save(fitted, tmp_path / "model.safetensors"))
    assert summarize(again, views).further_eigenvalues == summarize(fitted, views).further_eigenvalues


def test_standardised_means_are_those_of_the_best_columns_of_each_cluster(blobs):
    views, _ = blobs
    summary = summarize(model().fit(views), views)
    means, labels = summary.feature_means, np.array(summary.samples.labels)
    best = [(cluster.features[0].view, cluster.features[0].name) for cluster in summary.clusters]
    columns = list(zip(means.views, means.names, strict=True))
    assert set(best) <= set(columns)
    assert len(columns) == len(set(columns)) <= distinguishing.MEANS
    view, name = columns[0]
    column = views[view][:, int(name.removeprefix("column "))]
    expected = [(column[labels == c].mean() - column.mean()) / column.std() for c in range(3)]
    np.testing.assert_allclose([row[0] for row in means.values], expected, rtol=1e-2)


def _numbers(value, path=""):
    """Yield every number, string and flag of a summary, with the path to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, f"{path}.{key}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _numbers(part, f"{path}[{i}]")
    else:
        yield path, value


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_every_number_is_that_of_a_dense_table_in_float64(form):
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], [120, 100, 80])
    rates = np.where(np.arange(40) // 6 == np.arange(3)[:, None], 3.0, 0.05)[
        groups
    ]  # six marker columns for each group
    views = {name: rng.poisson(rates).astype(np.float64) for name in ("rna", "protein")}

    def numbers(views):
        fitted = model(kernel=RBF(sigma2=30.0)).fit(views)
        found = summarize(fitted, views, truth=groups).to_dict()
        # The map amplifies rounding errors of the scores; storage and time are not those of the dense table.
        for part, key in ((found, "map"), (found["points"], "positions"), (found, "seconds")):
            del part[key]
        for view in found["views"]:
            del view["sparse"]
        return dict(_numbers(found))

    expected = {
        # The tolerance is that of scores in float32, which a summary rounds to four to six digits.
        path: pytest.approx(value, rel=1e-4, abs=1e-5) if isinstance(value, float) else value
        for path, value in numbers(views).items()
    }
    for dtype in (np.float32, np.float64, np.int32):
        assert numbers({name: form(x.astype(dtype)) for name, x in views.items()}) == expected


def test_the_number_of_standardised_means_is_limited(blobs, monkeypatch):
    monkeypatch.setattr(distinguishing, "MEANS", 4)
    views, _ = blobs
    summary = summarize(model().fit(views), views)
    best = {(cluster.features[0].view, cluster.features[0].name) for cluster in summary.clusters}
    assert len(summary.feature_means.names) == 4
    assert best <= set(zip(summary.feature_means.views, summary.feature_means.names, strict=True))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["n_samples"], KeyError, "the summary: missing: 'n_samples'"),
        (["extra"], 1, "the summary: unknown: 'extra'"),
        (["n_samples"], "12", "the summary.n_samples: expected an integer, got str"),
        (["n_samples"], True, "n_samples: expected an integer, got bool"),
        (["views", 0, "sparse"], 1, r"views\[0\].sparse: expected true or false, got int"),
        (["method"], None, "method: expected a string, got NoneType"),
        (["clusters"], {}, "clusters: expected a list, got dict"),
        (["clusters", 1, "fraction"], [], r"clusters\[1\].fraction: expected a finite number, got list"),
        (["clusters", 0], [], r"clusters\[0\]: expected an object, got list"),
        (
            ["points", "view_scores", "a", 2, 0],
            "x",
            r"points.view_scores.a\[2\]\[0\]: expected a finite number, got str",
        ),
        (["silhouette"], 10**400, "silhouette: expected a finite number, got int"),
        (["format"], "coview summary 99", "expected a summary of the format"),
        (["n_clusters"], 4, "is inconsistent in 'n_clusters'"),
        (["views", 1, "name"], "a", "is inconsistent in 'views'"),
        (["clusters", 0, "kept_together"], {}, "is inconsistent in 'clusters'"),
        (["points", "samples"], ["0"], "is inconsistent in 'points'"),
        (["points", "labels", 3], 77, "is inconsistent in 'points'"),
        (["points", "scores", 3], [1.0], "is inconsistent in 'points'"),
        (["points", "view_labels", "z"], [0] * 12, "is inconsistent in 'points'"),
        (["truth", "classes"], ["only"], "is inconsistent in 'truth'"),
        (["samples", "names"], ["only"], "is inconsistent in 'samples'"),
        (["samples", "nearest_others", 3], 77, "is inconsistent in 'samples'"),
        (["samples", "memberships"], [0.5], "is inconsistent in 'samples'"),
        (["points", "novelties"], [0.5], "is inconsistent in 'points'"),
        (["feature_means", "names"], ["only"], "is inconsistent in 'feature_means'"),
        (["similarities", "labels"], [0], "is inconsistent in 'similarities'"),
    ],
)
def test_changed_files_are_refused(path, value, message):
    with pytest.raises(InputError, match=message):
        Summary.from_json(changed(path, value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        (b"\xff\xfe\xfa", "not valid JSON"),
        ("[]", "expected a summary of the format"),
        ("{}", "expected a summary of the format"),
        (changed(["silhouette"], float("nan")), "NaN is not a number"),
        (changed(["parameters", "rho"], 5.5).replace("5.5", "1e999"), "parameters.rho: expected a finite number"),
        (
            changed(["parameters", "views"], [{"a": 5.5}]).replace("5.5", "1e999"),
            r"views\[0\].a: expected a finite number",
        ),
    ],
    ids=range(9),
)
def test_other_files_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        Summary.from_json(text)


def test_optional_parts_may_be_missing():
    summary = Summary.from_json(changed(["truth"], None))
    assert summary.truth is None
    assert Summary.from_json(changed(["similarities"], None)).similarities is None


def test_summaries_are_short_in_a_terminal():
    summary = small_summary()
    assert repr(summary) == (
        f"Summary(TMvKSCR: 12 samples in 3 clusters from 2 views, silhouette {summary.silhouette:.2f}, "
        "ARI with known classes 1.00)"
    )
    assert repr(summary.points) == "Points(12 samples, 2 components)"
    assert repr(summary.samples) == "Samples(12 samples)"
    nearly = replace(summary, silhouette=0.003, truth=replace(summary.truth, ari=0.997))
    assert repr(nearly).endswith("silhouette 0.003, ARI with known classes 0.997)")
    assert repr(summary.similarities) == "Similarities(fused similarity of 12 samples)"


def test_notebooks_show_a_table_with_escaped_names():
    views, _ = make_blobs()
    views["<b>a</b>"] = views.pop("a")
    html = summarize(model().fit(views), views)._repr_html_()
    assert "<b>a</b>" not in html
    assert "kept together: &lt;b&gt;a&lt;/b&gt;" in html
    assert html.count("<tr>") == 4
    assert "more clusters" not in html
    views, _ = make_blobs(n_samples=150, n_clusters=25, spread=20.0)
    html = summarize(OPMC(25, random_state=0).fit(views), views)._repr_html_()
    assert html.count("<tr>") == 21
    assert "and 5 more clusters" in html
    assert "<td>–</td>" in html


def test_notebooks_show_clusters_without_samples_of_a_view(blobs):
    views, truth = blobs
    views["a"][truth == 2] = np.nan
    summary = summarize(model().fit(views), views)
    assert any("a" not in cluster.kept_together for cluster in summary.clusters)
    assert "<td>–</td>" in summary._repr_html_()


@pytest.fixture(scope="module")
def selected():
    views, _ = make_blobs()
    return Coview(random_state=0).fit(views), views


def test_the_summary_has_the_selected_number_and_the_support(selected):
    fitted, views = selected
    summary = summarize(fitted, views)
    assert summary.number == fitted.number_
    assert summary.support == fitted.support_
    assert summary.support.level == "strong"
    again = Summary.from_json(summary.to_json())
    assert (again.number, again.support) == (fitted.number_, fitted.support_)
    inside = FixedSize(Coview(random_state=0), n_train=60, random_state=0).fit(views)
    assert summarize(inside, views).number == inside.model_.learnt["number_"]
    assert summarize(inside, views).support == inside.model_.learnt["support_"]
    for given in (Coview(3, random_state=0), model()):
        assert summarize(given.fit(views), views).number is None


@pytest.mark.parametrize("method", [Coview(3, random_state=0), model(), OPMC(3, random_state=0)])
def test_the_support_of_a_given_number_is_measured(method, selected):
    _, views = selected
    support = summarize(method.fit(views), views).support
    assert support.n_samples == 90
    assert support.clusters == (0, 1, 2)
    assert max(support.valleys) <= 0.4
    assert support.level == "strong"
    rng = np.random.default_rng(0)
    noise = {name: rng.normal(size=(200, 8)) for name in "ab"}
    assert summarize(method.fit(noise), noise).support.level == "none"


def test_the_support_by_the_best_view_is_measured_on_all_views(selected):
    _, views = selected
    fitted = PerView(Coview(random_state=0)).fit(views)
    support = summarize(fitted, views).support
    of_all = summarize(Coview(3, random_state=0).fit(views), views).support
    assert sorted(support.valleys) == sorted(of_all.valleys)  # clusters of equal size may have other numbers
    assert sorted(support.valleys) != sorted(fitted.model_.learnt["support_"].valleys)


def test_there_is_no_support_of_new_samples_of_one_given_cluster_and_of_precomputed_kernels(selected):
    fitted, views = selected
    new = {name: x[::2] for name, x in views.items()}
    summary = summarize(fitted, new)
    assert summary.support is None
    assert summary.number == fitted.number_
    assert summarize(Coview(1, random_state=0).fit(views), views).support is None
    gram = views["a"] @ views["a"].T
    assert summarize(TMvKSCR(3, kernel="precomputed", random_state=0).fit([gram]), [gram]).support is None


def test_one_selected_cluster_has_support_and_number():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(120, 4)), rng.normal(size=(120, 3))]
    summary = summarize(Coview(random_state=0).fit(views), views)
    assert summary.n_clusters == summary.number.n_clusters == 1
    assert summary.support.level == "none"
    assert summary.support.valleys == summary.support.nearest == (None,)
    assert summary.support.groups[0].structure is not None
    assert Summary.from_json(summary.to_json()) == summary
    assert summary.tree is summary.views[0].agreement is None


def test_the_scores_and_labels_by_view_of_coview_are_summarised(selected):
    fitted, views = selected
    summary = summarize(fitted, views)
    assert summary.method == "Coview"
    np.testing.assert_allclose(summary.points.scores, fitted.scores_[:, :10], rtol=1e-3, atol=1e-6)
    for name, labels in fitted.predict(views, per_view=True).items():
        assert summary.points.view_labels[name] == tuple(labels.tolist())
    np.testing.assert_allclose(summary.eigenvalues, fitted.eigenvalues_, rtol=1e-4)
    assert summary.further_eigenvalues is summary.explained_variance_ratio is summary.rho is None
    assert {view.kernel for view in summary.views} == {view.kappa for view in summary.views} == {None}


def test_similarities_of_coview_are_cosine_similarities_of_its_scores(selected):
    fitted, views = selected
    similarities = summarize(fitted, views).similarities
    assert similarities.name == "cosine similarity of the scores"
    scores = fitted.scores_[np.argsort(fitted.labels_, kind="stable")]
    units = scores / np.linalg.norm(scores, axis=1, keepdims=True)
    np.testing.assert_allclose(similarities.values, units @ units.T, atol=6e-4)  # three digits
    new = summarize(fitted, {name: x[:40] for name, x in views.items()}).similarities
    np.testing.assert_allclose(np.diag(new.values), 1, atol=1e-3)


def with_part(part, path, value):
    plain = json.loads(replace(make_summary(), support=make_support(), number=make_number()).to_json())
    place = plain[part]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(plain)


def test_number_and_support_read_back():
    for level in ("none", "weak", "moderate", "strong"):
        summary = replace(make_summary(), support=make_support(10, level), number=make_number())
        assert Summary.from_json(summary.to_json()) == summary
    neither = replace(make_summary(), support=None, number=None)
    assert Summary.from_json(neither.to_json()) == neither


@pytest.mark.parametrize(
    ("part", "path", "value"),
    [
        ("support", ["valleys"], [0.3]),
        ("support", ["nearest"], [1]),
        ("support", ["nearest", 3], 77),
        ("support", ["clusters", 9], 77),
        ("support", ["clusters", 9], 8),
        ("support", ["groups", 1, "clusters"], [0]),  # in two groups
        ("support", ["groups", 1, "clusters"], []),
        ("support", ["groups", 0, "clusters"], [0, 1, 2, 77]),
        ("support", ["groups"], []),
        ("support", ["n_samples"], 401),
        ("number", ["n_clusters"], 9),
        ("number", ["parts"], []),
        ("number", ["votes", 0], [9]),
    ],
)
def test_a_changed_number_or_support_is_refused(part, path, value):
    with pytest.raises(InputError, match=f"is inconsistent in '{part}'"):
        Summary.from_json(with_part(part, path, value))


def test_samples_that_dominate_a_component_are_named():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 100)
    views = {name: 3 * rng.normal(size=(3, d))[truth] + rng.normal(size=(300, d)) for name, d in (("a", 8), ("b", 15))}
    for x in views.values():
        x[[7, 200]] = 30 * rng.normal(size=(2, x.shape[1]))
    names = [f"sample {row}" for row in range(300)]
    method = model(kernel=RBF())
    assert (
        "The degrees are regularised, because 2 training samples, possibly outliers, dominate a component otherwise: "
        "sample 7, sample 200." in summarize(method.fit(views), views, ids=names).notes
    )
    some = FixedSize(method, n_train=250, random_state=0).fit(views)
    assert not any("sample 7" in note for note in summarize(some, views, ids=names).notes)
