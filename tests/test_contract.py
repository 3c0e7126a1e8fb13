"""The contract of every entry of METHODS."""

import pickle
import re
from functools import partial
from html import escape

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from coview import (
    KSC,
    METHODS,
    MVSCBP,
    OPLFMVC,
    OPMC,
    RBF,
    TSVDMSC,
    Concat,
    CoReg,
    Coview,
    FixedSize,
    InputError,
    MvKSC,
    PerView,
    Preprocessed,
    TMvKSCR,
    Views,
    as_views,
    load,
    save,
    stack_views,
)
from coview.certainty.columns import sample_columns
from coview.methods.kernel_method import KernelMethod, OneViewKernelMethod
from coview.model.clusterer import RECLUSTERS
from tests.conftest import make_blobs


def some(condition):
    """Run a test for the methods that satisfy this condition."""
    chosen = {name: method for name, method in METHODS.items() if condition(method)}
    return pytest.mark.parametrize("method", chosen.values(), ids=chosen)


MULTI_VIEW = [method for method in METHODS.values() if not issubclass(method, OneViewKernelMethod)]


def takes_number(method):
    return "n_clusters" in method().get_params()


METHOD = some(lambda method: True)
MULTI = some(lambda method: method in MULTI_VIEW)
KERNEL = some(lambda method: issubclass(method, KernelMethod))
TRANSFORMS = some(lambda method: issubclass(method, KernelMethod) or method is Coview)
PREDICTS = some(lambda method: hasattr(method(), "predict"))
NUMBER_GIVEN = some(takes_number)
VARIATION_NOT_NEEDED = some(lambda method: takes_number(method) and method is not Coview)


def make(method, n_clusters=3, *, random_state=0, **settings):
    """The method with default parameters; some methods determine the number of clusters."""
    number = {"n_clusters": n_clusters} if takes_number(method) else {}
    return method(**number, random_state=random_state, **settings)


def views_for(method, **settings):
    """Views that the method accepts (one for methods of one view), and the true clusters."""
    views, truth = make_blobs(**settings)
    return (views if method in MULTI_VIEW else {"a": views["a"]}), truth


