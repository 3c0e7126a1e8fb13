"""Exceptions of coview; each message says how to fix the problem."""


class InputError(ValueError):
    """The caller's data or parameters cannot be used; the message names the one at fault and says how to fix it."""


class InputTypeError(InputError, TypeError):
    """A value has the wrong type, such as a dictionary instead of a number."""


class ModelFileError(InputError):
    """A file is not a valid saved model; nothing was loaded from it."""
