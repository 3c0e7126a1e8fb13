"""Which view: views in which new samples are unlike the training samples."""

import numpy as np
import pytest

from coview.certainty.which_view import notes_on_novelty


@pytest.mark.parametrize(
    ("novel", "total", "noted"),
    [
        *[(0, 0, False), (1, 1, False), (4, 4, False), (5, 5, True), (14, 140, False), (140, 140, True)],
        *[(100_000, 1_000_000, False), (102_000, 1_000_000, True)],
    ],
)
def test_novel_samples_are_noted_if_chance_does_not_explain_them(novel, total, noted):
    assert bool(notes_on_novelty({"lab": np.array([novel, total])})) == noted
