import numpy as np
import pytest

from coview.core.novelty import joint_quantiles, quantiles
from tests import naive

RNG = np.random.default_rng


@pytest.mark.parametrize("n_reference", [1, 2, 40])
def test_quantiles_equal_their_reference_implementation(n_reference):
    reference, values = RNG(0).uniform(0.2, 1, n_reference), RNG(1).uniform(0, 1.2, 100)
    expected = [naive.quantile(value, reference) for value in values]
    np.testing.assert_allclose(quantiles(values, reference), expected, rtol=1e-12)


def test_values_below_the_reference_still_differ():
    for reference in (np.array([0.5, 0.6, 0.9]), np.array([-2.0, 0.0, 1.0]), np.zeros(4)):
        low = quantiles(reference.min() - np.array([0.4, 0.2, 0.1]), reference)
        assert 0 <= low[0] < low[1] < low[2] < quantiles(reference[:1], reference)[0]
        assert quantiles(np.array([-1e300]), reference) == 0


def test_a_missing_value_has_no_quantile():
    assert np.isnan(quantiles(np.array([np.nan]), np.arange(3.0))).all()


def test_samples_are_compared_with_training_samples_over_the_same_views():
    """A mean over three views varies less than the quantile in one view, and each has uniform quantiles."""
    reference = {name: RNG(i).permutation(np.arange(1, 1001)) / 1001 for i, name in enumerate("abc")}
    uniform = RNG(9).uniform(size=(3000, 3))
    for lacking in ([], [1], [0, 2]):
        table = uniform.copy()
        table[:, lacking] = np.nan
        found = joint_quantiles(dict(zip("abc", table.T, strict=True)), reference)
        # 3000 uniform numbers: the largest difference to the uniform distribution is below 0.04 (Kolmogorov).
        np.testing.assert_allclose(np.sort(found), (np.arange(3000) + 0.5) / 3000, atol=0.04)
        one_by_one = [joint_quantiles(dict(zip("abc", row[:, None], strict=True)), reference)[0] for row in table[:9]]
        np.testing.assert_array_equal(one_by_one, found[:9])


def test_views_that_no_training_sample_has_together_are_compared_with_those_that_have_one():
    first, second = np.arange(1.0, 31) / 31, np.arange(1.0, 31) / 31
    reference = {"a": np.r_[first, np.full(30, np.nan)], "b": np.r_[np.full(30, np.nan), second]}
    found = joint_quantiles({"a": np.array([0.01, 0.9]), "b": np.array([0.01, 0.9])}, reference)
    assert found[0] < 0.05 < 0.8 < found[1]


def test_one_novel_view_is_enough():
    reference = {name: RNG(i).permutation(np.arange(1, 1001)) / 1001 for i, name in enumerate("abc")}
    (found,) = joint_quantiles({"a": np.array([1e-9]), "b": np.array([0.6]), "c": np.array([0.7])}, reference)
    assert found < 0.001


def test_ties_of_the_reference_have_their_middle_rank():
    reference = np.array([0.2, 0.5, 0.5 + 1e-17, 0.5 - 1e-16, 0.8])
    found = quantiles(0.5 + np.array([-1e-15, 0.0, 1e-15]), reference)
    np.testing.assert_allclose(found, 3 / 6, atol=1e-12)
