"""The tree of a consensus: average linkage on the distinct tuples of labels that several clusterings give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coview.core.assign import Labels
from coview.data.view import Array

_MOST_TUPLES = 4000  # the distances between these take 128 MB, and as much again for a moment
_NEARLY_ALL = 0.9  # of the clusterings
LEAST_SAMPLES = 5  # of a cluster: fewer have few edges, so that they differ from all others by chance


@dataclass(frozen=True)
class Tree:
    """A hierarchy of samples by average linkage, where the distance of two samples is the fraction of clusterings
    that separate them.

    Samples with the same labels in all clusterings are one leaf, so the size of the tree does not depend on the number
    of samples, and the tree not on their order. Above 4,000 leaves, the most frequent ones form the tree.
    """

    leaf_of: Labels  # (n_samples,) the leaf of each sample; -1 if it is none of the most frequent
    merges: Labels  # (n_leaves - 1, 2) nodes that are merged, in the order of heights; leaves come first
    heights: Array  # (n_leaves - 1,) average distances, above 1 only between given clusters

    @classmethod
    def learn(cls, labels: Labels, clusters: Labels | None = None) -> Tree:
        """Return the tree of clusterings, a column each, of shape (n_samples, n_clusterings).

        If clusters are given, samples of different clusters are farther from each other than any samples of the same
        one, so that the clusters are a level of the tree.
        """
        given = np.zeros(len(labels), dtype=np.int64) if clusters is None else clusters
        tuples, place, counts = np.unique(
            np.column_stack([given, labels]), axis=0, return_inverse=True, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")
        order = np.append(order[np.unique(tuples[order, 0], return_index=True)[1]], order)  # some of each cluster
        kept = np.sort(order[np.sort(np.unique(order, return_index=True)[1])][:_MOST_TUPLES])
        leaves = np.full(len(tuples), -1)
        leaves[kept] = np.arange(len(kept))
        first = tuples[kept, 0]
        distances = differing_fractions(tuples[kept, 1:]) + 2 * (first[:, None] != first)
        merges, heights = average_linkage(distances, counts[kept])
        return cls(leaves[place.ravel()], merges, heights)

    @cached_property
    def n_leaves(self) -> int:
        return len(self.merges) + 1

    def cut(self, n_clusters: int) -> Labels:
        """Return the labels of the samples for this number of clusters, or as many as there are leaves; -1 stays.

        The highest merges are undone first. Those of fewer than 5 samples follow after all others, unless nearly
        all clusterings separate these: a few unusual samples would be clusters of their own. They stay with the larger
        part of their cluster.
        """
        order = np.arange(len(self.merges))[::-1]
        order = order[np.argsort(~self._is_large[order], kind="stable")]
        undone = np.zeros(len(self.merges), dtype=np.bool_)
        undone[order[: n_clusters - 1]] = True
        label = np.zeros(self.n_leaves + len(self.merges), dtype=np.int64)
        n_found = 1
        for step in range(len(self.merges) - 1, -1, -1):  # from the top, so that parents have their label
            larger, smaller = self._by_size[step]
            label[larger] = label[smaller] = label[self.n_leaves + step]
            if undone[step]:
                label[smaller] = n_found
                n_found += 1
        return np.where(self.leaf_of < 0, -1, label[self.leaf_of])

    @cached_property
    def _sizes(self) -> Array:
        """The number of samples of each node."""
        sizes = np.zeros(self.n_leaves + len(self.merges), dtype=np.int64)
        sizes[: self.n_leaves] = np.bincount(self.leaf_of[self.leaf_of >= 0], minlength=self.n_leaves)
        for step, (first, second) in enumerate(self.merges):
            sizes[self.n_leaves + step] = sizes[first] + sizes[second]
        return sizes

    @cached_property
    def _by_size(self) -> Array:
        """The two nodes of each merge, the larger one first."""
        order = np.argsort(-self._sizes[self.merges], axis=1, kind="stable")
        return np.take_along_axis(self.merges, order, axis=1)

    @cached_property
    def _is_large(self) -> Array:
        """Whether both nodes of each merge have at least 5 samples, or nearly all clusterings separate them."""
        return (self._sizes[self.merges].min(axis=1) >= LEAST_SAMPLES) | (self.heights > _NEARLY_ALL)


def differing_fractions(tuples: Labels) -> Array:
    """Return the fraction of positions in which each two tuples differ, (n_tuples, n_tuples)."""
    distances = np.zeros((len(tuples), len(tuples)), dtype=np.float32)
    for column in tuples.T:
        distances += column[:, None] != column
    distances /= tuples.shape[1]
    return distances


def average_linkage(distances: Array, sizes: Labels) -> tuple[Labels, Array]:
    """Return the merges of weighted leaves and their heights, in increasing order of heights.

    Nearest-neighbour chains find the same merges as the search for the closest pair, up to ties, in O(n²) time. The
    distances are overwritten. SciPy's `linkage` has no weights of leaves.
    """
    n = len(distances)
    np.fill_diagonal(distances, np.inf)
    weights, alive = sizes.astype(np.float64), np.ones(n, dtype=np.bool_)
    found: list[tuple[int, int]] = []
    heights, height_of = np.empty(n - 1), np.zeros(n)
    chain: list[int] = []
    while len(found) < n - 1:
        if not chain:
            chain = [int(alive.argmax())]
        while True:
            last = chain[-1]
            nearest = int(distances[last].argmin())
            if len(chain) > 1 and distances[last, chain[-2]] <= distances[last, nearest]:
                break
            chain.append(nearest)
        second, first = sorted((chain.pop(), chain.pop()), reverse=True)
        # At least the heights of its parts, which rounding could exceed: these are then merged before it.
        height_of[first] = max(distances[first, second], height_of[first], height_of[second])
        heights[len(found)] = height_of[first]
        found.append((first, second))
        total = weights[first] + weights[second]
        joined = (weights[first] * distances[first] + weights[second] * distances[second]) / total
        joined[first] = np.inf
        distances[first] = distances[:, first] = joined
        distances[second] = distances[:, second] = np.inf
        weights[first], alive[second] = total, False
    order = np.argsort(heights, kind="stable")
    node, merges = np.arange(n), np.empty((n - 1, 2), dtype=np.int64)
    for step, pair in enumerate(np.array(found, dtype=np.int64).reshape(-1, 2)[order]):
        merges[step] = node[pair]  # the node that each of the two leaves stands for at this height
        node[pair] = n + step
    return merges, heights[order]
