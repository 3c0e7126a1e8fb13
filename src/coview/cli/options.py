"""All options of the command: their names, help texts and completions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import typer

from coview.registry import (
    ALIGNMENTS,
    ASSIGNERS,
    CATEGORIES,
    DECIMAL_MARKS,
    IMPUTATIONS,
    KERNELS,
    METHODS,
    SELECTORS,
    STEPS,
    Registry,
)

LABEL_FORMATS = ("csv", "parquet")
STEP_NAMES = ("none", *("pca50" if name == "pca" else name for name in STEPS))


def option(
    panel: str, usage: str, help: str, values: Iterable[str] | Callable[[], Iterable[str]] = (), **others: Any
) -> Any:
    """Return a typer option; --help lists its values unless `usage` has a placeholder, as in "--output -o FOLDER"."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in (values() if callable(values) else values) if name.startswith(incomplete)]

    names = [word for word in usage.split() if word.startswith("-")]
    metavar = " ".join(word for word in usage.split() if word not in names)
    if not metavar and not callable(values):
        metavar = "|".join(values)
    completion = complete if values else None
    return typer.Option(
        *names, help=help, metavar=metavar or None, autocompletion=completion, rich_help_panel=panel, **others
    )


def comparable_names() -> tuple[str, ...]:
    """Return the values of --methods."""
    return ("all", *METHODS)


def _summaries(registry: Registry) -> str:
    """Return all names with their summaries."""
    return ", ".join(f"{name} ({entry.summary})" for name, entry in registry.entries.items())


def _written_path(text: str | Path) -> Path:
    """Return the path of results; an empty one, as from an unset variable of the shell, would be the current folder."""
    if not str(text).strip():
        raise typer.BadParameter("the name is empty; name a folder, or '.' for the current one")
    return Path(text)


_data, _model, _output = (partial(option, panel) for panel in ("Data", "Model", "Output"))

VIEW = _data(
    "--view NAME=FILE",
    "A view: its name and its file, or a folder of 10x Genomics; repeat it for each view. ::VARIABLE selects one "
    "table or sheet of several. For example --view text=text.parquet --view image=images.mat::X",
)
IDS = _data(
    "--ids COLUMN",
    "The column with the ids of the samples, to align views. The default is the row names, if all files have "
    "them. For example --ids name",
)
NO_IDS = _data("--no-ids", "Pair samples by row order, and read columns that look like ids as any other.")
ALIGN = _data(
    "--align",
    "With ids: strict requires the same samples in every view, inner drops samples that lack a view, outer keeps "
    "them. For example --align outer",
    ALIGNMENTS,
)
ENCODING = _data(
    "--categories",
    "Refuse columns of strings, or encode them as categories (one-hot). For example --categories onehot",
    CATEGORIES,
)
DECIMAL = _data(
    "--decimal",
    "The decimal mark of CSV and TSV files. Without it, a decimal comma is detected. For example --decimal ,",
    DECIMAL_MARKS,
)
TRANSPOSE = _data(
    "--transpose VIEW",
    "A view whose file has features in rows and samples in columns; repeat it for each such view. For example "
    "--transpose genes",
)
DROP = _data("--drop [VIEW=]COLUMN", "A column to leave out, of all views or one. For example --drop age")
COLUMNS = _data("--columns [VIEW=]NAMES", "The only columns of a view. For example --columns lab=age,weight")
TRUTH = _data(
    "--truth FILE[::COLUMN]",
    "Known classes for evaluation; the clustering does not use them. COLUMN is a column of obs in .h5ad and "
    ".h5mu files, and a variable in .mat and .npz files. For example --truth classes.csv::species, --truth "
    "cells.h5ad::cell_type or --truth cells.h5mu::rna:cell_type",
)

