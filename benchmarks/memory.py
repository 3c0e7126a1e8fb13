"""Resident memory of this process, as Linux counts it."""

from __future__ import annotations

import ctypes
from pathlib import Path


def resident_bytes(field: str) -> int:
    """Return a memory field of /proc/self/status in bytes: "VmRSS" is the current size, "VmHWM" the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def reset_peak() -> None:
    """Set the peak to the current size; otherwise it includes earlier work and, in a child process, the parent."""
    Path("/proc/self/clear_refs").write_text("5")


class MemoryRise:
    """Rise of this process's resident memory, by the peak that the system records."""

    def __init__(self) -> None:
        try:
            ctypes.CDLL(None).malloc_trim(0)  # memory that is freed but not returned would hide part of the next fit
            reset_peak()
            self._before: int | None = resident_bytes("VmHWM")
        except (OSError, AttributeError, TypeError):  # another system
            self._before = None

    def rise(self) -> int | None:
        """Return the rise since the start, in bytes; None on another system than Linux."""
        return None if self._before is None else resident_bytes("VmHWM") - self._before
