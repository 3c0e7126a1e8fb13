"""Views: several feature tables of the same samples, and `as_views`, the only place that validates input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.errors import InputError, InputTypeError, kind_of
from coview.html import first_few, html_table
from coview.parameters import is_integer
from coview.tables import Array as Array
from coview.tables import Categories, Table, as_table
from coview.tables import Matrix as Matrix

Layout: TypeAlias = Sequence[Any] | Mapping[str, Any] | None


def _never(name: str) -> bool:
    return False


class Views(Mapping[str, Matrix]):
    """Validated, aligned views: a read-only mapping from view name to a float array or CSR array.

    A sample lacks a view if its row is NaN throughout. Each sample needs at least one view. Columns of categories hold
    codes, which estimators encode when they are fitted (docs/columns.md).

    Parameters
    ----------
    tables : mapping or list of 2-D tables, or a Views
        NumPy arrays, SciPy sparse matrices, or pandas, polars and Arrow tables with the same samples in the same order.
        The views of a list are named view0, view1, … Row labels of pandas tables must agree. Arrays have no labels, so
        arrays of different samples cannot be detected, such as those of a MuData whose modalities have different cells.
    present : mapping from view name to boolean array, optional
        Which samples have the view, for views whose rows cannot be NaN, such as sparse ones. The other rows are
        ignored. For views that are not named, those of a Views are kept.
    may_have_empty_cells : function from view name to bool, optional
        Whether single cells of a view may be NaN; they are refused by default.

    Attributes
    ----------
    names : tuple of str
    n_samples : int
    n_features : dict from view name to int
    columns : dict from view name to tuple of str, or None
        The column names of each view; None if it has none.
    index : pandas.Index or None
        The row labels, if any table is a pandas table. Tables with different row labels are refused; row numbers
        (0, 1, 2, …) beside labels of another type are not compared.
    present : dict from view name to boolean array
        Which samples have the view, for views that some samples lack; other views are not listed.
    empty_cells : frozenset of str
        The views with NaN in some cells of rows that are present, which `Preprocessed` fills.
    categories : dict from view name to dict from column name to Categories
        The categories of columns that hold codes; views without such columns are not listed.
    encoded : dict from view name to tuple of int
        The views whose categories an estimator has encoded, so that their columns have a common scale; the number of
        columns that each column of the table has become.
    dtype : numpy.dtype
        float32 if every view is float32, otherwise float64.

    See Also
    --------
    as_views : Validate a list, mapping or stacked array.
    read_views : Read one file for each view.

    Examples
    --------
    >>> import numpy as np
    >>> views = Views({"text": np.ones((4, 2)), "image": np.zeros((4, 3))})
    >>> views.names, views.n_samples
    (('text', 'image'), 4)
    >>> views.take([0, 1]).n_samples
    2
    """

    columns: dict[str, tuple[str, ...] | None]
    index: Any = None
    present: dict[str, Array]
    empty_cells: frozenset[str] = frozenset()
    categories: dict[str, Mapping[str, Categories]]
    encoded: Mapping[str, tuple[int, ...]]
    _matrices: dict[str, Matrix]
    has_row_numbers = False  # whether some data frames have row numbers, beside others with labels

    def __init__(
        self,
        tables: Mapping[str, Any] | Sequence[Any],
        *,
        present: Mapping[str, Any] | None = None,
        may_have_empty_cells: Callable[[str], bool] = _never,
    ) -> None:
        masks = _mapping_of_masks(present)
        if isinstance(tables, Views):
            before = tables
            checked = {
                name: Table(matrix, before.columns[name], before.categories.get(name, {}))
                for name, matrix in before.items()
            }
            self.index, self.encoded, self.has_row_numbers = before.index, before.encoded, before.has_row_numbers
            self.present, self.empty_cells = _check_together(
                checked,
                {**before.present, **masks},
                self.index,
                lambda name: name in before.empty_cells or may_have_empty_cells(name),
            )
        else:
            named = _with_names(tables)
            checked = {name: as_table(f"view {name!r}", table) for name, table in named.items()}
            self.index, self.encoded = _common_index(named), {}
            self.has_row_numbers = bool(_labelled_and_numbered(named)[1])
            self.present, self.empty_cells = _check_together(checked, masks, self.index, may_have_empty_cells)
        self._matrices = {name: table.matrix for name, table in checked.items()}
        self.columns = {name: table.columns for name, table in checked.items()}
        self.categories = {name: table.categories for name, table in checked.items() if table.categories}

    @classmethod
    def join(cls, tables: Mapping[str, Any], how: Literal["outer", "inner"] = "outer") -> Views:
        """Return views of data frames with different samples, matched by their row labels.

        Single cells may be empty; an estimator that does not fill them refuses them.

        Parameters
        ----------
        tables : mapping from view name to pandas data frame
            Each row label occurs once in a table.
        how : {"outer", "inner"}
            Keep the samples of any table, or those of all tables. The order is that of the first table, followed by
            the samples that only others have.

        Returns
        -------
        Views

        Examples
        --------
        >>> import pandas as pd
        >>> rna = pd.DataFrame({"gene": [1.0, 2.0]}, index=["s1", "s2"])
        >>> protein = pd.DataFrame({"protein": [3.0, 4.0]}, index=["s2", "s3"])
        >>> Views.join({"rna": rna, "protein": protein})
        Views(3 samples; rna: 1 (2 samples), protein: 1 (2 samples))
        >>> Views.join({"rna": rna, "protein": protein}, how="inner")
        Views(1 samples; rna: 1, protein: 1)
        """
        if how not in ("outer", "inner"):
            raise InputError(f"how={how!r}: expected 'outer' or 'inner'")
        named = _with_names(tables)
        for name, table in named.items():
            if not hasattr(getattr(table, "index", None), "get_indexer"):
                raise InputTypeError(
                    f"view {name!r} is {kind_of(table)}, which has no row labels to join by; give pandas data frames"
                )
            if table.index.has_duplicates:
                twice = table.index[table.index.duplicated()][0]
                raise InputError(f"view {name!r} has the row label {twice!r} twice; each sample needs its own label")
            if any(table.index.get_level_values(level).hasnans for level in range(table.index.nlevels)):
                raise InputError(f"view {name!r} has a row label that is missing; each sample needs its own label")
        first, *others = (table.index for table in named.values())
        for name, table in named.items():
            if table.index.nlevels != first.nlevels:
                raise InputError(
                    f"the row labels of view {name!r} have {table.index.nlevels} level(s), and those of view "
                    f"{next(iter(named))!r} have {first.nlevels}; use the same levels in all tables"
                )
        index = first
        for other in others:
            index = index.append(other.difference(index, sort=False)) if how == "outer" else index[index.isin(other)]
        if len(index) == 0:
            raise InputError("no row label is in all tables; check how samples are named, or use how='outer'")
        joined, present = {}, {}
        for name, table in named.items():
            place = table.index.get_indexer(index)
            present[name] = place >= 0
            whole = as_table(f"view {name!r}", table)
            joined[name] = whole._replace(matrix=among_all(whole.matrix[place[present[name]]], present[name]))
        return views_of_tables(joined, present, index, lambda name: True)

    @classmethod
    def trusted(
        cls,
        matrices: Mapping[str, Matrix],
        columns: Mapping[str, tuple[str, ...] | None],
        index: Any = None,
        present: Mapping[str, Array] | None = None,
        empty_cells: frozenset[str] = frozenset(),
        categories: Mapping[str, Mapping[str, Categories]] | None = None,
        encoded: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Views:
        """Return views of matrices that have been validated before; of `present`, complete views are left out."""
        views = cls.__new__(cls)
        views.empty_cells, views.encoded = empty_cells, encoded or {}
        views.categories = {name: found for name, found in (categories or {}).items() if found}
        views._matrices, views.columns, views.index = dict(matrices), dict(columns), index
        views.present = {name: mask for name, mask in (present or {}).items() if not mask.all()}
        return views

    def __getitem__(self, name: str) -> Matrix:
        return self._matrices[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._matrices)

    def __len__(self) -> int:
        return len(self._matrices)

    def __repr__(self) -> str:
        shapes = ", ".join(
            f"{name}: {x.shape[1]}" + (f" ({self.n_present(name)} samples)" if name in self.present else "")
            for name, x in self.items()
        )
        return f"Views({self.n_samples} samples; {shapes})"

    def _repr_html_(self) -> str:
        """Return a table of the views for notebooks."""
        rows = []
        for name, x in self.items():
            kind = "sparse" if sp.issparse(x) else "dense"
            columns = first_few(self.columns[name] or (), 3) or "–"
            rows.append((name, f"{self.n_present(name):,}", f"{x.shape[1]:,}", str(x.dtype), kind, columns))
        labels = "" if self.index is None else f"<p>Row labels: {escape(first_few(self.index, 3))}</p>"
        return html_table(("view", "samples", "columns", "dtype", "storage", "column names"), rows) + labels

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._matrices)

    @property
    def n_samples(self) -> int:
        return int(next(iter(self._matrices.values())).shape[0])

    @property
    def n_features(self) -> dict[str, int]:
        return {name: int(x.shape[1]) for name, x in self.items()}

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 if every view is float32, otherwise float64."""
        return np.result_type(*(x.dtype for x in self.values()))

    @property
    def complete(self) -> bool:
        """Whether each sample has all views."""
        return not self.present

    def n_present(self, name: str) -> int:
        """Return the number of samples that have a view.

        Parameters
        ----------
        name : str

        Returns
        -------
        int
        """
        return int(self.present[name].sum()) if name in self.present else self.n_samples

    def has_all(self) -> Array:
        """Return which samples have all views.

        Returns
        -------
        boolean array of shape (n_samples,)
        """
        return np.logical_and.reduce([np.ones(self.n_samples, dtype=bool), *self.present.values()])

    def has_any(self) -> Array:
        """Return which samples have at least one of the views; a selection of views may have others.

        Returns
        -------
        boolean array of shape (n_samples,)
        """
        if len(self.present) < len(self):
            return np.ones(self.n_samples, dtype=bool)
        return np.logical_or.reduce(list(self.present.values()))

    def observed(self, name: str) -> Matrix:
        """Return the rows of the samples that have a view.

        Parameters
        ----------
        name : str

        Returns
        -------
        array or csr_array
            The view itself if all samples have it.
        """
        return self[name][self.present[name]] if name in self.present else self[name]

    def alone(self, name: str) -> Views:
        """Return one view, of the samples that have it.

        Parameters
        ----------
        name : str

        Returns
        -------
        Views
        """
        one = self.select([name])
        return one.take(np.flatnonzero(self.present[name])) if name in self.present else one

    def with_absent(self, widths: Mapping[str, int], columns: Mapping[str, tuple[str, ...] | None]) -> Views:
        """Return the same samples with further views that none of them has.

        Parameters
        ----------
        widths : mapping from view name to the number of columns
        columns : mapping from view name to the names of the columns

        Returns
        -------
        Views
        """
        n = self.n_samples
        return Views.trusted(
            {**self._matrices, **{name: sp.csr_array((n, width), dtype=self.dtype) for name, width in widths.items()}},
            {**self.columns, **{name: columns[name] for name in widths}},
            self.index,
            {**self.present, **{name: np.zeros(n, dtype=bool) for name in widths}},
            self.empty_cells,
            self.categories,
            self.encoded,
        )

    def take(self, rows: Any) -> Views:
        """Return some rows of every view.

        Parameters
        ----------
        rows : slice, array of row numbers, or boolean mask

        Returns
        -------
        Views
        """
        index = None if self.index is None else self.index[rows]
        present = {name: mask[rows] for name, mask in self.present.items()}
        matrices = {name: x[rows] for name, x in self.items()}
        return Views.trusted(matrices, self.columns, index, present, self.empty_cells, self.categories, self.encoded)

    def select(self, names: Sequence[str]) -> Views:
        """Return some of the views.

        Parameters
        ----------
        names : sequence of str
            In the order of the result.

        Returns
        -------
        Views
        """
        present = {name: self.present[name] for name in names if name in self.present}
        matrices, columns = ({name: of[name] for name in names} for of in (self, self.columns))
        categories = {name: self.categories[name] for name in names if name in self.categories}
        encoded = {name: self.encoded[name] for name in names if name in self.encoded}
        return Views.trusted(matrices, columns, self.index, present, self.empty_cells & {*names}, categories, encoded)

    def rename(self, names: Sequence[str]) -> Views:
        """Return the same views with other names.

        Parameters
        ----------
        names : sequence of str
            In the order of the views.

        Returns
        -------
        Views
        """
        new = dict(zip(self, names, strict=True))
        return Views.trusted(
            {new[name]: x for name, x in self.items()},
            {new[name]: columns for name, columns in self.columns.items()},
            self.index,
            {new[name]: mask for name, mask in self.present.items()},
            frozenset(new[name] for name in self.empty_cells),
            {new[name]: found for name, found in self.categories.items()},
            {new[name]: widths for name, widths in self.encoded.items()},
        )

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        """Return whether this is the same object; a comparison of all entries would be slow."""
        return self is other


