"""What every format is read into: a table of numbers, with names and with the columns that are not numbers."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from coview.errors import InputError
from coview.runtime import require_memory
from coview.views import Matrix

AsText = Callable[[str], bool]  # whether the column of this name is to be kept as it is spelt
EXACT = 2**53  # whole numbers beyond this are rounded when they become floats
TOO_LARGE = "whole numbers beyond 2^53, which would be rounded and look like ids"


@dataclass(frozen=True)
class Table:
    """One file as it was read, before anything was chosen or refused."""

    numbers: Matrix  # samples by columns, dense or CSR; NaN where a value is missing
    names: tuple[str, ...] | None = None  # of the columns of numbers
    texts: Mapping[str, Sequence[str | None]] = field(default_factory=dict)  # None where a value is missing
    others: Mapping[str, str] = field(default_factory=dict)  # columns that no view can hold, and what they are
    row_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()  # what the reader had to decide

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(self.names or ()), *self.texts, *self.others)


@dataclass(frozen=True)
class Source:
    """A file, the variable in it that is meant, and what it is for; `where` is how messages name it."""

    what: str
    path: Path
    variable: str | None = None

    @property
    def where(self) -> str:
        return f"{self.what} ({self.path})"

    @property
    def ending(self) -> str:
        """The ending in small letters, without .gz."""
        return self.path.with_name(self.path.name.lower().removesuffix(".gz")).suffix

    @property
    def zipped(self) -> bool:
        return self.path.name.lower().endswith(".gz")

    def opened(self) -> IO[bytes]:
        """Open the file, and unpack it on the way if it ends in .gz."""
        return gzip.open(self.path, "rb") if self.zipped else self.path.open("rb")  # type: ignore[return-value]

    def choose(self, variables: Mapping[str, str], kind: str) -> str:
        """Return the variable that was asked for, or the only one.

        Parameters
        ----------
        variables : mapping from name to a description, such as the shape
        kind : str
            What this format calls them.
        """
        listed = ", ".join(f"{name} {about}".strip() for name, about in variables.items())
        if self.variable is None and len(variables) == 1:
            return next(iter(variables))
        if not variables:
            raise InputError(f"{self.where} holds no {kind}s")
        if self.variable is None:
            raise InputError(
                f"{self.where} holds {len(variables)} {kind}s, choose one as {self.path.name}::NAME; it holds {listed}"
            )
        if self.variable not in variables:
            raise InputError(f"{self.where} has no {kind} {self.variable!r}; it holds {listed}")
        return self.variable

    def require_memory(self, shape: Sequence[int], itemsize: int = 8) -> None:
        """Refuse what the file says it holds, before it is read, if that does not fit in memory."""
        size = " x ".join(map(str, shape))
        require_memory(
            prod(map(int, shape)) * itemsize,
            f"{self.where}: a table of {size} values",
            "choose fewer columns or rows, use a sparse format, or read it in blocks with ViewsReader",
        )

    def refuse_variable(self) -> None:
        """Refuse the name of a variable where a file holds one table only."""
        if self.variable is not None:
            raise InputError(
                f"{self.where} holds one table and no variables; leave '::{self.variable}' away from its path"
            )


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """Turn whatever a damaged or foreign file sets off into one line that names it."""
    try:
        yield
    except (InputError, ImportError):
        raise
    except MemoryError as error:
        told = str(error) if source.where in str(error) else f"{source.where} does not fit in memory"
        raise InputError(told) from None
    except OSError as error:
        raise InputError(f"{source.where} cannot be read ({error.strerror or first_line(error)})") from None
    except Exception as error:  # the libraries behind the formats raise all sorts of things on bad bytes
        raise InputError(
            f"{source.where} cannot be read ({first_line(error)}); it may be damaged, cut short or of another kind"
        ) from None


def first_line(error: Exception) -> str:
    """What an error says, on one line."""
    if isinstance(error, KeyError):  # says nothing but the key
        return f"unexpected {error}"
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def check_names(source: Source, names: Sequence[str]) -> None:
    """Refuse two columns of one name: nobody could tell which is meant."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{source.where} has two columns named {twice!r}; rename one")


def is_counting(names: Sequence[str]) -> bool:
    """Whether the names are 0, 1, 2, ... or 1, 2, 3, ..., as programs give them to what has none."""
    return any(list(names) == [str(i) for i in range(a, a + len(names))] for a in (0, 1))


def spelt(value: Any) -> str | None:
    """Write an id or a class as text, whole numbers without a fraction, so that formats can be compared."""
    if value is None or (isinstance(value, (float, np.floating)) and np.isnan(value)):
        return None
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return str(value)
