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
_is_kept: ContextVar[bool] = ContextVar("is_kept", default=True)


@contextmanager
def part_of_fit(*, kept: bool = True) -> Iterator[None]:
    """Return a context whose fits are parts of another fit.

    If the models are not kept, but measured only, they give no warnings and compute nothing that only a report shows.
    """
    part, before = _is_part.set(True), _is_kept.set(kept and _is_kept.get())
    try:
        yield
    finally:
        _is_part.reset(part)
        _is_kept.reset(before)


def is_part_of_fit() -> bool:
    """Return whether a fit that is now running is part of another one."""
    return _is_part.get()


def is_kept() -> bool:
    """Return whether the model of a fit that is now running is kept, and not only measured."""
    return _is_kept.get()


def warn(message: str, category: type[Warning], stacklevel: int) -> None:
    """Give a warning, unless the model of the current fit is only measured."""
    if is_kept():
        warnings.warn(message, category, stacklevel=stacklevel + 1)