def as_views(data: Any, views: Layout = None, may_have_empty_cells: Callable[[str], bool] = _never) -> Views:
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
        return views_of_tables(cut, {}, index, may_have_empty_cells)
    if views is not None:
        raise InputError(
            "views= splits one stacked table, but the data are several views; leave views=None, or stack them first "
            "with stack_views"
        )
    if not isinstance(data, Views):
        return Views(data, may_have_empty_cells=may_have_empty_cells)
    for name in data.empty_cells:
        if not may_have_empty_cells(name):
            _present_rows(name, data[name], data.columns[name], data.present.get(name), may_have_empty_cells=False)
    return data


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
    for name, found in checked.categories.items():
        raise InputError(
            f"view {name!r} has categories in the column {next(iter(found))!r}, which a table of numbers cannot hold; "
            "give the views as a mapping, or one data frame with views="
        )
    ends = np.cumsum([0, *checked.n_features.values()]).tolist()
    layout = {name: slice(a, b) for name, (a, b) in zip(checked, pairwise(ends), strict=True)}
    sparse = [name for name, x in checked.items() if sp.issparse(x)]
    if sparse and not checked.complete:
        raise InputError(
            f"samples lack the view {next(iter(checked.present))!r}, which a table with the sparse view {sparse[0]!r} "
            "cannot state; give the views as a mapping instead of stacking them"
        )
    if sparse:
        return sp.csr_array(sp.hstack(list(checked.values()), format="csr")), layout
    rows = [
        among_all(checked.observed(name), checked.present[name]) if name in checked.present else x
        for name, x in checked.items()
    ]
    return np.hstack(rows), layout


