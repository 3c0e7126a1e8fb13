"""Cells: groups of rows that are close together, and the rows around each group."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Map, serial_map
from coview.data.rows import append_columns, squared_norms
from coview.data.view import Array
from coview.neighbors.duplicates import Integers

_ITERATIONS = 4
ROWS_PER_BLOCK = 4096  # products of whole blocks are rounded alike, wherever a block is
_CELLS_PER_BLOCK = 32
_LEAST_HALVED = 16


class Cells:
    """The cells around the centres that k-means finds in a sample of the rows; equal rows are in the same cell.

    All rows are given as the `augmented` rows of an `ExactSearch`, whose last two columns are 1 and a squared norm.
    """

    def __init__(self, sample: Array, count: int, map_blocks: Map = serial_map) -> None:
        self.centres = sample[np.random.default_rng(0).choice(len(sample), count, replace=False), :-2]
        for _ in range(_ITERATIONS):
            self.centres = cell_means(sample[:, :-2], self.of_rows(sample, map_blocks), self.centres)
        self.centres = self.centres[spatial_order(self.centres)]  # the rows around a cell are then in few places

    def __len__(self) -> int:
        return len(self.centres)

    def of_rows(self, rows: Array, map_blocks: Map = serial_map) -> Integers:
        """Return the cell of each row: that of the nearest centre."""
        squares = squared_norms(self.centres)
        right = append_columns(self.centres, squares / -2, np.zeros_like(squares)).T

        def one(start: int) -> Integers:
            return (rows[start : start + ROWS_PER_BLOCK] @ right).argmax(axis=1)

        return np.concatenate(map_blocks(one, range(0, len(rows), ROWS_PER_BLOCK)))

    def distances(self, cells: Integers | slice, rows: Array) -> Array:
        """Return the squared distances between centres and rows, minus a constant of each cell."""
        centres = self.centres[cells]
        zeros = np.zeros(len(centres), centres.dtype)
        return append_columns(-2 * centres, zeros, np.ones_like(zeros)) @ rows.T

    def part_within(self, sample: Array, cells: Integers, rows: Array, map_blocks: Map = serial_map) -> Array:
        """Return the part of a sample that is nearer to the centre of a cell than each of these rows of its own.

        `rows` has the shape (cells, rows, columns).
        """

        def one(start: int) -> Array:
            block = cells[start : start + _CELLS_PER_BLOCK]
            nearer = self.distances(block, sample)
            limits = [self.distances(block[[i]], own)[0] for i, own in enumerate(rows[start : start + len(block)])]
            counts = [
                [np.count_nonzero(near < limit) for limit in own] for near, own in zip(nearer, limits, strict=True)
            ]
            return np.array(counts) / len(sample)

        return np.concatenate(map_blocks(one, range(0, len(cells), _CELLS_PER_BLOCK)))

    def reach(self, sample: Array, parts: list[float], map_blocks: Map = serial_map) -> Array:
        """Return the distances from each centre within which these parts of a sample lie, shape (cells, parts)."""
        last = [min(int(part * len(sample)), len(sample) - 1) for part in parts]

        def one(start: int) -> Array:
            distances = self.distances(slice(start, start + _CELLS_PER_BLOCK), sample)
            return np.partition(distances, last, axis=1)[:, last]

        return np.concatenate(map_blocks(one, range(0, len(self), _CELLS_PER_BLOCK)))

    def parts_around(self, cells: slice, reach: Array, rows: Array) -> list[tuple[Integers, Integers]]:
        """Return the numbers of the rows within reach of the centre of each of these cells, at most 128 cells.

        `reach` has two distances for each cell: the rows within the first one, and those within the second one only.
        """
        near, far = reach[cells, :1], reach[cells, 1:]
        found = []
        for start in range(0, len(rows), ROWS_PER_BLOCK):
            block = rows[start : start + ROWS_PER_BLOCK]
            distances = self.distances(cells, block)
            places = np.flatnonzero(distances <= far)
            cell, row = np.divmod(places, len(block))
            outer = distances.ravel()[places] > near[cell, 0]
            found.append(((2 * cell + outer).astype(np.uint8), row + start))  # NumPy sorts short integers by radix sort
        part, row = (np.concatenate(each) for each in zip(*found, strict=True))
        ends = np.cumsum(np.bincount(part, minlength=2 * len(near)))
        parts = np.split(row[np.argsort(part, kind="stable")], ends[:-1])
        return list(zip(parts[::2], parts[1::2], strict=True))


def spatial_order(points: Array) -> Integers:
    """Return an order in which close points are mostly near each other: repeated halving along the widest column."""
    if len(points) <= _LEAST_HALVED:
        return np.arange(len(points))
    order = np.argsort(points[:, points.var(axis=0).argmax()], kind="stable")
    halves = np.array_split(order, 2)
    return np.concatenate([half[spatial_order(points[half])] for half in halves])


def cell_means(points: Array, cell: Integers, centres: Array) -> Array:
    """Return the mean of the points of each cell; an empty cell keeps its centre."""
    ones = np.ones(len(points), dtype=points.dtype)
    members = sp.csr_array((ones, (cell, np.arange(len(points)))), shape=(len(centres), len(points)))
    sizes = np.bincount(cell, minlength=len(centres))[:, None]
    return np.where(sizes > 0, (members @ points) / np.maximum(sizes, 1), centres).astype(points.dtype)
