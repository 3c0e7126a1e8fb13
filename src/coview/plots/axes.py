"""Axes and ticks of figures, and the score components that they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coview.base.extras import load_extra
from coview.base.parameters import is_integer
from coview.data.view import Array
from coview.errors import InputError
from coview.summary.values import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes


def matplotlib_module(module: str) -> Any:
    """Return a module of matplotlib."""
    return load_extra(f"matplotlib.{module}", "report", "drawing")


def axes_or_new(ax: Axes | None, width: float = 7.0, height: float = 4.2, *, pyplot: bool = False) -> Axes:
    """The given axes, or those of a new figure; notebooks show those of pyplot."""
    if ax is not None:
        return ax
    if pyplot:
        new: Axes = matplotlib_module("pyplot").subplots(figsize=(width, height), layout="constrained")[1]
        return new
    return matplotlib_module("figure").Figure(figsize=(width, height), layout="constrained").add_subplot()


def cluster_blocks(labels: Array) -> tuple[tuple[list[float], list[str]], Array]:
    """Tick positions and tick labels for samples sorted by cluster, and the borders between the clusters."""
    starts = np.flatnonzero(np.diff(labels, prepend=labels[0] - 1))
    middles = (starts + np.append(starts[1:], len(labels)) - 1) / 2
    return spaced_ticks(labels[starts].tolist(), middles, len(labels) / 20), starts[1:] - 0.5


def spaced_ticks(labels: Sequence[int], positions: Any, distance: float) -> tuple[list[float], list[str]]:
    """Tick positions and tick labels, without those closer than `distance` to the one before."""
    kept: list[int] = []
    for i, position in enumerate(positions):
        if not kept or position - positions[kept[-1]] >= distance:
            kept.append(i)
    return [float(positions[i]) for i in kept], [str(labels[i]) for i in kept]


def score_component(summary: Summary, name: str, component: int) -> Array:
    """Return one component of the scores of a summary."""
    scores = summary.points.scores
    if not scores:
        raise InputError(f"{summary.method} has no scores to plot; use a method with a score space, such as TMvKSCR")
    if not (is_integer(component) and 0 <= component < len(scores[0])):
        raise InputError(f"{name}={component!r}: expected an integer from 0 to {len(scores[0]) - 1}")
    return np.array(scores)[:, component]
