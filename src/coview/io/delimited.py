"""CSV and TSV, read by the csv module and NumPy in blocks of rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coview.errors import InputError
from coview.io.table import EXACT, TOO_LARGE, AsStrings, InputFile, RawTable, check_names, is_counting

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}
_MISSING = {"", "na", "n/a", "#n/a", "nan", "null"}
_BOOLEANS = {"true": "1", "false": "0"}
_HEADER_NOTES = {
    True: "the first line numbers the columns and is read as column names",
    False: "the first line contains numbers and is read as a sample; the columns have no names",
}
_BLOCK_ROWS = 4096
_LONGEST_LINE = 2**28  # characters; a line without an end must not fill the memory


def read_delimited(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the table of a CSV or TSV file."""
    _check_encoding(source)
    late: set[int] = set()  # columns with strings after blocks of numbers
    while True:
        try:
            with io.TextIOWrapper(source.opened(), encoding="utf-8-sig", newline="") as text:
                return _read_text(source, text, as_strings, late)
        except _StringsAfterNumbers as found:
            late |= found.args[0]


class _StringsAfterNumbers(Exception):  # noqa: N818 - a reason to read again, not an error
    """The argument is the set of columns."""


def _read_text(source: InputFile, text: io.TextIOWrapper, as_strings: AsStrings, late: set[int]) -> RawTable:
    delimiter = "\t" if source.ending == ".tsv" else ","
    lines = _lines(source, text)
    start = list(islice((line for line in lines if line.strip()), 2))
    _check_delimiter(source, start, delimiter)
    reader = csv.reader(chain(start, lines), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows = _filled_rows(source, reader)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source.where} is empty; it needs a line of column names and a line for each sample")
    header = _is_header(first)
    if not header:
        rows = chain([first], rows)
    second = next(rows, None)
    if second is None:
        raise InputError(f"{source.where} has column names but no samples")
    # R writes no column name for row names, pandas an empty one.
    above = ["", *first] if header and len(second) == len(first) + 1 else first
    labelled = header and len(above) > 1 and not above[0].strip()
    names = [(name.strip() if header else "") or f"column{i}" for i, name in enumerate(above)]
    check_names(source, names)
    strings = late | {i for i, name in enumerate(names) if as_strings(name)} | ({0} if labelled else set())
    columns = _Columns(source, len(names), strings)
    rows = chain([second], rows)
    while block := list(islice(rows, _BLOCK_ROWS)):
        columns.add(block)
    notes = () if _as_numbers(first) is None else (_HEADER_NOTES[header],)
    return columns.table(names, header, labelled, notes)


class _Columns:
    """The columns read so far: blocks of numbers, or all cells of columns of strings."""

    def __init__(self, source: InputFile, width: int, strings: set[int]) -> None:
        self._source = source
        self._strings: dict[int, list[str]] = {i: [] for i in strings}
        self._numbers: dict[int, list[NDArray[np.float64]]] = {i: [] for i in range(width) if i not in strings}
        self._too_large: set[int] = set()
        self._n_rows = 0

    def add(self, block: list[list[str]]) -> None:
        # Concatenating the blocks takes as much memory again, and no header states their number.
        self._source.require_memory((self._n_rows + len(block), len(self._numbers) + len(self._strings)))
        late = set()
        for i, cells in enumerate(zip(*block, strict=True)):
            if i in self._strings:
                self._strings[i].extend(cells)
                continue
            values = _as_numbers(cells)
            if values is not None:
                self._numbers[i].append(values)
                if _any_too_large(values, cells):
                    self._too_large.add(i)
            elif self._n_rows:
                late.add(i)
            else:
                del self._numbers[i]
                self._strings[i] = list(cells)
        if late:
            raise _StringsAfterNumbers(late)
        self._n_rows += len(block)

    def table(self, names: list[str], header: bool, labelled: bool, notes: tuple[str, ...]) -> RawTable:
        row_names = tuple(cell.strip() for cell in self._strings.pop(0)) if labelled else None
        kept = [i for i in self._numbers if i not in self._too_large]
        numbers = np.empty((self._n_rows, len(kept)))
        for j, i in enumerate(kept):
            np.concatenate(self._numbers.pop(i), out=numbers[:, j])
        return RawTable(
            numbers,
            tuple(names[i] for i in kept) if header else None,
            {names[i]: [_cell(cell) for cell in cells] for i, cells in sorted(self._strings.items())},
            {names[i]: TOO_LARGE for i in sorted(self._too_large)},
            row_names,
            notes,
        )


