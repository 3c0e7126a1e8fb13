"""Views: several feature tables of the same samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from coview.base.html import first_few, html_table
from coview.data.table import as_table
from coview.data.together import checked_together, common_index, labelled_and_numbered, with_names
from coview.data.view import Array as Array
from coview.data.view import Categories, View, among_all
from coview.data.view import Matrix as Matrix
from coview.errors import InputError, InputTypeError, kind_of


def no_view(name: str) -> bool:
    """Return that a view may not have empty cells, the default."""
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

    tables : dict from view name to View
        All of the above, of each view in one record.

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

    tables: dict[str, View]
    index: Any
    has_row_numbers: bool  # whether some data frames have row numbers, beside others with labels

    def __init__(
        self,
        tables: Mapping[str, Any] | Sequence[Any],
        *,
        present: Mapping[str, Any] | None = None,
        may_have_empty_cells: Callable[[str], bool] = no_view,
    ) -> None:
        if isinstance(tables, Views):
            read, known = tables.tables, tables.empty_cells
            self.index, self.has_row_numbers = tables.index, tables.has_row_numbers
        else:
            named, known = with_names(tables), frozenset[str]()
            read = {name: as_table(f"view {name!r}", table) for name, table in named.items()}
            self.index, self.has_row_numbers = common_index(named), bool(labelled_and_numbered(named)[1])
        allowed = known.union(filter(may_have_empty_cells, read))
        self.tables = checked_together(read, present, self.index, allowed.__contains__)

    @classmethod
    def of(cls, tables: Mapping[str, View], index: Any = None) -> Views:
        """Return views of tables that have been validated.

        Parameters
        ----------
        tables : mapping from view name to View
        index : pandas.Index, optional
            The row labels.

        Returns
        -------
        Views
        """
        views = cls.__new__(cls)
        views.tables, views.index, views.has_row_numbers = dict(tables), index, False
        return views

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
        named = with_names(tables)
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
        joined = {}
        for name, table in named.items():
            place = table.index.get_indexer(index)
            present = place >= 0
            whole = as_table(f"view {name!r}", table)
            joined[name] = replace(whole, matrix=among_all(whole.matrix[place[present]], present), present=present)
        return Views.of(checked_together(joined, None, index, lambda name: True), index)

    def _with(self, tables: Mapping[str, View], index: Any) -> Views:
        """Return views of these tables, from data frames as those of these."""
        views = Views.of(tables, index)
        views.has_row_numbers = self.has_row_numbers
        return views

    def __getitem__(self, name: str) -> Matrix:
        return self.tables[name].matrix

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

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
        return tuple(self.tables)

    @property
    def n_samples(self) -> int:
        return int(next(iter(self.values())).shape[0])

    @property
    def n_features(self) -> dict[str, int]:
        return {name: int(x.shape[1]) for name, x in self.items()}

    @property
    def columns(self) -> dict[str, tuple[str, ...] | None]:
        return {name: view.columns for name, view in self.tables.items()}

    @cached_property
    def present(self) -> dict[str, Array]:
        return {name: view.present for name, view in self.tables.items() if view.present is not None}

    @property
    def empty_cells(self) -> frozenset[str]:
        return frozenset(name for name, view in self.tables.items() if view.has_empty_cells)

    @property
    def categories(self) -> dict[str, Mapping[str, Categories]]:
        return {name: view.categories for name, view in self.tables.items() if view.categories}

    @property
    def encoded(self) -> dict[str, tuple[int, ...]]:
        return {name: view.widths for name, view in self.tables.items() if view.widths}

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
        return self.tables[name].n_present

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

    def map(self, change: Callable[[str, View], View]) -> Views:
        """Return the views that a function makes of each name and view, of the same samples.

        Parameters
        ----------
        change : function of a name and a View that returns a View

        Returns
        -------
        Views
        """
        return self._with({name: change(name, view) for name, view in self.tables.items()}, self.index)

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
        return self._with({name: view.take(rows) for name, view in self.tables.items()}, index)

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
        return self._with({name: self.tables[name] for name in names}, self.index)

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
        return self._with(dict(zip(names, self.tables.values(), strict=True)), self.index)

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
        n, dtype = self.n_samples, self.dtype
        absent = {
            name: View(sp.csr_array((n, width), dtype=dtype), columns[name], present=np.zeros(n, dtype=bool))
            for name, width in widths.items()
        }
        return self._with({**self.tables, **absent}, self.index)

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        """Return whether this is the same object; a comparison of all entries would be slow."""
        return self is other