def checks():
    wrapped = [wrapper(KSC(random_state=0)) for wrapper in (Concat, PerView, Preprocessed)]
    wrapped.append(FixedSize(KSC(random_state=0), n_train=0.9, random_state=0))
    for model in [*(method(random_state=0) for method in METHODS.values()), *wrapped]:
        for estimator, check in estimator_checks_generator(model):
            if isinstance(model, Coview) and "check_estimator_sparse" in str(check):
                estimator.n_clusters = 2  # the check expects two memberships
            yield pytest.param(estimator, check, id=f"{type(model).__name__}-{getattr(check, 'func', check).__name__}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_own_checks_pass(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # so that no check is skipped
    check(estimator)


@METHOD
def test_fit_finds_well_separated_clusters(method):
    views, truth = views_for(method, spread=8.0)  # far enough apart that the directions differ as well
    model = make(method).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1


@PREDICTS
def test_new_samples_join_the_cluster_they_lie_in(method):
    views, truth = views_for(method)
    model = make(method).fit({name: x[:60] for name, x in views.items()})
    assert adjusted_rand_score(truth[60:], model.predict({name: x[60:] for name, x in views.items()})) == 1


@some(lambda method: method in MULTI_VIEW and takes_number(method))
@pytest.mark.parametrize("n_views", [1, 8])
def test_one_view_and_eight_views_are_accepted(method, n_views):
    views, truth = make_blobs(widths=(3,) * n_views, spread=8.0)
    assert adjusted_rand_score(truth, make(method).fit(views).labels_) == 1


@METHOD
def test_a_sample_far_from_all_others_does_no_harm(method):
    views, truth = views_for(method)
    views = {name: np.vstack([x, np.full((1, x.shape[1]), 60.0)]) for name, x in views.items()}
    labels = make(method, 4).fit(views).labels_
    assert len(labels) == len(truth) + 1
    assert adjusted_rand_score(truth, labels[:-1]) > 0.5


@METHOD
def test_rows_of_zeros_do_no_harm(method):
    views, truth = views_for(method)
    views = {name: np.vstack([x, np.zeros((2, x.shape[1]))]) for name, x in views.items()}
    assert adjusted_rand_score(truth, make(method).fit(views).labels_[:-2]) > 0.5


@NUMBER_GIVEN
def test_labels_are_numbered_by_decreasing_size(method):
    rng = np.random.default_rng(1)
    truth = rng.permutation(np.repeat([0, 1, 2], [10, 40, 25]))
    views = {"a": np.eye(3)[truth] * 9 + rng.normal(size=(75, 3))}
    labels = make(method).fit(views).labels_
    assert np.bincount(labels).tolist() == [40, 25, 10]
    assert labels.dtype == np.int64


@KERNEL
def test_recluster_numbers_clusters_by_decreasing_size_among_the_given_samples(method):
    """The sizes among the training samples may have another order."""
    views, truth = views_for(method, n_samples=300)
    train = np.concatenate([np.flatnonzero(truth == c)[:n] for c, n in ((0, 30), (1, 20), (2, 10))])
    given = np.concatenate([np.flatnonzero(truth == c)[-n:] for c, n in ((0, 10), (1, 25), (2, 50))])
    model = make(method).fit({name: x[train] for name, x in views.items()})
    assert np.bincount(model.labels_).tolist() == [30, 20, 10]
    more = {name: x[given] for name, x in views.items()}
    labels = model.recluster(more).predict(more)
    assert np.bincount(labels).tolist() == [50, 25, 10]
    assert np.bincount(model.labels_).tolist() == [10, 20, 30]
    for of_view in model.predict(more, per_view=True).values():
        assert (np.diff(np.bincount(of_view)) <= 0).all()


@KERNEL
def test_recluster_learns_the_clusters_of_single_views_again(method):
    """A cluster without training samples is found in each view after `recluster`."""
    views, truth = views_for(method, n_samples=300, spread=6.0)
    rows = np.concatenate([np.flatnonzero(truth == 0)[:40], np.flatnonzero(truth == 1)[:40]])
    train = {name: x[rows] for name, x in views.items()}
    model = make(method).fit(train)
    before = model.view_labels_
    model.recluster(views)
    after, predicted = model.view_labels_, model.predict(train, per_view=True)
    assert any((before[name] != after[name]).any() for name in views)
    for name, of_view in model.predict(views, per_view=True).items():
        np.testing.assert_array_equal(after[name], predicted[name])
        np.testing.assert_array_equal(after[name], of_view[rows])
        learnt = model.model_.predictor.of_view.fit(model.transform(views, per_view=True)[name])
        np.testing.assert_array_equal(of_view, learnt.assign(model.transform(views, per_view=True)[name]))


@METHOD
def test_a_method_sees_the_views_themselves(method):
    views, _ = views_for(method)
    model = make(method).fit(views).model_
    assert model.stages == ()
    assert model.seen_names == model.names == tuple(views)
    validated = as_views(views)
    assert model.seen(validated) is validated


@METHOD
@pytest.mark.parametrize("parameter", ["n_clusters", "random_state", "max_iter", "tol", "n_neighbors"])
def test_booleans_are_not_numbers(method, parameter):
    if parameter not in method().get_params():
        return
    with pytest.raises(InputError, match=f"^{parameter}=True: expected"):
        method(**{parameter: True}).fit(np.eye(9) + 1)


@NUMBER_GIVEN
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_integers_of_numpy_are_numbers_of_clusters(method, kind):
    views, _ = views_for(method)
    expected = make(method).fit(views)
    model = make(method, kind(3)).fit(views)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(views), expected.predict(views))


@METHOD
def test_sparse_views_may_have_indices_of_64_bits(method):
    sparse = {name: sp.csr_array(np.maximum(x, 0)) for name, x in views_for(method)[0].items()}
    wide = {}
    for name, x in sparse.items():
        indices, ends = x.indices.astype(np.int64), x.indptr.astype(np.int64)
        wide[name] = sp.csr_array((x.data, indices, ends), shape=x.shape)
    np.testing.assert_array_equal(make(method).fit(wide).labels_, make(method).fit(sparse).labels_)
    assert all(x.indices.dtype == np.int64 for x in wide.values())


@NUMBER_GIVEN
def test_the_message_about_n_clusters_gives_the_smallest_accepted_value(method):
    others = ", 'auto', or several integers such as range(2, 9)" if method is Coview else ""
    with pytest.raises(InputError, match=f"^n_clusters=0: expected an integer of at least 1{re.escape(others)}$"):
        make(method, 0).fit(np.eye(9))
    if method in MULTI_VIEW and method is not Coview:
        with pytest.raises(InputError, match=r"^n_clusters=1: expected an integer of at least 2 for 2 views$"):
            make(method, 1).fit([np.eye(9), np.eye(9)])


@TRANSFORMS
def test_predict_on_training_samples_gives_labels(method):
    views, _ = views_for(method, spread=1.0)
    model = make(method).fit(views)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    np.testing.assert_array_equal(make(method).fit_predict(views), model.labels_)
    np.testing.assert_allclose(model.transform(views), model.scores_, atol=1e-12)
    np.testing.assert_allclose(make(method).fit_transform(views), model.scores_, atol=1e-12)
    for name, labels in getattr(model, "view_labels_", {}).items():
        np.testing.assert_array_equal(labels, model.predict(views, per_view=True)[name])


