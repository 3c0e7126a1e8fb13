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
    """Another process, or another part of this one, holds the lock, or has removed or renamed the file."""


def open_locked(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a file or folder that is locked until it is closed, also by the end of the process.

    Raises `Locked`, or an OSError on file systems without locks. Symbolic links are not followed.
    """
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        raise Locked from None
    try:
        lock(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def lock(descriptor: int, path: Path) -> None:
    """Lock an open file or folder, which must still have this path: another process may have given it its name."""
    if sys.platform == "win32":
        raise OSError("there are no locks")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            raise Locked
    except (BlockingIOError, FileNotFoundError):
        raise Locked from None


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
            file = os.fdopen(open_locked(temporary, os.O_RDWR), "r+b")
            file.truncate(0)
            return temporary, file
    except OSError as error:
        error.filename = str(path)  # the name that the caller knows
        raise
    else:
        try:
            lock(file.fileno(), temporary)
        except Locked:  # another process has taken it for left over
            file.close()
        except OSError:  # a file system without locks
            return temporary, file
        else:
            return temporary, file
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.part")
    return temporary, temporary.open("xb")


def _give_name(temporary: Path, path: Path, outdated: Collection[Path]) -> None:
    for other in outdated:
        other.unlink(missing_ok=True)
    os.replace(temporary, path)
