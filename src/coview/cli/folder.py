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
    """Give a folder to write to under another name, whose files move to theirs once all are written.

    Of the files that a run may write, those that this one has not written go, so that no two runs are mixed; other
    files in the folder stay.
    """
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.absolute().with_name(f".{folder.absolute().name}.{token_hex(4)}.part")
    temporary.mkdir()
    try:
        yield temporary
        if not folder.exists():
            os.rename(temporary, folder)
            return
        for name in files:
            if not (temporary / name).exists():
                (folder / name).unlink(missing_ok=True)
        for path in sorted(temporary.iterdir()):
            os.replace(path, folder / path.name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