def among_all(rows: Matrix, present: Array) -> Matrix:
    """Return the rows of the samples that have a view among rows of NaN, or empty rows if they are sparse.

    Parameters
    ----------
    rows : array or csr_array with a row for each sample that has the view
    present : boolean array

    Returns
    -------
    array or csr_array with a row for each sample
    """
    if sp.issparse(rows):
        counts = np.zeros(len(present), dtype=rows.indptr.dtype)
        counts[present] = np.diff(rows.indptr)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(rows.indptr.dtype)
        return sp.csr_array((rows.data, rows.indices, starts), shape=(len(present), rows.shape[1]))
    everything = np.full((len(present), rows.shape[1]), np.nan, dtype=rows.dtype)
    everything[present] = rows
    return everything


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
    return _common_index(_with_names(data) if holds_several(data) else {"X": data})


def with_new_row_numbers(data: Any) -> Any:
    """Return views whose integer row labels, row numbers beside labels of another type in training, are 0, 1, 2, …"""
    if isinstance(data, Views) or not holds_several(data):
        return data
    named = _with_names(data)
    rows = {name: named[name] for name in _labelled_and_numbered(named, any_integers=True)[1]}
    _common_index(rows)
    return {**named, **{name: table.reset_index(drop=True) for name, table in rows.items()}}


