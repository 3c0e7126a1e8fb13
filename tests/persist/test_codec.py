"""The codec: values to JSON and arrays, and back; and which classes a file can name."""

import importlib
import json
import pkgutil
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, is_dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans

import coview
from coview import METHODS, RBF, FixedSize, InputError, Linear, Preprocessed, TMvKSCR, load, save
from coview.base.records import StateError
from coview.data.view import Array, Categories
from coview.model.clusterer import PREDICTS, Clusterer
from coview.model.model import Model, Predictor
from coview.persist import codec, describe_model
from coview.persist.codec import read_value, write_value
from coview.persist.file import Tensors
from coview.registry import Entry
from tests.persist.test_models import positive_views, same


class Rule(ABC):
    """An abstract part of a method."""

    @abstractmethod
    def distances(self, x): ...


@dataclass(frozen=True)
class ToFirstRows(Rule):
    means: Array

    def distances(self, x):
        return ((x[:, None] - self.means) ** 2).sum(axis=2)


@dataclass(frozen=True)
class NearestFirstRows(Predictor):
    rules: dict[str, Rule]
    trace: tuple[float, ...]
    note: str | None = None

    @property
    def n_clusters(self):
        return len(next(iter(self.rules.values())).means)

    def labels_and_ties(self, views):
        distances = np.sum([self.rules[name].distances(x) for name, x in views.items()], axis=0)
        return np.column_stack([distances.argmin(axis=1), np.zeros(len(distances), dtype=int)])


class FirstRows(Clusterer):
    """A small method: the first samples are the means of the clusters."""

    abilities = PREDICTS

    def __init__(self, n_clusters=2, *, views=None, random_state=None):
        self.n_clusters = n_clusters
        self.views = views
        self.random_state = random_state

    def fit_model(self, views, report):
        rules = {name: ToFirstRows(x[: self.n_clusters].copy()) for name, x in views.items()}
        predictor = NearestFirstRows(rules, (2.0, -np.inf))
        return Model(predictor.labels(views), {"view_weights_": dict.fromkeys(views, 1.0)}, predictor)


@pytest.fixture
def registered():
    METHODS["firstrows"] = Entry("tests.persist.test_codec:FirstRows", "nearest of the first samples")
    yield FirstRows(3)
    del METHODS["firstrows"]


def test_a_registered_method_is_saved_with_the_dataclasses_in_its_file(registered, tmp_path):
    views = positive_views()
    for model in (Preprocessed(registered), FixedSize(registered, n_train=30, random_state=0), registered):
        loaded = load(save(model.fit(views), tmp_path / "model"))
        assert same(loaded, model)
        assert same(loaded.predict(views), model.predict(views))
        assert describe_model(tmp_path / "model")["method"] == "FirstRows"
    predictor = loaded.model_.predictor
    assert (predictor.trace, predictor.note) == ((2.0, -np.inf), None)
    assert isinstance(predictor.rules["a"], ToFirstRows)


def test_a_method_is_refused_unless_it_is_registered(registered, tmp_path):
    save(registered.fit(positive_views()), tmp_path / "model")
    entry = METHODS.entries.pop("firstrows")
    with pytest.raises(InputError, match="FirstRows cannot be saved; only classes of coview and registered ones"):
        save(registered, tmp_path / "other")
    with pytest.raises(InputError, match="class: expected a class of coview or a registered one, got FirstRows"):
        load(tmp_path / "model")
    METHODS["firstrows"] = entry


def written_and_read(value):
    tensors = Tensors()
    node = json.loads(json.dumps(write_value(value, tensors), allow_nan=False))
    return read_value(node, Tensors(tensors.arrays))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        2**127,
        -0.0,
        5e-324,
        np.inf,
        -np.inf,
        "",
        "é\ud800\0",
        [1, [2.0, ["x"]], ()],
        (1, (2,), [3]),
        {"a": {"b": (1,)}, 3: None, "value": {"class": "RBF", "fields": {}}},
        slice(None, -1, 2),
        range(5, 2**20),
        np.float32,
        np.zeros((0, 3)),
        np.array(3.0),
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(20.0)[::3],
        np.array([np.nan, np.inf, -0.0], dtype=np.float32),
        np.array([True, False]),
        np.array(["é", "", "long \U0010ffff"]),
        np.array([], dtype="U3"),
        np.array([], dtype=object),
        np.array([None, "x", 1, 2.5], dtype=object),
        sp.csr_array(np.eye(3, 5, dtype=np.float32)),
        sp.csr_array((3, 2**40)),
        RBF(2.0),
        Categories(("low", "high"), ordered=True),
    ],
    ids=repr,
)
def test_values_come_back_with_their_types(value):
    assert same(written_and_read(value), value)


def test_nan_comes_back():
    assert np.isnan(written_and_read([np.nan])[0])


def test_estimators_come_back_unfitted():
    model = FixedSize(TMvKSCR(3, kernel=[RBF(), "linear", "cosine"]), n_train=0.5).fit(positive_views())
    copy = written_and_read(model)
    assert repr(copy) == repr(model)
    assert not hasattr(copy, "model_")


class TwiceLinear(Linear):
    pass


