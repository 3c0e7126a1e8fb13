"""AnchorPoints: a few points that represent all samples of a view, and the anchors nearest to each sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from coview.data.rows import as_array, as_float64, row_blocks, squared_norms
from coview.data.view import Array, Matrix
from coview.errors import InputError

_DISTANT = 1e3  # squared distance of the points from the origin, in units of their spread, that costs three digits
_GRAIN = 2.0**-36  # far above the rounding error of a distance, so that ties are equal; far below real differences


class NearestAnchors(NamedTuple):
    """The nearest anchors of each sample, in increasing order of their number, and the squared distances to them."""

    anchors: Array
    distances: Array

    def graph(self, weights: Array, n_anchors: int) -> Matrix:
        """Return the bipartite graph (samples, anchors) with these weights of the nearest anchors, as csr_array."""
        n, count = self.anchors.shape
        starts = np.arange(0, n * count + 1, count)
        return sp.csr_array((weights.ravel(), self.anchors.ravel(), starts), shape=(n, n_anchors))


@dataclass(frozen=True, eq=False)
class AnchorPoints:
    """The anchors of one view.

    The search differs from `coview.neighbors` in ties: distances that are equal up to rounding are equal here, also
    between points that are not duplicates, such as mirror images. Sparse points are used with sparse views; only
    distances are dense.
    """

    name: str  # of the view
    points: Matrix

    @cached_property
    def unit(self) -> float:
        """The unit of distances: a power of 2 near the largest entry."""
        points = self.points.data if sp.issparse(self.points) else self.points
        largest = float(np.abs(points).max(initial=0.0))
        return float(np.ldexp(0.5, np.frexp(largest)[1])) if largest > 0 else 1.0

    @cached_property
    def _origin(self) -> Array | None:
        # Far from the origin the digits of a distance cancel, so the median of the points becomes the origin: a mean
        # would follow a single distant point. Sparse points lose their zeros, and are moved only if necessary.
        origin: Array = _median(self.points / self.unit) * self.unit
        stays = sp.issparse(self.points) and _is_near(self.points / self.unit, origin / self.unit)
        return None if stays else origin

    @cached_property
    def _points(self) -> Matrix:
        return self._moved(self.points)

    @cached_property
    def _lengths(self) -> Array:
        return squared_norms(self._points)

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def nearest(self, x: Matrix, count: int) -> NearestAnchors:
        """Return the nearest anchors of each row; of equally near ones, those with the smallest numbers.

        Takes O(rows × anchors × features) time, and memory for the result and one block of rows. A row gets the same
        anchors alone and in any batch, because distances are rounded to their certain digits.
        """
        count = min(count, len(self))
        found = NearestAnchors(np.empty((x.shape[0], count), dtype=np.int32), np.empty((x.shape[0], count)))
        with np.errstate(over="ignore"):  # distances that overflow are not among the nearest, or are refused
            for rows in row_blocks(x.shape[0], max(len(self), x.shape[1])):
                found.anchors[rows], found.distances[rows] = self._nearest_in_block(self._moved(x[rows]), count)
        return found

    def mean_distance(self, x: Matrix) -> float:
        """Return the mean squared distance between rows and anchors, in linear time."""
        total, lengths = np.zeros(x.shape[1]), 0.0
        for rows in row_blocks(x.shape[0], max(len(self), x.shape[1])):
            block = self._moved(x[rows])
            total += block.sum(axis=0)
            lengths += float(squared_norms(block).sum())
        product = float(total @ self._points.mean(axis=0))
        return max((lengths - 2 * product) / int(x.shape[0]) + float(self._lengths.mean()), 0.0)

    def _moved(self, x: Matrix) -> Matrix:
        if self._origin is None:
            return x.astype(np.float64) / self.unit
        return as_float64(x) / self.unit - self._origin / self.unit  # a difference of large numbers can overflow

    def _nearest_in_block(self, x: Matrix, count: int) -> tuple[Array, Array]:
        lengths = squared_norms(x)[:, None]
        if not np.isfinite(lengths).all():
            raise InputError(f"view {self.name!r} has samples too far from the others to compute with; scale the view")
        distances = as_array(x @ self._points.T)
        distances *= -2
        distances += lengths
        distances += self._lengths
        last = np.partition(distances, count - 1, axis=1)[:, count - 1 : count]
        # Cancellation leaves errors relative to the lengths; after rounding, equal distances are equal again.
        grain = np.ldexp(_GRAIN, np.frexp(lengths + np.abs(last))[1])
        for rounded in (distances, last):
            rounded /= grain
            np.rint(rounded, out=rounded)
            np.maximum(rounded, 0.0, out=rounded)
            rounded *= grain
        chosen = distances <= last
        tied = np.flatnonzero(chosen.sum(axis=1) > count)
        if len(tied):  # of those as far as the last, only the first are chosen
            nearer = distances[tied] < last[tied]
            as_far = chosen[tied] & ~nearer
            chosen[tied] = nearer | (as_far & (as_far.cumsum(axis=1) <= count - nearer.sum(axis=1, keepdims=True)))
        return chosen.nonzero()[1].reshape(-1, count), distances[chosen].reshape(-1, count)


def _median(points: Matrix) -> Array:
    """Return the median of each column; zero for columns of a sparse matrix that are mostly empty."""
    if not sp.issparse(points):
        return np.median(points, axis=0).astype(np.float64)
    origin = np.zeros(points.shape[1])
    full = np.flatnonzero(2 * points.count_nonzero(axis=0) > points.shape[0])
    origin[full] = np.median(points[:, full].toarray(), axis=0) if len(full) else 0.0
    return origin


def _is_near(points: Matrix, origin: Array) -> bool:
    """Return whether distances between points keep their digits if they are measured from zero, not the origin."""
    away = float(origin @ origin)
    spread = float(np.median(squared_norms(points) - 2 * (points @ origin) + away))
    return away <= _DISTANT * max(spread, 0.0)
