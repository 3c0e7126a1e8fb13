"""Wrappers: preprocessed views, all views as one table, one model per view, training on a subset."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from coview import (
    KPCA,
    KSC,
    METHODS,
    MVSCBP,
    OPMC,
    RBF,
    Concat,
    Coview,
    FixedSize,
    InputError,
    Linear,
    PerView,
    Preprocessed,
    Stratified,
    TMvKSCR,
    Uniform,
    as_views,
    load,
    save,
    stack_views,
    summarize,
)
from coview.compose.concat import Stack
from coview.compose.preprocessed import Preprocess
from coview.compose.wrapper import Foreign
from coview.core.assign import number_by_size
from coview.core.score import ScoreMap
from coview.model.kernel_predictor import KernelPredictor
from coview.preprocess.steps import preprocessing_per_view
from tests.conftest import make_blobs

WRAPPER = pytest.mark.parametrize("wrapper", [Concat, PerView])


def test_concat_is_the_estimator_on_the_stacked_views():
    views, _ = make_blobs(spread=1.0)
    X, layout = stack_views(views)
    alone = KSC(3, random_state=0).fit(X)
    model = Concat(KSC(3, random_state=0)).fit(views)
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_array_equal(model.predict(views), alone.predict(X))
    np.testing.assert_array_equal(Concat(KSC(3, random_state=0), views=layout).fit(X).labels_, alone.labels_)
    sparse = {name: sp.csr_array(x) for name, x in views.items()}
    np.testing.assert_array_equal(Concat(KSC(3, random_state=0)).fit(sparse).labels_, alone.labels_)


def test_the_estimator_inside_concat_checks_the_stacked_table():
    views, truth = make_blobs(spread=8.0)
    constant = {"constant": np.ones((90, 2)), **views}
    assert adjusted_rand_score(truth, Concat(Coview(3, random_state=0)).fit(constant).labels_) == 1
    with pytest.raises(InputError, match=r"^view 'all' has the same values in all 90 samples; drop the view$"):
        Concat(Coview(3)).fit({"constant": np.ones((90, 2)), "zero": np.zeros((90, 1))})
    by_name = Concat(PerView({"all": KSC(3, random_state=0)})).fit(views)
    np.testing.assert_array_equal(by_name.labels_, Concat(KSC(3, random_state=0)).fit(views).labels_)


def test_per_view_has_every_views_own_clusters():
    views, _ = make_blobs(spread=1.0)
    model = PerView(KSC(3, random_state=0)).fit(views)
    assert list(model.model_.predictor.models) == list(model.view_labels_) == list(model.merits_) == ["a", "b", "c"]
    for name, x in views.items():
        alone = KSC(3, random_state=0).fit(x)
        np.testing.assert_array_equal(model.view_labels_[name], alone.labels_)
        np.testing.assert_array_equal(model.predict(views, per_view=True)[name], alone.labels_)
    np.testing.assert_array_equal(model.labels_, model.view_labels_[model.best_view_])
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_the_view_that_agrees_best_with_the_others_is_selected():
    views, truth = make_blobs()
    noise = np.random.default_rng(5).normal(size=(90, 4))
    model = PerView(KSC(3, random_state=0)).fit({"noise": noise, **views})
    assert adjusted_rand_score(truth, model.labels_) == 1
    assert model.merits_["noise"] < 0.1 < model.merits_["a"]


def test_merit_is_agreement_times_size_entropy():
    x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    uneven = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [9.0]])
    model = PerView(KMeans(2, n_init=3, random_state=0)).fit([x, 2 * x, uneven])
    agreement = adjusted_rand_score([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1])
    entropy = -(5 / 6 * np.log2(5 / 6) + 1 / 6 * np.log2(1 / 6))
    np.testing.assert_allclose(
        list(model.merits_.values()), [(1 + agreement) / 2, (1 + agreement) / 2, agreement * entropy]
    )
    assert model.best_view_ == "view0"


def test_a_view_without_clusters_is_not_selected():
    views, truth = make_blobs()
    constant = {"constant": np.ones((90, 2)), "a": views["a"]}
    with pytest.warns(ConvergenceWarning, match="found 1 distinct"):
        model = PerView(KSC(3, random_state=0)).fit(constant)
    assert model.best_view_ == "a"
    assert adjusted_rand_score(truth, model.labels_) == 1


def test_pipelines_can_be_wrapped():
    views, truth = make_blobs()
    model = Concat(make_pipeline(StandardScaler(), KSC(3, random_state=0))).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_a_single_view_is_selected():
    views, truth = make_blobs()
    model = PerView(KSC(3, random_state=0)).fit({"a": views["a"]})
    assert model.best_view_ == "a"
    assert adjusted_rand_score(truth, model.labels_) == 1


def test_views_can_have_estimators_of_their_own():
    views, _ = make_blobs(spread=1.0)
    kernels = {"a": RBF(1.0), "b": RBF(2.0), "c": RBF(3.0)}
    model = PerView({name: KSC(3, kernel=kernel) for name, kernel in kernels.items()}).fit(views)
    models = model.model_.predictor.models
    assert {name: models[name].learnt["kernels_"] for name in models} == {name: {name: kernels[name]} for name in "abc"}
    with pytest.raises(InputError, match="estimator"):
        PerView({"a": KSC(3), "unknown": KSC(3)}).fit(views)


@WRAPPER
def test_wrappers_predict_only_if_the_estimator_does(wrapper):
    views, _ = make_blobs()
    model = wrapper(AgglomerativeClustering(3)).fit({"a": views["a"]} if wrapper is PerView else views["a"])
    assert not hasattr(model, "predict")
    assert hasattr(wrapper(KSC(3)), "predict")
    with pytest.raises(NotFittedError):
        wrapper(KSC(3)).predict(views)


@WRAPPER
def test_the_given_estimator_stays_unfitted(wrapper):
    views, _ = make_blobs()
    estimator = KSC(3, random_state=0)
    before = pickle.dumps(views)
    wrapper(estimator).fit(views)
    assert not hasattr(estimator, "labels_")
    assert pickle.dumps(views) == before


@WRAPPER
def test_new_views_are_checked_against_those_of_fit(wrapper):
    views, _ = make_blobs()
    model = wrapper(KSC(3, random_state=0)).fit(views)
    with pytest.raises(InputError, match="missing: c"):
        model.predict({"a": views["a"], "b": views["b"]})
    np.testing.assert_array_equal(model.predict(dict(reversed(views.items()))), model.labels_)


@WRAPPER
@pytest.mark.parametrize(
    ("estimator", "message"),
    [(3, "estimator=3: expected a clusterer"), (KSC, r"estimator=KSC: expected an instance such as KSC\(3\)")],
)
def test_only_instances_of_clusterers_can_be_wrapped(wrapper, estimator, message):
    with pytest.raises(InputError, match=message):
        wrapper(estimator).fit(make_blobs()[0])


def test_multi_view_methods_can_be_wrapped_too():
    views, truth = make_blobs()
    model = PerView(TMvKSCR(3, random_state=0)).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    assert adjusted_rand_score(truth, Concat(TMvKSCR(3, random_state=0)).fit(views).labels_) == 1


def test_one_view_methods_point_to_the_wrappers():
    with pytest.raises(InputError, match=r"Concat\(KSC\(…\)\) or PerView\(KSC\(…\)\)"):
        KSC(3).fit(make_blobs()[0])


class Rows:
    """A source that records the rows that are read."""

    def __init__(self, views):
        self.views, self.asked = as_views(views), []

    @property
    def n_samples(self):
        return self.views.n_samples

    def take(self, rows):
        self.asked.append(np.asarray(rows))
        return self.views.take(rows)


@pytest.mark.parametrize("select", ["uniform", "entropy", "kmeans", Stratified(np.arange(900) % 2)])
@pytest.mark.parametrize("estimator", [TMvKSCR(3, random_state=0), OPMC(3, random_state=0), MVSCBP(3, random_state=0)])
def test_fixed_size_labels_all_samples_by_a_model_of_some(select, estimator):
    views, truth = make_blobs(900, spread=8.0)
    model = FixedSize(estimator, n_train=90, select=select, random_state=0).fit(views)
    assert model.train_rows_.shape == (90,)
    assert adjusted_rand_score(truth, model.labels_) == 1
    alone = clone(estimator).fit(as_views(views).take(model.train_rows_))
    if hasattr(alone, "recluster"):
        alone.recluster(views)
    np.testing.assert_array_equal(model.labels_, number_by_size(alone.predict(views))[0])
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize(
    "estimator",
    [
        TMvKSCR(3, random_state=0),
        TMvKSCR(3, assigner="codebook", random_state=0),
        Preprocessed(TMvKSCR(3, random_state=0), "standard"),
        Concat(KSC(3, random_state=0)),
        OPMC(3, random_state=0),
        MVSCBP(3, random_state=0),
        Coview(3, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("more_rows", [20, 35, 200, 1000])  # beyond tenfold, all rows are labelled at once
def test_fixed_size_numbers_clusters_by_one_rule_in_fit_and_train(estimator, more_rows, monkeypatch):
    monkeypatch.setattr("coview.compose.fixed_size._MORE_ROWS", more_rows)
    views, _ = make_blobs(1000, spread=8.0)
    for seed in range(3):
        model = FixedSize(estimator, n_train=30, random_state=seed).fit(views)
        np.testing.assert_array_equal(clone(model).train(Rows(views)).predict(views), model.labels_)
        assert more_rows < 1000 or (np.diff(np.bincount(model.labels_)) <= 0).all()
        np.testing.assert_array_equal(model.predict(views), model.labels_)
        if not isinstance(estimator, MVSCBP):  # which labels its training samples by another rule
            np.testing.assert_array_equal(model.model_.method_labels, model.labels_[model.train_rows_])
        if hasattr(model, "predict_proba"):
            np.testing.assert_array_equal(model.predict_proba(views).argmax(axis=1), model.labels_)


@pytest.mark.parametrize("estimator", [TMvKSCR(3, random_state=0), OPMC(3, random_state=0)])
@pytest.mark.parametrize("n_repeats", [1, 2])
def test_training_on_many_rows_reads_no_others_without_repeats(estimator, n_repeats, monkeypatch):
    monkeypatch.setattr("coview.compose.fixed_size._MORE_ROWS", 20)
    views, _ = make_blobs(200, spread=8.0)
    source = Rows(views)
    model = FixedSize(estimator, n_train=30, n_repeats=n_repeats, random_state=0).train(source)
    assert [len(rows) for rows in source.asked] == ([1, 30] if n_repeats == 1 else [1, 30, 30, 20])
    assert model.agreements_.shape == (n_repeats,)
    np.testing.assert_array_equal(model.predict(views), clone(model).fit(views).labels_)


@pytest.mark.parametrize("method", [OPMC(3, random_state=0), MVSCBP(3, random_state=0), Concat(KSC(3, random_state=0))])
def test_fixed_size_labels_rows_once_although_clusters_are_numbered_afterwards(method, monkeypatch):
    labelled, renumbered = [], []
    views, _ = make_blobs(1000, spread=8.0)
    kind = type(clone(method).fit(views).model_.predictor)

    def recorded(name, into):
        original = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda self, x, *others: into.append(x) or original(self, x, *others))

    recorded("labels_and_ties", labelled)
    recorded("renumbered", renumbered)
    monkeypatch.setattr(kind, "labels", lambda self, x: pytest.fail("a row is labelled again"))
    for seed in range(4):
        FixedSize(method, n_train=30, random_state=seed).fit(views)
    assert sum(each.n_samples for each in labelled) == 4 * 1000
    assert renumbered


def test_estimators_of_other_libraries_keep_their_numbers():
    views, _ = make_blobs(200, spread=8.0)
    for seed in range(4):
        model = FixedSize(Concat(GaussianMixture(3, random_state=0)), n_train=60, random_state=seed).fit(views)
        np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("more_rows", [20, 200])
def test_samples_between_clusters_have_one_label_after_clusters_are_numbered(more_rows, monkeypatch):
    """Rows at the origin are equally near to both clusters, and in the one with the lower number."""
    monkeypatch.setattr("coview.compose.fixed_size._MORE_ROWS", more_rows)
    rng = np.random.default_rng(0)
    x = np.concatenate([np.full(100, 1.0), np.full(95, -1.0), np.zeros(4)])[:, None] * np.ones(3)
    x = x[rng.permutation(len(x))]
    for seed in range(4):
        model = FixedSize(KPCA(2, kernel=Linear(), random_state=0), n_train=20, random_state=seed).fit(x)
        np.testing.assert_array_equal(model.predict(x), model.labels_)
        assert more_rows < len(x) or (np.diff(np.bincount(model.labels_)) <= 0).all()


@pytest.mark.parametrize("wrap", [lambda method: method, lambda method: Preprocessed(method, "standard")])
@pytest.mark.parametrize("n", [900, 2000, 12_000])
@pytest.mark.parametrize("n_repeats", [1, 2])
def test_fixed_size_scores_rows_once(wrap, n, n_repeats, monkeypatch):
    """The clusters are learnt from at most 1000 rows here; if there are more than tenfold, these are scored again."""
    monkeypatch.setattr("coview.compose.fixed_size._MORE_ROWS", 1000)
    counts = []
    original = ScoreMap.with_tolerance
    monkeypatch.setattr(ScoreMap, "with_tolerance", lambda self, x: counts.append(x.shape[0]) or original(self, x))
    views, _ = make_blobs(n, spread=1.0, widths=(4,))
    method = TMvKSCR(3, kernel=RBF(), dtype="float64", random_state=0)
    model = FixedSize(wrap(method), n_train=50, n_repeats=n_repeats, random_state=0).fit(views)
    more = min(n, 1000)
    assert sum(counts) == n_repeats * more + (n if n > 10 * more else n - more)
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_fixed_size_learns_clusters_from_more_samples_than_its_latent_space():
    views, truth = make_blobs(900, spread=1.0)
    model = FixedSize(TMvKSCR(3, random_state=0), n_train=30, random_state=0).fit(views)
    alone = TMvKSCR(3, random_state=0).fit(as_views(views).take(model.train_rows_))
    np.testing.assert_array_equal(model.model_.learnt["latent_"], alone.latent_)
    np.testing.assert_array_equal(model.transform(views), alone.transform(views))
    sizes = np.bincount(model.labels_)
    assert (np.diff(sizes) <= 0).all()  # numbered by their size among all samples, not among the training samples
    assert adjusted_rand_score(truth, model.labels_) > adjusted_rand_score(truth, alone.predict(views))
    np.testing.assert_array_equal(model.model_.method_labels, model.labels_[model.train_rows_])


def test_fixed_size_has_the_fitted_attributes_of_its_estimator():
    views, _ = make_blobs(300)
    model = FixedSize(TMvKSCR(3, random_state=0), n_train=60, random_state=0).fit(views)
    alone = TMvKSCR(3, random_state=0).fit(as_views(views).take(model.train_rows_))
    assert model.explained_variance_ratio_.shape == (2,)
    np.testing.assert_array_equal(model.eigenvalues_, alone.eigenvalues_)
    np.testing.assert_array_equal(model.transform(views), alone.transform(views))
    assert set(model.predict(views, per_view=True)) == {"a", "b", "c"}
    assert not hasattr(FixedSize(OPMC(3)), "transform")
    assert not hasattr(model, "nonsense_")
    assert not hasattr(FixedSize(TMvKSCR(3)), "latent_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.labels_, model.labels_)


@pytest.mark.parametrize(("n_train", "count"), [("auto", 300), (60, 60), (0.5, 150), (1.0, 300), (np.int64(7), 7)])
def test_the_number_of_training_samples_can_be_given_in_three_ways(n_train, count):
    views, _ = make_blobs(300)
    model = FixedSize(KSC(3, random_state=0), n_train=n_train, random_state=0).fit(views["a"])
    assert len(model.train_rows_) == count


def test_fixed_size_does_not_forward_rows_of_the_training_samples():
    views, _ = make_blobs()
    model = FixedSize(TMvKSCR(3, random_state=0), n_train=45, random_state=0).fit(views)
    for name, instead in {
        "scores_": r"read model_\.learnt\['scores_'\]",
        "latent_": r"read model_\.learnt\['latent_'\]",
        "view_labels_": r"call predict\(…, per_view=True\)",
    }.items():
        message = rf"{name}, which describes the 45 training samples of the method inside; {instead}"
        for wrapped in (model, Preprocessed(model).fit(views)):
            with pytest.raises(AttributeError, match=message):
                getattr(wrapped, name)
    for name in ("scores_", "latent_"):
        assert len(model.model_.learnt[name]) == 45
    assert model.eigenvalues_ is model.model_.learnt["eigenvalues_"]
    assert set(model.kernels_) == set(views)
    assert model.transform(views).shape == (90, 2)
    assert not hasattr(model, "recluster")  # it does not label all samples again
    assert not hasattr(FixedSize(MVSCBP(3, random_state=0), n_train=45, random_state=0).fit(views), "embedding_")


def test_clusters_are_numbered_by_size_if_the_training_samples_have_other_sizes():
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat([0, 1, 2], [500, 300, 200]))
    views = [rng.normal(size=(3, d))[truth] * 9 + rng.normal(size=(1000, d)) for d in (4, 6)]
    few = np.flatnonzero(truth != 0)[:40].tolist() + np.flatnonzero(truth == 0)[:5].tolist()
    kernel = FixedSize(TMvKSCR(3, random_state=0), n_train=45, select=Chosen(few), random_state=0).fit(views)
    assert np.bincount(kernel.labels_).tolist() == [500, 300, 200]  # clusters are learnt from all samples
    other = FixedSize(OPMC(3, random_state=0), n_train=45, select=Chosen(few), random_state=0)
    assert np.bincount(other.fit(views).labels_).tolist() == [500, 300, 200]
    np.testing.assert_array_equal(other.labels_[other.train_rows_], other.model_.method_labels)
    np.testing.assert_array_equal(other.predict(views), other.labels_)
    np.testing.assert_array_equal(other.train(as_views(views)).predict(views), number_by_size(truth)[0])


class Chosen(Uniform):
    """The given rows."""

    def __init__(self, rows):
        object.__setattr__(self, "_chosen", np.sort(rows))

    def rows(self, source, count, rng, kernels):
        return self._chosen


@pytest.mark.parametrize("wrap", [FixedSize, Preprocessed, Concat])
def test_the_predictor_of_the_method_sees_the_views_after_all_stages(wrap):
    views = as_views(make_blobs(spread=1.0)[0])
    model = wrap(TMvKSCR(3, random_state=0)).fit(views)
    predictor = model.model_.predictor
    assert isinstance(predictor, KernelPredictor)
    np.testing.assert_array_equal(predictor.labels(model.model_.seen(views)), model.predict(views))


def test_a_model_has_the_stages_of_all_wrappers_from_outside_to_inside():
    views, _ = make_blobs()
    model = FixedSize(Preprocessed(Concat(KMeans(3, n_init=1, random_state=0))), n_train=45, random_state=0).fit(views)
    assert [type(each) for each in model.model_.stages] == [Preprocess, Stack]
    assert isinstance(model.model_.predictor, Foreign)
    assert model.model_.seen_names == ()  # the method sees one table


def test_auto_grows_with_the_number_of_clusters():
    views = {"a": np.random.default_rng(0).normal(size=(4000, 2))}
    assert len(FixedSize(OPMC(2, n_init=1), random_state=0).fit(views).train_rows_) == 2000
    assert len(FixedSize(OPMC(50, n_init=1), random_state=0).fit(views).train_rows_) == 2500


def test_the_repeat_that_agrees_best_with_the_others_is_kept():
    views, _ = make_blobs(600, spread=1.0)
    model = FixedSize(KSC(3, random_state=0), n_train=25, n_repeats=5, random_state=0).fit(views["a"])
    assert model.agreements_.shape == (5,)
    rng = np.random.default_rng(0)
    rows = [Uniform().rows(as_views(views["a"]), 25, rng, {}) for _ in range(5)]
    labels = [KSC(3, random_state=0).fit(views["a"][r]).recluster(views["a"]).predict(views["a"]) for r in rows]
    means = [np.mean([adjusted_rand_score(a, b) for j, b in enumerate(labels) if j != i]) for i, a in enumerate(labels)]
    np.testing.assert_allclose(model.agreements_, means)
    np.testing.assert_array_equal(model.train_rows_, rows[int(np.argmax(means))])
    np.testing.assert_array_equal(model.labels_, labels[int(np.argmax(means))])


@pytest.mark.parametrize("select", ["uniform", "entropy", "kmeans"])
def test_training_on_a_source_reads_few_rows(select, monkeypatch):
    views, truth = make_blobs(20_000, spread=8.0)
    monkeypatch.setattr("coview.compose.fixed_size._MORE_ROWS", 500)
    source = Rows(views)
    settings = {"n_train": 50, "select": select, "random_state": 0}
    model = FixedSize(TMvKSCR(3, random_state=0), **settings).train(source)
    assert sum(map(len, source.asked)) < 1700
    assert all((np.diff(rows) > 0).all() for rows in source.asked)
    assert not hasattr(model, "labels_")
    fitted = FixedSize(TMvKSCR(3, random_state=0), **settings).fit(views)
    np.testing.assert_array_equal(model.train_rows_, fitted.train_rows_)
    np.testing.assert_array_equal(model.predict(views), fitted.labels_)
    assert adjusted_rand_score(truth, fitted.labels_) == 1
    assert model.view_names_ == ("a", "b", "c")


def test_clusters_are_not_learnt_from_fewer_samples_than_the_latent_space(monkeypatch):
    """With all samples for training, the result is that of the method itself."""
    monkeypatch.setattr("coview.compose.fixed_size._MORE_ROWS", 30)
    views, _ = make_blobs(90, spread=1.0)
    model = FixedSize(TMvKSCR(3, random_state=0), n_train=1.0, random_state=0).fit(views)
    np.testing.assert_array_equal(model.labels_, TMvKSCR(3, random_state=0).fit(views).predict(views))


class Endless:
    """A source with too many rows to hold one number for each."""

    n_samples = 50_000_000

    def take(self, rows):
        rng = np.random.default_rng(0)
        return as_views({"a": 10.0 * (rows % 3)[:, None] + rng.normal(size=(len(rows), 2))})


@pytest.mark.parametrize("select", ["uniform", "entropy", "kmeans"])
def test_memory_of_training_does_not_grow_with_the_rows(select):
    tracemalloc.start()
    try:
        FixedSize(TMvKSCR(3, random_state=0), n_train=30, select=select, random_state=0).train(Endless())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < Endless.n_samples  # bytes: less than one per row


def test_training_needs_a_source_of_rows():
    views, _ = make_blobs()
    for given in (views, views["a"]):
        with pytest.raises(InputError, match="give Views, a ViewsReader or DaskViews, or call fit with tables"):
            FixedSize(TMvKSCR(3)).train(given)
    with pytest.raises(InputError, match=r"X is a Rows, whose rows may not fit into memory; call train"):
        FixedSize(TMvKSCR(3)).fit(Rows(views))


def test_training_that_fails_changes_nothing():
    views, _ = make_blobs(100)
    model = FixedSize(TMvKSCR(3, random_state=0), n_train=50, random_state=0).fit(views)
    labels = model.labels_
    with pytest.raises(InputError, match="n_train=500: expected"):
        model.set_params(n_train=500).train(Rows(views))
    assert model.labels_ is labels


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"n_train": 0},
            r"n_train=0: expected 'auto', an integer from 3 \(n_clusters\) to n_samples=90, or a fraction",
        ),
        ({"n_train": 2}, "n_train=2: expected"),
        ({"n_train": True}, "n_train=True: expected"),
        ({"n_train": 1.5}, "n_train=1.5"),
        ({"n_train": "many"}, "n_train='many'"),
        ({"n_repeats": 0}, "n_repeats=0: expected an integer of at least 1"),
        ({"n_repeats": True}, "n_repeats=True: expected an integer"),
        ({"select": "best"}, "select='best': expected one of"),
    ],
)
def test_fixed_size_refuses_wrong_parameters(settings, message):
    with pytest.raises(InputError, match=message):
        FixedSize(TMvKSCR(3), **settings).fit(make_blobs()[0])


def test_fixed_size_names_what_it_cannot_train():
    views, _ = make_blobs()
    with pytest.raises(InputError, match=r"wrap KMeans, as in Concat\(KMeans\(…\)\)"):
        FixedSize(KMeans(3)).fit(views)
    with pytest.raises(InputError, match="FixedSize needs views of features"):
        FixedSize(TMvKSCR(3, kernel="precomputed")).fit({"a": RBF(1.0)(views["a"])})
    for n_clusters in ("three", None):
        with pytest.raises(InputError, match=r"n_clusters=.*: expected an integer"):
            FixedSize(TMvKSCR(n_clusters)).fit(views)
    wrapped = FixedSize(Concat(KMeans(3, n_init=3, random_state=0)), n_train=45, random_state=0).fit(views)
    assert len(wrapped.labels_) == 90


@pytest.mark.parametrize("method", [m for m in METHODS.values() if not hasattr(m(), "predict")])
def test_fixed_size_needs_a_method_that_labels_new_samples(method):
    with pytest.raises(InputError, match=f"{method.__name__} cannot label new samples"):
        FixedSize(method()).fit(make_blobs()[0])


@pytest.mark.parametrize("sparse", [False, True])
def test_preprocessed_is_the_method_on_standardised_views(sparse):
    views, _ = make_blobs(spread=1.0)
    given = {name: sp.csr_array(x) if sparse else 1e6 + x for name, x in views.items()}
    by_hand = {name: StandardScaler(with_mean=not sparse).fit_transform(x) for name, x in given.items()}
    model = Preprocessed(TMvKSCR(3, random_state=0)).fit(given)
    alone = TMvKSCR(3, random_state=0).fit(by_hand)
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_array_equal(model.predict(given), alone.labels_)
    np.testing.assert_allclose(model.transform(given), alone.transform(by_hand), atol=1e-7)
    np.testing.assert_allclose(model.eigenvalues_, alone.eigenvalues_)
    assert set(model.preprocessing_) == set(views)


@pytest.mark.parametrize("sparse", [False, True])
def test_new_samples_may_be_sparse_if_training_samples_are_dense_and_vice_versa(sparse):
    views = {name: 10 + x for name, x in make_blobs(spread=1.0)[0].items()}
    other = {name: sp.csr_array(x) for name, x in views.items()}
    if sparse:
        views, other = other, views
    model = Preprocessed(TMvKSCR(3, random_state=0)).fit(views)
    np.testing.assert_array_equal(model.predict(other), model.labels_)
    np.testing.assert_allclose(model.transform(other), model.transform(views), atol=1e-7)


def test_l2_normalises_rows():
    views, _ = make_blobs(spread=1.0)
    model = Preprocessed(TMvKSCR(3, random_state=0), "l2").fit(views)
    alone = TMvKSCR(3, random_state=0).fit({name: normalize(x) for name, x in views.items()})
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_array_equal(model.predict({name: 7 * x for name, x in views.items()}), alone.labels_)


def test_new_steps_have_no_effect_before_the_next_fit():
    views, _ = make_blobs(spread=1.0)
    model = Preprocessed(TMvKSCR(3, random_state=0)).fit(views)
    before = model.transform(views)
    np.testing.assert_array_equal(model.set_params(steps="l2").transform(views), before)
    np.testing.assert_array_equal(
        model.fit(views).transform(views), Preprocessed(TMvKSCR(3, random_state=0), "l2").fit(views).transform(views)
    )


def test_new_samples_are_preprocessed_like_the_training_samples():
    """A single row has no standard deviation of its own."""
    views, _ = make_blobs(spread=1.0)
    model = Preprocessed(TMvKSCR(3, random_state=0)).fit(views)
    one_by_one = [model.predict({name: x[i : i + 1] for name, x in views.items()})[0] for i in range(90)]
    np.testing.assert_array_equal(one_by_one, model.labels_)


def test_preprocessed_works_in_blocks_and_keeps_the_dtype(monkeypatch):
    views, _ = make_blobs(spread=1.0)
    views = {name: x.astype(np.float32) for name, x in views.items()}
    model = Preprocessed(TMvKSCR(3, random_state=0)).fit(views)
    whole = model.predict(views), model.transform(views), model.predict(views, per_view=True)
    monkeypatch.setattr("coview.model.model._BLOCK_ROWS", 7)
    np.testing.assert_array_equal(model.predict(views), whole[0])
    np.testing.assert_allclose(model.transform(views), whole[1], atol=1e-6)
    for name, labels in model.predict(views, per_view=True).items():
        np.testing.assert_array_equal(labels, whole[2][name])
    assert model.transform(views).dtype == np.float32


def test_constant_columns_are_centred_only():
    views, _ = make_blobs()
    views["a"][:, 0] = 0.1
    model = Preprocessed(TMvKSCR(3, random_state=0)).fit(views)
    (step,) = model.preprocessing_["a"].steps
    assert step.spreads[0] == 1.0


def test_fixed_size_around_preprocessed_reads_the_parameters_of_the_method():
    views, _ = make_blobs(spread=1.0)
    model = FixedSize(Preprocessed(TMvKSCR(3, random_state=0)), n_train=45, select="entropy", random_state=0).fit(views)
    rows = {name: x[model.train_rows_] for name, x in views.items()}
    alone = Preprocessed(TMvKSCR(3, random_state=0)).fit(rows).recluster(views)
    np.testing.assert_array_equal(model.labels_, alone.predict(views))
    with pytest.raises(InputError, match=r"an integer from 3 \(n_clusters\)"):
        FixedSize(Preprocessed(TMvKSCR(3)), n_train=2).fit(views)


def make_counts(n_samples=90, seed=0):
    """A view of words and a view of measurements, with the same clusters."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_samples) % 3
    words = rng.poisson(3 * np.kron(np.eye(3), np.ones(5))[truth] + 0.2)
    return {"words": words.astype(float), "measured": make_blobs(n_samples)[0]["a"]}


