"""The paper's figures, from the stored rows and a few additional fits, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.linalg import eigh

from benchmarks.markdown import reflow
from benchmarks.paper import plan
from benchmarks.sweep import ALL_VIEWS, EACH_VIEW, Data, Row, averaged, preprocessed
from coview import KPCA, KSC, RBF, TMvKSCR, plots, summarize
from coview.base.palette import MARKERS, PALETTE
from coview.compose import Concat
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError
from coview.kernels import Kernel, kernel_per_view

COMPONENTS = 10
LINES = ("-", "--", ":", "-.")
MAX_ROWS = 1000  # of the figure of explained variance: the size of MvKSC's problem is samples × views


def draw(out: Path, rows: Sequence[Row], size: str) -> list[str]:
    """Draw the figures that have rows, and return the files, including the page of figures."""
    out.mkdir(parents=True, exist_ok=True)
    rows = [row for row in rows if row["kind"] in ("", "authors") and row["error"] is None]
    synth1 = plan.available(["synth1", "synth1_appendix"] if size == "full" else ["synth1_appendix"])[0]
    real = plan.available(["ads", "imgc"]) if size == "full" else []
    pictures: dict[str, tuple[Figure, str]] = {}
    pictures["scores-synth1"] = _scores(plan.data_set(synth1, size))
    for name in [synth1, *(["ads"] if "ads" in real else [])]:
        pictures[f"variance-{name}"] = _variance(plan.data_set(name, size))
    for name in [synth1, *(["imgc"] if "imgc" in real else [])]:
        pictures[f"latent-{name}"] = _latent(plan.data_set(name, size), rows)
    curves = _against_rho(rows, size)
    if curves is not None:
        pictures["rho"] = curves
    surface = _against_kappa(rows, size)
    if surface is not None:
        pictures["kappa"] = surface
    for name in dict.fromkeys(row["dataset"] for row in rows if row["method"] == "TMvKSCR, m samples"):
        pictures[f"m-{name}"] = _against_m([row for row in rows if row["dataset"] == name], name)
    lines = ["# The paper's figures", ""]
    for stem, (figure, caption) in pictures.items():
        figure.savefig(out / f"{stem}.png", dpi=110)
        lines += [f"![{stem}]({stem}.png)", "", caption, ""]
    missing = {"rho": "the curves of rho", "kappa": "the surface of kappa"}
    lines += [f"Not drawn, because rows are missing: {what}." for stem, what in missing.items() if stem not in pictures]
    (out / "figures.md").write_text(reflow("\n".join(lines).rstrip() + "\n"))
    return ["figures.md", *(f"{stem}.png" for stem in pictures)]


def _scores(data: Data) -> tuple[Figure, str]:
    sigma2 = plan.SETTINGS["datasets"]["Synth 1"]["figure_sigma2"]
    model = TMvKSCR.as_published(data.n_clusters, kernel=RBF(sigma2), random_state=0).fit(data.views)
    axes = plots.sorted_scores(summarize(model, data.views, truth=data.truth))
    text = f"Scores of each view and their mean on `{data.name}`, samples ordered by cluster; RBF with σ² = {sigma2}, "
    return _figure(axes), text + "ϱ = 0.5, κ = 1. The clusters are the signs of the mean score."


def _latent(data: Data, rows: Sequence[Row]) -> tuple[Figure, str]:
    """Draw the score variables of the best setting, or of the paper's defaults on standardised views."""
    model, preprocess = plan.as_published("tmvkscr", n_clusters=data.n_clusters, random_state=0), "standard"
    ranked = plan.ranked(plan.first_stage(data, "full"), [row for row in rows if row["dataset"] == data.name])
    if ranked:
        model, preprocess = (
            ranked[0].estimator.set_params(n_clusters=data.n_clusters, random_state=0),
            ranked[0].preprocess,
        )
    views = preprocessed(data.views, preprocess)
    axes = plots.scatter(summarize(model.fit(views), views, truth=data.truth))
    setting = "best setting of the grid by the true labels (oracle)" if ranked else "default settings (fixed)"
    text = f"Score variables on `{data.name}` with their histograms, coloured by cluster; {setting}: "
    weights = "1 for all views" if model.kappa is None else ", ".join(map(str, model.kappa))
    steps = preprocess if isinstance(preprocess, str) else ", ".join(preprocess)
    return _figure(axes), text + f"`{model.kernel}`, ϱ = {model.rho}, κ = {weights}, preprocessing: {steps}."


