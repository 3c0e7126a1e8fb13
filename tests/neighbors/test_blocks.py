"""Rows in blocks: they are found wherever they are, and searched as if they were together."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from coview.neighbors.blocks import Blocks, Tasks
from coview.neighbors.duplicates import Duplicates
from coview.neighbors.exact import ExactSearch, TreeSearch
from coview.neighbors.lists import Lists
from coview.neighbors.nearest import nearest_neighbors, neighbor_lists


def in_blocks(rows, heights):
    stops = np.cumsum(heights)
    parts = [rows[stop - height : stop] for stop, height in zip(stops, heights, strict=True)]
    return Blocks(Tasks(), parts, heights, rows.shape[1])


def some_rows(n, width, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("numbers", [[7, 0, 3, 3], [2, 3, 4], [9], [5, 4]])
def test_rows_are_taken_from_any_blocks_in_any_order(kind, numbers):
    rows = some_rows(10, 3)
    found = in_blocks(kind(rows), [3, 4, 3]).take(np.array(numbers))
    np.testing.assert_array_equal(kind(found).toarray() if sp.issparse(found) else found, rows[numbers])


def test_rows_are_put_into_another_order_and_other_blocks():
    rows, order = some_rows(10, 3), np.random.default_rng(1).permutation(10)
    blocks = in_blocks(rows, [3, 4, 3]).in_order(order, [5, 5])
    assert [len(block) for block in blocks.blocks] == [5, 5]
    np.testing.assert_array_equal(blocks.gathered(), rows[order])


def test_lists_and_searches_are_taken_as_rows_are():
    rows, numbers = some_rows(10, 12), np.array([8, 1, 5])
    blocks = in_blocks(rows, [3, 4, 3])
    lists = blocks.converted(lambda block: Lists(block[:, :2], block[:, 2:4])).take(numbers)
    np.testing.assert_array_equal(np.hstack(lists), rows[numbers, :4])
    search, whole = blocks.searches().take(numbers), ExactSearch(rows)
    np.testing.assert_array_equal(search.rows, rows[numbers])
    np.testing.assert_array_equal(search.augmented, whole.augmented[numbers])


def test_distinct_rows_stay_in_their_blocks():
    rows = some_rows(10, 3)
    rows[4], rows[7:] = rows[0], rows[1]
    distinct = in_blocks(rows, [3, 4, 3]).distinct(Duplicates(rows))
    assert distinct.heights == [3, 3]
    np.testing.assert_array_equal(distinct.gathered(), rows[[0, 1, 2, 3, 5, 6]])


@pytest.mark.parametrize("width", [3, 60], ids=["tree", "products"])
@pytest.mark.parametrize("recall", [0.5, 0.95, 1.0])
def test_rows_in_blocks_have_the_neighbours_of_rows_in_one_block(monkeypatch, width, recall):
    monkeypatch.setattr("coview.neighbors.nearest.EXACT_ROWS", 500)
    monkeypatch.setattr("coview.neighbors.partition.ROWS_PER_BLOCK", 256)
    rows = np.tanh(some_rows(1500, 5) @ some_rows(5, width, seed=1))
    rows[900:1000], rows[1450:] = rows[100:200], rows[3]
    duplicates = Duplicates(rows)
    together = nearest_neighbors(rows, duplicates, 10, recall=recall)
    apart = neighbor_lists(in_blocks(rows, [400, 700, 400]), duplicates, 10, recall).gathered()
    for expected, found in zip(together, apart, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_size_of_a_search_is_that_of_its_arrays():
    """Dask decides by it where a search is used, and when it goes to disk."""
    rows = np.random.default_rng(0).normal(size=(1000, 6))
    search = ExactSearch(rows)
    assert sys.getsizeof(search) > rows.nbytes
    assert sys.getsizeof(TreeSearch(search)) > sys.getsizeof(search) + rows.nbytes
