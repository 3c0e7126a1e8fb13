"""The `coview` command; each command is one call of the library, and heavy imports wait until it runs."""

from __future__ import annotations

import signal
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from coview._version import __version__
from coview.cli import compare, fit, look, predict
from coview.cli.ending import Commands

app = typer.Typer(
    name="coview",
    cls=Commands,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coview {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Cluster samples that are described by several views at once.

    Start with: coview fit --view text=text.parquet --view image=image.npy -k 6 -o run
    """


for command in (fit.fit, fit.tune, predict.predict, fit.report, compare.compare, look.info, look.methods, fit.demo):
    app.command()(command)


def _end(*_: object) -> None:
    """Clean up when the system asks to end, as batch systems do when the time is over."""
    sys.exit(128 + signal.SIGTERM)


def main() -> None:
    """Run the command."""
    signal.signal(signal.SIGTERM, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a letter shall not stop the work
    app()