def assert_memberships_agree_with_labels(model, views, labels):
    membership = model.predict_proba(views)
    assert membership.dtype == np.float64
    assert membership.shape == (len(labels), len(np.unique(labels)))
    np.testing.assert_array_equal(membership.argmax(axis=1), labels)
    np.testing.assert_allclose(membership.sum(axis=1), 1, rtol=1e-12)
    n_rows = len(labels)
    alone = [model.predict_proba({name: x[[i]] for name, x in views.items()})[0] for i in range(0, n_rows, 7)]
    np.testing.assert_allclose(alone, membership[::7], atol=1e-6)  # scores may be float32


@KERNEL
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("assigner", ["directions", "codebook"])
def test_memberships_agree_with_the_labels(method, dtype, assigner):
    views, _ = views_for(method, spread=1.0, n_samples=120)
    views = {name: x.astype(dtype) for name, x in views.items()}
    model = make(method, assigner=assigner).fit(views)
    assert_memberships_agree_with_labels(model, views, model.labels_)


@pytest.mark.parametrize("wrap", [Concat, PerView, Preprocessed, lambda e: FixedSize(e, n_train=0.5, random_state=0)])
def test_wrappers_have_the_memberships_of_the_method_inside(wrap):
    views, _ = make_blobs(spread=1.0, n_samples=120)
    model = wrap(KSC(3, random_state=0) if wrap in (Concat, PerView) else TMvKSCR(3, random_state=0)).fit(views)
    assert_memberships_agree_with_labels(model, views, model.labels_)


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_coview_has_memberships(n_clusters):
    views, _ = make_blobs(spread=1.0, n_samples=120)
    model = Coview(n_clusters, random_state=0).fit(views)
    assert_memberships_agree_with_labels(model, views, model.labels_)


def assert_novel_samples_are_found(model, views):
    usual, n_rows = model.score_samples(views), len(next(iter(views.values())))
    assert usual.dtype == np.float64
    assert 0 <= usual.min() < 0.1
    assert 0.9 < usual.max() < 1
    assert np.median(usual) == pytest.approx(0.5, abs=0.12)  # a training sample is not compared with itself
    alone = [model.score_samples({name: x[[i]] for name, x in views.items()})[0] for i in range(0, n_rows, 7)]
    np.testing.assert_allclose(alone, usual[::7], atol=1e-6)
    far = {name: x[:5] + 9 for name, x in views.items()}
    assert model.score_samples(far).max() < 1 / n_rows
    np.testing.assert_array_equal(model.predict(far, novel_below=0.01), -1)
    usual_only = model.predict(views, novel_below=0.3)
    np.testing.assert_array_equal(usual_only, np.where(usual < 0.3, -1, model.predict(views)))


@KERNEL
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_novel_samples_have_low_scores(method, dtype):
    views, _ = views_for(method, spread=1.0, n_samples=120)
    views = {name: x.astype(dtype) for name, x in views.items()}
    model = make(method).fit(views)
    assert_novel_samples_are_found(model, views)
    of_views = model.score_samples(views, per_view=True)
    assert list(of_views) == list(views)
    for name, labels in model.predict(views, per_view=True, novel_below=0.3).items():
        expected = np.where(of_views[name] < 0.3, -1, model.view_labels_[name])
        np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("wrap", [Concat, PerView, Preprocessed, lambda e: FixedSize(e, n_train=0.99, random_state=0)])
def test_wrappers_have_the_novelty_of_the_method_inside(wrap):
    views, _ = make_blobs(spread=1.0, n_samples=120)
    assert_novel_samples_are_found(wrap(KSC(3, random_state=0)).fit({"a": views["a"]}), {"a": views["a"]})


