"""`coview predict`: labels of new samples, in blocks of rows if the files are large."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import coview.cli.options as options
from coview.base.text import percent, plural
from coview.cli.folder import claimed_files
from coview.cli.inputs import ViewInputs
from coview.cli.output import check_report, draw_report, print_address
from coview.cli.parse import match_views
from coview.cli.terminal import Terminal
from coview.errors import InputError
from coview.registry import CLUSTER_COLUMN, LABEL_COLUMNS

if TYPE_CHECKING:
    from coview.certainty.columns import Columns
    from coview.data.views import Views
    from coview.io import ViewsReader
    from coview.summary import SampleMap

_IN_MEMORY = 2**29  # bytes of views up to which files are read whole, because that reads more formats and aligns ids


def predict_command(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A saved model, such as run/model.safetensors, or its folder")
    ],
    inputs: ViewInputs,
    terminal: Terminal,
    output: Annotated[Path, options.LABEL_FILE] = Path("labels.csv"),
    report: Annotated[Path | None, options.ALSO_REPORT] = None,
    columns: Annotated[list[str] | None, options.LABEL_COLUMN] = None,
    force: Annotated[bool, options.FORCE_FILES] = False,
) -> None:
    """Label new samples with a saved model.

    Large arrays (.npy) and tables (.parquet, .arrow, .feather) are read in blocks of rows, in constant memory.

    Example: coview predict run/model.safetensors --view text=new.parquet --view image=new.npy -o labels.csv
    """
    import numpy as np

    from coview.certainty.columns import check_columns, sample_columns
    from coview.certainty.which_view import count_novel, notes_on_novelty
    from coview.io.labels import columns_in, description_path, notes_on_formulas, write_description, write_label_blocks
    from coview.io.stream import blocks_with_ids
    from coview.persist import describe_model, load

    _check_output(output, inputs.files)
    wanted = columns_in(output, check_columns("--column", columns))
    if columns and wanted == (CLUSTER_COLUMN,):
        raise InputError(f"{output} has the clusters only; write other columns to a .csv, .tsv or .parquet file")
    if report is not None:
        check_report("--report", report)
    files = [output, description_path(output), *filter(None, [report])]
    for file in files:
        if file.exists() and not force:
            raise InputError(f"{file} exists; name another file, or replace it with --force")
    sizes: Counter[int] = Counter()
    novel: dict[str, Any] = {}
    labelled: list[Any] = []  # the samples of the last block, all for a report, and their columns
    needed = wanted if report is None else tuple(LABEL_COLUMNS)
    with claimed_files(files, force=force) as written_to, terminal.working() as progress:
        progress("reading the model", 0, 1)
        path = model / "model.safetensors" if model.is_dir() else model
        known = {view["name"]: view for view in describe_model(path)["views"]}
        trained: Any = load(path)
        match_views(inputs.files, tuple(known), may_lack=trained.may_lack_views)
        absent = [name for name in known if name not in inputs.files]
        if absent:
            terminal.note(f"the samples lack the views of the model that are not given: {', '.join(absent)}")
        known = {name: view for name, view in known.items() if name in inputs.files}
        terminal.note(*_interchangeable(known))
        reader = None if report is not None else _block_reader(inputs, known, trained)
        if reader is not None:
            _check_widths(inputs.files, reader, known)
            terminal.note(*reader.notes)
            n_samples, blocks = reader.n_samples, blocks_with_ids(reader)
        else:
            progress("reading the files", 0, 1)
            trained_on, categories = ({name: known[name][key] for name in known} for key in ("columns", "categories"))
            loaded = inputs.read(trained_on, categories, [name for name in known if trained.fills_cells(name)])
            terminal.note(*loaded.notes)
            _check_widths(inputs.files, loaded.views, known)
            progress("labelling", 0, 1)
            n_samples = loaded.views.n_samples
            blocks = iter([(loaded.views, loaded.ids and list(loaded.ids))])

        def counted() -> Iterator[tuple[Any, Columns]]:
            lacking: set[str] = set()
            for views, ids in blocks:
                checked = trained.check(views)
                found = sample_columns(trained.model_, checked, wanted=needed)
                labelled[:] = checked, found
                block, counts = found.in_file(wanted), count_novel(trained.model_, checked, found)
                novel.update({name: novel.get(name, 0) + count for name, count in counts.items()})
                terminal.note(*notes_on_formulas(output, ids))
                blank = {name for name in columns or () if block[name] is None}
                if blank - lacking:
                    terminal.note(f"the model has no values for the columns {', '.join(sorted(blank - lacking))}")
                lacking |= blank
                sizes.update(np.asarray(block[CLUSTER_COLUMN]).tolist())
                progress("labelling", sizes.total(), n_samples)
                yield ids, block

        ids_name = inputs.ids or "sample"
        write_label_blocks(written_to[0], ids_name, n_samples, counted())
        terminal.note(*notes_on_novelty(novel))
        write_description(written_to[0], ids_name, wanted)
        if report is not None:
            from coview.summary.gather import Given, summarize_with_positions

            progress("report", 0, 1)
            on_map = _map_beside(path, trained.model_.fingerprint, terminal)
            given = Given(loaded.ids, notes=terminal.notes, command=shlex.join(context.obj), on_map=on_map)
            checked, found = labelled
            summary, _ = summarize_with_positions(trained, checked, given, found)
            draw_report(summary, written_to[-1], terminal)
        written = [file for file, place in zip(files, written_to, strict=True) if place.exists()]
    total = sizes.total()
    rows = [(str(label), str(size), percent(size / total)) for label, size in sorted(sizes.items())]
    terminal.table("Clusters", ("cluster", "samples", "fraction"), rows)
    terminal.line(f"Written: {', '.join(map(str, written))}, the labels of {plural(total, 'sample')}")
    if report in written:
        print_address(terminal, report)
    by_label = {str(label): size for label, size in sorted(sizes.items())}
    terminal.print_json({"n_samples": total, "sizes": by_label, "files": list(map(str, written))})


def _map_beside(path: Path, fingerprint: str, terminal: Terminal) -> SampleMap | None:
    """Return the map in the summary.json beside a model, if there is one of this model."""
    from coview.summary import Summary

    beside = path.with_name("summary.json")
    if not beside.is_file():
        return None
    try:
        found = Summary.from_json(beside.read_bytes()).map
    except InputError:
        terminal.note(f"{beside} is not a summary of this version, so the map is computed again from the model")
        return None
    if found is not None and found.fingerprint != fingerprint:
        terminal.note(f"{beside} is the summary of another model, so the map is computed again from the model")
        return None
    return found


def _check_output(output: Path, files: Mapping[str, str]) -> None:
    from coview.io.labels import check_label_path

    check_label_path(output)
    if output.exists():
        for name, file in files.items():
            if Path(file).exists() and output.samefile(file):
                raise InputError(f"-o {output} is the file of the view {name!r}; write the labels to another file")


def _block_reader(inputs: ViewInputs, trained: Mapping[str, Mapping[str, Any]], model: Any) -> Any:
    """Return a reader of blocks, or None if the views fit in memory or cannot be read in blocks."""
    from coview.io import ViewsReader

    if not inputs.keeps_rows_and_columns:
        return None
    try:
        reader = ViewsReader({name: inputs.files[name] for name in trained}, ids=inputs.ids_or_false)
    except InputError:  # read_views reads more formats, and explains what is wrong
        return None
    if reader.n_samples * sum(reader.n_features.values()) * 8 <= _IN_MEMORY:
        return None
    reader = reader.filled_by(model)
    for name, columns in reader.take([0]).columns.items():
        if None not in (columns, trained[name]["columns"]) and columns != tuple(trained[name]["columns"]):
            return None  # read_views reorders columns by name
    return reader


def _interchangeable(trained: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a note if files of two views could be swapped without an error."""
    widths = {name: view["n_features"] for name, view in trained.items() if view["columns"] is None}
    alike = ", ".join(name for name, width in widths.items() if [*widths.values()].count(width) > 1)
    note = f"the views {alike} have equal numbers of columns without names, so swapped files are not detected"
    return [note] if alike else []


def _check_widths(files: Mapping[str, str], new: Views | ViewsReader, trained: Mapping[str, Mapping[str, Any]]) -> None:
    for name, view in trained.items():
        width = view["n_features"]
        if new.n_features[name] != width:
            remedy = "give the file with the columns of the training data"
            if new.n_samples == width:
                remedy = f"it has {width} rows, which may be the columns: add --transpose {shlex.quote(name)}"
            found = f"view {name!r} ({files[name]}) has {new.n_features[name]} columns"
            raise InputError(f"{found}, but the model was trained on {width}; {remedy}")