def _as_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the cells as numbers, NaN for missing ones, or None if they contain strings."""
    joined = "".join(cells)
    if "_" in joined or not joined.isascii():  # Python reads 1_2 as 12, but here it is a name
        return None
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


def _cell(text: str) -> str | None:
    text = text.strip()
    return None if text.lower() in _MISSING else text


def _is_header(row: list[str]) -> bool:
    """Return whether the first line has column names; 0, 1, 2, ... or 1, 2, 3, ... are names, other numbers data."""
    if _as_numbers(row) is None or all(_cell(cell) is None for cell in row):
        return True
    names = row if row[0].strip() else row[1:]  # row names have no column name
    return len(row) > 1 and is_counting(names)


def _filled_rows(source: InputFile, reader: Any) -> Iterator[list[str]]:
    """Yield the lines that are not empty, which have equal widths; the first may lack one column name."""
    width = 0
    try:
        for i, row in enumerate(filter(None, reader)):
            if i == 0 or (i == 1 and len(row) == width + 1):
                width = len(row)
            if len(row) != width:
                raise InputError(
                    f"{source.where} has {len(row)} columns in line {reader.line_num}; expected {width} as in the "
                    "lines before"
                )
            yield row
    except csv.Error as error:
        raise InputError(f"{source.where}, line {reader.line_num}: {error}; check its quotes") from None


def _lines(source: InputFile, text: io.TextIOWrapper) -> Iterator[str]:
    try:
        for number, line in enumerate(iter(partial(text.readline, _LONGEST_LINE), ""), start=1):
            if len(line) == _LONGEST_LINE:
                raise InputError(f"{source.where} has a line {number} of more than {_LONGEST_LINE} characters")
            yield line
    except UnicodeDecodeError:
        with source.opened() as file:
            decoded = (line.decode("utf-8", errors="replace") for line in file)
            bad = next(i for i, line in enumerate(decoded, start=1) if "\ufffd" in line)
        raise InputError(
            f"{source.where} is not UTF-8 in line {bad}; save it as UTF-8 (it may be Latin-1 or Windows-1252, or mix "
            "encodings)"
        ) from None


def _check_encoding(source: InputFile) -> None:
    with source.opened() as file:
        start = file.read(4096)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{source.where} is UTF-16; save it as UTF-8")
    if b"\0" in start:
        raise InputError(f"{source.where} is not a text file; give it the ending of its format")


def _check_delimiter(source: InputFile, start: list[str], delimiter: str) -> None:
    """Refuse a table whose lines have one field with the expected delimiter, but several with another."""
    if not start or _n_fields(start[0], delimiter) > 1:
        return
    for other, called in _DELIMITERS.items():
        counts = {_n_fields(line.strip(), other) for line in start}
        # Words are separated by spaces, too, so numbers must follow what may be an id.
        words = start[-1].split()
        if other == " " and _as_numbers(words[1:] if len(words) > 2 else words) is None:
            continue
        if other != delimiter and len(counts) == 1 and max(counts) > 1:
            expected = _DELIMITERS[delimiter]
            raise InputError(
                f"{source.where} is separated by {called}, but {source.ending} means {expected}; save it with "
                f"{expected}" + (", or rename it to .tsv" if other == "\t" else "")
            )


def _n_fields(line: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return 0
