"""Output of a command: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from ast import literal_eval
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from shlex import quote
from typing import Annotated, Any

import coview.cli.options as options
from coview.base.progress import Progress, progress_bar, reporting
from coview.base.text import visible
from coview.cli.folder import completed

_BAR_DELAY = 1.0  # seconds before a progress bar appears
# Arguments of Python in messages of the library, and the options of the command in their place.
_FIXED = {
    "ids=False": "--no-ids",
    "ids=…": "--ids COLUMN",
    "transpose=…": "--transpose VIEW",
    "empty_cells=…": "--impute median",
    "drop=… of read_views": "--drop COLUMN",
    "drop=…": "--drop COLUMN",
    ", or set dtype='float32'": "",  # not an option
}
_OPTIONS = {
    "ids": "--ids",
    "align": "--align",
    "categories": "--categories",
    "decimal": "--decimal",
    "transpose": "--transpose",
    "drop": "--drop",
    "n_clusters": "-k",
    "rho": "--rho",
    "kappa": "--kappa",
    "kernel": "--kernel",
    "assigner": "--assigner",
    "n_train": "--n-train",
    "select": "--select",
    "random_state": "--seed",
}
_ARGUMENT = re.compile(rf"\b({'|'.join(_OPTIONS)})=(\[)?('[^']*'|\"[^\"]*\"|[\w.…-]+)(?(2)\])(?=[\s,;:.)]|$)")
_FIXED_SIZE = re.compile(r"FixedSize\((\w+)\(…\), n_train=(\w+)\)")


@dataclass
class Terminal:
    """The output of one command, and its options."""

    as_json: Annotated[bool, options.JSON] = False
    quiet: Annotated[bool, options.QUIET] = False
    debug: Annotated[bool, options.DEBUG] = False
    notes: list[str] = field(default_factory=list)

    def table(self, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table, except with --json or --quiet."""
        if not (self.as_json or self.quiet):
            from rich.table import Table
            from rich.text import Text

            shown = Table(title=visible(title), title_justify="left")
            for heading in headings:
                shown.add_column(heading, overflow="fold")  # by default the end of a long name is cut
            for row in rows:
                # The lines of a cell are not part of a name.
                shown.add_row(*(Text("\n".join(map(visible, cell.split("\n")))) for cell in row))
            self._print(shown)

    def line(self, text: str) -> None:
        """Print a line, except with --json or --quiet."""
        if not (self.as_json or self.quiet):
            self._print(visible(text))

    def note(self, *texts: str) -> None:
        """Add notes, printed at the end of the work, or with --json part of the object."""
        self.notes += [text for text in dict.fromkeys(map(in_options, texts)) if text not in self.notes]

    def print_json(self, values: dict[str, Any]) -> None:
        """Print the values and the notes as a JSON object with --json."""
        if self.as_json:
            with _standard_output():
                print(json.dumps({**values, "notes": self.notes}, indent=2, allow_nan=False))

    def _print(self, what: Any) -> None:
        from rich.console import Console

        console = Console(markup=False, emoji=False, highlight=False, soft_wrap=isinstance(what, str))
        with _standard_output():
            with console.capture() as printed:  # otherwise rich ends the process if a pipe is closed
                console.print(what)
            print(printed.get(), end="")

    @contextmanager
    def working(self) -> Iterator[Progress]:
        """Yield a function that reports stages; warnings become notes, which are printed unless an error is raised."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings for developers, such as deprecations
            for kind in (UserWarning, RuntimeWarning):
                warnings.simplefilter("always", kind)
            warnings.showwarning = lambda message, *_, **__: self.note(" ".join(str(message).split()))
            shown = sys.stderr.isatty() and not self.quiet
            with progress_bar(_BAR_DELAY, remove=True) if shown else reporting(None) as progress:
                yield progress
        if not (self.as_json or self.quiet):
            print_errors(*(f"Note: {visible(text)}" for text in self.notes))


def print_errors(*lines: str) -> None:
    """Print to standard error; if that fails, results and exit codes do not depend on it."""
    with suppress(OSError):
        sys.stderr.writelines(f"{line}\n" for line in lines)


@contextmanager
def _standard_output() -> Iterator[None]:
    """Print to standard output; if that fails, it is an error unless the results are in their files."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes the rest when it exits
        error.filename = "standard output"
        if not completed:
            raise
        if not isinstance(error, BrokenPipeError):  # the reader may end when it has enough, as head does
            print_errors(f"Note: standard output: {error.strerror}")


def in_options(message: str) -> str:
    """Return a message with the options of the command in place of Python arguments."""
    message = _FIXED_SIZE.sub(lambda found: f"--method {found[1].lower()} --n-train {found[2]}", message)
    for argument, option in _FIXED.items():
        message = message.replace(argument, option)
    return _ARGUMENT.sub(_as_option, message)


def _as_option(argument: re.Match[str]) -> str:
    name, _, value = argument.groups()
    quoted = value[0] in ("'", '"')
    return f"{_OPTIONS[name]} {quote(literal_eval(value)) if quoted else value}"