STEPS = [
    {"words": "tfidf+l2", "measured": "standard"},
    ["total+log1p+pca4", "none"],
    {"words": "log1p"},
    "standard+pca2",
]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_each_view_has_its_own_steps(steps, form):
    views = make_counts()
    views["words"] = form(views["words"])
    before = {name: x.copy() for name, x in views.items()}
    model = Preprocessed(TMvKSCR(3, random_state=0), steps).fit(views)
    preprocessing = preprocessing_per_view(steps, ("words", "measured"))
    by_hand = {name: preprocessing[name].learn(x)(x) for name, x in views.items()}
    alone = TMvKSCR(3, random_state=0).fit(by_hand)
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_array_equal(model.predict(views), alone.predict(by_hand))
    np.testing.assert_allclose(model.transform(views), alone.transform(by_hand), atol=1e-12)
    one_by_one = [model.predict({name: x[i : i + 1] for name, x in views.items()})[0] for i in range(0, 90, 9)]
    np.testing.assert_array_equal(one_by_one, model.labels_[::9])
    for name, x in views.items():
        assert (x != before[name]).sum() == 0


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner, steps: FixedSize(Preprocessed(inner, steps), n_train=45, random_state=0),
        lambda inner, steps: Preprocessed(FixedSize(inner, n_train=45, random_state=0), steps),
        lambda inner, steps: Preprocessed(Concat(inner), steps),
    ],
)
def test_preprocessing_combines_with_other_wrappers(steps, wrap):
    views = make_counts()
    model = wrap(OPMC(3, random_state=0), steps).fit(views)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    assert set(model.preprocessing_) == set(views)


