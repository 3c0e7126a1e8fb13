"""What every format is read into: a table of numbers with names, and the columns that are not numbers."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import IO

from coview.base.runtime import require_memory
from coview.data.view import Matrix
from coview.errors import InputError

AsStrings = Callable[[str], bool]  # whether the column of this name is read as strings
EXACT = 2**53  # larger integers are rounded when they become floats
STRING_BYTES = 100  # of a string in Python and its place in lists, beside its text
# Contents of a compressed file for each byte of it. Text of a table with 0.3 % of its values different from 0 is 250
# times larger than its .gz file, sheets of zeros 15 times larger than their .xlsx file; zeros without end are 1,000.
MOST_TEXT, MOST_XML = 300, 100
_SMALL = 2**24  # bytes of contents that are read from any file
_COLUMN_BYTES = 200  # of a column without values: its name and its statistics, several times
TOO_LARGE = "integers beyond 2^53, which floats round"


@dataclass(frozen=True)
class RawTable:
    """The contents of one file, before columns and rows are selected."""

    numbers: Matrix  # samples by columns, dense or CSR; NaN if a value is missing
    names: tuple[str, ...] | None = None  # of the columns of numbers
    strings: Mapping[str, Sequence[str | None]] = field(default_factory=dict)  # None if a value is missing
    others: Mapping[str, str] = field(default_factory=dict)  # columns of other types, and their types
    row_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()  # what the reader assumed
    # Columns of strings that the file stores as categories, and the order of these, None if they have none.
    categories: Mapping[str, Sequence[str] | None] = field(default_factory=dict)

    @property
    def row_ids(self) -> tuple[str, ...] | None:
        """The row names, unless they only number the rows."""
        return None if self.row_names is None or is_counting(self.row_names) else self.row_names

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(self.names or ()), *self.strings, *self.others)

    def only(self, wanted: Callable[[str], bool]) -> RawTable:
        """Return the table with the wanted columns, and all columns without names."""
        numbers, names = self.numbers, self.names
        if names is not None and not all(map(wanted, names)):
            numbers, names = numbers[:, list(map(wanted, names))], tuple(filter(wanted, names))
        strings = {name: cells for name, cells in self.strings.items() if wanted(name)}
        others = {name: what for name, what in self.others.items() if wanted(name)}
        return replace(self, numbers=numbers, names=names, strings=strings, others=others)


@dataclass(frozen=True)
class InputFile:
    """A file with the selected variable and its purpose; `where` names it in messages."""

    what: str
    path: Path
    variable: str | None = None
    decimal: str | None = None  # the decimal mark of text tables; None to derive it from the numbers

    @property
    def where(self) -> str:
        return f"{self.what} ({self.path})"

    @property
    def ending(self) -> str:
        """The ending in lower case, without .gz."""
        return self.path.with_name(self.path.name.lower().removesuffix(".gz")).suffix

    @property
    def gzipped(self) -> bool:
        return self.path.name.lower().endswith(".gz")

    def opened(self) -> IO[bytes]:
        """Return the opened file, decompressed if it ends in .gz."""
        return gzip.open(self.path, "rb") if self.gzipped else self.path.open("rb")  # type: ignore[return-value]

    def check_expansion(self, n_bytes: int, most: int = MOST_TEXT) -> None:
        """Refuse contents of so many bytes if they are far larger than the compressed file."""
        if n_bytes > max(_SMALL, most * self.path.stat().st_size):
            raise InputError(
                f"{self.where} contains more than {most} times the bytes of the compressed file, as a damaged or "
                "malicious file may; if it is right, save it without compression or in a sparse format"
            )

    def check_text(self) -> None:
        """Refuse a compressed text that is far larger than its file, before any of its lines are read."""
        n_bytes = 0
        with self.opened() as file:
            while chunk := file.read(2**20):
                n_bytes += len(chunk)
                self.check_expansion(n_bytes)

    def choose(self, variables: Mapping[str, str], kind: str) -> str:
        """Return the selected variable, or the only one; `variables` has names and shapes, `kind` is their term."""
        listed = ", ".join(f"{name} {about}".strip() for name, about in variables.items())
        if self.variable is None and len(variables) == 1:
            return next(iter(variables))
        if not variables:
            raise InputError(f"{self.where} has no {kind}s")
        if self.variable is None:
            raise InputError(
                f"{self.where} has {len(variables)} {kind}s: {listed}; select one as {self.path.name}::NAME"
            )
        if self.variable not in variables:
            raise InputError(f"{self.where} has no {kind} {self.variable!r}; it has {listed}")
        return self.variable

    def require_memory(self, shape: Sequence[int], itemsize: int = 8, text_bytes: int = 0) -> None:
        """Refuse an array of this shape, before it is read, if it and its strings do not fit in memory."""
        size = " x ".join(map(str, shape))
        require_memory(
            prod(map(int, shape)) * itemsize + text_bytes,
            f"{self.where}: a table of {size} values",
            "select fewer columns or rows, use a sparse format, or read it in blocks with ViewsReader",
        )

    def require_columns(self, count: int) -> None:
        """Refuse more columns than fit in memory by their names and statistics; sparse files store none of these."""
        require_memory(
            int(count) * _COLUMN_BYTES,
            f"{self.where}: a table of {count} columns",
            "drop columns without values, or combine columns",
        )

    def refuse_variable(self) -> None:
        """Refuse the name of a variable if the format stores one table only."""
        if self.variable is not None:
            raise InputError(f"{self.where} is one table without variables; leave out '::{self.variable}'")


def refuse_url(what: str, path: str) -> None:
    """Refuse an address on the internet or in a cloud store; `what` names the purpose of the file in messages."""
    if re.match(r"[A-Za-z][\w+.-]+://", path):
        raise InputError(f"{what} ({path}) is a URL, which is not read; download the file and give its path")


def refuse_placeholder(source: InputFile) -> None:
    """Refuse what a download leaves in place of a file: a web page, or a pointer of Git LFS."""
    with source.path.open("rb") as file:
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise InputError(f"{source.where} is a web page (HTML) and not the data; download the file itself")
    if start.startswith(b"version https://git-lfs"):
        raise InputError(f"{source.where} is a pointer of Git LFS and not the data; fetch the file with git lfs pull")


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Raise any error that a damaged file causes as an InputError that names the file."""
    try:
        yield
    except (InputError, ImportError):
        raise
    except MemoryError as error:
        raise InputError(str(error) if where in str(error) else f"{where} does not fit in memory") from None
    except Exception as error:  # libraries raise errors of many types on damaged files
        if getattr(error, "strerror", None):
            raise InputError(f"{where} cannot be read ({error.strerror})") from None  # type: ignore[attr-defined]
        message = f"unexpected {error}" if isinstance(error, KeyError) else str(error).strip()
        message = re.sub(r":? ?<[^<>]+ at 0x[0-9a-fA-F]+>", "", message)  # an object and its address
        first_line = (message.splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(
            f"{where} cannot be read ({first_line}); it may be damaged, truncated or in another format"
        ) from None


def shape_text(shape: Sequence[int], kind: str = "") -> str:
    """Return a shape for messages, such as (12x2) or (12x2 sparse)."""
    return f"({' '.join(filter(None, ('x'.join(map(str, shape)), kind)))})"


def check_names(where: str, names: Sequence[str], what: str = "columns") -> None:
    """Refuse two columns of the same name, or two of what is given in the plural."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{where} has two {what} named {twice!r}; rename one")


def is_counting(names: Sequence[str]) -> bool:
    """Return whether the names are 0, 1, 2, ... or 1, 2, 3, ..., which programs write for rows without names."""
    return any(list(names) == [str(i) for i in range(a, a + len(names))] for a in (0, 1))
