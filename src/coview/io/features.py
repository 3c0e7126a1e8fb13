"""From a file to the table of a view: columns are kept as numbers, kept as categories, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.data.table import MOST_CATEGORIES, encoded_cells, look_like_names
from coview.data.together import places_of
from coview.data.view import Array, Matrix, View
from coview.errors import InputError
from coview.io.table import InputFile, RawTable
from coview.registry import suggestion

Rows = NDArray[np.intp]
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}/\d\d/\d\d")
_LISTED = 5  # names in a message
_NAME_BYTES = 300  # of the name of a column, in a tuple, a set and a dictionary
_UNIT = re.compile(r"^[€$£¥]\s*|\s*(%|[€$£¥]|[a-zA-Zµμ]{1,3}(/[a-zA-Z]{1,3})?)$")  # of a number, such as % or mg/dl


class _Positions(Sequence[str]):
    """The names of columns without names, their positions, which are made only if one is needed."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: Any) -> Any:
        return str(range(self._count)[position])

    def __iter__(self) -> Iterator[str]:
        return map(str, range(self._count))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.isdecimal() and name == str(int(name)) and int(name) < self._count


class Features:
    """The columns of one view, for the selected rows, with notes on columns that were dropped or are constant.

    Messages give the row numbers of the file.
    """

    def __init__(self, source: InputFile, table: RawTable, rows: Rows, *, may_have_empty_cells: bool = False) -> None:
        self._may_have_empty_cells, self._of_model = may_have_empty_cells, False
        self.notes = [f"{source.where}: {note}" for note in table.notes]
        self._source, self._rows = source, rows
        same = np.array_equal(rows, np.arange(table.numbers.shape[0]))
        self._numbers: Matrix = table.numbers if same else table.numbers[rows]
        # Columns without names are named by their positions if some of them are dropped.
        self._named = table.names is not None
        self._names = table.names if table.names is not None else _Positions(table.numbers.shape[1])
        self._strings = {name: [cells[i] for i in rows] for name, cells in table.strings.items()}
        self._others, self._orders = dict(table.others), table.categories
        self._n_columns = len(self._names) + len(self._strings) + len(self._others)

    def all(self, is_categorical: Callable[[str], bool]) -> View:
        """Return all columns; empty ones are dropped, and strings are refused unless they are categories."""
        if self._others:
            name, what = next(iter(self._others.items()))
            raise self._error(
                f"has the column {name!r} of {what}; encode it as numbers, drop it, or use it as the ids (ids={name!r})"
            )
        strings = {name: cells for name, cells in self._strings.items() if any(cell is not None for cell in cells)}
        for name, cells in strings.items():
            if name not in self._orders:
                self._check_strings(name, cells, categorical=is_categorical(name))
        numbers, names = self._numbers, self._names
        lacking = _n_missing(numbers) == numbers.shape[0]
        if lacking.any():
            numbers = numbers[:, ~lacking]
            names = tuple(names[j] for j in np.flatnonzero(~lacking))
        empty = [self._names[j] for j in np.flatnonzero(lacking)]
        empty += [name for name in self._strings if name not in strings]
        if empty:
            self._note(f"dropped {listing('column', empty)} without any value")
        table = self._with_categories(numbers, names, strings)
        columns = table.columns or ()
        constant = np.flatnonzero(_is_constant(table.matrix))
        if len(constant) and table.matrix.shape[0] > 1:
            verb = "is" if len(constant) == 1 else "are"
            named = listing("column", [columns[j] for j in constant[:_LISTED]], total=len(constant))
            self._note(f"{named} {verb} constant")
        return replace(table, columns=None) if isinstance(columns, _Positions) else table

    def chosen(self, wanted: Sequence[str], is_categorical: Callable[[str], bool]) -> View:
        """Return the columns that a model was trained on, by name if the columns have names."""
        self._of_model = True
        if not self._named and self._numbers.shape[1] == len(wanted):
            self._check(self._numbers, wanted)
            return View(self._numbers, tuple(wanted))
        if not self._named and not any(name in self._names for name in wanted):
            raise self._error(
                f"has {self._numbers.shape[1]} columns, but the model was trained on {len(wanted)}; give the file with "
                "the columns of the training data"
            )
        self._source.require_memory((len(self._names),), _NAME_BYTES)
        position = {name: j for j, name in enumerate(self._names)}
        strings = {name: self._strings[name] for name in wanted if name in self._strings and is_categorical(name)}
        for name, cells in strings.items():
            if all(_DATE.match(cell) for cell in cells if cell is not None):
                raise self._has_strings(name, cells)
        for column in wanted:
            if column not in position and column not in strings:
                raise self._lacks(column)
        used = {*wanted}
        unused = [name for name in (*position, *self._strings, *self._others) if name not in used]
        if unused:
            self._note(f"dropped {listing('column', unused)} that the model was not trained on")
        numbers = [column for column in wanted if column not in strings]
        table = self._with_categories(
            self._numbers[:, [position[column] for column in numbers]], tuple(numbers), strings
        )
        if not strings:
            return table
        place = {column: j for j, column in enumerate(table.columns or ())}
        return table.take_columns([place[column] for column in wanted])

    def _with_categories(
        self, numbers: Matrix, names: Sequence[str], strings: Mapping[str, Sequence[str | None]]
    ) -> View:
        """Return a table of numbers, followed by the codes of columns of strings."""
        self._source.require_memory((numbers.shape[0], numbers.shape[1] + 2 * len(strings)))  # separate, then stacked
        codes, categories = {}, {}
        for name, cells in strings.items():
            codes[name], categories[name] = encoded_cells(cells, self._orders.get(name))
        if codes:
            numbers = np.column_stack([numbers, *codes.values()])
            names = (*names, *codes)
        self._check(numbers, names)
        columns: Any = names  # a tuple, or positions, which `all` removes
        return View(numbers, columns, categories)

    def _check(self, numbers: Matrix, names: Sequence[str]) -> None:
        """Refuse empty matrices and values that are not finite."""
        for what, count in zip(("samples", "features"), numbers.shape, strict=True):
            if count == 0:
                raise self._error(f"has no {what} (shape {numbers.shape[0]} x {numbers.shape[1]})")
        rows, columns = places_of(np.isnan, numbers)
        if not sp.issparse(numbers):
            present = ~np.isnan(numbers).all(axis=1)
            rows, columns = rows[present[rows]], columns[present[rows]]
            lacking = np.flatnonzero(~present)
            if len(lacking):
                count, first = f"{len(lacking)} of {len(present)} samples", self._rows[lacking[0]]
                self._note(f"{count} have no value (first: row {first}), they lack the view")
        if len(rows) and not self._may_have_empty_cells:
            raise self._unusable("no value", rows, columns, names, "impute")
        rows, columns = places_of(np.isinf, numbers)
        if len(rows):
            raise self._unusable("an infinite or too large number", rows, columns, names, "correct")

    def _note(self, what: str) -> None:
        self.notes.append(f"{self._source.where}: {what}")

    def _error(self, what: str) -> InputError:
        return InputError(f"{self._source.where} {what}")

    def _unusable(self, what: str, rows: Array, columns: Array, names: Sequence[str], remedy: str) -> InputError:
        """Return the error about the values in these rows and columns, with their counts and the place of the first."""
        first = f"row {self._rows[rows[0]]}, column {names[columns[0]]!r}"
        it, that, s = ("it", "that", "") if len(rows) == 1 else ("them", "those", "s")
        if len(rows) > 1:
            counts = f"{len(np.unique(rows))} of {len(self._rows)} rows, {len(np.unique(columns))} of {self._n_columns}"
            first = f"{len(rows)} cells ({counts} columns; first: {first})"
        how = " (empty_cells=…)" if remedy == "impute" and not self._of_model else ""
        column = "" if self._of_model else f" or column{s}" + " (drop=…)" * self._named
        return self._error(f"has {what} in {first}; {remedy} {it}{how}, or drop {that} sample{s}{column}")

    def _check_strings(self, name: str, cells: Sequence[str | None], *, categorical: bool) -> None:
        """Refuse a column of strings unless it is categorical; also dates, and names of the samples."""
        known = [cell for cell in cells if cell is not None]
        if not categorical or all(map(_DATE.match, known)):
            raise self._has_strings(name, cells)
        if look_like_names(len({*known}), len(known)):
            if 2 * sum(_looks_numeric(cell) or bool(_DATE.match(cell)) for cell in known) > len(known):
                raise self._has_strings(name, cells)
            raise self._error(
                f"has {len({*known})} different strings in the column {name!r} of {len(known)} samples, which look "
                f"like names rather than categories; drop it, or use it as the ids (ids={name!r})"
            )
        words = [cell for cell in known if not _looks_numeric(cell)]
        if 0 < 2 * len(words) < len(known) and len({*known}) > MOST_CATEGORIES:
            self._note(
                f"the column {name!r} has numbers and strings such as {words[0]!r}, and is read as categories; correct "
                "the strings if it has measurements"
            )

    def _has_strings(self, name: str, cells: Sequence[str | None]) -> InputError:
        present = [(i, cell) for i, cell in enumerate(cells) if cell is not None]
        words = [(i, cell) for i, cell in present if not _looks_numeric(cell)]
        dates = [(i, word) for i, word in words if _DATE.match(word)]
        are_dates = 2 * len(dates) > len(words)
        i, cell = (dates if are_dates else words or present)[0]
        where = f"has strings in the column {name!r} ({cell!r} in row {self._rows[i]})"
        if not words:
            return self._error(f"{where} that look like numbers; store it as numbers")
        if are_dates:  # 31.12.2023 also looks like a number with separators
            return self._error(f"{where}, which are dates; encode them as numbers, such as days, or drop the column")
        if "," in cell and _looks_numeric(cell.replace(",", ".")):
            return self._error(f"{where}; write numbers with a decimal point")
        if _looks_numeric(cell.replace(",", "").replace(".", "")):
            return self._error(f"{where}; write numbers without separators of thousands")
        signs = {_UNIT.sub("", word): word for _, word in words}
        if all(map(_looks_numeric, signs)):
            return self._error(f"{where}; write numbers without signs and units")
        if len(words) < len(present):
            return self._error(f"{where}, which otherwise contains numbers; correct or drop it")
        return self._error(
            f"{where}; encode it as numbers, drop it, use it as the ids (ids={name!r}), or read strings as categories "
            "(categories='onehot')"
        )

    def _lacks(self, column: str) -> InputError:
        if column in self._orders:
            return self._error(f"has categories in the column {column!r}, which had numbers in training")
        if column in self._strings:
            return self._has_strings(column, self._strings[column])
        if column in self._others:
            return self._error(f"has the column {column!r} of {self._others[column]}, but the model needs numbers")
        return self._error(f"lacks the column {column!r} that the model was trained on")