def test_columns_keep_their_names_unless_they_become_components():
    views = make_counts()
    named = {name: pd.DataFrame(x).add_prefix(name) for name, x in views.items()}
    model = Preprocessed(TMvKSCR(3, random_state=0), {"words": "pca15", "measured": "standard"}).fit(named)
    assert model.model_.seen(as_views(named)).columns == {"words": None, "measured": tuple(named["measured"])}


def test_new_samples_that_a_step_cannot_take_are_named():
    views = make_counts()
    model = Preprocessed(TMvKSCR(3, random_state=0), {"words": "tfidf+l2"}).fit(views)
    views["words"][0, 0] = -3
    with pytest.raises(
        InputError, match="view 'words' has the value -3 before 'tfidf', which does not accept negative"
    ):
        model.predict(views)


@pytest.mark.parametrize("kernel", [[RBF(50.0)], {"all": RBF(50.0)}])
def test_a_kernel_of_the_stacked_table_is_not_a_kernel_of_a_view(kernel):
    views, _ = make_blobs()
    expected = Concat(KSC(3, kernel=RBF(50.0), random_state=0))
    given = Concat(KSC(3, kernel=kernel, random_state=0))
    for select in ("uniform", "entropy"):
        settings = {"n_train": 45, "select": select, "random_state": 0}
        np.testing.assert_array_equal(
            FixedSize(given, **settings).fit(views).labels_, FixedSize(expected, **settings).fit(views).labels_
        )
    with pytest.raises(InputError, match="kernel"):
        FixedSize(TMvKSCR(3, kernel=kernel), n_train=45).fit(views)