TwiceLinear.__name__ = "Linear"  # as one of the classes of the library


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (print, "builtin_function_or_method cannot be saved; a file holds no code"),
        ({1.5: 1}, "dict cannot be saved"),
        ({"a": {1, 2}}, "^a: set cannot be saved"),
        ((1, [object()]), r"^\[1\]: object cannot be saved"),
        (2**128, "int cannot be saved"),
        (np.array([1j]), "ndarray cannot be saved"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "ndarray cannot be saved"),
        (np.array([[1, "x"]], dtype=object), "ndarray cannot be saved"),
        (np.array([print], dtype=object), "ndarray cannot be saved"),
        (np.ma.masked_array([1.0]), "MaskedArray cannot be saved"),
        (sp.csc_array(np.eye(2)), "csc_array cannot be saved"),
        (range(10**30), "range cannot be saved"),
        (RBF, "ABCMeta cannot be saved; a file holds no code"),
        (TwiceLinear(), "Linear cannot be saved; only the classes of coview can be, because a file holds no code"),
        (Entry("os:system", ""), "Entry cannot be saved; only the classes of coview can be"),
        (KMeans(3), "KMeans cannot be saved; only estimators of coview can be saved, because a file holds no code"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_values_without_a_form_in_files_are_refused(value, message):
    with pytest.raises(StateError, match=message):
        write_value(value, Tensors())


SPARSE = {"sparse": [[3, 3], {"tensor": "data"}, {"tensor": "indices"}, {"tensor": "indptr"}]}
PARTS = {"data": np.ones(3), "indices": np.arange(3, dtype=np.int32), "indptr": np.arange(4, dtype=np.int32)}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"lambda": "x: x"}, "expected one of the tags numbers, sparse"),
        ({"tuple": [], "dict": []}, "expected one of the tags"),
        ({}, "expected one of the tags"),
        (2**128, r"expected a number below 2\*\*128"),
        ({"value": {"class": "RBF"}}, "missing: 'fields'"),
        ({"value": {"class": "RBF", "fields": {}}}, "missing: 'sigma2'"),
        ({"value": {"class": "RBF", "fields": {"sigma2": -1.0}}}, "RBF.sigma2=-1.0: expected"),
        ({"value": {"class": ["RBF"], "fields": {}}}, "class: expected a class of coview"),
        ({"value": {"class": "Foreign", "fields": {"estimator": 1, "found": []}}}, "class: expected a class of coview"),
        ({"estimator": {"class": "KMeans", "parameters": {}}}, "class: expected a class of coview or a registered one"),
        ({"estimator": {"class": "KSC", "parameters": {"n_clusters": 2}}}, "parameters: missing: .*'kernel'"),
        ({"float": "1e999"}, "expected float"),
        ({"dtype": "O"}, "expected dtype"),
        ({"slice": [1, 2, 3, 4]}, "expected slice"),
        ({"range": [0, 5, 0]}, "expected range"),
        ({"range": [0, 10**30, 1]}, "expected at most 1048576 numbers"),
        ({"dict": [["a", 1], ["a", 2]]}, "expected each key once"),
        ({"dict": [[1.5, 1]]}, "a string or an integer"),
        ({"objects": [[]]}, "expected a list of plain values"),
        ({"objects": "text"}, "expected a list of plain values"),
        ({"strings": {"tensor": "data"}}, "expected code points"),
        ({"strings": {"tensor": "beyond"}}, "expected code points"),
        ({"numbers": {"tensor": "other"}}, "expected the name of a tensor in this file"),
        ({"numbers": {"tensor": "data", "by_columns": False}}, "expected a known layout"),
    ],
    ids=str,
)
def test_nodes_that_no_value_has_are_refused(node, message):
    tensors = Tensors({**PARTS, "beyond": np.full((2, 1), 0x110000, np.uint32)})
    with pytest.raises(StateError, match=message):
        read_value(node, tensors)


@pytest.mark.parametrize(
    "change",
    [
        {"indptr": np.array([0, 1, 3], np.int32)},
        {"indptr": np.array([0, 1, -1, 3], np.int32)},
        {"indptr": np.array([0, 2, 1, 3], np.int32)},
        {"indptr": np.array([0, 1, 2, 4], np.int32)},
        {"indices": np.array([0, 1, 3], np.int32)},
        {"indices": np.array([0, 1, -1], np.int32)},
        {"indices": np.array([0, 1], np.int32)},
        {"data": np.ones(4)},
        {"data": np.ones((3, 1))},
    ],
    ids=str,
)
def test_sparse_matrices_that_would_be_read_beyond_their_end_are_refused(change):
    assert same(read_value(SPARSE, Tensors(PARTS)), sp.csr_array(np.eye(3)))
    with pytest.raises(StateError, match=r"expected sparse|expected one index for each value"):
        read_value(SPARSE, Tensors({**PARTS, **change}))


def test_a_false_shape_takes_no_memory():
    for shape in ([2**60, 3], [3, 3, 3], [-3, 3], [3.0, 3], []):
        with pytest.raises(StateError, match="expected sparse"):
            read_value({"sparse": [shape, *SPARSE["sparse"][1:]]}, Tensors(PARTS))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Popen",
            "os.system",
            "Path",
            "eval",
            "__import__",
            "partial",
            "KMeans",
            "Registry",
            "Entry",
            "Kernel",
            "KSC",
        ),
        *(
            "Foreign",
            "InputFile",
            "Entry",
            "ViewInputs",
            "RunFolder",
            "Terminal",
            "ClusterGrams",
            "Summary",
            "ToFirstRows",
        ),
        *("RBF.__init__", "__class__", ""),
    ],
)
def test_a_file_names_only_classes_of_what_is_learnt(name):
    import coview.cli.commands
    import coview.distributed.graphs
    import coview.summary  # noqa: F401 - so that their classes could be found

    known = set(sys.modules)
    with pytest.raises(StateError, match="class: expected a class of coview"):
        read_value({"value": {"class": name, "fields": {}}}, Tensors())
    assert set(sys.modules) == known


def test_no_two_classes_of_the_library_have_the_same_name_in_a_file():
    homes = {}
    for module in pkgutil.walk_packages(coview.__path__, "coview."):
        if module.name.startswith(codec._PACKAGES):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.name:
                    homes.setdefault(name, []).append(module.name)
    assert len(homes) > 60
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}
