"""Folders of results that are either complete or unchanged, also if the process is killed.

A run claims its folder before it starts: it makes the folder `.NAME.coview` beside a new folder, or inside an existing
one, which may be a file system or the only writable place, and locks it. The lock ends with the process, so a second
run is refused while the first is active, and a run after a kill takes over what is left.

A new folder gets its name by one rename. In an existing folder, all files are replaced by one rename as well:

1. `old/` gets the files of the earlier run (hard links), and `now` is a symbolic link to `old`.
2. Each file of the earlier run is replaced by a symbolic link to `now/FILE`. Its contents do not change. A file that
   only the new run has gets such a link, too, which points to nothing yet.
3. The link `now` is replaced by one to `new`. This rename replaces all files at once.
4. Each symbolic link is replaced by the file itself. The contents do not change. Links to nothing are removed.

A kill before 3 leaves the earlier run, and a kill after 3 the new one, complete and readable under the same names. The
next run in the folder finishes step 4, or undoes step 2. On file systems without symbolic links, the files move one by
one after 2, so that a kill at this moment leaves files of both runs until the next run finishes the move.

Only files with the names of results are replaced; all other files of the folder stay.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from coview.atomic import Locked, lock
from coview.errors import InputError


@contextmanager
def claimed_folder(folder: Path, files: Collection[str], *, force: bool) -> Iterator[Path]:
    """Check and claim a folder, and yield an empty folder to write to; its files are in their place at the end.

    After an error, the folder is as before. Without `force`, none of these files may exist, at the start or at the end.
    """
    _check_path(folder)
    target = folder.resolve()
    is_new = not target.exists()
    beside, inside = (where / f".{target.name}.coview" for where in (target.parent, target))
    place = beside if is_new else inside
    made = [parent for parent in place.parents if not parent.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for parent in reversed(made):
            stack.callback(_remove_if_empty, parent)
        descriptor = _claim(place, folder)
        if descriptor is not None:
            stack.callback(os.close, descriptor)
        stack.callback(_finish, place, target)
        _settle(place, target)
        _clear(place)
        if not is_new:
            _remove_left_over(beside)
        _check_files(folder, files, force=force)
        (place / "new").mkdir()
        yield place / "new"
        if not (place / "new").exists():
            raise InputError(f"{folder} was removed or replaced during the run; start it again")
        _check_files(folder, files, force=force)
        if is_new:
            _rename(place / "new", target, folder)
        else:
            _replace_files(place, target, files)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _check_path(folder: Path) -> None:
    """Refuse a folder that cannot be made or written."""
    if folder.is_symlink() and not folder.exists():
        raise InputError(f"{folder} is a symbolic link to {os.readlink(folder)}, which does not exist; remove the link")
    ancestor = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not ancestor.is_dir():
        raise InputError(f"cannot make the folder {folder}: {ancestor} is a file")
    if not os.access(ancestor, os.W_OK | os.X_OK):
        raise InputError(f"cannot make the folder {folder}: no permission to write in {ancestor}")


def _check_files(folder: Path, files: Collection[str], *, force: bool) -> None:
    """Refuse folders that have the name of a file, and without `force` any of these files."""
    present = sorted(name for name in files if os.path.lexists(folder / name))
    for name in present:
        if (folder / name).is_dir():
            raise InputError(f"{folder / name} is a folder, which is not replaced; move it, or name another folder")
    if present and not force:
        raise InputError(f"{folder} has results of an earlier run ({present[0]}); name another folder, or add --force")


def _is_own_link(path: Path) -> bool:
    """Return whether this is a link of step 2."""
    return path.is_symlink() and Path(os.readlink(path)).parts[1:2] == ("now",)


def _claim(place: Path, folder: Path) -> int | None:
    """Make and lock the folder of a run; return the descriptor that holds the lock, None if there are no locks."""
    while True:
        try:
            place.mkdir()
            is_made = True
        except FileExistsError:
            is_made = False
        try:
            descriptor = _locked(place)
        except FileNotFoundError:  # the other run has just ended
            continue
        except Locked:
            raise InputError(
                f"another run is writing to {folder}; wait until it ends, or name another folder"
            ) from None
        except OSError:  # a system without locks
            if is_made:
                return None
            raise InputError(
                f"{place} belongs to another run that is writing to {folder}, or is left of one that was stopped; if "
                "no run is active, delete it"
            ) from None
        if descriptor is not None:
            return descriptor


def _locked(place: Path) -> int | None:
    """Return a descriptor that locks a folder, or None if the folder was removed meanwhile."""
    descriptor = os.open(place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0))
    try:
        if lock(descriptor, place):
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _remove_left_over(place: Path) -> None:
    """Remove the folder of a run that was killed before its own folder had its name."""
    with suppress(OSError, Locked):
        descriptor = _locked(place)
        if descriptor is not None:
            shutil.rmtree(place, ignore_errors=True)
            os.close(descriptor)


def _clear(place: Path) -> None:
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _rename(new: Path, target: Path, folder: Path) -> None:
    try:
        os.rename(new, target)
    except OSError:
        if not target.exists():
            raise
        raise InputError(f"{folder} was made by another program during the run; nothing is replaced") from None


def _replace_files(place: Path, target: Path, files: Collection[str]) -> None:
    """Replace the files of an earlier run, steps 1 to 3."""
    new, old, links, now = (place / name for name in ("new", "old", "links", "now"))
    old.mkdir()
    present = [name for name in files if (target / name).exists()]
    for name in present:
        _duplicate(target / name, old / name)
    written = os.listdir(new)
    try:
        os.symlink("old", now)
    except (OSError, NotImplementedError):  # a system without links: `old` lists what is removed, `now` what moves
        for name in {*present} & {*written}:
            (old / name).unlink()
        os.rename(new, now)
        return
    links.mkdir()
    for name in {*present, *written}:
        os.symlink(os.path.join(place.name, "now", name), links / name)
        os.replace(links / name, target / name)
    os.symlink("new", place / "next")
    os.replace(place / "next", now)


def _duplicate(file: Path, other: Path) -> None:
    """Give a file a second name, without copying it if possible."""
    try:
        os.symlink(file.resolve(), other) if file.is_symlink() else os.link(file, other)
    except OSError:
        shutil.copy2(file, other)


def _finish(place: Path, target: Path) -> None:
    """Put the files in their place, and only then remove the folder of the run."""
    _settle(place, target)
    shutil.rmtree(place, ignore_errors=True)


def _settle(place: Path, target: Path) -> None:
    """Replace the links of a run by the files that they point to, step 4; nothing to do unless step 2 has begun."""
    now = place / "now"
    if not os.path.lexists(now):
        return
    old = place / "old"
    if not now.is_symlink() and old.exists():  # it is absent if a run was killed while it removed `place`
        for path in old.iterdir():
            (target / path.name).unlink(missing_ok=True)
    for path in now.iterdir():
        os.replace(path, target / path.name)
    for path in target.iterdir():
        if _is_own_link(path):
            path.unlink()
