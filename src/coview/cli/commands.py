"""The subcommands of `coview`; each calls the library, which is imported only then."""

from __future__ import annotations

from typing import Annotated

import typer

from coview._version import __version__
from coview.cli.compare import compare_command
from coview.cli.exit_codes import Commands
from coview.cli.fit import demo_command, fit_command, report_command
from coview.cli.info import info_command, methods_command
from coview.cli.options import expand_groups
from coview.cli.predict import predict_command

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
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Cluster samples that are described by several views at once.

    Start with: coview fit --view text=text.parquet --view image=image.npy -o run
    """


for command in (
    fit_command,
    predict_command,
    report_command,
    compare_command,
    info_command,
    methods_command,
    demo_command,
):
    app.command(command.__name__.removesuffix("_command"))(expand_groups(command))
