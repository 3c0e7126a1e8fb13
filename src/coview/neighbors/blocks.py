"""Rows in consecutive blocks, and where functions of the blocks are computed: in this process or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Map, serial_map
from coview.data.rows import slab_places
from coview.data.view import Array, Matrix
from coview.neighbors.duplicates import Duplicates, Integers
from coview.neighbors.exact import ExactSearch, Frame, Pairs, centre_rows, frame_part, merged_pairs, take

Result: TypeAlias = Any  # of a task: a value in this process, or the future of a cluster


class Tasks:
    """Where functions of blocks are computed: here at once, in the threads of a map, and by a subclass on a cluster.

    So one program searches in memory and on a cluster.
    """

    def __init__(self, map_blocks: Map = serial_map) -> None:
        self.map = map_blocks  # calls a function that submits tasks for every item
        self.map_here = map_blocks  # for what this process computes
        self.map_in_task = map_blocks  # for the parts of one task

    def submit(self, function: Callable[..., Any], *inputs: Any, at: Sequence[str] = ()) -> Result:
        """Return the result of a function, computed on one of the workers `at` if possible; inputs may be results."""
        return function(*inputs)

    def gather(self, results: Iterable[Result]) -> list[Any]:
        """Return results in this process."""
        return list(results)

    def share(self, value: Any) -> Result:
        """Return a value as a result, which is sent once to each worker that needs it."""
        return value

    def split(self, n: int, height: int) -> list[slice]:
        """Return the parts of n rows that one task computes: of this height if threads share them, otherwise all."""
        return [slice(start, min(start + height, n)) for start in range(0, n, height)]

    def homes(self, results: Sequence[Result]) -> list[Sequence[str]]:
        """Return the workers that hold each of these results, after they are computed.

        A task with two blocks as inputs is submitted to the home of one of them. A scheduler would send either of them,
        and one worker could end up with all blocks.
        """
        return [()] * len(results)

    def copy(self, block: Result) -> Result:
        """Return a block as another result, which other workers delete as soon as they have used it."""
        return block


class Blocks(NamedTuple):
    """Something of each of n rows in consecutive blocks: rows of a view, exact searches, lists of neighbours."""

    tasks: Tasks
    blocks: Sequence[Result]
    heights: Sequence[int]
    width: int = 0  # of rows

    @classmethod
    def of(cls, rows: Matrix, map_blocks: Map = serial_map) -> Blocks:
        """Return rows in memory, which are one block."""
        return cls(Tasks(map_blocks), [rows], [rows.shape[0]], rows.shape[1])

    @property
    def places(self) -> list[slice]:
        """The numbers of the rows of each block."""
        return slab_places(self.heights)

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.heights), self.width

    def results(self, function: Callable[..., Any], *inputs: Any) -> list[Result]:
        """Return the function of each block."""
        return [self.tasks.submit(function, block, *inputs) for block in self.blocks]

    def converted(self, function: Callable[..., Any], *inputs: Any) -> Blocks:
        """Return the function of each block, which has something of each of its rows."""
        return self._replace(blocks=self.results(function, *inputs))

    def converted_with_places(self, function: Callable[..., Any], *inputs: Any) -> Blocks:
        """Return the same for a function of each block and the number of its first row."""
        submit, both = self.tasks.submit, zip(self.blocks, self.places, strict=True)
        return self._replace(blocks=[submit(function, block, place.start, *inputs) for block, place in both])

    def gathered(self) -> Any:
        """Return all rows in this process."""
        return joined(*self.tasks.gather(self.blocks))

    def take(self, numbers: Integers) -> Any:
        """Return some rows in this process."""
        order, pieces = self._pieces(numbers)
        return _ordered(order, *self.tasks.gather(pieces))

    def in_order(self, order: Integers, heights: Sequence[int]) -> Blocks:
        """Return rows with these numbers as blocks of these heights; a task for each pair of an old and a new block."""
        blocks = []
        for place in slab_places(heights):
            within, pieces = self._pieces(order[place])
            blocks.append(self.tasks.submit(_ordered, within, *pieces))
        return self._replace(blocks=blocks, heights=heights)

    def in_blocks(self, heights: Sequence[int]) -> Blocks:
        """Return the same rows in blocks of these heights."""
        unchanged = list(heights) == list(self.heights)
        return self if unchanged else self.in_order(np.arange(self.shape[0]), heights)

    def distinct(self, duplicates: Duplicates) -> Blocks:
        """Return the first of equal rows, in the blocks that hold them."""
        if duplicates.all_distinct:
            return self
        counts = np.diff(np.searchsorted(duplicates.first, np.cumsum([0, *self.heights])))
        return self.in_order(duplicates.first, counts[counts > 0].tolist())

    def frame(self) -> Frame | None:
        """Return the coordinates in which rows of several blocks are searched."""
        if len(self.blocks) == 1:
            return None
        some = self.take(centre_rows(self.shape[0]))
        return max(self.tasks.gather(self.results(frame_part, some)), key=lambda frame: frame.largest)

    def searches(self, frame: Frame | None = None) -> Blocks:
        """Return exact searches among the rows of each block, in the same coordinates."""
        return self.converted(ExactSearch, frame or self.frame())

    def near(self, x: Array, k: int, reach: Array | None = None) -> Pairs:
        """Return the same as `ExactSearch.near`, if the blocks are searches."""
        queries, places = self.tasks.share(x), self.places
        found = [
            self.tasks.submit(_near, search, queries, k, None if reach is None else reach[place])
            for search, place in zip(self.blocks, places, strict=True)
        ]
        return merged_pairs(self.tasks.gather(found), places, k, reach)

    def _pieces(self, numbers: Integers) -> tuple[Integers | slice, list[Result]]:
        """Return some rows as a piece of each block that has any of them, and how to order the rows of the pieces."""
        block = np.searchsorted(np.cumsum(self.heights), numbers, side="right")
        where = np.argsort(block, kind="stable")
        used, starts = np.unique(block[where], return_index=True)
        places = self.places
        pieces = [
            self.tasks.submit(take_rows, self.blocks[b], _as_slice(numbers[some] - places[b].start))
            for b, some in zip(used, np.split(where, starts[1:]), strict=True)
        ]
        return _as_slice(np.argsort(where)), pieces


def _as_slice(numbers: Integers) -> Integers | slice:
    """Return consecutive numbers as a slice, which is small if it is sent."""
    return slice(numbers[0], numbers[-1] + 1) if (np.diff(numbers) == 1).all() else numbers


def take_rows(rows: Any, numbers: Integers | slice) -> Any:
    """Return some rows of a block; one of several arrays is a tuple."""
    if isinstance(rows, tuple):
        kind: Any = type(rows)
        return kind(*(None if each is None else take_rows(each, numbers) for each in rows))
    return rows[numbers] if isinstance(rows, ExactSearch) else take(rows, numbers)


def joined(*pieces: Any) -> Any:
    """Return the rows of consecutive pieces."""
    first = pieces[0]
    if len(pieces) == 1 or first is None:
        return first
    if isinstance(first, tuple):
        return type(first)(*(joined(*each) for each in zip(*pieces, strict=True)))
    if isinstance(first, ExactSearch):
        return ExactSearch.joined(pieces)
    return sp.csr_array(sp.vstack(pieces, format="csr")) if sp.issparse(first) else np.concatenate(pieces)


def _ordered(order: Integers | slice, *pieces: Any) -> Any:
    """Return the rows of pieces in an order."""
    rows = joined(*pieces)
    return rows if isinstance(order, slice) else take_rows(rows, order)


def _near(search: ExactSearch, queries: Array, k: int, reach: Array | None) -> Pairs:
    return search.near(queries, min(k, len(search)), reach)
