"""Assignment of samples to clusters, from their score variables.

An assigner is a frozen value; its `fit` learns from training scores and returns an `Assignment` that labels any rows.
Clusters are numbered by decreasing size among the training rows. The signs of the eigenvectors, which flip columns of
the scores, do not change the clusters, except for scores that are exactly zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from coview.base.parameters import check_integer
from coview.base.runtime import one_sklearn_thread
from coview.data.rows import l2_normalize, l2_norms, squared_norms
from coview.data.view import Array
from coview.registry import ASSIGNERS, as_instance

Labels = NDArray[np.int64]
Learnt = TypeVar("Learnt", bound="Assignment")

# Numbers are rounded before they are compared, to far fewer digits than the rounding error affects. A tie in exact
# arithmetic is then a tie here as well, and a row gets the same label alone and in any batch.
DECIMALS: Mapping[Any, int] = {np.float64: 9, np.float32: 6}
_START_ROWS = 1000


class Assigner(ABC):
    """A rule that learns clusters from scores."""

    reads_signs: ClassVar[bool] = False  # scores near zero then need all their digits

    @abstractmethod
    def fit(self, scores: Array, n_clusters: int, rng: np.random.Generator, decimals: int = 9) -> Assignment:
        """Return the clusters of training scores (n_samples, n_components) with this number of reliable decimals."""


@dataclass(frozen=True)
class Assignment(ABC):
    """Learnt clusters, with centres of shape (n_clusters, n_components)."""

    centres: Array
    decimals: int

    # If the nearness of a sample to its cluster is larger by this than to all others, its membership is about 1 / 2 for
    # any number k of clusters: (k + 1) / 2k. The values are those with calibrated memberships: see docs/certainty.md.
    undecided: ClassVar[float]

    @property
    def n_found(self) -> int:
        """Number of clusters; less than requested if the scores do not have that many."""
        return len(self.centres)

    @abstractmethod
    def nearness(self, scores: Array) -> Array:
        """Return how near each row of scores is to each cluster, (n_samples, n_clusters), rounded to the decimals.

        The largest value of a row, the first of several, is that of its cluster.
        """

    def assign(self, scores: Array) -> Labels:
        """Return the cluster of each row of scores (n_samples, n_components)."""
        return self.nearness(scores).argmax(axis=1)

    @property
    def temperature(self) -> float:
        """The difference of nearness by which the ratio of two memberships changes by the factor e."""
        return self.undecided / float(np.log1p(self.n_found))

    def softmax(self, nearness: Array) -> Array:
        """Return the memberships for these values of nearness, in the same memory.

        Rows sum to 1. The largest value of a row, the first of several, is that of its cluster: the largest exponential
        is exactly 1, and values of nearness that differ do so by far more than rounding errors.
        """
        nearness -= nearness.max(axis=1, keepdims=True)
        nearness /= self.temperature
        membership: Array = np.exp(nearness, out=nearness)
        membership /= membership.sum(axis=1, keepdims=True)
        return membership

    def is_certain(self, nearness: Array, scores: Array, errors: Array) -> Array:
        """Return which rows keep their cluster if their scores change by at most this much (L2 norm), (n_samples,).

        The nearness is that of the scores. If |e - e'| <= error < |e|, the sine of the angle between e and e' is at
        most error / |e|, and the distance between their directions at most √2 error / |e|. It is never larger than 2.
        """
        if self.n_found < 2:
            return np.logical_and.reduce(np.isfinite(scores), axis=1)
        second, first = np.partition(nearness, self.n_found - 2, axis=1)[:, -2:].T
        with np.errstate(over="ignore"):
            norms = np.sqrt(squared_norms(scores))
        moved = np.full(len(scores), 2.0)
        np.divide(np.sqrt(2) * errors, norms, out=moved, where=(errors < norms) & (norms < np.inf))
        certain: Array = first - second > self._largest_change(scores, errors, moved) + 3 * 10.0**-self.decimals
        return certain

    @abstractmethod
    def _largest_change(self, scores: Array, errors: Array, moved: Array) -> Array:
        """Return how much a difference of two values of nearness, before rounding, can change by these errors.

        `moved` is the largest distance between the directions of the scores before and after the change.
        """

    @property
    def _diameter(self) -> float:
        """The largest distance between two centres."""
        from scipy.spatial.distance import pdist

        return float(pdist(self.centres).max())


@dataclass(frozen=True)
class Codebook(Assigner):
    """Assign each sample to the nearest code word; the code words are the most frequent sign patterns of the scores.

    This is the rule of the paper, with the Hamming distance. The paper does not define how to break ties, which for ten
    clusters affect a fifth of the samples. Here, among equally frequent patterns, the one with the larger sum of score
    norms enters the codebook. Among equally near code words, the one with the nearest mean direction is assigned.

    See Also
    --------
    Directions : k-means on score directions, the default.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[2.0], [1.0], [-3.0], [1.5]])
    >>> Codebook().fit(scores, 2, np.random.default_rng(0)).assign(scores).tolist()
    [0, 0, 1, 0]
    """

    reads_signs = True

    def fit(self, scores: Array, n_clusters: int, rng: np.random.Generator, decimals: int = 9) -> CodeWords:
        directions = l2_normalize(scores)
        patterns, member, counts = np.unique(_signs(scores), axis=0, return_inverse=True, return_counts=True)
        member = member.ravel()
        norms = np.bincount(member, weights=l2_norms(scores))
        frequent = np.lexsort((-_round_ties(norms / (norms.max() or 1.0), decimals), -counts))[:n_clusters]
        sums = np.zeros(patterns.shape)
        np.add.at(sums, member, directions)
        return _by_size(CodeWords(l2_normalize(sums[frequent]), decimals, patterns[frequent]), scores)


@dataclass(frozen=True)
class CodeWords(Assignment):
    """A codebook: sign patterns of shape (n_clusters, n_components); the centres are mean directions of members."""

    words: Array

    undecided = 0.5

    def nearness(self, scores: Array) -> Array:
        """Return the agreement of signs, from -1 to 1, plus a smaller number by which the direction breaks ties."""
        matches = _signs(scores) @ self.words.T  # components - 2 × Hamming distance, exact in small integers
        cosines = _round_ties(l2_normalize(scores) @ self.centres.T, self.decimals)
        # Two different numbers of matches differ by 2 at least, and half the cosines by 1 at most.
        return (matches + cosines / 2) / self.words.shape[1]

    def _largest_change(self, scores: Array, errors: Array, moved: Array) -> Array:
        # A sign that changes adds 2 to the matches of one word and subtracts 2 from those of another.
        n_signs = np.count_nonzero(np.abs(scores) <= errors[:, None], axis=1)
        change: Array = (4 * n_signs + self._diameter * moved / 2) / self.words.shape[1]
        return change


@dataclass(frozen=True)
class Directions(Assigner):
    """k-means on the directions of the scores, that is, on L2-normalised rows.

    The samples of one cluster lie on one ray from the origin, so they have the same direction at any distance. Initial
    centres are drawn by row number, so the order of the samples can affect the labels if clusters overlap.

    Parameters
    ----------
    n_init : int
        Number of initialisations of k-means. Above 1000 samples they run on 1000 samples drawn at random, and the best
        result is the initialisation for all samples.

    See Also
    --------
    Codebook : The rule of the paper.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[2.0, 0.1], [1.0, 0.0], [0.1, 3.0], [4.0, 0.2]])
    >>> Directions().fit(scores, 2, np.random.default_rng(0)).assign(scores).tolist()
    [0, 0, 1, 0]
    """

    n_init: int = 10

    def __post_init__(self) -> None:
        check_integer("Directions.n_init", self.n_init, least=1)

    def fit(self, scores: Array, n_clusters: int, rng: np.random.Generator, decimals: int = 9) -> Centres:
        from sklearn.cluster import KMeans

        directions = l2_normalize(scores)
        for rows in (directions[: 4 * n_clusters], directions):  # the first rows mostly suffice
            distinct = np.unique(_round_ties(rows, decimals), axis=0)
            if len(distinct) > n_clusters:
                break
        else:
            return _by_size(Centres(distinct, decimals), scores)
        some = directions
        if len(directions) > _START_ROWS:
            some = directions[rng.choice(len(directions), _START_ROWS, replace=False)]
        seed = int(rng.integers(2**31))
        # One thread: arrays of a few columns are too small for more, and sums then have a fixed order.
        starts = iter(initial_rows(some, n_clusters, self.n_init, seed))
        with one_sklearn_thread():
            drawn = KMeans(n_clusters, init=lambda x, k, random_state: x[next(starts)], n_init=self.n_init)
            centres = drawn.fit(some).cluster_centers_
            if some is not directions:
                centres = KMeans(n_clusters, init=centres, n_init=1).fit(directions).cluster_centers_
        return _by_size(Centres(centres, decimals), scores)


@dataclass(frozen=True)
class Centres(Assignment):
    """Centres of k-means; the nearest one is assigned."""

    undecided = 0.4

    def nearness(self, scores: Array) -> Array:
        nearness = l2_normalize(scores) @ self.centres.T - squared_norms(self.centres) / 2
        return _round_ties(nearness, self.decimals)

    def _largest_change(self, scores: Array, errors: Array, moved: Array) -> Array:
        return self._diameter * moved


@dataclass(frozen=True)
class Deferred:
    """An assigner with all of its arguments except the scores, for clusters that are learnt on demand."""

    assigner: Assigner
    n_clusters: int
    decimals: int
    seed: int

    def fit(self, scores: Array) -> Assignment:
        """Return the clusters of these training scores; equal scores give equal clusters."""
        return self.assigner.fit(scores, self.n_clusters, np.random.default_rng(self.seed), self.decimals)


def as_assigner(assigner: Any) -> Assigner:
    """Return the assigner, or the assigner of this name with default parameters."""
    return as_instance("assigner", assigner, Assigner, ASSIGNERS, "Codebook()")


def _signs(scores: Array) -> Array:
    return np.where(scores >= 0, 1.0, -1.0)


def _round_ties(x: Array, decimals: int) -> Array:
    return np.round(x, decimals) + 0.0  # + 0.0 turns -0.0 into 0.0


def label_and_tie(nearness: Array) -> Labels:
    """Return the nearest cluster of each row, the first of several, and 1 if there are several; (n_samples, 2)."""
    labels = nearness.argmax(axis=1)
    largest = np.take_along_axis(nearness, labels[:, None], axis=1)
    return np.column_stack([labels, np.count_nonzero(nearness == largest, axis=1) > 1])


def number_by_size(labels: Array) -> tuple[Labels, Labels]:
    """Return labels numbered by decreasing cluster size, and the old label of each new one; ties keep their order."""
    old, labels, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return np.argsort(order)[labels.ravel()], old[order]


def new_numbers(order: Labels, n_clusters: int) -> tuple[Labels, Labels]:
    """Return this order of clusters, followed by those that it does not name, and the new number of each cluster."""
    order = np.append(order, np.setdiff1d(np.arange(n_clusters), order))
    return order, np.argsort(order)


def _by_size(assignment: Learnt, scores: Array) -> Learnt:
    """Return the assignment with clusters numbered by decreasing size among these rows, without empty clusters."""
    return reordered(assignment, number_by_size(assignment.assign(scores))[1])


def reordered(assignment: Learnt, order: Labels) -> Learnt:
    """Return the assignment with these clusters, given by their numbers, in this order."""
    arrays: dict[str, Any] = {
        name: value[order] for name, value in vars(assignment).items() if isinstance(value, np.ndarray)
    }
    return replace(assignment, **arrays)


def initial_rows(x: Array, n_clusters: int, n_init: int, seed: int) -> NDArray[np.intp]:
    """Return the rows of x that greedy k-means++ draws as initial centres, of shape (n_init, n_clusters).

    These are the rows that `KMeans` of scikit-learn draws with this seed, up to rounding errors. All initialisations
    are drawn together, because each one takes many short calls on small arrays.
    """
    n, n_trials, norms = len(x), 2 + int(log(n_clusters)), squared_norms(x)
    uniform = np.random.RandomState(seed).random_sample((n_init, 1 + (n_clusters - 1) * n_trials))
    starts = np.arange(n_init)

    def squared_distances(rows: Array) -> Array:
        return np.maximum(norms[rows][..., None] - 2 * (x[rows] @ x.T) + norms, 0)

    drawn = np.empty((n_init, n_clusters), np.intp)
    drawn[:, 0] = uniform[:, 0] * n
    nearest = squared_distances(drawn[:, 0])
    for c in range(1, n_clusters):
        sums = nearest.cumsum(axis=1)
        draws = uniform[:, 1 + (c - 1) * n_trials : 1 + c * n_trials] * sums[:, -1:]
        trials = np.array([np.searchsorted(*pair) for pair in zip(sums, draws, strict=True)]).clip(max=n - 1)
        distances = np.minimum(nearest[:, None], squared_distances(trials))
        best = distances.sum(axis=2).argmin(axis=1)
        drawn[:, c], nearest = trials[starts, best], distances[starts, best]
    return drawn
