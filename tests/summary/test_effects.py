import numpy as np
import pytest
import scipy.sparse as sp

from coview.data import rows as row_operations
from coview.summary import effects as module
from coview.summary.effects import LARGEST, effects, effects_of_columns

KINDS = pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])


def naive(x, numbers):
    found = []
    for c in range(numbers.max() + 1):
        inside, outside = x[numbers == c], x[numbers != c]
        within = (inside.var(axis=0) * len(inside) + outside.var(axis=0) * len(outside)) / (len(x) - 2)
        found.append((inside.mean(axis=0) - outside.mean(axis=0)) / np.sqrt(within))
    return np.array(found)


def some_data(seed=0, n=200, d=6, k=3):
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(np.arange(n) % k)
    x = (rng.normal(size=(k, d))[numbers] + rng.normal(size=(n, d))) * (rng.random((n, d)) < 0.4)
    return x, numbers


@KINDS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_effects_are_those_of_the_definition(kind, dtype):
    x, numbers = some_data()
    x = x.astype(dtype)
    (found,) = effects(kind(x), numbers, 3)
    np.testing.assert_allclose(found.values, naive(x.astype(float), numbers), rtol=1e-9)
    means = [[x[members].mean(axis=0) for members in (numbers == c, numbers != c)] for c in range(3)]
    np.testing.assert_allclose(np.stack([found.inside, found.outside], axis=1), means, rtol=1e-5, atol=1e-7)
    assert not found.constant.any()


@KINDS
def test_standardised_means_are_those_of_standardised_columns(kind):
    x, numbers = some_data()
    x[:, 4] = 7.0
    found = effects_of_columns(kind(x), [5, 0, 4], numbers, 3)
    assert found.columns.tolist() == [5, 0, 4]
    spread = np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    expected = [((x - x.mean(axis=0)) / spread)[numbers == c].mean(axis=0)[[5, 0, 4]] for c in range(3)]
    np.testing.assert_allclose(found.standardised, expected, atol=1e-9)
    assert (found.standardised[:, 2] == 0).all()


@KINDS
def test_blocks_of_rows_and_columns_change_nothing(kind, monkeypatch):
    x, numbers = some_data()
    (whole,) = effects(kind(x), numbers, 3)
    monkeypatch.setattr(row_operations, "_BLOCK_NUMBERS", 40)
    monkeypatch.setattr(module, "_SLAB_NUMBERS", 12)
    parts = list(effects(kind(x), numbers, 3))
    assert [part.columns.tolist() for part in parts] == [[0, 1, 2, 3], [4, 5]]
    np.testing.assert_allclose(np.hstack([part.values for part in parts]), whole.values, rtol=1e-12)


@KINDS
def test_large_offsets_and_units_cost_no_digits(kind):
    x, numbers = some_data()
    x = np.round(x * 1024)  # so that the moved numbers are exact, and any loss is ours
    expected = naive(x, numbers)
    for moved in (x + 2.0**40, x * 2.0**1000):
        (found,) = effects(kind(moved), numbers, 3)
        np.testing.assert_allclose(found.values, expected, rtol=1e-9)


@KINDS
def test_columns_without_spread_in_both_groups_have_the_largest_effect(kind):
    numbers = np.array([0, 0, 1, 1, 1])
    x = np.column_stack([numbers, -numbers, np.full(5, 0.1), np.zeros(5)])
    (found,) = effects(kind(x), numbers, 2)
    np.testing.assert_array_equal(found.values, [[-LARGEST, LARGEST, 0, 0], [LARGEST, -LARGEST, 0, 0]])
    np.testing.assert_array_equal(found.constant, [False, False, True, True])


def test_everything_is_finite_whatever_the_numbers():
    x = np.array([[1e308, 5e-324], [-1e308, 0.0], [1.7e308, 1.0], [-1.7e308, -1e308]])
    (found,) = effects(x, np.array([0, 1, 0, 1]), 2)
    for part in (found.values, found.inside, found.outside):
        assert np.isfinite(part).all()


def test_one_cluster_is_not_separated_from_anything():
    (found,) = effects(np.arange(6.0).reshape(3, 2), np.zeros(3, dtype=int), 1)
    np.testing.assert_array_equal(found.values, 0)
    np.testing.assert_array_equal(found.inside, [[2, 3]])
