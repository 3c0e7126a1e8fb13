"""TSVDMSC: multi-view subspace clustering with the views' self-representations as one low-rank tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from coview.core.alternate import Alternation, alternate
from coview.core.assign import Directions
from coview.core.eigen import Problem, top_eigenpairs
from coview.core.linalg import coordinates
from coview.core.tiles import SymmetricTiles
from coview.errors import InputError
from coview.methods.base import MultiViewClusterer
from coview.methods.tsvd_msc_tensor import shrink
from coview.rows import l2_normalize
from coview.runtime import Workers, require_memory
from coview.views import Array, Matrix

_FIRST_PENALTY, _LAST_PENALTY = 1e-4, 1e11
_BLOCK = 256  # columns, or features, at a time


class Dictionary:
    """One view's samples as the columns of a matrix A that has at most as many rows as samples.

    All that the method does to a view happens in the space that its samples span, and looks at lengths. So a view with
    more features than samples is replaced by coordinates in that space.
    """

    def __init__(self, samples: Matrix) -> None:
        along = coordinates(samples)
        self.columns: Array = along.T
        self._features: Matrix = None
        if samples.shape[1] > samples.shape[0]:
            self._features = samples.T.tocsr() if sp.issparse(samples) else samples.T
            squares = np.square(along).sum(axis=0)
            self._lift = along / np.where(squares > 0, squares, 1.0)
        # Both penalties are one number, so this matrix is the same in all rounds.
        self._factor = scipy.linalg.cho_factor(np.eye(len(self.columns)) + self.columns @ self.columns.T)

    def solve(self, right: Array) -> Array:
        """Return (I + A Aᵀ)⁻¹ times this."""
        solution: Array = scipy.linalg.cho_solve(self._factor, right)
        return solution

    def largest_row(self, rest: Array) -> float:
        """Return the largest row of this matrix, as a sum of sizes, in the features of the view."""
        if self._features is None:
            return largest_row(rest)
        rest = self._lift @ rest
        starts = range(0, self._features.shape[0], _BLOCK)
        return max(largest_row(self._features[a : a + _BLOCK] @ rest) for a in starts)


def largest_row(x: Array) -> float:
    """Return the matrix norm that the authors' stopping rule uses: the largest row, as a sum of sizes."""
    return float(np.abs(x).sum(axis=1).max())


@dataclass
class Unknowns:
    """The variables of the augmented Lagrangian, updated in place: three tensors (views, n, n) and small matrices.

    Multipliers are kept divided by the penalty, which doubles every round: so they halve, without rounding.
    """

    representation: Array  # Z
    low_rank: Array  # G, equal to Z in the end
    tensor_multiplier: Array  # W / penalty
    error: list[Array]  # E_v
    missing: list[Array]  # X_v - X_v Z_v, equal to E_v in the end
    multiplier: list[Array]  # Y_v / penalty
    penalty: float = _FIRST_PENALTY
    violations: tuple[float, float] = (np.inf, np.inf)  # of X_v = X_v Z_v + E_v, and of Z = G

    @classmethod
    def at_zero(cls, dictionaries: Sequence[Dictionary]) -> Unknowns:
        n = dictionaries[0].columns.shape[1]
        z, g, w = np.zeros((3, len(dictionaries), n, n))
        columns = [one.columns for one in dictionaries]
        return cls(z, g, w, [np.zeros_like(x) for x in columns], columns, [np.zeros_like(x) for x in columns])


def represent(v: int, dictionary: Dictionary, now: Unknowns, workers: Workers) -> None:
    """Update Z_v = (I + AᵀA)⁻¹ (Aᵀ P + Q), with P = A - E_v + Y_v and Q = G_v - W_v.

    Written as Q + Aᵀ(I + A Aᵀ)⁻¹(P - A Q), which inverts the smaller of the two matrices and, in passing, gives
    A Z_v = P - (I + A Aᵀ)⁻¹(P - A Q).
    """
    a, missing = dictionary.columns, np.empty_like(dictionary.columns)

    def update(block: slice) -> None:
        wanted = a[:, block] - now.error[v][:, block] + now.multiplier[v][:, block]
        target = now.low_rank[v][:, block] - now.tensor_multiplier[v][:, block]
        solved = dictionary.solve(wanted - a @ target)
        now.representation[v][:, block] = target + a.T @ solved
        missing[:, block] = a[:, block] - wanted + solved

    workers.map(update, [slice(start, start + _BLOCK) for start in range(0, a.shape[1], _BLOCK)])
    now.missing[v] = missing


def shrink_columns(blocks: Sequence[Array], threshold: float) -> tuple[list[Array], float]:
    """Shorten the columns of the stacked blocks by the threshold, at most to zero; return also their total length."""
    lengths = np.sqrt(sum(np.square(block).sum(axis=0) for block in blocks))
    shorter = np.maximum(lengths - threshold, 0.0)
    return [block * (shorter / np.where(lengths > 0, lengths, 1.0)) for block in blocks], float(shorter.sum())


def admm_round(
    dictionaries: Sequence[Dictionary], error_weight: float, now: Unknowns, workers: Workers
) -> tuple[Unknowns, float]:
    """One round of the alternating direction method of multipliers; returns the unknowns and the objective."""
    total_error = 0.0
    for v, dictionary in enumerate(dictionaries):
        represent(v, dictionary, now, workers)
        # All views share the length of a sample's error, so every view's error changes when one is represented anew.
        unexplained = [missing + y for missing, y in zip(now.missing, now.multiplier, strict=True)]
        now.error, total_error = shrink_columns(unexplained, error_weight / now.penalty)
        now.multiplier[v] = unexplained[v] - now.error[v]
    tensor = now.tensor_multiplier
    tensor += now.representation
    nuclear_norm = shrink(tensor, 1 / now.penalty, now.low_rank, workers)
    tensor -= now.low_rank

    data = zip(dictionaries, now.missing, now.error, strict=True)
    tensors = zip(now.representation, now.low_rank, strict=True)
    now.violations = max(d.largest_row(m - e) for d, m, e in data), max(largest_row(z - g) for z, g in tensors)
    growth = min(2.0, _LAST_PENALTY / now.penalty)
    now.penalty *= growth
    now.tensor_multiplier /= growth
    now.multiplier = [y / growth for y in now.multiplier]
    return now, error_weight * total_error + nuclear_norm


