"""Cells of rows that are close together, and the rows around them."""

import numpy as np

from coview.base.runtime import Workers
from coview.neighbors.exact import ExactSearch
from coview.neighbors.partition import Cells, spatial_order
from tests import naive


def augmented_rows(n, width=12, seed=0):
    return ExactSearch(np.random.default_rng(seed).normal(size=(n, width))).augmented


def test_a_row_is_in_the_cell_of_the_nearest_centre():
    rows = augmented_rows(3000)
    cells = Cells(rows[::2], 40)
    gaps = np.linalg.norm(rows[:, None, :-2] - cells.centres, axis=2)
    np.testing.assert_array_equal(cells.of_rows(rows), gaps.argmin(axis=1))


def test_cells_do_not_depend_on_the_number_of_threads():
    rows = augmented_rows(9000)
    with Workers(2) as workers:
        two = Cells(rows, 40, workers.map)
        np.testing.assert_array_equal(two.centres, Cells(rows, 40).centres)
        np.testing.assert_array_equal(two.of_rows(rows), Cells(rows, 40).of_rows(rows))


def test_rows_around_a_cell_are_those_within_its_reach_and_the_nearest_come_first():
    rows = augmented_rows(6000)  # more than one block
    cells = Cells(rows[::3], 40)
    reach = cells.reach(rows[::3], [0.01, 0.1]) + 1e-5  # itself the distance of a row, which rounding would decide
    around = [np.concatenate(parts) for parts in cells.parts_around(slice(8, 33), reach, rows)]
    for cell, found in zip(range(8, 33), around, strict=True):
        radii = np.sqrt(reach[cell] + (cells.centres[cell] ** 2).sum())
        assert found.tolist() == naive.rows_around(cells.centres[cell], rows[:, :-2], radii)
    assert 0.08 * 6000 < np.mean([len(found) for found in around]) < 0.12 * 6000


def test_the_part_within_a_distance_is_that_of_the_sample():
    rows = augmented_rows(2000)
    cells = Cells(rows, 40)  # the sample has all rows
    which = np.array([3, 17, 39])
    others = np.array([[5, 6], [7, 8], [9, 3]])
    gaps = np.linalg.norm(rows[:, :-2] - cells.centres[which][:, None], axis=2)
    expected = [[(own < own[j]).mean() for j in pair] for own, pair in zip(gaps, others, strict=True)]
    np.testing.assert_allclose(
        cells.part_within(rows, which, rows[others]), expected, atol=1.5 / 2000
    )  # a tie by rounding


def test_an_empty_cell_keeps_its_centre():
    rows = ExactSearch(np.repeat(np.random.default_rng(0).normal(size=(2, 12)), [2000, 1], axis=0)).augmented
    cells = Cells(rows, 90)
    assert np.isfinite(cells.centres).all()
    assert len(np.unique(cells.of_rows(rows))) == 2


def test_the_spatial_order_puts_close_points_next_to_each_other():
    points = np.random.default_rng(0).normal(size=(500, 3))
    order = spatial_order(points)
    assert sorted(order) == list(range(500))
    steps = [np.linalg.norm(np.diff(rows, axis=0), axis=1).mean() for rows in (points[order], points)]
    assert steps[0] < steps[1] / 2
