"""All options of the command: their names, help texts and completions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


VIEW = option(
    "Data",
    "--view NAME=FILE",
    "A view: its name and its file, or a folder of 10x Genomics; repeat it for each view. ::VARIABLE selects "
    "one table or sheet of several. For example --view text=text.parquet --view image=images.mat::X",
)
IDS = option(
    "Data",
    "--ids COLUMN",
    "The column with the ids of the samples, to align views. The default is the row names, if all files have "
    "them. For example --ids name",
)
NO_IDS = option("Data", "--no-ids", "Pair samples by row order, and read columns that look like ids as any other.")
ALIGN = option(
    "Data",
    "--align",
    "With ids: strict requires the same samples in every view, inner drops samples that lack a view, outer "
    "keeps them. For example --align outer",
    ALIGNMENTS,
)
ENCODING = option(
    "Data",
    "--categories",
    "Refuse columns of strings, or encode them as categories (one-hot). For example --categories onehot",
    CATEGORIES,
)
DECIMAL = option(
    "Data",
    "--decimal",
    "The decimal mark of CSV and TSV files. Without it, a decimal comma is detected. For example --decimal ,",
    DECIMAL_MARKS,
)
TRANSPOSE = option(
    "Data",
    "--transpose VIEW",
    "A view whose file has features in rows and samples in columns; repeat it for each such view. "
    "For example --transpose genes",
)
DROP = option("Data", "--drop [VIEW=]COLUMN", "A column to leave out, of all views or one. For example --drop age")
COLUMNS = option("Data", "--columns [VIEW=]NAMES", "The only columns of a view. For example --columns lab=age,weight")
TRUTH = option(
    "Data",
    "--truth FILE[::COLUMN]",
    "Known classes for evaluation; the clustering does not use them. COLUMN is a column of obs in .h5ad and "
    ".h5mu files, and a variable in .mat and .npz files. For example --truth classes.csv::species, "
    "--truth cells.h5ad::cell_type or --truth cells.h5mu::rna:cell_type",
)

METHOD = option(
    "Model",
    "--method -m NAME",
    "The method; coview methods lists them. The default, coview, is the consensus of many clusterings. "
    "For example --method tmvkscr",
    METHODS,
)
COMPARED_METHODS = option(
    "Model",
    "--methods all|NAMES",
    "Names of methods, separated by commas; coview methods lists them. For example --methods coview,mvksc,opmc",
    comparable_names,
)
CLUSTERS = option(
    "Model",
    "-k --n-clusters COUNT|FROM..TO|auto",
    "The number of clusters. By default, coview selects it; of a range, it takes the number nearest to that. "
    "comic finds it by itself. For example -k 6, -k 4..8 or -k auto",
    ("auto",),
)
ONE_NUMBER_OF_CLUSTERS = option("Model", "-k --n-clusters COUNT", "The number of clusters. For example -k 6")
KERNEL = option(
    "Model",
    "--kernel [VIEW=]KERNEL",
    "The kernel of all views, or of one view if its name comes first, with its parameters: "
    f"{_summaries(KERNELS)}. The default is auto for tmvkscr, and rbf for other methods. "
    "For example --kernel rbf:sigma2=0.5, or --kernel text=poly:degree=3",
    KERNELS,
)
RHO = option(
    "Model",
    "--rho WEIGHT",
    "tmvkscr: weight of the sum of the views' kernels (1) against their product (0); the default is 1. "
    "For example --rho 0.5",
)
KAPPA = option(
    "Model",
    "--kappa [VIEW=]WEIGHT",
    "tmvkscr: weight of a view in the sum; the default is 1. For example --kappa text=2 --kappa image=1",
)
ASSIGNER = option(
    "Model",
    "--assigner",
    f"Rule that turns scores into clusters: {_summaries(ASSIGNERS)}. For example --assigner codebook",
    ASSIGNERS,
)
N_TRAIN = option(
    "Model",
    "--n-train COUNT|FRACTION|auto",
    "Train on some of the samples and label all; for more than about 20,000 samples. "
    "For example --n-train 2000, --n-train 0.1 or --n-train auto",
)
SELECT = option(
    "Model",
    "--select",
    f"How the training samples of --n-train are selected: {_summaries(SELECTORS)}. For example --select kmeans",
    SELECTORS,
)
PREPROCESS = option(
    "Model",
    "--preprocess [VIEW=]STEPS",
    "Preprocessing of all views, or of one view if its name comes first: none, "
    f"{_summaries(STEPS).replace('pca (', 'pcaN (')}; + joins steps. The default is standard, but none for views "
    "with another kernel than rbf. For example --preprocess text=tfidf+l2 --preprocess image=standard",
    STEP_NAMES,
)
IMPUTE = option(
    "Model",
    "--impute [VIEW=]STEP",
    "How empty cells of all views, or of one view, are filled: median, the median of the column, or nearest, the "
    "mean of the nearest samples. They are refused by default. For example --impute lab=median",
    IMPUTATIONS,
)
SEED = option(
    "Model",
    "--seed INTEGER",
    "Seed of the random numbers. The same seed gives the same result. For example --seed 7",
)
STABILITY = option(
    "Model",
    "--stability COUNT",
    "Fit the same settings on halves of the samples, so many times, and report how stable each cluster and sample "
    "is. For example --stability 20",
)

RUN_FOLDER = option("Output", "--output -o FOLDER", "Folder for the results. For example -o run", parser=_written_path)
COMPARISON_FOLDER = option(
    "Output",
    "--output -o FOLDER",
    "Folder for comparison.json and comparison.html; without it nothing is written. For example -o comparison",
    parser=_written_path,
)
REPORT_FILE = option(
    "Output",
    "--output -o FILE",
    "The file to write; the default is report.html in the folder. For example -o results.html",
)
LABEL_FILE = option(
    "Output", "--output -o FILE", "The file of labels: .csv, .tsv, .parquet or .npy. For example -o labels.csv"
)
LABELS_FORMAT = option(
    "Output", "--labels-format", "Format of the labels. For example --labels-format parquet", LABEL_FORMATS
)
LABEL_COLUMN = option(
    "Output",
    "--column NAME",
    "A column of the file of labels beside the clusters; repeat it for several. By default all are written: "
    "membership, second_cluster, novelty, best_view. For example --column membership",
)
DRAW = option("Output", "--report/--no-report", "Write report.html.")
ALSO_REPORT = option(
    "Output",
    "--report FILE",
    "Also write a report of these samples, with their places on the map of the training samples. The files are "
    "then read whole. For example --report new.html",
)
FORCE = option("Output", "--force", "Replace the results of an earlier run in the folder.")
FORCE_FILES = option("Output", "--force", "Replace the files if they exist.")
JSON = option("Output", "--json", "Print one JSON object instead of tables.")
QUIET = option("Output", "--quiet -q", "Print only errors (and JSON).")
DEBUG = option("Output", "--debug", "Print the traceback of an error.")
