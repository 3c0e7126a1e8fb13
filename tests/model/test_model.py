"""Model: a frozen value that predictions read."""

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans

from coview import KSC, MVSCBP, OPMC, Concat, Coview, FixedSize, PerView, Preprocessed, TMvKSCR, as_views, save
from coview.model.model import Model, Predictor, Stage
from tests.conftest import make_blobs


@dataclass(frozen=True)
class Threshold(Predictor):
    """Cluster 1 has the samples whose first value is above a number."""

    above: float
    n_clusters = 2

    def labels_and_ties(self, views):
        large = (next(iter(views.values()))[:, 0] > self.above).astype(np.int64)
        return np.column_stack([large, np.zeros_like(large)])


@dataclass(frozen=True)
class Plus(Stage):
    """A number is added to all values."""

    number: float

    def __call__(self, views):
        return as_views({name: x + self.number for name, x in views.items()})


@dataclass(frozen=True)
class Times(Plus):
    """All values are multiplied by a number."""

    def __call__(self, views):
        return as_views({name: x * self.number for name, x in views.items()})


NUMBERS = as_views({"a": np.arange(6.0)[:, None]})
THRESHOLD = Model(np.array([0, 0, 0, 1, 1, 1]), {}, Threshold(2.5))


def test_views_pass_the_stage_that_is_added_last_first():
    model = THRESHOLD.after(Times(2.0)).after(Plus(1.0))  # (x + 1) · 2 > 2.5
    np.testing.assert_array_equal(model.seen(NUMBERS)["a"][:, 0], [2, 4, 6, 8, 10, 12])
    assert model.predict(NUMBERS).tolist() == [0, 1, 1, 1, 1, 1]
    assert THRESHOLD.predict(NUMBERS).tolist() == [0, 0, 0, 1, 1, 1]  # it has not changed


def test_stages_see_blocks_of_rows(monkeypatch):
    monkeypatch.setattr("coview.model.model._BLOCK_ROWS", 4)
    seen = []

    class Recorded(Plus):
        def __call__(self, views):
            seen.append(views.n_samples)
            return super().__call__(views)

    assert THRESHOLD.after(Recorded(0.0)).predict(NUMBERS).tolist() == [0, 0, 0, 1, 1, 1]
    assert seen == [4, 2]


def test_a_predictor_answers_only_the_questions_that_it_has():
    assert THRESHOLD.can("labels")
    assert not THRESHOLD.can("membership")
    assert not Model(np.zeros(2, np.int64), {}).can("labels")
    assert THRESHOLD.renumbered(np.array([1, 0])) is None  # its clusters have fixed numbers


MODELS = {
    "tmvkscr": TMvKSCR(3, random_state=0),
    "codebook": TMvKSCR(3, kernel="rbf", assigner="codebook", random_state=0),
    "opmc": OPMC(3, random_state=0),
    "mvscbp": MVSCBP(3, random_state=0),
    "preprocessed": Preprocessed(OPMC(3, random_state=0)),
    "concat": Concat(KSC(3, random_state=0)),
}
MODEL = pytest.mark.parametrize("estimator", MODELS.values(), ids=MODELS)


@MODEL
def test_clusters_are_renumbered(estimator):
    views = as_views(make_blobs(spread=1.0)[0])
    model, order = clone(estimator).fit(views).model_, np.array([2, 0, 1])
    changed = model.renumbered(order)
    labels = model.predict(views)
    np.testing.assert_array_equal(order[changed.predict(views)], labels)
    np.testing.assert_array_equal(order[changed.labels], model.labels)
    np.testing.assert_array_equal(model.predict(views), labels)  # it has not changed
    if model.can("membership"):
        np.testing.assert_allclose(changed.membership(views), model.membership(views)[:, order], rtol=1e-12)


def test_numbers_are_kept_if_a_method_has_labelled_only_some_of_the_training_samples():
    views, _ = make_blobs(600, spread=1.0)
    for seed in range(3):
        inside = FixedSize(TMvKSCR(3, random_state=0), n_train=30, random_state=seed)
        model = FixedSize(Preprocessed(inside), n_train=300, random_state=seed).fit(views)
        assert model.model_.renumbered(np.array([1, 2, 0])) is None
        np.testing.assert_array_equal(model.predict(views), model.labels_)


ANSWERS = {
    **MODELS,
    "coview": Coview(3, random_state=0),
    "per view": PerView(KSC(3, random_state=0)),
    "fixed size": FixedSize(TMvKSCR(3, random_state=0), n_train=60, random_state=0),
}


@pytest.mark.parametrize("estimator", ANSWERS.values(), ids=ANSWERS)
def test_answers_do_not_change_a_model(estimator, tmp_path):
    """What is computed when it is first used is not part of the model."""
    views, _ = make_blobs(300, spread=1.0)
    estimator = clone(estimator)
    model = estimator.fit(views).model_
    save(estimator, tmp_path / "before")
    for name in ("predict", "transform", "predict_proba", "score_samples", "view_contributions", "plot"):
        if hasattr(estimator, name):
            getattr(estimator, name)(**({} if name == "plot" else {"X": views}))
    if model.can("labels_by_view") and model.seen_names:
        estimator.predict(views, per_view=True)
    save(estimator, tmp_path / "after")
    assert estimator.model_ is model
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
    with pytest.raises(FrozenInstanceError):
        model.labels = model.labels + 1


def test_models_know_their_training_samples():
    views, _ = make_blobs()
    model = OPMC(3, random_state=0).fit(views)
    assert model.model_.is_of(model.check(views))
    assert not model.model_.is_of(model.check({**views, "a": views["a"] + 1}))
    trained = FixedSize(model, n_train=45, random_state=0).train(as_views(views))
    assert not trained.model_.is_of(trained.check(views))  # it has no labels of them


def test_views_that_become_one_table_are_not_seen_as_such():
    views, _ = make_blobs()
    views = {"all": views["a"], "b": views["b"]}  # "all" is also the name of the table
    model = Preprocessed(Concat(Preprocessed(KSC(3, random_state=0), "l2")), "standard").fit(views).model_
    assert model.names == ("all", "b")
    assert model.seen_names == ()
    assert model.kernels == {}
    assert list(model.seen(as_views(views))) == ["all"]
    assert [stage.words("all") for stage in model.stages] == [["standardised columns"], [], ["L2-normalised rows"]]


@pytest.mark.parametrize("n_train", [45, 90])
def test_labels_by_view_are_those_of_all_training_samples_or_none(n_train):
    views, _ = make_blobs()
    for inside in (PerView(KSC(3, random_state=0)), TMvKSCR(3, random_state=0), PerView(KMeans(3, random_state=0))):
        assert [len(each) for each in inside.fit(views).model_.labels_by_view.values()] == [90] * 3
    for inside in (PerView(KSC(3, random_state=0)), TMvKSCR(3, random_state=0)):
        fixed = FixedSize(inside, n_train=n_train, random_state=0).fit(views)
        assert fixed.model_.labels_by_view is None
        assert not hasattr(fixed, "view_labels_")
        assert {name: len(each) for name, each in fixed.predict(views, per_view=True).items()} == dict.fromkeys(
            "abc", 90
        )
    fixed = PerView(FixedSize(KSC(3, random_state=0), n_train=n_train, random_state=0)).fit(views)
    assert [len(each) for each in fixed.model_.labels_by_view.values()] == [90] * 3
    assert len(fixed.model_.kept_scores) == len(fixed.model_.trained_labels) == n_train
