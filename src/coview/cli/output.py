"""Results of a command: the support and the tables of the clusters, and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coview.base.text import decimals, percent, plural, shortened_apart
from coview.cli.terminal import Terminal
from coview.errors import InputError

if TYPE_CHECKING:
    from coview.compare import Comparison
    from coview.summary import Summary, Truth


def print_support(terminal: Terminal, summary: Summary) -> None:
    """Print how the number of clusters was selected and how well they are supported, before what depends on it."""
    from coview.evaluate.words import number_in_words, support_in_words

    if summary.number is not None:
        terminal.line(number_in_words(summary.number))
    if summary.support is not None:
        terminal.line(" ".join(support_in_words(summary.support)))


def print_stability(terminal: Terminal, summary: Summary) -> None:
    """Print the stability of the clusters, if it was measured with --stability."""
    from coview.certainty.stability import HEADER, stability_rows
    from coview.summary.sentences import refits_in_words

    if summary.refits is not None and summary.n_clusters > 1:
        each = zip(summary.clusters, summary.refits.dissolved, strict=True)
        rows = stability_rows((cluster.label, cluster.size, cluster.stability, gone) for cluster, gone in each)
        terminal.table("Stability", HEADER, rows)
        terminal.line(" ".join(refits_in_words(summary)))


def print_contributions(terminal: Terminal, summary: Summary) -> None:
    """Print which views contribute most to which clusters, and what is lost without each view."""
    from coview.summary.sentences import contributions_in_words, loss_in_words

    for sentence in (*contributions_in_words(summary), *loss_in_words(summary)):
        terminal.line(sentence)


def print_clusters(terminal: Terminal, summary: Summary) -> None:
    """Print the clusters and their distinguishing features."""
    known = summary.truth is not None
    rows = []
    short = shortened_apart(feature.name for cluster in summary.clusters for feature in cluster.features[:2])
    for cluster in summary.clusters:
        features = ", ".join(
            f"{feature.view}/{short[feature.name]} {'high' if feature.effect > 0 else 'low'}"
            for feature in cluster.features[:2]
        )
        main_class = [next(iter(cluster.classes or {}), "")] if known else []
        rows.append((str(cluster.label), str(cluster.size), percent(cluster.fraction), features, *main_class))
    headings = ("cluster", "samples", "fraction", "distinguishing features", *(["main class"] if known else []))
    terminal.table("Clusters", headings, rows)
    agreed = {view.name: view.agreement for view in summary.views if view.agreement is not None}
    if len(agreed) > 1:
        by_view = ", ".join(f"{name} {decimals(value)}" for name, value in agreed.items())
        terminal.line(f"Adjusted Rand index between each view's labels and the joint labels: {by_view}")
    if summary.truth is not None:
        terminal.line(describe_truth(summary.truth))
    views = plural(len(summary.views), "view")
    terminal.line(f"{summary.n_samples} samples, {views}; fitted in {summary.seconds['fit']:.2f} s")


def check_report(option: str, path: Path) -> None:
    """Refuse, before any work, a file that a report cannot be written to; `option` names it in messages."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{option} {path}: expected a name that ends in .html, because the report is a web page")
    if not path.parent.is_dir() or path.is_dir():
        raise InputError(f"{path} cannot be written: its folder must exist, and it must not be a folder itself")


def print_address(terminal: Terminal, path: Path) -> None:
    """Print how to open a report; many terminals make the address a link."""
    terminal.line(f"To see the report, open this address in a browser: {path.resolve().as_uri()}")


def print_files(terminal: Terminal, folder: Path, written: Sequence[str], values: Mapping[str, Any]) -> None:
    """Print the names of the files and the address of a report, and with --json these values."""
    terminal.line(f"Written to {folder}/: {', '.join(written)}")
    for name in written:
        if name.endswith(".html"):
            print_address(terminal, folder / name)
    terminal.print_json({**values, "output": str(folder), "files": written})


def draw_report(result: Summary | Comparison, path: Path, terminal: Terminal) -> None:
    """Write the report, or note that its libraries are not installed."""
    try:
        from coview.report import write_report

        write_report(result, path)
    except ImportError as error:
        terminal.note(f"{path.name} is not written: {error}")


def describe_truth(truth: Truth) -> str:
    """Return the agreement with known classes as a line; the largest class is the accuracy of a single cluster."""
    return (
        f"Known classes: ARI {decimals(truth.ari, 3)}, NMI {decimals(truth.nmi, 3)} (1 is perfect), accuracy "
        f"{percent(truth.accuracy)} (largest class alone: {percent(truth.largest_class)})"
    )
