"""The number of clusters: valleys between clusters first, then structure inside of what has no valley."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from coview.base.runtime import Workers
from coview.core.assign import Labels
from coview.data.views import Views
from coview.evaluate.consensus import clusters_of_tree
from coview.evaluate.linkage import LEAST_SAMPLES
from coview.evaluate.pool import Clusterings, Pool, numbers_of_members
from coview.evaluate.structure import Structure, communities, structure_of
from coview.evaluate.valleys import Valleys, clusters_of

NUMBERS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 25, 30)
_STARTS = 3  # of k-means: there are hundreds of clusterings
_SHALLOW = 1.0  # ratio to the mean cut: clusters that meet where the graph is no weaker than inside are not divided
_RESOLUTIONS = (0.7, 0.85, 1.0)
_LEAST_COMMUNITY = 0.005  # of all samples


@dataclass(frozen=True)
class Part:
    """Samples without a valley among them.

    Attributes
    ----------
    size : int
        Number of samples.
    structure : Structure
        Its structure without a valley.
    n_clusters : int
        The clusters that it is divided into.
    """

    size: int
    structure: Structure
    n_clusters: int


@dataclass(frozen=True)
class ClusterNumber:
    """The selected number of clusters, and what it is based on.

    Attributes
    ----------
    n_clusters : int
        The number that is found.
    chosen : int
        The number that is used: of several that were given, the one nearest to it.
    parts : tuple of Part
        The parts that are separated by valleys.
    votes : tuple of (int, int)
        How many of the evaluated partitions end with each number of parts, the most frequent first.
    largest : int
        The largest number of clusters that is compared.
    """

    n_clusters: int
    chosen: int
    parts: tuple[Part, ...]
    votes: tuple[tuple[int, ...], ...]
    largest: int

    @property
    def at_limit(self) -> bool:
        """Whether more clusters than were compared may be found."""
        return self.n_clusters >= self.largest > 1


def numbers_for(n_samples: int) -> list[int]:
    """Return the numbers of clusters whose partitions are merged, for this number of samples."""
    return [k for k in NUMBERS if k <= min(max(4, n_samples // 10), n_samples - 1)] or [1]


def select_number(
    views: Views, pool: Pool, valleys: Valleys, seed: int, workers: Workers
) -> tuple[ClusterNumber, Clusterings, Labels]:
    """Return the number of clusters, the members for this number, and the clusters of the samples.

    The valleys are those of the sum of all graphs of the pool.
    """
    clusterings = {k: pool.cluster([k], seed, workers, _STARTS) for k in numbers_for(views.n_samples)}
    levels = workers.map(lambda k: clusters_of_tree(clusterings[k], k), list(clusterings))
    partitions = dict(zip(clusterings, levels, strict=True))
    merged = workers.map(valleys.merged, list(partitions.values()))
    votes = Counter(int(labels.max()) + 1 for labels in merged)
    n_parts = max(votes, key=lambda number: (votes[number], number))
    of_parts = next(labels for labels in merged if labels.max() + 1 == n_parts)
    of_part = clusters_of(of_parts)
    structures = workers.map(partial(structure_of, views), of_part)
    found: list[Labels] = []
    if any(structure.is_found for structure in structures):
        tasks = [(graph, resolution) for graph in (pool.graphs.sum(0), valleys.graph) for resolution in _RESOLUTIONS]
        found = workers.map(lambda task: communities(*task), tasks)
    least = 2 if n_parts == 1 else 1
    parts = [
        Part(len(samples), each, _n_inside(samples, partitions, found, valleys, least) if each.is_found else 1)
        for samples, each in zip(of_part, structures, strict=True)
    ]
    n_clusters = sum(part.n_clusters for part in parts)
    members = pool.cluster(numbers_of_members(n_clusters), seed, workers)
    clusters, first = np.zeros(views.n_samples, dtype=np.int64), 0
    for part, samples in zip(parts, of_part, strict=True):
        if part.n_clusters > 1:
            inside = members._replace(own_labels=members.own_labels[samples], labels=members.labels[samples])
            clusters[samples] = clusters_of_tree(inside, part.n_clusters)
        clusters[samples] += first
        first += part.n_clusters
    number = ClusterNumber(n_clusters, n_clusters, tuple(parts), tuple(votes.most_common()), max(partitions))
    return number, members, np.unique(clusters, return_inverse=True)[1]


def _n_inside(
    samples: Labels, partitions: Mapping[int, Labels], found: Sequence[Labels], valleys: Valleys, least: int
) -> int:
    """Return the number of clusters of a part with structure, from communities and partitions of all samples."""
    counts = [_n_mostly_inside(labels, samples) for labels in found]
    n_clusters = max(least, int(np.median(counts)))
    for labels in partitions.values():
        clusters = [samples[each] for each in clusters_of(labels[samples]) if len(each) >= LEAST_SAMPLES]
        if len(clusters) > n_clusters:
            ratios = [valley.mean_ratio for valley in valleys.of_partition(clusters)[1].values()]
            if max(ratios, default=0.0) <= _SHALLOW:
                n_clusters = len(clusters)
    return n_clusters


def _n_mostly_inside(labels: Labels, samples: Labels) -> int:
    """Return the number of communities, without very small ones, with more than half of their samples among these."""
    sizes = np.bincount(labels)
    inside = np.bincount(labels[samples], minlength=len(sizes))
    return int(np.count_nonzero((2 * inside > sizes) & (sizes >= max(3, _LEAST_COMMUNITY * len(labels)))))
