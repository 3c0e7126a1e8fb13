import numpy as np
import pytest

from coview import KSC, RBF, Cosine, Linear, Polynomial, TMvKSCR
from coview.core.novelty import joint_quantiles, quantiles
from tests import naive

RNG = np.random.default_rng
TOLERANCE = 1e-14


@pytest.mark.parametrize("n_reference", [1, 2, 40])
def test_quantiles_equal_their_reference_implementation(n_reference):
    reference, values = RNG(0).uniform(0.2, 1, n_reference), RNG(1).uniform(0, 1.2, 100)
    expected = [naive.quantile(value, reference) for value in values]
    np.testing.assert_allclose(quantiles(values, reference, TOLERANCE), expected, rtol=1e-12)


@pytest.mark.parametrize("tolerance", [1e-14, 1e-9, 1e-7])
def test_quantiles_of_a_narrow_reference_equal_their_reference_implementation(tolerance):
    """All neighbours are nearer than 1e-7; ties are as wide as the tolerance and not wider."""
    reference, values = 1 - 1e-6 * RNG(0).uniform(size=300), 1 - 2e-6 * RNG(1).uniform(size=100)
    expected = [naive.quantile(value, reference, tolerance) for value in values]
    np.testing.assert_allclose(quantiles(values, reference, tolerance), expected, rtol=1e-6)  # differences lose digits
    assert np.ptp(expected) > 0.8


def test_values_below_the_reference_still_differ():
    for reference in (np.array([0.5, 0.6, 0.9]), np.array([-2.0, 0.0, 1.0]), np.zeros(4)):
        low = quantiles(reference.min() - np.array([0.4, 0.2, 0.1]), reference, TOLERANCE)
        assert 0 <= low[0] < low[1] < low[2] < quantiles(reference[:1], reference, TOLERANCE)[0]
        assert quantiles(np.array([-1e300]), reference, TOLERANCE) == 0


def test_a_missing_value_has_no_quantile():
    assert np.isnan(quantiles(np.array([np.nan]), np.arange(3.0), TOLERANCE)).all()


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
    found = quantiles(0.5 + np.array([-1e-15, 0.0, 1e-15]), reference, TOLERANCE)
    np.testing.assert_array_equal(found, 3 / 6)


def test_values_outside_of_a_tie_have_the_fraction_below_them():
    reference = np.repeat([0.5, 0.6], [50, 40])
    found = quantiles(np.array([0.499, 0.5, 0.55, 0.6, 0.61]), reference, TOLERANCE)
    np.testing.assert_allclose(found * 91, [0.998, 25.5, 50.5, 70.5, 90], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:found 1 distinct clusters")
def test_samples_outside_of_tied_rows_are_novel_in_float32():
    """The similarities of training rows differ by rounding errors only, those of other rows by much more."""
    rows, outside = 300 + 0.3 * RNG(0).normal(size=(500, 3)), 300 + 30 * RNG(1).normal(size=(200, 3))
    model = KSC(2, kernel=Cosine(), dtype="float32", random_state=0).fit(rows)
    assert np.ptp(model.score_samples(rows[::5])) < 0.5
    assert np.quantile(model.score_samples(outside), 0.9) < 0.01


@pytest.mark.parametrize("kernel", [Cosine(), Linear(), Polynomial()], ids=repr)
def test_samples_far_outside_rows_of_almost_the_same_direction_are_novel(kernel):
    rows, outside = 300 + 0.3 * RNG(0).normal(size=(500, 3)), 300 + 3 * RNG(1).normal(size=(200, 3))
    model = KSC(2, kernel=kernel, random_state=0).fit(rows)
    assert np.median(model.score_samples(outside)) < 0.01
    # New samples like the training samples have uniform scores.
    usual = model.score_samples(300 + 0.3 * RNG(2).normal(size=(500, 3)))
    np.testing.assert_allclose(np.quantile(usual, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.1)


def test_scores_in_one_dimension_reach_both_ends():
    model = KSC(2, kernel=RBF(), random_state=0).fit(RNG(0).normal(size=(3000, 1)))
    scores = model.score_samples(RNG(1).normal(size=(500, 1)))
    np.testing.assert_allclose(np.quantile(scores, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.1)


def test_a_value_within_the_tolerance_of_a_tie_is_part_of_it():
    reference = np.repeat([0.5, 0.5 + 3e-6], [50, 40])
    found = quantiles(np.array([0.5 - 1e-7, 0.5, 0.5 + 1e-7]), reference, tolerance=1e-6)
    np.testing.assert_array_equal(found, found[1])


def test_scores_of_tied_samples_do_not_depend_on_the_batch_in_float32():
    rng = RNG(16)
    views = [np.tile(np.round(rng.normal(size=(45, d)) * (d - 1) / 3), (2, 1)) for d in (3, 4)]
    model = TMvKSCR(3, kernel=RBF(), dtype="float32", random_state=0).fit(views)
    single = np.concatenate([model.score_samples([v[[i]] for v in views]) for i in range(90)])
    np.testing.assert_array_equal(single, model.score_samples(views))
