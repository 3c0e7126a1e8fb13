"""Optional libraries: imported at first use; the error for a missing one names the extra that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_extra(module: str, extra: str, purpose: str) -> Any:
    """Return an optional module, or raise an ImportError that names the extra to install.

    Parameters
    ----------
    module : str
        The module to import, such as "pyarrow.parquet".
    extra : str
        The extra of coview that installs it.
    purpose : str
        The task that needs the module, as the beginning of a sentence.
    """
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f'{purpose} needs {module.split(".")[0]}: pip install "coview[{extra}]"') from None
