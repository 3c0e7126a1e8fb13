"""Draw the pictures of docs/explain/method.md: two views, their similarities and the fused ones, and the scores."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from coview import FuzzyGraph, TMvKSCR
from coview.plots import cluster_style

FOLDER = Path(__file__).parent / "explain"


def generate(n_per_group: int = 60) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return two views of three groups: in A groups 1 and 2 overlap, and in B groups 0 and 1."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], n_per_group)
    centres = {"view A": [[-4.0, 0.0], [2.0, 1.2], [2.0, -1.2]], "view B": [[-2.0, 1.2], [-2.0, -1.2], [4.0, 0.0]]}
    return {name: np.array(c)[group] + rng.normal(size=(len(group), 2)) for name, c in centres.items()}, group


def dots(ax: plt.Axes, points: np.ndarray, labels: np.ndarray) -> None:
    """Draw the samples in the style of their cluster."""
    for label in np.unique(labels):
        colour, marker = cluster_style(int(label))
        ax.scatter(*points[labels == label].T, s=14, c=colour, marker=marker, linewidths=0, label=f"group {label}")


def main() -> None:
    """Write the three pictures."""
    mpl.rcParams.update({"svg.hashsalt": "coview", "svg.fonttype": "none", "font.size": 10})
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


def write(figure: plt.Figure, name: str) -> None:
    """Write an SVG file without the date, so that the same picture has the same bytes."""
    figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