def self_representations(
    samples: Sequence[Matrix], error_weight: float, *, max_iter: int, tol: float, workers: Workers
) -> Alternation[Unknowns]:
    """Represent the samples of every view (n, features), of length 1, by one another."""
    dictionaries = [Dictionary(x) for x in samples]
    unknowns = Unknowns.at_zero(dictionaries)
    return alternate(
        lambda now: admm_round(dictionaries, error_weight, now, workers),
        unknowns,
        max_iter=max_iter,
        settled=lambda _: max(unknowns.violations) < tol,
    )


def affinity(representation: Array) -> Array:
    """Return Σ_v |Z_v| + |Z_v|ᵀ."""
    total = np.zeros(representation.shape[1:])
    for z in representation:
        total += np.abs(z)
    symmetric: Array = total + total.T
    return symmetric


def normalised(graph: Array, workers: Workers) -> SymmetricTiles:
    """Return D^(-1/2) S D^(-1/2), where D holds the degrees of S."""
    degree = graph.sum(axis=1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, np.inf))
    tiles = SymmetricTiles(len(graph), np.float64, workers)

    def fill(t: int, rows: slice, columns: slice) -> None:
        tiles.tiles[t][...] = graph[rows, columns] * scale[rows, None] * scale[columns]

    tiles.for_each(fill)
    return tiles


class TSVDMSC(MultiViewClusterer):
    """Cluster by how the samples represent one another, with the representations of all views one low-rank tensor.

    With X_v the samples of view v as columns of length 1, it minimises

        error_weight ‖E‖₂,₁ + ‖Z‖    subject to X_v = X_v Z_v + E_v for every view v,

    where ‖E‖₂,₁ adds up the lengths of the samples' errors, over all views together, and ‖Z‖ is the t-SVD nuclear norm
    of the representations Z_v (n, n): the nuclear norms of the slices of their Fourier transform, averaged. Labels come
    from spectral clustering of Σ_v |Z_v| + |Z_v|ᵀ. Memory is 3 V + 4 matrices of n² numbers, and some ten of
    n min(d_v, n) for each view; a round costs O(n² Σ_v min(d_v, n) + V n² (log n + V)), and there are some thirty.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    error_weight : float
        λ: how much an error costs, beside the rank of the representations.
    shuffle : bool
        Work on the samples in a random order. The transform runs along the samples as if along time, so the answer
        depends on their order, and samples sorted by class would give their classes away. False takes them as they are.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.
    max_iter, tol : int, float
        Stop after so many rounds, or when no row of the constraints is violated by this much, as a sum of sizes.
    n_jobs : int, optional
        Number of threads: -1 for all processors; by default as many as BLAS may use. Labels do not depend on it.
    random_state : int, Generator, RandomState or None
        Source of randomness of the order and of k-means.

    Attributes
    ----------
    labels_ : (n_samples,) clusters, numbered by decreasing size
    affinity_ : (n_samples, n_samples), Σ_v |Z_v| + |Z_v|ᵀ
    objective_ : (n_iter_,) after each round; it starts at 0, with the constraints unmet, and rises and falls
    n_iter_ : number of rounds
    view_names_, view_n_features_, n_features_in_, feature_names_in_

    References
    ----------
    Xie, Tao, Zhang, Liu, Zhang, Qu: On unifying multi-view self-representations for clustering by tensor multi-rank
    minimization, IJCV 2018.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = TSVDMSC(n_clusters=3, random_state=0).fit({"text": text, "image": image})
    >>> np.bincount(model.labels_)
    array([20, 20, 20])
    """

    affinity_: Array

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        error_weight: float = 0.2,
        shuffle: bool = True,
        views: Any = None,
        max_iter: int = 200,
        tol: float = 1e-7,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.error_weight = error_weight
        self.shuffle = shuffle
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        self._check_loop()
        if not (isinstance(self.error_weight, Real) and 0 < self.error_weight < np.inf):
            raise InputError(f"error_weight={self.error_weight!r} must be a positive number")
        n, rng = views.n_samples, self._generator()
        widths = [min(d, n) for d in views.n_features.values()]
        require_memory(
            8 * n * (n * (3 * len(views) + 4) + 10 * sum(widths)),
            f"representing {n} samples by one another in {len(views)} views",
            "take a part of the samples, or a method whose memory does not grow with the views, such as TMvKSCR",
        )
        order = rng.permutation(n) if self.shuffle else np.arange(n)
        samples = [l2_normalize(x[order]) for x in views.values()]
        with Workers(self.n_jobs) as workers:
            loop = self_representations(
                samples, self.error_weight, max_iter=self.max_iter, tol=self.tol, workers=workers
            )
            back = np.argsort(order)
            self.affinity_ = affinity(loop.state.representation)[np.ix_(back, back)]
            matrix = normalised(self.affinity_, workers)
            problem = Problem(matrix, exponent=0, trace=float(matrix.diagonal().sum()))
            vectors = top_eigenpairs(problem, self.n_clusters).vectors
        self._keep_loop(loop)
        self._keep_labels(Directions().fit(vectors, self.n_clusters, rng).assign(vectors))