METHOD = _model(
    "--method -m NAME",
    "The method; coview methods lists them. The default, coview, is the consensus of many clusterings. For "
    "example --method tmvkscr",
    METHODS,
)
COMPARED_METHODS = _model(
    "--methods all|NAMES",
    "Names of methods, separated by commas; coview methods lists them. For example --methods coview,mvksc,opmc",
    comparable_names,
)
CLUSTERS = _model(
    "-k --n-clusters COUNT|FROM..TO|auto",
    "The number of clusters. By default, coview selects it; of a range, it takes the number nearest to that. "
    "comic finds it by itself. For example -k 6, -k 4..8 or -k auto",
    ("auto",),
)
ONE_NUMBER_OF_CLUSTERS = _model("-k --n-clusters COUNT", "The number of clusters. For example -k 6")
KERNEL = _model(
    "--kernel [VIEW=]KERNEL",
    "The kernel of all views, or of one view if its name comes first, with its parameters: "
    f"{_summaries(KERNELS)}. The default is auto for tmvkscr, and rbf for other methods. For example --kernel "
    "rbf:sigma2=0.5, or --kernel text=poly:degree=3",
    KERNELS,
)
RHO = _model(
    "--rho WEIGHT",
    "tmvkscr: weight of the sum of the views' kernels (1) against their product (0); the default is 1. For "
    "example --rho 0.5",
)
KAPPA = _model(
    "--kappa [VIEW=]WEIGHT",
    "tmvkscr: weight of a view in the sum; the default is 1. For example --kappa text=2 --kappa image=1",
)
ASSIGNER = _model(
    "--assigner",
    f"Rule that turns scores into clusters: {_summaries(ASSIGNERS)}. For example --assigner codebook",
    ASSIGNERS,
)
N_TRAIN = _model(
    "--n-train COUNT|FRACTION|auto",
    "Train on some of the samples and label all; for more than about 20,000 samples. For example --n-train 2000, "
    "--n-train 0.1 or --n-train auto",
)
SELECT = _model(
    "--select",
    f"How the training samples of --n-train are selected: {_summaries(SELECTORS)}. For example --select kmeans",
    SELECTORS,
)
PREPROCESS = _model(
    "--preprocess [VIEW=]STEPS",
    "Preprocessing of all views, or of one view if its name comes first: none, "
    f"{_summaries(STEPS).replace('pca (', 'pcaN (')}; + joins steps. The default is standard, but none for views "
    "with another kernel than rbf. For example --preprocess text=tfidf+l2 --preprocess image=standard",
    STEP_NAMES,
)
IMPUTE = _model(
    "--impute [VIEW=]STEP",
    "How empty cells of all views, or of one view, are filled: median, the median of the column, or nearest, the "
    "mean of the nearest samples. They are refused by default. For example --impute lab=median",
    IMPUTATIONS,
)
SEED = _model(
    "--seed INTEGER",
    "Seed of the random numbers. The same seed gives the same result. For example --seed 7",
)
STABILITY = _model(
    "--stability COUNT",
    "Fit the same settings on halves of the samples, so many times, and report how stable each cluster and "
    "sample is. For example --stability 20",
)

RUN_FOLDER = _output("--output -o FOLDER", "Folder for the results. For example -o run", parser=_written_path)
COMPARISON_FOLDER = _output(
    "--output -o FOLDER",
    "Folder for comparison.json and comparison.html; without it nothing is written. For example -o comparison",
    parser=_written_path,
)
REPORT_FILE = _output(
    "--output -o FILE",
    "The file to write; the default is report.html in the folder. For example -o results.html",
)
LABEL_FILE = _output("--output -o FILE", "The file of labels: .csv, .tsv, .parquet or .npy. For example -o labels.csv")
LABELS_FORMAT = _output("--labels-format", "Format of the labels. For example --labels-format parquet", LABEL_FORMATS)
LABEL_COLUMN = _output(
    "--column NAME",
    "A column of the file of labels beside the clusters; repeat it for several. By default all are written: "
    "membership, second_cluster, novelty, best_view. For example --column membership",
)
DRAW = _output("--report/--no-report", "Write report.html.")
ALSO_REPORT = _output(
    "--report FILE",
    "Also write a report of these samples, with their places on the map of the training samples. The files are "
    "then read whole. For example --report new.html",
)
FORCE = _output("--force", "Replace the results of an earlier run in the folder.")
FORCE_FILES = _output("--force", "Replace the files if they exist.")
JSON = _output("--json", "Print one JSON object instead of tables.")
QUIET = _output("--quiet -q", "Print only errors (and JSON).")
DEBUG = _output("--debug", "Print the traceback of an error.")
