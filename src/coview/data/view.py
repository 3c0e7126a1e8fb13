"""View: one feature table of the samples, with everything that is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # a float ndarray or csr_array; SciPy's sparse arrays have no types


@dataclass(frozen=True)
class Categories:
    """The categories of a column, whose cells are their positions (codes); NaN for an empty cell.

    Attributes
    ----------
    values : tuple of str
    ordered : bool
        Whether the categories have an order, as low, medium and high have. They are then listed in this order.
    """

    values: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, eq=False)
class View:
    """A table with a row for each sample; what stands in the rows of samples that lack the view does not count."""

    matrix: Matrix
    columns: tuple[str, ...] | None = None  # their names
    categories: Mapping[str, Categories] = field(default_factory=dict)  # of the columns that hold codes, by name
    present: Array | None = None  # a boolean for each sample that says whether it has the view; None if all have it
    # The number of columns that each column of the table has become, if an estimator has encoded its categories, so
    # that all columns have a common scale.
    widths: tuple[int, ...] = ()
    has_empty_cells: bool = False  # whether there is NaN in rows of samples that have the view

    @property
    def n_present(self) -> int:
        """The number of samples that have the view."""
        return int(self.matrix.shape[0] if self.present is None else self.present.sum())

    @property
    def observed(self) -> Matrix:
        """The rows of the samples that have the view."""
        return self.matrix if self.present is None else self.matrix[self.present]

    def among(self, present: Any) -> View:
        """Return the same table, which only these samples have."""
        return replace(self, present=None if present is None or present.all() else present)

    def take(self, rows: Any) -> View:
        """Return some of the samples."""
        return replace(self, matrix=self.matrix[rows]).among(None if self.present is None else self.present[rows])

    def take_columns(self, positions: Any) -> View:
        """Return some of the columns, given by a slice or by their positions."""
        columns = None if self.columns is None else tuple(np.asarray(self.columns, dtype=object)[positions].tolist())
        kept = {name: each for name, each in self.categories.items() if name in (columns or ())}
        matrix = self.matrix[:, positions]
        if sp.issparse(matrix):
            matrix.sort_indices()  # they follow the positions, and only some operations of SciPy sort them
        table_columns = np.repeat(np.arange(len(self.widths)), self.widths)[positions] if self.widths else np.zeros(0)
        widths = tuple(np.unique(table_columns, return_counts=True)[1].tolist())
        return replace(self, matrix=matrix, columns=columns, categories=kept, widths=widths)

    def with_observed(self, rows: Matrix) -> View:
        """Return a table with these rows of the samples that have the view; of numbers, and columns without names."""
        matrix = rows if self.present is None else among_all(rows, self.present)
        return View(matrix, present=self.present)


def among_all(rows: Matrix, present: Array) -> Matrix:
    """Return the rows of the samples that have a view among rows of NaN, or empty rows if they are sparse."""
    if sp.issparse(rows):
        counts = np.zeros(len(present), dtype=rows.indptr.dtype)
        counts[present] = np.diff(rows.indptr)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(rows.indptr.dtype)
        return sp.csr_array((rows.data, rows.indices, starts), shape=(len(present), rows.shape[1]))
    everything = np.full((len(present), rows.shape[1]), np.nan, dtype=rows.dtype)
    everything[present] = rows
    return everything
