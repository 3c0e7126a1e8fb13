"""Exceptions that tell the reader what to do next."""


class InputError(ValueError):
    """The caller's data or parameters cannot be used; the message names which one and the way out."""


class InputTypeError(InputError, TypeError):
    """A value has the wrong type altogether, such as a dictionary where a number belongs."""


class ModelFileError(InputError):
    """A file is no saved model that can be trusted; nothing of it was loaded."""
