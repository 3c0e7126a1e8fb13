"""The data of the report's plots. Coordinates are packed into two bytes each, finer than the pixels of a screen."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coview.base.palette import PALETTE, cluster_style
from coview.base.text import decimals, percent, shortened, shortened_apart
from coview.data.rows import evenly_spaced
from coview.data.view import Array
from coview.evaluate.words import excess_in_words
from coview.report.tables import drawn_branches
from coview.summary.picture import Measure, cluster_measures, excess_range, groups_without_valley
from coview.summary.values import reading_order

if TYPE_CHECKING:
    from coview.core.tree import Branch
    from coview.summary import Similarities, Summary

MAX_POINTS = 5000
MAX_COORDINATES = 500_000  # 1.3 MB of JSON for any number of clusters and views
MAX_SIMILARITIES = 400  # rows and columns of the heat map
MAX_ID_LENGTH = 80
MAX_LEGEND_LENGTH = 16
ROW_HEIGHTS = 8, 24  # pixels for each cluster in the picture of the support: the least, and that of few clusters
MAX_ROWS_HEIGHT = 720

# For each of `palette.MARKERS`, the name in Plotly and the outline in an SVG of 12 by 12.
SHAPES = {
    "o": ("circle", "M6 1a5 5 0 1 0 0 10a5 5 0 1 0 0-10z"),
    "s": ("square", "M1.5 1.5h9v9h-9z"),
    "D": ("diamond", "M6 0.5L11.5 6L6 11.5L0.5 6z"),
    "^": ("triangle-up", "M6 1L11.5 10.5H0.5z"),
    "P": ("cross", "M4 1h4v3h3v4h-3v3h-4v-3h-3v-4h3z"),
    "X": ("x", "M1 3L3 1L6 4L9 1L11 3L8 6L11 9L9 11L6 8L3 11L1 9L4 6z"),
    "v": ("triangle-down", "M6 11L0.5 1.5H11.5z"),
    "p": ("pentagon", "M6 0.8L11.4 4.7L9.3 11H2.7L0.6 4.7z"),
    "h": ("hexagon2", "M3.2 1.2H8.8L11.6 6L8.8 10.8H3.2L0.4 6z"),
    "*": ("star", "M6 0.5L7.4 4.4L11.5 4.5L8.2 7L9.4 11L6 8.6L2.6 11L3.8 7L0.5 4.5L4.6 4.4z"),
}


def swatch(label: int) -> tuple[str, str]:
    """Return the colour of a cluster and the outline of its marker, for an SVG."""
    colour, marker = cluster_style(label)
    return colour, SHAPES[marker][1]


def chart_data(summary: Summary) -> dict[str, Any] | None:
    """Return the data of all plots as plain values for JSON, or None if there is nothing to plot."""
    data = {
        "points": _scatter_data(summary) if has_scores(summary) else None,
        "eigenvalues": summary.eigenvalues or None,
        "further": summary.further_eigenvalues or (),
        "variance": _variance_data(summary.explained_variance_ratio) if summary.explained_variance_ratio else None,
        "similarities": _heatmap_data(summary.similarities) if summary.similarities else None,
        "tree": _tree_data(summary.tree) if summary.tree else None,
        "support": _support_data(summary),
    }
    if not any(data.values()):
        return None
    shapes = [{"name": name, "path": path} for name, path in SHAPES.values()]
    return {
        **data,
        "n_clusters": summary.n_clusters,
        "colours": PALETTE,
        "shapes": shapes,
    }


def has_scores(summary: Summary) -> bool:
    """Return whether the summary has scores to plot; some methods have none."""
    return bool(summary.points.scores) and len(summary.points.scores[0]) > 0


def pack(values: Any) -> dict[str, Any]:
    """Return numbers as 16-bit multiples of a step above the minimum; the largest code is a missing number."""
    values = np.asarray(values, dtype=float)
    finite = np.isfinite(values)
    known = values[finite]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    step = (high - low) / 65534 or 1.0
    codes = np.full(values.shape, 65535)
    codes[finite] = np.rint((known - low) / step)
    return {"low": low, "step": step, "codes": b64encode(codes.astype("<u2").tobytes()).decode()}


def _variance_data(ratios: Sequence[float]) -> dict[str, Any]:
    """The explained variance of each component and of all up to it, as numbers and as text."""
    cumulative = np.cumsum(ratios).tolist()
    return {
        "ratios": ratios,
        "cumulative": cumulative,
        "shown": [percent(ratio) for ratio in ratios],
        "cumulative_shown": [percent(ratio) for ratio in cumulative],
    }


_LACKS = "lacks the view"


def _scatter_data(summary: Summary) -> dict[str, Any]:
    points = summary.points
    drawn = evenly_spaced(len(points.samples), MAX_POINTS)
    spaces = {"all views": points.scores, **points.view_scores}
    n_components = max(1, min(len(points.scores[0]), MAX_COORDINATES // (len(drawn) * len(spaces))))
    # Numbers that colour the samples: a new one is one entry here.
    quantities = {"margin": points.margins, "membership": points.memberships, "novelty": points.novelties}
    return {
        "samples": [shortened(points.samples[row], MAX_ID_LENGTH) for row in drawn],
        "groupings": [_grouping(name, *grouping, drawn) for name, grouping in _groupings(summary).items()],
        "quantities": [
            {"name": name, "values": pack(np.asarray(values, dtype=float)[drawn])}
            for name, values in quantities.items()
            if values is not None
        ],
        "training": _axes_data(summary.map.positions) if summary.map and not summary.of_training else None,
        "map": _axes_data(np.asarray(points.positions)[drawn]) if points.positions else None,
        "spaces": [
            {"name": name, "components": _axes_data(np.asarray(scores)[drawn, :n_components])}
            for name, scores in spaces.items()
        ],
    }


def _axes_data(positions: Any) -> list[dict[str, Any]]:
    return [pack(axis) for axis in np.asarray(positions).T]


def _groupings(summary: Summary) -> dict[str, tuple[Sequence[Any], Mapping[Any, int] | None]]:
    """Return the groups of the points by grouping, and the number of samples in each group, also of those not drawn."""
    points, truth = summary.points, summary.truth
    found: dict[str, Any] = {"cluster": (points.labels, {each.label: each.size for each in summary.clusters})}
    if points.classes is not None:
        totals = truth and dict(zip(truth.classes, map(sum, zip(*truth.contingency, strict=True)), strict=True))
        found["known class"] = points.classes, totals
    for view in summary.views:
        if (labels := points.view_labels.get(view.name)) is not None:
            lacking = view.n_samples < summary.n_samples
            shown = [_LACKS if label < 0 and lacking else label for label in labels]
            found[f"view {view.name}"] = shown, None if view.sizes is None else dict(enumerate(view.sizes))
    return found


def _grouping(name: str, values: Sequence[Any], sizes: Mapping[Any, int] | None, drawn: Array) -> dict[str, Any]:
    """The groups that colour the samples. A cluster keeps its number, which determines its colour and shape."""
    shown = [values[row] for row in drawn]
    names = sorted(set(shown), key=lambda each: reading_order(str(each)))
    place = {each: code for code, each in enumerate(names)}
    return {
        "name": name,
        "names": [shortened(str(each), MAX_ID_LENGTH) for each in names],
        "short_names": list(shortened_apart(map(str, names), MAX_LEGEND_LENGTH).values()),
        "numbers": [each if isinstance(each, int) else code for each, code in place.items()],
        "codes": [place[each] for each in shown],
        "counts": None if sizes is None else [sizes.get(each) for each in names],
    }


def _heatmap_data(similarities: Similarities) -> dict[str, Any]:
    kept = evenly_spaced(len(similarities.labels), MAX_SIMILARITIES)
    values = np.asarray(similarities.values, dtype=float)[np.ix_(kept, kept)]
    # With most kernels the diagonal is far above the rest, and outliers would leave the other cells pale.
    off_diagonal = values[~np.eye(len(values), dtype=bool)]
    low, high = np.quantile(off_diagonal, [0.01, 0.99]) if off_diagonal.size else (0.0, 1.0)
    return {
        "labels": np.asarray(similarities.labels)[kept].tolist(),
        "values": pack(values.ravel()),
        "range": [float(low), float(high)],
    }


def _tree_data(tree: Sequence[Branch]) -> dict[str, Any]:
    """The clusters of each number as nodes of a Sankey diagram, and the samples that they share as links."""
    shown = drawn_branches(tree)
    links = [((b.n_clusters, b.cluster), (b.next_n_clusters, b.next_cluster)) for b in shown]
    place = {node: i for i, node in enumerate(dict.fromkeys(node for link in links for node in link))}
    return {
        "nodes": [list(node) for node in place],
        "sources": [place[source] for source, _ in links],
        "targets": [place[target] for _, target in links],
        "sizes": [branch.size for branch in shown],
    }


def _support_data(summary: Summary) -> dict[str, Any] | None:
    """The valley ratio and the stability of each cluster, and the excess modularity of groups without a valley."""
    measures, groups = cluster_measures(summary), groups_without_valley(summary)
    labels = [cluster.label for cluster in summary.clusters]
    row = float(np.clip(MAX_ROWS_HEIGHT / len(labels), *ROW_HEIGHTS))
    if not measures and not groups:
        return None
    return {
        "labels": labels,
        "row": row,
        "measures": [
            {**each._asdict(), "ticks": each.ticks, "texts": _measured_texts(summary, each)} for each in measures
        ],
        "height": round(row * len(labels)) if measures else None,
        "groups": [{**each._asdict(), "text": excess_in_words(each.excess, each.needed)} for each in groups],
        "range": excess_range(groups) if groups else None,
    }


def _measured_texts(summary: Summary, measure: Measure) -> list[str]:
    """The measure of each cluster, with the digits that decide how to read it."""
    bounds = (*measure.supported, measure.bound)
    return [
        f"cluster {cluster.label}: {measure.name} {decimals(value, bounds=bounds)}"
        for cluster, value in zip(summary.clusters, measure.values, strict=True)
    ]