def check_row_labels(parameter: str, values: Any, views: Views) -> None:
    """Raise an InputError if a pandas Series with one value per sample has other row labels than the views."""
    try:
        _common_index({"views": views, parameter: values})
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


def _with_names(data: Mapping[Any, Any] | Sequence[Any]) -> dict[str, Any]:
    if len(data) == 0:
        raise InputError("no views were given; give at least one 2-D table")
    pairs = data.items() if isinstance(data, Mapping) else ((f"view{i}", x) for i, x in enumerate(data))
    named: dict[str, Any] = {}
    for key, table in pairs:
        if str(key) in named:
            raise InputError(f"two views are named {str(key)!r}; rename one")
        named[str(key)] = table
    return named


def _cut(table: Table, views: Layout) -> dict[str, Table]:
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
    for name, chosen in _with_names(views).items():
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


def _check_together(
    tables: Mapping[str, Table],
    given: Mapping[str, Any],
    index: Any,
    may_have_empty_cells: Callable[[str], bool],
) -> tuple[dict[str, Array], frozenset[str]]:
    """Return which samples have a view, for views that some samples lack, and the views with empty cells.

    Raise an InputError if the views differ in their samples, are empty, hold NaN or infinity in rows that are present,
    or if a sample has no view.
    """
    first = next(iter(tables))
    expected = tables[first].matrix.shape[0]
    for name, (x, _, _) in tables.items():
        if x.shape[0] != expected:
            for one, count in ((name, expected), (first, x.shape[0])):
                if tables[one].matrix.shape[1] == count:
                    raise InputError(
                        f"view {name!r} has {x.shape[0]} samples but view {first!r} has {expected}; view {one!r} has "
                        f"{count} columns, which may be the samples: transpose it, as in {one}.T"
                    )
            raise InputError(
                f"view {name!r} has {x.shape[0]} samples but view {first!r} has {expected}; "
                "every view needs the same samples in the same order (modalities of a MuData may have different cells; "
                "take the common ones from each, as in mdata['rna'][common])"
            )
        for what, count in zip(("sample", "feature"), x.shape, strict=True):
            if count == 0:
                raise InputError(f"view {name!r} has 0 {what}(s) (shape={x.shape}) while a minimum of 1 is required.")
    masks = {name: _checked_mask(name, mask, expected) for name, mask in given.items()}
    if unknown := [name for name in masks if name not in tables]:
        raise InputError(f"present names the view {unknown[0]!r}; expected names among {', '.join(tables)}")
    present, empty_cells = {}, set()
    for name, (x, columns, _) in tables.items():
        allowed = may_have_empty_cells(name)
        mask, has_empty_cells = _present_rows(name, x, columns, masks.get(name), may_have_empty_cells=allowed)
        if mask is not None and not mask.all():
            present[name] = mask
        if has_empty_cells:
            empty_cells.add(name)
    if len(present) == len(tables):
        without = np.flatnonzero(~np.logical_or.reduce(list(present.values())))
        if len(without):
            row = f"row {without[0]}" if index is None else f"{index[without[0]]!r}"
            # One view with a value that is NaN is one case of this; scikit-learn expects the word NaN.
            is_nan = any(not sp.issparse(x) and np.isnan(x[without[0]]).all() for x, _, _ in tables.values())
            reason = ", because they are NaN throughout" if is_nan else ""
            raise InputError(f"{len(without)} of {expected} samples have no view{reason} (first: {row}); drop them")
    return present, frozenset(empty_cells)


