"""Files that are either complete or absent, and locks that end with the process that holds them."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

if sys.platform != "win32":
    import fcntl

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a write, which do not name the file


class Locked(Exception):  # noqa: N818 - a state, not an error
    """Another process, or another part of this one, holds the lock."""


def lock(descriptor: int, path: Path) -> bool:
    """Lock an open file or folder until it is closed, also by the end of the process; return whether it has this path.

    A lock of a file that was removed or renamed meanwhile protects nothing, so the caller opens the path again. Raises
    `Locked`, or an OSError on file systems without locks.
    """
    if sys.platform == "win32":
        raise OSError("folders cannot be locked")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Locked from None
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


@contextmanager
def complete_or_absent(path: Path, *, outdated: Collection[Path] = ()) -> Iterator[IO[bytes]]:
    """Yield a temporary file to write to, which gets this name once it is complete; an old file stays until then.

    The files `outdated` describe the old file, and are removed immediately before it is replaced.
    """
    temporary, file = _temporary_file(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":  # before the file is closed, because the lock ends then
                _give_name(temporary, path, outdated)
        if sys.platform == "win32":
            _give_name(temporary, path, outdated)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and (error.filename or error.errno) in (str(temporary), *FULL_DISK):
            error.filename, error.filename2 = str(path), None  # the name that the caller knows
        raise


def write_complete(path: Path, content: bytes) -> None:
    """Write a file that is either complete or absent."""
    with complete_or_absent(path) as file:
        file.write(content)


def _temporary_file(path: Path) -> tuple[Path, IO[bytes]]:
    """Return an empty file beside the path; one that a killed process has left is used again."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        file: IO[bytes] = temporary.open("xb")
    except FileExistsError:
        with suppress(OSError, Locked):
            file = open(temporary, "r+b", opener=_not_through_links)  # noqa: SIM115 - the caller closes it
            if _is_locked_by(file, temporary):
                file.truncate(0)
                return temporary, file
    except OSError as error:
        error.filename = str(path)  # the name that the caller knows
        raise
    else:
        try:
            if _is_locked_by(file, temporary):
                return temporary, file
        except Locked:  # another process has taken it for left over
            pass
        except OSError:  # a file system without locks
            return temporary, file
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.part")
    return temporary, temporary.open("xb")


def _is_locked_by(file: IO[bytes], path: Path) -> bool:
    """Lock the file, and return whether it still has this path; it is closed if another process has locked it."""
    try:
        locked = lock(file.fileno(), path)
    except Locked:
        file.close()
        raise
    if not locked:
        file.close()
    return locked


def _not_through_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _give_name(temporary: Path, path: Path, outdated: Collection[Path]) -> None:
    for other in outdated:
        other.unlink(missing_ok=True)
    os.replace(temporary, path)
