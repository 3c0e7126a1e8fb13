"""Draw the pictures of docs/explain.

Of method.md: two views, their similarities and the fused ones, and the scores. Of consensus.md: the labels of the
members joined by the tree, and the cut of the graph along the axis between two clusters.
"""

from collections import Counter
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram, linkage

from coview import Coview, FuzzyGraph, TMvKSCR
from coview.core.assign import Labels
from coview.data.view import Array
from coview.evaluate.valleys import DEEP, Valleys, resolvent
from coview.plots import cluster_style

FOLDER = Path(__file__).parent / "explain"


def generate(n_per_group: int = 60, noise: float = 1.0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return two views of three groups: in A groups 1 and 2 overlap, and in B groups 0 and 1."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], n_per_group)
    centres = {"view A": [[-4.0, 0.0], [2.0, 1.2], [2.0, -1.2]], "view B": [[-2.0, 1.2], [-2.0, -1.2], [4.0, 0.0]]}
    return {name: np.array(c)[group] + noise * rng.normal(size=(len(group), 2)) for name, c in centres.items()}, group


def dots(ax: plt.Axes, points: np.ndarray, labels: np.ndarray) -> None:
    """Draw the samples in the style of their cluster."""
    for label in np.unique(labels):
        colour, marker = cluster_style(int(label))
        ax.scatter(*points[labels == label].T, s=14, c=colour, marker=marker, linewidths=0, label=f"group {label}")


def main() -> None:
    """Write all pictures."""
    mpl.rcParams.update({"svg.hashsalt": "coview", "svg.fonttype": "none", "font.size": 10})
    draw_method()
    draw_members()
    draw_valleys()


def draw_method() -> None:
    """Write the pictures of the method."""
    views, group = generate()
    model = TMvKSCR(3, kernel=FuzzyGraph(), random_state=0).fit(views)

    figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for ax, (name, table) in zip(axes, views.items(), strict=True):
        dots(ax, table, group)
        ax.set(title=name, xticks=[], yticks=[], aspect="equal")
    axes[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    write(figure, "views")

    figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.8), layout="constrained")
    grams = {name: model.kernels_[name](table) for name, table in views.items()}
    for ax, (name, gram) in zip(axes, {**grams, "sum": sum(grams.values())}.items(), strict=True):
        ax.imshow(gram > 0, cmap="Blues", vmax=1.2, interpolation="none")
        ax.set(title=name, xticks=[30, 90, 150], yticks=[30, 90, 150])
        ax.set_xticklabels(["group 0", "1", "2"])
        ax.set_yticklabels(["0", "1", "2"])
    write(figure, "similarities")

    figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for ax, points, title in zip(axes, (model.latent_, model.scores_), ("latent space", "scores"), strict=True):
        dots(ax, points, group)
        ax.axhline(0, color="0.8", zorder=0)
        ax.axvline(0, color="0.8", zorder=0)
        ax.set(title=title, xticks=[], yticks=[], xlabel="component 1", ylabel="component 2")
    write(figure, "scores")


def draw_members() -> None:
    """Write the picture of the labels of the samples by all members, a row each, and of the tree of the samples."""
    views, _ = generate(noise=1.5)
    labels = Coview(3, random_state=0).fit(views).model_.member_labels
    tree = linkage(labels, "average", metric="hamming")  # samples with the same tuple of labels merge at height 0
    figure, (top, below) = plt.subplots(2, 1, figsize=(7, 4), height_ratios=[2, 3], layout="constrained")
    with plt.rc_context({"lines.linewidth": 1}):
        drawn = dendrogram(tree, no_labels=True, ax=top, color_threshold=0, above_threshold_color="0.3")
    top.axhline((tree[-3, 2] + tree[-2, 2]) / 2, color="0.3", linestyle=":")
    top.spines[["top", "right", "bottom"]].set_visible(False)
    top.set(ylabel="separated by", ylim=(0, 1.02), yticks=[0, 1], yticklabels=["no member", "all members"])
    below.imshow(shades(labels[drawn["leaves"]]).swapaxes(0, 1), aspect="auto", interpolation="none")
    below.set(xlabel="samples, in the order of the tree", ylabel="members", xticks=[], yticks=[])
    write(figure, "members")


def shades(labels: Labels) -> Array:
    """Return a colour for each label of each member: that of the first member's label that overlaps most with it.

    Further labels of the same colour are lighter.
    """
    found = np.empty((*labels.shape, 3))
    for member, of_member in enumerate(labels.T):
        used: Counter[int] = Counter()
        for label in np.unique(of_member):
            nearest = int(np.bincount(labels[of_member == label, 0]).argmax())
            colour = np.array(mpl.colors.to_rgb(cluster_style(nearest)[0]))
            found[of_member == label, member] = 1 - (1 - colour) * 0.6 ** used[nearest]
            used[nearest] += 1
    return found


def draw_valleys() -> None:
    """Write the picture of two groups and of one Gaussian that is cut in two, with the cuts of their graphs."""
    noise = np.random.default_rng(0).normal(size=(2, 200, 2))
    groups = noise[0] + np.repeat([[-2.1, 0], [2.1, 0]], 100, axis=0)
    titles = {"two groups": groups, "one Gaussian, cut in two": noise[1] * [2, 1]}
    figure, axes = plt.subplots(2, 2, figsize=(7, 4.6), height_ratios=[3, 2], layout="constrained")
    for column, (title, points) in zip(axes.T, titles.items(), strict=True):
        points = points[np.argsort(points[:, 0])]
        side = (points[:, 0] > 0).astype(int)
        dots(column[0], points, side)
        column[0].set(title=title, xticks=[], yticks=[], aspect="equal", xlim=(-5.5, 5.5), ylim=(-4.5, 4))
        draw_cuts(column[1], points, side)
    axes[1, 0].set_ylabel("cut of the graph")
    write(figure, "valley")


def draw_cuts(ax: plt.Axes, points: Array, labels: Labels) -> None:
    """Draw the cuts of the graph along the axis from cluster 0 to cluster 1, and those that the ratio compares."""
    graph = FuzzyGraph().against(points).gram.copy()
    graph.setdiag(0)
    order = np.lexsort((resolvent(graph, labels.astype(float)), labels))
    along, n, first = graph[order][:, order].toarray(), len(labels), int((labels == 0).sum())
    cuts = np.array([along[:i, i:].sum() for i in range(1, n)])
    ax.plot(np.arange(1, n), cuts, color="0.35", linewidth=1)
    least = []
    for label, (start, size) in enumerate([(0, first), (first, n - first)]):
        central = slice(start + size // 4, start + 3 * size // 4)
        ax.plot(np.arange(1, n)[central], cuts[central], color=cluster_style(label)[0], linewidth=2)
        least.append(cuts[central].min())
    ax.axhline(min(least), color="0.35", linestyle=":", linewidth=1)
    ax.plot(first, cuts[first - 1], "o", color="0.35")
    valley = Valleys(graph).between(np.flatnonzero(labels == 0), np.flatnonzero(labels == 1))
    found = "a valley" if valley.ratio <= DEEP else "no valley"
    ax.set_title(f"ratio {valley.ratio:.2f}: {found}", fontsize=10)
    ax.set(xlabel="samples along the axis", ylim=(0, None), xticks=[], yticks=[])
    ax.spines[["top", "right"]].set_visible(False)


def write(figure: plt.Figure, name: str) -> None:
    """Write an SVG file without the date and spaces at line ends, so that the same picture has the same bytes."""
    path = FOLDER / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


if __name__ == "__main__":
    main()