def views_of_tables(
    tables: Mapping[str, Table],
    given: Mapping[str, Any],
    index: Any = None,
    may_have_empty_cells: Callable[[str], bool] = _never,
) -> Views:
    """Return views of tables of numbers, after they are checked together; `given` says which samples have a view."""
    present, empty_cells = _check_together(tables, given, index, may_have_empty_cells)
    return Views.trusted(
        {name: table.matrix for name, table in tables.items()},
        {name: table.columns for name, table in tables.items()},
        index,
        present,
        empty_cells,
        {name: table.categories for name, table in tables.items()},
    )


def _mapping_of_masks(present: Any) -> dict[str, Any]:
    if present is None:
        return {}
    if not isinstance(present, Mapping):
        raise InputTypeError(
            f"present is {kind_of(present)}; give a mapping from view name to boolean array, as in {{'text': mask}}"
        )
    return {str(name): mask for name, mask in present.items()}


def _checked_mask(name: str, mask: Any, n_samples: int) -> Array:
    advice = f"give one boolean for each of the {n_samples} samples"
    try:
        found = np.array(mask)  # a copy: the caller may change the mask later
    except ValueError:
        raise InputError(f"present[{name!r}] has lists of different lengths; {advice}") from None
    if found.shape != (n_samples,) or found.dtype != bool:
        raise InputError(f"present[{name!r}] has shape {found.shape} and type {found.dtype}; {advice}")
    return found


