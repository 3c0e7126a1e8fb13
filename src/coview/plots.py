"""Figures of a summary, drawn with matplotlib.

Every function draws on the given `ax`, or on a new figure, and returns the axes. No global state of matplotlib changes.
`ax.figure.savefig("figure.png")` saves a new figure. Clusters have the same colour and marker shape as in the report:
ten colours for colour-blind readers, repeated with the next shape. Labels show the cluster numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coview.core.drawn import draw_by_cluster
from coview.errors import InputError
from coview.extras import load_extra
from coview.formats import count, decimals, percent, shortened
from coview.methods.nested import kept_labels, kept_scores
from coview.palette import MARKERS as MARKERS
from coview.palette import PALETTE as PALETTE
from coview.palette import cluster_style as cluster_style
from coview.parameters import is_integer
from coview.summary.gather import DRAWN, map_positions
from coview.summary.picture import GroupExcess, Measure, cluster_measures, excess_range, groups_without_valley
from coview.summary.space import Nested
from coview.summary.values import Summary
from coview.views import Array

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
    mean = _score_component(summary, "component", component)
    labels = np.array(summary.points.labels)
    order = np.lexsort((mean, labels))
    ax = _axes_or_new(ax)
    by_view = {name: np.array(scores, dtype=float) for name, scores in summary.points.view_scores.items()}
    size = float(np.clip(12_000 / len(order), 3, 16))
    for (name, scores), colour, marker in zip(by_view.items(), cycle(PALETTE[1:]), cycle(MARKERS), strict=False):
        if component < scores.shape[1]:
            dots: dict[str, Any] = {"s": size, "c": colour, "marker": marker, "alpha": 0.6, "linewidths": 0}
            ax.scatter(range(len(order)), scores[order, component], label=name, rasterized=True, **dots)
    ax.plot(mean[order], color="black", linewidth=1.5, label="mean" if by_view else "score")
    ax.axhline(0, color="grey", linewidth=0.8)
    ticks, borders = _cluster_blocks(labels[order])
    for border in borders:
        ax.axvline(border, color="0.8", linewidth=0.8 if len(borders) < 30 else 0.3, zorder=0)
    above = ax.secondary_xaxis("top")
    above.set_xticks(*ticks)
    above.tick_params(length=0)
    above.set_xlabel("cluster")
    ax.set(xlabel="samples, sorted by cluster", ylabel=f"score {component + 1}", xlim=(-0.5, len(order) - 0.5))
    legend = ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    for handle in legend.findobj(_matplotlib("collections").PathCollection):
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
    ax = _axes_or_new(ax)
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
        ax.yaxis.set_major_formatter(_matplotlib("ticker").PercentFormatter(1))
        ax.set_ylim(0, 1.25 * total[-1])
    if ratio or len(further):
        ax.legend(frameon=False, loc="upper left", ncols=2)
    ax.xaxis.set_major_locator(_matplotlib("ticker").MaxNLocator(integer=True, min_n_ticks=1))
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
    ax = _axes_or_new(ax, height=sum(heights) + 1.1 * len(heights))
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
    return _matplotlib("gridspec").GridSpec(figure=ax.figure, **edges, **shape)


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
    ax.set_yticks(*_spaced_ticks(labels, range(len(labels)), len(labels) / 35))
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def _draw_excess(ax: Axes, groups: Sequence[GroupExcess]) -> None:
    """Draw the excess modularity of clusters without a valley between them."""
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


def scatter(summary: Summary, x: int = 0, y: int = 1, ax: Axes | None = None) -> Axes:
    """Return a scatter plot of two score components, coloured by cluster, with a histogram of each component.

    If there is only one component, the samples are jittered along the other axis.

    Parameters
    ----------
    summary : Summary
        A summary with scores.
    x, y : int
        Indices of the components, starting at 0.
    ax : matplotlib axes, optional
        By default a new figure.

    Returns
    -------
    matplotlib axes
    """
    across = _score_component(summary, "x", x)
    jitter = len(summary.points.scores[0]) == 1 and y == 1
    up = np.random.default_rng(0).random(len(across)) if jitter else _score_component(summary, "y", y)
    ax = _axes_or_new(ax, width=6.4, height=6.0)
    labels, present = _draw_samples(ax, summary, across, up)
    _stacked_histogram(ax.inset_axes((0, 1.01, 1, 0.16), sharex=ax), across, labels, present, "vertical")
    if not jitter:
        _stacked_histogram(ax.inset_axes((1.01, 0, 0.16, 1), sharey=ax), up, labels, present, "horizontal")
    ax.locator_params(axis="x", nbins=6)
    ax.set(xlabel=f"score {x + 1}", ylabel="" if jitter else f"score {y + 1}")
    if jitter:
        ax.set_yticks([])
    _list_clusters(ax, present, len(across), 1.01 if jitter else 1.18)
    return ax


def sample_map(summary: Summary, ax: Axes | None = None) -> Axes:
    """Return the map of the samples, coloured by cluster: samples with similar scores are close to each other.

    The positions are those of t-SNE, so the axes, the distances between groups and their sizes have no meaning.

    Parameters
    ----------
    summary : Summary
        A summary with scores.
    ax : matplotlib axes, optional
        By default a new figure.

    Returns
    -------
    matplotlib axes
    """
    if not summary.points.positions:
        raise InputError(f"{summary.method} has no scores to map; use a method with a score space, such as TMvKSCR")
    ax = _axes_or_new(ax, width=6.4, height=5.4)
    across, up = np.array(summary.points.positions).T
    _, present = _draw_samples(ax, summary, across, up)
    _as_map(ax, present, len(across))
    return ax


def _draw_samples(ax: Axes, summary: Summary, across: Array, up: Array) -> tuple[Array, list[int]]:
    """Draw the samples in the style of their cluster, with its number at the median; return labels and clusters."""
    labels = np.array(summary.points.labels)
    present = [cluster.label for cluster in summary.clusters if cluster.label in summary.points.labels]
    _draw_styled(ax, across, up, labels, {label: (str(label), *cluster_style(label)) for label in present})
    return labels, present


def _draw_styled(ax: Axes, across: Array, up: Array, labels: Array, styles: Mapping[int, tuple[str, str, str]]) -> None:
    """Draw samples by label, with the name, the colour and the marker of each; the name is also at the median."""
    # A white edge keeps black text readable on any colour.
    edge = [_matplotlib("patheffects").withStroke(linewidth=2.5, foreground="white")]
    text: dict[str, Any] = {"ha": "center", "va": "center", "fontweight": "bold", "path_effects": edge}
    for label, (name, colour, marker) in styles.items():
        xs, ys = across[labels == label], up[labels == label]
        ax.scatter(xs, ys, s=_dot_size(len(across)), c=colour, marker=marker, alpha=0.7, linewidths=0, label=name)
        ax.text(np.median(xs), np.median(ys), name, fontsize=10 if len(styles) <= 20 else 7, **text)


def draw_groups(
    positions: Array, groups: Array, names: Sequence[str], colours: Sequence[str], ax: Axes | None = None
) -> Axes:
    """Return a map of samples in named groups.

    Parameters
    ----------
    positions : array of shape (n_samples, 2)
    groups : integer array of shape (n_samples,)
        The number of each sample's group.
    names, colours : sequence of str
        By number of the group. Groups have the markers of clusters.
    ax : matplotlib axes, optional
        By default a new figure of pyplot.

    Returns
    -------
    matplotlib axes
    """
    ax = _axes_or_new(ax, width=6.4, height=5.4, pyplot=True)
    present = np.unique(groups).tolist()
    styles = {group: (names[group], colours[group], cluster_style(group)[1]) for group in present}
    across, up = positions.T
    _draw_styled(ax, across, up, groups, styles)
    _as_map(ax, present, len(positions))
    return ax


def _as_map(ax: Axes, present: Sequence[int], n_samples: int) -> None:
    """Remove the axes, which have no meaning on a map, and list the clusters."""
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
    _list_clusters(ax, present, n_samples, 1.01)


def _dot_size(n_samples: int) -> float:
    return float(np.clip(20_000 / n_samples, 6, 30))


def _list_clusters(ax: Axes, present: Sequence[int], n_samples: int, right: float) -> None:
    """Add a legend beside the axes, unless there are more clusters than colours."""
    if len(present) <= len(PALETTE):
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (right, 1.0)}
        ax.legend(title="cluster", frameon=False, markerscale=(36 / _dot_size(n_samples)) ** 0.5, **beside)


def model_map(model: Any, ax: Axes | None = None) -> Axes:
    """Return the map of the training samples of a fitted model, or a bar chart of cluster sizes if it has no scores.

    Parameters
    ----------
    model : fitted estimator
        Also as model.plot().
    ax : matplotlib axes, optional
        By default a new figure of pyplot, which notebooks show.

    Returns
    -------
    matplotlib axes
    """
    scores = kept_scores(model)
    labels = None if scores is None else kept_labels(model, len(scores))
    if scores is None or labels is None:
        return _size_bars(model, ax)
    rows = draw_by_cluster(labels, DRAWN)
    _, positions = map_positions(Nested(model), scores if len(rows) == len(scores) else scores[rows], labels, True)
    some = "" if len(rows) == len(labels) else f"{count(len(rows))} of "
    clusters, groups = np.unique(labels[rows], return_inverse=True)
    names, colours = map(str, clusters), (cluster_style(cluster)[0] for cluster in clusters)
    ax = draw_groups(np.asarray(positions), groups, [*names], [*colours], ax)
    ax.set_xlabel(f"{name_of_map(scores.shape[1])}; {some}{count(len(labels))} training samples")
    return ax


def name_of_map(n_components: int) -> str:
    """Return what a map shows: one component needs no t-SNE."""
    return "scores, with samples of similar score stacked" if n_components == 1 else "t-SNE of the scores"


def _size_bars(model: Any, ax: Axes | None) -> Axes:
    clusters, sizes = np.unique(model.labels_, return_counts=True)
    ax = _axes_or_new(ax, pyplot=True)
    ax.bar(range(len(clusters)), sizes, color=[cluster_style(cluster)[0] for cluster in clusters])
    ax.set_xticks(*_spaced_ticks(clusters.tolist(), range(len(clusters)), len(clusters) / 35))
    ax.set(xlabel="cluster", ylabel=f"training samples of {type(model).__name__}")
    return ax


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
    ax = _axes_or_new(ax, width=6.4, height=5.4)
    values = np.array(summary.similarities.values)
    image = ax.imshow(values, cmap="Blues", vmin=min(0.0, values.min()), vmax=max(1.0, values.max()))
    ax.figure.colorbar(image, ax=ax, label=summary.similarities.name, shrink=0.85)
    ticks, borders = _cluster_blocks(np.array(summary.similarities.labels))
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
    ax = _axes_or_new(ax, width=min(3.5 + 0.45 * n_clusters, 14.0), height=1.8 + 0.45 * len(views))
    fractions = np.array([[cluster.kept_together[view.name] for cluster in summary.clusters] for view in views])
    image = ax.imshow(fractions, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    whole_percent = _matplotlib("ticker").PercentFormatter(1, decimals=0)
    ax.figure.colorbar(image, ax=ax, label="members kept together", format=whole_percent)
    if n_clusters <= 20:
        for (row, column), value in np.ndenumerate(fractions):
            colour = "white" if value > 0.6 else "black"
            ax.text(column, row, percent(value), ha="center", va="center", fontsize=8, color=colour)
    ax.set_yticks(range(len(views)), [f"{shortened(view.name)}\n(ARI {decimals(view.agreement)})" for view in views])
    ax.set_xticks(*_spaced_ticks([cluster.label for cluster in summary.clusters], range(n_clusters), n_clusters / 35))
    ax.set_xlabel("cluster")
    return ax


def _matplotlib(module: str) -> Any:
    return load_extra(f"matplotlib.{module}", "report", "drawing")


def _axes_or_new(ax: Axes | None, width: float = 7.0, height: float = 4.2, *, pyplot: bool = False) -> Axes:
    """The given axes, or those of a new figure; notebooks show those of pyplot."""
    if ax is not None:
        return ax
    if pyplot:
        new: Axes = _matplotlib("pyplot").subplots(figsize=(width, height), layout="constrained")[1]
        return new
    return _matplotlib("figure").Figure(figsize=(width, height), layout="constrained").add_subplot()


def _score_component(summary: Summary, name: str, component: int) -> Array:
    scores = summary.points.scores
    if not scores:
        raise InputError(f"{summary.method} has no scores to plot; use a method with a score space, such as TMvKSCR")
    if not (is_integer(component) and 0 <= component < len(scores[0])):
        raise InputError(f"{name}={component!r}: expected an integer from 0 to {len(scores[0]) - 1}")
    return np.array(scores)[:, component]


def _cluster_blocks(labels: Array) -> tuple[tuple[list[float], list[str]], Array]:
    """Tick positions and tick labels for samples sorted by cluster, and the borders between the clusters."""
    starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
    middles = (starts + np.append(starts[1:], len(labels)) - 1) / 2
    return _spaced_ticks(labels[starts].tolist(), middles, len(labels) / 20), starts[1:] - 0.5


def _spaced_ticks(labels: Sequence[int], positions: Any, distance: float) -> tuple[list[float], list[str]]:
    """Tick positions and tick labels, without those closer than `distance` to the one before."""
    kept: list[int] = []
    for i, position in enumerate(positions):
        if not kept or position - positions[kept[-1]] >= distance:
            kept.append(i)
    return [float(positions[i]) for i in kept], [str(labels[i]) for i in kept]


def _stacked_histogram(
    ax: Axes, values: Array, labels: Array, present: Sequence[int], orientation: Literal["vertical", "horizontal"]
) -> None:
    edges = np.histogram_bin_edges(values, bins=50)
    top = np.zeros(len(edges) - 1)
    for label in present:
        baseline, top = top, top + np.histogram(values[labels == label], edges)[0]
        ax.stairs(top, edges, baseline=baseline, orientation=orientation, fill=True, color=cluster_style(label)[0])
    ax.axis("off")
