"""The `coview` command."""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper
from typing import Any


def _end(*_: object) -> None:
    """Exit after SIGTERM, as batch systems send it at the end of the time, so that temporary files are removed."""
    sys.exit(128 + signal.SIGTERM)


def main() -> None:
    """Run the command."""
    interrupted = signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules are imported ends the process
    signal.signal(signal.SIGTERM, _end)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: the next file that is opened would get its number, and its text
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that the terminal cannot show is not an error
    from coview.cli.commands import app

    try:
        signal.signal(signal.SIGINT, interrupted)
        app()
    except KeyboardInterrupt:  # Ctrl-C before typer has read the options, or while it exits
        print("Stopped.", file=sys.stderr)
        sys.exit(130)


def __getattr__(name: str) -> Any:
    """Return `app`, whose import takes longer than `main` may take to handle Ctrl-C."""
    if name == "app":
        from coview.cli.commands import app

        return app
    raise AttributeError(name)
