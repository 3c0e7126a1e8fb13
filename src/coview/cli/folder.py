"""Results that are either complete or unchanged, also if the process is killed.

A run claims its folder before it starts: it makes the folder `.NAME.coview` beside a new folder, or inside an existing
one, which may be a file system or the only writable place, and locks it. The lock ends with the process, so a second
run is refused while the first is active, and the next run in the same place finishes or removes what a kill has left.
A run that writes single files claims them in the same way, by the name of the first one.

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
import signal
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from coview.atomic import Locked, lock
from coview.errors import InputError

completed: list[Path] = []  # what a command has written; later errors and Ctrl-C do not change it
_OWN_NAMES = {"new", "old", "links", "now", "next"}  # in the folder of a claim


@contextmanager
def claimed_files(files: Sequence[Path], *, force: bool) -> Iterator[list[Path]]:
    """Check and claim files, and yield the paths to write them to; all are in their place at the end, or none.

    Files in the folder of the first one are replaced by one rename. Files in other folders are removed before it, and
    get their names after it, so that a kill in between leaves no file beside one of another run.
    """
    with ExitStack() as stack:
        places: dict[Path, Path] = {}
        for folder in reversed(dict.fromkeys(file.parent for file in files)):  # the last one is left first
            names = [file.name for file in files if file.parent == folder]
            places[folder] = stack.enter_context(claimed_folder(folder, names, force=force, name=names[0]))
        yield [places[file.parent] / file.name for file in files]
        with _uninterrupted():
            for file in files:
                _check_files(file.parent, [file.name], force=force, meanwhile=True)
            for file in (file for file in files if file.parent != files[0].parent):
                file.unlink(missing_ok=True)
            stack.close()


@contextmanager
def claimed_folder(folder: Path, files: Collection[str], *, force: bool, name: str = "") -> Iterator[Path]:
    """Check and claim a folder, and yield an empty folder to write to; its files are in their place at the end.

    After an error, the folder is as before. Without `force`, none of these files may exist, at the start or at the end.
    With `name`, only the file of this name is claimed, and other runs may write to the folder.
    """
    _check_path(folder)
    target = folder.resolve()
    is_new = not target.exists()
    place = (target.parent if is_new else target) / f".{name or target.name}.coview"
    made = [parent for parent in place.parents if not parent.exists()]
    with ExitStack() as stack:
        stack.enter_context(_errors_that_name(folder, folder / name, place))
        place.parent.mkdir(parents=True, exist_ok=True)
        for parent in reversed(made):
            stack.callback(_remove_if_empty, parent)
        _remove_left_over({place.parent, target.parent})
        descriptor = _claim(place, folder / name)
        if descriptor is not None:
            stack.callback(os.close, descriptor)
        stack.callback(_finish, place, target)
        _settle(place, target)
        _clear(place)
        _check_files(folder, files, force=force)
        (place / "new").mkdir()
        yield place / "new"
        if not (place / "new").exists():
            raise InputError(f"{folder} was removed or replaced during the run; start it again")
        with _uninterrupted():
            _check_files(folder, files, force=force, meanwhile=True)
            if is_new:
                _rename(place / "new", target, folder)
            else:
                _replace_files(place, target, files)
            stack.close()
            completed.append(folder)


@contextmanager
def _errors_that_name(folder: Path, claimed: Path, place: Path) -> Iterator[None]:
    """Name files as the user knows them in errors of the system, in place of hidden ones."""
    try:
        yield
    except OSError as error:
        path = Path(os.fsdecode(error.filename or ""))
        if place.name in path.parts:
            error.filename = str(folder / path.name if path.parent.name in _OWN_NAMES else claimed)
        raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the end."""
    arrived: list[int] = []
    handlers = {n: signal.signal(n, lambda n, _: arrived.append(n)) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)


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
        raise InputError(f"cannot write to {folder}: no permission to write in {ancestor}")


def _check_files(folder: Path, files: Collection[str], *, force: bool, meanwhile: bool = False) -> None:
    """Refuse folders that have the name of a file, and without `force` any of these files."""
    present = sorted(name for name in files if os.path.lexists(folder / name))
    for name in present:
        if (folder / name).is_dir():
            raise InputError(f"{folder / name} is a folder, which is not replaced; move it, or name another folder")
    if present and not force and meanwhile:
        raise InputError(f"{folder / present[0]} was written by another program meanwhile; nothing is replaced")
    if present and not force:
        raise InputError(f"{folder} has results of an earlier run ({present[0]}); name another folder, or add --force")


def _claim(place: Path, claimed: Path) -> int | None:
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
                f"another run is writing to {claimed}; wait until it ends, or name another output"
            ) from None
        except OSError:  # a system without locks
            if is_made:
                return None
            raise InputError(
                f"{place} belongs to another run that is writing to {claimed}, or is left of one that was stopped; if "
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


def _remove_left_over(folders: Collection[Path]) -> None:
    """Finish the runs that were killed in these folders, and remove what they have left; active runs are locked."""
    for place in [place for folder in folders for place in folder.glob(".*.coview")]:
        with suppress(OSError, Locked), ExitStack() as stack:
            descriptor = _locked(place)
            if descriptor is not None:
                stack.callback(os.close, descriptor)
                # The files of another user's folder could be any, and are not moved over those of this user.
                if {*os.listdir(place)} <= _OWN_NAMES and os.fstat(descriptor).st_uid == os.geteuid():
                    _finish(place, place.parent)


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
    for path in now.iterdir() if now.exists() else ():
        os.replace(path, target / path.name)
    for path in [target / name for other in (old, place / "new") if other.exists() for name in os.listdir(other)]:
        if path.is_symlink() and Path(os.readlink(path)).parts[:2] == (place.name, "now"):
            path.unlink()
