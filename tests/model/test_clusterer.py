"""Clusterer: a fit checks, learns a model, and publishes what it holds."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from coview import OPMC, Coview, FixedSize, InputError, MvKSC, PerView, Preprocessed, TMvKSCR, as_views, stability
from coview.model.clusterer import PREDICTS, Clusterer
from coview.model.fitting import model_of_labels
from coview.model.model import Note
from tests.conftest import make_blobs


class Signs(Clusterer):
    """The sign of the first value of the first view."""

    abilities = PREDICTS

    def __init__(self, n_clusters=2, fails=False, attribute="found_"):
        self.n_clusters = n_clusters
        self.fails = fails
        self.attribute = attribute

    def fit_model(self, views, report):
        if self.fails:
            raise RuntimeError("failed")
        x = next(iter(views.values()))
        note = Note("some values are zero", UserWarning)
        notes = (note, note) if (x == 0).any() else ()
        return model_of_labels(np.sign(x[:, 0]), self.n_clusters, {self.attribute: len(views)}, *notes)


X = np.array([[-1.0], [2.0], [3.0], [4.0]])


def state(estimator):
    return {name: value for name, value in vars(estimator).items() if name not in estimator.get_params()}


@pytest.mark.parametrize(
    ("changed", "data", "error"),
    [
        ({"fails": True}, pd.DataFrame({"other": X[:, 0], "columns": X[:, 0]}), RuntimeError),
        ({"n_clusters": 9}, {"a": X, "b": X}, InputError),
        ({}, np.full((4, 1), np.nan), InputError),
        ({}, [X, np.zeros((4, 2)), X, X, np.zeros((4, 1)) + X], ConvergenceWarning),  # warnings are errors here
    ],
)
def test_a_fit_that_fails_does_not_change_the_estimator(changed, data, error):
    model = Signs().fit(pd.DataFrame(X, columns=["x"]))
    before = state(model)
    assert {"model_", "labels_", "found_", "n_features_in_", "feature_names_in_"} <= {*before}
    if error is ConvergenceWarning:
        data[0] = np.abs(X)
    with pytest.raises(error):
        model.set_params(**changed).fit(data)
    after = state(model)
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in before)


def test_a_fit_that_fails_leaves_an_unfitted_estimator_unfitted():
    model = Signs(fails=True)
    with pytest.raises(RuntimeError):
        model.fit(X)
    assert state(model) == {}


def test_attributes_of_an_earlier_fit_are_removed():
    model = Signs().fit([X, X])
    assert model.found_ == 2
    model.set_params(attribute="other_").fit([X])
    assert model.other_ == 1
    assert not hasattr(model, "found_")


def test_attributes_of_another_method_inside_are_removed():
    views, _ = make_blobs()
    model = Preprocessed(TMvKSCR(3, random_state=0)).fit(views)
    assert model.eigenvalues_.shape == (2,)
    model.set_params(estimator=OPMC(3, random_state=0)).fit(views)
    assert not {"eigenvalues_", "scores_", "kernels_"} & {*vars(model)}
    assert set(model.centroids_) == set(views)


def test_labels_of_an_earlier_fit_are_removed_by_training():
    views, _ = make_blobs()
    model = FixedSize(OPMC(3, random_state=0), n_train=45, random_state=0).fit(views)
    assert len(model.labels_) == 90
    assert not hasattr(model.train(as_views(views)), "labels_")


def test_warnings_are_given_once_at_the_line_of_the_fit():
    with pytest.warns(UserWarning, match="some values are zero") as caught:
        model = Signs().fit(np.array([[0.0], [1.0], [2.0], [3.0]]))
    assert [each.filename for each in caught] == [__file__]
    assert model.model_.notes == ()  # which are not saved


@pytest.mark.parametrize(
    "model",
    [
        TMvKSCR(4, random_state=0),
        MvKSC(4, random_state=0),
        OPMC(4, random_state=0),
        Preprocessed(TMvKSCR(4, random_state=0)),
        PerView(OPMC(4, random_state=0)),
        FixedSize(TMvKSCR(4, random_state=0), n_train=6, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_is_learnt_without_warnings_and_without_a_change_of_the_estimator(model):
    views = {name: np.repeat(x[:3], 2, axis=0) for name, x in make_blobs(6)[0].items()}
    before = vars(model).copy()
    found = model.fit_model(as_views(views), lambda stage, done, total: None)  # warnings are errors
    assert vars(model) == before
    assert any("found 3 distinct clusters" in note.message for note in found.notes)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(views)
    told = [str(each.message) for each in caught]
    assert any("4 clusters are requested for 6 training samples" in each for each in told)
    assert any("found 3 distinct clusters" in each for each in told)


@pytest.mark.parametrize("model", [TMvKSCR(4, random_state=0), Coview(4, random_state=0)], ids=repr)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_models_of_halves_give_no_warnings_and_leave_the_filters(model, n_jobs):
    views, _ = make_blobs(12, n_clusters=4)
    model.fit(views)
    before = warnings.filters, list(warnings.filters)
    stability(model, views, n_repeats=2, n_jobs=n_jobs, random_state=0)  # warnings are errors; halves have 6 samples
    assert warnings.filters is before[0]
    assert warnings.filters == before[1]


@pytest.mark.parametrize("call", ["fit", "fit_predict", "fit_transform"])
@pytest.mark.parametrize("wrapper", [lambda model: model, Preprocessed], ids=["method", "wrapper"])
def test_warnings_point_to_the_line_that_called_the_library(call, wrapper):
    two = np.repeat([[0.0, 0.0], [5.0, 5.0]], 30, axis=0)
    with pytest.warns(ConvergenceWarning, match="found 2 distinct clusters") as caught:
        getattr(wrapper(TMvKSCR(3, random_state=0)), call)({"a": two, "b": two + 1})
    assert {warning.filename for warning in caught} == {__file__}
