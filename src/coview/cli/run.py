"""One run: fit, summarise, and write the folder that `coview report` and `coview predict` read."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from coview.cli.folder import complete_folder
from coview.cli.terminal import Progress, Terminal

if TYPE_CHECKING:
    from coview.summary import Summary
    from coview.views import Views

# What a run may write; one of the two files of labels.
RUN_FILES = ("model.safetensors", "labels.csv", "labels.parquet", "summary.json", "report.html")


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
        if draw:
            progress("report", 3, 4)
            _draw(summary, folder / "report.html", terminal)
        written = [name for name in RUN_FILES if (folder / name).exists()]
    return summary, written


def _fitted(estimator: Any, views: Views, progress: Progress) -> Any:
    """Fit, and report the stages of methods that tell them."""

    def stage(name: str, done: int, total: int) -> None:
        progress(f"fitting: {name}", done, total)

    _report_to(stage, estimator)
    model = estimator.fit(views)
    while model is not None:  # trained copies, too, are saved or kept
        _report_to(None, model)
        model = vars(model).get("estimator_")
    return estimator


def _report_to(stage: Any, estimator: Any) -> None:
    known = [key for key in estimator.get_params() if key == "progress" or key.endswith("__progress")]
    estimator.set_params(**dict.fromkeys(known, stage))


def _save(model: Any, path: Path, terminal: Terminal) -> None:
    from coview.persist import save

    if hasattr(model, "predict"):
        save(model, path)
    else:
        terminal.note(f"{_innermost(model)} cannot label new samples, so there is no model to save")


def _innermost(model: Any) -> str:
    while hasattr(model, "estimator"):
        model = model.estimator
    return type(model).__name__


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
        "truth": truth and {"ari": truth.ari, "nmi": truth.nmi, "accuracy": truth.accuracy, "purity": truth.purity},
        "seconds": summary.seconds,
    }
