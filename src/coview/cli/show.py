"""`coview info`, `coview methods` and `coview report`: what is in a file, the methods, and a run as a web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import coview.cli.options as options
from coview.cli.folder import claimed_files
from coview.cli.output import check_report, print_address
from coview.cli.terminal import Terminal
from coview.errors import InputError
from coview.registry import METHODS

_MOST_ENTRIES = 12  # of a list


def info_command(
    terminal: Terminal,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A data file, a saved model, or the folder of a run")],
) -> None:
    """Describe a data file or a saved model.

    Example: coview info text.parquet
    """
    path = Path(file)
    if (path / "model.safetensors").is_file():
        path = path / "model.safetensors"
    if path.suffix == ".safetensors":
        from coview.persist import describe_model

        found = describe_model(path)
    else:
        from coview.io import describe_file

        found = describe_file(file)
    terminal.table(str(path), ("property", "value"), [(str(key), _cell_text(value)) for key, value in found.items()])
    terminal.print_json(found)


def methods_command(terminal: Terminal) -> None:
    """List the methods, with a summary and the cost of each.

    Costs are times for n samples of V views.

    Example: coview methods --json
    """
    predicts = {name: "predict" in method.abilities for name, method in METHODS.items()}
    rows = [(name, e.summary, "yes" if predicts[name] else "no", e.cost) for name, e in METHODS.entries.items()]
    terminal.table("Methods", ("name", "summary", "new samples", "time"), rows)
    terminal.line("Without --method, coview fit uses coview.")
    listed = [
        {"name": name, "class": e.class_name, "summary": e.summary, "time": e.cost, "predicts": predicts[name]}
        for name, e in METHODS.entries.items()
    ]
    terminal.print_json({"methods": listed})


def report_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder that coview fit has written, such as run/")],
    terminal: Terminal,
    output: Annotated[Path | None, options.REPORT_FILE] = None,
) -> None:
    """Write the report of a run again, from its summary.json.

    Example: coview report run
    """
    from coview.report import write_report
    from coview.summary import Summary

    source = folder / "summary.json" if folder.is_dir() else folder
    if source.is_file() and source.suffix != ".json":
        raise InputError(f"{source} is not the summary.json of a run; give the folder that coview fit has written")
    target = source.with_name("report.html") if output is None else output
    check_report("-o", target)
    try:
        summary = Summary.from_json(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "not a text file")
        raise InputError(f"{source} cannot be read ({reason}); give the folder that coview fit has written") from None
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    with claimed_files([target], force=True) as (written_to,), terminal.working() as progress:
        progress("writing the report", 0, 1)
        write_report(summary, written_to)
    terminal.line(f"Written: {target}")
    print_address(terminal, target)
    terminal.print_json({"files": [str(target)]})


def _cell_text(value: Any, separator: str = "\n") -> str:
    """Return the text of one cell: one entry per line, nested entries on one line, and long lists cut."""
    if isinstance(value, dict):
        parts = [f"{key}: {_cell_text(item, ', ')}" for key, item in value.items() if item is not None]
    elif isinstance(value, (list, tuple)):
        parts = [_cell_text(item, ", ") for item in value]
        separator = separator if any(isinstance(item, dict) for item in value) else ", "
    else:
        return "–" if value is None else str(value)
    more = [f"… {len(parts) - _MOST_ENTRIES} more"] if len(parts) > _MOST_ENTRIES else []
    return separator.join(parts[:_MOST_ENTRIES] + more) or "–"
