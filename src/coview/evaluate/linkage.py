"""The tree of a consensus: average linkage on the distinct tuples of labels that several clusterings give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coview.core.assign import Labels
from coview.views import Array

_MOST_TUPLES = 4000  # the distances between these take 64 MB


@dataclass(frozen=True)
class Tree:
    """A hierarchy of samples by average linkage, where the distance of two samples is the fraction of clusterings
    that separate them.

    Samples with the same labels in all clusterings are one leaf, so the size of the tree does not depend on the number
    of samples, and the tree not on their order. Above 4,000 leaves, the most frequent ones form the tree.
    """

    leaf_of: Labels  # (n_samples,) the leaf of each sample; -1 if it is none of the most frequent
    merges: Labels  # (n_leaves - 1, 2) nodes that are merged, in the order of heights; leaves come first
    heights: Array  # (n_leaves - 1,) average distances

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
        kept = np.unique(order[:_MOST_TUPLES])
        leaves = np.full(len(tuples), -1)
        leaves[kept] = np.arange(len(kept))
        first = tuples[kept, 0]
        distances = differing_fractions(tuples[kept, 1:]) + (first[:, None] != first)
        merges, heights = average_linkage(distances, counts[kept])
        return cls(leaves[place.ravel()], merges, heights)

    @cached_property
    def n_leaves(self) -> int:
        return len(self.merges) + 1

    def cut(self, n_clusters: int) -> Labels:
        """Return the labels of the samples for this number of clusters, or as many as there are leaves; -1 stays."""
        root = np.arange(self.n_leaves + len(self.merges))
        n_merges = max(self.n_leaves - n_clusters, 0)
        for step in range(n_merges - 1, -1, -1):  # from the top, so that children get the root of their parents
            root[self.merges[step]] = root[self.n_leaves + step]
        numbers = np.unique(root[: self.n_leaves], return_inverse=True)[1]
        return np.where(self.leaf_of < 0, -1, numbers[self.leaf_of])


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
