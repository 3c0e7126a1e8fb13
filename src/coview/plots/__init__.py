"""Figures of a summary, drawn with matplotlib.

Every function draws on the given `ax`, or on a new figure, and returns the axes. No global state of matplotlib changes.
`ax.figure.savefig("figure.png")` saves a new figure. Clusters have the same colour and marker shape as in the report:
ten colours for colour-blind readers, repeated with the next shape. Labels show the cluster numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from coview.base.palette import MARKERS as MARKERS
from coview.base.palette import PALETTE as PALETTE
from coview.base.palette import cluster_style as cluster_style
from coview.base.text import decimals, percent, shortened
from coview.errors import InputError
from coview.plots.axes import axes_or_new, cluster_blocks, matplotlib_module, score_component, spaced_ticks
from coview.plots.maps import sample_map, scatter
from coview.summary.picture import GroupExcess, Measure, cluster_measures, excess_range, groups_without_valley
from coview.summary.values import Summary

__all__ = [
    "cluster_style",
    "kept_together",
    "sample_map",
    "scatter",
    "similarity_matrix",
    "sorted_scores",
    "spectrum",
    "support",
]

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes


def sorted_scores(summary: Summary, component: int = 0, ax: Axes | None = None) -> Axes:
    """Return a plot of one score component per sample, by view and on average, with samples sorted by cluster.

    Parameters
    ----------
    summary : Summary
        A summary with scores.
    component : int
        Index of the component, starting at 0.
    ax : matplotlib axes, optional
        By default a new figure.

    Returns
    -------
    matplotlib axes
    """
    mean = score_component(summary, "component", component)
    labels = np.array(summary.points.labels)
    order = np.lexsort((mean, labels))
    ax = axes_or_new(ax)
    by_view = {name: np.array(scores, dtype=float) for name, scores in summary.points.view_scores.items()}
    size = float(np.clip(12_000 / len(order), 3, 16))
    for (name, scores), colour, marker in zip(by_view.items(), cycle(PALETTE[1:]), cycle(MARKERS), strict=False):
        if component < scores.shape[1]:
            dots: dict[str, Any] = {"s": size, "c": colour, "marker": marker, "alpha": 0.6, "linewidths": 0}
            ax.scatter(range(len(order)), scores[order, component], label=name, rasterized=True, **dots)
    ax.plot(mean[order], color="black", linewidth=1.5, label="mean" if by_view else "score")
    ax.axhline(0, color="grey", linewidth=0.8)
    ticks, borders = cluster_blocks(labels[order])
    for border in borders:
        ax.axvline(border, color="0.8", linewidth=0.8 if len(borders) < 30 else 0.3, zorder=0)
    above = ax.secondary_xaxis("top")
    above.set_xticks(*ticks)
    above.tick_params(length=0)
    above.set_xlabel("cluster")
    ax.set(xlabel="samples, sorted by cluster", ylabel=f"score {component + 1}", xlim=(-0.5, len(order) - 0.5))
    legend = ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    for handle in legend.findobj(matplotlib_module("collections").PathCollection):
        handle.set(sizes=[30], alpha=1)  # the dots of the plot can be too small and too pale for a legend
    return ax


def spectrum(summary: Summary, ax: Axes | None = None) -> Axes:
    """Return a plot of the explained variance per component and in total, or else of the eigenvalues.

    Hatched bars are the next components, which the method does not use; a dashed line marks the gap before them.

    Parameters
    ----------
    summary : Summary
        A summary of a method with an eigenproblem.
    ax : matplotlib axes, optional
        By default a new figure.

    Returns
    -------
    matplotlib axes
    """
    ratio = summary.explained_variance_ratio
    heights = ratio or summary.eigenvalues
    if not heights:
        raise InputError(f"{summary.method} has no eigenvalues to plot; use a kernel spectral method such as TMvKSCR")
    ax = axes_or_new(ax)
    numbers = np.arange(1, len(heights) + 1)
    name = "explained variance" if ratio else "eigenvalue"
    ax.bar(numbers, heights, color=PALETTE[0], label=name)
    further = np.array(summary.further_eigenvalues or ())
    if ratio and summary.eigenvalues and len(further):
        further = further * ratio[0] / summary.eigenvalues[0]  # both are proportional
    if len(further):
        beyond = len(numbers) + np.arange(1, len(further) + 1)
        ax.bar(beyond, further, color="white", edgecolor=PALETTE[0], hatch="///", linewidth=0.8, label="not used")
        ax.axvline(len(numbers) + 0.5, color="black", linestyle="--", linewidth=1, label="gap")
    if ratio:
        total = np.cumsum(ratio)
        marker = "o" if len(numbers) <= 30 else None
        ax.plot(numbers, total, color="black", marker=marker, markersize=4, label="cumulative")
        ax.yaxis.set_major_formatter(matplotlib_module("ticker").PercentFormatter(1))
        ax.set_ylim(0, 1.25 * total[-1])
    if ratio or len(further):
        ax.legend(frameon=False, loc="upper left", ncols=2)
    ax.xaxis.set_major_locator(matplotlib_module("ticker").MaxNLocator(integer=True, min_n_ticks=1))
    ax.set(xlabel="component", ylabel=name, xlim=(0.1, len(numbers) + len(further) + 0.9))
    return ax


def support(summary: Summary, ax: Axes | None = None) -> Axes:
    """Return a plot of the valley ratio of each cluster, and of its stability if it is known.

    The shaded intervals support a cluster: a valley ratio of at most 0.4, and a stability of at least 0.75. Dashed
    lines are at 0.7, the least ratio of a Gaussian that is cut in two, and at 0.6, below which a cluster is not to be
    trusted. Ratios above 1.5 are drawn at 1.5. The lowest panel has the excess modularity of clusters without a valley
    between them; that of references without groups is 0.

    Parameters
    ----------
    summary : Summary
        A summary of training samples.
    ax : matplotlib axes, optional
        By default a new figure. The space of these axes is divided among the panels.

    Returns
    -------
    matplotlib axes
        The first panel.
    """
    measures, groups = cluster_measures(summary), groups_without_valley(summary)
    if not measures and not groups:
        raise InputError(f"the summary of {summary.method} has no support to plot; give that of two or more clusters")
    labels = [cluster.label for cluster in summary.clusters]
    heights = [min(0.24 * len(labels), 7.5)] * bool(measures) + [0.35 * len(groups)] * bool(groups)
    ax = axes_or_new(ax, height=sum(heights) + 1.1 * len(heights))
    grid = _grid_in(ax, len(heights), max(1, len(measures)), heights)
    ax.set_subplotspec(grid[0, 0] if measures else grid[0, :])
    for i, measure in enumerate(measures):
        panel = ax.figure.add_subplot(grid[0, i], sharey=ax) if i else ax
        _draw_measure(panel, measure, labels)
        panel.tick_params(labelleft=i == 0)
    if measures:
        ax.set_ylabel("cluster")
    if groups:
        _draw_excess(ax.figure.add_subplot(grid[1, :]) if measures else ax, groups)
    return ax


def _grid_in(ax: Axes, n_rows: int, n_columns: int, heights: Sequence[float]) -> Any:
    """Return a grid that divides the space of the axes."""
    shape: dict[str, Any] = {"nrows": n_rows, "ncols": n_columns, "height_ratios": heights}
    if ax.figure.get_layout_engine() is None:  # with one, these would be added to its own distances
        shape["hspace"] = 2.2 / sum(heights)
    spec = ax.get_subplotspec()
    if spec is not None:
        return spec.subgridspec(**shape)
    left, bottom, right, top = ax.get_position().extents
    edges = {"left": left, "bottom": bottom, "right": right, "top": top}
    return matplotlib_module("gridspec").GridSpec(figure=ax.figure, **edges, **shape)


def _draw_measure(ax: Axes, measure: Measure, labels: Sequence[int]) -> None:
    for row, (label, value) in enumerate(zip(labels, measure.values, strict=True)):
        if value is not None:
            colour, marker = cluster_style(label)
            ax.plot(min(value, measure.end), row, marker, color=colour, clip_on=False)
            if value > measure.end:
                ax.annotate(
                    f"{value:.2g}", (measure.end, row), (-6, 0), textcoords="offset points", ha="right", va="center"
                )
    middle, is_low = sum(measure.supported) / 2, measure.bound > measure.supported[1]
    _mark_interval(ax, measure.supported, (0, 1), measure.bound)
    _write_above(ax, middle, measure.supported_as, "center")
    _write_above(ax, measure.bound, measure.beyond_as, "left" if is_low else "right")
    pad = 0.04 * (measure.end - measure.start)
    ax.set(xlabel=measure.name, xlim=(measure.start - pad, measure.end + pad), ylim=(len(labels) - 0.5, -0.5))
    ax.set_xticks(measure.ticks, [f"{tick:g}" for tick in measure.ticks])
    ax.set_yticks(*spaced_ticks(labels, range(len(labels)), len(labels) / 35))
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def _draw_excess(ax: Axes, groups: Sequence[GroupExcess]) -> None:
    start, end = excess_range(groups)
    for row, group in enumerate(groups):
        ax.plot(group.excess, row, "o", color="black")
        _mark_interval(ax, (group.needed, end), (1 - (row + 1) / len(groups), 1 - row / len(groups)), 0)
    _write_above(ax, 0, "without\ngroups", "right")
    _write_above(ax, groups[0].needed, "structure", "left")
    ax.set_yticks(range(len(groups)), [group.name for group in groups])
    ax.set(xlabel="excess modularity", xlim=(start, end), ylim=(len(groups) - 0.5, -0.5))


def _mark_interval(ax: Axes, supported: tuple[float, float], heights: tuple[float, float], bound: float) -> None:
    ax.axvspan(*supported, *heights, color=PALETTE[0], alpha=0.15, linewidth=0)
    ax.axvline(bound, color="grey", linestyle="--", linewidth=1)


def _write_above(ax: Axes, x: float, words: str, side: str) -> None:
    place: dict[str, Any] = {"textcoords": "offset points", "ha": side, "va": "bottom", "fontsize": 8}
    ax.annotate(words, (x, 1), (0, 3), xycoords=("data", "axes fraction"), **place)


def similarity_matrix(summary: Summary, ax: Axes | None = None) -> Axes:
    """Return a heat map of the similarities between samples, sorted by cluster, with an outline of each cluster.

    Parameters
    ----------
    summary : Summary
        A summary of a method with kernels.
    ax : matplotlib axes, optional
        By default a new figure.

    Returns
    -------
    matplotlib axes
    """
    if summary.similarities is None:
        raise InputError(f"{summary.method} has no similarities to plot; use a kernel method such as TMvKSCR")
    ax = axes_or_new(ax, width=6.4, height=5.4)
    values = np.array(summary.similarities.values)
    image = ax.imshow(values, cmap="Blues", vmin=min(0.0, values.min()), vmax=max(1.0, values.max()))
    ax.figure.colorbar(image, ax=ax, label=summary.similarities.name, shrink=0.85)
    ticks, borders = cluster_blocks(np.array(summary.similarities.labels))
    for start, end in pairwise([-0.5, *borders, len(values) - 0.5]):
        box = ([start, end, end, start, start], [start, start, end, end, start])
        ax.plot(*box, color=PALETTE[1], linewidth=1.2 if len(borders) < 30 else 0.6)
    ax.set_xticks(*ticks)
    ax.set_yticks(*ticks)
    ax.set(xlabel="cluster", ylabel="cluster")
    return ax


def kept_together(summary: Summary, ax: Axes | None = None) -> Axes:
    """Return a heat map of the fraction of each cluster that the labels of each view keep together.

    Parameters
    ----------
    summary : Summary
        A summary of a method that also labels samples by single views.
    ax : matplotlib axes, optional
        By default a new figure.

    Returns
    -------
    matplotlib axes
    """
    views = [view for view in summary.views if view.agreement is not None]
    if not views:
        raise InputError(f"{summary.method} has no labels of single views to plot; use a method such as TMvKSCR")
    n_clusters = len(summary.clusters)
    ax = axes_or_new(ax, width=min(3.5 + 0.45 * n_clusters, 14.0), height=1.8 + 0.45 * len(views))
    fractions = np.array([[cluster.kept_together[view.name] for cluster in summary.clusters] for view in views])
    image = ax.imshow(fractions, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    whole_percent = matplotlib_module("ticker").PercentFormatter(1, decimals=0)
    ax.figure.colorbar(image, ax=ax, label="members kept together", format=whole_percent)
    if n_clusters <= 20:
        for (row, column), value in np.ndenumerate(fractions):
            colour = "white" if value > 0.6 else "black"
            ax.text(column, row, percent(value), ha="center", va="center", fontsize=8, color=colour)
    ax.set_yticks(range(len(views)), [f"{shortened(view.name)}\n(ARI {decimals(view.agreement)})" for view in views])
    ax.set_xticks(*spaced_ticks([cluster.label for cluster in summary.clusters], range(n_clusters), n_clusters / 35))
    ax.set_xlabel("cluster")
    return ax
