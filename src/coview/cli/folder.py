"""Folders of results that are complete or as they were before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from coview.errors import InputError


def check_folder(folder: Path, files: Collection[str], *, force: bool) -> None:
    """Refuse, before any work, a folder that cannot be made or whose files would be lost.

    Parameters
    ----------
    folder : Path
    files : names
        What a run may write.
    force : bool
        Replace such files.
    """
    ancestor = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not ancestor.is_dir():
        raise InputError(f"cannot make the folder {folder}: {ancestor} is a file")
    if not os.access(ancestor, os.W_OK | os.X_OK):
        raise InputError(f"cannot make the folder {folder}: no permission to write in {ancestor}")
    there = sorted(name for name in files if (folder / name).exists())
    if there and not force:
        raise InputError(f"{folder} holds the results of an earlier run ({there[0]}); name another folder, or --force")


@contextmanager
def complete_folder(folder: Path, files: Collection[str]) -> Iterator[Path]:
    """Give an empty folder to write to, whose files move to theirs once all are written.

    A folder that is there keeps its other files, and never shows files of two runs: those of the earlier one are set
    aside before the first new one comes, and come back if anything goes wrong.
    """
    folder = folder.absolute()
    new = not folder.exists()
    # Beside a new folder, but inside one that is there: it can be a file system of its own, or all that may be written.
    temporary = (folder.parent if new else folder) / f".{folder.name}.{token_hex(4)}.part"
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if new:
            os.rename(temporary, folder)
        else:
            _replace(folder, temporary, files)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace(folder: Path, temporary: Path, files: Collection[str]) -> None:
    """Set the old files aside, then move the new ones in; undo both if anything goes wrong."""
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
