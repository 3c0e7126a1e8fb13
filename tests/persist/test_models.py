"""Saved models: which are restored bit for bit, and which are refused."""

import json
import pickle
import re
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

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
from coview.persist import describe_model, load, save
from coview.persist.codec import write_value
from coview.persist.file import Tensors
from tests.conftest import make_blobs

KERNELS = [RBF(), Linear(), Polynomial(3, 0.5), NormalizedPolynomial(), NormalizedPolynomial(2, 0.0), Cosine()]
METHODS_THAT_PREDICT = [method for method in METHODS.values() if "predict" in method.abilities]
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
    if hasattr(a, "get_params"):
        return same(*(dict(sorted(vars(each).items())) for each in (a, b)))
    return a == b


ASKED = ("predict", "transform", "predict_proba", "score_samples", "view_contributions")


def assert_same_model(model, loaded, new):
    assert same(model, loaded)
    assert repr(model) == repr(loaded)
    for ask in ASKED:
        assert hasattr(model, ask) == hasattr(loaded, ask)
        if hasattr(model, ask):
            assert same(getattr(model, ask)(new), getattr(loaded, ask)(new))
    for question, ask in (("labels", "predict"), ("scores", "transform")):
        own = model.model_.seen_names == model.model_.names
        if own and hasattr(model, ask) and model.model_.can(f"{question}_by_view"):
            assert same(getattr(model, ask)(new, per_view=True), getattr(loaded, ask)(new, per_view=True))
    assert hasattr(model, "view_labels_") == hasattr(loaded, "view_labels_")
    if hasattr(model, "view_labels_"):
        assert same(model.view_labels_, loaded.view_labels_)
    if isinstance(model, Coview):
        assert same(model.score_samples(new, per_view=True), loaded.score_samples(new, per_view=True))
        assert same(model.model_.level(4), loaded.model_.level(4))
    assert same(model, loaded)  # also after the questions


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
        assert len(model.model_.predictor.score_maps["a"].similarity.far)
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
    assert list(model.model_.predictor.view_assignments) == ["a", "b", "c"]
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
        {"rho": 0.25, "kappa": [1, 2, 3.5], "beta": {"a": 1, "b": 2.0, "c": 1}},
        {"kappa": np.array([1.0, 2.0, 3.0]), "beta": (1, 2, 3)},
        {"kernel": {"a": RBF(3.0), "b": "linear", "c": Cosine()}},
        {"kernel": [RBF(2), Polynomial(2, 1), "cosine"], "assigner": Directions(3)},
        {"dtype": np.float32, "n_jobs": 2, "batch_size": 16},
        {"n_jobs": 10**6},
        {"random_state": None},
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
    ("settings", "loaded"),
    [
        ({"rho": np.float64(0.25)}, {"rho": 0.25}),
        ({"n_clusters": np.int64(3), "batch_size": np.int8(5)}, {"n_clusters": 3, "batch_size": 5}),
        ({"beta": {"a": 1, "b": np.float32(2), "c": np.float16(0.5)}}, {"beta": {"a": 1, "b": 2.0, "c": 0.5}}),
        ({"kernel": RBF(np.float64(3.0))}, {"kernel": RBF(3.0)}),
        ({"dtype": np.dtype("float64")}, {"dtype": np.float64}),
        ({"random_state": np.random.default_rng(5)}, {"random_state": None}),
        ({"random_state": np.random.RandomState(5)}, {"random_state": None}),
    ],
    ids=["float64", "integers", "float16", "kernel", "dtype", "Generator", "RandomState"],
)
def test_numbers_of_numpy_become_plain_and_random_generators_none(settings, loaded, path):
    views = positive_views()
    model = TMvKSCR(**{"n_clusters": 3, "random_state": 0, **settings}).fit(views)
    restored = through_a_file(model, path)
    assert same({name: getattr(restored, name) for name in loaded}, loaded)
    assert same(restored.predict(views), model.predict(views))
    assert same(restored.transform(views), model.transform(views))


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
    tensors, (anchors, *_) = Tensors(), model.model_.predictor.anchors
    node = write_value(anchors.points, tensors)
    assert "sparse" in node
    assert node == write_value(model.anchors_["a"], tensors)
    assert len(tensors.arrays) == 3


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
    assert described["parameters"]["select"] == "Stratified(groups=array)"
    settings = described["parameters"]["estimator"]["parameters"]["estimator"]["parameters"]
    assert settings["kernel"] == ["RBF(sigma2=2.0)", "rbf", "RBF(sigma2=3)"]
    assert (settings["rho"], settings["kappa"], settings["dtype"]) == (0.5, [1, 2, 3], "float32")
    assert described["format"] == 2
    with pytest.raises(ModelFileError, match="its tensors have changed"):
        load(path)


def test_descriptions_show_layouts_and_estimators_by_view(path):
    frame = stack_views(positive_views())[0]
    estimators = {"x": KSC(3), "y": KSC(2)}
    model = PerView(estimators, views={"x": slice(0, 6), "y": range(6, 13)}).fit(frame)
    save(model, path)
    described = describe_model(path)
    assert (described["method"], described["n_clusters"]) == ("KSC", 3)
    assert described["parameters"]["views"] == {"x": "slice(0, 6, None)", "y": "range(6, 13)"}


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
        (KSC(3, kernel=OwnKernel()), "kernel: OwnKernel cannot be saved; only the classes of coview"),
        (KSC(3, assigner=OwnAssigner()), "assigner: OwnAssigner cannot be saved; only the classes of coview"),
        (OwnMethod(3), "OwnMethod cannot be saved; only classes of coview"),
        (Concat(KMeans(3)), "estimator: KMeans cannot be saved; only estimators of coview"),
        (PerView({"view0": KMeans(3)}), "estimator.view0: KMeans cannot be saved"),
        (CoReg(3), "CoReg cannot label new samples"),
        (Concat(CoReg(3)), "Concat cannot label new samples"),
        (KSC(3, random_state=2**130), "random_state: int cannot be saved; .* give numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_models_with_foreign_code_are_refused(model, message, path):
    model.fit(positive_views()["b"])
    with pytest.raises(InputError, match=message):
        save(model, path)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (pd.Index([4, 6, 3]), "views: Index cannot be saved; a file holds no code; give numbers"),
        ({2.5: [0]}, "views: dict cannot be saved"),
        ([print], r"views: builtin_function_or_method cannot be saved"),
    ],
    ids=str,
)
def test_parameters_without_a_form_in_files_are_refused(layout, message, path):
    model = TMvKSCR(3, random_state=0).fit(positive_views()).set_params(views=layout)
    with pytest.raises(InputError, match=message):
        save(model, path)
    assert not list(path.parent.iterdir())


def test_only_what_is_learnt_and_the_parameters_are_saved(path):
    model = TMvKSCR(3, random_state=0).fit(positive_views())
    expected = model.labels_
    model.mine, model.labels_ = print, None
    loaded = through_a_file(model, path)
    assert not hasattr(loaded, "mine")
    assert same(loaded.labels_, expected)


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


def test_a_file_is_read_without_coview_as_the_documentation_shows(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "saved-models.md").read_text()
    code = next(block for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "safe_open" in block)
    model = TMvKSCR(3, random_state=0).fit(positive_views())
    save(model, tmp_path / "model.safetensors")
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(code, found)
    assert "coview import" not in code
    assert same(found["labels"], model.labels_)
    eigenvalues = found["arrays"][found["attributes"]["eigenvalues_"]["numbers"]["tensor"]]
    assert same(eigenvalues, model.eigenvalues_)
