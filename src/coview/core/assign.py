"""Assignment: from score variables to clusters, for training rows and for any others.

An assigner is a frozen value; its `fit` learns from training scores and returns an `Assignment` that labels any rows.
Clusters are numbered by decreasing size in the training rows. Flipping the sign of an eigenvector flips a column of
the scores and changes no cluster, but for scores that are exactly zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from coview.errors import InputError
from coview.registry import ASSIGNERS
from coview.rows import divide_rows, l2_normalize, largest_in_rows, squared_norms
from coview.state import PARAMETER, FloatArray, Range
from coview.views import Array

Labels = NDArray[np.int64]
Learnt = TypeVar("Learnt", "CodeWords", "Centres")

# Decisions are taken on numbers rounded far above rounding error and far below anything meaningful, so that a tie in
# exact arithmetic is a tie here too, and a row gets the same label alone and in any batch.
DECIMALS: Mapping[Any, int] = {np.float64: 9, np.float32: 6}
_START_ROWS = 1000


class Assigner(ABC):
    """How clusters are read from scores."""

    reads_signs: ClassVar[bool] = False  # a score near zero then needs all its digits

    @abstractmethod
    def fit(self, scores: Array, n_clusters: int, rng: np.random.Generator, decimals: int = 9) -> Assignment:
        """Learn clusters from the training scores (samples, components), which are good to this many decimals."""


class Assignment(ABC):
    """Learnt clusters."""

    @property
    @abstractmethod
    def n_found(self) -> int:
        """How many clusters there are; fewer than asked for when the scores do not hold that many."""

    @abstractmethod
    def assign(self, scores: Array) -> Labels:
        """Return the cluster of each row."""


@dataclass(frozen=True)
class Codebook(Assigner):
    """The paper's rule: the most frequent sign patterns of the scores are the code words, and the nearest one wins.

    Nearest is by Hamming distance. The paper leaves two ties open, which for ten clusters concern a fifth of the
    samples; both are decided by the scores themselves: among equally frequent patterns, the one whose members have
    the larger total score length enters the codebook; among equally near code words, the one whose members' mean
    direction is nearest wins.
    """

    reads_signs = True

    def fit(self, scores: Array, n_clusters: int, rng: np.random.Generator, decimals: int = 9) -> CodeWords:
        directions = l2_normalize(scores)
        patterns, member, counts = np.unique(_signs(scores), axis=0, return_inverse=True, return_counts=True)
        member = member.ravel()
        norms = np.bincount(member, weights=_norms(scores))
        frequent = np.lexsort((-_rounded(norms / (norms.max() or 1.0), decimals), -counts))[:n_clusters]
        sums = np.zeros(patterns.shape)
        np.add.at(sums, member, directions)
        return _by_size(CodeWords(patterns[frequent], l2_normalize(sums[frequent]), decimals), scores)


@dataclass(frozen=True)
class CodeWords(Assignment):
    """A codebook: its sign patterns (clusters, components) and the mean direction of each one's members."""

    words: Annotated[Array, FloatArray("_clusters", "components")]
    centres: Annotated[Array, FloatArray("_clusters", "components")]
    decimals: Annotated[int, Range(0, 15)]

    @property
    def n_found(self) -> int:
        return len(self.words)

    def assign(self, scores: Array) -> Labels:
        matches = _signs(scores) @ self.words.T  # components - 2 × Hamming distance, exact in small integers
        nearness = _rounded(l2_normalize(scores) @ self.centres.T, self.decimals)
        nearness[matches < matches.max(axis=1, keepdims=True)] = -np.inf
        labels: Labels = nearness.argmax(axis=1)
        return labels


