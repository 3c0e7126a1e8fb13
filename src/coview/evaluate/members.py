"""The members of a consensus: clusterings by k-means, each on other coordinates of the samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coview.base.runtime import one_sklearn_thread
from coview.core.assign import Labels
from coview.core.select import draw_rows
from coview.data.rows import as_float64, l2_normalize, squared_norms
from coview.data.view import Array, Matrix
from coview.evaluate.graphs import Rows, Walk
from coview.preprocess.steps import PrincipalComponents

_MOST_COLUMNS = 100  # of a table; above, its first principal components
_NEAR_ONE = 1.02  # instead of 1 in λ / (1 - λ), the sum over walks of all lengths, which is infinite for λ = 1
_ROWS_OF_STARTS = 5000
_DECIMALS = 9  # of comparisons, so that rounding errors of products do not decide between equal distances


class Located(NamedTuple):
    """Samples in all representations and walks."""

    rows: tuple[Rows, ...]
    steps: tuple[Matrix, ...]
    components: tuple[Array, ...]

    @classmethod
    def of(cls, rows: Sequence[Rows], walks: Sequence[Walk]) -> Located:
        """Return samples with these rows, with their steps and components in all walks."""
        steps = tuple(walk.steps([each.similarities for each in rows]) for walk in walks)
        components = tuple(walk.components(each) for walk, each in zip(walks, steps, strict=True))
        return cls(tuple(rows), steps, components)


class Coordinates(ABC):
    """A space in which samples are clustered."""

    @abstractmethod
    def known(self, samples: Located) -> Array:
        """Return which samples have coordinates."""

    @abstractmethod
    def of(self, samples: Located) -> Array:
        """Return the coordinates of the samples that have them."""


@dataclass(frozen=True)
class OfWalk(Coordinates, ABC):
    """Directions of components of a walk; samples without an edge in its graphs have none."""

    walk: int

    def known(self, samples: Located) -> Array:
        return np.diff(samples.steps[self.walk].indptr) > 0

    def of(self, samples: Located) -> Array:
        return l2_normalize(self._weighted(samples.components[self.walk][self.known(samples)]))

    @abstractmethod
    def _weighted(self, components: Array) -> Array:
        """Return the components that are used, with weights."""


@dataclass(frozen=True)
class Spectral(OfWalk):
    """The first components, as many as clusters. The constant one is among them: it keeps small groups apart."""

    n_components: int

    def _weighted(self, components: Array) -> Array:
        return np.column_stack([np.ones(len(components)), components[:, : self.n_components - 1]])


@dataclass(frozen=True)
class Multiscale(OfWalk):
    """Many components without the constant one, weighted by walks of all lengths."""

    weights: Array

    @classmethod
    def learn(cls, place: int, walk: Walk) -> Multiscale:
        """Return the coordinates of the walk in this place."""
        return cls(place, walk.eigenvalues / (_NEAR_ONE - walk.eigenvalues))

    def _weighted(self, components: Array) -> Array:
        return components[:, : len(self.weights)] * self.weights


@dataclass(frozen=True)
class Columns(Coordinates):
    """The columns of a representation; if there are many, their first principal components."""

    place: int  # of the representation
    axes: PrincipalComponents | None

    @classmethod
    def learn(cls, place: int, table: Matrix) -> Columns:
        """Return the columns of the representation in this place."""
        many = min(table.shape) > _MOST_COLUMNS + 1
        return cls(place, PrincipalComponents.learn(table, _MOST_COLUMNS) if many else None)

    def known(self, samples: Located) -> Array:
        return samples.rows[self.place].present

    def of(self, samples: Located) -> Array:
        table = samples.rows[self.place].table
        return as_float64(table if self.axes is None else self.axes(table))


@dataclass(frozen=True)
class Member:
    """One clustering: centres in a space, of which the nearest one is the label."""

    coordinates: Coordinates
    centres: Array

    @classmethod
    def learn(cls, coordinates: Coordinates, samples: Located, n_clusters: int, n_starts: int, seed: int) -> Member:
        """Return the clustering of the samples that have these coordinates."""
        return cls(coordinates, k_means_centres(coordinates.of(samples), n_clusters, n_starts, seed))

    def labels(self, samples: Located) -> Labels:
        """Return the label of each sample; -1 for samples without coordinates."""
        scale = np.abs(self.centres).max() or 1.0
        centres = self.centres / scale
        nearness = (self.coordinates.of(samples) / scale) @ centres.T - squared_norms(centres) / 2
        labels = np.full(len(samples.rows[0].present), -1)
        labels[self.coordinates.known(samples)] = np.round(nearness, _DECIMALS).argmax(axis=1)
        return labels


def k_means_centres(x: Array, n_clusters: int, n_starts: int, seed: int) -> Array:
    """Return the centres of k-means, or the distinct rows if there are no more than clusters.

    Of several starts, the best one on a sample of the rows continues on all rows.
    """
    from sklearn.cluster import KMeans

    for some in (x[: 4 * n_clusters], x):  # the first rows mostly suffice
        distinct = np.unique(np.round(some, _DECIMALS), axis=0)
        if len(distinct) > n_clusters:
            break
    else:
        return distinct
    some = x[draw_rows(len(x), _ROWS_OF_STARTS, np.random.default_rng(seed))]
    with one_sklearn_thread():  # sums then have one order
        centres: Array = KMeans(n_clusters, n_init=n_starts, random_state=seed).fit(some).cluster_centers_
        if len(some) < len(x):
            centres = KMeans(n_clusters, init=centres, n_init=1).fit(x).cluster_centers_
    return centres
