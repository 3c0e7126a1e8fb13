"""Where the stored data sets are, if they are here at all."""

from __future__ import annotations

import os
from pathlib import Path

_PROJECT = Path(__file__).parents[3]


def data_folder() -> Path | None:
    """Return the folder of the stored data sets, or None where there is none.

    It is the one that the environment variable COVIEW_DATA names; failing that, `shared/data` beside the project, if
    coview runs from its own source folder.
    """
    named = os.environ.get("COVIEW_DATA")
    if not named and not (_PROJECT / "pyproject.toml").is_file():
        return None
    folder = Path(named) if named else _PROJECT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def stored_names() -> tuple[str, ...]:
    """Return the names that `load` takes here."""
    folder = data_folder()
    return () if folder is None else tuple(sorted(path.stem for path in folder.glob("*.npz")))
