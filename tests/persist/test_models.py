"""Saved models: which are restored bit for bit, and which are refused."""

import json
import pickle
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans

from coview import (
    KPCA,
    KSC,
    METHODS,
    MVSCBP,
    OPMC,
    RBF,
    Codebook,
    Concat,
    CoReg,
    Cosine,
    Coview,
    Directions,
    Entropy,
    FixedSize,
    InputError,
    KMeansRows,
    Linear,
    MvKSC,
    NormalizedPolynomial,
    PerView,
    Polynomial,
    Stratified,
    TMvKSCR,
    stack_views,
    summarize,
)
from coview.compose import Preprocessed
from coview.core.assign import Assigner
from coview.errors import InputTypeError, ModelFileError
from coview.methods.nested import nested_models
from coview.persist import describe_model, load, save
from coview.persist.codec import convert_model
from coview.persist.file import Tensors
from coview.preprocess.steps import FittedPreprocessing, parse_steps
from tests.conftest import make_blobs

KERNELS = [RBF(), Linear(), Polynomial(3, 0.5), NormalizedPolynomial(), NormalizedPolynomial(2, 0.0), Cosine()]
METHODS_THAT_PREDICT = [method for method in METHODS.values() if hasattr(method, "predict")]
WRAPPED = [
    FixedSize(TMvKSCR(3, random_state=0), n_train=40, n_repeats=2, random_state=0),
    Preprocessed(TMvKSCR(3, random_state=0)),
    Preprocessed(MVSCBP(3, random_state=0), "l2"),
    FixedSize(Preprocessed(TMvKSCR(3, random_state=0)), n_train=40, random_state=0),
    Preprocessed(FixedSize(OPMC(3, random_state=0), n_train=0.5, random_state=0)),
    Preprocessed(TMvKSCR(3, random_state=0), ["total+log1p+pca2", "tfidf+l2", "none"]),
    FixedSize(Preprocessed(OPMC(3, random_state=0), {"a": "pca2+standard+pca1"}), n_train=40, random_state=0),
    Concat(Preprocessed(OPMC(3, random_state=0), "tfidf+pca50")),
    Concat(KSC(3, random_state=0)),
    Concat(TMvKSCR(3, views=[6, 4, 3], random_state=0)),
    Concat(Preprocessed(OPMC(3, random_state=0))),
    PerView(KSC(3, random_state=0)),
    PerView({"a": KSC(3, random_state=0), "b": OPMC(3, random_state=0), "c": KPCA(3, random_state=0)}),
    PerView(FixedSize(KSC(3, random_state=0), n_train=40, random_state=0)),
    FixedSize(Concat(KSC(3, random_state=0)), n_train=40, random_state=0),
    FixedSize(Coview(range(2, 4), random_state=0), n_train=40, random_state=0),
    Preprocessed(Coview("auto", random_state=0), {"a": "total", "b": "l2", "c": "none"}),
]


def positive_views(n_samples=70, form=np.asarray, dtype=np.float64):
    """Return views without negative numbers, which unbounded kernels need, and with zeros for sparse forms."""
    views, _ = make_blobs(n_samples)
    least = {name: np.eye(x.shape[1])[0] / 2 for name, x in views.items()}  # no row is all zero
    return {name: form(np.maximum(x + 1, least[name]).astype(dtype)) for name, x in views.items()}


def views_for(model, **settings):
    views = positive_views(**settings)
    return {"b": views["b"]} if isinstance(model, (KSC, KPCA)) else views


def rows(views, some):
    return {name: x[some] for name, x in views.items()}


def rows_like(model):
    """Return three new samples for a model."""
    rng = np.random.default_rng(1)
    if isinstance(model, Concat):
        return rng.random((3, model.n_features_in_))
    return {name: rng.random((3, width)) for name, width in model.view_n_features_.items()}


