"""Sheets of Excel workbooks (.xlsx), read with python-calamine; formulas have the values that Excel stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any
from zipfile import ZipFile

from coview.base.extras import load_extra
from coview.errors import InputError
from coview.io.cells import CellRows, from_cells
from coview.io.table import EXACT, MOST_XML, AsStrings, InputFile, RawTable, shape_text

_CELL_BYTES = 80  # of a number in calamine (measured: 73), also of the empty ones between the first and the last cell
_MOST_ROWS, _MOST_COLUMNS = 2**20, 2**14  # of a sheet of Excel
# A row or cell with its attributes, such as <row r="2"> and <c r="B2">, or the value of a cell if it is an error.
_TAGS = re.compile(rb"""<(?:\w{1,9}:)?(?:(row|c)((?:\s[^<>"']*(?:"[^"]*"|'[^']*'))*)\s*(/?)>|v>(#[^<]{1,30}))""")
_PLACE = re.compile(rb"""\sr\s*=\s*["']([A-Za-z]*)(\d+)["']""")
_LONGEST_TAG = 2**12  # bytes


def sheets_of_xlsx(source: InputFile) -> dict[str, str]:
    """Return the names of the sheets that have any cell, with their shapes."""
    with _opened_workbook(source) as (book, _):
        return _shapes(book)


def read_xlsx(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the selected sheet, or the only one that has any cell, by the rules of text tables."""
    with _opened_workbook(source) as (book, errors):
        sheet = book.get_sheet_by_name(source.choose(_shapes(book), "sheet"))
        return from_cells(source, partial(_sheet_rows, source, sheet, errors), as_strings)


@contextmanager
def _opened_workbook(source: InputFile) -> Iterator[tuple[Any, dict[tuple[int, int], str]]]:
    """Yield the workbook, and the errors of formulas by their places in any of its sheets."""
    calamine = load_extra("python_calamine", "io", "reading .xlsx files")
    errors: dict[tuple[int, int], str] = {}
    # calamine ends the process if the memory does not suffice.
    with ZipFile(source.path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith((".xml", ".rels"))]
        source.check_expansion(sum(member.file_size for member in members), MOST_XML)
        for member in members:
            source.require_memory((member.file_size,), 4)
            with archive.open(member) as file:
                n_rows, n_columns = _extent(file, errors)
            if member.filename.endswith("sharedStrings.xml"):  # text may look like places
                continue
            if n_rows > _MOST_ROWS or n_columns > _MOST_COLUMNS:
                raise InputError(f"{source.where} has a sheet with more cells than Excel allows; it may be damaged")
            source.require_memory((n_rows, n_columns), _CELL_BYTES)
    with calamine.load_workbook(source.path) as book:
        yield book, errors


def _extent(file: IO[bytes], errors: dict[tuple[int, int], str]) -> tuple[int, int]:
    """Return the last row and column with a cell, and enter cells with errors, which calamine takes for empty cells.

    Reading all of a file also compares its size with the stated one.
    """
    row = column = n_rows = n_columns = 0
    rest = b""
    while chunk := file.read(2**20):
        for kind, attributes, is_empty, error in _TAGS.findall(rest + chunk):
            if error:
                errors[row, column] = error.decode(errors="replace")
                continue
            place = _PLACE.search(attributes)
            letters, digits = place.groups() if place else (b"", b"")
            if kind == b"row":
                row, column = int(digits[:9] or row + 1), 0
                continue
            row, column = int(digits[:9] or row), _number_of_column(letters[:9]) or column + 1
            if not is_empty:
                n_rows, n_columns = max(row, n_rows), max(column, n_columns)
        rest = chunk[-_LONGEST_TAG:]
    return n_rows, n_columns


def _number_of_column(letters: bytes) -> int:
    """Return 1 for A and 27 for AA."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def _shapes(book: Any) -> dict[str, str]:
    sheets = map(book.get_sheet_by_name, book.sheet_names)
    return {sheet.name: shape_text((sheet.height, sheet.width)) for sheet in sheets if sheet.height}


def _sheet_rows(source: InputFile, sheet: Any, errors: dict[tuple[int, int], str]) -> CellRows:
    """Yield the rows that are not empty, as wide as the first."""
    width = 0
    for number, values in enumerate(sheet.iter_rows(), start=1):
        columns = enumerate(values, start=sheet.start[1] + 1)
        cells = [_cell_as_text(value) or errors.get((number, column), "") for column, value in columns]
        while cells and not cells[-1].strip():
            cells.pop()
        width = width or len(cells)
        if len(cells) > width:
            raise InputError(
                f"{source.where} has {len(cells)} cells in row {number} of the sheet {sheet.name!r}, but {width} in "
                "its first row; name every column, and put one table on a sheet"
            )
        if cells:
            yield cells + [""] * (width - len(cells))


def _cell_as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # Excel stores numbers as floats; 3 is the name of a column or sample, not 3.0.
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return str(int(value))
    return str(value)
