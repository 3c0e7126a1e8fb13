"""What a command says and where: results on the standard output, notes and progress on the error output."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Timer
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]  # the stage, how many are done, how many there are

_PATIENCE = 1.0  # seconds that nobody needs a progress bar for


@dataclass
class Terminal:
    """One command's voice."""

    as_json: bool = False
    quiet: bool = False
    notes: list[str] = field(default_factory=list)

    def table(self, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table, unless the answer is wanted as JSON or not at all."""
        if not (self.as_json or self.quiet):
            from rich.table import Table
            from rich.text import Text

            shown = Table(*headings, title=title, title_justify="left")
            for row in rows:
                shown.add_row(*map(Text, row))
            self._print(shown)

    def say(self, line: str) -> None:
        """Print a line, unless the answer is wanted as JSON or not at all."""
        if not (self.as_json or self.quiet):
            self._print(line)

    def note(self, line: str) -> None:
        """Tell something that is worth knowing; with --json it becomes part of the answer."""
        if line not in self.notes:
            self.notes.append(line)

    def _tell_notes(self) -> None:
        if not (self.as_json or self.quiet):
            sys.stderr.writelines(f"Note: {line}\n" for line in self.notes)

    def answer(self, values: dict[str, Any]) -> None:
        """Print the answer for machines, if it is wanted."""
        if self.as_json:
            sys.stdout.write(json.dumps({**values, "notes": self.notes}, indent=2, allow_nan=False) + "\n")

    def _print(self, what: Any) -> None:
        from rich.console import Console

        Console(markup=False, emoji=False, highlight=False, soft_wrap=isinstance(what, str)).print(what)

    @contextmanager
    def working(self) -> Iterator[Progress]:
        """Give a function to report stages to; what the library warns of meanwhile becomes a note.

        Notes are told at the end: work that fails has one line to say.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what libraries tell each other is nothing to whoever runs a command
            for kind in (UserWarning, RuntimeWarning):
                warnings.simplefilter("always", kind)
            warnings.showwarning = lambda message, *_, **__: self.note(" ".join(str(message).split()))
            with _bar() if sys.stderr.isatty() and not self.quiet else nullcontext(_no_bar) as progress:
                yield progress
        self._tell_notes()


def _no_bar(stage: str, done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def _bar() -> Iterator[Progress]:
    """Show how far the work has come, once it takes a while."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bars = Bars(*columns, console=Console(stderr=True), transient=True)
    task = bars.add_task("starting", total=None)
    timer = Timer(_PATIENCE, bars.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda stage, done, total: bars.update(task, description=stage, completed=done, total=total)
    finally:
        timer.cancel()
        timer.join()
        bars.stop()
