"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from coview.cli.settings import METHOD_NAMES, STEPS

DATA, MODEL, OUTPUT = "Data", "Model", "Output"


def completing(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Offer these values to the shell."""
    return lambda incomplete: [name for name in known if name.startswith(incomplete)]


ViewFiles = Annotated[
    list[str],
    typer.Option(
        "--view",
        metavar="NAME=FILE",
        help="A view: its name and its file; repeat it for each view. Files that hold several tables take ::VARIABLE. "
        "For example --view text=text.parquet --view image=images.mat::X",
        rich_help_panel=DATA,
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--ids",
        metavar="COLUMN",
        help="The column with the ids of the samples; views are aligned by it. For example --ids sample_id",
        rich_help_panel=DATA,
    ),
]
Align = Annotated[
    str,
    typer.Option(
        "--align",
        metavar="strict|inner",
        help="With --ids: strict wants the same samples in every view, inner keeps those that all views have and says "
        "what was dropped. For example --align inner",
        autocompletion=completing(("strict", "inner")),
        rich_help_panel=DATA,
    ),
]
Categories = Annotated[
    str,
    typer.Option(
        "--categories",
        metavar="refuse|onehot",
        help="What to do with columns of text: refuse them, or make a 0/1 column of each value. "
        "For example --categories onehot",
        autocompletion=completing(("refuse", "onehot")),
        rich_help_panel=DATA,
    ),
]
TruthFile = Annotated[
    str | None,
    typer.Option(
        "--truth",
        metavar="FILE[::COLUMN]",
        help="Known classes to compare with; they play no part in the clustering. "
        "For example --truth classes.csv::species",
        rich_help_panel=DATA,
    ),
]
Preprocess = Annotated[
    list[str] | None,
    typer.Option(
        "--preprocess",
        metavar="[VIEW=]NAME",
        help="How views are prepared, or one view with its name in front: standard (columns of mean 0 and standard "
        "deviation 1), l2 (rows of length 1), tfidf (rare words count more), log1p, total (rows of equal sum), pca50 "
        "(at most 50 principal components) or none; + joins them. Without it: standard, or none where a kernel other "
        "than rbf is chosen. For example --preprocess text=tfidf+l2 --preprocess image=standard",
        autocompletion=completing(STEPS),
        rich_help_panel=MODEL,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        help="Where random choices start: the same seed gives the same answer. For example --seed 7",
        rich_help_panel=MODEL,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace the results of an earlier run in the folder.", rich_help_panel=OUTPUT),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object for machines instead of tables.", rich_help_panel=OUTPUT),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON).", rich_help_panel=OUTPUT)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error as well.", rich_help_panel=OUTPUT)]
Clusters = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--n-clusters",
        metavar="COUNT|FROM..TO|auto",
        help="How many clusters to find, or the numbers to choose from; auto is 2..12. Only comic finds the number by "
        "itself. For example -k 6, -k 4..8 or -k auto",
        autocompletion=completing(("auto",)),
        rich_help_panel=MODEL,
    ),
]
NTrain = Annotated[
    str | None,
    typer.Option(
        "--n-train",
        metavar="COUNT|SHARE|auto",
        help="Train on some of the samples and label all: for more than some 20,000. "
        "For example --n-train 2000, --n-train 0.1 or --n-train auto",
        rich_help_panel=MODEL,
    ),
]
Select = Annotated[
    str | None,
    typer.Option(
        metavar="uniform|entropy|anchors",
        help="Which samples to train on, with --n-train. For example --select anchors",
        autocompletion=completing(("uniform", "entropy", "kmeans")),
        rich_help_panel=MODEL,
    ),
]
LabelsFormat = Annotated[
    str,
    typer.Option(
        metavar="csv|parquet",
        help="How to write the labels. For example --labels-format parquet",
        autocompletion=completing(("csv", "parquet")),
        rich_help_panel=OUTPUT,
    ),
]
Draw = Annotated[
    bool,
    typer.Option("--report/--no-report", help="Write report.html as well.", rich_help_panel=OUTPUT),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="How to cluster; coview methods lists them. For example --method mvksc",
        autocompletion=completing(METHOD_NAMES),
        rich_help_panel=MODEL,
    ),
]
Run = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="Folder for the results. For example -o run",
        rich_help_panel=OUTPUT,
    ),
]
