"""Optional libraries: imported at first use; the error for a missing one names the extra that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_extra(module: str, extra: str, purpose: str) -> Any:
    """Return an optional module, such as "pyarrow.parquet", or raise an ImportError on the purpose and the extra."""
    library = module.split(".")[0]
    try:
        import_module(library)  # a module that is loaded already does not import its library again
        return import_module(module)
    except ImportError:
        raise ImportError(f'{purpose} needs {library}: pip install "coview[{extra}]"') from None
