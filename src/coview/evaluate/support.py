"""The support of clusters: valleys between them in the graph of all views, and structure without a valley."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from coview.base.runtime import Workers
from coview.core.assign import Labels
from coview.core.drawn import draw_by_cluster
from coview.data.views import Views
from coview.evaluate.linkage import LEAST_SAMPLES
from coview.evaluate.pool import Graphs
from coview.evaluate.structure import Structure, structure_of
from coview.evaluate.valleys import DEEP, Valleys, clusters_of

MOST_COMPARED = 2000  # samples
LEVELS = ("none", "weak", "moderate", "strong")


@dataclass(frozen=True)
class ClusterGroup:
    """Clusters without a valley between them, and the structure of their samples.

    Attributes
    ----------
    clusters : tuple of int
        Labels of the clusters.
    size : int
        Number of samples that are compared.
    structure : Structure or None
        Whether the samples have structure without a valley; None for a single cluster of several, which needs none.
    """

    clusters: tuple[int, ...]
    size: int
    structure: Structure | None


@dataclass(frozen=True)
class Support:
    """What supports the clusters of some samples, measured on the neighbour graph of all views.

    Attributes
    ----------
    n_samples : int
        Number of samples that are compared.
    clusters : tuple of int
        Labels of the clusters.
    valleys : tuple of float or None
        For each cluster the largest valley ratio with another cluster: the cut of the graph between both, relative to
        the weakest cut inside of either. 0 if no other cluster is connected with it, None for fewer than 5 samples
        and for a single cluster.
    nearest : tuple of int or None
        For each cluster the other cluster of this ratio.
    groups : tuple of ClusterGroup
        Clusters are in one group if there is no valley between them (a ratio above 0.4), directly or through others.
        A cluster of fewer than 5 samples is in the group of the cluster with which it has most edges.
    """

    n_samples: int
    clusters: tuple[int, ...]
    valleys: tuple[float | None, ...]
    nearest: tuple[int | None, ...]
    groups: tuple[ClusterGroup, ...]

    @property
    def level(self) -> str:
        """How well the clusters are supported, one of LEVELS.

        "strong": there is a valley between each two clusters. "moderate": there are valleys between some of them.
        "weak": there is no valley, and the samples have more structure than references without groups. "none":
        neither.
        """
        if len(self.groups) > 1:
            return "strong" if len(self.groups) == len(self.clusters) else "moderate"
        (group,) = self.groups
        found = group.structure is not None and group.structure.is_found
        return "weak" if len(group.clusters) > 1 and found else "none"

    def renumbered(self, numbers: Labels) -> Support:
        """Return the support of the same clusters with these numbers instead of 0, 1, …."""
        order = np.argsort(numbers[list(self.clusters)])

        def renamed(labels: Iterable[int]) -> tuple[int, ...]:
            return tuple(sorted(int(numbers[label]) for label in labels))

        nearest = [None if each is None else int(numbers[each]) for each in self.nearest]
        return replace(
            self,
            clusters=renamed(self.clusters),
            valleys=tuple(self.valleys[i] for i in order),
            nearest=tuple(nearest[i] for i in order),
            groups=tuple(replace(group, clusters=renamed(group.clusters)) for group in self.groups),
        )


def measure_support(views: Views, labels: Labels, workers: Workers) -> Support:
    """Return the support of clusters, measured on at most 2,000 samples with some of every cluster.

    Any labels can be measured: the graph is that of `Coview`, which does not depend on the method of the labels.
    """
    rows = draw_by_cluster(labels, MOST_COMPARED)
    some = views if len(rows) == views.n_samples else views.take(rows)
    some = some.select([name for name in some if some.n_present(name)])
    return support_of(some, labels[rows], Valleys(Graphs.learn(some, workers).sum(-1)))


def support_of(views: Views, labels: Labels, valleys: Valleys, of_all: Structure | None = None) -> Support:
    """Return the support of clusters, given the valleys of the graph of the same samples.

    Clusters of fewer than 5 samples have no valley ratio. They belong to the group of the cluster with which they have
    most edges. `of_all` is the structure of all samples, if it is known.
    """
    names, numbers = np.unique(labels, return_inverse=True)
    clusters = clusters_of(numbers)
    ratios = np.zeros((len(names), len(names)))
    weights, found = valleys.of_partition(clusters)
    for (i, j), valley in found.items():
        ratios[i, j] = ratios[j, i] = valley.ratio
    small = np.array([len(samples) < LEAST_SAMPLES for samples in clusters])
    joined = (ratios > DEEP) & ~small & ~small[:, None]
    for few in np.flatnonzero(small & ratios.any(axis=1)):
        joined[few, (weights[few] * (ratios[few] > 0)).argmax()] = True
    ratios[small] = ratios[:, small] = 0.0
    largest, nearest = ratios.max(axis=1), ratios.argmax(axis=1)
    groups = []
    for group in clusters_of(connected_components(joined, directed=False)[1]):
        samples = np.flatnonzero(np.isin(numbers, group))
        structure = None
        if len(group) > 1 or len(names) == 1:
            structure = of_all if of_all and len(group) == len(names) else structure_of(views, samples)
        groups.append(ClusterGroup(_integers(names[group]), len(samples), structure))
    unknown = small | (len(clusters) == 1)
    return Support(
        n_samples=len(labels),
        clusters=_integers(names),
        valleys=tuple(None if no else round(float(each), 4) for no, each in zip(unknown, largest, strict=True)),
        nearest=tuple(int(names[j]) if ratios[i, j] > 0 else None for i, j in enumerate(nearest)),
        groups=tuple(sorted(groups, key=lambda group: -group.size)),
    )


def _integers(labels: Labels) -> tuple[int, ...]:
    return tuple(map(int, labels))
