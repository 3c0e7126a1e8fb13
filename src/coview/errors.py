"""Exceptions and warnings of coview; each message says how to fix the problem."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import NamedTuple

_NOT_SHOWN = ("coview", "sklearn")  # packages in which no warning points to a line
_LONGEST_MESSAGE = 2000  # characters; names in files may have any length


class InputError(ValueError):
    """The caller's data or parameters cannot be used; the message names the one at fault and says how to fix it.

    See Also
    --------
    ModelFileError : The error of a file that is not a valid model.

    Examples
    --------
    >>> from coview import as_views
    >>> try:
    ...     as_views({"text": [[1.0, 2.0]], "image": [["red"]]})
    ... except InputError as error:
    ...     print(error)
    view 'image' holds strings; encode them as numbers or drop those columns
    """

    def __init__(self, message: str = "") -> None:
        if len(message) > _LONGEST_MESSAGE:  # the beginning names the fault, and the end says how to fix it
            message = f"{message[: _LONGEST_MESSAGE // 2]} … {message[-_LONGEST_MESSAGE // 2 :]}"
        super().__init__(message)


class InputTypeError(InputError, TypeError):
    """A value has the wrong type, such as a dictionary instead of a number."""


class ModelFileError(InputError):
    """A file is not a valid saved model; nothing was loaded from it.

    See Also
    --------
    load : Raises this error.

    Examples
    --------
    >>> from coview import load
    >>> try:
    ...     load("missing.safetensors")
    ... except ModelFileError as error:
    ...     print(error)
    missing.safetensors cannot be loaded: there is no such file
    """


class Note(NamedTuple):
    """A warning about a fit, which is given when the fit is complete."""

    message: str
    category: type[Warning]


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning that points to the line that called this library, perhaps through scikit-learn."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _NOT_SHOWN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def kind_of(value: object) -> str:
    """Return the type of a value with its article, as in "a list" or "an AnnData"; of a class, its name."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' or name.startswith('nd') else 'a'} {name}"