@pytest.mark.parametrize("n_clusters", [3, "auto"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coview_has_novelty(n_clusters, dtype):
    views, _ = make_blobs(spread=1.0, n_samples=120)
    views = {name: x.astype(dtype) for name, x in views.items()}
    model = Coview(n_clusters, random_state=0).fit(views)
    assert_novel_samples_are_found(model, views)
    of_views = model.score_samples(views, per_view=True)
    assert list(of_views) == list(views)
    without = model.predict(views, per_view=True)
    for name, labels in model.predict(views, per_view=True, novel_below=0.3).items():
        np.testing.assert_array_equal(labels, np.where(of_views[name] < 0.3, -1, without[name]))


def test_novelty_needs_scores_and_a_fraction():
    views, _ = make_blobs()
    with pytest.raises(InputError, match=r"^novel_below=0.1: OPMC has no novelty scores; leave it out"):
        Preprocessed(OPMC(3, random_state=0)).fit(views).predict(views, novel_below=0.1)
    with pytest.raises(InputError, match=r"^novel_below=1.5: expected a number"):
        TMvKSCR(3, random_state=0).fit(views).predict(views, novel_below=1.5)


@pytest.mark.parametrize("wrapper", [Concat, PerView])
def test_log_likelihoods_of_other_libraries_are_not_novelty(wrapper):
    views, _ = make_blobs()
    model = wrapper(GaussianMixture(3, random_state=0)).fit(views)
    assert not hasattr(model, "score_samples")
    assert sample_columns(model.model_, as_views(views)).novelties is None
    with pytest.raises(InputError, match=r"^novel_below=0.1: GaussianMixture has no novelty scores; leave it out"):
        model.predict(views, novel_below=0.1)
    assert model.predict_proba(views).shape == (len(model.labels_), 3)


def test_methods_without_scores_have_no_memberships():
    without = [method() for method in METHODS.values() if not issubclass(method, KernelMethod) and method is not Coview]
    wrapped = [wrapper(OPMC(3)) for wrapper in (Concat, PerView, Preprocessed, FixedSize)]
    for model in [*without, *wrapped, Concat(KMeans(3))]:
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "score_samples")


@METHOD
@pytest.mark.parametrize("random_state", [0, np.random.RandomState(3), np.random.default_rng(3)])
def test_the_same_seed_gives_the_same_labels(method, random_state):
    views, _ = views_for(method, spread=0.5)
    first, second = (make(method, random_state=pickle.loads(pickle.dumps(random_state))).fit(views) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)


@METHOD
def test_fit_and_predict_do_not_change_the_input(method):
    views, _ = views_for(method)
    views = {name: sp.csr_matrix(x) if name == "b" else x for name, x in views.items()}
    before = pickle.dumps(views)
    model = make(method).fit(views)
    if hasattr(model, "predict"):
        model.predict(views)
    assert pickle.dumps(views) == before


@MULTI
def test_every_form_of_the_same_views_gives_the_same_labels(method):
    views, _ = make_blobs(spread=1.0)
    stacked, slices = stack_views(views)
    columns = [f"{name}{j}" for name, x in views.items() for j in range(x.shape[1])]
    groups = {name: [c for c in columns if c.startswith(name)] for name in views}
    frame = pd.DataFrame(stacked, columns=columns)
    first = make(method).fit(views)
    expected, predicted = first.labels_, first.predict(views) if hasattr(first, "predict") else None
    forms = [
        (list(views.values()), None),
        (tuple(views.values()), None),
        (as_views(views), None),
        ({name: sp.coo_array(x) for name, x in views.items()}, None),
        ({name: pd.DataFrame(x) for name, x in views.items()}, None),
        ({name: pl.DataFrame(x) for name, x in views.items()}, None),
        (stacked, slices),
        (stacked, [4, 6, 3]),
        (sp.csr_matrix(stacked), slices),
        (frame, groups),
        (pl.DataFrame(frame.to_dict("list")), groups),
    ]
    for data, layout in forms:
        model = make(method, views=layout).fit(data)
        np.testing.assert_array_equal(model.labels_, expected)
        if hasattr(model, "predict"):
            np.testing.assert_array_equal(model.predict(data), predicted)
        assert model.n_features_in_ == 13
        assert list(model.view_n_features_.values()) == [4, 6, 3]


@some(lambda method: method in MULTI_VIEW and hasattr(method(), "predict"))
def test_views_are_matched_by_name_when_predicting(method):
    views, _ = make_blobs(spread=1.0)
    model = make(method).fit(views)
    expected = model.predict(views)
    reordered = dict(reversed(views.items()))
    np.testing.assert_array_equal(model.predict(reordered), expected)
    np.testing.assert_array_equal(model.predict(list(views.values())), expected)  # a list is matched by order
    assert model.view_names_ == ("a", "b", "c")


ROW_LABELS = {
    "1": [str(i + 1) for i in range(90)],  # row names of R
    "001": [f"{i + 1:03}" for i in range(90)],
    "P1": [f"P{i + 1}" for i in range(90)],
    "s0": [f"s{i}" for i in range(90)],
    "dates": pd.date_range("2020-01-01", periods=90),
}


@pytest.mark.parametrize("labels", ROW_LABELS.values(), ids=ROW_LABELS)
@pytest.mark.parametrize("wrap", [lambda method: method, lambda method: FixedSize(method, n_train=60, random_state=0)])
def test_predict_accepts_any_rows_of_tables_with_labels_and_row_numbers(labels, wrap, tmp_path):
    views, _ = make_blobs()
    frames = {name: pd.DataFrame(x) for name, x in views.items()}
    frames["b"].index = labels
    model = wrap(TMvKSCR(3, kernel="rbf", random_state=0)).fit(frames)
    save(model, tmp_path / "model")
    shuffled = np.random.default_rng(0).permutation(90)
    for rows in (np.arange(90), shuffled, np.arange(7), shuffled[:7], [0], [5]):
        some = {name: x.iloc[rows] for name, x in frames.items()}
        for fitted in (model, load(tmp_path / "model")):
            np.testing.assert_array_equal(fitted.predict(some), model.labels_[rows])
            np.testing.assert_array_equal(fitted.predict(list(some.values())), model.labels_[rows])
    some = {
        name: frames[name].iloc[rows] for name, rows in zip("abc", (shuffled, shuffled, shuffled[::-1]), strict=True)
    }
    for given, first, other in ((some, "a", "c"), (list(some.values()), "view0", "view2")):  # both have row numbers
        with pytest.raises(InputError, match=f"view '{other}' has the same row labels in another order .* '{first}'"):
            model.predict(given)


@pytest.mark.parametrize("labels", ROW_LABELS.values(), ids=ROW_LABELS)
def test_integers_are_ids_in_predict_unless_they_were_row_numbers_in_fit(labels):
    views, _ = make_blobs()
    frames = {name: pd.DataFrame(x, index=labels) for name, x in views.items()}
    numbered = {name: x.reset_index(drop=True) for name, x in frames.items()}
    mixed = numbered | {"b": frames["b"]}
    shuffled = np.random.default_rng(0).permutation(90)
    for each in (views, frames, numbered):
        model = TMvKSCR(3, kernel="rbf", random_state=0).fit(each)
        np.testing.assert_array_equal(model.predict(mixed), model.labels_)
        for rows in (shuffled, shuffled[:7]):
            with pytest.raises(InputError, match="has other row labels than view"):
                model.predict({name: x.iloc[rows] for name, x in mixed.items()})
    with pytest.raises(InputError, match="has other row labels than view"):
        model.fit({name: x.iloc[shuffled] for name, x in mixed.items()})


@METHOD
def test_float32_in_gives_the_clusters_of_float64(method):
    views, _ = views_for(method, spread=4.0)
    narrow = {name: x.astype(np.float32) for name, x in views.items()}
    assert adjusted_rand_score(make(method).fit(narrow).labels_, make(method).fit(views).labels_) == 1


@TRANSFORMS
def test_float32_in_gives_float32_out(method):
    views, _ = views_for(method, spread=1.0)
    narrow = {name: x.astype(np.float32) for name, x in views.items()}
    model = make(method).fit(narrow)
    assert model.scores_.dtype == model.transform(narrow).dtype == np.float32
    if issubclass(method, KernelMethod):
        latent = model.latent_.values() if isinstance(model.latent_, dict) else [model.latent_]
        assert all(array.dtype == np.float32 for array in (*latent, *model.transform(narrow, per_view=True).values()))
    wide = make(method).fit(views)
    assert adjusted_rand_score(model.labels_, wide.labels_) == 1
    assert wide.transform(views).dtype == np.float64


@TRANSFORMS
def test_transform_can_return_named_tables(method):
    views, _ = views_for(method)
    model = make(method).fit(views)
    n_components = 19 if method is Coview else 2
    names = [f"{method.__name__.lower()}{j}" for j in range(n_components)]
    assert model.get_feature_names_out().tolist() == names
    assert model.set_output(transform="pandas").transform(views).columns.tolist() == names
    assert model.set_output(transform="polars").transform(views).columns == names


@TRANSFORMS
def test_pandas_output_has_the_row_labels_of_the_input(method):
    views, _ = views_for(method)
    labels = pd.Index([f"s{i}" for i in range(90)], name="patient")
    frames = {name: pd.DataFrame(x, index=labels) for name, x in views.items()}
    partly = frames | {"a": views["a"]} if len(views) > 1 else frames
    model = make(method).set_output(transform="pandas").fit(frames)
    for form in (frames, partly, list(frames.values()), as_views(frames)):
        for output in (model.transform(form), make(method).set_output(transform="pandas").fit_transform(form)):
            pd.testing.assert_index_equal(output.index, labels)
    assert model.transform(as_views(frames).take([4, 2])).index.tolist() == ["s4", "s2"]
    assert frames["a"].join(model.transform(frames)).notna().all(axis=None)
    pd.testing.assert_index_equal(model.transform(views).index, pd.RangeIndex(90))  # arrays have no labels
    assert model.set_output(transform="polars").transform(frames).shape == (90, model.scores_.shape[1])
    assert isinstance(model.set_output(transform="default").transform(frames), np.ndarray)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_wrappers_return_named_tables(output, monkeypatch):
    monkeypatch.setattr("coview.model.model._BLOCK_ROWS", 20)  # so that there are several blocks
    views, _ = make_blobs()
    frames = {name: pd.DataFrame(x, index=[f"s{i}" for i in range(90)]) for name, x in views.items()}
    method = Preprocessed(TMvKSCR(3, random_state=0))
    for wrapper in (method, FixedSize(method, n_train=60, random_state=0), Concat(KMeans(2, random_state=0))):
        scores = wrapper.fit(frames).transform(frames)
        table = wrapper.set_output(transform=output).transform(frames)
        assert list(table.columns) == [f"{type(wrapper).__name__.lower()}{j}" for j in range(2)]
        np.testing.assert_array_equal(table.to_numpy(), scores)
        if output == "pandas":
            pd.testing.assert_index_equal(table.index, frames["a"].index)


@PREDICTS
def test_an_unfitted_model_raises_not_fitted(method):
    views, _ = views_for(method)
    for name in filter(partial(hasattr, make(method)), RECLUSTERS - {"fit_transform"}):
        with pytest.raises(NotFittedError):
            getattr(make(method), name)(views)


@VARIATION_NOT_NEEDED
def test_identical_samples_give_one_cluster_and_a_warning(method):
    with pytest.warns(ConvergenceWarning, match="found 1 distinct clusters instead of n_clusters=3"):
        model = make(method).fit([np.ones((12, 4))])
    assert model.labels_.tolist() == [0] * 12
    if hasattr(model, "predict"):
        assert model.predict([np.ones((2, 4))]).tolist() == [0, 0]


@some(lambda method: method is not Coview)
@pytest.mark.parametrize("value", [0.0, 1e-150, 1.0, 1e150])
@pytest.mark.filterwarnings("ignore:found 1 distinct:sklearn.exceptions.ConvergenceWarning")
def test_identical_samples_never_give_two_clusters(method, value):
    labels = make(method, 2).fit(np.full((7, 3), value)).labels_
    assert labels.tolist() == [0] * 7


@pytest.mark.parametrize("value", [0.0, 1e-150, 1.0, 1e150])
def test_coview_refuses_identical_samples(value):
    for n_clusters in (1, 2, "auto"):
        with pytest.raises(InputError, match=r"^view 'view0' has the same values in all 7 samples; drop the view$"):
            Coview(n_clusters).fit(np.full((7, 3), value))


@NUMBER_GIVEN
@pytest.mark.parametrize("n_clusters", [7, 12])
@pytest.mark.filterwarnings("ignore:found 1. distinct:sklearn.exceptions.ConvergenceWarning")
def test_more_clusters_than_half_of_the_samples_give_a_warning(method, n_clusters):
    views, _ = views_for(method, n_samples=12)
    make(method, 6).fit(views)  # without a warning
    sentence = f"{n_clusters} clusters are requested for 12 training samples, .* only one sample; ask for fewer"
    with pytest.warns(ConvergenceWarning, match=sentence):
        model = make(method, n_clusters).fit(views)
    assert len(set(model.labels_)) > 6


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda k: Concat(KSC(k, random_state=0)),
        lambda k: Concat(KMeans(k, random_state=0)),
        lambda k: PerView(KSC(k, random_state=0)),
        lambda k: PerView(dict.fromkeys("abc", KMeans(k, random_state=0))),
        lambda k: Preprocessed(TMvKSCR(k, random_state=0)),
        lambda k: FixedSize(TMvKSCR(k, random_state=0), n_train=12, random_state=0),
    ],
    ids=["Concat", "Concat of KMeans", "PerView", "PerView of KMeans", "Preprocessed", "FixedSize"],
)
def test_wrappers_warn_of_more_clusters_than_half_of_the_samples(wrapped):
    views, _ = make_blobs(n_samples=12)
    wrapped(6).fit(views)  # without a warning
    with pytest.warns(ConvergenceWarning, match="12 clusters are requested for 12 training samples"):
        model = wrapped(12).fit(views)
    assert len(set(model.labels_)) == 12


