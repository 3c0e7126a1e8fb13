"""What a run found, told to people: the clusters, and how the settings were chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coview.cli.terminal import Terminal

if TYPE_CHECKING:
    from coview.summary import Summary
    from coview.tune.record import Tuning

_SHOWN = 10  # settings that a terminal has room for


def tell_clusters(terminal: Terminal, summary: Summary) -> None:
    """Show the clusters and what sets them apart."""
    rows = []
    for cluster in summary.clusters:
        special = ", ".join(
            f"{feature.view}/{feature.name} {'high' if feature.effect > 0 else 'low'}"
            for feature in cluster.features[:2]
        )
        mostly = next(iter(cluster.classes), "") if cluster.classes else None
        rows.append((str(cluster.label), str(cluster.size), f"{cluster.share:.0%}", special, mostly))
    headings = ("cluster", "samples", "share", "what sets it apart", "mostly")
    width = 5 if summary.truth is not None else 4
    terminal.table("Clusters", headings[:width], [tuple(str(cell or "") for cell in row[:width]) for row in rows])
    agreed = {view.name: view.agreement for view in summary.views if view.agreement is not None}
    if len(agreed) > 1:
        by_view = ", ".join(f"{name} {value:.2f}" for name, value in agreed.items())
        terminal.say(f"How far each view by itself agrees with the clusters (1 is fully): {by_view}")
    if summary.truth is not None:
        terminal.say(
            f"Against the known classes: ARI {summary.truth.ari:.3f}, NMI {summary.truth.nmi:.3f} (1 is perfect)"
        )
    views = "1 view" if len(summary.views) == 1 else f"{len(summary.views)} views"
    terminal.say(f"{summary.n_samples} samples, {views}; fitted in {summary.seconds['fit']:.2f} s")


def tell_search(terminal: Terminal, tuning: Tuning) -> None:
    """Show how the settings were chosen: the best of what was tried, by number of clusters if there were several."""
    from coview.tune.criterion import evaluated_numbers
    from coview.tune.record import mean_criteria, ranked_settings

    chosen = tuning.evaluations[tuning.selected]
    best, means = ranked_settings(tuning.evaluations, chosen.n_clusters)[:_SHOWN], mean_criteria(tuning.evaluations)
    terminal.table(
        f"Settings for {chosen.n_clusters} clusters (criterion: mean of a setting's rounds)",
        ("setting", "samples", "criterion", "agree", "stable", "entropy"),
        [
            (
                f"→ {row.label}" if row is chosen else row.label,
                str(row.n_samples),
                *map(_shown, (means[row], row.agreement, row.stability, row.size_entropy)),
            )
            for row in (best if chosen in best else [*best[:-1], chosen])
        ],
    )
    numbers = evaluated_numbers(tuning.evaluations)
    if len(numbers) > 1:
        terminal.table(
            "Numbers of clusters",
            ("clusters", "criterion", "line fit", "membership", "eigengap"),
            [
                (
                    f"{'→ ' if number.n_clusters == chosen.n_clusters else ''}{number.n_clusters}",
                    *map(_shown, (number.criterion, number.best.line_fit, number.best.membership)),
                    f"{number.best.eigengap:.4f}",
                )
                for number in numbers
            ],
        )
    terminal.say(tuning.reason)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