def _variance(data: Data) -> tuple[Figure, str]:
    """Draw the explained variance ratio of each component, for four methods with the same kernel."""
    data = data.first(MAX_ROWS)
    kernel = RBF(float(plan.SETTINGS["datasets"]["Ads" if data.name == "ads" else "Synth 1"]["authors"]["sigma2"]))
    k = COMPONENTS + 1  # a latent space has one dimension less than there are clusters
    ratios: dict[str, Array] = {}
    for title, method in (("KPCA", KPCA), ("KSC", KSC)):
        ratios[title] = Concat(method(k, kernel=kernel, random_state=0)).fit(data.views).explained_variance_ratio_
    ratios["MvKSC"] = mvksc_variance_ratios(data.views, kernel_per_view(kernel, data.views.names))[:COMPONENTS]
    model = TMvKSCR.as_published(k, kernel=kernel, random_state=0).fit(data.views)
    ratios["TMvKSCR"] = model.explained_variance_ratio_
    axes = _new_axes()
    for (title, ratio), colour, marker in zip(ratios.items(), PALETTE, "os^D", strict=False):
        axes.plot(range(1, len(ratio) + 1), ratio, color=colour, marker=marker, label=title)
    axes.set(xlabel="component", ylabel="explained variance ratio", title=data.name)
    axes.legend(frameon=False)
    text = (
        f"Explained variance ratio of the first {COMPONENTS} components on `{data.name}`, {kernel}; ϱ = 0.5 and κ = 1 "
        "for TMvKSCR, γ = 1 for MvKSC; KPCA and KSC use the columns of all views side by side. MvKSC's problem has "
        "eigenvalues of both signs; its ratios are relative to the sum of the positive ones."
    )
    if data.views.n_samples == MAX_ROWS and data.name == "ads":
        text += f" This figure has {MAX_ROWS} random samples, because all eigenvalues of MvKSC take too long for more."
    return _figure(axes), text


def mvksc_variance_ratios(views: Views, kernels: Mapping[str, Kernel], gamma: float = 1.0) -> Array:
    """Return MvKSC's positive eigenvalues over their sum, from all eigenvalues of its problem.

    With S_v = D_v^-½ Ω_v D_v^-½ and w_v = S_v^½ D_v^½ α_v the coupled problem is symmetric,
    Σ_{u≠v} S_v^½ S_u^½ w_u = λ (I - (gamma / n) S_v) w_v, and small if kernels have low rank.
    """
    roots, own = [], []
    for name, x in views.items():
        gram = kernels[name](x)
        degree = gram.sum(axis=1)
        weights = (1 / degree) / (1 / degree).sum()
        means = gram @ weights
        centred = gram - means[:, None] - means + weights @ means
        values, vectors = eigh(centred / np.sqrt(degree) / np.sqrt(degree)[:, None])
        kept = values > 1e-10 * values[-1]
        roots.append(vectors[:, kept] * np.sqrt(values[kept]))
        own.append(values[kept])
    places = np.concatenate([[0], np.cumsum([len(values) for values in own])])
    coupled = np.zeros((places[-1], places[-1]))
    for u, v in combinations(range(len(roots)), 2):
        block = roots[u].T @ roots[v]
        coupled[places[u] : places[u + 1], places[v] : places[v + 1]] = block
        coupled[places[v] : places[v + 1], places[u] : places[u + 1]] = block.T
    scale = 1 / np.sqrt(1 - gamma / views.n_samples * np.concatenate(own))
    values = eigh(scale[:, None] * coupled * scale, eigvals_only=True)[::-1]
    positive: Array = values[values > 0]
    return positive / positive.sum()


