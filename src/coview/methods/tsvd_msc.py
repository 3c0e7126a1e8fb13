"""TSVDMSC: multi-view subspace clustering with the self-representations of all views as one low-rank tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from coview.base.parameters import check_above, check_boolean
from coview.base.progress import Progress
from coview.base.runtime import Workers, require_memory
from coview.core.alternate import Alternation, alternate
from coview.core.assign import Directions
from coview.core.eigen import Problem, top_eigenpairs
from coview.core.linalg import coordinates
from coview.core.tiles import SymmetricTiles
from coview.data.as_views import Layout
from coview.data.rows import l2_normalize
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.methods.tsvd_msc_tensor import shrink
from coview.model.clusterer import Clusterer
from coview.model.fitting import (
    Seed,
    as_generator,
    check_iteration_limits,
    model_of_labels,
    note_on_convergence,
    objective_of,
)
from coview.model.model import Model

_FIRST_PENALTY, _LAST_PENALTY = 1e-4, 1e11
_BLOCK = 256  # columns, or features, at a time


class Dictionary:
    """One view's samples as the columns of a matrix A that has at most as many rows as samples.

    The method depends on a view only through inner products of its samples. So a view with more features than samples
    is replaced by coordinates in the space that its samples span.
    """

    def __init__(self, samples: Matrix) -> None:
        along = coordinates(samples)
        self.columns: Array = along.T
        self._features: Matrix = None
        if samples.shape[1] > samples.shape[0]:
            self._features = samples.T.tocsr() if sp.issparse(samples) else samples.T
            squares = np.square(along).sum(axis=0)
            self._lift = along / np.where(squares > 0, squares, 1.0)
        # Both penalties are equal, so this matrix is the same in all iterations.
        self._factor = scipy.linalg.cho_factor(np.eye(len(self.columns)) + self.columns @ self.columns.T)

    def solve(self, right: Array) -> Array:
        """Return (I + A Aᵀ)⁻¹ times a matrix."""
        return scipy.linalg.cho_solve(self._factor, right)

    def largest_row(self, rest: Array) -> float:
        """Return the largest absolute row sum of this matrix in the features of the view."""
        if self._features is None:
            return largest_row(rest)
        rest = self._lift @ rest
        starts = range(0, self._features.shape[0], _BLOCK)
        return max(largest_row(self._features[a : a + _BLOCK] @ rest) for a in starts)


def largest_row(x: Array) -> float:
    """Return the largest absolute row sum, the matrix norm of the authors' stopping rule."""
    return float(np.abs(x).sum(axis=1).max())


