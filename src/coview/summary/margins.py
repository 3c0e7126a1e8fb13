"""How well samples and clusters are separated in score space, by one rule for every method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.data.rows import l2_normalize, row_blocks, squared_norms
from coview.data.view import Array

Numbers = NDArray[np.intp]  # clusters as 0, 1, …, each with members


class Separation(NamedTuple):
    """How well samples and clusters are separated; None without scores or with a single cluster."""

    margins: Array | None = None  # of samples
    nearest_others: Numbers | None = None  # the nearest cluster of each sample besides its own
    cluster_margins: Array | None = None  # medians
    silhouettes: Array | None = None  # by cluster; None if each sample is a cluster
    silhouette: float | None = None


def separation(scores: Array | None, numbers: Numbers, drawn: Numbers) -> Separation:
    """Return the separation of clusters in score space; the silhouettes are those of the drawn samples."""
    from sklearn.metrics import silhouette_samples

    sizes = np.bincount(numbers)
    if scores is None or len(sizes) < 2:
        return Separation()
    points = shortened_directions(scores, numbers)
    by_sample, nearest_others = margins(points, numbers, len(sizes))
    medians = np.array([np.median(by_sample[numbers == c]) for c in range(len(sizes))])
    if len(sizes) == len(drawn):
        return Separation(by_sample, nearest_others, medians)
    silhouettes = silhouette_samples(points[drawn], numbers[drawn])
    by_cluster = np.bincount(numbers[drawn], silhouettes) / np.bincount(numbers[drawn])
    return Separation(by_sample, nearest_others, medians, by_cluster, float(by_cluster @ sizes / len(numbers)))


def indicators(numbers: Numbers, n_clusters: int) -> sp.csr_array:
    """Return the matrix (clusters, rows) whose product with a table sums the members of each cluster."""
    rows = np.arange(len(numbers))
    return sp.csr_array((np.ones(len(rows)), (numbers, rows)), shape=(n_clusters, len(rows)))


def shortened_directions(scores: Array, numbers: Numbers) -> Array:
    """Return the L2-normalised rows, shortened in proportion if the row is shorter than the median of its cluster.

    Samples of a cluster lie on one ray, and those near the origin are near to every ray. A row of at least the median
    norm of its cluster gets norm 1, a row of half that norm 1/2, and so on down to rows of zeros.
    """
    directions: Array = l2_normalize(scores.astype(np.float64, copy=False))
    lengths = np.einsum("ij,ij->i", directions, scores)
    by_cluster = np.split(lengths[np.argsort(numbers, kind="stable")], np.bincount(numbers).cumsum()[:-1])
    medians = np.array([np.median(members) for members in by_cluster])
    typical = np.where(medians > 0, medians, 1.0)[numbers]
    directions *= np.minimum(lengths / typical, 1)[:, None]
    return directions


def margins(points: Array, numbers: Numbers, n_clusters: int) -> tuple[Array, Numbers]:
    """Return the margin of each sample, and the nearest cluster besides its own.

    The centre of a cluster is the mean direction of its members. With the distance a to the own centre and b to the
    nearest other one, the margin is (b - a) / (b + a): 1 at the own centre, 0 at equal distances, as at the origin, and
    negative if another centre is nearer. The points are those of `shortened_directions`, in at least two clusters.
    """
    centres = l2_normalize(indicators(numbers, n_clusters) @ points)
    found, others = np.empty(len(points)), np.empty(len(points), dtype=np.intp)
    for rows in row_blocks(len(points), points.shape[1] + 2 * n_clusters):
        block, own = points[rows], (np.arange(rows.stop - rows.start), numbers[rows])
        # |x - c|² = |x|² - 2 x·c + |c|²: no length exceeds 1, so little cancels.
        squares = squared_norms(block)[:, None] + squared_norms(centres) - 2 * block @ centres.T
        distances = np.sqrt(np.maximum(squares, 0))
        a = distances[own]
        distances[own] = np.inf
        others[rows] = distances.argmin(axis=1)
        b = distances.min(axis=1)
        found[rows] = (b - a) / np.where(a + b > 0, a + b, 1.0)
    return found, others
