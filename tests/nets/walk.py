"""The walk of a call through the source: the files that it enters, and how often it validates views."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import coview

_SOURCE = str(Path(coview.__file__).parent)


class Walk(NamedTuple):
    """The files that a call enters, relative to the package, and its number of calls of `as_views`."""

    files: tuple[str, ...]
    n_validations: int


def walk(call: Callable[[], Any]) -> Walk:
    """Return the walk of a call in this thread; code at the top of modules does not count."""
    files, counts = set(), [0]

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_SOURCE) and code.co_name != "<module>":
            files.add(code.co_filename.removeprefix(_SOURCE)[1:])
            counts[0] += code.co_name == "as_views"

    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Walk(tuple(sorted(files)), counts[0])