@dataclass
class Unknowns:
    """The variables of the augmented Lagrangian, updated in place: three tensors (views, n, n) and small matrices.

    Multipliers are stored divided by the penalty. The penalty doubles in every iteration, so they are halved exactly.
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

    The form Q + Aᵀ(I + A Aᵀ)⁻¹(P - A Q) inverts the smaller of the two matrices, and also gives
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
    """Return the stacked blocks with column norms reduced by the threshold, at most to zero, and their sum."""
    lengths = np.sqrt(sum(np.square(block).sum(axis=0) for block in blocks))
    shorter = np.maximum(lengths - threshold, 0.0)
    return [block * (shorter / np.where(lengths > 0, lengths, 1.0)) for block in blocks], float(shorter.sum())


def admm_iteration(
    dictionaries: Sequence[Dictionary], error_weight: float, now: Unknowns, workers: Workers
) -> tuple[Unknowns, float]:
    """Return the unknowns and the objective after one iteration of ADMM."""
    total_error = 0.0
    for v, dictionary in enumerate(dictionaries):
        represent(v, dictionary, now, workers)
        # The norm of a sample's error covers all views, so the update of one view changes the errors of all.
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
    """Return the self-representations of the samples of every view, L2-normalised rows (n, features)."""
    dictionaries = [Dictionary(x) for x in samples]
    unknowns = Unknowns.at_zero(dictionaries)
    return alternate(
        lambda now: admm_iteration(dictionaries, error_weight, now, workers),
        unknowns,
        max_iter=max_iter,
        settled=lambda _: max(unknowns.violations) < tol,
    )


def normalised(graph: Array, workers: Workers) -> SymmetricTiles:
    """Return D^(-1/2) S D^(-1/2), where D holds the degrees of S."""
    degree = graph.sum(axis=1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, np.inf))
    tiles = SymmetricTiles(len(graph), np.float64, workers)

    def fill(t: int, rows: slice, columns: slice) -> None:
        tiles.tiles[t][...] = graph[rows, columns] * scale[rows, None] * scale[columns]

    tiles.for_each(fill)
    return tiles


class TSVDMSC(Clusterer):
    """Cluster by self-representations of the samples, which form a low-rank tensor over all views.

    With X_v the samples of view v as L2-normalised columns, the method minimises

        error_weight ‖E‖₂,₁ + ‖Z‖    subject to X_v = X_v Z_v + E_v for every view v,

    where ‖E‖₂,₁ is the sum over samples of the norm of their errors in all views, and ‖Z‖ is the t-SVD nuclear norm of
    the representations Z_v (n, n): the mean nuclear norm of the slices of their Fourier transform. Labels come from
    spectral clustering of Σ_v |Z_v| + |Z_v|ᵀ. Memory is 3 V + 4 matrices of n² numbers, and about ten of n min(d_v, n)
    for each view; an iteration costs O(n² Σ_v min(d_v, n) + V n² (log n + V)), and about thirty are needed.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    error_weight : float
        λ, the weight of errors against the rank of the representations.
    shuffle : bool
        Put the samples into a random order first. The Fourier transform runs along the samples, so the result depends
        on their order, and samples sorted by class would reveal their classes. False keeps the given order.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    max_iter, tol : int, float
        Stop after max_iter iterations, or if the largest absolute row sum of the constraint violations is below tol.
    n_jobs : int, optional
        Number of threads: -1 for all processors; by default as many as BLAS may use. Labels do not depend on it.
    random_state : int, Generator, RandomState or None
        Seed of the order and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.
    affinity_ : array of shape (n_samples, n_samples)
        Σ_v |Z_v| + |Z_v|ᵀ.
    objective_, n_iter_ : array of shape (n_iter_,), int
        Objective after each iteration, and number of iterations. The objective is not monotone, because the constraints
        hold only at the end.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    TMvKSCR : One latent space for all views, with labels of new samples.

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

    objective_: Array
    n_iter_: int
    affinity_: Array

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        error_weight: float = 0.2,
        shuffle: bool = True,
        views: Layout = None,
        max_iter: int = 200,
        tol: float = 1e-7,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.error_weight = error_weight
        self.shuffle = shuffle
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_model(self, views: Views, report: Progress) -> Model:
        check_iteration_limits(self)
        check_above("error_weight", self.error_weight, 0)
        check_boolean("shuffle", self.shuffle)
        n, k, rng = views.n_samples, int(self.n_clusters), as_generator(self.random_state)
        widths = [min(d, n) for d in views.n_features.values()]
        require_memory(
            8 * n * (n * (3 * len(views) + 4) + 10 * sum(widths)),
            f"representing {n} samples by one another in {len(views)} views",
            "use fewer samples, or train another method on some of them, as in FixedSize(TMvKSCR(…), n_train=5000)",
        )
        order = rng.permutation(n) if self.shuffle else np.arange(n)
        samples = [l2_normalize(x[order]) for x in views.values()]
        with Workers(self.n_jobs) as workers:
            loop = self_representations(
                samples, self.error_weight, max_iter=self.max_iter, tol=self.tol, workers=workers
            )
            total, back = np.zeros((n, n)), np.argsort(order)
            for z in loop.state.representation:
                total += np.abs(z)
            affinity = (total + total.T)[np.ix_(back, back)]
            pairs = top_eigenpairs(Problem.of(normalised(affinity, workers)), k)
        labels = Directions().fit(pairs.vectors, k, rng).assign(pairs.vectors)
        learnt = {**objective_of(loop), "affinity_": affinity}
        return model_of_labels(labels, k, learnt, *pairs.notes, *note_on_convergence(self, loop))
