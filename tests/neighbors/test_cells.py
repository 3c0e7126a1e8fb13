"""Cells of rows that are close together."""

import numpy as np

from coview.neighbors.cells import Cells
from coview.runtime import Workers
from tests import naive


def some_rows(n, width, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width))


def test_every_row_is_in_one_cell_for_any_number_of_threads():
    points = some_rows(3000, 12).astype(np.float32)
    cells = Cells(points)
    members = [cells.rows[cells.members(cell)] for cell in range(len(cells))]
    np.testing.assert_array_equal(np.sort(np.concatenate(members)), np.arange(3000))
    assert all((cells.of_row[rows] == cell).all() for cell, rows in enumerate(members))
    with Workers(2) as workers:
        again = Cells(points, workers.map)
    np.testing.assert_array_equal(again.of_row, cells.of_row)


def test_rows_around_a_cell_are_those_of_the_nearest_cells():
    points = some_rows(3000, 12).astype(np.float32)
    cells = Cells(points)
    for cell, n_rows in ((0, 1), (4, 900), (len(cells) - 1, 3000)):
        np.testing.assert_array_equal(cells.around(cell, n_rows), naive.rows_around(cells, cell, n_rows))


def test_an_empty_cell_keeps_its_centre():
    points = np.repeat(some_rows(2, 12), [2000, 1], axis=0).astype(np.float32)
    cells = Cells(points)
    assert sum(len(cells.members(cell)) for cell in range(len(cells))) == 2001
