"""The tree of clusters: how many samples of each cluster are in which cluster if there are more clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np

from coview.core.assign import Labels
from coview.state import Range
from coview.views import Array


@dataclass(frozen=True)
class Branch:
    """The samples of one cluster that are in one cluster of the next larger number of clusters."""

    n_clusters: Annotated[int, Range(least=1)]
    cluster: Annotated[int, Range(least=0)]
    next_n_clusters: Annotated[int, Range(least=1)]
    next_cluster: Annotated[int, Range(least=0)]
    size: Annotated[int, Range(least=1)]  # samples


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
        for (i, j), size in zip(*_pairs_with_counts(named[k], named[more]), strict=True)
    )


def _relabelled(labels: Labels, reference: Labels) -> Labels:
    """Return labels with the numbers of the reference clusters that they match, and further numbers for the others."""
    from scipy.optimize import linear_sum_assignment

    theirs, column = np.unique(reference, return_inverse=True)
    own, row = np.unique(labels, return_inverse=True)
    counts = np.zeros((len(own), len(theirs)), dtype=np.int64)
    np.add.at(counts, (row, column), 1)
    matched = dict(zip(*linear_sum_assignment(counts, maximize=True), strict=True))
    unused = (number for number in range(len(own) + int(theirs[-1]) + 1) if number not in theirs)
    names = [theirs[matched[each]] if each in matched else next(unused) for each in range(len(own))]
    return np.array(names, dtype=np.int64)[row]


def _pairs_with_counts(a: Labels, b: Labels) -> tuple[list[list[int]], list[int]]:
    pairs: tuple[Array, Array] = np.unique(np.column_stack([a, b]), axis=0, return_counts=True)
    return pairs[0].tolist(), pairs[1].tolist()
