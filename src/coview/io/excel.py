"""Sheets of Excel workbooks (.xlsx), read with openpyxl; formulas have the values that Excel stored."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any
from zipfile import ZipFile

from coview.base.extras import load_extra
from coview.errors import InputError
from coview.io.cells import CellRows, from_cells
from coview.io.table import MOST_XML, AsStrings, InputFile, RawTable


def sheets_of_xlsx(source: InputFile) -> dict[str, str]:
    """Return the names of the sheets that have any cell, with their stated ranges."""
    with _opened_workbook(source) as book:
        return _filled_sheets(source, book)


def read_xlsx(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the selected sheet, or the only one that has any cell, by the rules of text tables."""
    with _opened_workbook(source) as book:
        sheet = book[source.choose(_filled_sheets(source, book), "sheet")]
        return from_cells(source, partial(_sheet_rows, source, sheet), as_strings)


@contextmanager
def _opened_workbook(source: InputFile) -> Iterator[Any]:
    openpyxl = load_extra("openpyxl", "io", "reading .xlsx files")
    with source.path.open("rb") as file:
        with ZipFile(file) as archive:
            members = [member for member in archive.infolist() if member.filename.endswith(".xml")]  # not pictures
            source.check_expansion(sum(member.file_size for member in members), MOST_XML)
            for member in members:
                if not member.filename.startswith("xl/worksheets/"):  # which are read row by row
                    source.require_memory((member.file_size,), 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on styles, validation and dates, which are not used
            with closing(openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)) as book:
                yield book


def _filled_sheets(source: InputFile, book: Any) -> dict[str, str]:
    found = {}
    for sheet in book.worksheets:
        stated = "" if sheet.max_row is None else f"({sheet.calculate_dimension()})"
        with closing(_sheet_rows(source, sheet)) as rows:
            if next(rows, None) is not None:
                found[sheet.title] = stated
    return found


def _sheet_rows(source: InputFile, sheet: Any) -> CellRows:
    """Yield the rows that are not empty, as wide as the first."""
    sheet.reset_dimensions()  # a stated range may be wrong
    width = 0
    for number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = list(map(_cell_as_text, values))
        while cells and not cells[-1].strip():
            cells.pop()
        width = width or len(cells)
        if len(cells) > width:
            raise InputError(
                f"{source.where} has {len(cells)} cells in row {number} of the sheet {sheet.title!r}, but {width} in "
                "its first row; name every column, and put one table on a sheet"
            )
        if cells:
            yield cells + [""] * (width - len(cells))


def _cell_as_text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
