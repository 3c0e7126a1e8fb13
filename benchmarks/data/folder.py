"""The folder of the stored data sets."""

from __future__ import annotations

import os
from pathlib import Path

DEFAULT = Path("../shared/data")
HOW_TO_SET = f"set COVIEW_DATA to the folder of the .npz files (default: {DEFAULT}, relative to the current folder)"


def data_folder() -> Path | None:
    """Return the folder of the stored data sets, or None if it does not exist.

    The folder is the value of the environment variable COVIEW_DATA. If the variable is not set, the folder is
    `../shared/data`, relative to the current folder.
    """
    folder = Path(os.environ.get("COVIEW_DATA") or DEFAULT)
    return folder.resolve() if folder.is_dir() else None


def stored_names() -> tuple[str, ...]:
    """Return the names of the stored data sets, which `load` accepts."""
    folder = data_folder()
    return () if folder is None else tuple(sorted(path.stem for path in folder.glob("*.npz")))
