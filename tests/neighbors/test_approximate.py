"""Approximate search by cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coview.base.runtime import Workers
from coview.neighbors import approximate, nearest
from coview.neighbors.blocks import Blocks
from coview.neighbors.duplicates import Duplicates
from coview.neighbors.exact import ExactSearch
from coview.neighbors.lists import ComparedRows, Lists, merged, smallest_of_each
from coview.neighbors.partition import Cells
from tests import naive


def fraction_found(exact, found):
    return np.mean([len(set(a) & set(b)) / len(a) for a, b in zip(exact, found, strict=True)])


def surface_rows(n, width=100, seed=0):
    """Rows on a curved surface of five dimensions."""
    rng = np.random.default_rng(seed)
    return np.tanh(rng.normal(size=(n, 5)) @ rng.normal(size=(5, width)))


def both_searches(monkeypatch, rows, k=10):
    """Return the exact neighbours and distances, and those of the approximate search."""
    duplicates = Duplicates(rows)
    exact = nearest.nearest_neighbors(rows, duplicates, k)[:2]
    monkeypatch.setattr(nearest, "EXACT_ROWS", 1000)
    monkeypatch.setattr(approximate, "_LEAST_AROUND", 200)
    monkeypatch.setattr(approximate, "_NEARLY_ALL", 0.95)
    return exact, nearest.nearest_neighbors(rows, duplicates, k)[:2]


@pytest.mark.parametrize("width", [20, 100], ids=["not projected", "projected"])
@pytest.mark.parametrize("integers", [False, True], ids=["reals", "integers"])
def test_nearly_all_neighbours_are_found(monkeypatch, width, integers):
    rows = surface_rows(4000, width)
    rows = np.round(1000 * rows) if integers else rows  # exact in float32
    rows[3990:] = rows[:10]
    (exact, distances), (found, further) = both_searches(monkeypatch, rows)
    assert 0.85 < fraction_found(exact, found) < 1  # below 1, so the search was approximate
    assert (further >= distances * (1 - 1e-6)).all()
    assert (np.diff(further, axis=1) >= 0).all()
    assert further.sum() < 1.05 * distances.sum()
    assert (found != np.arange(4000)[:, None]).all()
    gaps = np.linalg.norm(rows[:, None] - rows[found], axis=2)
    np.testing.assert_allclose(further, gaps, rtol=1e-6)  # sums of squares in float32


def cloud_rows(n, width=30, seed=0):
    """Rows of a Gaussian cloud, whose neighbours are hard to find."""
    return np.random.default_rng(seed).normal(size=(n, width))


def test_more_rows_are_compared_if_the_target_needs_them(monkeypatch):
    rows = cloud_rows(4000)
    exact, _ = both_searches(monkeypatch, rows)
    monkeypatch.setattr(approximate, "_CHEAP_PART", 0)
    found = {
        recall: nearest.nearest_neighbors(rows, Duplicates(rows), 10, recall=recall).rows for recall in (0.5, 0.8, 0.99)
    }
    parts = {recall: fraction_found(exact[0], lists) for recall, lists in found.items()}
    # The sample has 400 rows, and the largest of its standard errors is below 0.02.
    assert all(recall - 0.03 < part < recall + 0.05 for recall, part in parts.items()), parts


def test_a_recall_of_one_is_an_exact_search(monkeypatch):
    rows = cloud_rows(3000)
    exact, (found, _) = both_searches(monkeypatch, rows)
    assert (found != exact[0]).any()
    again = nearest.nearest_neighbors(rows, Duplicates(rows), 10, recall=1.0)
    np.testing.assert_array_equal(again.rows, exact[0])
    np.testing.assert_array_equal(again.distances, exact[1])


@pytest.mark.parametrize("width", [20, 100], ids=["not projected", "projected"])
def test_a_refinement_finds_neighbours_that_are_not_around_the_cell(monkeypatch, width):
    rows = surface_rows(4000, width)
    monkeypatch.setattr(approximate, "_MOST_AROUND", 60)
    monkeypatch.setattr(approximate, "_LEAST_PER_NEIGHBOUR", 0)
    (exact, distances), (refined, nearer) = both_searches(monkeypatch, rows)
    monkeypatch.setattr(approximate, "_PASSES", 0)
    first, further, _ = nearest.nearest_neighbors(rows, Duplicates(rows), 10)
    assert fraction_found(exact, first) < 0.8
    assert fraction_found(exact, refined) > 0.93
    assert (nearer <= further).all()  # no row loses a neighbour to one that is further away
    assert (nearer >= distances * (1 - 1e-6)).all()  # sums of squares in float32


def test_passes_end_if_they_gain_little(monkeypatch):
    rows = cloud_rows(3000, 60)
    monkeypatch.setattr(approximate, "_MOST_AROUND", 30)
    monkeypatch.setattr(approximate, "_LEAST_PER_NEIGHBOUR", 0)
    monkeypatch.setattr(approximate, "_LEAST_GAIN", 0.9)
    passes = []
    refined = approximate.CellSearch.refined
    monkeypatch.setattr(approximate.CellSearch, "refined", lambda *each: passes.append(1) or refined(*each))
    both_searches(monkeypatch, rows)
    assert len(passes) == 1


def test_a_group_is_refined_by_neighbours_in_both_directions_and_theirs(monkeypatch):
    rows = cloud_rows(300)
    searched = {}

    def recorded(compared, own, among):
        searched[tuple(own)] = among.tolist()
        return near(compared, own, among)

    near = ComparedRows.near
    search = approximate.CellSearch(Blocks.of(rows).searches(), 4, 0.5)
    lists = search.first()
    monkeypatch.setattr(ComparedRows, "near", recorded)
    search.refined(lists)
    assert sum(map(len, searched)) == 300
    for own, among in searched.items():
        assert among == naive.neighbours_of_neighbours(lists.gathered().rows.tolist(), own)


@given(st.integers(1, 6), st.integers(0, 99))
def test_merged_lists_have_the_nearest_rows_of_both_once(k, seed):
    rng = np.random.default_rng(seed)
    distances = rng.integers(0, 4, size=12) / 4  # of rows 0 to 11, with ties
    lists = []
    for _ in range(2):
        rows = np.array([sorted(rng.choice(12, k, replace=False), key=lambda j: (distances[j], j)) for _ in range(5)])
        lists.append(Lists(rows, distances[rows]))
    both = merged(*lists)
    for i in range(5):
        a, b = ([(distances[j], j) for j in each.rows[i]] for each in lists)
        assert list(zip(both.distances[i], both.rows[i], strict=True)) == naive.merged_list(a, b, k)


def test_a_sample_that_differs_from_the_other_rows_leaves_no_cell_without_candidates(monkeypatch):
    rows = cloud_rows(2000)
    rows[approximate.evenly_spaced(2000, 1000)] += 100.0
    monkeypatch.setattr(approximate, "_LEAST_SAMPLE", 1000)
    monkeypatch.setattr(approximate, "_SAMPLE_ROWS_PER_CELL", 1)
    (exact, _), (found, _) = both_searches(monkeypatch, rows)
    assert fraction_found(exact, found) > 0.9


@pytest.mark.parametrize("unit", [1e-150, 1e-25, 1e25, 1e150])
def test_neighbours_do_not_depend_on_the_unit(monkeypatch, unit):
    rows = surface_rows(2000)
    unit = 2.0 ** np.round(np.log2(unit))
    (_, _), (expected, distances) = both_searches(monkeypatch, rows)
    found, scaled, _ = nearest.nearest_neighbors(rows * unit, Duplicates(rows * unit), 10)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(scaled, distances * unit, rtol=1e-12)


def test_neighbours_do_not_depend_on_the_memory_layout(monkeypatch):
    rows = surface_rows(2000)
    exact, approximate = both_searches(monkeypatch, rows)
    by_column = np.asfortranarray(rows)
    np.testing.assert_array_equal(nearest.nearest_neighbors(by_column, Duplicates(by_column), 10)[0], approximate[0])
    monkeypatch.undo()
    np.testing.assert_array_equal(nearest.nearest_neighbors(by_column, Duplicates(by_column), 10)[0], exact[0])


def test_neighbours_do_not_depend_on_the_number_of_threads(monkeypatch):
    rows = surface_rows(3000)
    _, one = both_searches(monkeypatch, rows)
    with Workers(2) as workers:
        two = nearest.nearest_neighbors(rows, Duplicates(rows), 10, workers.map)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_an_outlier_does_not_make_other_rows_ties(monkeypatch):
    rows = np.round(1000 * surface_rows(2000)).astype(np.float32)
    rows[1999] = 2.0**80  # in its unit, squares of the other rows underflow in float32
    (exact, distances), (found, further) = both_searches(monkeypatch, rows)
    assert fraction_found(exact[:1999], found[:1999]) > 0.85
    assert (further[:1999] > 0).all()
    assert further[:1999].sum() < 1.05 * distances[:1999].sum()


def test_empty_cells_do_not_lose_neighbours(monkeypatch):
    # In float32 these rows are so close that they all belong to one cell.
    rows = np.vstack([np.full((1190, 64), 1e-26) * np.arange(1, 1191)[:, None], surface_rows(10, 64)])
    finder = ExactSearch(rows)
    assert len(np.unique(Cells(finder.augmented, 50).of_rows(finder.augmented))) < 12
    (exact, _), (found, _) = both_searches(monkeypatch, rows)
    assert fraction_found(exact, found) > 0.85


@given(st.integers(1, 5), st.integers(1, 12), st.sampled_from([np.float32, np.float64]), st.integers(0, 99))
def test_the_smallest_numbers_of_each_query_are_found_in_order(k, n_queries, dtype, seed):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), rng.integers(k, 9, size=n_queries))
    unit = 2.0 ** rng.integers(-1000 if dtype == np.float64 else -120, 100)
    numbers = (rng.integers(0, 5, size=len(query)) * unit).astype(dtype)
    found = smallest_of_each(query, numbers, k, n_queries)
    np.testing.assert_array_equal(found, naive.smallest_of_each(query, numbers, k, n_queries))


def test_numbers_that_differ_by_a_millionth_are_not_ties():
    numbers = 1 + 1e-6 * np.random.default_rng(0).permutation(50)
    found = smallest_of_each(np.zeros(50, dtype=np.int64), numbers, 50, 1)
    np.testing.assert_array_equal(found[0], np.argsort(numbers))


def test_cells_without_rows_are_left_out(monkeypatch):
    """Half of the rows are the same point in float32, so that several centres are equal and only one has rows."""
    monkeypatch.setattr(approximate, "_LEAST_AROUND", 200)
    rows = np.random.default_rng(0).normal(size=(2001, 16))
    rows[::2] += 1e9
    find = approximate.approximate_pairs(Blocks.of(rows).searches(), 10, 0.95)
    found = find(0, slice(0, 2001)).rows.reshape(2001, 10)
    assert np.array_equal(found % 2, np.repeat(np.arange(2001) % 2, 10).reshape(-1, 10))  # of the same group


def test_groups_with_fewer_rows_than_candidates_are_refined():
    rows = np.random.default_rng(0).normal(size=(15, 64))
    coordinates = ExactSearch(rows[:, :32])
    compared = ComparedRows(coordinates, rows, 10, 1.0)
    found = compared.near(np.arange(15), np.arange(15))
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    np.testing.assert_allclose(found.distances, np.sort(distances, axis=1)[:, 1:11], rtol=1e-12)


def test_rows_are_compared_with_more_rows_than_they_have_neighbours():
    parts = np.full((400, 1399), 1e-4)
    assert approximate.rows_around(parts, 70_000, 0.95, k=1399) >= 10 * 1399
