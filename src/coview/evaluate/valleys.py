"""Valleys: whether a graph is cut where two clusters meet, compared with cuts inside of each cluster."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coview.core.assign import Labels
from coview.data.view import Array, Matrix

DEEP = 0.4  # largest ratio of a valley
CUT_GAUSSIAN = 0.7  # least ratio of a Gaussian, a gradient or a curve that is cut in two
_PRIOR = 0.1  # times the mean degree, added to both cuts: a cut of a few weak edges means little
_ENDING = 1e-3  # ε: walks of about 1,000 steps
_PRECISION, _MOST_PRODUCTS = 1e-8, 500


class Valley(NamedTuple):
    """The cut between two clusters, relative to the cuts inside of the one that is less connected."""

    ratio: float  # to its weakest cut
    mean_ratio: float  # to the mean of its cuts


class Valleys:
    """The valleys between clusters of samples on one graph; each pair is computed once."""

    def __init__(self, graph: Matrix) -> None:
        self.graph = graph
        self._prior = _PRIOR * float(graph.sum()) / graph.shape[0]
        self._known: dict[tuple[bytes, bytes], Valley] = {}

    def between(self, first: Labels, second: Labels) -> Valley:
        """Return the valley between two clusters, given by their samples in increasing order."""
        if first[0] > second[0]:
            first, second = second, first
        key = first.tobytes(), second.tobytes()
        if key not in self._known:
            self._known[key] = self._computed(first, second)
        return self._known[key]

    def _computed(self, first: Labels, second: Labels) -> Valley:
        samples = np.concatenate([first, second])
        n, n_first = len(samples), len(first)
        part = self.graph[samples][:, samples].tocsr()
        position = resolvent(part, (np.arange(n) >= n_first).astype(np.float64))
        # From one cluster to the other: first those of the first cluster, then those of the second.
        rank = np.empty(n, dtype=np.int64)
        rank[np.lexsort((position, np.arange(n) >= n_first))] = np.arange(n)
        row, column = rank[np.repeat(np.arange(n), np.diff(part.indptr))], rank[part.indices]
        up = row < column
        change = np.bincount(row[up], part.data[up], n) - np.bincount(column[up], part.data[up], n)
        cuts = np.cumsum(change)[: n - 1]
        inside = [_inner(cuts, 0, n_first), _inner(cuts, n_first, n - n_first)]
        between = cuts[n_first - 1] + self._prior
        least, mean = (min(each[i] for each in inside) for i in (0, 1))
        return Valley(float(between / (least + self._prior)), float(between / (mean + self._prior)))

    def of_partition(self, clusters: list[Labels]) -> tuple[Array, dict[tuple[int, int], Valley]]:
        """Return the weights of edges between clusters, and the valleys of those with more than a few weak edges."""
        weights = weights_between(self.graph, clusters)
        pairs = [(i, j) for j in range(len(clusters)) for i in range(j) if weights[i, j] > self._prior]
        return weights, {(i, j): self.between(clusters[i], clusters[j]) for i, j in pairs}

    def merged(self, labels: Labels) -> Labels:
        """Return the partition after pairs without a valley are merged, the pair of largest ratio first."""
        clusters = clusters_of(labels)
        weights, valleys = self.of_partition(clusters)
        ratios = {pair: valley.ratio for pair, valley in valleys.items()}
        alive = set(range(len(clusters)))
        while ratios:
            (i, j), ratio = max(ratios.items(), key=lambda item: (item[1], weights[item[0]]))
            if ratio <= DEEP:
                break
            clusters[i] = np.sort(np.concatenate([clusters[i], clusters[j]]))
            alive.discard(j)
            weights[i] += weights[j]
            weights[:, i] += weights[:, j]
            ratios = {pair: each for pair, each in ratios.items() if not {i, j} & {*pair}}
            for other in alive - {i}:
                if weights[i, other] > self._prior:
                    ratios[min(i, other), max(i, other)] = self.between(clusters[i], clusters[other]).ratio
        found = np.empty_like(labels)
        for number, place in enumerate(sorted(alive)):
            found[clusters[place]] = number
        return found


def clusters_of(labels: Labels) -> list[Labels]:
    """Return the samples of each cluster."""
    return [np.flatnonzero(labels == number) for number in np.unique(labels)]


def weights_between(graph: Matrix, clusters: list[Labels]) -> Array:
    """Return the sum of the weights of the edges between each two clusters."""
    indicators = np.zeros((graph.shape[0], len(clusters)))
    for number, samples in enumerate(clusters):
        indicators[samples, number] = 1
    weights: Array = indicators.T @ (graph @ indicators)
    return weights


def resolvent(graph: Matrix, values: Array) -> Array:
    """Return (L + εD)⁻¹ D values, with the Laplacian L and the degrees D of the graph.

    It is 1 / ε times the mean of the value at which a walk ends that stops with probability ε / (1 + ε) before each
    step. It orders the samples from low values to high ones. By conjugate gradients, in about √(1 / ε) products.
    """
    degrees = np.maximum(graph.sum(axis=1), np.finfo(float).tiny)
    roots = np.sqrt(degrees)
    right = roots * values
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = residual.copy()
    square = float(residual @ residual)
    enough = _PRECISION**2 * square
    for _ in range(_MOST_PRODUCTS):
        if square <= enough:
            break
        image = (1 + _ENDING) * direction - (graph @ (direction / roots)) / roots
        step = square / float(direction @ image)
        solution += step * direction
        residual -= step * image
        before, square = square, float(residual @ residual)
        direction = residual + square / before * direction
    return solution / roots


def _inner(cuts: Array, start: int, size: int) -> tuple[float, float]:
    """Return the least and the mean cut in the central half of a cluster; 0 if it is too small for any."""
    inner = cuts[max(0, start + int(np.ceil(size / 4)) - 1) : start + int(np.floor(3 * size / 4))]
    return (float(inner.min()), float(inner.mean())) if len(inner) else (0.0, 0.0)