@some(lambda method: takes_number(method) and method is not TSVDMSC)  # which uses directions only
def test_a_large_constant_column_does_no_harm_to_sparse_views(method):
    views, truth = views_for(method, spread=8.0)
    by_kernel = issubclass(method, KernelMethod) or method in (CoReg, OPLFMVC)
    kernel = {"kernel": RBF(100.0)} if by_kernel else {}
    stamped = {name: sp.csr_array(np.column_stack([x, np.full(len(x), 1e6)])) for name, x in views.items()}
    assert adjusted_rand_score(truth, make(method, **kernel).fit(stamped).labels_) == 1


@NUMBER_GIVEN
def test_duplicate_samples_and_constant_columns_do_no_harm(method):
    views, truth = views_for(method, spread=8.0)
    doubled = {name: np.column_stack([x, np.full(len(x), 7.0)]).repeat(2, axis=0) for name, x in views.items()}
    labels = make(method).fit(doubled).labels_
    assert adjusted_rand_score(truth.repeat(2), labels) == 1


@NUMBER_GIVEN
def test_one_cluster_of_one_view_is_the_trivial_result(method):
    model = make(method, 1).fit(np.random.default_rng(0).normal(size=(9, 2)))
    assert model.labels_.tolist() == [0] * 9


@some(lambda method: issubclass(method, KernelMethod) and method is not MvKSC)
def test_explained_variance_adds_up_to_at_most_one(method):
    views, _ = views_for(method)
    model = make(method, 5).fit(views)
    assert (np.diff(model.eigenvalues_) <= 0).all()
    assert 0 < model.explained_variance_ratio_.sum() <= 1


