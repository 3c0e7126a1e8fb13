"""`coview fit` and `coview demo`: from views to the folder that `coview report` and `coview predict` read."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

import coview.cli.options as options
from coview.base.atomic import complete_or_absent, write_complete
from coview.base.progress import Progress
from coview.base.text import percent
from coview.cli.estimator import ModelOptions
from coview.cli.folder import claimed_folder
from coview.cli.inputs import LabelledInputs
from coview.cli.output import (
    describe_truth,
    draw_report,
    print_clusters,
    print_contributions,
    print_files,
    print_stability,
    print_support,
)
from coview.cli.terminal import Terminal
from coview.errors import InputError
from coview.registry import check_name

if TYPE_CHECKING:
    from coview.core.assign import Labels
    from coview.data.view import Array
    from coview.data.views import Views
    from coview.summary import Summary

# All files that a run may write: one of the two files of labels and its description, and map.csv of
# methods with scores.
RUN_FILES = (
    "model.safetensors",
    *(f"labels.{ending}{part}" for ending in options.LABEL_FORMATS for part in ("", "-metadata.json")),
    "map.csv",
    "summary.json",
    "report.html",
)
_TRUTH_MEASURES = ("ari", "nmi", "accuracy", "largest_class", "purity")


@dataclass(frozen=True)
class RunFolder:
    """The options of the folder of a run."""

    output: Annotated[Path, options.RUN_FOLDER] = Path("coview-run")
    labels_format: Annotated[str, options.LABELS_FORMAT] = "csv"
    draw: Annotated[bool, options.DRAW] = True
    force: Annotated[bool, options.FORCE] = False


def fit_command(
    context: typer.Context, inputs: LabelledInputs, model: ModelOptions, folder: RunFolder, terminal: Terminal
) -> None:
    """Cluster samples that are described by several files.

    Writes a folder with the model, the labels, all numbers (summary.json) and a report (report.html).

    The default method, coview, is the consensus of many clusterings. Without -k it selects the number of clusters.

    To set the kernel or the preprocessing yourself, add --method tmvkscr.

    Example: coview fit --view text=text.parquet --view image=image.npy -o run
    """
    from coview.io.labels import require_writer

    check_name("--labels-format", folder.labels_format, options.LABEL_FORMATS)
    require_writer(f".{folder.labels_format}")
    estimator, notes = model.estimator(tuple(inputs.files))
    measure_stability = model.measure_stability()
    with claimed_folder(folder.output, RUN_FILES, force=folder.force) as place, terminal.working() as progress:
        progress("reading the files", 0, 4)
        start = perf_counter()
        loaded = inputs.read(empty_cells=[name for name in inputs.files if estimator.fills_cells(name)])
        classes, truth_notes = inputs.read_truth(loaded)
        terminal.note(*notes, *loaded.notes, *truth_notes)
        summary, written = _run(
            estimator,
            loaded.views,
            place,
            folder,
            terminal,
            progress,
            ids=loaded.ids,
            ids_name=inputs.ids or "sample",
            truth=classes,
            command=shlex.join(context.obj),
            seconds={"read": perf_counter() - start},
            measure_stability=measure_stability,
        )
    print_support(terminal, summary)
    print_clusters(terminal, summary)
    print_contributions(terminal, summary)
    print_stability(terminal, summary)
    print_files(terminal, folder.output, written, _brief(summary))


def demo_command(
    context: typer.Context, terminal: Terminal, output: Annotated[Path, options.RUN_FOLDER] = Path("demo-run")
) -> None:
    """Cluster three views of handwritten digits.

    The clusters are compared with the digits, which the clustering does not use.

    Replaces the results of an earlier demonstration.

    Example: coview demo -o demo-run
    """
    if not _has_demonstration(output) and any((output / name).exists() for name in RUN_FILES):
        raise InputError(
            f"{output} has results of another run, which coview demo does not replace; name another folder"
        )
    with claimed_folder(output, RUN_FILES, force=True) as place, terminal.working() as progress:
        from coview.datasets import digits_views
        from coview.evaluate.coview import Coview

        progress("reading the digits", 0, 4)
        views, digits = digits_views()
        summary, written = _run(
            Coview(random_state=0),
            views,
            place,
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
    print_files(terminal, output, written, _brief(summary))


def _has_demonstration(folder: Path) -> bool:
    try:
        command = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["command"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return str(command).split()[1:2] == ["demo"]


def _run(
    estimator: Any,
    views: Views,
    place: Path,
    folder: RunFolder,
    terminal: Terminal,
    progress: Progress,
    *,
    ids: Any = None,
    ids_name: str = "sample",
    truth: Any = None,
    command: str | None = None,
    seconds: dict[str, float] | None = None,
    measure_stability: Callable[..., Any] | None = None,
) -> tuple[Summary, list[str]]:
    """Fit, summarise and write to the folder; return the summary and the names of the files."""
    from coview.certainty.columns import sample_columns
    from coview.io.labels import notes_on_formulas, write_description, write_labels
    from coview.persist import save
    from coview.summary.gather import Given, summarize_with_positions

    seconds, start = {**(seconds or {})}, perf_counter()
    progress("fitting", 1, 4)
    model = estimator.fit_reporting(views, lambda stage, done, total: progress(f"fitting: {stage}", done, total))
    seconds["fit"] = perf_counter() - start
    stability = None
    if measure_stability is not None:
        start = perf_counter()
        stability = measure_stability(model, views, progress)
        seconds["stability"] = perf_counter() - start
    progress("summary", 2, 4)
    views = model.check(views)
    columns = sample_columns(model.model_, views, model.labels_)
    labels = place / f"labels.{folder.labels_format}"
    in_file = columns.in_file(stability=None if stability is None else stability.samples)
    write_description(write_labels(labels, columns.labels, ids, name=ids_name, columns=in_file), ids_name)
    terminal.note(*notes_on_formulas(labels, ids))
    if "predict" in model.abilities:
        save(model, place / "model.safetensors")
    else:
        terminal.note(f"{type(model.method).__name__} cannot label new samples, so no model is saved")
    given = Given(ids, truth, seconds, tuple(terminal.notes), command, stability=stability)
    summary, positions = summarize_with_positions(model, views, given, columns)
    write_complete(place / "summary.json", summary.to_json().encode())
    if positions is not None:
        _write_map(place / "map.csv", ids_name, ids, positions, columns.labels)
    if folder.draw:
        progress("report", 3, 4)
        draw_report(summary, place / "report.html", terminal)
    written = [name for name in RUN_FILES if (place / name).exists()]
    return summary, written


def _write_map(path: Path, ids_name: str, ids: Any, positions: Array, labels: Labels) -> None:
    """Write the position of each sample on the map, and its cluster."""
    from coview.io.labels import delimited_rows

    with complete_or_absent(path) as file, delimited_rows(file) as table:
        table.writerow([ids_name, "x", "y", "cluster"])
        names = range(len(labels)) if ids is None else ids
        for name, (x, y), label in zip(names, positions.tolist(), labels.tolist(), strict=True):
            table.writerow([name, f"{x:.5f}", f"{y:.5f}", label])


def _brief(summary: Summary) -> dict[str, Any]:
    """Return the main numbers, for --json; summary.json has all of them."""
    truth = summary.truth
    return {
        "method": summary.method,
        "n_samples": summary.n_samples,
        "n_train": summary.n_train,
        "n_clusters": summary.n_clusters,
        "sizes": [cluster.size for cluster in summary.clusters],
        "support": summary.support and {"level": summary.support.level, **asdict(summary.support)},
        "stability": summary.refits
        and {**asdict(summary.refits), "clusters": [cluster.stability for cluster in summary.clusters]},
        "silhouette": summary.silhouette,
        "agreement": {view.name: view.agreement for view in summary.views},
        "agreement_without": {view.name: view.agreement_without for view in summary.views},
        "contributions": [cluster.contributions for cluster in summary.clusters],
        "number": summary.number and asdict(summary.number),
        "truth": truth and {name: getattr(truth, name) for name in _TRUTH_MEASURES},
        "seconds": summary.seconds,
    }
