"""`coview info` and `coview methods`: what a file holds, and what can be done."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from coview.cli import options
from coview.cli.settings import METHOD_TABLE
from coview.cli.terminal import Terminal

_SHOWN = 12  # entries of a list


def info(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of data, a saved model, or the folder of a run")],
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Tell what a file of data, or a saved model, holds.

    Example: coview info text.parquet
    """
    terminal = Terminal(as_json, quiet)
    path = Path(file)
    if (path / "model.safetensors").is_file():
        path = path / "model.safetensors"
    if path.suffix == ".safetensors":
        from coview.persist import describe_model

        found = describe_model(path)
    else:
        from coview.io import describe_file

        found = describe_file(file)
    terminal.table(str(path), ("what", "value"), [(str(key), _shown(value)) for key, value in found.items()])
    terminal.answer(found)


def methods(
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """List the methods, with what they do and what they cost.

    Costs are times for n samples of V views.

    Example: coview methods --json
    """
    from coview.methods import METHODS

    terminal = Terminal(as_json, quiet)
    known = [
        {"name": name, "class": kind.__name__, "what": what, "time": time, "predicts": hasattr(kind, "predict")}
        for (name, (what, time)), kind in zip(METHOD_TABLE.items(), METHODS.values(), strict=True)
    ]
    rows = [(str(m["name"]), str(m["what"]), "yes" if m["predicts"] else "no", str(m["time"])) for m in known]
    terminal.table("Methods", ("name", "what it does", "new samples", "time"), rows)
    terminal.answer({"methods": known})


def _shown(value: Any, separator: str = "\n") -> str:
    """One cell: entries on lines of their own, theirs behind one another, and long lists cut."""
    if isinstance(value, dict):
        parts = [f"{key}: {_shown(item, ', ')}" for key, item in value.items() if item is not None]
    elif isinstance(value, (list, tuple)):
        parts = [_shown(item, ", ") for item in value]
        separator = separator if any(isinstance(item, dict) for item in value) else ", "
    else:
        return "–" if value is None else str(value)
    more = [f"… {len(parts) - _SHOWN} more"] if len(parts) > _SHOWN else []
    return separator.join(parts[:_SHOWN] + more) or "–"
