"""Wrappers: all views as one table, one model for each view."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from coview import KSC, RBF, Concat, InputError, PerView, TMvKSCR, stack_views
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


def test_per_view_has_every_views_own_clusters():
    views, _ = make_blobs(spread=1.0)
    model = PerView(KSC(3, random_state=0)).fit(views)
    assert list(model.estimators_) == list(model.view_labels_) == list(model.merits_) == ["a", "b", "c"]
    for name, x in views.items():
        alone = KSC(3, random_state=0).fit(x)
        np.testing.assert_array_equal(model.view_labels_[name], alone.labels_)
        np.testing.assert_array_equal(model.predict(views, per_view=True)[name], alone.labels_)
    np.testing.assert_array_equal(model.labels_, model.view_labels_[model.best_view_])
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_the_view_that_the_others_confirm_is_chosen():
    views, truth = make_blobs()
    noise = np.random.default_rng(5).normal(size=(90, 4))
    model = PerView(KSC(3, random_state=0)).fit({"noise": noise, **views})
    assert adjusted_rand_score(truth, model.labels_) == 1
    assert model.merits_["noise"] < 0.1 < model.merits_["a"]


def test_merit_is_agreement_times_balance():
    x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    crumbs = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [9.0]])
    model = PerView(KMeans(2, n_init=3, random_state=0)).fit([x, 2 * x, crumbs])
    agreement = adjusted_rand_score([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1])
    balance = -(5 / 6 * np.log2(5 / 6) + 1 / 6 * np.log2(1 / 6))
    np.testing.assert_allclose(
        list(model.merits_.values()), [(1 + agreement) / 2, (1 + agreement) / 2, agreement * balance]
    )
    assert model.best_view_ == "view0"


def test_one_view_is_confirmed_by_nobody_and_chosen():
    views, truth = make_blobs()
    model = PerView(KSC(3, random_state=0)).fit({"a": views["a"]})
    assert model.best_view_ == "a"
    assert adjusted_rand_score(truth, model.labels_) == 1


def test_views_can_have_estimators_of_their_own():
    views, _ = make_blobs(spread=1.0)
    kernels = {"a": RBF(1.0), "b": RBF(2.0), "c": RBF(3.0)}
    model = PerView({name: KSC(3, kernel=kernel) for name, kernel in kernels.items()}).fit(views)
    assert {name: estimator.kernel for name, estimator in model.estimators_.items()} == kernels
    with pytest.raises(InputError, match="estimator"):
        PerView({"a": KSC(3), "unknown": KSC(3)}).fit(views)


@WRAPPER
def test_what_the_estimator_cannot_do_the_wrapper_does_not_offer(wrapper):
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
    ("estimator", "message"), [(3, "must be a clusterer"), (KSC, r"KSC is a class; give .* KSC\(3\)")]
)
def test_only_clusterers_can_be_wrapped(wrapper, estimator, message):
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
