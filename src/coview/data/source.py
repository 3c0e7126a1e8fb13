"""Blocks of rows of larger views: validation whose messages have the row numbers of the whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.data.together import places_of
from coview.data.view import Array, Categories, Matrix
from coview.data.views import Views
from coview.errors import InputError


class BlocksOfViews(ABC):
    """Views that are loaded as blocks of rows. Empty cells are refused, except for a model that fills them."""

    names: Any  # of the views
    _empty_cells: frozenset[str] = frozenset()  # the views whose cells may be NaN

    def filled_by(self, model: Any) -> Self:
        """Return the same views for a model that fills empty cells: NaN is refused only where the model does.

        Parameters
        ----------
        model : estimator
            Such as Preprocessed(TMvKSCR(6), {"lab": "median"}), fitted or not.

        Returns
        -------
        the same class as this object
        """
        new, fills = copy(self), getattr(model, "fills_cells", lambda view: False)  # other libraries fill none
        new._empty_cells = self._empty_cells | frozenset(filter(fills, self.names))
        return new

    def rows_with(self, view: str) -> NDArray[np.int64]:
        """Return the numbers of the rows that have a view, in one pass over this view only.

        Parameters
        ----------
        view : str

        Returns
        -------
        array of int
            Row numbers in increasing order.
        """
        return np.concatenate([np.arange(0), *self._rows_with(view)])

    @abstractmethod
    def _rows_with(self, view: str) -> Iterable[NDArray[np.int64]]:
        """Return the same row numbers block by block."""


def rows_with_values(x: Any) -> NDArray[np.int64]:
    """Return the numbers of the rows of a block of a view that are not NaN throughout."""
    if sp.issparse(x) or x.dtype.kind != "f":
        return np.arange(x.shape[0])
    return np.flatnonzero(~np.isnan(x).all(axis=1))


def checked_block(
    values: Mapping[str, Matrix],
    columns: Mapping[str, tuple[str, ...] | None],
    empty_cells: Collection[str],
    where: Mapping[str, str],
    rows: Sequence[int] | NDArray[np.int64],
    categories: Mapping[str, Mapping[str, Categories]] | None = None,
) -> Views:
    """Return a block of rows as validated views; cells may be NaN in the views that `empty_cells` names.

    `where` is the name of each view in messages, and `rows` are the numbers of the rows. `categories` are those of
    columns that hold codes.
    """
    try:
        checked = Views(values, may_have_empty_cells=empty_cells.__contains__)
    except InputError as error:
        raise _explained(error, values, columns, empty_cells, where, rows) from None
    given = categories or {}
    return checked.map(lambda name, view: replace(view, columns=columns[name], categories=given.get(name, {})))


def _explained(
    error: InputError,
    values: Mapping[str, Matrix],
    columns: Mapping[str, tuple[str, ...] | None],
    empty_cells: Collection[str],
    where: Mapping[str, str],
    rows: Sequence[int] | NDArray[np.int64],
) -> InputError:
    """Return the error with the numbers of the rows."""
    between = f"{rows[0]} to {rows[-1]}"
    lacking = np.ones(len(rows), dtype=bool)
    for name, x in values.items():
        if x.dtype.kind != "f":
            lacking[:] = False
            continue
        absent = np.zeros(len(rows), dtype=bool) if sp.issparse(x) else np.isnan(x).all(axis=1)
        lacking &= absent
        is_bad = np.isinf if name in empty_cells else _not_finite
        bad_rows, bad_columns = places_of(is_bad, sp.csr_array(x) if sp.issparse(x) else x)
        bad = np.flatnonzero(~absent[bad_rows])
        if len(bad):
            known = columns[name]
            column = bad_columns[bad[0]] if known is None else repr(known[bad_columns[bad[0]]])
            return InputError(
                f"{where[name]} contains {'infinity' if name in empty_cells else 'NaN or infinity'} in row "
                f"{rows[bad_rows[bad[0]]]}, column {column}, the first of {len(np.unique(bad_rows[bad]))} such rows "
                f"from {between}; impute them or drop those samples from every view"
            )
    without = np.flatnonzero(lacking)
    if len(without):
        return InputError(f"row {rows[without[0]]} has no view, because it is NaN in all of them; drop it")
    return InputError(f"rows {between}: {error}")


def _not_finite(values: Array) -> Array:
    return ~np.isfinite(values)
