"""Memory: what this machine has left, and a refusal before it runs out."""

from __future__ import annotations

import os
from pathlib import Path

_GIB = 2**30


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
