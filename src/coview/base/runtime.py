"""Threads and memory: thread pools over blocks, each with single-threaded BLAS, and checks of available memory.

NumPy releases the interpreter lock, so threads share the work on large arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import Context, copy_context
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from coview.base.parameters import is_integer
from coview.errors import InputError

Bytes: TypeAlias = NDArray[np.uint8]
Item = TypeVar("Item")
Result = TypeVar("Result")

# Calls a function for every item of a sequence, possibly in threads; the results keep the order of the items.
Map: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

_GIB = 2**30
_THREADS_PER_PROCESSOR = 4
_KEPT_BYTES = 2**28


def serial_map(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return the function of every item, computed one after the other."""
    return [function(item) for item in items]


class KeptMemory:
    """Blocks of memory that were used by an earlier fit, at most 256 MB in total; the oldest are freed first.

    The system clears new memory page by page, which takes a tenth of a fit of 4,000 samples.
    """

    def __init__(self, most: int = _KEPT_BYTES) -> None:
        self._most, self._blocks, self._lock = most, list[Bytes](), Lock()

    def take(self, n_bytes: int) -> Bytes:
        """Return a block of this size with arbitrary content."""
        with self._lock:
            for i, block in enumerate(self._blocks):
                if block.nbytes == n_bytes:
                    return self._blocks.pop(i)
            freed = 0
            while self._blocks and freed < n_bytes:  # so that the peak does not grow
                freed += self._blocks.pop(0).nbytes
        return np.empty(n_bytes, np.uint8)

    def keep(self, blocks: Sequence[Bytes]) -> None:
        """Keep blocks that are no longer used, as far as they fit."""
        with self._lock:
            self._blocks += [block for block in blocks if block.nbytes <= self._most]
            while sum(block.nbytes for block in self._blocks) > self._most:
                self._blocks.pop(0)


_kept_memory = KeptMemory()


class Workers:
    """A pool of threads for the duration of a `with` block; results do not depend on the number of threads."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n_threads = count_threads(n_jobs)
        self._pool: ThreadPoolExecutor | None = None
        self._stack = ExitStack()
        self._blocks: list[Bytes] = []

    def __enter__(self) -> Self:
        self._stack.enter_context(_OneBlasThread())
        if self.n_threads > 1:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(self.n_threads))
        return self

    def __exit__(self, *error: object) -> None:
        self._pool = None
        self._stack.close()
        blocks, self._blocks = self._blocks, []
        _kept_memory.keep(blocks)

    def empty(self, size: int, dtype: Any) -> NDArray[Any]:
        """Return an array with arbitrary content. Its memory is used for others after the end of the `with` block."""
        block = _kept_memory.take(size * np.dtype(dtype).itemsize)
        self._blocks.append(block)
        return block.view(dtype)

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return the function of every item, in their order; the threads have the context variables of the caller."""
        if self._pool is None or len(items) < 2:
            return serial_map(function, items)
        results: list[Any] = [None] * len(items)
        waiting = iter(range(len(items)))  # shared: an idle thread takes the next item

        def work(context: Context) -> None:
            try:
                for i in waiting:
                    results[i] = context.run(function, items[i])
            except BaseException:
                for _ in waiting:  # the other threads stop as well
                    pass
                raise

        # One task per thread, not per item: a future costs as much as a small block.
        for _ in self._pool.map(work, [copy_context() for _ in range(min(self.n_threads, len(items)))]):
            pass
        return results

    def map_large(self, function: Callable[[Item, Workers], Result], items: Sequence[Item]) -> list[Result]:
        """Return a function of every item and of workers for its parts: either items or their parts are in threads.

        Items in threads leave less to compute one after the other, but all threads need one.
        """
        if len(items) < self.n_threads:
            return [function(item, self) for item in items]
        return self.map(lambda item: function(item, Workers(1)), items)


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads: negative numbers count as in scikit-learn, None is the number that BLAS uses.

    It is at most four times the number of processors; thousands of threads would only wait for each other.
    """
    if n_jobs is None:
        libraries = _controller().info()
        return max((lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"), default=1)
    check_n_jobs(n_jobs)
    from joblib import cpu_count, effective_n_jobs

    return int(min(effective_n_jobs(int(n_jobs)), _THREADS_PER_PROCESSOR * cpu_count()))


def check_n_jobs(n_jobs: int | None) -> None:
    """Raise an InputError if this is not a number of threads."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0):
        raise InputError(f"n_jobs={n_jobs!r}: expected an integer other than 0, or None; -1 means all processors")


class _OneBlasThread:
    """Limits BLAS to one thread until the last of several overlapping uses, in any thread, has ended."""

    _lock: ClassVar[Lock] = Lock()  # a process has one BLAS, so all uses share these
    _users: ClassVar[int] = 0
    _limiter: ClassVar[Any] = None

    def __enter__(self) -> None:
        shared = _OneBlasThread
        with shared._lock:
            if shared._users == 0:
                shared._limiter = _controller().limit(limits=1, user_api="blas")
                shared._limiter.__enter__()
            shared._users += 1

    def __exit__(self, *error: object) -> None:
        shared = _OneBlasThread
        with shared._lock:
            shared._users -= 1
            if shared._users == 0:
                shared._limiter.__exit__(None, None, None)


@cache
def _controller() -> Any:
    """Return the controller of the loaded BLAS libraries; finding them takes milliseconds, so it is done once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _controller_of_sklearn() -> Any:
    import sklearn.cluster  # noqa: F401 - loads its OpenMP library
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_sklearn_thread() -> Any:
    """Return a context in which compiled loops of scikit-learn, as in k-means and t-SNE, run in one thread."""
    return _controller_of_sklearn().limit(limits=1)


def available_memory() -> int | None:
    """Return the number of bytes that this process can still allocate, or None if the system does not report it."""
    limits = [limit for limit in (_free(), _left_in_container()) if limit is not None]
    return min(limits, default=None)


def fits_in_memory(needed: int) -> bool:
    """Return whether this number of bytes is available; True if the system does not report it."""
    available = available_memory()
    return available is None or needed <= available


def require_memory(needed: int, task: str, advice: str) -> None:
    """Raise a MemoryError with the figures, the task and the advice, if fewer bytes are available than needed."""
    if not fits_in_memory(needed):
        available = available_memory() or 0
        raise MemoryError(
            f"{task} needs about {needed / _GIB:.1f} GiB and {available / _GIB:.1f} GiB are available; {advice}"
        )


def _free() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _left_in_container() -> int | None:
    """Return the unused part of the limit of a control group (version 2, as in containers and cluster jobs)."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)
