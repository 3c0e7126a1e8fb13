import numpy as np
import pytest

from coview.errors import InputError
from coview.parameters import check_integer, check_number


@pytest.mark.parametrize("value", [True, np.bool_(True), 2.0, "3", None, 0, -1])
def test_what_is_not_an_integer_in_range_is_refused(value):
    with pytest.raises(InputError, match=r"^n=.*: expected an integer of at least 1, or 'auto'$"):
        check_integer("n", value, 1, or_else=", or 'auto'")


def test_integers_of_numpy_are_integers():
    assert check_integer("n", np.int32(3), 1) == 3


@pytest.mark.parametrize("value", [True, "0.5", None, float("nan"), float("inf"), -0.1, 1.1])
def test_what_is_not_a_number_in_range_is_refused(value):
    with pytest.raises(InputError, match=r"^rho=.*: expected a number of at least 0 and at most 1$"):
        check_number("rho", value, 0, 1)


def test_numbers_of_numpy_are_numbers():
    assert check_number("rho", np.float32(0.5)) == 0.5
