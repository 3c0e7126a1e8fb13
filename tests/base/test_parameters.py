import numpy as np
import pytest

from coview import OPLFMVC, OPMC, RBF, TSVDMSC, FuzzyGraph, NeighborGraph, Polynomial, TMvKSCR
from coview.base.parameters import check_above, check_integer, check_number
from coview.errors import InputError
from coview.registry import METHODS


@pytest.mark.parametrize("value", [True, np.bool_(True), 2.0, "3", None, 0, -1])
def test_values_other_than_integers_in_range_are_refused(value):
    with pytest.raises(InputError, match=r"^n=.*: expected an integer of at least 1, or 'auto'$"):
        check_integer("n", value, 1, or_else=", or 'auto'")


@pytest.mark.parametrize("value", [True, 0, 6])
def test_integers_outside_both_bounds_are_refused(value):
    with pytest.raises(InputError, match=rf"^n={value}: expected an integer from 1 to 5$"):
        check_integer("n", value, 1, 5)
    assert check_integer("n", 5, 1, 5) == 5


def test_numpy_integers_are_accepted():
    assert check_integer("n", np.int32(3), 1) == 3


@pytest.mark.parametrize("value", [True, "0.5", None, float("nan"), float("inf"), -0.1, 1.1])
def test_values_other_than_numbers_in_range_are_refused(value):
    with pytest.raises(InputError, match=r"^rho=.*: expected a number of at least 0 and at most 1$"):
        check_number("rho", value, 0, 1)


def test_numpy_numbers_are_accepted():
    assert check_number("rho", np.float32(0.5)) == 0.5


@pytest.mark.parametrize("value", [True, "0.5", None, float("nan"), float("inf"), 0, -0.1])
def test_values_other_than_numbers_above_the_bound_are_refused(value):
    with pytest.raises(InputError, match=r"^sigma2=.*: expected a number above 0, or None$"):
        check_above("sigma2", value, 0, or_else=", or None")


def test_numbers_above_the_bound_are_accepted():
    assert check_above("sigma2", 2, 0) == 2.0
    with pytest.raises(InputError, match=r"^sigma2=2: expected a number above 0 and at most 1$"):
        check_above("sigma2", 2, 0, 1)


BOOLEANS = {OPLFMVC: "center", OPMC: "learn_weights", TSVDMSC: "shuffle"}
NUMBERS = [
    (name, parameter)
    for name in METHODS
    for parameter in METHODS[name]._get_param_names()
    if parameter not in ("kernel", "assigner", "views", "progress", "verbose", "dtype", *BOOLEANS.values())
]


@pytest.mark.parametrize(("name", "parameter"), NUMBERS)
@pytest.mark.parametrize("value", [True, np.True_])
def test_booleans_are_not_numbers(name, parameter, value):
    x = np.random.default_rng(0).normal(size=(20, 3))
    given = {"n_clusters": 2} if "n_clusters" in METHODS[name]._get_param_names() else {}
    with pytest.raises(InputError, match=parameter):
        METHODS[name](**{**given, parameter: value}).fit(x).predict(x)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda v: RBF(sigma2=v),
        lambda v: Polynomial(degree=v),
        lambda v: Polynomial(offset=v),
        lambda v: NeighborGraph(n_neighbors=v),
        lambda v: FuzzyGraph(n_neighbors=v),
    ],
)
def test_booleans_are_not_parameters_of_kernels(kernel):
    with pytest.raises(InputError, match="=True"):
        TMvKSCR(2, kernel=kernel(True)).fit(np.random.default_rng(0).normal(size=(20, 3)))


def test_long_messages_keep_their_beginning_and_end():
    error = InputError("view 'a' has " + "x" * 300_000 + "; rename it")
    assert len(str(error)) < 2100
    assert str(error).startswith("view 'a' has x")
    assert str(error).endswith("x; rename it")


@pytest.mark.parametrize(("method", "parameter"), BOOLEANS.items())
@pytest.mark.parametrize("value", [1, "yes", None, np.array([1.0, 2.0])], ids=repr)
def test_numbers_and_arrays_are_not_booleans(method, parameter, value):
    x = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(InputError, match=f"^{parameter}=.*: expected True or False"):
        method(2, **{parameter: value}).fit(x)
    method(2, **{parameter: np.True_}, random_state=0).fit(x)
