"""The command with its subcommands; each calls the library, which is imported only then. Exit codes and errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from coview._version import __version__
from coview.base.text import visible
from coview.cli.compare import compare_command
from coview.cli.folder import completed
from coview.cli.predict import predict_command
from coview.cli.run import demo_command, fit_command
from coview.cli.show import info_command, methods_command, report_command
from coview.cli.terminal import in_options, print_errors
from coview.errors import InputError

# The base class of all usage errors; its module differs between versions of typer.
_UsageError: Any = typer.BadParameter.__base__
_LESS_MEMORY = "train on some of the samples, as in --n-train 5000, or use --method tmvkscr --kernel auto"
# Options that a command does not have, and what to do instead.
_INSTEAD = {("report", "--force"): "coview report replaces the report without it; leave it out"}


class Commands(TyperGroup):
    """The commands; exit code 0 is complete results, 1 a failure, 2 bad usage or input, 130 Ctrl-C."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands in plain text, because loading rich takes longer than everything else."""
        super(TyperGroup, self).format_help(ctx, formatter)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command, and end the process with its exit code."""
        typed = list(sys.argv[1:] if args is None else args)
        extra.setdefault("obj", ("coview", *typed))  # recorded in summary.json
        name = prog_name or "coview"
        run = partial(super().main, typed or ["--help"], name, complete_var, False, windows_expand_args, **extra)
        if not standalone_mode:
            return run()
        completed.clear()
        try:
            code = run()
        except (KeyboardInterrupt, typer.Abort):  # some versions of typer return 130 themselves
            code = 130
        except Exception as error:
            if isinstance(error, OSError) and {"-h", "--help", "--version"} & {*(typed or ["--help"])}:
                error.filename = "standard output"  # typer prints these
            code, message = _explain(error)
            if completed:  # only printing has failed
                code, message = 0, f"{error!r}; all results were written"
            trace = traceback.format_exc() if "--debug" in typed else ""
            print_errors(f"{trace}{'Note' if completed else 'Error'}: {visible(' '.join(message.split()))}")
        if code == 130:
            print_errors(f"Stopped: {'all results were written' if completed else 'nothing was written'}.")
        sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message."""
    if isinstance(error, _UsageError):
        path = error.ctx.command_path if getattr(error, "ctx", None) else "coview"
        typed = path.rpartition(" ")[2], getattr(error, "option_name", "")
        message = _INSTEAD.get(typed) or error.format_message()
        end = "" if message.endswith((".", "?")) else "."
        return 2, f"{message}{end} See {path} --help"
    if isinstance(error, InputError):
        return 2, in_options(str(error))
    if isinstance(error, MemoryError):
        message = str(error) or "there is too little memory"
        # NumPy's own messages give a size and no remedy.
        return 1, in_options(message if ";" in message else f"{message}; {_LESS_MEMORY}")
    if isinstance(error, ImportError) and "pip install" in str(error):
        return 1, str(error)
    if isinstance(error, OSError) and error.strerror:
        return 1, f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return 1, f"{type(error).__name__}: {error}; run it again with --debug to see the traceback"


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of its option groups as parameters, for typer to read."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: _option_fields(kind) for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for name, parameter in signature(command).parameters.items():
        parameters += groups.get(name, [parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])])

    @wraps(command)
    def call(**typed: Any) -> None:
        for name, group in groups.items():
            typed[name] = hints[name](**{option.name: typed.pop(option.name) for option in group})
        command(**typed)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _option_fields(group: Any) -> list[Parameter]:
    """Return a parameter for each annotated field."""
    hints = get_type_hints(group, include_extras=True)
    return [
        parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in signature(group).parameters.items()
        if get_origin(hints[name]) is Annotated
    ]


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
