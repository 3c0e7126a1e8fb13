"""What the machine offers: threads over blocks, with BLAS held to one thread in each, and memory.

NumPy releases the interpreter lock, so threads share the work of large arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from numbers import Integral
from pathlib import Path
from threading import Lock
from typing import Any, Self, TypeAlias, TypeVar

from coview.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

# How to call a function for every item of a sequence, perhaps in threads; the results keep the order of the items.
Map: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

_GIB = 2**30


def serial_map(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Call the function for one item after the other."""
    return [function(item) for item in items]


class Workers:
    """A pool of threads for the time of a `with` block; what it computes does not depend on how many there are."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n_threads = count_threads(n_jobs)
        self._pool: ThreadPoolExecutor | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(_one_blas_thread())
        if self.n_threads > 1:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(self.n_threads))
        return self

    def __exit__(self, *error: object) -> None:
        self._pool = None
        self._stack.close()

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return the function of every item, in their order."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        results: list[Any] = [None] * len(items)
        waiting = iter(range(len(items)))  # shared: whoever is free takes the next

        def work(_: int) -> None:
            try:
                for i in waiting:
                    results[i] = function(items[i])
            except BaseException:
                for _ in waiting:  # nothing more to take for the others
                    pass
                raise

        # One task per thread, not per item: a future costs as much as a small block.
        for _ in self._pool.map(work, range(self.n_threads)):
            pass
        return results


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads: scikit-learn's counting, and for None as many as BLAS may use here."""
    if n_jobs is None:
        libraries = _controller().info()
        return max((lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"), default=1)
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError(f"n_jobs={n_jobs!r} must be a whole number other than 0, or None; -1 means all processors")
    from joblib import effective_n_jobs

    return int(effective_n_jobs(int(n_jobs)))


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread until the last of several overlapping uses, in any thread, has ended."""
    with _limit.lock:
        if _limit.users == 0:
            _limit.limiter = _controller().limit(limits=1, user_api="blas")
            _limit.limiter.__enter__()
        _limit.users += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.users -= 1
            if _limit.users == 0:
                _limit.limiter.__exit__(None, None, None)


class _Limit:
    """The process has one BLAS, so there is one of this."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0
        self.limiter: Any = None


_limit = _Limit()


@cache
def _controller() -> Any:
    """Looking up the loaded libraries takes milliseconds, so it is done once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def available_memory() -> int | None:
    """Return the bytes this process may still take, or None where the system does not say."""
    limits = [limit for limit in (_free(), _left_in_container()) if limit is not None]
    return min(limits, default=None)


def require_memory(needed: int, task: str, ways_out: str) -> None:
    """Raise MemoryError, with the figures and the ways out, when this would not fit."""
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{task} needs about {needed / _GIB:.1f} GiB and {available / _GIB:.1f} GiB are available; {ways_out}"
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
    """What a control group (version 2, as containers and cluster jobs use) leaves of its limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)
