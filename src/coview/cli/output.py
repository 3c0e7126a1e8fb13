"""Results of a command: tables of the clusters and of the evaluated settings, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from coview.cli.terminal import Terminal
from coview.formats import decimals, percent, shortened_apart

if TYPE_CHECKING:
    from coview.compare import Comparison
    from coview.summary import Summary, Truth
    from coview.tune.record import Tuning

_MOST_SETTINGS = 10  # rows of the table


def print_validity(terminal: Terminal, summary: Summary) -> None:
    """Print how well the clusters are supported, before what depends on it."""
    from coview.validity.words import validity_in_words

    if summary.validity is not None:
        found = "No cluster structure found. " if summary.n_clusters == 1 else ""
        terminal.line(found + " ".join(validity_in_words(summary.validity)))


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
    views = "1 view" if len(summary.views) == 1 else f"{len(summary.views)} views"
    terminal.line(f"{summary.n_samples} samples, {views}; fitted in {summary.seconds['fit']:.2f} s")


def print_tuning(terminal: Terminal, tuning: Tuning) -> None:
    """Print the best evaluated settings, and the numbers of clusters if several were evaluated."""
    from coview.tune.criterion import evaluated_numbers
    from coview.tune.record import mean_criteria, ranked_settings

    selected = tuning.evaluations[tuning.selected]
    best = ranked_settings(tuning.evaluations, selected.n_clusters)[:_MOST_SETTINGS]
    means = mean_criteria(tuning.evaluations)
    terminal.table(
        f"Settings for {selected.n_clusters} clusters (criterion: mean over rounds)",
        ("setting", "samples", "criterion", "agree", "stable", "size\nentropy"),
        [
            (
                f"→ {row.label}" if row is selected else row.label,
                str(row.n_samples),
                *(decimals(value, 3) for value in (means[row], row.agreement, row.stability, row.size_entropy)),
            )
            for row in (best if selected in best else [*best[:-1], selected])
        ],
    )
    numbers = evaluated_numbers(tuning.evaluations)
    if len(numbers) > 1:
        terminal.table(
            "Numbers of clusters",
            ("clusters", "criterion", "line fit", "membership", "eigengap"),
            [
                (
                    f"{'→ ' if number.n_clusters == selected.n_clusters else ''}{number.n_clusters}",
                    *(decimals(value, 3) for value in (number.criterion, number.best.line_fit, number.best.membership)),
                    decimals(number.best.eigengap, 4),
                )
                for number in numbers
            ],
        )
    terminal.line(tuning.reason)


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
