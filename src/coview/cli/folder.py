"""Folders of results that are either complete or unchanged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from coview.errors import InputError


def check_folder(folder: Path, files: Collection[str], *, force: bool) -> None:
    """Refuse, before any work, a folder that cannot be made, or without `force` one that has any of these files."""
    ancestor = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not ancestor.is_dir():
        raise InputError(f"cannot make the folder {folder}: {ancestor} is a file")
    if not os.access(ancestor, os.W_OK | os.X_OK):
        raise InputError(f"cannot make the folder {folder}: no permission to write in {ancestor}")
    present = sorted(name for name in files if (folder / name).exists())
    if present and not force:
        raise InputError(f"{folder} has results of an earlier run ({present[0]}); name another folder, or add --force")


@contextmanager
def complete_folder(folder: Path, files: Collection[str]) -> Iterator[Path]:
    """Yield an empty folder to write to; its files move to their place once all are written.

    An existing folder keeps its other files and never shows files of two runs: the files of the earlier run are moved
    aside before the first new one arrives, and are restored after an error.
    """
    folder = folder.absolute()
    new = not folder.exists()
    # Beside a new folder, but inside an existing one, which may be a file system or the only writable place.
    temporary = (folder.parent if new else folder) / f".{folder.name}.{token_hex(4)}.part"
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if new:
            os.rename(temporary, folder)
        else:
            _replace_files(folder, temporary, files)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace_files(folder: Path, temporary: Path, files: Collection[str]) -> None:
    """Move the old files aside, then the new ones in; undo both after an error."""
    aside = temporary.with_suffix(".old")
    moves = [(folder / name, aside / name) for name in files if (folder / name).exists()]
    moves += [(path, folder / path.name) for path in sorted(temporary.iterdir())]
    aside.mkdir()
    try:
        for source, target in moves:
            os.replace(source, target)
    except BaseException:
        for source, target in reversed(moves):
            if target.exists() and not source.exists():
                os.replace(target, source)
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)
