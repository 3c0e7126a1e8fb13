"""Fits that are parts of a measurement, such as those of `stability`: the models are measured and not kept.

The state belongs to the current thread and task. The filters of Python's warnings belong to the process, and fits in
several threads would restore each other's.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_part: ContextVar[bool] = ContextVar("is_part", default=False)


@contextmanager
def part_of_measurement() -> Iterator[None]:
    """Return a context whose fits give no warnings, and compute nothing that only a report shows."""
    before = _is_part.set(True)
    try:
        yield
    finally:
        _is_part.reset(before)


def is_part_of_measurement() -> bool:
    """Return whether the model of a fit that is now running is measured and not kept."""
    return _is_part.get()


def warn(message: str, category: type[Warning], stacklevel: int) -> None:
    """Give a warning, unless the current fit is part of a measurement."""
    if not is_part_of_measurement():
        warnings.warn(message, category, stacklevel=stacklevel + 1)
