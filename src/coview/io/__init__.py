"""Files: views and known classes are read, labels are written; nothing in a file is executed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coview.io.describe import describe_file
    from coview.io.labels import read_labels, write_labels
    from coview.io.load import Loaded, read_views
    from coview.io.stream import ViewsReader, label_file

__all__ = ["Loaded", "ViewsReader", "describe_file", "label_file", "read_labels", "read_views", "write_labels"]
_MODULES = ("describe", "labels", "load", "stream")


def __getattr__(name: str) -> Any:
    """Load public names on first use: the process that reads HDF5 and MATLAB files needs none of them."""
    if name in __all__:
        for module in map(import_module, (f"coview.io.{each}" for each in _MODULES)):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'coview.io' has no attribute {name!r}")
