"""One run: fit, summarise, and write the folder that `coview report` and `coview predict` read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from coview.cli.folder import check_folder, complete_folder
from coview.cli.inputs import Sources, require_writer
from coview.cli.settings import chosen
from coview.cli.terminal import Progress, Terminal

if TYPE_CHECKING:
    from coview.summary import Summary
    from coview.views import Views

# What a run may write; one of the two files of labels, and what was tried where the settings were chosen from the data.
RUN_FILES = ("model.safetensors", "labels.csv", "labels.parquet", "summary.json", "tuning.csv", "report.html")


@dataclass(frozen=True)
class Target:
    """Where a run goes, and in which form."""

    folder: Path
    labels_format: str
    draw: bool
    force: bool


class Wanted(Protocol):
    """A model as it was typed."""

    def estimator(self, names: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
        """Return the estimator for views of these names, and what to tell about it."""


def run_files(
    wanted: Wanted, sources: Sources, target: Target, terminal: Terminal, command: str
) -> tuple[Summary, list[str]]:
    """Check everything that can be checked, read the files, and run."""
    chosen("--labels-format", target.labels_format, ("csv", "parquet"))
    require_writer(f".{target.labels_format}")
    estimator, notes = wanted.estimator(tuple(sources.files))
    check_folder(target.folder, RUN_FILES, force=target.force)
    for note in notes:
        terminal.note(note)
    with terminal.working() as progress:
        progress("reading the files", 0, 4)
        start = perf_counter()
        loaded, classes = sources.read()
        for note in loaded.notes:
            terminal.note(note)
        return run(
            estimator,
            loaded.views,
            target.folder,
            terminal,
            progress,
            ids=loaded.ids,
            ids_name=sources.ids,
            truth=classes,
            labels_name=f"labels.{target.labels_format}",
            draw=target.draw,
            command=command,
            seconds={"read": perf_counter() - start},
        )


def run(
    estimator: Any,
    views: Views,
    output: Path,
    terminal: Terminal,
    progress: Progress,
    *,
    ids: Any = None,
    ids_name: str | None = None,
    truth: Any = None,
    labels_name: str = "labels.csv",
    draw: bool = True,
    command: str | None = None,
    seconds: dict[str, float] | None = None,
) -> tuple[Summary, list[str]]:
    """Fit, summarise and write the folder; return the summary and the names of the files."""
    from coview.io import write_labels
    from coview.summary import summarize

    seconds, start = dict(seconds or {}), perf_counter()
    progress("fitting", 1, 4)
    model = _fitted(estimator, views, progress)
    seconds["fit"] = perf_counter() - start
    progress("summary", 2, 4)
    with complete_folder(output, RUN_FILES) as folder:
        write_labels(folder / labels_name, model.labels_, ids=ids, name=ids_name or "sample")
        _save(model, folder / "model.safetensors", terminal)
        summary = summarize(
            model, views, ids=ids, truth=truth, seconds=seconds, notes=tuple(terminal.notes), command=command
        )
        (folder / "summary.json").write_text(summary.to_json(), encoding="utf-8")
        _write_tried(summary, folder / "tuning.csv")
        if draw:
            progress("report", 3, 4)
            _draw(summary, folder / "report.html", terminal)
        written = [name for name in RUN_FILES if (folder / name).exists()]
    return summary, written


def _fitted(estimator: Any, views: Views, progress: Progress) -> Any:
    """Fit, and report the stages of methods that tell them."""
    from coview.compose.wrapper import nested_models

    def stage(name: str, done: int, total: int) -> None:
        progress(f"fitting: {name}", done, total)

    _report_to(stage, estimator)
    for model in nested_models(estimator.fit(views)):  # fitted models are saved or kept without the callback
        _report_to(None, model)
    return estimator


def _report_to(stage: Any, estimator: Any) -> None:
    known = [key for key in estimator.get_params() if key == "progress" or key.endswith("__progress")]
    estimator.set_params(**dict.fromkeys(known, stage))


def _save(model: Any, path: Path, terminal: Terminal) -> None:
    from coview.compose.wrapper import nested_models
    from coview.persist import save

    if hasattr(model, "predict"):
        save(model, path)
    else:
        terminal.note(
            f"{type([*nested_models(model)][-1]).__name__} cannot label new samples, so there is no model to save"
        )


def _write_tried(summary: Summary, path: Path) -> None:
    """Write all that was tried, a row for each setting, number of clusters and round, where settings were chosen."""
    if summary.tuning is None:
        return
    views, rows = [view.name for view in summary.views], summary.tuning.evaluations
    plain = [field.name for field in fields(rows[0]) if field.name not in ("steps", "kappa")]
    by_view = [f"{what} {view}" for what in ("preparation", "kappa") for view in views]
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["chosen", *plain, *by_view])
        for i, row in enumerate(rows):
            numbers = (getattr(row, name) for name in plain)
            table.writerow([int(i == summary.tuning.selected), *numbers, *row.steps, *row.kappa])


def _draw(summary: Summary, path: Path, terminal: Terminal) -> None:
    try:
        from coview.report import write_report

        write_report(summary, path)
    except ImportError as error:
        terminal.note(f"there is no report.html: {error}")


def brief(summary: Summary) -> dict[str, Any]:
    """The numbers that a machine most likely wants; summary.json has them all."""
    truth = summary.truth
    return {
        "method": summary.method,
        "n_samples": summary.n_samples,
        "n_train": summary.n_train,
        "n_clusters": summary.n_clusters,
        "sizes": [cluster.size for cluster in summary.clusters],
        "silhouette": summary.silhouette,
        "agreement": {view.name: view.agreement for view in summary.views},
        "tuning": _tuning(summary),
        "truth": truth and {"ari": truth.ari, "nmi": truth.nmi, "accuracy": truth.accuracy, "purity": truth.purity},
        "seconds": summary.seconds,
    }


def _tuning(summary: Summary) -> dict[str, Any] | None:
    if summary.tuning is None:
        return None
    found, views = summary.tuning.evaluations[summary.tuning.selected], [view.name for view in summary.views]
    return {
        "reason": summary.tuning.reason,
        "kernel": found.kernel,
        "steps": dict(zip(views, found.steps, strict=True)),
        "rho": found.rho,
        "kappa": dict(zip(views, found.kappa, strict=True)),
        "criterion": found.criterion,
        "n_tried": len({row.setting for row in summary.tuning.evaluations}),
    }
