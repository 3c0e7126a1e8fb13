"""Matrix Market files, read by NumPy because SciPy's compiled reader can crash on damaged ones."""

from __future__ import annotations

from functools import partial
from typing import IO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.errors import InputError
from coview.io.arrays import from_array
from coview.io.table import EXACT, TOO_LARGE, AsStrings, InputFile, RawTable

_LONGEST_LINE = 2**16
_BLOCK_BYTES = 2**22


def read_matrix_market(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return a dense array, or coordinates as a sparse matrix."""
    with source.opened() as file:
        layout, values, symmetry = _banner(source, file)
        shape = _header_sizes(source, file, 3 if layout == "coordinate" else 2)
        if layout == "array":
            if symmetry != "general":
                raise InputError(f"{source.where} stores half of a symmetric array; save all of it, or coordinates")
            source.require_memory(shape, 16)
            return from_array(source, _body(source, file, values, shape[0] * shape[1], 1).reshape(shape, order="F"))
        n_rows, n_columns, n_entries = shape
        source.require_memory((n_rows + 6 * n_entries,))
        source.require_columns(n_columns)
        body = _body(source, file, values, n_entries, 2 if values == "pattern" else 3)
    places = body[:, :2]
    if not ((places >= 1) & (places <= (n_rows, n_columns)) & (places == np.floor(places))).all():
        raise InputError(f"{source.where} has entries outside its {n_rows} rows and {n_columns} columns")
    rows, columns = places.T.astype(np.int64) - 1
    entries = np.ones(n_entries) if values == "pattern" else body[:, 2]
    if symmetry != "general":
        below = rows != columns
        sign = -1 if symmetry == "skew-symmetric" else 1
        rows, columns = np.append(rows, columns[below]), np.append(columns, rows[below])
        entries = np.append(entries, sign * entries[below])
    return from_array(source, sp.coo_array((entries, (rows, columns)), shape=(n_rows, n_columns)))


def _banner(source: InputFile, file: IO[bytes]) -> tuple[str, str, str]:
    words = file.readline(_LONGEST_LINE).decode("latin-1").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError(
            f"{source.where} is not a Matrix Market file; expected a first line that begins with '%%MatrixMarket'"
        )
    layout, values, symmetry = words[2:]
    if (
        layout not in ("coordinate", "array")
        or values not in ("real", "double", "integer", "unsigned-integer", "pattern")
        or symmetry not in ("general", "symmetric", "skew-symmetric")
    ):
        raise InputError(f"{source.where} is a {' '.join(words[2:])} matrix; save it as real and general")
    return layout, values, symmetry


def _header_sizes(source: InputFile, file: IO[bytes], count: int) -> tuple[int, ...]:
    lines = (line for line in iter(partial(file.readline, _LONGEST_LINE), b"") if line.split(b"%")[0].strip())
    sizes = tuple(int(word) if word.isdigit() else -1 for word in next(lines, b"").split())
    if len(sizes) != count or min(sizes) < 0:
        raise InputError(f"{source.where} has no line of {count} integers that gives its size; it may be truncated")
    return sizes


def _body(source: InputFile, file: IO[bytes], values: str, n_lines: int, width: int) -> NDArray[np.float64]:
    """Return the numbers below the header, which states the number of lines."""
    body, filled = np.empty((n_lines, width)), 0
    # Blocks of lines, because reading a compressed file line by line takes longer than all other work.
    while text := file.read(_BLOCK_BYTES) + file.readline(_LONGEST_LINE):
        block = _numbers(source, text, width)
        end = filled + len(block)
        if end > n_lines or block.shape[1] != width:
            raise _wrong_size(source, "more" if end > n_lines else str(end), block.shape[1], (n_lines, width))
        body[filled:end], filled = block, end
    if filled < n_lines:
        raise _wrong_size(source, str(filled), width, (n_lines, width))
    if "integer" in values and np.abs(body).max(initial=0) > EXACT:
        raise InputError(f"{source.where} has {TOO_LARGE}; drop them")
    return body


def _numbers(source: InputFile, text: bytes, width: int) -> NDArray[np.float64]:
    """Return the numbers of some lines, except comments and empty lines."""
    lines = [line for line in text.splitlines() if line.split(b"%", 1)[0].strip()]
    if max(map(len, lines), default=0) >= _LONGEST_LINE:
        raise InputError(f"{source.where} has a line of more than {_LONGEST_LINE} characters; it may be damaged")
    try:
        return np.loadtxt(lines, comments="%", ndmin=2, dtype=np.float64) if lines else np.empty((0, width))
    except ValueError as error:
        raise InputError(f"{source.where} contains a value that is not a number ({error})") from None


def _wrong_size(source: InputFile, n_lines: str, width: int, stated: tuple[int, int]) -> InputError:
    return InputError(
        f"{source.where} has {n_lines} lines of {width} numbers; its header states {stated[0]} of {stated[1]}"
    )
