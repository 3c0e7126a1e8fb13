"""Optional libraries: imported at first use; the error for a missing one names the extra that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_extra(module: str, extra: str, purpose: str) -> Any:
    """Return an optional module, such as "pyarrow.parquet".

    If it is missing, raise an ImportError that begins with the purpose and names the extra of coview that installs it.
    """
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f'{purpose} needs {module.split(".")[0]}: pip install "coview[{extra}]"') from None
