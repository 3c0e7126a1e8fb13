"""From a table to the numbers of a view: which columns are kept, which are encoded, and which are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.errors import InputError
from coview.io.table import Source, Table, check_names
from coview.views import Array, Matrix

Rows = NDArray[np.intp]
_MOST_CATEGORIES = 10  # beyond this, more than one for every two samples are taken for names


class Features:
    """One view on its way from a table to numbers, with notes on what was left out or looks odd.

    Parameters
    ----------
    source : Source
    table : Table
    rows : array of int
        The rows of the table that are used, in this order; messages give their numbers in the file.
    """

    def __init__(self, source: Source, table: Table, rows: Rows) -> None:
        self.notes = [f"{source.where}: {note}" for note in table.notes]
        self._source, self._rows = source, rows
        same = np.array_equal(rows, np.arange(table.numbers.shape[0]))
        self._numbers: Matrix = table.numbers if same else table.numbers[rows]
        # Columns without names go by their positions, which are kept as names once some of them are left out.
        self._named = table.names is not None
        self._names = table.names if table.names is not None else tuple(map(str, range(table.numbers.shape[1])))
        self._texts = {name: [cells[i] for i in rows] for name, cells in table.texts.items()}
        self._others = dict(table.others)

    def all(self, onehot: bool) -> tuple[Matrix, tuple[str, ...] | None]:
        """Return every column; those without any value are left out, text is refused or encoded."""
        if self._others:
            name, what = next(iter(self._others.items()))
            raise self._error(f"has the column {name!r} of {what}; encode it as numbers, drop it, or name it as ids")
        texts = {name: cells for name, cells in self._texts.items() if any(cell is not None for cell in cells)}
        if texts and not onehot:
            raise self._holds_text(*next(iter(texts.items())))
        numbers, names = self._numbers, self._names
        lacking = _n_missing(numbers) == numbers.shape[0]
        if lacking.any():
            numbers = numbers[:, ~lacking]
            names = tuple(names[j] for j in np.flatnonzero(~lacking))
        empty = [name for name in (*self._names, *self._texts) if name not in {*names, *texts}]
        if empty:
            self.notes.append(f"{self._source.where}: left out {listing('column', empty)} without any value")
        categories = {name: self._categories(name, cells) for name, cells in texts.items()}
        n_encoded = sum(map(len, categories.values()))
        self._source.require_memory((numbers.shape[0], numbers.shape[1] + 2 * n_encoded))  # one by one, then together
        encoded = {f"{name}={category}": _is(category, texts[name]) for name in texts for category in categories[name]}
        if encoded:
            numbers = np.column_stack([numbers, *encoded.values()])
            names = (*names, *encoded)
            check_names(self._source, names)
        self._check(numbers, names)
        constant = [names[j] for j in np.flatnonzero(_is_constant(numbers))]
        if constant and numbers.shape[0] > 1:
            verb = "is" if len(constant) == 1 else "are"
            self.notes.append(f"{self._source.where}: {listing('column', constant)} {verb} constant")
        return numbers, names if self._named or names != self._names else None

    def chosen(self, wanted: Sequence[str]) -> tuple[Matrix, tuple[str, ...]]:
        """Return exactly the columns that a model was trained on, found by name where there are names."""
        if not self._named and self._numbers.shape[1] == len(wanted):
            self._check(self._numbers, wanted)
            return self._numbers, tuple(wanted)
        if not self._named and not {*wanted} & {*self._names}:
            raise self._error(f"has {self._numbers.shape[1]} columns, but the model was trained on {len(wanted)}")
        position = {name: j for j, name in enumerate(self._names)}
        encoded: dict[str, Array] = {}
        used = set(wanted)
        for name, cells in self._texts.items():
            known = [column.removeprefix(f"{name}=") for column in wanted if column.startswith(f"{name}=")]
            if not known:
                continue
            used.add(name)
            encoded |= {f"{name}={category}": _is(category, cells) for category in known}
            unknown = sorted({*self._present(name, cells)} - {*known})
            if unknown:
                self.notes.append(
                    f"{self._source.where}: the column {name!r} has {listing('category', unknown, 'categories')} "
                    "that the model was not trained on; they count as none of the known ones"
                )
        for column in wanted:
            if column not in position and column not in encoded:
                raise self._lacks(column)
        unused = [name for name in (*position, *self._texts, *self._others) if name not in used]
        if unused:
            self.notes.append(
                f"{self._source.where}: left out {listing('column', unused)} that the model was not trained on"
            )
        if not encoded:
            numbers = self._numbers[:, [position[column] for column in wanted]]
        else:
            numbers = np.column_stack([self._numbers[:, position[c]] if c in position else encoded[c] for c in wanted])
        self._check(numbers, wanted)
        return numbers, tuple(wanted)

    def _present(self, name: str, cells: Sequence[str | None]) -> Iterator[str]:
        for i, cell in enumerate(cells):
            if cell is None:
                raise self._missing(i, name)
            yield cell

    def _categories(self, name: str, cells: Sequence[str | None]) -> list[str]:
        found = sorted({*self._present(name, cells)})
        if len(found) > max(_MOST_CATEGORIES, len(cells) / 2):
            raise self._error(
                f"has {len(found)} different texts in the column {name!r} of {len(cells)} samples, which look like "
                "names rather than categories; drop it or name it as ids"
            )
        return found

    def _check(self, numbers: Matrix, names: Sequence[str]) -> None:
        """Refuse what no method can use."""
        for what, count in zip(("samples", "features"), numbers.shape, strict=True):
            if count == 0:
                raise self._error(f"has no {what} (shape {numbers.shape[0]} x {numbers.shape[1]})")
        for is_bad, refuse in ((np.isnan, self._missing), (np.isinf, self._infinite)):
            found = _first(numbers, is_bad)
            if found is not None:
                raise refuse(found[0], names[found[1]])

    def _error(self, what: str) -> InputError:
        return InputError(f"{self._source.where} {what}")

    def _missing(self, i: int, column: str) -> InputError:
        return self._error(
            f"has no value in row {self._rows[i]}, column {column!r}; fill it in, or drop that sample or column"
        )

    def _infinite(self, i: int, column: str) -> InputError:
        return self._error(
            f"has infinity (inf) or a number too large in row {self._rows[i]}, column {column!r}; correct it, or drop "
            "that sample or column"
        )

    def _holds_text(self, name: str, cells: Sequence[str | None]) -> InputError:
        present = [(i, cell) for i, cell in enumerate(cells) if cell is not None]
        words = [(i, cell) for i, cell in present if not _is_number(cell)]
        i, cell = (words or present)[0]
        where = f"has text in the column {name!r} ({cell!r} in row {self._rows[i]})"
        if not words:
            return self._error(f"{where}, although it looks like numbers; store it as numbers")
        if "," in cell and _is_number(cell.replace(",", ".")):
            return self._error(f"{where}; write numbers with a decimal point")
        if len(words) < len(present):
            return self._error(f"{where}, which otherwise holds numbers; correct or drop it")
        return self._error(
            f"{where}; encode it as numbers, drop it, name it as ids, or ask for one column per category "
            "(categories 'onehot')"
        )

    def _lacks(self, column: str) -> InputError:
        if column in self._texts:
            return self._holds_text(column, self._texts[column])
        if column in self._others:
            return self._error(f"has the column {column!r} of {self._others[column]}, but the model needs numbers")
        return self._error(f"lacks the column {column!r} that the model was trained on")


def check_numbers(source: Source, table: Table) -> None:
    """Refuse arrays that are no tables of real numbers."""
    ndim, kind = table.numbers.ndim, table.numbers.dtype.kind
    if ndim != 2:
        raise InputError(f"{source.where} is {ndim}-D and must be 2-D, samples by features")
    if kind not in "fiub":
        what = {"U": "text", "S": "text", "c": "complex numbers"}.get(kind, f"values of type {table.numbers.dtype}")
        raise InputError(f"{source.where} holds {what}; a view needs real numbers")


def listing(what: str, names: Sequence[str], plural: str | None = None) -> str:
    """Name a few things, and count the rest."""
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"the {what} {shown}" if len(names) == 1 else f"the {len(names)} {plural or what + 's'} {shown}"


def _is(category: str, cells: Iterable[str | None]) -> Array:
    return np.array([cell == category for cell in cells], dtype=np.float64)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _n_missing(numbers: Matrix) -> Array:
    """How many values each column lacks."""
    if isinstance(numbers, sp.csr_array):
        missing = np.isnan(numbers.data) if numbers.dtype.kind == "f" else np.zeros(numbers.nnz, bool)
        n_missing: Array = np.bincount(numbers.indices[missing], minlength=numbers.shape[1])
        return n_missing
    return np.isnan(numbers).sum(axis=0) if numbers.shape[0] else np.full(numbers.shape[1], -1)


def _first(numbers: Matrix, is_bad: Callable[[Any], Array]) -> tuple[int, int] | None:
    """Row and column of the first bad value."""
    if isinstance(numbers, sp.csr_array):
        at = np.flatnonzero(is_bad(numbers.data))
        if not len(at):
            return None
        return int(np.searchsorted(numbers.indptr, at[0], side="right")) - 1, int(numbers.indices[at[0]])
    bad = is_bad(numbers)
    if not bad.any():
        return None
    i, j = np.unravel_index(int(bad.argmax()), bad.shape)
    return int(i), int(j)


def _is_constant(numbers: Matrix) -> Array:
    if isinstance(numbers, sp.csr_array):
        same: Array = (numbers.max(axis=0) - numbers.min(axis=0)).toarray().ravel() == 0
    else:
        same = (numbers == numbers[:1]).all(axis=0)
    return same
