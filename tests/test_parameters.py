import numpy as np
import pytest

from coview.errors import InputError
from coview.parameters import check_above, check_integer, check_number


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