def test_grid_search_splits_samples_of_stacked_views():
    views, truth = make_blobs()
    X, layout = stack_views(views)
    grid = {"rho": [0.0, 1.0], "kernel": [RBF(), RBF(sigma2=1e-3)], "n_clusters": [2, 3]}
    search = GridSearchCV(TMvKSCR(views=layout, random_state=0), grid, scoring="adjusted_rand_score", cv=3)
    best = search.fit(X, truth).best_params_
    assert best["n_clusters"] == 3
    assert best["kernel"] == RBF()
    assert search.best_score_ == 1


def test_grid_search_compares_numbers_of_clusters_of_coview():
    views, truth = make_blobs()
    X, layout = stack_views(views)
    search = GridSearchCV(
        Coview(views=layout, random_state=0), {"n_clusters": [2, 3, "auto"]}, scoring="adjusted_rand_score", cv=3
    )
    search.fit(X, truth)
    assert search.best_params_["n_clusters"] == 3
    scores = dict(zip(search.cv_results_["param_n_clusters"], search.cv_results_["mean_test_score"], strict=True))
    assert scores[2] < scores[3] == scores["auto"] == 1


def test_pipelines_and_column_transformers_keep_views_apart():
    views, truth = make_blobs()
    frame = pd.DataFrame({f"{name}{j}": x[:, j] for name, x in views.items() for j in range(x.shape[1])})
    groups = {name: [c for c in frame if c.startswith(name)] for name in views}
    model = make_pipeline(StandardScaler(), TMvKSCR(3, views=groups, random_state=0)).set_output(transform="pandas")
    assert adjusted_rand_score(truth, model.fit(frame).predict(frame)) == 1
    assert model.transform(frame).columns.tolist() == ["tmvkscr0", "tmvkscr1"]

    scaled = ColumnTransformer([(name, StandardScaler(), cols) for name, cols in groups.items()])
    scaled = scaled.set_output(transform="pandas")
    prefixed = {name: [f"{name}__{c}" for c in cols] for name, cols in groups.items()}
    model = make_pipeline(scaled, TMvKSCR(3, views=prefixed, random_state=0))
    assert adjusted_rand_score(truth, model.fit(frame).predict(frame)) == 1


