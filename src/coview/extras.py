"""Optional libraries: loaded when they are first used; a missing one is named with the extra that brings it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_extra(module: str, extra: str, purpose: str) -> Any:
    """Load an optional library, or say which extra brings it.

    Parameters
    ----------
    module : str
        What to import, such as "pyarrow.parquet".
    extra : str
        The extra of coview that installs it.
    purpose : str
        What it is needed for, as the beginning of a sentence.
    """
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f'{purpose} needs {module.split(".")[0]}: pip install "coview[{extra}]"') from None