def same(a, b):
    """Return whether two learnt values are equal bit for bit, including their types."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        bits = np.ndarray.tolist if a.dtype == object else np.ndarray.tobytes
        return a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)
    if sp.issparse(a):
        return a.shape == b.shape and all(
            same(getattr(a, part), getattr(b, part)) for part in ("data", "indices", "indptr")
        )
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if is_dataclass(a):  # without cached properties, such as the duplicate rows of a similarity
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in fields(a))
    if hasattr(a, "__dict__") and type(a).__module__.startswith("coview"):
        state = [{key: value for key, value in vars(each).items() if key != "_computed"} for each in (a, b)]
        return same(*state)
    return a == b


def assert_same_model(model, loaded, new):
    assert same(model, loaded)
    assert repr(model) == repr(loaded)
    assert same(model.predict(new), loaded.predict(new))
    if hasattr(model, "transform"):
        assert same(model.transform(new), loaded.transform(new))
    if hasattr(model, "predict_proba"):
        assert same(model.predict_proba(new), loaded.predict_proba(new))
        assert same(model.score_samples(new), loaded.score_samples(new))
    a, b = ([*nested_models(each)][-1] for each in (model, loaded))
    if hasattr(model, "view_labels_") or isinstance(a, Coview):
        assert same(model.predict(new, per_view=True), loaded.predict(new, per_view=True))
    if isinstance(a, Coview):
        assert same(model.score_samples(new, per_view=True), loaded.score_samples(new, per_view=True))
        assert same(model.view_contributions(new), loaded.view_contributions(new))
        assert same(a.model_.level(4), b.model_.level(4))
    elif hasattr(model, "transform"):
        assert same(a.view_labels_, b.view_labels_)
        if hasattr(model, "view_labels_"):
            assert same(model.transform(new, per_view=True), loaded.transform(new, per_view=True))
    assert same(model, loaded)  # what was learnt on the way, too


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def through_a_file(model, path):
    assert save(model, path) == path
    return load(path)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", METHODS_THAT_PREDICT)
def test_methods_are_restored_bit_for_bit(method, dtype, form, path):
    model = method(3, random_state=0)
    views = views_for(model, form=form, dtype=dtype)
    model.fit(rows(views, slice(50)))
    assert_same_model(model, through_a_file(model, path), views)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("assigner", "dtype"), [("directions", "float64"), (Codebook(), np.float32)])
@pytest.mark.parametrize("method", [TMvKSCR, MvKSC])
def test_kernels_and_assigners_are_restored_bit_for_bit(method, kernel, form, assigner, dtype, path):
    views = positive_views(form=form)
    model = method(2, kernel=kernel, assigner=assigner, dtype=dtype, random_state=0).fit(rows(views, slice(50)))
    assert_same_model(model, through_a_file(model, path), views)


def test_outlying_rows_are_restored(path):
    views = positive_views()
    views["a"][:3] *= 1e5
    for form in (np.asarray, sp.csr_array):
        formed = {name: form(x) for name, x in views.items()}
        model = TMvKSCR(3, kernel=RBF(), rho=0.5, random_state=0).fit(formed)
        assert len(model._score_maps["a"].similarity.far)
        assert_same_model(model, through_a_file(model, path), formed)


def test_views_of_extreme_scales_are_restored(path):
    for scale in (1e-100, 1e100):
        views = {name: scale * x for name, x in positive_views().items()}
        model = TMvKSCR(2, kernel=Linear(), rho=0.5, random_state=0).fit(views)
        assert_same_model(model, through_a_file(model, path), views)
    assert np.isinf(model.eigenvalues_).any()


def test_precomputed_similarities_are_restored(path):
    grams = {name: RBF()(x) for name, x in positive_views().items()}
    model = TMvKSCR(3, kernel="precomputed", random_state=0).fit(grams)
    assert_same_model(model, through_a_file(model, path), grams)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("model", WRAPPED, ids=str)
def test_wrappers_are_restored_bit_for_bit(model, form, path):
    views = positive_views(form=form)
    model.fit(rows(views, slice(50)))
    assert_same_model(model, through_a_file(model, path), views)


@pytest.mark.parametrize("kernel", ["auto", RBF()], ids=str)
def test_novelty_does_not_depend_on_whether_it_was_used_before_saving(kernel, path):
    views = positive_views()
    model = TMvKSCR(3, kernel=kernel, random_state=0).fit(rows(views, slice(50)))
    unused = through_a_file(model, path)
    usual = model.score_samples(views)
    np.testing.assert_array_equal(unused.score_samples(views), usual)
    np.testing.assert_array_equal(through_a_file(model, path).score_samples(views), usual)


def test_clusters_of_single_views_are_restored(path):
    views = positive_views()
    model = TMvKSCR(3, random_state=0).fit(views)
    assert_same_model(model, through_a_file(model, path), views)
    model.recluster(rows(views, slice(40)))
    assert list(model._view_assignments) == ["a", "b", "c"]
    assert_same_model(model, through_a_file(model, path), views)


@pytest.mark.parametrize(
    "model",
    [
        TMvKSCR(3, random_state=0),
        TMvKSCR(3, kernel="rbf", rho=0.5, random_state=0),
        Coview(3, random_state=0),
        FixedSize(Preprocessed(TMvKSCR(3, random_state=0)), n_train=50, random_state=0),
    ],
    ids=lambda model: " ".join(repr(model).split()),
)
def test_a_file_does_not_depend_on_the_use_of_the_model(model, path):
    views = positive_views()
    model.fit(views)
    before = save(model, path).read_bytes()
    model.predict({"a": views["a"]})
    model.predict(views, per_view=True)
    if not isinstance(model, Coview):
        model.transform(views, per_view=True)
    summarize(model, views)
    assert save(model, path).read_bytes() == before
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict({"b": views["b"]}), model.predict({"b": views["b"]}))
    assert save(loaded, path).read_bytes() == before


def test_a_model_trained_on_files_is_restored_without_labels(path):
    from coview import as_views

    views = positive_views()
    model = FixedSize(TMvKSCR(3, random_state=0), n_train=40, random_state=0).train(as_views(views))
    loaded = through_a_file(model, path)
    assert not hasattr(loaded, "labels_")
    assert same(model.predict(views), loaded.predict(views))


def test_column_names_are_compared_after_loading(path):
    views = {name: pd.DataFrame(x).add_prefix(name) for name, x in positive_views().items()}
    model = TMvKSCR(3, random_state=0).fit(views)
    loaded = through_a_file(model, path)
    assert_same_model(model, loaded, views)
    views["a"] = views["a"][views["a"].columns[::-1]]
    with pytest.raises(InputError, match="where 'a0' was"):
        loaded.predict(views)


def test_a_stacked_table_is_split_as_before(path):
    stacked, layout = stack_views(positive_views())
    frame = pd.DataFrame(stacked).add_prefix("column")
    model = TMvKSCR(3, views=layout, random_state=0).fit(frame).set_output(transform="pandas")
    loaded = through_a_file(model, path)
    assert same(model, loaded)
    assert loaded.transform(frame).equals(model.transform(frame))
    with pytest.raises(InputError, match="feature names"):
        loaded.predict(frame.rename(columns={"column0": "other"}))


@pytest.mark.parametrize(
    "settings",
    [
        {"rho": np.float64(0.25), "kappa": [1, 2, 3.5], "beta": {"a": 1, "b": np.float32(2), "c": 1}},
        {"kappa": np.array([1.0, 2.0, 3.0]), "beta": (1, 2, 3), "n_clusters": np.int64(3)},
        {"kernel": {"a": RBF(np.float64(3.0)), "b": "linear", "c": Cosine()}},
        {"kernel": [RBF(2), Polynomial(2, 1), "cosine"], "assigner": Directions(3)},
        {"dtype": np.float32, "n_jobs": 2, "batch_size": 16},
        {"dtype": np.dtype("float64"), "random_state": None},
        {"random_state": np.int32(4)},
        {"n_clusters": np.uint8(3), "batch_size": np.int8(5), "rho": np.float16(0.5)},
        {"n_jobs": 10**6},
        {"random_state": [1, 2, 3]},
        {"random_state": np.array([1, 2, 3], dtype=np.uint32)},
    ],
    ids=str,
)
def test_parameters_keep_their_types(settings, path):
    views = positive_views()
    model = TMvKSCR(**{"n_clusters": 3, "random_state": 0, **settings}).fit(views)
    assert_same_model(model, through_a_file(model, path), views)


@pytest.mark.parametrize(
    "layout",
    [
        [6, 4, 3],
        (6, 4, 3),
        np.array([6, 4, 3]),
        {"x": slice(0, 9), "y": slice(None, None, 2), "z": range(3)},
        {1: [0, 1, 2], 2: np.arange(13) > 4},
        {"x": [True, False] * 6 + [True], "y": np.array([0, 3])},
        {"x": ["column1", "column2"], "y": np.array(["column3", "column10"]), "z": "column0"},
        {"x": np.array(["column1", "column2"], dtype=object), "y": ("column4",)},
    ],
    ids=str,
)
def test_layouts_keep_their_types(layout, path):
    frame = pd.DataFrame(stack_views(positive_views())[0]).add_prefix("column")
    model = TMvKSCR(3, views=layout, random_state=0).fit(frame)
    loaded = through_a_file(model, path)
    assert same(model.views, loaded.views)
    assert same(model.predict(frame), loaded.predict(frame))


def test_arrays_of_another_byte_order_keep_their_values(path):
    frame = pd.DataFrame(stack_views(positive_views())[0]).add_prefix("column")
    layout = {"x": np.array(["column1", "column2"], ">U9"), "y": np.array([0, 3], ">i8")}
    model = TMvKSCR(3, views=layout, kappa=np.array([1.0, 2.0], ">f8"), random_state=0).fit(frame)
    loaded = through_a_file(model, path)
    assert loaded.kappa.tolist() == [1.0, 2.0]
    assert {name: columns.tolist() for name, columns in loaded.views.items()} == {
        "x": ["column1", "column2"],
        "y": [0, 3],
    }
    assert same(model.predict(frame), loaded.predict(frame))


@pytest.mark.parametrize("select", ["entropy", Entropy(2), KMeansRows(), Stratified(np.arange(70) % 3)], ids=repr)
def test_selectors_are_restored(select, path):
    model = FixedSize(KSC(3, random_state=0), n_train=40, select=select, random_state=0).fit(positive_views()["b"])
    assert same(model, through_a_file(model, path))


@pytest.mark.parametrize("groups", [np.array(["day", "night"] * 35), np.array([None, "night"] * 35), ["é", "ü"] * 35])
def test_groups_of_strings_are_restored(groups, path):
    model = FixedSize(KSC(3, random_state=0), n_train=40, random_state=0).fit(positive_views()["b"])
    model.set_params(select=Stratified(groups))
    assert same(model.select, through_a_file(model, path).select)


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_random_generators_continue_after_loading(source, path):
    random_state = source(5)
    random_state.normal(size=3)
    model = KSC(2, random_state=random_state).fit(positive_views()["b"])
    loaded = through_a_file(model, path)
    assert loaded.random_state is not random_state
    assert same(loaded.random_state.normal(size=5), random_state.normal(size=5))


def test_infinite_parameters_are_restored(path):
    model = OPMC(3, tol=np.inf, random_state=0).fit(positive_views())
    assert through_a_file(model, path).tol == np.inf


def test_shared_arrays_are_shared_after_loading(path):
    model = PerView(KSC(3, random_state=0)).fit(positive_views())
    loaded = through_a_file(model, path)
    assert loaded.labels_ is loaded.view_labels_[loaded.best_view_]
    loaded.labels_[0] = 2  # and are writable
    assert model.labels_ is model.view_labels_[model.best_view_]


def test_shared_sparse_matrices_are_stored_once():
    model = MVSCBP(3, random_state=0).fit(positive_views(form=sp.csr_array))
    learnt = convert_model(model, Tensors())["learnt"]
    assert learnt["anchors_"]["a"] == learnt["_anchors"][0]["points"]
    assert "csr" in learnt["anchors_"]["a"]


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = TMvKSCR(3, random_state=0).fit(positive_views())
    files = [save(model, tmp_path / name).read_bytes() for name in "ab"]
    assert files[0] == files[1]


def test_a_loaded_model_can_be_saved_fitted_and_pickled(path):
    views = positive_views()
    model = FixedSize(Preprocessed(TMvKSCR(3, random_state=0)), n_train=40, random_state=0).fit(views)
    loaded = through_a_file(through_a_file(model, path), path)
    for copy in (loaded, pickle.loads(pickle.dumps(loaded)), cloudpickle.loads(cloudpickle.dumps(loaded))):
        assert_same_model(deepcopy(model), copy, views)
    assert same(deepcopy(loaded).fit(views).labels_, model.labels_)


def test_progress_is_not_saved(path):
    stages = []
    model = KSC(3, progress=lambda *stage: stages.append(stage)).fit(positive_views()["b"])
    assert through_a_file(model, path).progress is None
    assert stages


def test_a_model_predicts_the_same_in_another_process(tmp_path):
    views = positive_views()
    np.savez(tmp_path / "views.npz", **views)
    models = {
        "flagship": TMvKSCR(3, random_state=0),
        "fixed": FixedSize(Preprocessed(MvKSC(3, random_state=0)), n_train=40, random_state=0),
        "anchors": MVSCBP(3, random_state=0),
        "kmeans": OPMC(3, random_state=0),
    }
    for name, model in models.items():
        save(model.fit(rows(views, slice(50))), tmp_path / name)
    code = """
