"""The `coview` command; each command is one call of the library, and heavy imports wait until it runs."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

import coview

app = typer.Typer(
    name="coview",
    help="Cluster samples that are described by several views at once.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coview {coview.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Cluster samples that are described by several views at once."""


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path("demo-run"),
) -> None:
    """Cluster three views of handwritten digits, and compare with the digits that people wrote.

    Example: coview demo -o demo-run
    """
    from rich.console import Console
    from rich.table import Table
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    from coview.datasets import digits_views

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot make the folder {output}: {error.strerror}") from None
    views, digits = digits_views()
    start = perf_counter()
    # Everything as a newcomer would leave it: the digits play no part in the fit or in these settings.
    model = coview.TMvKSCR(n_clusters=10, random_state=0).fit(views)
    seconds = perf_counter() - start
    clusters = [digits[model.labels_ == label] for label in range(model.labels_.max() + 1)]
    summary = {
        "method": repr(model),
        "n_samples": views.n_samples,
        "views": {name: {"columns": x.shape[1], "kernel": repr(model.kernels_[name])} for name, x in views.items()},
        "cluster_sizes": [len(members) for members in clusters],
        "eigenvalues": model.eigenvalues_.tolist(),
        "explained_variance_ratio": model.explained_variance_ratio_.tolist(),
        "ari": float(adjusted_rand_score(digits, model.labels_)),
        "nmi": float(normalized_mutual_info_score(digits, model.labels_)),
        "seconds": seconds,
    }

    console = Console()
    table = Table("cluster", "samples", "mostly the digit", "share", title="Clusters", title_justify="left")
    for label, members in enumerate(clusters):
        counts = [int((members == digit).sum()) for digit in range(10)]
        share = f"{max(counts) / len(members):.0%}"
        table.add_row(str(label), str(len(members)), str(counts.index(max(counts))), share)
    console.print(table)
    table = Table("component", "eigenvalue", "explained variance", title="Shared latent space", title_justify="left")
    for number, (value, share_of_trace) in enumerate(
        zip(model.eigenvalues_, model.explained_variance_ratio_, strict=True), start=1
    ):
        table.add_row(str(number), f"{value:.4f}", f"{share_of_trace:.1%}")
    console.print(table)
    console.print(f"{views.n_samples} handwritten digits, views: {', '.join(views.names)}; fitted in {seconds:.2f} s")
    console.print(f"Against the known digits: ARI {summary['ari']:.3f}, NMI {summary['nmi']:.3f} (1 is perfect)")

    lines = ["sample,cluster", *(f"{i},{label}" for i, label in enumerate(model.labels_.tolist()))]
    (output / "labels.csv").write_text("\n".join(lines) + "\n")
    (output / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    console.print(f"Written to {output}/: labels.csv, the cluster of each sample, and summary.json, the numbers above")


def main() -> None:
    """Run the command."""
    app()