@METHOD
def test_a_fitted_model_has_a_table_for_notebooks(method):
    views, _ = views_for(method, spread=8.0)
    model = make(method)
    assert "<th>fitted</th>" not in model._repr_html_()
    html = model.fit({f"<i>{name}</i>": x for name, x in views.items()})._repr_html_()
    assert "<td>clusters</td><td>3</td>" in html
    assert "<td>sizes</td><td>30, 30, 30</td>" in html
    assert "&lt;i&gt;a&lt;/i&gt;: 4" in html
    assert "<i>a</i>" not in html
    assert not re.search(r"(src|href)=.https?:", html)  # nothing is fetched
    assert model._repr_mimebundle_()["text/html"].count("<td>clusters</td>") == 1
    drawn = re.findall(r'<path d="([^"]+)" stroke="#', html.split("<figure")[-1])
    assert [path.count("h0") for path in drawn] == ([30, 30, 30] if model.model_.kept_scores is not None else [])


WRAPPED = {
    "fixed size": FixedSize(TMvKSCR(3, random_state=0), n_train=60, random_state=0),
    "stacked": Concat(KSC(3, random_state=0)),
    "best view": PerView(KSC(3, random_state=0)),
    "preprocessed": Preprocessed(TMvKSCR(3, random_state=0), "standard"),
    "other library": Concat(KMeans(3, random_state=0)),
}
FITTED = {**{name: make(method) for name, method in METHODS.items()}, **WRAPPED}


@pytest.mark.parametrize("model", FITTED.values(), ids=FITTED)
def test_a_fitted_model_has_a_plot_of_its_clusters(model):
    """Methods without scores have bars of the cluster sizes."""
    views, _ = views_for(type(model) if model not in WRAPPED.values() else TMvKSCR, spread=8.0)
    with pytest.raises(NotFittedError):
        clone(model).plot()
    model = clone(model).fit(views)
    ax = Figure().add_subplot()
    assert model.plot(ax=ax) is ax
    scores = model.model_.kept_scores
    if scores is None:
        assert [bar.get_height() for bar in ax.patches] == [30, 30, 30]
        assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2"]
    else:
        assert [text.get_text() for text in ax.texts] == ["0", "1", "2"]
        assert sum(len(dots.get_offsets()) for dots in ax.collections) == len(scores)
        assert ax.get_xlabel() == f"t-SNE of the scores; {len(scores)} training samples"


