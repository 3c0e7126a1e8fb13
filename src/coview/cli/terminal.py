"""Output of a command: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Timer
from typing import Annotated, Any, TypeAlias

from coview.cli.options import OUTPUT, option

Progress: TypeAlias = Callable[[str, int, int], None]  # stage, done, total

_BAR_DELAY = 1.0  # seconds before a progress bar appears


@dataclass
class Terminal:
    """The output of one command, and its options."""

    as_json: Annotated[bool, option(OUTPUT, "--json", "Print one JSON object instead of tables.")] = False
    quiet: Annotated[bool, option(OUTPUT, "--quiet -q", "Print only errors (and JSON).")] = False
    debug: Annotated[bool, option(OUTPUT, "--debug", "Print the traceback of an error.")] = False
    notes: list[str] = field(default_factory=list)

    def table(self, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table, except with --json or --quiet."""
        if not (self.as_json or self.quiet):
            from rich.table import Table
            from rich.text import Text

            shown = Table(title=title, title_justify="left")
            for heading in headings:
                shown.add_column(heading, overflow="fold")  # by default the end of a long name is cut
            for row in rows:
                shown.add_row(*map(Text, row))
            self._print(shown)

    def line(self, text: str) -> None:
        """Print a line, except with --json or --quiet."""
        if not (self.as_json or self.quiet):
            self._print(text)

    def note(self, *texts: str) -> None:
        """Add notes, printed at the end of the work, or with --json part of the object."""
        self.notes += [text for text in dict.fromkeys(texts) if text not in self.notes]

    def print_json(self, values: dict[str, Any]) -> None:
        """Print the values and the notes as a JSON object with --json."""
        if self.as_json:
            sys.stdout.write(json.dumps({**values, "notes": self.notes}, indent=2, allow_nan=False) + "\n")

    def _print(self, what: Any) -> None:
        from rich.console import Console

        Console(markup=False, emoji=False, highlight=False, soft_wrap=isinstance(what, str)).print(what)

    @contextmanager
    def working(self) -> Iterator[Progress]:
        """Yield a function that reports stages; warnings become notes, which are printed unless an error is raised."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings for developers, such as deprecations
            for kind in (UserWarning, RuntimeWarning):
                warnings.simplefilter("always", kind)
            warnings.showwarning = lambda message, *_, **__: self.note(" ".join(str(message).split()))
            shown = _bar() if sys.stderr.isatty() and not self.quiet else nullcontext(lambda stage, done, total: None)
            with shown as progress:
                yield progress
        if not (self.as_json or self.quiet):
            sys.stderr.writelines(f"Note: {text}\n" for text in self.notes)


@contextmanager
def _bar() -> Iterator[Progress]:
    """Show a progress bar if the work takes longer than a second."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bars = Bars(*columns, console=Console(stderr=True), transient=True)
    task = bars.add_task("starting", total=None)
    timer = Timer(_BAR_DELAY, bars.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda stage, done, total: bars.update(task, description=stage, completed=done, total=total)
    finally:
        timer.cancel()
        timer.join()
        bars.stop()
