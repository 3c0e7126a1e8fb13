"""Results that are either complete or unchanged, also if the process is killed.

A run claims its folder before it starts: it makes the folder `.NAME.coview` beside a new folder, or inside an existing
one, which may be a file system or the only writable place, and locks it. The lock ends with the process, so a second
run is refused while the first is active, and the next run in the same place finishes or removes what a kill has left.
A run that writes single files claims each of them in the same way, and uses `.NAME.coview` of the first one.

A new folder gets its name by one rename. In an existing folder, all files are replaced by one rename as well:

1. `old/` gets the files of the earlier run (hard links), and `now` is a symbolic link to `old`.
2. Each file of either run becomes a symbolic link to `now/FILE`. A file of the earlier run keeps its contents, and the
   link of a file that only the new run has leads to nothing yet.
3. The link `now` is replaced by one to `new`. This rename replaces all files at once.
4. Each symbolic link is replaced by the file itself. Links to nothing are removed.

A kill before 3 leaves the earlier run, and a kill after 3 the new one, complete and readable under the same names. The
next run in the folder finishes step 4. On file systems without symbolic links, `new` is renamed to `now` instead, and
the files move one by one, so that a kill at this moment leaves files of both runs until the next run finishes the move.

Only files with the names of results are replaced; all other files of the folder stay. An archive can contain a forged
`.NAME.coview`, so the next run replaces only links that lead into such a folder, by files that are in it.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from coview.base.atomic import FULL_DISK, Locked, open_locked
from coview.errors import InputError

completed: list[Path] = []  # what a command has written; later errors and Ctrl-C do not change it
_OWN_NAMES = {"new", "old", "now", "next"}  # in the folder of a claim
# Errors of file systems without symbolic links; others, as of permissions, can come from a forged folder.
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EROFS)


@contextmanager
def claimed_files(files: Sequence[Path], *, force: bool) -> Iterator[list[Path]]:
    """Check and claim files, and yield the paths to write them to; all are in their place at the end, or none.

    Files in the folder of the first one are replaced by one rename. Files in other folders are removed before it, and
    get their names after it, so that a kill in between leaves no file beside one of another run.
    """
    folders = [file.parent.resolve() for file in files]
    groups = {folder: [file for file, own in zip(files, folders, strict=True) if own == folder] for folder in folders}
    with ExitStack() as stack:
        places = {}
        for folder, own in groups.items():
            places[folder] = stack.enter_context(_claimed(own, [file.name for file in own], force=force))
        yield [places[folder] / "new" / file.name for file, folder in zip(files, folders, strict=True)]
        _put_in_place([(places[folder], own) for folder, own in groups.items()], stack, force=force)


@contextmanager
def claimed_folder(folder: Path, files: Collection[str], *, force: bool) -> Iterator[Path]:
    """Check and claim a folder, and yield an empty folder to write to; its files are in their place at the end.

    After an error, the folder is as before. Without `force`, none of these files may exist, at the start or at the end.
    """
    own = [folder / name for name in files]
    with ExitStack() as stack:
        place = stack.enter_context(_claimed(own, [""], force=force))
        yield place / "new"
        _put_in_place([(place, own)], stack, force=force)


@contextmanager
def _claimed(files: Sequence[Path], names: Sequence[str], *, force: bool) -> Iterator[Path]:
    """Claim names in the folder of the files, "" for the folder; yield the hidden folder of the first one."""
    folder = files[0].parent
    _check_path(folder)
    target = folder.resolve()
    beside = target if target.exists() else target.parent
    claims = {f".{name or target.name}.coview": folder / name for name in names}
    made = [parent for parent in (beside, *beside.parents) if not parent.exists()]
    with ExitStack() as stack:
        stack.enter_context(_errors_that_name(folder, claims))
        beside.mkdir(parents=True, exist_ok=True)
        for parent in reversed(made):
            stack.callback(_remove_if_empty, parent)
        for name in reversed(claims):
            place = beside / name
            descriptor = _claim(place, claims[name], {beside, target.parent})
            if descriptor is not None:
                stack.callback(os.close, descriptor)
            stack.callback(_finish, place)
        _check_files(files, force=force)
        (place / "new").mkdir()
        yield place


def _put_in_place(claims: Sequence[tuple[Path, Sequence[Path]]], stack: ExitStack, *, force: bool) -> None:
    """Give the files of each hidden folder their names; a full disk is found before the first one is replaced."""
    with _uninterrupted():
        for place, files in claims:
            if not (place / "new").exists():
                raise InputError(f"{files[0].parent} was removed or replaced during the run; start it again")
            _check_files(files, force=force, meanwhile=True)
        for place, files in claims:
            _prepare(place, files)
        for place, _ in claims[1:]:
            (place / "now").unlink(missing_ok=True)  # the links of this folder lead to nothing until its own commit
        for place, files in claims:
            _commit(place, files[0].parent)
        stack.close()
        completed.extend(files[0].parent for _, files in claims)


@contextmanager
def _errors_that_name(folder: Path, claims: dict[str, Path]) -> Iterator[None]:
    """Name files as the user knows them in errors of the system, in place of hidden ones."""
    try:
        yield
    except OSError as error:
        for path in (Path(os.fsdecode(name)) for name in (error.filename2, error.filename) if name):
            for hidden in claims.keys() & {*path.parts}:
                known = folder / path.name if path.parent.name in _OWN_NAMES else claims[hidden]
                error.filename, error.filename2 = str(known), None
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


def _check_files(files: Sequence[Path], *, force: bool, meanwhile: bool = False) -> None:
    """Refuse folders that have the name of a file, and without `force` any of these files."""
    present = sorted(file for file in files if os.path.lexists(file))
    for file in present:
        if file.is_dir():
            raise InputError(f"{file} is a folder, which is not replaced; move it, or name another folder")
    if present and not force and meanwhile:
        raise InputError(f"{present[0]} was written by another program meanwhile; nothing is replaced")
    if present and not force:
        folder, name = present[0].parent, present[0].name
        raise InputError(f"{folder} has results of an earlier run ({name}); name another folder, or add --force")


def _claim(place: Path, claimed: Path, folders: Collection[Path]) -> int | None:
    """Make and lock the folder of a run; return the descriptor that holds the lock, None if there are no locks."""
    end = monotonic() + 1.0  # because other runs lock it for a moment, to see whether it is left over
    while True:
        _remove_left_over(folders)
        try:
            place.mkdir()
        except FileExistsError:
            if monotonic() > end:
                raise InputError(
                    f"another run is writing to {claimed}; wait until it ends, or delete {place} if no run is active"
                ) from None
            sleep(0.05)
            continue
        try:
            return open_locked(place)
        except Locked:  # another run has taken it for left over
            continue
        except OSError:  # a system without locks
            return None


def _remove_left_over(folders: Collection[Path]) -> None:
    """Finish the runs that were killed in these folders, and remove what they have left; active runs are locked."""
    for place in [place for folder in folders for place in folder.glob(".*.coview")]:
        with suppress(OSError, Locked), ExitStack() as stack:
            descriptor = open_locked(place)
            stack.callback(os.close, descriptor)
            # The files of another user's folder could be any, and are not moved over those of this user.
            if {*os.listdir(place)} <= _OWN_NAMES and os.fstat(descriptor).st_uid == os.geteuid():
                _finish(place)


def _prepare(place: Path, files: Sequence[Path]) -> None:
    """Replace the files of an earlier run by links to them, steps 1 and 2; a new folder has none."""
    folder = place.parent
    if folder != files[0].parent.resolve():
        return
    (place / "old").mkdir()
    present, written = {file.name for file in files if file.exists()}, {*os.listdir(place / "new")}
    try:
        os.symlink("old", place / "now")
    except OSError as error:  # a system without links, for which `old` lists what is removed
        if error.errno in FULL_DISK:
            raise
        for name in present - written:
            _duplicate(folder / name, place / "old" / name)
        return
    for name in present:
        _duplicate(folder / name, place / "old" / name)
    for name in present | written:
        os.symlink(_link_to(place, name), place / "next")
        os.replace(place / "next", folder / name)
    os.symlink("new", place / "next")


def _commit(place: Path, folder: Path) -> None:
    """Replace the files of an earlier run by those of the new one, step 3."""
    if place.parent != folder.resolve():
        try:
            os.rename(place / "new", folder.resolve())
        except OSError:
            if not folder.exists():
                raise
            raise InputError(f"{folder} was made by another program during the run; nothing is replaced") from None
    elif (place / "next").is_symlink():
        os.replace(place / "next", place / "now")
    else:
        os.rename(place / "new", place / "now")
        _settle(place, has_links=False)


def _duplicate(file: Path, other: Path) -> None:
    """Give a file a second name, without copying it if possible."""
    try:
        os.symlink(file.resolve(), other) if file.is_symlink() else os.link(file, other)
    except OSError:
        shutil.copy2(file, other)


def _link_to(place: Path, name: str) -> str:
    return os.path.join(place.name, "now", name)


def _finish(place: Path) -> None:
    """Put the files in their place, and only then remove the folder of the run."""
    _settle(place, has_links=not _is_folder(place / "now") or _can_link(place))
    shutil.rmtree(place, ignore_errors=True)


def _settle(place: Path, *, has_links: bool) -> None:
    """Replace the links of a run by the files that they point to, step 4; nothing to do unless step 2 has begun."""
    now = place / "now"
    folders = [folder for folder in (place / "old", place / "new" if has_links else now) if _is_folder(folder)]
    current = place / os.readlink(now) if now.is_symlink() else now
    for name in {name for folder in folders for name in os.listdir(folder)}:
        file = place.parent / name
        if not has_links or (file.is_symlink() and os.readlink(file) == _link_to(place, name)):
            if current in folders and os.path.lexists(current / name):
                os.replace(current / name, file)
            else:
                file.unlink(missing_ok=True)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _can_link(place: Path) -> bool:
    try:
        os.symlink("old", place / "next")
    except OSError as error:
        return error.errno not in _NO_LINKS
    return True
