"""`coview predict`: the clusters of new samples, block by block where the files allow it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coview.cli import options
from coview.cli.inputs import read
from coview.cli.settings import known_views, view_files
from coview.cli.terminal import Progress, Terminal
from coview.errors import InputError

if TYPE_CHECKING:
    from coview.core.assign import Labels
    from coview.views import Views

_WHOLE = 2**29  # bytes of views that are read at once: tables can be matched by id then, and more kinds be read


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A saved model, or the folder of its run: run/model.safetensors")
    ],
    view: options.ViewFiles,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write the labels; .csv, .tsv, .parquet or .npy. For example -o labels.csv",
            rich_help_panel=options.OUTPUT,
        ),
    ] = Path("labels.csv"),
    ids: options.Ids = None,
    align: options.Align = "strict",
    categories: options.Categories = "refuse",
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it exists.", rich_help_panel=options.OUTPUT)
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Label new samples by a model that coview fit has saved.

    Large arrays (.npy) and tables (.parquet, .arrow, .feather) are read block by block: millions of rows are fine.

    Example: coview predict run/model.safetensors --view text=new.parquet --view image=new.npy -o labels.csv
    """
    from coview.io import write_labels
    from coview.io.stream import label_file
    from coview.persist import describe_model, load

    terminal = Terminal(as_json, quiet)
    files = view_files(view)
    _check_output(output, files, force=force)
    with terminal.working() as progress:
        progress("reading the model", 0, 1)
        path = model / "model.safetensors" if model.is_dir() else model
        known = {view["name"]: view for view in describe_model(path)["views"]}
        known_views(files, tuple(known))
        widths, columns = ({name: view[key] for name, view in known.items()} for key in ("n_features", "columns"))
        trained = load(path)
        reader = _stream(files, ids, columns) if align == "strict" and categories == "refuse" else None
        if reader is not None:
            _check_widths(files, reader.n_features, widths)
            watched = _Watched(trained, progress, reader.n_samples)
            label_file(watched, reader, output)
            sizes: Mapping[int, int] = watched.sizes
        else:
            progress("reading the files", 0, 1)
            loaded = read(files, ids=ids, align=align, categories=categories, columns=columns)
            for note in loaded.notes:
                terminal.note(note)
            _check_widths(files, loaded.views.n_features, widths)
            progress("labelling", 0, 1)
            labels = trained.predict(loaded.views)
            write_labels(output, labels, ids=loaded.ids, name=ids or "sample")
            sizes = _sizes(labels)
    total = sum(sizes.values())
    rows = [(str(label), str(size), f"{size / total:.0%}") for label, size in sorted(sizes.items())]
    terminal.table("Clusters", ("cluster", "samples", "share"), rows)
    terminal.say(f"Written: {output}, the clusters of {total} samples")
    answer = {"n_samples": total, "sizes": {str(label): size for label, size in sorted(sizes.items())}}
    terminal.answer({**answer, "files": [str(output)]})


def _check_output(output: Path, files: Mapping[str, str], *, force: bool) -> None:
    from coview.io.label_writer import check_target

    check_target(output)
    if output.exists():
        for name, file in files.items():
            if Path(file).exists() and output.samefile(file):
                raise InputError(f"-o {output} is the file of the view {name!r}; write the labels to another file")
        if not force:
            raise InputError(f"{output} exists; name another file, or replace it with --force")


def _stream(files: Mapping[str, str], ids: str | None, trained: Mapping[str, Sequence[str] | None]) -> Any:
    """A reader of blocks, where everything at once would be large; None where it is not, or cannot be read so."""
    from coview.io.stream import ViewsReader

    try:
        reader = ViewsReader({name: files[name] for name in trained}, ids=ids)
    except InputError:  # reading everything knows more kinds of files, and explains what is wrong
        return None
    if reader.n_samples * sum(reader.n_features.values()) * 8 <= _WHOLE:
        return None
    for name, columns in reader.take([0]).columns.items():
        wanted = trained[name]
        if wanted is not None and columns is not None and tuple(wanted) != columns:
            return None  # to be brought into order by name
    return reader


def _check_widths(files: Mapping[str, str], found: Mapping[str, int], trained: Mapping[str, int]) -> None:
    for name, width in trained.items():
        if found[name] != width:
            raise InputError(
                f"view {name!r} ({files[name]}) has {found[name]} columns, but the model was trained on {width}"
            )


class _Watched:
    """A model that counts the samples of each cluster, and tells how far it has come."""

    def __init__(self, model: Any, progress: Progress, n_samples: int) -> None:
        self._model, self._progress, self._n_samples = model, progress, n_samples
        self.sizes: Counter[int] = Counter()

    def predict(self, views: Views) -> Labels:
        labels: Labels = self._model.predict(views)
        self.sizes.update(_sizes(labels))
        self._progress("labelling", self.sizes.total(), self._n_samples)
        return labels


def _sizes(labels: Labels) -> dict[int, int]:
    import numpy as np

    found, counts = np.unique(labels, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))
