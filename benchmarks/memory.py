"""Resident memory of this process, as Linux counts it."""

from __future__ import annotations

from pathlib import Path


def resident_bytes(field: str) -> int:
    """Return a memory field of /proc/self/status in bytes: "VmRSS" is the current size, "VmHWM" the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def reset_peak() -> None:
    """Set the peak to the current size; otherwise it includes earlier work and, in a child process, the parent."""
    Path("/proc/self/clear_refs").write_text("5")