def _present_rows(
    name: str, x: Matrix, columns: tuple[str, ...] | None, mask: Array | None, *, may_have_empty_cells: bool
) -> tuple[Array | None, bool]:
    """Return which rows are present, None for all, and whether these hold NaN.

    Raise an InputError if they hold infinity, or NaN and it is not allowed. NaN is never allowed in sparse views, which
    no preprocessing step fills.
    """
    values = x.data if isinstance(x, sp.csr_array) else x
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass without a temporary array; enough in most cases
            return mask, False
    if not sp.issparse(x):
        some = np.flatnonzero(np.isnan(x[:, 0]))  # rows that may be NaN throughout
        empty = some[np.isnan(x[some]).all(axis=1)]
        if len(empty):
            mask = np.ones(x.shape[0], dtype=bool) if mask is None else mask.copy()
            mask[empty] = False
            with np.errstate(over="ignore", invalid="ignore"):
                if np.isfinite(x.sum(axis=1, dtype=np.float64)[mask]).all():  # as above, for the rows that are present
                    return mask, False
    empty_rows, _ = _present_places(np.isnan, x, mask)
    bad_rows, bad_columns = _present_places(np.isinf, x, mask)
    what, advice = "infinity (inf)", "replace them"
    if len(empty_rows) and (sp.issparse(x) or not may_have_empty_cells):
        what = "NaN and infinity (inf)" if len(bad_rows) else "NaN"
        bad_rows, bad_columns = _present_places(lambda each: ~np.isfinite(each), x, mask)
        advice = "impute them (preprocessing step 'median' or 'nearest')"
        if sp.issparse(x):
            advice = "give the view as a dense table and impute them (preprocessing step 'median' or 'nearest')"
    if not len(bad_rows):
        return mask, len(empty_rows) > 0
    first = bad_columns[0] if columns is None else repr(columns[bad_columns[0]])
    raise InputError(
        f"view {name!r} contains {what} in {len(np.unique(bad_rows))} of {x.shape[0]} samples and "
        f"{len(np.unique(bad_columns))} of {x.shape[1]} columns (cells in total: {len(bad_rows)}; first: row "
        f"{bad_rows[0]}, column {first}); {advice} or drop those samples"
    )


def _present_places(is_bad: Callable[[Any], Array], x: Matrix, mask: Array | None) -> tuple[Array, Array]:
    """Return the rows and the columns of all bad values in rows that are present."""
    rows, columns = places_of(is_bad, x)
    kept = slice(None) if mask is None else mask[rows]
    return rows[kept], columns[kept]


def places_of(is_bad: Callable[[Any], Array], x: Matrix) -> tuple[Array, Array]:
    """Return the rows and the columns of all bad values, row by row."""
    if not isinstance(x, sp.csr_array):
        rows, columns = np.nonzero(is_bad(x))
        return rows, columns
    at = np.flatnonzero(is_bad(x.data))
    return np.searchsorted(x.indptr, at, side="right") - 1, x.indices[at]


def _common_index(named: Mapping[str, Any]) -> Any:
    """Return the row labels of the pandas tables, None without any; an InputError if they differ, also in order."""
    found, _ = _labelled_and_numbered(named)
    for name, index in found.items():
        first = next(iter(found))
        if len(index) == len(found[first]) and not index.equals(found[first]):
            same = set(index) == set(found[first])
            what = "the same row labels in another order" if same else "other row labels"
            raise InputError(
                f"view {name!r} has {what} than view {first!r}; align them, for example {name}.loc[{first}.index], or "
                "drop the labels with reset_index(drop=True) if the rows are already aligned"
            )
    return next(iter(found.values()), None)


def _labelled_and_numbered(named: Mapping[str, Any], any_integers: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Return the row labels of pandas tables, and those with row numbers (0, 1, 2, …) beside labels of another type."""
    found = {name: table.index for name, table in named.items() if hasattr(getattr(table, "index", None), "equals")}
    integers = {name: np.asarray(index) for name, index in found.items() if index.dtype.kind in "iu"}
    if len(integers) == len(found):
        return found, []
    numbered = [name for name, x in integers.items() if any_integers or np.array_equal(x, np.arange(len(x)))]
    return {name: index for name, index in found.items() if name not in numbered}, numbered
