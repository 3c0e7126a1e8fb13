"""`coview fit` and `coview demo`: from views to a folder of results; `coview report` draws it again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coview.base.text import percent
from coview.cli.folder import claimed_files, claimed_folder
from coview.cli.inputs import LabelledInputs
from coview.cli.model import ModelOptions
from coview.cli.options import OUTPUT, RunPath, option
from coview.cli.output import (
    check_report,
    describe_truth,
    print_address,
    print_clusters,
    print_contributions,
    print_stability,
    print_support,
)
from coview.cli.run import RUN_FILES, RunFolder, brief, run, run_files
from coview.cli.terminal import Terminal
from coview.errors import InputError

if TYPE_CHECKING:
    from coview.summary import Summary


def fit_command(
    context: typer.Context, inputs: LabelledInputs, model: ModelOptions, folder: RunFolder, terminal: Terminal
) -> None:
    """Cluster samples that are described by several files.

    Writes a folder with the model, the labels, all numbers (summary.json) and a report (report.html).

    The default method, coview, is the consensus of many clusterings. Without -k it selects the number of clusters.

    To set the kernel or the preprocessing yourself, add --method tmvkscr.

    Example: coview fit --view text=text.parquet --view image=image.npy -o run
    """
    summary, written = run_files(model, inputs, folder, terminal, shlex.join(context.obj))
    print_support(terminal, summary)
    print_clusters(terminal, summary)
    print_contributions(terminal, summary)
    print_stability(terminal, summary)
    _print_files(terminal, summary, folder.output, written)


def demo_command(context: typer.Context, terminal: Terminal, output: RunPath = Path("demo-run")) -> None:
    """Cluster three views of handwritten digits.

    The clusters are compared with the digits, which the clustering does not use.

    Replaces the results of an earlier demonstration.

    Example: coview demo -o demo-run
    """
    if not _has_demonstration(output) and any((output / name).exists() for name in RUN_FILES):
        raise InputError(
            f"{output} has results of another run, which coview demo does not replace; name another folder"
        )
    with claimed_folder(output, RUN_FILES, force=True) as folder, terminal.working() as progress:
        from coview.datasets import digits_views
        from coview.evaluate.coview import Coview

        progress("reading the digits", 0, 4)
        views, digits = digits_views()
        summary, written = run(
            Coview(random_state=0),
            views,
            folder,
            RunFolder(output),
            terminal,
            progress,
            truth=tuple(map(str, digits.tolist())),
            command=shlex.join(context.obj),
        )
    print_support(terminal, summary)
    rows = []
    for cluster in summary.clusters:
        digit, count = next(iter((cluster.classes or {}).items()))
        rows.append((str(cluster.label), str(cluster.size), digit, percent(count / cluster.size)))
    terminal.table("Clusters", ("cluster", "samples", "main digit", "fraction"), rows)
    names = ", ".join(view.name for view in summary.views)
    terminal.line(f"{summary.n_samples} handwritten digits, views: {names}; fitted in {summary.seconds['fit']:.2f} s")
    if summary.truth is not None:
        terminal.line(describe_truth(summary.truth))
    _print_files(terminal, summary, output, written)


def _has_demonstration(folder: Path) -> bool:
    """Return whether the folder has the results of `coview demo`."""
    try:
        command = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["command"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return str(command).split()[1:2] == ["demo"]


def _print_files(terminal: Terminal, summary: Summary, output: Path, written: list[str]) -> None:
    """Print the names of the files and the address of the report, and with --json the main numbers."""
    terminal.line(f"Written to {output}/: {', '.join(written)}")
    if "report.html" in written:
        print_address(terminal, output / "report.html")
    terminal.print_json({**brief(summary), "output": str(output), "files": written})


def report_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder that coview fit has written, such as run/")],
    terminal: Terminal,
    output: Annotated[
        Path | None,
        option(
            OUTPUT,
            "--output -o FILE",
            "The file to write; the default is report.html in the folder. For example -o results.html",
        ),
    ] = None,
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
