"""`coview compare`: several methods on the same files."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import coview.cli.options as options
from coview.base.atomic import write_complete
from coview.base.text import percent
from coview.cli.folder import claimed_folder
from coview.cli.inputs import LabelledInputs
from coview.cli.output import draw_report, print_files
from coview.cli.parse import parse_imputation, parse_integer, parse_preprocessing
from coview.cli.terminal import Terminal
from coview.registry import METHODS, check_name

COMPARISON_FILES = ("comparison.json", "comparison.html")


def compare_command(
    inputs: LabelledInputs,
    terminal: Terminal,
    n_clusters: Annotated[str, options.ONE_NUMBER_OF_CLUSTERS],
    methods: Annotated[str, options.COMPARED_METHODS] = "all",
    preprocess: Annotated[list[str] | None, options.PREPROCESS] = None,
    impute: Annotated[list[str] | None, options.IMPUTE] = None,
    seed: Annotated[str, options.SEED] = "0",
    output: Annotated[Path | None, options.COMPARISON_FOLDER] = None,
    force: Annotated[bool, options.FORCE] = False,
) -> None:
    """Run several methods on the same views.

    Each method uses its default settings. coview has its own preprocessing.

    Methods that take one view get the concatenated columns of all views. A method that fails is listed with its error.

    Example: coview compare --view text=text.csv --view image=image.npy -k 6 --truth classes.csv -o comparison
    """
    k, random_state = parse_integer("-k", n_clusters, 2), parse_integer("--seed", seed, 0)
    names = [name.strip().lower() for name in methods.split(",") if name.strip()]
    for name in names or [methods]:
        check_name("--methods", name, options.comparable_names())
    steps = parse_preprocessing(preprocess or (), tuple(inputs.files))
    filled = parse_imputation(impute or (), tuple(inputs.files))
    claimed: AbstractContextManager[Path | None] = (
        nullcontext() if output is None else claimed_folder(output, COMPARISON_FILES, force=force)
    )
    with claimed as folder, terminal.working() as progress:
        progress("reading the files", 0, 1)
        from coview.compare import compare, imputation_per_view

        fills = imputation_per_view(filled, steps)
        loaded = inputs.read(empty_cells=[name for name, step in fills.items() if step != "none"])
        classes, truth_notes = inputs.read_truth(loaded)
        terminal.note(*loaded.notes, *truth_notes)
        comparison = compare(
            loaded.views,
            k,
            methods="all" if "all" in names else names,
            truth=classes,
            preprocess=steps,
            impute=filled,
            random_state=random_state,
            progress=progress,
        )
        methods_by_note: dict[str, list[str]] = {}
        for method in comparison.methods:
            own_name = f"{METHODS.entries[method.name].class_name} "
            for note in filter(None, (method.error, *method.notes)):
                methods_by_note.setdefault(note.removeprefix(own_name), []).append(method.name)
        terminal.note(*(f"{', '.join(some)}: {note}" for note, some in methods_by_note.items()))
        written = []
        if folder is not None:
            write_complete(folder / "comparison.json", comparison.to_json().encode())
            draw_report(comparison, folder / "comparison.html", terminal)
            written = [name for name in COMPARISON_FILES if (folder / name).exists()]
    terminal.table("Comparison of methods", *comparison.table())
    if comparison.largest_class is not None:
        terminal.line(
            f"Accuracy of a single cluster (fraction of the largest class): {percent(comparison.largest_class)}"
        )
    if output is None:
        terminal.print_json({**comparison.to_dict(), "output": None, "files": []})
    else:
        print_files(terminal, output, written, comparison.to_dict())
