"""One run: fit, summarise, and write the folder that `coview report` and `coview predict` read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from coview.base.atomic import complete_or_absent, write_complete
from coview.base.progress import Progress
from coview.cli.folder import claimed_folder
from coview.cli.inputs import LabelledInputs
from coview.cli.model import ModelOptions
from coview.cli.options import OUTPUT, Force, RunPath, option
from coview.cli.output import draw_report
from coview.cli.terminal import Terminal
from coview.registry import check_name

if TYPE_CHECKING:
    from coview.core.assign import Labels
    from coview.data.view import Array
    from coview.data.views import Views
    from coview.summary import Summary

LABEL_FORMATS = ("csv", "parquet")
# All files that a run may write: one of the two files of labels and its description, and map.csv of
# methods with scores.
RUN_FILES = (
    "model.safetensors",
    *(f"labels.{ending}{part}" for ending in LABEL_FORMATS for part in ("", "-metadata.json")),
    "map.csv",
    "summary.json",
    "report.html",
)
TRUTH_MEASURES = ("ari", "nmi", "accuracy", "largest_class", "purity")


@dataclass(frozen=True)
class RunFolder:
    """The options of the folder of a run."""

    output: RunPath = Path("coview-run")
    labels_format: Annotated[
        str,
        option(OUTPUT, "--labels-format", "Format of the labels. For example --labels-format parquet", LABEL_FORMATS),
    ] = "csv"
    draw: Annotated[bool, option(OUTPUT, "--report/--no-report", "Write report.html.")] = True
    force: Force = False


def run_files(
    options: ModelOptions, inputs: LabelledInputs, folder: RunFolder, terminal: Terminal, command: str
) -> tuple[Summary, list[str]]:
    """Check the options, read the files, and return what `run` returns."""
    from coview.io.labels import require_writer

    check_name("--labels-format", folder.labels_format, LABEL_FORMATS)
    require_writer(f".{folder.labels_format}")
    estimator, notes = options.estimator(tuple(inputs.files))
    measure_stability = options.measure_stability()
    with claimed_folder(folder.output, RUN_FILES, force=folder.force) as written_to, terminal.working() as progress:
        progress("reading the files", 0, 4)
        start = perf_counter()
        loaded = inputs.read(empty_cells=[name for name in inputs.files if estimator.fills_cells(name)])
        classes, truth_notes = inputs.read_truth(loaded)
        terminal.note(*notes, *loaded.notes, *truth_notes)
        return run(
            estimator,
            loaded.views,
            written_to,
            folder,
            terminal,
            progress,
            ids=loaded.ids,
            ids_name=inputs.ids,
            truth=classes,
            command=command,
            seconds={"read": perf_counter() - start},
            measure_stability=measure_stability,
        )


def run(
    estimator: Any,
    views: Views,
    folder: Path,
    options: RunFolder,
    terminal: Terminal,
    progress: Progress,
    *,
    ids: Any = None,
    ids_name: str | None = None,
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

    seconds, start = dict(seconds or {}), perf_counter()
    progress("fitting", 1, 4)
    model = estimator.fit_reporting(views, lambda stage, done, total: progress(f"fitting: {stage}", done, total))
    seconds["fit"] = perf_counter() - start
    stability = None
    if measure_stability is not None:
        start = perf_counter()
        stability = measure_stability(model, views, progress)
        seconds["stability"] = perf_counter() - start
    progress("summary", 2, 4)
    name, views = ids_name or "sample", model.check(views)
    columns = sample_columns(model.model_, views, model.labels_)
    labels = folder / f"labels.{options.labels_format}"
    in_file = columns.in_file(stability=None if stability is None else stability.samples)
    write_description(write_labels(labels, columns.labels, ids, name=name, columns=in_file), name)
    terminal.note(*notes_on_formulas(labels, ids))
    if "predict" in model.abilities:
        save(model, folder / "model.safetensors")
    else:
        terminal.note(f"{type(model.method).__name__} cannot label new samples, so no model is saved")
    given = Given(ids, truth, seconds, tuple(terminal.notes), command, stability=stability)
    summary, positions = summarize_with_positions(model, views, given, columns)
    write_complete(folder / "summary.json", summary.to_json().encode())
    if positions is not None:
        _write_map(folder / "map.csv", name, ids, positions, columns.labels)
    if options.draw:
        progress("report", 3, 4)
        draw_report(summary, folder / "report.html", terminal)
    written = [name for name in RUN_FILES if (folder / name).exists()]
    return summary, written


def _write_map(path: Path, ids_name: str, ids: Any, positions: Array, labels: Labels) -> None:
    """Write the position of each sample on the map, and its cluster."""
    from coview.io.labels import delimited_rows

    with complete_or_absent(path) as file, delimited_rows(file) as table:
        table.writerow([ids_name, "x", "y", "cluster"])
        names = range(len(labels)) if ids is None else ids
        for name, (x, y), label in zip(names, positions.tolist(), labels.tolist(), strict=True):
            table.writerow([name, f"{x:.5f}", f"{y:.5f}", label])


def brief(summary: Summary) -> dict[str, Any]:
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
        "truth": truth and {name: getattr(truth, name) for name in TRUTH_MEASURES},
        "seconds": summary.seconds,
    }