import sys
import numpy as np
from coview.persist import load
folder = sys.argv[1]
views = dict(np.load(folder + "/views.npz"))
for name in sys.argv[2:]:
    model = load(f"{folder}/{name}")
    np.save(f"{folder}/{name}.npy", model.predict(views))
    if hasattr(model, "transform"):
        np.save(f"{folder}/{name}-scores.npy", model.transform(views))
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path), *models], check=True)
    for name, model in models.items():
        assert same(np.load(tmp_path / f"{name}.npy"), model.predict(views))
        if hasattr(model, "transform"):
            assert same(np.load(tmp_path / f"{name}-scores.npy"), model.transform(views))


def test_a_description_reads_only_the_beginning_of_the_file(path):
    views = {name: pd.DataFrame(x).add_prefix(name) for name, x in positive_views().items()}
    views["c"] = views["c"].to_numpy()
    inner = TMvKSCR(
        3, kernel=[RBF(2.0), "rbf", RBF(3)], rho=np.float64(0.5), kappa=(1, 2, 3), dtype=np.float32, random_state=0
    )
    model = FixedSize(Preprocessed(inner), n_train=40, select=Stratified(np.arange(70) % 2), random_state=0).fit(views)
    save(model, path)
    with path.open("r+b") as file:
        size = path.stat().st_size
        file.truncate(8 + int.from_bytes(file.read(8), "little"))
        file.truncate(size)  # zeros in place of the arrays
    described = describe_model(path)
    assert json.loads(json.dumps(described)) == described
    assert (described["class"], described["method"], described["n_clusters"]) == ("FixedSize", "TMvKSCR", 3)
    assert described["views"][0] == {
        "name": "a",
        "n_features": 4,
        "columns": ["a0", "a1", "a2", "a3"],
        "categories": [],
    }
    assert described["views"][2] == {"name": "c", "n_features": 3, "columns": None, "categories": []}
    assert described["parameters"]["select"] == "Stratified(groups='array')"
    settings = described["parameters"]["estimator"]["parameters"]["estimator"]["parameters"]
    assert settings["kernel"] == ["RBF(sigma2=2.0)", "rbf", "RBF(sigma2=3)"]
    assert (settings["rho"], settings["kappa"], settings["dtype"]) == (0.5, [1, 2, 3], "float32")
    assert described["format"] == 1
    with pytest.raises(ModelFileError, match="its tensors have changed"):
        load(path)


