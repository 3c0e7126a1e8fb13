"""Matrix Market files, read by NumPy: SciPy's reader crashes on damaged ones, and reads '1,5' as 1."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BufferedReader
from itertools import chain, islice

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.errors import InputError
from coview.io.arrays import from_array
from coview.io.isolate import require_array
from coview.io.table import EXACT, TOO_LARGE, AsStrings, InputFile, RawTable

_LONGEST_LINE = 2**16
_MOST_EMPTY_LINES = 10**6  # a small compressed file may have thousands of millions
_LAYOUTS = ("coordinate", "array")
_VALUES = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read_matrix_market(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return a dense array, or coordinates as a sparse matrix."""
    with source.opened() as raw, BufferedReader(raw) as file:  # type: ignore[type-var] # gzip alone reads lines slowly
        words = file.readline(_LONGEST_LINE).decode("latin-1").lower().split()
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise InputError(
                f"{source.where} is not a Matrix Market file; expected a first line that begins with '%%MatrixMarket'"
            )
        layout, values, symmetry = words[2:]
        if layout not in _LAYOUTS or values not in _VALUES or symmetry not in _SYMMETRIES:
            raise InputError(f"{source.where} is a {' '.join(words[2:])} matrix; save it as real and general")
        # A longer line becomes several, which do not have the right number of values.
        lines = iter(partial(file.readline, _LONGEST_LINE), b"")
        header = (line for line in islice(lines, _MOST_EMPTY_LINES) if line.split(b"%")[0].strip())
        sizes = tuple(int(word) if word.isdigit() else -1 for word in next(header, b"").split())
        if len(sizes) != 2 + (layout == "coordinate") or min(sizes) < 0:
            raise InputError(f"{source.where} has no line of integers that gives its size; it may be truncated")
        n_rows, n_columns, n_lines = (*sizes, sizes[0] * sizes[1])[:3]
        stored = source.path.stat().st_size
        if layout == "array":
            if symmetry != "general":
                raise InputError(f"{source.where} stores half of a symmetric array; save all of it, or coordinates")
            require_array(source, sizes, 8, stored)
            return from_array(source, _numbers(source, lines, n_lines, 1, values).reshape(sizes, order="F"))
        require_array(source, (n_rows + 3 * n_lines,), 8, stored)
        source.require_columns(n_columns)
        body = _numbers(source, lines, n_lines, 2 if values == "pattern" else 3, values)
    places = body[:, :2]
    if not ((places >= 1) & (places <= (n_rows, n_columns)) & (places == np.floor(places))).all():
        raise InputError(f"{source.where} has entries outside its {n_rows} rows and {n_columns} columns")
    rows, columns = places.T.astype(np.int64) - 1
    entries = np.ones(n_lines) if values == "pattern" else body[:, 2]
    if symmetry != "general":
        below = rows != columns
        sign = -1 if symmetry == "skew-symmetric" else 1
        rows, columns = np.append(rows, columns[below]), np.append(columns, rows[below])
        entries = np.append(entries, sign * entries[below])
    return from_array(source, sp.coo_array((entries, (rows, columns)), shape=(n_rows, n_columns)))


def _numbers(source: InputFile, lines: Iterator[bytes], n_lines: int, width: int, values: str) -> NDArray[np.float64]:
    """Return the numbers below the header, which states the number of lines."""
    start = [b"0 " * width]  # NumPy warns of files without lines
    try:
        body = np.loadtxt(chain(start, islice(lines, n_lines + _MOST_EMPTY_LINES)), comments="%", ndmin=2)[1:]
    except ValueError as error:
        why = str(error).partition(" at row ")[0]
        raise InputError(f"{source.where} has a line that is not {width} numbers ({why})") from None
    if len(body) != n_lines:
        count = "more" if len(body) > n_lines else len(body)
        raise InputError(f"{source.where} has {count} lines of {width} numbers; its header states {n_lines} of {width}")
    if "integer" in values and np.abs(body).max(initial=0) > EXACT:
        raise InputError(f"{source.where} has {TOO_LARGE}; drop them")
    return body
