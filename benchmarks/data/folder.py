"""Where the stored data sets are, if they are here at all."""

from __future__ import annotations

import os
from pathlib import Path

_PROJECT = Path(__file__).parents[2]


def data_folder() -> Path | None:
    """Return the folder of the stored data sets, or None where there is none.

    It is the one that the environment variable COVIEW_DATA names; by default `shared/data` beside the project.
    """
    named = os.environ.get("COVIEW_DATA")
    folder = Path(named) if named else _PROJECT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def stored_names() -> tuple[str, ...]:
    """Return the names that `load` takes here."""
    folder = data_folder()
    return () if folder is None else tuple(sorted(path.stem for path in folder.glob("*.npz")))
