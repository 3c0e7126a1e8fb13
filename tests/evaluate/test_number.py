"""The number of clusters: which numbers are evaluated, the record, and selection on some samples."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coview import InputError
from coview.evaluate import fitted
from coview.evaluate.coview import Coview
from coview.evaluate.number import NUMBERS, numbers_for
from tests.conftest import make_blobs


def test_few_samples_have_few_numbers():
    assert numbers_for(2) == [1]
    assert numbers_for(3) == [2]
    assert numbers_for(5) == numbers_for(40) == [2, 3, 4]
    assert numbers_for(120) == [2, 3, 4, 5, 6, 7, 8, 9, 10, 12]
    assert numbers_for(2000) == list(NUMBERS)


def test_the_record_has_the_parts_and_the_votes():
    views, truth = make_blobs(90, widths=(3, 2), spread=8.0)
    model = Coview(random_state=0).fit(views)
    number = model.number_
    assert number.n_clusters == model.n_clusters_ == 3
    assert sorted(part.size for part in number.parts) == sorted(np.bincount(truth))
    assert sum(part.n_clusters for part in number.parts) == 3
    assert sum(count for _, count in number.votes) == len(numbers_for(90))
    counts = [count for _, count in number.votes]
    assert counts == sorted(counts, reverse=True)
    assert number.votes[0][0] == 3


def test_a_given_number_has_no_record():
    views, _ = make_blobs(60)
    assert Coview(3, random_state=0).fit(views).number_ is None
    assert Coview([3], random_state=0).fit(views).number_ is None


@pytest.mark.parametrize(("numbers", "expected"), [(range(2, 9), 3), (range(4, 7), 4), ([1, 2], 2), ((5, 3), 3)])
def test_several_numbers_are_selected_from(numbers, expected):
    views, truth = make_blobs(60, spread=8.0)
    model = Coview(numbers, random_state=0).fit(views)
    assert model.n_clusters_ == expected
    assert model.number_.n_clusters == 3  # the number without the restriction
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    if expected == 3:
        assert adjusted_rand_score(model.labels_, truth) == 1.0


@pytest.mark.parametrize("missing", [False, True])
def test_a_number_that_is_selected_on_some_samples_is_used_for_all(monkeypatch, missing):
    monkeypatch.setattr(fitted, "MOST_COMPARED", 80)
    views, truth = make_blobs(200, spread=8.0)
    if missing:
        views["a"][:20] = np.nan
        views["b"][90:110] = np.nan
    model = Coview(random_state=0).fit(views)
    assert sum(part.size for part in model.number_.parts) == 80
    assert len(model.labels_) == 200
    assert adjusted_rand_score(model.labels_, truth) == 1.0
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_the_number_is_selected_on_the_same_samples_for_each_seed(monkeypatch):
    monkeypatch.setattr(fitted, "MOST_COMPARED", 120)
    views, _ = make_blobs(200, spread=8.0)
    first, second = (Coview(random_state=seed).fit(views).number_ for seed in (0, 1))
    assert first.parts[0].structure.dimension is not None
    assert sorted((part.size, part.structure.dimension) for part in first.parts) == sorted(
        (part.size, part.structure.dimension) for part in second.parts
    )


def test_overlapping_groups_without_a_valley_are_divided():
    """Four groups whose samples meet: no cut is weak, but there is more structure than in a Gaussian."""
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 4
    views = [2.0 * np.sqrt(2) * np.eye(4, d)[truth] + rng.normal(size=(200, d)) for d in (7, 9)]
    model = Coview(random_state=0).fit(views)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(model.labels_, truth) > 0.9
    (part,) = model.number_.parts
    assert part.n_clusters == 4
    assert part.structure.dimension > 4
    assert part.structure.excess > 2 * part.structure.needed > 0


@pytest.mark.parametrize("numbers", [[], [0, 2], [2, 2.5], ["auto"], range(3, 3)])
def test_numbers_to_select_from_are_integers_of_at_least_one(numbers):
    with pytest.raises(InputError, match=r"^n_clusters=.*: expected an integer of at least 1, 'auto', or several"):
        Coview(numbers).fit(make_blobs(30)[0])