def _against_rho(rows: Sequence[Row], size: str) -> tuple[Figure, str] | None:
    names = [name for names in plan.paper_sets().values() for name in names]
    tables = {name: _curve(name, rows, size) for name in names if any(row["dataset"] == name for row in rows)}
    tables = {name: table for name, table in tables.items() if table}
    if not tables:
        return None
    across = min(4, len(tables))
    down = -(-len(tables) // across)
    figure = Figure(figsize=(3.6 * across, 3.0 * down), layout="constrained")
    for axes, (name, table) in zip(figure.subplots(down, across, squeeze=False).ravel(), tables.items(), strict=False):
        rho_curve(table, axes)
        axes.set_title(name, fontsize=10)
    for axes in figure.axes[len(tables) :]:
        axes.axis("off")
    text = (
        "ARI and NMI against ϱ, with κ = 1 and the best kernel of the grid by the true labels (oracle). The labels are "
        "those of the codebook; on `synth2_unpaired` they come from each view's scores."
    )
    return figure, text


def _curve(name: str, rows: Sequence[Row], size: str) -> list[dict[str, float]]:
    data = plan.data_set(name, size)
    mine = [row for row in rows if row["dataset"] == name]
    source = EACH_VIEW if data.truth.ndim == 2 else ALL_VIEWS
    wanted = {experiment.settings: experiment.estimator for experiment in plan.curve_experiments(data, mine, size)}
    table = []
    for row in averaged(mine):
        model = wanted.get(row["settings"])
        if model is not None and model.kappa is None and row["assigner"] == "codebook" and row["labels"] == source:
            table.append({"rho": model.rho, "ARI": row["ari"], "NMI": row["nmi"]})
    return table


def _against_kappa(rows: Sequence[Row], size: str) -> tuple[Figure, str] | None:
    surface = plan.SETTINGS["figures"]["kappa_surface"]
    name = plan.paper_sets()[surface["dataset"]][0]
    mine = [row for row in rows if row["dataset"] == name]
    if not mine:
        return None
    drawn = plan.curve_experiments(plan.data_set(name, size), mine, size)
    wanted = {experiment.settings for experiment in drawn if experiment.estimator.kappa is not None}
    table = []
    for row in averaged(mine):
        if row["settings"] in wanted and row["assigner"] == "codebook":
            kappa = json.loads(row["settings"])["kappa"]
            table.append({"kappa 1": kappa[0], "kappa 2": kappa[1], "ARI": row["ari"]})
    if not table:
        return None
    text = (
        f"ARI on `{name}` against the weights of the first two views. The weight of the third is {surface['kappa3']}, "
        f"ϱ = {surface['rho']}, and the kernel is the best of the grid (oracle)."
    )
    return _figure(kappa_surface(table)), text


def _against_m(rows: Sequence[Row], name: str) -> tuple[Figure, str]:
    table = [
        {"n_train": json.loads(row["settings"])["n_train"], "ARI": row["ari"], "NMI": row["nmi"]}
        for row in rows
        if row["method"] == "TMvKSCR, m samples"
    ]
    axes = size_curve(table)
    axes.set_title(name)
    text = f"ARI and NMI on `{name}` against m, the number of random training samples; mean and range over seeds, "
    return _figure(
        axes
    ), text + "default settings (fixed). A stand-in for the paper's data sets, which are not available."


def rho_curve(table: Any, ax: Axes | None = None) -> Axes:
    """Return a plot of results against rho, the weight of the sum against the product.

    Parameters
    ----------
    table : mapping of columns, data frame, or list of dictionaries
        A column `rho` and one or more columns of results. If a value of rho is repeated, the plot shows the mean and
        a band from the minimum to the maximum.
    ax : matplotlib axes, optional
        By default a new figure.

    Returns
    -------
    matplotlib axes
    """
    return _result_curves(_columns(table), "rho", "rho (0: product, 1: sum)", ax)


def size_curve(table: Any, ax: Axes | None = None) -> Axes:
    """Return a plot of results against the number of training samples of a fixed-size model.

    Parameters
    ----------
    table : mapping of columns, data frame, or list of dictionaries
        A column `n_train` and one or more columns of results. If a number is repeated, the plot shows the mean and a
        band from the minimum to the maximum.
    ax : matplotlib axes, optional
        By default a new figure.

    Returns
    -------
    matplotlib axes
    """
    columns = _columns(table)
    ax = _result_curves(columns, "n_train", "training samples", ax)
    ticks = np.unique(columns["n_train"])
    ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    ax.minorticks_off()
    return ax


def kappa_surface(table: Any, value: str | None = None, ax: Axes | None = None) -> Axes:
    """Return a heat map of a result over two view weights, with a star at the best.

    Parameters
    ----------
    table : mapping of columns, data frame, or list of dictionaries
        Two columns with names that start with `kappa`, and one or more columns of results. Missing combinations are
        blank; repeated combinations are averaged.
    value : str, optional
        The column of results. By default the first.
    ax : matplotlib axes, optional
        By default a new figure.

    Returns
    -------
    matplotlib axes
    """
    columns = _columns(table)
    weights = [name for name in columns if name.startswith("kappa")]
    results = [name for name in columns if name not in weights]
    value = value if value is not None or not results else results[0]
    if len(weights) != 2 or value not in results:
        raise InputError(
            f"table has the columns {', '.join(columns)}: expected two columns with names that start with 'kappa', and "
            f"{'a column of results' if value is None else repr(value)}"
        )
    (across, column), (up, row) = (np.unique(columns[name], return_inverse=True) for name in weights)
    total, count = np.zeros((2, len(up), len(across)))
    np.add.at(total, (row, column), columns[value])
    np.add.at(count, (row, column), 1)
    grid = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    ax = _new_axes() if ax is None else ax
    image = ax.imshow(grid, cmap="viridis", origin="lower", aspect="auto")
    ax.figure.colorbar(image, ax=ax, label=value)
    ax.set_xticks(range(len(across)), [f"{tick:g}" for tick in across])
    ax.set_yticks(range(len(up)), [f"{tick:g}" for tick in up])
    best_row, best_column = np.unravel_index(np.nanargmax(grid), grid.shape)
    ax.plot(best_column, best_row, marker="*", markersize=14, color="white", markeredgecolor="black", linestyle="none")
    ax.set(xlabel=weights[0], ylabel=weights[1], title=f"best {value}: {np.nanmax(grid):.3g}")
    return ax


def _columns(table: Any) -> dict[str, Array]:
    """The columns of a table, given by columns or as a list of rows, as float arrays."""
    if isinstance(table, (list, tuple)):
        if not table or not all(isinstance(row, Mapping) and set(row) == set(table[0]) for row in table):
            raise InputError("table: expected a mapping of columns, or a list of dictionaries with the same keys")
        table = {name: [row[name] for row in table] for name in table[0]}
    try:
        columns = {str(name): np.asarray(values, dtype=np.float64) for name, values in dict(table).items()}
    except (TypeError, ValueError):
        raise InputError("table: expected columns of numbers; remove columns of strings") from None
    shapes = {values.shape for values in columns.values()}
    if len(shapes) != 1 or any(len(shape) != 1 or shape == (0,) for shape in shapes):
        raise InputError("table: expected columns of equal length with at least one row")
    return columns


def _result_curves(columns: Mapping[str, Array], setting: str, xlabel: str, ax: Axes | None) -> Axes:
    results = [name for name in columns if name != setting]
    if setting not in columns or not results:
        raise InputError(
            f"table has the columns {', '.join(columns)}: expected {setting!r} and one or more columns of results"
        )
    ax = _new_axes() if ax is None else ax
    places, group = np.unique(columns[setting], return_inverse=True)
    for i, name in enumerate(results):
        runs = [columns[name][group == g] for g in range(len(places))]
        colour, marker, line = (values[i % len(values)] for values in (PALETTE, MARKERS, LINES))
        ax.plot(places, [run.mean() for run in runs], color=colour, marker=marker, linestyle=line, label=name)
        if max(map(len, runs)) > 1:
            low, high = [run.min() for run in runs], [run.max() for run in runs]
            ax.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.set(xlabel=xlabel, ylabel=results[0] if len(results) == 1 else "")
    if len(results) > 1:
        ax.legend(frameon=False)
    return ax


def _new_axes() -> Axes:
    return Figure(figsize=(7, 4.2), layout="constrained").add_subplot()


def _figure(axes: Any) -> Figure:
    figure: Figure = axes.figure
    return figure
