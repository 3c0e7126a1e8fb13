"""Measures on all samples, compared with those of the search."""

from dataclasses import replace

import numpy as np
import pytest

from coview import TMvKSCR, Tuned
from coview.compose import Consensus
from coview.tune.final import fall_in_words, final_measures
from coview.tune.record import CONSENSUS, EvaluatedModel, FinalMeasures
from tests.conftest import make_blobs

FOUND = EvaluatedModel(CONSENSUS, 600, 3, stability=0.9, model_agreement=0.8, size_entropy=0.95)


def test_a_measure_falls_if_it_is_far_below_that_of_the_search():
    final = FinalMeasures(5000, 0.75, 0.9)
    assert fall_in_words(final, FOUND) is None
    assert fall_in_words(replace(final, model_agreement=0.45), FOUND) == (
        "on all 5000 samples the clusters are worse than on the 600 of the search: agreement between "
        "models 0.45 instead of 0.80; check for outliers"
    )
    assert "size entropy 0.20 instead of 0.95" in fall_in_words(replace(final, size_entropy=0.2), FOUND)
    assert fall_in_words(replace(final, model_agreement=None), FOUND) is None


def test_a_single_model_has_no_agreement():
    views, _ = make_blobs(spread=8.0)
    assert final_measures(Consensus([TMvKSCR(3)], random_state=0).fit(views)).model_agreement is None


def test_a_fall_is_a_warning(monkeypatch):
    views, _ = make_blobs(spread=8.0)
    monkeypatch.setattr("coview.tune.tuned.final_measures", lambda model: FinalMeasures(len(model.labels_), 0.1, 0.2))
    with pytest.warns(UserWarning, match=r"on all 90 samples the clusters are worse .* check for outliers"):
        model = Tuned(3, random_state=0).fit(views)
    assert len(np.unique(model.labels_)) == 3
