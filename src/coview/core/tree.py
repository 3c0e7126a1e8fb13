"""The tree of clusters: how many samples of each cluster are in which cluster if there are more clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from coview.core.agreement import contingency, matched
from coview.core.assign import Labels


@dataclass(frozen=True)
class Branch:
    """The samples of one cluster that are in one cluster of the next larger number of clusters."""

    n_clusters: int
    cluster: int
    next_n_clusters: int
    next_cluster: int
    size: int  # samples


def cluster_tree(labels: Mapping[int, Labels], known: int) -> tuple[Branch, ...]:
    """Return the branches between labels of the same samples for several numbers of clusters, given by number.

    Clusters of the `known` number keep their labels. Clusters of another number have the labels of those of the number
    next to it towards the known one, matched one to one such that as many samples as possible keep their label;
    clusters without a match have further labels. A cluster that does not split therefore has one label throughout.
    """
    numbers = sorted(labels)
    place = numbers.index(known)
    named = {known: labels[known]}
    for outwards in (numbers[place:], numbers[place::-1]):
        for nearer, further in pairwise(outwards):
            named[further] = _relabelled(labels[further], named[nearer])
    return tuple(
        Branch(k, i, more, j, size)
        for k, more in pairwise(numbers)
        for i, j, size in _common_samples(named[k], named[more])
    )


def _relabelled(labels: Labels, reference: Labels) -> Labels:
    """Return labels with the numbers of the reference clusters that they match, and further numbers for the others."""
    theirs, column = np.unique(reference, return_inverse=True)
    own, row = np.unique(labels, return_inverse=True)
    found = dict(zip(*matched(contingency(row, column)), strict=True))
    unused = (number for number in range(len(own) + int(theirs[-1]) + 1) if number not in theirs)
    names = [theirs[found[each]] if each in found else next(unused) for each in range(len(own))]
    return np.array(names, dtype=np.int64)[row]


def _common_samples(a: Labels, b: Labels) -> Iterator[tuple[int, int, int]]:
    """Yield each pair of clusters that have common samples, and the number of these."""
    counts = contingency(a, b)
    for i, j in np.argwhere(counts).tolist():
        yield i, j, int(counts[i, j])