def test_a_new_figure_is_shown_by_pyplot():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    ax = OPMC(3, random_state=0).fit(make_blobs()[0]).plot()
    assert [number for number in plt.get_fignums() if number not in before] == [ax.figure.number]
    plt.close(ax.figure)


def test_one_component_is_drawn_without_t_sne():
    model = KSC(2, random_state=0).fit(make_blobs()[0]["a"])
    ax = model.plot(ax=Figure().add_subplot())
    assert ax.get_xlabel() == "scores, with samples of similar score stacked; 90 training samples"
    assert "Scores, with samples of similar score stacked; 90 training samples.<" in model._repr_html_()


def test_the_table_of_a_wrapper_has_its_own_results():
    views, _ = make_blobs(spread=8.0)
    for n_clusters in (3, "auto"):
        selected = Coview(n_clusters, random_state=0).fit(views)
        assert f"<td>{escape(selected.reason_)}</td>" in selected._repr_html_()
    fixed = FixedSize(TMvKSCR(3, random_state=0), n_train=60, random_state=0)
    assert "<td>training samples</td><td>60</td>" in fixed.fit(views)._repr_html_()
    html = fixed.train(as_views(views))._repr_html_()  # there are no labels of all samples
    assert "<td>columns by view</td><td>a: 4, b: 6, c: 3</td>" in html
    assert "<td>sizes</td>" not in html
    best = PerView(KSC(3, random_state=0)).fit(views)
    assert f"<td>best view</td><td>{best.best_view_}</td>" in best._repr_html_()


@pytest.mark.parametrize(("method", "parameter"), [(TMvKSCR, "kappa"), (MvKSC, "gamma")])
def test_views_that_weights_do_not_name_have_the_weight_1(method, parameter):
    views, _ = make_blobs(spread=1.0)
    named, listed = (make(method, **{parameter: each}).fit(views) for each in ({"b": 2.0}, [1.0, 2.0, 1.0]))
    np.testing.assert_array_equal(named.scores_, listed.scores_)
    with pytest.raises(InputError, match=f"^{parameter}: view 'bb' is unknown; did you mean 'b'. Known: a, b, c"):
        make(method, **{parameter: {"bb": 2.0}}).fit(views)


@METHOD
def test_clones_and_pickles_keep_parameters_and_labels(method):
    views, _ = views_for(method, spread=1.0)
    settings = {"kernel": RBF(2.0)} if hasattr(method(), "kernel") else {}
    model = make(method, **settings).fit(views)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "labels_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.labels_, model.labels_)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict(views), model.predict(views))


def test_refitting_discards_the_names_of_earlier_columns():
    views, _ = make_blobs()
    frame = pd.DataFrame(views["a"], columns=list("wxyz"))
    model = TMvKSCR(3, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == list("wxyz")
    model.fit(views)
    assert not hasattr(model, "feature_names_in_")


def test_per_view_scores_do_not_fit_into_one_table():
    views, _ = make_blobs()
    model = TMvKSCR(3, random_state=0).fit(views).set_output(transform="pandas")
    with pytest.raises(InputError, match="per_view=True"):
        model.transform(views, per_view=True)


def test_views_pass_through_unchanged():
    views = as_views(make_blobs()[0])
    assert isinstance(views, Views)
    assert as_views(views) is views


# MVSCBP labels the training samples by their embedding and new samples by a vote of their nearest anchors, as its
# authors do. Both rules agree on separate clusters.
LABELS_NEW_SAMPLES_BY_ANOTHER_RULE = {MVSCBP}


@PREDICTS
def test_training_samples_between_clusters_keep_their_labels_in_predict(method):
    agree = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        views = {name: rng.normal(size=(60, 3)) for name in ("ab" if method in MULTI_VIEW else "a")}
        model = make(method, random_state=seed).fit(views)
        agree.append(np.array_equal(model.predict(views), model.labels_))
    assert all(agree) == (method not in LABELS_NEW_SAMPLES_BY_ANOTHER_RULE)


@pytest.mark.parametrize("model", [Coview("auto"), Coview(range(2, 5))], ids=repr)
def test_attributes_are_listed_without_a_given_number_of_clusters(model):
    assert "fit" in dir(model)


@NUMBER_GIVEN
@pytest.mark.parametrize("wrong", [True, np.True_, 2.5, "3"])
def test_numbers_of_clusters_that_are_no_integers_are_refused(method, wrong):
    views, _ = views_for(method)
    with pytest.raises(InputError, match=f"^n_clusters={re.escape(repr(wrong))}: expected an integer"):
        make(method, wrong).fit(views)
