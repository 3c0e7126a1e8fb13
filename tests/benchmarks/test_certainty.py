"""The benchmark of certainty: how refits are matched, and how calibration is measured."""

import numpy as np
import pytest

from benchmarks.certainty import calibration_error, matched, reliability, with_learnt_temperature


def test_clusters_of_a_refit_are_matched_by_the_best_overlap():
    labels = np.array([0, 0, 0, 1, 1, 2, 2])
    assert matched(labels, np.array([2, 2, 1, 0, 0, 1, 1])).tolist() == [0, 0, 2, 1, 1, 2, 2]
    assert matched(labels, np.zeros(7, int)).tolist() == [0] * 7
    assert matched(np.zeros(4, int), np.array([0, 1, 1, 1])).tolist() == [-1, 0, 0, 0]


def test_memberships_that_are_kept_as_often_are_calibrated():
    rng = np.random.default_rng(0)
    membership = rng.uniform(0.3, 1, 5000)
    assert calibration_error(reliability(membership, membership)) == 0
    drawn = rng.random((20, 5000)) < membership
    assert calibration_error(reliability(membership, drawn.mean(axis=0))) < 0.02
    assert calibration_error(reliability(membership, np.zeros(5000))) == pytest.approx(membership.mean())
    assert calibration_error(reliability(np.ones(10), np.full(10, 0.8))) == pytest.approx(0.2)


def test_the_learnt_temperature_has_the_mean_of_the_refits():
    rng = np.random.default_rng(0)
    membership = rng.dirichlet(np.full(4, 0.3), 2000)
    for mean in (0.5, 0.7, 0.95):
        learnt = with_learnt_temperature(membership, np.full((3, 2000), mean))
        assert learnt.mean() == pytest.approx(mean, abs=0.01)
