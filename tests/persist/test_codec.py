"""The codec: values to JSON and back by type hints, and methods that are saved because they declare their state."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import scipy.sparse as sp

from coview import METHODS, FixedSize, InputError, Linear
from coview.compose import Preprocessed
from coview.kernels import Kernel
from coview.methods.base import MultiViewClusterer, ViewWeights
from coview.persist import describe_model, load, save
from coview.persist.codec import converter, record_from_json, record_to_json
from coview.persist.file import Tensors
from coview.persist.parameters import concrete_classes
from coview.registry import Entry
from coview.state import (
    OPTIONAL,
    PARAMETER,
    ByView,
    DenseOrSparse,
    FloatArray,
    IntegerArray,
    Range,
    Size,
    Sizes,
    SparseMatrix,
    StateError,
    require,
)
from coview.views import Array, Matrix
from tests.persist.test_models import positive_views, same


class Rule(ABC):
    """An abstract part of a method."""

    @abstractmethod
    def nearest(self, x): ...


@dataclass(frozen=True)
class NearestMean(Rule):
    means: Annotated[Array, FloatArray("clusters", "features")]

    def nearest(self, x):
        return ((x[:, None] - self.means) ** 2).sum(axis=2)


@dataclass(frozen=True)
class Nothing(Rule):
    def nearest(self, x):
        return np.zeros((len(x), 1))


class NearestMeans(MultiViewClusterer):
    """A small method: the first samples are the means of the clusters."""

    view_weights_: ViewWeights
    kernel_: Annotated[Kernel, PARAMETER]
    _rules: ByView[Rule]
    _trace: tuple[float, ...]
    _note: Annotated[str, OPTIONAL]

    def __init__(self, n_clusters=2, *, views=None, random_state=None):
        self.n_clusters = n_clusters
        self.views = views
        self.random_state = random_state

    def _fit(self, X):
        views = self._views_to_fit(X)
        self.view_weights_ = dict.fromkeys(views, 1.0)
        self.kernel_ = Linear()
        self._rules = {name: NearestMean(x[: self.n_clusters].copy()) for name, x in views.items()}
        self._trace = (2.0, 1.0)
        self.labels_ = self.predict(views)

    def predict(self, X):
        distances = [self._rules[name].nearest(x) for name, x in self._views_to_predict(X).items()]
        return np.argmin(np.sum(distances, axis=0), axis=1)

    def _check_state(self, sizes):
        super()._check_state(sizes)
        require(sizes.known("clusters") == self.n_clusters, "expected one mean for each cluster")


@pytest.fixture
def registered():
    METHODS["nearestmeans"] = Entry("tests.persist.test_codec:NearestMeans", "nearest of the first samples")
    yield NearestMeans(3)
    del METHODS["nearestmeans"]


def test_a_registered_method_that_declares_its_state_is_saved(registered, tmp_path):
    views = positive_views()
    for model in (registered, Preprocessed(registered), FixedSize(registered, n_train=30, random_state=0)):
        model.fit(views)
        loaded = load(save(model, tmp_path / "model"))
        assert same(loaded.predict(views), model.predict(views))
        assert describe_model(tmp_path / "model")["method"] == "NearestMeans"
    loaded = load(save(registered.fit(views), tmp_path / "model"))
    assert loaded._trace == (2.0, 1.0)
    assert "_note" not in vars(loaded)
    assert isinstance(loaded._rules["a"], NearestMean)


def test_a_method_is_refused_unless_it_is_registered(tmp_path):
    with pytest.raises(InputError, match="NearestMeans cannot be saved; only classes of coview and METHODS"):
        save(NearestMeans().fit(positive_views()), tmp_path / "model")


def test_a_method_checks_its_own_state(registered, tmp_path):
    model = registered.fit(positive_views()).set_params(n_clusters=2)
    with pytest.raises(InputError, match="expected one mean for each cluster"):
        save(model, tmp_path / "model")


def test_abstract_classes_stand_for_the_concrete_ones_of_their_package():
    assert list(concrete_classes(Rule)) == ["NearestMean", "Nothing"]
    assert list(concrete_classes(Nothing)) == ["Nothing"]

    @dataclass(frozen=True)
    class Foreign(Linear):
        pass

    assert Foreign not in concrete_classes(Kernel).values()


@dataclass(frozen=True)
class Part:
    name: str
    size: int
    share: float | None


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    rows: tuple[tuple[float, ...], ...]
    by_name: dict[str, Part]
    names: tuple[str, ...]
    flag: bool
    unit: Literal["m", "km"]
    other: dict[str, Any]


WHOLE = Whole((Part("a", 1, None), Part("b", 2, 0.5)), ((1.0,), ()), {"c": Part("c", 3, 1.0)}, ("x",), True, "m", {})


def test_dataclasses_of_plain_values_come_back():
    node = record_to_json(WHOLE)
    assert node["parts"][1] == {"name": "b", "size": 2, "share": 0.5}
    assert record_from_json(Whole, json.loads(json.dumps(node)), "whole") == WHOLE


def test_numbers_of_numpy_are_written_as_plain_numbers():
    node = record_to_json(Part("a", np.int64(3), np.float32(0.5)))
    assert [type(value) for value in node.values()] == [str, int, float]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": [{"name": "a", "size": 1}]}, r"whole\.parts\[0\]: missing: 'share'"),
        ({"parts": [{"name": "a", "size": 1.0, "share": None}]}, r"parts\[0\]\.size: expected an integer, got float"),
        ({"rows": [[1.0], [True]]}, r"whole\.rows\[1\]\[0\]: expected a finite number, got bool"),
        ({"rows": [[float("inf")]]}, r"rows\[0\]\[0\]: expected a finite number within"),
        ({"by_name": {"c": 3}}, r"whole\.by_name\.c: expected an object, got int"),
        ({"names": ["x", None]}, r"whole\.names\[1\]: expected a string, got NoneType"),
        ({"flag": 1}, "whole.flag: expected true or false, got int"),
        ({"unit": "mm"}, "whole.unit: expected one of m, km, got mm"),
        ({"other": {"x": [float("nan")]}}, r"whole\.other\.x\[0\]: expected a finite number"),
        ({"extra": 1}, "whole: unknown: 'extra'"),
    ],
    ids=str,
)
def test_changed_records_say_what_was_expected(change, message):
    with pytest.raises(InputError, match=message):
        record_from_json(Whole, {**record_to_json(WHOLE), **change}, "whole")


def convert(hint, value, sizes=None):
    return converter(hint)(value, Tensors(), sizes or Sizes({"a": 2, "b": 3}))


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (Annotated[Array, FloatArray("n")], np.zeros((2, 2)), "expected ndim=1, got ndim=2"),
        (Annotated[Array, FloatArray("n")], np.zeros(2, int), "expected float32 or float64, got int64"),
        (Annotated[Array, FloatArray("n")], np.array([1.0, np.nan]), "expected numbers, got NaN"),
        (Annotated[Array, FloatArray("n")], np.array([1.0, np.inf]), "expected finite numbers"),
        (Annotated[Array, FloatArray("n")], np.zeros(0), "expected at least 1 for size 'n', got 0"),
        (Annotated[Array, FloatArray("n", least=0)], np.array([-1.0]), "expected a number at least 0, got -1"),
        (Annotated[Array, FloatArray("n", above=0)], np.array([0.0]), "expected a number above 0, got 0"),
        (Annotated[Array, FloatArray("n", most=1)], np.array([2.0]), "expected a number at most 1, got 2"),
        (Annotated[Array, FloatArray("n", "n")], np.zeros((2, 3)), "expected 2 for size 'n', got 3"),
        (Annotated[Array, IntegerArray("n", below="n")], np.array([0, 2]), "expected numbers below 2"),
        (Annotated[Array, IntegerArray("n", increasing=True)], np.array([1, 1]), "expected increasing numbers"),
        (Annotated[Matrix, SparseMatrix("n", "m")], np.zeros((2, 2)), "expected a csr_array, got ndarray"),
        (Annotated[Matrix, DenseOrSparse("n", "m")], sp.csc_array(np.eye(2)), "expected a csr_array, got csc_array"),
        (Annotated[Matrix, SparseMatrix("n", "m", least=0)], sp.csr_array(-np.eye(2)), "expected a number at least 0"),
        (Annotated[int, Size("views")], 3, "expected 2 for size 'views', got 3"),
        (Annotated[tuple[str, ...], Size("views")], ("a",), "expected 2 for size 'views', got 1"),
        (Annotated[int, Range(0, 15)], 16, "expected a number at most 15, got 16"),
        (ByView[float], {"b": 1.0, "a": 1.0}, "expected the views a, b, got b, a"),
        (ByView[Annotated[Array, FloatArray("features")]], {"a": np.zeros(2), "b": np.zeros(2)}, "b: expected 3 for"),
        (Annotated[Kernel, PARAMETER], "linear", "expected Kernel, got str"),
        (Array, np.zeros(3), "the type hint .* does not say what to save"),
    ],
)
def test_values_that_differ_from_their_declaration_are_refused(hint, value, message):
    with pytest.raises(StateError, match=message):
        convert(hint, value)


def test_sizes_of_a_view_are_its_own_and_those_of_the_model_are_shared():
    rows = ByView[Annotated[Array, FloatArray("train", "_columns")]]
    convert(rows, {"a": np.zeros((5, 1)), "b": np.zeros((5, 2))})
    with pytest.raises(StateError, match="b: expected 5 for size 'train', got 4"):
        convert(rows, {"a": np.zeros((5, 1)), "b": np.zeros((4, 1))})


def test_damaged_sparse_matrices_are_refused():
    hint = Annotated[Matrix, SparseMatrix("n", "m")]
    tensors = Tensors()
    node = converter(hint)(sp.csr_array(np.eye(3)), tensors, Sizes({}))
    for part, values in [("1", [0, 1, 3]), ("1", [0, 1, -1]), ("2", [0, 2, 1, 3]), ("2", [0, 1, 2, 4]), ("2", [0, 3])]:
        arrays = {**tensors.arrays, part: np.array(values, np.int32)}
        with pytest.raises(StateError, match=r"expected increasing indptr|expected column indices below 3"):
            converter(hint)(node, Tensors(arrays), Sizes({}))
    with pytest.raises(StateError, match="expected int32 or int64 as indices"):
        converter(hint)(node, Tensors({**tensors.arrays, "1": np.zeros(3)}), Sizes({}))
