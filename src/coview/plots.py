"""Pictures of a summary or of a table of results, with matplotlib.

Every function draws on the `ax` it is given, or on a new figure of its own, and returns the `ax`; nothing global is
changed. A new figure is saved by `ax.figure.savefig("picture.png")`. A cluster has the colour and the shape that it has
in the report: ten colours that colour-blind readers can tell apart, then the same with the next shape. Its number is
written beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coview.errors import InputError
from coview.extras import load_extra
from coview.summary.values import Summary
from coview.tune.criterion import evaluated_numbers
from coview.tune.record import EvaluatedSetting, Tuning, ranked_settings
from coview.views import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Ten colours that stay apart for colour-blind readers, on white and on black (Petroff, arXiv 2107.02270).
PALETTE = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
)
MARKERS = ("o", "s", "D", "^", "P", "X", "v", "p", "h", "*")
_VALUES = "viridis"
_SHARES = "Blues"
_LINES = ("-", "--", ":", "-.")


def mark(label: int) -> tuple[str, str]:
    """Return the colour, as #rrggbb, and the marker of a cluster; numbers a hundred apart share them."""
    return PALETTE[label % len(PALETTE)], MARKERS[label // len(PALETTE) % len(MARKERS)]


def scores(summary: Summary, component: int = 0, ax: Axes | None = None) -> Axes:
    """Draw one component of the scores for every sample, by each view and their mean, samples ordered by cluster.

    Parameters
    ----------
    summary : Summary
    component : int
        Which component, from 0.
    """
    points = summary.points
    mean = _component(summary, component)
    labels = np.array(points.labels)
    order = np.lexsort((mean, labels))
    ax = _axes(ax)
    by_view = {name: np.array(table) for name, table in points.view_scores.items()}
    size = float(np.clip(12_000 / len(order), 3, 16))
    for name, colour, marker in zip(by_view, _cycle(PALETTE[1:]), _cycle(MARKERS), strict=False):
        if component < by_view[name].shape[1]:
            ax.scatter(
                range(len(order)),
                by_view[name][order, component],
                s=size,
                c=colour,
                marker=marker,
                alpha=0.6,
                linewidths=0,
                label=name,
                rasterized=True,
            )
    ax.plot(mean[order], color="black", linewidth=1.5, label="mean" if by_view else "score")
    ax.axhline(0, color="grey", linewidth=0.8)
    names, middles, borders = _runs(labels[order])
    for border in borders:
        ax.axvline(border, color="0.8", linewidth=0.8 if len(names) <= 30 else 0.3, zorder=0)
    above = ax.secondary_xaxis("top")
    above.set_xticks(*_ticks(names, middles, len(order) / 20))
    above.tick_params(length=0)
    above.set_xlabel("cluster")
    ax.set(xlabel="samples, ordered by cluster", ylabel=f"score {component + 1}", xlim=(-0.5, len(order) - 0.5))
    legend = ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    for handle in legend.findobj(_matplotlib().collections.PathCollection):
        handle.set(sizes=[30], alpha=1)  # dots may be too small and too faint to tell apart
    return ax


def spectrum(summary: Summary, ax: Axes | None = None) -> Axes:
    """Draw the explained variance of each component with its running total, or the eigenvalues where there is none."""
    heights = summary.explained_variance_ratio or summary.eigenvalues
    if not heights:
        raise InputError(f"{summary.method} has no eigenvalues to draw")
    ax = _axes(ax)
    numbers = np.arange(1, len(heights) + 1)
    shares = summary.explained_variance_ratio is not None
    ax.bar(numbers, heights, color=PALETTE[0], label="explained variance" if shares else "eigenvalue")
    if shares:
        total = np.cumsum(heights)
        marker = "o" if len(numbers) <= 30 else None
        ax.plot(numbers, total, color="black", marker=marker, markersize=4, label="running total")
        ax.yaxis.set_major_formatter(_matplotlib().ticker.PercentFormatter(1))
        ax.legend(frameon=False, loc="upper left")
        ax.set_ylim(0, 1.25 * total[-1])
    ax.xaxis.set_major_locator(_matplotlib().ticker.MaxNLocator(integer=True, min_n_ticks=1))
    ax.set(
        xlabel="component", ylabel="share of the variance" if shares else "eigenvalue", xlim=(0.1, len(numbers) + 0.9)
    )
    return ax


def scatter(summary: Summary, x: int = 0, y: int = 1, ax: Axes | None = None) -> Axes:
    """Draw samples by two components of their scores, coloured by cluster, with a histogram along each side.

    With a single component, samples are drawn at random heights beside it.

    Parameters
    ----------
    summary : Summary
    x, y : int
        Components, from 0.
    """
    across = _component(summary, x)
    n_components = len(summary.points.scores[0])
    spread = n_components == 1 and y == 1
    up = np.random.default_rng(0).random(len(across)) if spread else _component(summary, y)
    ax = _axes(ax, width=6.4, height=6.0)
    labels = np.array(summary.points.labels)
    top = ax.inset_axes((0, 1.01, 1, 0.16), sharex=ax)
    side = None if spread else ax.inset_axes((1.01, 0, 0.16, 1), sharey=ax)
    names = [cluster.label for cluster in summary.clusters if cluster.label in summary.points.labels]
    size = float(np.clip(20_000 / len(across), 6, 30))
    for name in names:
        members, (colour, marker) = labels == name, mark(name)
        ax.scatter(
            across[members], up[members], s=size, c=colour, marker=marker, alpha=0.7, linewidths=0, label=str(name)
        )
    for name in names:
        members = labels == name
        _write(
            ax,
            str(name),
            float(np.median(across[members])),
            float(np.median(up[members])),
            10 if len(names) <= 20 else 7,
        )
    _histogram(top, across, labels, names, "vertical")
    if side is not None:
        _histogram(side, up, labels, names, "horizontal")
    ax.locator_params(axis="x", nbins=6)
    ax.set(xlabel=f"score {x + 1}", ylabel="" if spread else f"score {y + 1}")
    if spread:
        ax.set_yticks([])
    if len(names) <= len(PALETTE):
        place = (1.01, 1.0) if spread else (1.18, 1.0)
        ax.legend(
            loc="upper left", bbox_to_anchor=place, title="cluster", frameon=False, markerscale=(36 / size) ** 0.5
        )
    return ax


def similarities(summary: Summary, ax: Axes | None = None) -> Axes:
    """Draw the similarities of some samples, ordered by cluster, with a border around each cluster."""
    if summary.similarities is None:
        raise InputError(f"{summary.method} has no kernels, and so no similarities to draw")
    ax = _axes(ax, width=6.4, height=5.4)
    values = np.array(summary.similarities.values)
    image = ax.imshow(values, cmap=_SHARES, vmin=min(0.0, values.min()), vmax=max(1.0, values.max()))
    ax.figure.colorbar(image, ax=ax, label=summary.similarities.name, shrink=0.85)
    names, middles, borders = _runs(np.array(summary.similarities.labels))
    edges = [-0.5, *borders, len(values) - 0.5]
    for start, end in pairwise(edges):
        box = ([start, end, end, start, start], [start, start, end, end, start])
        ax.plot(*box, color=PALETTE[1], linewidth=1.2 if len(names) <= 30 else 0.6)
    ticks = _ticks(names, middles, len(values) / 20)
    ax.set_xticks(*ticks)
    ax.set_yticks(*ticks)
    ax.set(xlabel="cluster", ylabel="cluster")
    return ax


def agreement(summary: Summary, ax: Axes | None = None) -> Axes:
    """Draw for each view and cluster which share of the members the view's own labels keep together."""
    views = [view for view in summary.views if view.agreement is not None]
    if not views:
        raise InputError(f"{summary.method} has no labels by single views to draw")
    n_clusters = len(summary.clusters)
    ax = _axes(ax, width=min(3.5 + 0.45 * n_clusters, 14.0), height=1.8 + 0.45 * len(views))
    shares = np.array([[cluster.agreement[view.name] for cluster in summary.clusters] for view in views])
    image = ax.imshow(shares, cmap=_SHARES, vmin=0, vmax=1, aspect="auto")
    percent = _matplotlib().ticker.PercentFormatter(1, decimals=0)
    ax.figure.colorbar(image, ax=ax, label="members kept together", format=percent)
    if n_clusters <= 20:
        for row, column in np.ndindex(shares.shape):
            share = float(shares[row, column])
            ax.text(column, row, f"{share:.0%}", ha="center", va="center", fontsize=8, color=_readable(share))
    ax.set_yticks(range(len(views)), [f"{view.name}\n(ARI {view.agreement:.2f})" for view in views])
    ax.set_xticks(*_ticks([cluster.label for cluster in summary.clusters], range(n_clusters), n_clusters / 35))
    ax.set_xlabel("cluster")
    return ax


def rho_curve(table: Any, ax: Axes | None = None) -> Axes:
    """Draw how results depend on rho, the balance between sum and product of the views.

    Parameters
    ----------
    table : mapping of columns, data frame, or list of dictionaries
        A column `rho` and one or more columns of results. Repeated values of rho are drawn as their mean, with a band
        from the least to the largest.
    """
    return _curve(_columns(table), "rho", "rho (0: product, 1: sum)", ax)


def size_curve(table: Any, ax: Axes | None = None) -> Axes:
    """Draw how results depend on the number of training samples of a fixed-size model.

    Parameters
    ----------
    table : mapping of columns, data frame, or list of dictionaries
        A column `n_train` and one or more columns of results, as in `rho_curve`.
    """
    columns = _columns(table)
    ax = _curve(columns, "n_train", "training samples", ax)
    ticks = np.unique(columns["n_train"])
    ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    ax.minorticks_off()
    return ax


def kappa_surface(table: Any, value: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw a result for every pair of view weights, and mark the best.

    Parameters
    ----------
    table : mapping of columns, data frame, or list of dictionaries
        Two columns whose names start with `kappa`, and one or more columns of results. Combinations that are missing
        stay empty; repeated ones are averaged.
    value : str, optional
        The column of results; by default the first.
    """
    columns = _columns(table)
    weights = [name for name in columns if name.startswith("kappa")]
    results = [name for name in columns if name not in weights]
    value = value if value is not None or not results else results[0]
    if len(weights) != 2 or value not in results:
        raise InputError(
            f"the table has the columns {', '.join(columns)}; it needs two whose names start with 'kappa', and "
            f"{'one of results' if value is None else repr(value)}"
        )
    (across, column), (up, row) = (np.unique(columns[name], return_inverse=True) for name in weights)
    total, count = np.zeros((2, len(up), len(across)))
    np.add.at(total, (row, column), columns[value])
    np.add.at(count, (row, column), 1)
    grid = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    ax = _axes(ax)
    image = ax.imshow(grid, cmap=_VALUES, origin="lower", aspect="auto")
    ax.figure.colorbar(image, ax=ax, label=value)
    ax.set_xticks(range(len(across)), [f"{tick:g}" for tick in across])
    ax.set_yticks(range(len(up)), [f"{tick:g}" for tick in up])
    best_row, best_column = np.unravel_index(np.nanargmax(grid), grid.shape)
    ax.plot(best_column, best_row, marker="*", markersize=14, color="white", markeredgecolor="black", linestyle="none")
    ax.set(xlabel=weights[0], ylabel=weights[1], title=f"best {value}: {np.nanmax(grid):.3g}")
    return ax


def tuning_candidates(table: Any, ax: Axes | None = None) -> Axes:
    """Draw how much speaks for each setting that was tried, for the chosen number of clusters, by round.

    Parameters
    ----------
    table : Tuning, or sequence of EvaluatedSetting
        `summary.tuning`, in which the selected setting is marked, or `Tuned.evaluations_`.
    """
    rows, chosen = _evaluated(table)
    number = chosen.n_clusters if chosen else _best_number(rows)
    shown = [row for row in rows if row.n_clusters == number and row.criterion is not None]
    order = ranked_settings(rows, number)[::-1]  # the best on top
    place = {row.setting: i for i, row in enumerate(order)}
    ax = _axes(ax, width=8.0, height=1.4 + 0.32 * len(order))
    for i, number_of_round in enumerate(sorted({row.round for row in shown})):
        some = [row for row in shown if row.round == number_of_round]
        ax.scatter(
            [float(row.criterion or 0) for row in some],
            [place[row.setting] for row in some],
            s=46,
            c=PALETTE[i % len(PALETTE)],
            marker=MARKERS[i % len(MARKERS)],
            label=f"round {number_of_round}, on {some[0].n_samples:,} samples",
            zorder=2,
        )
    if chosen is not None:
        circle: dict[str, Any] = {"s": 170, "facecolors": "none", "edgecolors": "black", "linewidths": 1.5, "zorder": 3}
        ax.scatter([float(chosen.criterion or 0)], [place[chosen.setting]], label="chosen", **circle)
    ax.set_yticks(range(len(order)), [row.label for row in order])
    ax.grid(axis="y", color="0.9", zorder=0)
    ax.set_axisbelow(True)
    ax.set(xlabel=f"criterion for {number} clusters", ylim=(-0.7, len(order) - 0.3))
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax


def tuning_clusters(table: Any, ax: Axes | None = None) -> Axes:
    """Draw how much speaks for each number of clusters, with criteria from the literature to look at beside it.

    Each number is shown with the setting that most speaks for there. Eigengaps are drawn as shares of the largest.

    Parameters
    ----------
    table : Tuning, or sequence of EvaluatedSetting
        `summary.tuning`, in which the selected number is marked, or `Tuned.evaluations_`.
    """
    rows, chosen = _evaluated(table)
    numbers = evaluated_numbers(rows)
    if len(numbers) < 2:
        raise InputError("only one number of clusters was tried; give Tuned several, such as n_clusters=range(2, 9)")
    ax = _axes(ax)
    places = [number.n_clusters for number in numbers]
    gaps = np.array([float(number.best.eigengap or 0) for number in numbers])
    beside = {
        "line fit": [float(number.best.line_fit or 0) for number in numbers],
        "membership strength": [float(number.best.membership or 0) for number in numbers],
        "eigengap (share of the largest)": (gaps / gaps.max() if gaps.max() > 0 else gaps).tolist(),
    }
    heights = [number.criterion for number in numbers]
    ax.plot(places, heights, color=PALETTE[0], marker="o", linewidth=2.5, label="criterion")
    for i, (name, values) in enumerate(beside.items(), start=1):
        ax.plot(places, values, color=PALETTE[i], marker=MARKERS[i], linestyle=_LINES[i], markersize=4.5, label=name)
    best = chosen.n_clusters if chosen else _best_number(rows)
    ax.axvline(best, color="black", linewidth=1, zorder=0, label="most speaks for" if chosen is None else "chosen")
    ax.xaxis.set_major_locator(_matplotlib().ticker.MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("number of clusters")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return ax


def _evaluated(table: Any) -> tuple[Sequence[EvaluatedSetting], EvaluatedSetting | None]:
    """Return the evaluated settings, and the selected one for a Tuning."""
    if isinstance(table, Tuning):
        return table.evaluations, table.evaluations[table.selected]
    if not (isinstance(table, (list, tuple)) and table and all(isinstance(row, EvaluatedSetting) for row in table)):
        raise InputError("table: expected summary.tuning or Tuned.evaluations_ with at least one evaluation")
    return table, None


def _best_number(rows: Sequence[EvaluatedSetting]) -> int:
    """The number of clusters that later rounds went on with, or that most speaks for where there was one round."""
    last = max(row.round for row in rows)
    going_on = {row.n_clusters for row in rows if row.round == last}
    if len(going_on) == 1:
        return going_on.pop()
    return max(evaluated_numbers(rows), key=lambda number: number.criterion).n_clusters


def _matplotlib() -> Any:
    matplotlib = load_extra("matplotlib", "report", "drawing")
    for part in ("collections", "colors", "figure", "ticker"):
        load_extra(f"matplotlib.{part}", "report", "drawing")
    return matplotlib


def _axes(ax: Axes | None, width: float = 7.0, height: float = 4.2) -> Axes:
    """The given axes, or those of a new figure that belongs to nobody else."""
    if ax is not None:
        return ax
    new: Axes = _matplotlib().figure.Figure(figsize=(width, height), layout="constrained").add_subplot()
    return new


def _cycle(values: Sequence[str]) -> list[str]:
    return list(values) * 100


def _component(summary: Summary, number: int) -> Array:
    table = summary.points.scores
    if not table:
        raise InputError(f"{summary.method} has no scores to draw")
    if not 0 <= number < len(table[0]):
        raise InputError(f"component {number} does not exist: this summary has components 0 to {len(table[0]) - 1}")
    return np.array(table)[:, number]


def _runs(labels: Array) -> tuple[list[int], Array, Array]:
    """Clusters of ordered samples: their numbers, where each is in the middle, and the borders between them."""
    starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
    middles = (starts + np.append(starts[1:], len(labels)) - 1) / 2
    return labels[starts].tolist(), middles, starts[1:] - 0.5


def _ticks(names: Sequence[int], places: Any, room: float) -> tuple[list[float], list[str]]:
    """Where cluster numbers can stand without touching: from left to right, each that has room."""
    kept: list[int] = []
    for i, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= room:
            kept.append(i)
    return [float(places[i]) for i in kept], [str(names[i]) for i in kept]


def _write(ax: Axes, text: str, x: float, y: float, size: int) -> None:
    """Write on top of points: black on a white edge can be read on any colour."""
    from matplotlib.patheffects import withStroke

    edge = [withStroke(linewidth=2.5, foreground="white")]
    ax.text(x, y, text, ha="center", va="center", fontsize=size, fontweight="bold", color="black", path_effects=edge)


def _histogram(
    ax: Axes, values: Array, labels: Array, names: Sequence[int], along: Literal["vertical", "horizontal"]
) -> None:
    """Draw how the values of each cluster are spread; the clusters' heights are stacked."""
    edges = np.histogram_bin_edges(values, bins=50)
    top = np.zeros(len(edges) - 1)
    for name in names:
        baseline, top = top, top + np.histogram(values[labels == name], edges)[0]
        ax.stairs(top, edges, baseline=baseline, orientation=along, fill=True, color=mark(name)[0])
    ax.axis("off")


def _readable(share: float) -> str:
    return "white" if share > 0.6 else "black"


def _columns(table: Any) -> dict[str, Array]:
    """A table, by columns or as a list of rows, as columns of numbers."""
    if isinstance(table, (list, tuple)):
        if not table or not all(isinstance(row, Mapping) and set(row) == set(table[0]) for row in table):
            raise InputError("table must be a mapping of columns, or a list of dictionaries with the same keys")
        table = {name: [row[name] for row in table] for name in table[0]}
    try:
        columns = {str(name): np.asarray(values, dtype=np.float64) for name, values in dict(table).items()}
    except (TypeError, ValueError):
        raise InputError("table must have columns of numbers; leave out the columns of texts") from None
    lengths = {len(values) for values in columns.values() if values.ndim == 1}
    if len(lengths) != 1 or any(values.ndim != 1 for values in columns.values()) or lengths == {0}:
        raise InputError("table must have columns of one length, with at least one row")
    return columns


def _curve(columns: Mapping[str, Array], setting: str, title: str, ax: Axes | None) -> Axes:
    results = [name for name in columns if name != setting]
    if setting not in columns or not results:
        raise InputError(
            f"the table has the columns {', '.join(columns)}; it needs {setting!r} and one or more of results"
        )
    ax = _axes(ax)
    places, group = np.unique(columns[setting], return_inverse=True)
    for i, name in enumerate(results):
        runs = [columns[name][group == g] for g in range(len(places))]
        colour, marker = PALETTE[i % len(PALETTE)], MARKERS[i % len(MARKERS)]
        ax.plot(places, [run.mean() for run in runs], color=colour, marker=marker, linestyle=_LINES[i % 4], label=name)
        if max(map(len, runs)) > 1:
            ax.fill_between(
                places, [run.min() for run in runs], [run.max() for run in runs], color=colour, alpha=0.15, linewidth=0
            )
    ax.set(xlabel=title, ylabel=results[0] if len(results) == 1 else "")
    if len(results) > 1:
        ax.legend(frameon=False)
    return ax