def test_preprocessed_refuses_what_it_cannot_wrap():
    views, _ = make_blobs()
    with pytest.raises(InputError, match=r"wrap KMeans, as in Concat\(KMeans\(…\)\)"):
        Preprocessed(KMeans(3)).fit(views)
    with pytest.raises(InputError, match=r"steps 'robust' is unknown\. Known: none, standard, l2"):
        Preprocessed(TMvKSCR(3), "robust").fit(views)
    with pytest.raises(InputError, match=r"steps names the view 'aa'; did you mean 'a'\? Views: a, b, c"):
        Preprocessed(TMvKSCR(3), {"aa": "l2"}).fit(views)
    with pytest.raises(InputError, match=r"view 'b' has the value .* before 'tfidf'"):
        Preprocessed(TMvKSCR(3), {"b": "tfidf"}).fit(views)
    with pytest.raises(InputError, match="Preprocessed needs views of features"):
        Preprocessed(TMvKSCR(3, kernel="precomputed")).fit({"a": RBF(1.0)(views["a"])})
    assert not hasattr(Preprocessed(METHODS["sfmc"](3)), "predict")


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_a_cluster_without_samples_has_the_last_number_in_fixed_size(seed):
    """MVSCBP labels all samples by a vote of anchors, in which a cluster of training samples may have none."""
    binary = np.random.default_rng(seed).integers(2, size=(9, 1)).astype(float)
    views = {"zeros": np.zeros((9, 2)), "binary": binary, "ones": np.ones((9, 2))}
    model = FixedSize(MVSCBP(2, random_state=seed), n_train=0.8, random_state=seed).fit(views)
    assert model.labels_.tolist() == [0] * 9
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("seed", [10, 24, 54])
def test_samples_between_clusters_do_not_change_the_order_of_sizes_in_fixed_size(seed):
    """Samples with equal votes move to the cluster with the lower number, which can make it the largest."""
    x = np.round(2 * np.random.default_rng(seed).normal(size=(13, 1)))
    views = {"integers": np.repeat(x, 3, axis=1), "constant": np.ones((13, 2))}
    model = FixedSize(MVSCBP(4, random_state=seed), n_train=0.8, random_state=seed).fit(views)
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_a_model_inside_per_view_is_saved_without_its_warnings(tmp_path):
    two = np.repeat([[0.0, 0.0], [5.0, 5.0]], 30, axis=0)
    with pytest.warns(ConvergenceWarning, match="found 2 distinct clusters"):
        model = PerView(KSC(3, random_state=0)).fit({"a": two, "b": two + 1})
    loaded = load(save(model, tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.predict({"a": two, "b": two + 1}), model.labels_)


@pytest.mark.parametrize(
    "wrapper", [lambda model: FixedSize(model, n_train=60), lambda model: Preprocessed(model, "none")]
)
def test_empty_cells_that_a_step_would_see_are_refused_inside_wrappers(wrapper):
    views, _ = make_blobs()
    model = wrapper(Preprocessed(TMvKSCR(3, random_state=0), "standard+median")).fit(views)
    views["a"][1, 1] = np.nan
    with pytest.raises(
        InputError, match=r"view 'a' .* 'standard' is applied before 'median' .*, as in 'median\+standard'"
    ):
        model.predict(views)


def test_the_views_that_the_estimator_sees_are_checked():
    views, _ = make_blobs()
    positive = {"a": np.abs(views["a"][:, :1]) + 1, "b": views["b"]}
    with pytest.raises(InputError, match="view 'a' has the same values in all 90 samples"):
        Preprocessed(Coview(2), {"a": "l2"}).fit(positive)


def test_attributes_of_the_best_view_stay_hidden_in_further_wrappers():
    views, _ = make_blobs()
    for model in (
        Preprocessed(PerView(KSC(3, random_state=0))),
        FixedSize(PerView(KSC(3, random_state=0)), n_train=60),
    ):
        with pytest.raises(AttributeError, match="has no eigenvalues_, which describes"):
            model.fit(views).eigenvalues_  # noqa: B018


def test_a_summary_has_the_scores_of_each_view_by_its_own_model():
    views, _ = make_blobs()
    summary = summarize(PerView(KSC(3, random_state=0)).fit(views), views)
    assert list(summary.points.view_scores) == ["a", "b", "c"]