def check_numbers(source: InputFile, table: RawTable) -> None:
    """Refuse arrays that are not 2-D arrays of real numbers."""
    ndim, kind = table.numbers.ndim, table.numbers.dtype.kind
    if ndim != 2:
        raise InputError(f"{source.where} is {ndim}-D; a view is 2-D, samples by features")
    if kind not in "fiub":
        others = f"values of type {table.numbers.dtype}"
        what = {"U": "strings", "S": "strings", "O": "strings", "c": "complex numbers"}.get(kind, others)
        raise InputError(f"{source.where} has {what}; expected real numbers")


def with_columns(
    sources: Mapping[str, InputFile], tables: Mapping[str, RawTable], keep: Any, drop: Collection[str], ids: Any
) -> dict[str, RawTable]:
    """Return the tables with the columns that `read_views` keeps; a name that no table has is refused."""
    columns = {view: {*table.columns} for view, table in tables.items()}
    every = {name for names in columns.values() for name in names}
    wanted = [(view, name) for view, names in keep.items() for name in names]
    for name in drop:
        view, equals, column = name.partition("=") if name not in every else ("", "", name)
        if equals and view not in tables:
            raise InputError(f"drop={name!r}: there is no view {view!r}{suggestion(view, tables)}")
        if not equals and name not in every:
            raise InputError(f"drop={name!r}: no view has this column{suggestion(name, every)}")
        if ids and column == ids:
            raise InputError(f"drop={name!r}: this column has the ids (ids={ids!r}); leave out one of the two")
        wanted += [(view, column)] if equals else []
    for view, name in wanted:
        if name not in columns[view]:
            has = listing("column", tables[view].columns) if columns[view] else "columns without names"
            where, close = sources[view].where, suggestion(name, columns[view])
            raise InputError(f"{where} has no column {name!r}{close} It has {has}")
    columns |= {view: {*names} for view, names in keep.items()}
    dropped = {*drop}
    kept = {
        view: {name for name in names if not {name, f"{view}={name}"} & dropped} | {ids}
        for view, names in columns.items()
    }
    return {view: table.only(kept[view].__contains__) for view, table in tables.items()}


def listing(what: str, names: Sequence[str], *, total: int | None = None) -> str:
    """Return the first names and the number of the others, for messages; `names` may be the first of a total only."""
    count = len(names) if total is None else total
    shown = ", ".join(map(repr, names[:_LISTED])) + (f" and {count - _LISTED} more" if count > _LISTED else "")
    return f"the {what} {shown}" if count == 1 else f"the {count} {what}s {shown}"


def _looks_numeric(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _n_missing(numbers: Matrix) -> Array:
    """Return the number of missing values of each column."""
    if isinstance(numbers, sp.csr_array):
        missing = np.isnan(numbers.data) if numbers.dtype.kind == "f" else np.zeros(numbers.nnz, bool)
        return np.bincount(numbers.indices[missing], minlength=numbers.shape[1])
    return np.isnan(numbers).sum(axis=0) if numbers.shape[0] else np.full(numbers.shape[1], -1)


def _is_constant(numbers: Matrix) -> Array:
    if isinstance(numbers, sp.csr_array):
        return (numbers.max(axis=0) - numbers.min(axis=0)).toarray().ravel() == 0
    return (numbers == numbers[:1]).all(axis=0)
