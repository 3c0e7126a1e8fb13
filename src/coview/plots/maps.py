"""Maps of samples: scatter plots of two coordinates of each sample, coloured by cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coview.base.palette import PALETTE, cluster_style
from coview.base.text import count
from coview.core.drawn import draw_by_cluster
from coview.data.view import Array
from coview.errors import InputError
from coview.plots.axes import axes_or_new, matplotlib_module, score_component, spaced_ticks
from coview.summary.clustering import DRAWN
from coview.summary.map import map_positions
from coview.summary.values import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes


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
    across = score_component(summary, "x", x)
    jitter = len(summary.points.scores[0]) == 1 and y == 1
    up = np.random.default_rng(0).random(len(across)) if jitter else score_component(summary, "y", y)
    ax = axes_or_new(ax, width=6.4, height=6.0)
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
    ax = axes_or_new(ax, width=6.4, height=5.4)
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
    edge = [matplotlib_module("patheffects").withStroke(linewidth=2.5, foreground="white")]
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
    ax = axes_or_new(ax, width=6.4, height=5.4, pyplot=True)
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
    scores, labels = model.model_.kept_scores, model.model_.trained_labels
    if scores is None:
        return _size_bars(model, ax)
    rows = draw_by_cluster(labels, DRAWN)
    _, positions = map_positions(model.model_, scores if len(rows) == len(scores) else scores[rows], labels, True)
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
    ax = axes_or_new(ax, pyplot=True)
    ax.bar(range(len(clusters)), sizes, color=[cluster_style(cluster)[0] for cluster in clusters])
    ax.set_xticks(*spaced_ticks(clusters.tolist(), range(len(clusters)), len(clusters) / 35))
    ax.set(xlabel="cluster", ylabel=f"training samples of {type(model).__name__}")
    return ax


def _stacked_histogram(
    ax: Axes, values: Array, labels: Array, present: Sequence[int], orientation: Literal["vertical", "horizontal"]
) -> None:
    edges = np.histogram_bin_edges(values, bins=50)
    top = np.zeros(len(edges) - 1)
    for label in present:
        baseline, top = top, top + np.histogram(values[labels == label], edges)[0]
        ax.stairs(top, edges, baseline=baseline, orientation=orientation, fill=True, color=cluster_style(label)[0])
    ax.axis("off")
