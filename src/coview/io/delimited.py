"""CSV and TSV: encoding, delimiter and lines; a delimiter that differs from that of the ending is detected."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain, islice

from coview.errors import InputError
from coview.io.cells import DELIMITERS, CellRows, as_numbers, from_cells, text_lines
from coview.io.table import AsStrings, InputFile, RawTable, is_counting

_QUOTED = r'(?:^|(?<=,)) *("[^"]*(?:""[^"]*)*(?:"(?=[,\r\n]|\Z)|\Z))'  # a cell, with the delimiter as a comma
_SAMPLED_LINES = 20  # from which the delimiter is detected
_SAMPLED_CHARACTERS = 2**22  # after which no further line is sampled


def read_delimited(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the table of a CSV or TSV file."""
    _check_encoding(source)
    with closing(text_lines(source)) as lines:
        start = _sampled(filter(str.strip, lines))
    expected = "\t" if source.ending == ".tsv" else ","
    delimiter = _detect_delimiter(source, start, expected)
    table = from_cells(source, partial(_line_rows, source, delimiter), as_strings, decimal=source.decimal)
    if delimiter == expected:
        return table
    return replace(table, notes=(f"the columns are separated by {DELIMITERS[delimiter]}", *table.notes))


def _sampled(lines: Iterator[str]) -> list[str]:
    """Return the first lines: at least two, if there are so many, and few if they are long."""
    start: list[str] = []
    for line in islice(lines, _SAMPLED_LINES):
        start.append(line)
        if len(start) > 1 and sum(map(len, start)) > _SAMPLED_CHARACTERS:
            break
    return start


def _line_rows(source: InputFile, delimiter: str) -> CellRows:
    """Yield the lines that are not empty, which have equal widths; the first may lack one column name."""
    with closing(text_lines(source)) as lines:
        start = islice(filter(str.strip, lines), 2)
        # Spaces before quoted cells do not belong to them. Others are kept, because a note says that ids lose theirs.
        quoted = re.compile(_QUOTED.replace(",", re.escape(delimiter)))
        plain = (quoted.sub(r"\1", line) if ' "' in line else line for line in chain(start, lines))
        reader = csv.reader(plain, delimiter=delimiter, strict=True)
        width = 0
        try:
            for i, row in enumerate(filter(None, reader)):
                if i == 0 or (i == 1 and len(row) == width + 1):
                    width = len(row)
                if len(row) != width:
                    if i == 1 and width == 1:
                        raise InputError(
                            f"{source.where} has 1 column in its first line and {len(row)} in line {reader.line_num}; "
                            "delete lines above the column names"
                        )
                    raise InputError(
                        f"{source.where} has {len(row)} columns in line {reader.line_num}; expected {width} as in the "
                        "lines before"
                    )
                yield row
        except csv.Error as error:
            raise InputError(f"{source.where}, line {reader.line_num}: {error}; check its quotes") from None


def _check_encoding(source: InputFile) -> None:
    with source.opened() as file:
        start = file.read(4096)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{source.where} is UTF-16; save it as UTF-8")
    if b"\0" in start:
        raise InputError(f"{source.where} is not a text file; give it the ending of its format")


def _detect_delimiter(source: InputFile, start: list[str], expected: str) -> str:
    """Return the delimiter that gives the first lines equal widths, preferably that of the ending."""
    tables = {delimiter: rows for delimiter in DELIMITERS if (rows := _split(start, delimiter))}
    # The name of the row names is rarely left out, so that a string with a delimiter below one name is one cell.
    named = {delimiter: rows for delimiter, rows in tables.items() if len(rows[0]) == len(rows[-1])}
    tables = named or {
        delimiter: rows
        for delimiter, rows in tables.items()
        if delimiter == expected or _has_numbers(rows, source.decimal)
    }
    if not tables:
        if start and expected not in start[0]:
            _refuse_spaces(source, start, expected)
        return expected
    if list(tables) == [","] and len(tables[","][0]) == 1:
        return _comma_or_one_column(source, tables[","])
    if len(tables) == 1:
        return next(iter(tables))
    # 1,5;2,5 has equal widths with either delimiter, but numbers with one only.
    numeric = [delimiter for delimiter, rows in tables.items() if _has_numbers(rows, source.decimal)]
    if len(numeric) == 2 and "," in numeric and source.decimal == ",":
        numeric.remove(",")
    if len(numeric) == 1:
        return numeric[0]
    if not numeric and expected in tables:
        return expected
    listed = " or by ".join(DELIMITERS[delimiter] for delimiter in numeric or tables)
    raise InputError(
        f"{source.where} may be separated by {listed}; state the decimal mark (decimal=',' or decimal='.'), or save "
        "it as .tsv"
    )


def _split(lines: list[str], delimiter: str) -> list[list[str]]:
    """Return the cells, or no rows unless all have the same width of at least two; the first may lack one name."""
    try:
        rows = list(filter(None, csv.reader(lines, delimiter=delimiter, skipinitialspace=True)))
    except csv.Error:
        return []
    if len(lines) == _SAMPLED_LINES and len(rows) > 2:
        rows.pop()  # a quoted cell may continue on the next line
    widths = {len(row) for row in rows[1:] or rows}
    width = max(widths, default=0)
    return rows if len(widths) == 1 and width > 1 and len(rows[0]) in (width, width - 1) else []


def _has_numbers(rows: list[list[str]], decimal: str | None) -> bool:
    """Return whether all cells are numbers, except in the first row and column."""
    cells = [cell for row in rows[1:] or rows for cell in row[1:]]
    return as_numbers(cells, decimal) is not None


def _comma_or_one_column(source: InputFile, rows: list[list[str]]) -> str:
    """Return the delimiter of lines such as 1,5 below one name: a row name and a number, or a decimal comma."""
    labels = [row[0] for row in rows[1:]]
    if source.decimal == "." or as_numbers([cell for row in rows[1:] for cell in row]) is None:
        return ","
    if source.decimal == ",":
        return ";"
    if is_counting(labels):  # as R writes them
        return ","
    raise InputError(
        f"{source.where} has one column name and lines such as {','.join(rows[1])!r}, which may be a row name and a "
        "number, or a number with a decimal comma; state the decimal mark (decimal=',' or decimal='.')"
    )


def _refuse_spaces(source: InputFile, start: list[str], expected: str) -> None:
    """Refuse a table that is separated by spaces; words are, too, so numbers must follow what may be an id."""
    widths = {len(line.split()) for line in start[:2]}
    words = start[-1].split()
    if len(widths) == 1 and len(words) > 1 and as_numbers(words[1:] if len(words) > 2 else words) is not None:
        raise InputError(
            f"{source.where} is separated by spaces, but {source.ending} means {DELIMITERS[expected]}; save it with "
            f"{DELIMITERS[expected]}"
        )
