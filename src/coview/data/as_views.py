"""`as_views`, the only place that validates views, and `stack_views`, its inverse for one stacked table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.base.parameters import is_integer
from coview.data.table import as_table
from coview.data.together import checked_rows, checked_together, common_index, labelled_and_numbered, with_names
from coview.data.view import Matrix, View
from coview.data.views import Views, no_view
from coview.errors import InputError

Layout: TypeAlias = Sequence[Any] | Mapping[str, Any] | None


def as_views(data: Any, views: Layout = None, may_have_empty_cells: Callable[[str], bool] = no_view) -> Views:
    """Return the data as validated `Views`; the caller's data are not changed.

    Parameters
    ----------
    data : list, tuple or mapping of 2-D tables, a Views, or one stacked 2-D table
        Tables are NumPy arrays, SciPy sparse matrices, or pandas, polars and Arrow tables. A list holds several views
        if its elements are 2-D; a list of lists of numbers is one stacked table. Arrays are paired by row order, so
        take data frames from a MuData (`mdata["rna"].to_df()`), whose cells are compared.
    views : list of widths, list of columns, or mapping from view name to columns
        The columns of each view in one stacked table: a slice, positions, a boolean mask, or column names.
    may_have_empty_cells : function from view name to bool, optional
        Whether single cells of a view may be NaN; they are refused by default.

    Returns
    -------
    Views

    See Also
    --------
    Views : The result, a mapping.
    stack_views : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> as_views({"text": np.eye(3), "image": np.ones((3, 2))})
    Views(3 samples; text: 3, image: 2)
    >>> as_views(np.ones((4, 5)), views=[2, 3])
    Views(4 samples; view0: 2, view1: 3)
    """
    if not holds_several(data):
        cut = _cut(as_table("X", data), views)
        index = row_labels(data)
        return views_of_tables(cut, index, may_have_empty_cells)
    if views is not None:
        raise InputError(
            "views= splits one stacked table, but the data are several views; leave views=None, or stack them first "
            "with stack_views"
        )
    if not isinstance(data, Views):
        return Views(data, may_have_empty_cells=may_have_empty_cells)
    require_full_cells(data, may_have_empty_cells)
    return data


def require_full_cells(views: Views, may_have_empty_cells: Callable[[str], bool] = no_view) -> None:
    """Raise an InputError if a view that must not have empty cells has some."""
    for name in views.empty_cells:
        if not may_have_empty_cells(name):
            checked_rows(name, views.tables[name], may_have_empty_cells=False)


def stack_views(views: Any) -> tuple[Matrix, dict[str, slice]]:
    """Return the concatenated columns of all views, and the `views=` that splits them again.

    scikit-learn's tools split such a table by samples; `as_views(X, views)` is the inverse. Samples that lack a view
    have NaN in its columns.

    Parameters
    ----------
    views : as in `as_views`
        If some samples lack views, all views must be dense.

    Returns
    -------
    X : array or csr_array of shape (n_samples, total number of features)
    views : dict from view name to slice

    See Also
    --------
    as_views : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> X, views = stack_views([np.zeros((3, 2)), np.ones((3, 1))])
    >>> X.shape, views
    ((3, 3), {'view0': slice(0, 2, None), 'view1': slice(2, 3, None)})
    """
    checked = as_views(views)
    ends = np.cumsum([0, *checked.n_features.values()]).tolist()
    layout = {name: slice(a, b) for name, (a, b) in zip(checked, pairwise(ends), strict=True)}
    return stacked(checked), layout


def stacked(checked: Views) -> Matrix:
    """Return the concatenated columns of validated views."""
    for name, found in checked.categories.items():
        raise InputError(
            f"view {name!r} has categories in the column {next(iter(found))!r}, which a table of numbers cannot hold; "
            "give the views as a mapping, or one data frame with views="
        )
    sparse = [name for name, x in checked.items() if sp.issparse(x)]
    if sparse and not checked.complete:
        raise InputError(
            f"samples lack the view {next(iter(checked.present))!r}, which a table with the sparse view {sparse[0]!r} "
            "cannot state; give the views as a mapping instead of stacking them"
        )
    if sparse:
        return sp.csr_array(sp.hstack(list(checked.values()), format="csr"))
    return np.hstack([view.with_observed(view.observed).matrix for view in checked.tables.values()])


def holds_several(data: Any) -> bool:
    """Return whether the data are several views rather than one stacked table."""
    if sp.issparse(data):  # before Mapping: a DOK matrix is a dict
        return False
    if isinstance(data, Mapping):
        return True
    if isinstance(data, (list, tuple)):
        return len(data) == 0 or any(_dimensions(table) >= 2 for table in data)
    return False


def row_labels(data: Any) -> Any:
    """Return the row labels (a pandas.Index) of views in any form, without validating them; None if they have none."""
    if isinstance(data, Views):
        return data.index
    return common_index(with_names(data) if holds_several(data) else {"X": data})


def with_new_row_numbers(data: Any) -> Any:
    """Return views whose integer row labels, row numbers beside labels of another type in training, are 0, 1, 2, …"""
    if isinstance(data, Views) or not holds_several(data):
        return data
    named = with_names(data)
    rows = {name: named[name] for name in labelled_and_numbered(named, any_integers=True)[1]}
    common_index(rows)
    return {**named, **{name: table.reset_index(drop=True) for name, table in rows.items()}}


def check_row_labels(parameter: str, values: Any, views: Views) -> None:
    """Raise an InputError if a pandas Series with one value per sample has other row labels than the views."""
    try:
        common_index({"views": views, parameter: values})
    except InputError:
        raise InputError(
            f"{parameter} has other row labels than the views, or the same in another order; align it, for example "
            f"{parameter}.loc[frame.index], or give {parameter}.to_numpy() if the rows are already aligned"
        ) from None


def _dimensions(table: Any) -> int:
    shape = getattr(table, "shape", None)
    if shape is not None:
        return len(shape)
    if isinstance(table, (list, tuple)):
        return 1 + (_dimensions(table[0]) if table else 0)
    return 0


def _cut(table: View, views: Layout) -> dict[str, View]:
    """Return the views of a stacked table."""
    width = table.matrix.shape[1]
    if views is None:
        return {"view0": table}
    if isinstance(views, np.ndarray) and views.ndim:
        views = list(views)
    if not isinstance(views, (Mapping, list, tuple)) or len(views) == 0:
        raise InputError(f"views={views!r}: expected a list of widths, or a mapping from view name to columns")
    if not isinstance(views, Mapping) and all(map(is_integer, views)):
        if sum(views) != width or any(w < 1 for w in views):
            raise InputError(f"views={list(views)}: expected positive widths that add up to the {width} columns of X")
        ends = np.cumsum([0, *views]).tolist()
        views = [slice(a, b) for a, b in pairwise(ends)]
    tables = {}
    for name, chosen in with_names(views).items():
        positions = _positions(name, chosen, table.columns, width)
        contiguous = len(positions) > 0 and np.array_equal(positions, np.arange(positions[0], positions[-1] + 1))
        # A slice does not copy.
        tables[name] = table.take_columns(slice(positions[0], positions[-1] + 1) if contiguous else positions)
    return tables


def _positions(name: str, chosen: Any, columns: tuple[str, ...] | None, width: int) -> NDArray[np.intp]:
    """Return the column numbers of one view in a stacked table."""
    try:
        if isinstance(chosen, slice):
            return np.arange(width)[chosen]
        if isinstance(chosen, range) and chosen and not all(-width <= end < width for end in (chosen[0], chosen[-1])):
            # Before the numbers are made, because a range may have any number of them.
            raise InputError(f"view {name!r} selects columns outside the {width} columns of X: {chosen}")
        wanted = [chosen] if isinstance(chosen, str) else list(chosen)
    except TypeError:
        raise InputError(
            f"views={{{name!r}: {chosen!r}}}: expected a slice, positions, a boolean mask or column names"
        ) from None
    if any(isinstance(c, str) for c in wanted):
        if columns is None:
            raise InputError(f"view {name!r} selects column names, but X has none; give a DataFrame or positions")
        position = {column: i for i, column in enumerate(columns)}
        unknown = [c for c in wanted if c not in position]
        if unknown:
            raise InputError(f"view {name!r} selects columns that X does not have: {unknown[:5]}")
        return np.array([position[c] for c in wanted], dtype=np.intp)
    if wanted and all(isinstance(c, (bool, np.bool_)) for c in wanted):
        if len(wanted) != width:
            raise InputError(f"view {name!r} is a mask of {len(wanted)} columns, but X has {width}")
        return np.flatnonzero(wanted)
    if not all(is_integer(c) and -width <= int(c) < width for c in wanted):
        raise InputError(f"view {name!r} selects columns outside the {width} columns of X: {wanted[:5]}")
    return np.array(wanted, dtype=np.intp) % width


def views_of_tables(
    tables: Mapping[str, View], index: Any = None, may_have_empty_cells: Callable[[str], bool] = no_view
) -> Views:
    """Return views of tables of numbers, after they are checked together."""
    return Views.of(checked_together(tables, None, index, may_have_empty_cells), index)
