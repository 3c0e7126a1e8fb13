"""`coview compare`: several methods on the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from coview.cli import options
from coview.cli.folder import check_folder, complete_folder
from coview.cli.inputs import read, read_truth
from coview.cli.settings import METHOD_NAMES, chosen, preprocessing, view_files
from coview.cli.terminal import Terminal

NAMES = ("all", "tuned", *METHOD_NAMES)
COMPARISON_FILES = ("comparison.json", "comparison.html")


def compare(
    view: options.ViewFiles,
    n_clusters: Annotated[
        int,
        typer.Option(
            "-k",
            "--n-clusters",
            min=2,
            help="How many clusters to find. For example -k 6",
            rich_help_panel=options.MODEL,
        ),
    ],
    methods: Annotated[
        str,
        typer.Option(
            metavar="all|NAMES",
            help="Which methods, with commas between; coview methods lists them, and tuned is what coview tune finds. "
            "For example --methods tuned,mvksc,opmc",
            autocompletion=options.completing(NAMES),
            rich_help_panel=options.MODEL,
        ),
    ] = "all",
    preprocess: options.Preprocess = None,
    seed: options.Seed = 0,
    ids: options.Ids = None,
    align: options.Align = "strict",
    categories: options.Categories = "refuse",
    truth: options.TruthFile = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder for comparison.json and comparison.html; without it nothing is written. "
            "For example -o comparison",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Run several methods on the same views, side by side.

    Each has its default settings, but for tuned: TMvKSCR as the data themselves suggest.

    Methods that know one view get the columns of all views side by side. A method that fails is listed with its reason.

    Example: coview compare --view text=text.csv --view image=image.npy -k 6 --truth classes.csv -o comparison
    """
    terminal = Terminal(as_json, quiet)
    files = view_files(view)
    names = [name.strip().lower() for name in methods.split(",") if name.strip()]
    for name in names:
        chosen("--methods", name, NAMES)
    steps = {name: each or "standard" for name, each in preprocessing(preprocess or (), tuple(files)).items()}
    if output is not None:
        check_folder(output, COMPARISON_FILES, force=force)
    with terminal.working() as progress:
        progress("reading the files", 0, 1)
        loaded = read(files, ids=ids, align=align, categories=categories)
        classes = read_truth(truth, loaded, ids)
        for note in loaded.notes:
            terminal.note(note)
        from coview.compare import compare as side_by_side

        comparison = side_by_side(
            loaded.views,
            n_clusters,
            methods="all" if "all" in names else names,
            truth=classes,
            preprocess=steps,
            random_state=seed,
            progress=progress,
        )
        for method in comparison.methods:
            for note in (*([method.error] if method.error else []), *method.notes):
                terminal.note(f"{method.name}: {note}")
        written = [] if output is None else _write(comparison, output, terminal)
    terminal.table("Methods side by side", *comparison.table())
    if output is not None:
        terminal.say(f"Written to {output}/: {', '.join(written)}")
    terminal.answer({**comparison.to_dict(), "output": output and str(output), "files": written})


def _write(comparison: Any, output: Path, terminal: Terminal) -> list[str]:
    with complete_folder(output, COMPARISON_FILES) as folder:
        (folder / "comparison.json").write_text(comparison.to_json(), encoding="utf-8")
        try:
            from coview.report import write_report

            write_report(comparison, folder / "comparison.html")
        except ImportError as error:
            terminal.note(f"there is no comparison.html: {error}")
        return [name for name in COMPARISON_FILES if (folder / name).exists()]