def test_descriptions_show_layouts_and_estimators_by_view(path):
    frame = stack_views(positive_views())[0]
    estimators = {"x": KSC(3), "y": KSC(2)}
    model = PerView(estimators, views={"x": slice(0, 6), "y": range(6, 13)}).fit(frame)
    save(model, path)
    described = describe_model(path)
    assert (described["method"], described["n_clusters"]) == ("KSC", 3)
    assert described["parameters"]["views"] == {"x": "slice(0, 6, None)", "y": "range(6, 13, 1)"}


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: FixedSize(model, n_train=60, random_state=0)])
def test_a_description_shows_the_selected_number_of_clusters(wrap, path):
    model = wrap(Coview("auto", random_state=0)).fit(positive_views(90))
    save(model, path)
    described = describe_model(path)
    assert (described["method"], described["n_clusters"]) == ("Coview", 3)


def test_the_selection_and_the_support_are_restored(path):
    views = positive_views(90)
    model = Coview("auto", random_state=0).fit(views)
    loaded = through_a_file(model, path)
    assert model.number_.n_clusters == len(model.support_.clusters) == 3
    assert (loaded.number_, loaded.support_, loaded.reason_) == (model.number_, model.support_, model.reason_)
    assert summarize(loaded, views).to_json() == summarize(model, views).to_json()
    model = Coview(3, random_state=0).fit(views)
    loaded = through_a_file(model, path)
    assert loaded.number_ is loaded.support_ is None


