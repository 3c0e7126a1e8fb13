"""Whether a summary that was read is consistent, because plots and report combine its parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coview.errors import InputError


def require_consistent(summary: Any) -> None:
    """Raise an error if parts that belong together do not fit."""
    for part, fits in _parts(summary):
        if not fits:
            raise InputError(f"the summary is inconsistent in {part!r}; it was changed after it was written")


def _parts(summary: Any) -> Iterator[tuple[str, bool]]:
    """Yield the names of parts, and whether they fit."""
    points, samples, means, support = summary.points, summary.samples, summary.feature_means, summary.support
    names, labels = {view.name for view in summary.views}, {cluster.label for cluster in summary.clusters}
    yield "n_clusters", summary.n_clusters == len(summary.clusters) == len(labels)
    yield "views", len(names) == len(summary.views)
    agreed = {view.name for view in summary.views if view.agreement is not None}
    lacking = {view.name for view in summary.views if view.n_samples < summary.n_samples}
    for cluster in summary.clusters:
        # A cluster without samples of a view has none that the view keeps together.
        yield "clusters", agreed - lacking <= {*cluster.kept_together} <= agreed
        yield "clusters", {*cluster.contradicted} <= {*cluster.contributions} <= names
    by_view = (*points.view_labels.values(), *points.view_scores.values())
    positions = points.positions if summary.map is not None else None
    unlike = {"view_labels": None, "view_scores": None, "scores": points.scores or None, "positions": positions}
    yield "points", _alike(*(vars(points) | unlike).values(), *by_view) and {*points.labels} <= labels
    yield "points", all(_alike(*scores) for scores in (points.scores, *points.view_scores.values()))
    yield "points", {*points.view_labels, *points.view_scores} <= names
    yield "samples", _alike(*vars(samples).values()) and {*(samples.best_views or ())} <= names
    yield "samples", {*samples.labels, *(samples.nearest_others or ())} <= labels
    if summary.refits is not None:
        yield "refits", len(summary.refits.dissolved) == len(labels) and samples.stability is not None
    if summary.map is not None:
        yield "map", _alike(summary.map.rows, summary.map.positions)
        yield "map", {len(xy) for xy in (*summary.map.positions, *points.positions)} <= {2}
    if means is not None:
        yield "feature_means", _alike(means.views, means.names, *means.values) and {*means.views} <= names
        yield "feature_means", len(means.values) == len(labels)
    if summary.truth is not None:
        table = summary.truth.contingency
        yield "truth", len(table) == len(labels) and _alike(summary.truth.classes, *table)
    if summary.similarities is not None:
        values = summary.similarities.values
        yield "similarities", _alike(summary.similarities.labels, values, *values)
    if support is not None:
        grouped = sorted(label for group in support.groups for label in group.clusters)
        yield "support", _alike(grouped, support.clusters, support.valleys, support.nearest)
        yield "support", grouped == sorted({*support.clusters} & labels) and {*support.nearest} <= {None, *grouped}
        yield "support", sum(group.size for group in support.groups) == support.n_samples
    if summary.number is not None:
        parts, votes = summary.number.parts, {vote[0] for vote in summary.number.votes if len(vote) == 2}
        yield "number", sum(part.n_clusters for part in parts) == summary.number.n_clusters and len(parts) in votes


def _alike(*columns: Any) -> bool:
    """Return whether these have the same length, without those that are None."""
    return len({len(each) for each in columns if each is not None}) <= 1
