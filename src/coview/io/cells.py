"""Tables of text cells: names of columns and rows, decimal marks, and which columns are numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from coview.errors import InputError
from coview.io.table import EXACT, STRING_BYTES, TOO_LARGE, AsStrings, InputFile, RawTable, check_names, is_counting

CellRows = Generator[list[str], None, None]  # rows of equal widths; only the first may lack the name of the row names

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_MISSING = {"", "na", "n/a", "#n/a", "nan", "null"}
_BOOLEANS = {"true": "1", "false": "0"}
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234 but neither 0,123 nor 1,5
_HEADER_NOTES = {
    True: "the first line numbers the columns and is read as column names",
    False: "the first line contains numbers and is read as a sample; the columns have no names",
}
_LONGEST_LINE = 2**28  # characters; a line without an end must not fill the memory
_LONG_LINE = 2**20  # characters, from which the memory for the cells of the line is counted
_BLOCK_ROWS = 4096
_BLOCK_CELLS = 2**20
_SHARED_STRINGS = 10_000  # different strings of a column up to which equal cells are one string


def text_lines(source: InputFile) -> Generator[str, None, None]:
    """Yield the lines of a text file, with their ends."""
    with TextIOWrapper(source.opened(), encoding="utf-8-sig", newline="") as text:
        try:
            for number, line in enumerate(iter(partial(text.readline, _LONGEST_LINE), ""), start=1):
                if len(line) == _LONGEST_LINE:
                    raise InputError(f"{source.where} has a line {number} of more than {_LONGEST_LINE} characters")
                if len(line) > _LONG_LINE:
                    n_cells = 1 + max(map(line.count, DELIMITERS))
                    source.require_memory((n_cells,), STRING_BYTES, text_bytes=len(line))
                yield line
        except UnicodeDecodeError:
            with source.opened() as file:
                decoded = (line.decode("utf-8", errors="replace") for line in file)
                bad = next(i for i, line in enumerate(decoded, start=1) if "\ufffd" in line)
            raise InputError(
                f"{source.where} is not UTF-8 in line {bad}; save it as UTF-8 (it may be Latin-1 or Windows-1252, or "
                "mix encodings)"
            ) from None


def from_cells(
    source: InputFile,
    open_rows: Callable[[], CellRows],
    as_strings: AsStrings,
    *,
    header: bool | None = None,
    decimal: str | None = ".",
) -> RawTable:
    """Return rows of cells as a table.

    `open_rows` reads the rows from the beginning. `header` states whether the first row has the column names; None
    derives it from its cells. `decimal` is the decimal mark; None derives it from the numbers.
    """
    late: set[int] = set()  # columns with strings after blocks of numbers
    while True:
        try:
            with closing(open_rows()) as rows:
                return _read_rows(source, rows, as_strings, header, decimal, late)
        except _StringsAfterNumbers as found:
            late |= found.args[0]


class _StringsAfterNumbers(Exception):  # noqa: N818 - a reason to read again, not an error
    """The argument is the set of columns."""


def _read_rows(
    source: InputFile, rows: CellRows, as_strings: AsStrings, header: bool | None, decimal: str | None, late: set[int]
) -> RawTable:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source.where} is empty; it needs a line of column names and a line for each sample")
    notes = []
    if header is None:
        header = _is_header(first, decimal)
        if as_numbers(first, decimal) is not None:
            notes.append(_HEADER_NOTES[header])
    below = rows if header else chain([first], rows)
    second = next(below, None)
    if second is None:
        raise InputError(f"{source.where} has column names but no samples")
    # R writes no column name for row names, pandas an empty one.
    above = ["", *first] if header and len(second) == len(first) + 1 else first
    labelled = header and len(above) > 1 and not above[0].strip()
    names = [(name.strip() if header else "") or f"column{i}" for i, name in enumerate(above)]
    check_names(source.where, names)
    given = {i for i, name in enumerate(names) if as_strings(name)} | ({0} if labelled else set())
    columns = _Columns(source, names, late | given, _DecimalMarks(decimal))
    below = chain([second], below)
    # Cells of one block are strings, which take far more memory than numbers.
    size = max(min(_BLOCK_ROWS, _BLOCK_CELLS // len(names)), 1)
    while block := list(islice(below, size)):
        columns.add(block)
    return columns.table(header, labelled, notes + columns.note_on_spaces(given))


class _DecimalMarks:
    """The decimal marks of the numbers read so far; the first number with each is kept, with its column."""

    def __init__(self, decimal: str | None) -> None:
        self._decimal = decimal
        self._point: tuple[str, str] | None = None
        self._comma: tuple[str, str] | None = None
        self._comma_is_decimal = decimal == ","  # it may separate thousands otherwise

    def numbers(self, cells: Sequence[str], column: str) -> NDArray[np.float64] | None:
        """Return the cells as numbers, or None if they contain strings."""
        values = as_numbers(cells, self._decimal)
        if values is None or self._decimal == ".":
            return values
        joined = "".join(cells)
        if self._point is None and "." in joined:
            self._point = next(cell.strip() for cell in cells if "." in cell), column
        if "," in joined and not (self._comma and self._comma_is_decimal):
            with_comma = [cell.strip() for cell in cells if "," in cell]
            self._comma = self._comma or (with_comma[0], column)
            self._comma_is_decimal |= not all(map(_MAYBE_THOUSANDS.fullmatch, with_comma))
        return values

    def note(self, source: InputFile) -> list[str]:
        """Return a note on decimal commas; marks that contradict each other are refused."""
        point = "a decimal point ({!r} in the column {!r})".format(*self._point) if self._point else None
        if self._decimal == ",":
            if point is not None:
                raise InputError(
                    f"{source.where} has numbers with {point}, but the decimal mark is set to a comma; correct them, "
                    "or leave out the decimal mark (decimal=',')"
                )
            return []
        if self._comma is None:
            return []
        cell, column = self._comma
        if point is not None:
            raise InputError(
                f"{source.where} has numbers with a comma ({cell!r} in the column {column!r}) and with {point}; write "
                "all of them with one decimal mark and without separators of thousands, or read cells with commas as "
                "strings (decimal='.')"
            )
        if not self._comma_is_decimal:
            raise InputError(
                f"{source.where} has numbers such as {cell!r} in the column {column!r}, whose comma may be a "
                "decimal mark or separate thousands; state that it is a decimal mark (decimal=','), or remove the "
                "separators"
            )
        return [f"commas are read as decimal marks, as in {cell!r}"]


class _Columns:
    """The columns read so far: blocks of numbers, or all cells of columns of strings."""

    def __init__(self, source: InputFile, names: list[str], strings: set[int], marks: _DecimalMarks) -> None:
        self._source, self._names, self._marks = source, names, marks
        self._strings: dict[int, list[str]] = {i: [] for i in strings}
        self._numbers: dict[int, list[NDArray[np.float64]]] = {i: [] for i in range(len(names)) if i not in strings}
        self._known: dict[int, dict[str, str]] = {i: {} for i in range(len(names))}  # strings of each column
        self._too_large: set[int] = set()
        self._n_rows = 0
        self._text_bytes = 0

    def add(self, block: list[list[str]]) -> None:
        # Concatenating the blocks takes as much memory again, and no header states their number.
        self._source.require_memory((self._n_rows + len(block), len(self._names)), text_bytes=self._text_bytes)
        late = set()
        for i, cells in enumerate(zip(*block, strict=True)):
            if i in self._strings:
                self._strings[i].extend(self._shared(i, cells))
                continue
            values = self._marks.numbers(cells, self._names[i])
            if values is not None:
                self._numbers[i].append(values)
                if _any_too_large(values, cells):
                    self._too_large.add(i)
            elif self._n_rows:
                late.add(i)
            else:
                del self._numbers[i]
                self._strings[i] = self._shared(i, cells)
        if late:
            raise _StringsAfterNumbers(late)
        self._n_rows += len(block)

    def _shared(self, i: int, cells: Sequence[str]) -> list[str]:
        """Return the cells, equal ones as one string, and count the memory of the others."""
        known = self._known[i]
        before = len(known)
        if before <= _SHARED_STRINGS:
            cells = [known.setdefault(cell, cell) for cell in cells]
            added: Sequence[str] = [*islice(known, before, None)]
        else:
            added = cells
        self._text_bytes += STRING_BYTES * len(added) + sum(map(len, added))
        return list(cells)

    def note_on_spaces(self, strings: set[int]) -> list[str]:
        spaced = [cell for i in sorted(strings) for cell in self._strings[i] if cell.strip() not in ("", cell)]
        return [f"removed the spaces around {len(spaced)} ids or categories, as in {spaced[0]!r}"] if spaced else []

    def table(self, header: bool, labelled: bool, notes: list[str]) -> RawTable:
        names = self._names
        row_names = tuple(cell.strip() for cell in self._strings.pop(0)) if labelled else None
        kept = [i for i in self._numbers if i not in self._too_large]
        numbers = np.empty((self._n_rows, len(kept)))
        for j, i in enumerate(kept):
            np.concatenate(self._numbers.pop(i), out=numbers[:, j])
        return RawTable(
            numbers,
            tuple(names[i] for i in kept) if header else None,
            {names[i]: _cells_without_spaces(cells) for i, cells in sorted(self._strings.items())},
            {names[i]: TOO_LARGE for i in sorted(self._too_large)},
            row_names,
            (*notes, *self._marks.note(self._source)),
        )


def as_numbers(cells: Sequence[str], decimal: str | None = ".") -> NDArray[np.float64] | None:
    """Return the cells as numbers, NaN for missing ones, or None if they contain strings.

    Unless `decimal` is a point, numbers may have a decimal comma.
    """
    joined = "".join(cells)
    if "_" in joined or not joined.isascii():  # Python reads 1_2 as 12, but here it is a name
        return None
    if decimal != "." and "," in joined:
        cells = [cell.replace(",", ".") for cell in cells]
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        pass
    plain = [cell.strip().lower() for cell in cells]
    try:
        return np.array(["nan" if cell in _MISSING else _BOOLEANS.get(cell, cell) for cell in plain], dtype=np.float64)
    except ValueError:
        return None


def _any_too_large(values: NDArray[np.float64], cells: Sequence[str]) -> bool:
    return any(cells[i].strip().lstrip("+-").isdigit() for i in np.flatnonzero(np.abs(values) > EXACT).tolist())


def _cells_without_spaces(cells: Sequence[str]) -> list[str | None]:
    """Return the cells as `_cell` does; equal ones stay one string."""
    known = {cell: _cell(cell) for cell in {*cells}}
    return [known[cell] for cell in cells]


def _cell(text: str) -> str | None:
    text = text.strip()
    return None if text.lower() in _MISSING else text


def _is_header(row: list[str], decimal: str | None) -> bool:
    """Return whether the first line has column names; 0, 1, 2, ... or 1, 2, 3, ... are names, other numbers data."""
    if as_numbers(row, decimal) is None or all(_cell(cell) is None for cell in row):
        return True
    names = row if row[0].strip() else row[1:]  # row names have no column name
    return len(row) > 1 and is_counting([name.strip() for name in names])
