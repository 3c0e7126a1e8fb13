"""The origin of measured rows: commit, date and machine."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path


def _git(*arguments: str) -> str:
    folder = Path(__file__).parent
    run = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def commit() -> str:
    """Return the current commit, and whether the code has uncommitted changes."""
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/benchmarks")
    return (_git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else "")


def today() -> str:
    """Return the date in UTC, as YYYY-MM-DD."""
    return datetime.now(UTC).date().isoformat()


def machine() -> str:
    """Return the number of cores and the memory of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GB of memory"
