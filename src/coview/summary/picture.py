"""The picture of the support of the clusters: what the report and `coview.plots` draw of each cluster and group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from coview.certainty.stability import DOUBTFUL, STABLE
from coview.evaluate.valleys import CUT_GAUSSIAN, DEEP
from coview.summary.values import Summary

MOST_GROUPS = 6  # that are drawn, the largest ones
_NAMED = 3  # clusters of a group; more are counted
_START = 0.4  # of the axis of the stability, if none is lower
_MOST_DRAWN = 1.5  # a larger valley ratio is drawn at the end of the axis


class Measure(NamedTuple):
    """A measure of each cluster, the interval in which it supports a cluster, and the bound of the opposite reading."""

    name: str
    values: tuple[float | None, ...]
    supported: tuple[float, float]
    supported_as: str
    bound: float
    beyond_as: str
    start: float  # of the axis
    end: float

    @property
    def ticks(self) -> list[float]:
        return sorted({self.start, *self.supported, self.bound, 1.0, self.end})


class GroupExcess(NamedTuple):
    """The excess modularity of clusters without a valley between them, with the least one for structure."""

    name: str
    excess: float
    needed: float


def cluster_measures(summary: Summary) -> list[Measure]:
    """Return the valley ratios and the stability of the clusters, in their order, if any of them is known."""
    support = summary.support
    ratios = {} if support is None else dict(zip(support.clusters, support.valleys, strict=True))
    valleys = tuple(ratios.get(cluster.label) for cluster in summary.clusters)
    stability = tuple(cluster.stability for cluster in summary.clusters)
    end = 1.0 if max(_known(valleys), default=0.0) <= 1 else _MOST_DRAWN
    start = min(_START, math.floor(10 * min(_known(stability), default=1.0)) / 10)
    measures = (
        Measure("valley ratio", valleys, (0.0, DEEP), "valley", CUT_GAUSSIAN, "Gaussian\ncut in two", 0.0, end),
        Measure("stability", stability, (STABLE, 1.0), "stable", DOUBTFUL, "not to be\ntrusted", start, 1.0),
    )
    return [each for each in measures if _known(each.values)]


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def groups_without_valley(summary: Summary) -> list[GroupExcess]:
    """Return the groups whose structure is compared with that of references, the largest group first."""
    if summary.support is None:
        return []
    found = []
    for group in summary.support.groups:
        of_group = group.structure
        if of_group is not None and of_group.excess is not None and of_group.needed is not None:
            name = _named(group.clusters, len(summary.support.clusters))
            found.append(GroupExcess(name, of_group.excess, of_group.needed))
    return found[:MOST_GROUPS]


def excess_range(groups: Sequence[GroupExcess]) -> tuple[float, float]:
    """Return the ends of the axis of the excess modularity, with room for words beside 0 and beside the bounds."""
    end = max(1.15 * max(group.excess, 1.75 * group.needed) for group in groups)
    return min(-0.25 * end, *(1.15 * group.excess for group in groups)), end


def _named(clusters: Sequence[int], n_clusters: int) -> str:
    if len(clusters) == n_clusters:
        return "all samples"
    more = len(clusters) - _NAMED
    names = ", ".join(map(str, clusters[: None if more < 2 else _NAMED]))
    return names if more < 2 else f"{names}\nand {more} more"