@dataclass(frozen=True)
class Directions(Assigner):
    """k-means on the directions of the scores, that is on rows scaled to length 1.

    Samples of one cluster lie on one ray from the origin, near it or far out; the direction is what they share.
    The starts are drawn by sample number, so where clusters overlap the order of the samples can play a part.

    Parameters
    ----------
    n_init : int
        Number of k-means starts. Above 1000 samples they run on 1000 drawn at random, and the best goes on with all.
    """

    n_init: int = 10

    def __post_init__(self) -> None:
        if not (isinstance(self.n_init, Integral) and self.n_init >= 1):
            raise InputError(f"Directions(n_init={self.n_init!r}): n_init must be a whole number of at least 1")

    def fit(self, scores: Array, n_clusters: int, rng: np.random.Generator, decimals: int = 9) -> Centres:
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        directions = l2_normalize(scores)
        distinct = np.unique(_rounded(directions[: 4 * n_clusters], decimals), axis=0)  # the first mostly settle it
        if len(distinct) <= n_clusters:
            distinct = np.unique(_rounded(directions, decimals), axis=0)
        if len(distinct) <= n_clusters:
            return _by_size(Centres(distinct, decimals), scores)
        some = directions
        if len(directions) > _START_ROWS:
            some = directions[rng.choice(len(directions), _START_ROWS, replace=False)]
        seed = int(rng.integers(2**31))
        # One thread: tables of a few columns are too small to share out, and sums come out in one order.
        with threadpool_limits(1):
            centres = KMeans(n_clusters, n_init=self.n_init, random_state=seed).fit(some).cluster_centers_
            if some is not directions:
                centres = KMeans(n_clusters, init=centres, n_init=1).fit(directions).cluster_centers_
        return _by_size(Centres(centres, decimals), scores)


@dataclass(frozen=True)
class Centres(Assignment):
    """Mean directions (clusters, components); the nearest one wins."""

    centres: Annotated[Array, FloatArray("_clusters", "components")]
    decimals: Annotated[int, Range(0, 15)]

    @property
    def n_found(self) -> int:
        return len(self.centres)

    def assign(self, scores: Array) -> Labels:
        nearness = l2_normalize(scores) @ self.centres.T - np.square(self.centres).sum(axis=1) / 2
        labels: Labels = _rounded(nearness, self.decimals).argmax(axis=1)
        return labels


@dataclass(frozen=True)
class Deferred:
    """An assigner and all it needs but the scores, for clusters that most never ask for."""

    assigner: Annotated[Assigner, PARAMETER]
    n_clusters: Annotated[int, Range(least=1)]
    decimals: Annotated[int, Range(0, 15)]
    seed: Annotated[int, Range(least=0)]

    def fit(self, scores: Array) -> Assignment:
        """Learn clusters from these training scores; the same scores give the same clusters at any time."""
        return self.assigner.fit(scores, self.n_clusters, np.random.default_rng(self.seed), self.decimals)


def as_assigner(assigner: Any) -> Assigner:
    """Return the assigner, or the one of this name."""
    if isinstance(assigner, Assigner):
        return assigner
    if isinstance(assigner, str) and assigner in ASSIGNERS:
        found: Assigner = ASSIGNERS[assigner]()
        return found
    raise InputError(
        f"assigner={assigner!r} is unknown; use one of {', '.join(ASSIGNERS)}, or a value such as Codebook()"
    )


def _norms(scores: Array) -> Array:
    largest = largest_in_rows(scores)  # divided out first: squares of extreme scores overflow
    norms: Array = largest * np.sqrt(squared_norms(divide_rows(scores, largest)))
    return norms


def _signs(scores: Array) -> Array:
    return np.where(scores >= 0, 1.0, -1.0)


def _rounded(x: Array, decimals: int) -> Array:
    return np.round(x, decimals) + 0.0  # + 0.0 makes -0.0 and 0.0 one number


def number_by_size(labels: Array) -> tuple[Labels, Labels]:
    """Return labels 0, 1, … by decreasing cluster size, and the old label of each new one; equal sizes keep order."""
    old, labels, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    new = np.empty(len(order), dtype=np.int64)
    new[order] = np.arange(len(order))
    return new[labels.ravel()], old[order]


def _by_size(assignment: Learnt, scores: Array) -> Learnt:
    """Number the clusters by decreasing size among these rows, without the empty ones."""
    counts = np.bincount(assignment.assign(scores), minlength=assignment.n_found)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    arrays: dict[str, Any] = {
        name: value[order] for name, value in vars(assignment).items() if isinstance(value, np.ndarray)
    }
    return replace(assignment, **arrays)
