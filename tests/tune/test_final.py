"""The final fit: settings whose measures fall on all samples give way to the next."""

from dataclasses import replace

import numpy as np
import pytest

from coview import RBF, NeighborGraph, Preprocessed, TMvKSCR
from coview.tune.candidates import Candidate
from coview.tune.final import fit_best
from coview.tune.record import EvaluatedSetting, FinalMeasures
from coview.views import as_views

FIRST = Candidate(("none", "none"), RBF(), 0.5, (1.0, 1.0))
SECOND = Candidate(("none", "none"), NeighborGraph(), 1.0, (1.0, 1.0))


def uneven_clusters():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [190, 10])
    return as_views({name: 9.0 * truth[:, None] + rng.normal(size=(200, 4)) for name in ("a", "b")})


def make(candidate):
    return Preprocessed(TMvKSCR(2, kernel=candidate.kernel, rho=candidate.rho, random_state=0), steps="none")


def record(candidate, **measures):
    found = {"agreement": 1.0, "stability": 0.6, "size_entropy": 0.3} | measures
    return EvaluatedSetting(1, 100, candidate.steps, str(candidate.kernel), candidate.rho, candidate.kappa, 2, **found)


def test_the_first_setting_stays_if_its_measures_do():
    records = [record(FIRST), record(SECOND)]
    final = fit_best([(SECOND, 1), (FIRST, 0)], records, make, uneven_clusters())
    assert final.selected == 1
    assert isinstance(final.model.estimator.kernel, NeighborGraph)
    assert final.measures.size_entropy == pytest.approx(0.286, abs=0.001)


def test_the_next_setting_is_taken_if_a_measure_falls():
    records = [record(FIRST, size_entropy=0.9), record(SECOND)]
    final = fit_best([(FIRST, 0), (SECOND, 1)], records, make, uneven_clusters())
    assert final.selected == 1


def test_a_warning_names_the_measures_that_fall_for_all_settings():
    records = [record(FIRST, size_entropy=0.9), record(SECOND, size_entropy=0.8)]
    with pytest.warns(UserWarning, match=r"all 200 samples .* 100 of the search: size entropy 0\.29 instead of 0\.90"):
        final = fit_best([(FIRST, 0), (SECOND, 1)], records, make, uneven_clusters())
    assert final.selected == 0


def test_measures_that_are_unknown_do_not_fall():
    found = record(FIRST)
    final = FinalMeasures(200, agreement=None, stability=None, n_stability=0, size_entropy=0.3)
    assert final.falls(found) == {}
    assert final.falls(replace(found, size_entropy=0.61)) == {"size_entropy": (0.61, 0.3)}
    assert replace(final, stability=0.2).falls(found) == {"stability": (0.6, 0.2)}
