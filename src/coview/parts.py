"""Fits that are parts of another fit, which has checked the samples and the number of clusters and gives warnings.

The state belongs to the current thread and task. The filters of Python's warnings belong to the process, and fits in
several threads would restore each other's.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_part: ContextVar[bool] = ContextVar("is_part", default=False)
_warns: ContextVar[bool] = ContextVar("warns", default=True)


@contextmanager
def part_of_fit(*, warns: bool = True) -> Iterator[None]:
    """Return a context whose fits are parts of another fit; without `warns`, this library gives no warnings in it."""
    part, before = _is_part.set(True), _warns.set(warns and _warns.get())
    try:
        yield
    finally:
        _is_part.reset(part)
        _warns.reset(before)


def is_part_of_fit() -> bool:
    """Return whether a fit that is now running is part of another one."""
    return _is_part.get()


def warn(message: str, category: type[Warning], stacklevel: int) -> None:
    """Give a warning, unless the current fit is a part of another one that gives none."""
    if _warns.get():
        warnings.warn(message, category, stacklevel=stacklevel + 1)