# Models that cannot be saved.


@dataclass(frozen=True)
class OwnKernel(Linear):
    pass


class OwnMethod(KSC):
    pass


@dataclass(frozen=True)
class OwnAssigner(Assigner):
    def fit(self, scores, n_clusters, rng, decimals=9):
        return Directions().fit(scores, n_clusters, rng, decimals)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KSC(3, kernel=OwnKernel()), "kernel: OwnKernel cannot be saved; only the kernels"),
        (KSC(3, assigner=OwnAssigner()), "assigner: OwnAssigner cannot be saved; only the kernels"),
        (OwnMethod(3), "OwnMethod cannot be saved; only classes of coview"),
        (Concat(KMeans(3)), "estimator: KMeans cannot be saved; only estimators of coview"),
        (PerView({"view0": KMeans(3)}), "estimator: KMeans cannot be saved"),
        (CoReg(3), "CoReg cannot label new samples"),
        (Concat(CoReg(3)), "Concat cannot label new samples"),
        (KSC(3, random_state=np.random.Generator(np.random.Philox(0))), "random_state: Generator cannot be saved"),
        (KSC(3, random_state=2**130), "random_state: int cannot be saved; give a number below"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_models_with_foreign_code_are_refused(model, message, path):
    model.fit(positive_views()["b"])
    with pytest.raises(InputError, match=message):
        save(model, path)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": "three"}, "n_clusters='three': expected an integer of at least 1"),
        ({"batch_size": 0}, "batch_size=0: expected an integer"),
        ({"n_jobs": 0}, "n_jobs=0: expected an integer other than 0"),
        ({"views": 3.5}, "views: expected a layout of columns, got a float"),
        ({"views": [["a", ["b"]]]}, "views: expected a layout of columns, got a list"),
        ({"views": pd.Index([4, 6, 3])}, "views: Index cannot be saved; give a number"),
        ({"views": {2.5: [0]}}, "views: dict cannot be saved"),
        ({"labels_": [0, 1]}, "labels_: expected an array, got list"),
        ({"labels_": np.zeros(3, int)}, "expected 70 for size 'train', got 3"),
        ({"labels_": np.zeros((70, 1), int)}, "labels_: expected ndim=1, got ndim=2"),
        ({"labels_": np.zeros(70)}, "labels_: expected int32 or int64, got float64"),
        ({"_n_features_out": 2.5}, "_n_features_out: expected an integer, got float"),
        ({"view_n_features_": None}, "view_n_features_: expected an object, got NoneType"),
        ({"view_names_": "abc"}, "view_names_: expected a list, got str"),
        ({"_beta": dict.fromkeys("abc", "1")}, "_beta.a: expected a finite number, got str"),
        ({"_beta": dict.fromkeys("ab", 0.5)}, "_beta: expected the views a, b, c, got a, b"),
        ({"_closeness": {"b": np.ones(69)}}, "expected the closeness of 70 samples in view 'b', got 69"),
        ({"_assignment": None}, "_assignment: expected CodeWords or Centres, got NoneType"),
        ({"mine": 1}, "attribute mine: TMvKSCR declares no type hint"),
    ],
    ids=str,
)
def test_models_with_changed_attributes_are_refused(change, message, path):
    model = TMvKSCR(3, random_state=0).fit(positive_views())
    vars(model).update(change)
    with pytest.raises(InputError, match=message):
        save(model, path)
    assert not list(path.parent.iterdir())


