"""The benchmark of samples that lack views: its masks, and the methods that it compares with."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from benchmarks import missing
from coview.data.as_views import as_views
from tests.conftest import make_blobs


@pytest.fixture
def blobs():
    views, truth = make_blobs(120, spread=8.0, widths=(5, 12, 9))
    return as_views(views), truth


@pytest.mark.parametrize("rate", missing.RATES)
def test_random_masks_have_the_rate_and_leave_a_view(rate):
    present = missing.random_masks(5000, 4, rate, np.random.default_rng(0))
    assert present.any(axis=1).all()
    assert 1 - present.mean() == pytest.approx(rate - rate**4 / 4, abs=0.01)


def test_samples_of_a_block_lack_the_same_view():
    present = missing.block_masks(100, 4, 0.5, np.random.default_rng(0))
    assert present.all(axis=1).sum() == 50
    assert sorted((~present).sum(axis=0)) == [12, 12, 13, 13]
    assert (~present).sum(axis=1).max() == 1


@pytest.mark.parametrize("run", [missing.nemo, missing.complete_cases], ids=lambda run: run.__name__)
def test_methods_find_clear_clusters(run, blobs):
    views, truth = blobs
    some = missing.with_masks(views, missing.random_masks(120, 3, 0.3, np.random.default_rng(0)))
    assert adjusted_rand_score(truth, run(some, 3, 0)) > 0.9


def test_missing_rows_are_imputed_by_means(blobs):
    views, _ = blobs
    present = missing.random_masks(120, 3, 0.3, np.random.default_rng(0))
    filled = missing.imputed(missing.with_masks(views, present))
    assert filled.complete
    np.testing.assert_array_equal(filled["b"][present[:, 1]], views["b"][present[:, 1]])
    np.testing.assert_allclose(
        filled["b"][~present[:, 1]], [views["b"][present[:, 1]].mean(axis=0)] * (~present[:, 1]).sum()
    )


def test_a_method_that_fails_has_no_score():
    assert missing._or_none(lambda: 0.5) == 0.5
    assert missing._or_none(lambda: int("x")) is None
