"""Readers that run in a process of their own, because damaged files crash or stall the compiled libraries they use.

A few changed bytes let SciPy's reader of MATLAB files write outside its memory, and keep the HDF5 library busy forever,
in compiled code that no signal interrupts. The new process has limits of time and memory, and returns its answer
through a pipe. It is also ended if this process is interrupted.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from math import prod
from typing import Any, TypeVar

from coview.base.runtime import available_memory
from coview.errors import InputError
from coview.io.table import InputFile, reading

_SECONDS = 30.0  # to read any file
_BYTES_PER_SECOND = 2 * 10**6  # of the file, in addition; its arrays may have 30 times as many, on a slow disk
_LIBRARIES = 2**30  # bytes of memory that libraries reserve
_MOST_EXPANSION = 10**4  # bytes of an array for each one that is stored; gzip of zeros reaches 1,032
_ANY_FILE = 10**8  # bytes that an array may have in any case
_MOST_MEMORY = 4  # times the largest array of the file
_BEGIN = b"coview\n"  # of the answer; a sitecustomize may print before
_PROGRAM = "from coview.io.isolate import answer_request; answer_request()"
Answer = TypeVar("Answer")


def isolated(read: Callable[..., Answer]) -> Callable[..., Answer]:
    """Return a reader of files that runs in a process of its own; after the file, it is given strings only."""

    @wraps(read)
    def reader(source: InputFile, *options: Any) -> Answer:
        seconds = _SECONDS + source.path.stat().st_size / _BYTES_PER_SECOND
        strings = [option for option in options if isinstance(option, str)]
        answer = _answer(source, (seconds, read.__module__, read.__name__, source, strings))
        if isinstance(answer, Exception):
            raise answer
        return answer

    return reader


def require_array(source: InputFile, shape: Sequence[int], itemsize: int, stored: int) -> None:
    """Refuse an array that does not fit in memory twice, or whose size cannot follow from the bytes that are stored.

    It is held twice: before and after it is checked, or in the process that reads it and the one that asked.
    """
    source.require_memory(shape, 2 * itemsize)
    if prod(map(int, shape)) * itemsize > max(_ANY_FILE, _MOST_EXPANSION * stored):
        size = " x ".join(map(str, shape))
        raise InputError(f"{source.where} states a table of {size} values but stores {stored} bytes; it may be damaged")


def answer_request() -> None:
    """Run the reader that standard input names, and write what it returns or raises to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
        answer = _answer_to(*pickle.load(sys.stdin.buffer))
        answers.write(_BEGIN)
        pickle.dump(answer, answers, protocol=5)


def _answer_to(seconds: float, module: str, name: str, source: InputFile, strings: list[str]) -> Any:
    """Return what a reader returns, or the error that it raises."""
    faulthandler.dump_traceback_later(seconds, exit=True)  # also in compiled code
    _limit_memory(source.path.stat().st_size)
    try:
        with reading(source.where):
            return getattr(import_module(module), name).__wrapped__(source, *strings)
    except (InputError, ImportError) as error:
        return error
    finally:
        faulthandler.cancel_dump_traceback_later()


def _limit_memory(stored: int) -> None:
    """Let allocations fail beyond the available memory, or what a file of this size may need, if the system can."""
    wanted = _MOST_MEMORY * max(_ANY_FILE, _MOST_EXPANSION * stored)
    available = available_memory()
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        limit = _LIBRARIES + (wanted if available is None else min(wanted, available))
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def _answer(source: InputFile, request: tuple[Any, ...]) -> Any:
    """Return the answer of a new process to a request."""
    path = [os.path.abspath(folder) for folder in sys.path if isinstance(folder, str)]  # "" is the current folder
    environment = {"PYTHONPATH": os.pathsep.join(path), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **environment},
        )
        try:
            with suppress(BrokenPipeError), child.stdin as requests:  # type: ignore[union-attr]
                pickle.dump(request, requests)
            with child.stdout as answers:  # type: ignore[union-attr]
                if _BEGIN in iter(answers.readline, b""):
                    return pickle.load(answers)
            raise EOFError
        except (EOFError, pickle.UnpicklingError):
            code = child.wait()
            errors.seek(0)
            printed = errors.read().decode(errors="replace").strip()
            if "Timeout (" in printed:  # of faulthandler
                why = f"the library that reads it gave no answer for {request[0]:.0f} seconds and was stopped"
            elif code < 0:
                why = f"the library that reads it crashed ({signal.Signals(-code).name})"
            else:
                why = f"the process that reads it ended (exit code {code}: {printed.rpartition(chr(10))[2][:200]})"
                raise InputError(f"{source.where} cannot be read: {why}") from None
            raise InputError(f"{source.where} cannot be read: {why}; the file may be damaged") from None
        finally:
            child.kill()
            child.wait()