def test_incomplete_models_are_refused(path):
    model = Preprocessed(KSC(3, random_state=0)).fit(positive_views()["b"])
    with pytest.raises(InputError, match="preprocessing_ differs from steps"):
        save(deepcopy(model).set_params(steps="l2"), path)
    with pytest.raises(InputError, match="'other' is unknown"):
        save(deepcopy(model).set_params(steps="other"), path)
    for odd in ({"view0": 3}, {"view0": FittedPreprocessing(parse_steps("l2"), ())}):
        changed = deepcopy(model)
        changed.preprocessing_ = odd
        with pytest.raises(InputError, match=r"expected FittedPreprocessing, got int|expected the steps l2"):
            save(changed, path)
    del model.estimator_.eigenvalues_
    with pytest.raises(InputError, match="estimator_: missing: 'eigenvalues_'"):
        save(model, path)


def test_objects_that_are_not_fitted_models_are_refused(path):
    with pytest.raises(InputTypeError, match="model is a str"):
        save("model", path)
    with pytest.raises(InputTypeError, match="model is a KMeans"):
        save(KMeans(3), path)
    with pytest.raises(InputError, match="TMvKSCR is not fitted; call fit"):
        save(TMvKSCR(3), path)


def test_paths_that_cannot_be_written_are_named(tmp_path):
    model = KSC(2, random_state=0).fit(positive_views()["b"])
    with pytest.raises(InputError, match=r"nowhere.* cannot be written: No such file"):
        save(model, tmp_path / "nowhere" / "model")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="folder cannot be written"):
        save(model, tmp_path / "folder")
    with pytest.raises(InputError, match=r"cannot be written: .* has an empty name"):
        save(model, "/")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_names_that_exceed_the_header_are_refused(path, monkeypatch):
    monkeypatch.setattr("coview.persist.file._LARGEST_HEADER", 1000)
    with pytest.raises(InputError, match=r"names and parameters of .* characters are too many"):
        save(KSC(2, random_state=0).fit(positive_views()["b"]), path)
