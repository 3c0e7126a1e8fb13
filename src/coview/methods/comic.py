"""COMIC: cross-view matching clustering, which finds the number of clusters itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.core.alternate import alternate
from coview.core.linalg import coordinates
from coview.errors import InputError
from coview.methods.base import MultiViewClusterer
from coview.methods.comic_graph import Numbers, linked_by_majority, mutual_edges, nearest, squared_lengths
from coview.rows import l2_normalize
from coview.runtime import Workers, require_memory
from coview.views import Array, Matrix, Views

_SMOOTHING = 1e-5  # what the authors add to the square of every coordinate of an edge
_SHORT = 1e-2  # per root of the number of features; shorter edges are taken for the longest, as in their program
_DENSE_UP_TO = 40  # samples
_QUIET_ROUNDS = 10


@dataclass(frozen=True)
class Graph:
    """What stays the same about a view: its samples, their neighbours, and the constants that follow from them."""

    samples: Array  # X, (n, coordinates)
    edges: Numbers  # (e, 2)
    weights: Array  # W of each edge
    reach: float  # ε, the length of a typical edge
    scale: float  # μ, the square of the longest
    norm: float  # ‖X‖₂

    def laplacian(self, agreement: Array) -> Matrix:
        """Return the Laplacian of W ∘ S², for S on the edges."""
        n, (i, j) = len(self.samples), self.edges.T
        flow = self.weights * agreement**2
        degree = np.bincount(i, flow, n) + np.bincount(j, flow, n)
        entries = np.concatenate([-flow, -flow, degree])
        places = np.concatenate([i, j, np.arange(n)]), np.concatenate([j, i, np.arange(n)])
        return sp.csc_array((entries, places), shape=(n, n))


def neighbour_graph(samples: Array, n_features: int, edges: Numbers, pair_rate: float) -> Graph:
    """Weigh the edges, the less the more neighbours their ends have, and measure their lengths.

    Parameters
    ----------
    samples : (n, coordinates), of length 1 in a view of n_features
    """
    i, j = edges.T
    degree = np.bincount(edges.ravel(), minlength=len(samples))
    weights = degree.mean() / np.sqrt(degree[i] * degree[j])
    lengths = np.sqrt(squared_lengths(edges, samples) + n_features * _SMOOTHING)
    longest = lengths.max()
    lengths[lengths < _SHORT * np.sqrt(n_features)] = longest
    shortest = np.sort(lengths)[: ceil(pair_rate * len(lengths))]
    norm = np.sqrt(max(0.0, np.linalg.eigvalsh(samples.T @ samples)[-1]))
    return Graph(samples, edges, weights, float(shortest.mean()), float(longest**2), float(norm))


def largest_eigenvalue(laplacian: Matrix) -> float:
    """Return the largest eigenvalue of a Laplacian, from the same start for all.

    The previous round's eigenvector would be a nearer start, and a trap: eigenvectors sit on few samples, and one that
    is no longer the largest would be found again.
    """
    from scipy.sparse.linalg import eigsh

    n = laplacian.shape[0]
    if n <= _DENSE_UP_TO:
        return float(np.linalg.eigvalsh(laplacian.toarray())[-1])
    start = np.random.default_rng(0).standard_normal(n)
    # A residual of 1e-6 leaves the eigenvalue, whose error is quadratic in it, with some ten digits.
    return float(eigsh(laplacian, k=1, which="LA", v0=start, tol=1e-6, return_eigenvectors=False)[0])


@dataclass(frozen=True)
class Matching:
    """The unknowns: every view's representation Z, its agreement S, and the strength λ of its graph.

    The agreement is kept on the pairs that are an edge in any view. All other pairs have one value in common, since
    no distance enters theirs: it is the last column.
    """

    representations: list[Array]
    lengths: list[Array]  # squared, of the edges in Z
    agreement: Array  # (views, pairs + 1)
    strengths: Array  # (views,)


class Matcher:
    """The alternating steps, for given graphs."""

    def __init__(self, graphs: Sequence[Graph], consistency: float) -> None:
        self.graphs = graphs
        self.consistency = consistency
        self.scales = np.array([graph.scale for graph in graphs])[:, None]
        n = len(graphs[0].samples)
        numbers = [graph.edges[:, 0] * n + graph.edges[:, 1] for graph in graphs]
        pairs = np.unique(np.concatenate(numbers))
        self.places = [np.searchsorted(pairs, number) for number in numbers]
        self.share = np.append(np.full(len(pairs), 2.0), n * n - 2.0 * len(pairs)) / n**2  # of all entries of S

    def start(self) -> Matching:
        """Return Z = X, and agreement on the edges only."""
        agreement = np.zeros((len(self.graphs), len(self.share)))
        strengths = []
        for own, places, graph in zip(agreement, self.places, self.graphs, strict=True):
            own[places] = 1.0
            strengths.append(graph.norm / largest_eigenvalue(graph.laplacian(own[places])))
        samples = [graph.samples for graph in self.graphs]
        return Matching(samples, self.lengths(samples), agreement, np.array(strengths))

    def round(self, now: Matching) -> tuple[Matching, float]:
        """Match the views, represent each anew, and return the objective too."""
        agreement = self.match(now)
        views = [self.represent(v, agreement, now) for v in range(len(self.graphs))]
        representations = [z for z, _ in views]
        strengths = np.array([strength for _, strength in views])
        new = Matching(representations, self.lengths(representations), agreement, strengths)
        return new, self.objective(new)

    def match(self, now: Matching) -> Array:
        """Update S: near 1 where the edge is short or the other views agree, from what they said in the last round."""
        others = now.agreement.sum(axis=0) - now.agreement
        tension = np.zeros_like(others)
        for v, graph in enumerate(self.graphs):
            tension[v, self.places[v]] = now.strengths[v] * graph.weights * now.lengths[v]
        agreement: Array = (self.consistency * others + self.scales) / (
            self.consistency * (len(others) - 1) + tension + self.scales
        )
        return agreement

    def represent(self, v: int, agreement: Array, now: Matching) -> tuple[Array, float]:
        """Update Z_v = (I + λ Laplacian)⁻¹ X_v, and then λ from that Laplacian."""
        from scipy.sparse.linalg import splu

        graph = self.graphs[v]
        laplacian = graph.laplacian(agreement[v, self.places[v]])
        system = sp.csc_array(sp.eye_array(laplacian.shape[0]) + now.strengths[v] * laplacian)
        # It is positive definite, so rows need not be exchanged and the order can be the one that fills in least.
        settings: Any = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        return splu(system, **settings).solve(graph.samples), graph.norm / largest_eigenvalue(laplacian)

    def lengths(self, representations: Sequence[Array]) -> list[Array]:
        """Return the squared lengths of all views' edges."""
        return [squared_lengths(g.edges, z) for g, z in zip(self.graphs, representations, strict=True)]

    def objective(self, now: Matching) -> float:
        """Return the objective, with means in place of sums over samples, pairs and views."""
        total, n = 0.0, len(self.graphs[0].samples)
        for v, graph in enumerate(self.graphs):
            moved = np.square(graph.samples - now.representations[v]).sum() / n
            stretched = 2 * (graph.weights * now.agreement[v, self.places[v]] ** 2) @ now.lengths[v] / n**2
            broken = self.share @ np.square(now.agreement[v] - 1)
            total += 0.5 * (moved + now.strengths[v] * (stretched + graph.scale * broken)) / len(self.graphs)
        apart = np.square(now.agreement - now.agreement.mean(axis=0)).sum(axis=0) * len(self.graphs)
        return float(total + 0.5 * self.consistency * self.share @ apart)


def at_rest(tol: float, trace: Sequence[float]) -> bool:
    """Whether the objective changed by no more than this in each of the last rounds.

    It falls at first and may rise slowly later, so one small change can be the turning point. (The authors' program
    looks at one change, after at least 100 rounds.)
    """
    return len(trace) > _QUIET_ROUNDS and bool((np.abs(np.diff(trace[-_QUIET_ROUNDS - 1 :])) <= tol).all())


class COMIC(MultiViewClusterer):
    """Cluster several views without being told how many clusters there are.

    With W_v the weighted neighbour graph of view v, samples x of length 1 and μ_v the square of its longest edge, it
    looks for representations z near the samples, and for graphs S_v on which the views agree:

        Σ_v ½ ‖X_v - Z_v‖² + ½ λ_v Σ_ij ( W_ij S_ij² ‖z_i - z_j‖² + μ_v (S_ij - 1)² ) + ½ γ Σ_{u≠v} ‖S_v - S_u‖².

    Samples whose representations are within reach of each other in more than half of the views are linked, and the
    clusters are what hangs together. Neighbours and links are sought among all pairs, O(n² Σ_v d_v) time in blocks of
    bounded memory; a round solves one sparse system per view. Representations are dense: a few times
    n Σ_v min(d_v, n) numbers.

    Parameters
    ----------
    n_neighbors : int
        Neighbours of each sample in a view's graph, by cosine.
    threshold : float
        Reach of a sample, in units of the length of a typical edge. The larger, the fewer clusters.
    pair_rate : float in (0, 1]
        Part of a view's edges, from the shortest on, whose mean length is that of a typical edge.
    consistency : float
        γ, the weight of the agreement between views.
    distance_test : "paper" or "program"
        Whether a distance is compared with the reach or, as in the authors' program, the root of the distance.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.
    max_iter, tol : int, float
        Stop after so many rounds, or when the objective changed by no more than this in each of ten.
    random_state : int, Generator, RandomState or None
        Nothing is random here; the methods have this parameter in common.

    Attributes
    ----------
    labels_ : (n_samples,) clusters, numbered by decreasing size
    n_clusters_ : how many there are
    objective_ : (n_iter_,) after each round, with means in place of sums over samples, pairs and views; λ_v follows the
        graph, so it may rise as well as fall
    n_iter_ : number of rounds
    view_names_, view_n_features_, n_features_in_, feature_names_in_

    References
    ----------
    Peng, Huang, Lv, Zhu, Zhou: COMIC: multi-view clustering without parameter selection, ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = COMIC().fit({"text": text, "image": image})
    >>> model.n_clusters_
    3
    """

    n_clusters_: int

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        threshold: float = 1.0,
        pair_rate: float = 0.9,
        consistency: float = 1.0,
        distance_test: str = "paper",
        views: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.threshold = threshold
        self.pair_rate = pair_rate
        self.consistency = consistency
        self.distance_test = distance_test
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        self._check_loop()
        self._check_parameters()
        self._generator()
        n = views.n_samples
        widths = [min(d, n) for d in views.n_features.values()]
        wide = any(d > n for d in views.n_features.values())
        require_memory(
            8 * n * (5 * sum(widths) + (3 * n if wide else 0)),
            f"representing {n} samples in {len(views)} views",
            "take a part of the samples, or views with fewer features",
        )
        power = 1 if self.distance_test == "paper" else 2
        with Workers(1):  # the products are small and many, and BLAS's threads would mostly wait for each other
            matcher = Matcher([self._graph(x) for x in views.values()], self.consistency)
            settled = partial(at_rest, self.tol)
            loop = alternate(matcher.round, matcher.start(), max_iter=self.max_iter, settled=settled)
            reaches = [(self.threshold * graph.reach) ** power for graph in matcher.graphs]
            labels = linked_by_majority(loop.state.representations, reaches)
        self._keep_loop(loop)
        self.n_clusters_ = len(self._keep_labels(labels))

    def _graph(self, x: Matrix) -> Graph:
        samples = l2_normalize(x)
        edges = mutual_edges(*nearest(samples, self.n_neighbors))
        return neighbour_graph(coordinates(samples), samples.shape[1], edges, self.pair_rate)

    def _check_parameters(self) -> None:
        if not (isinstance(self.n_neighbors, Integral) and self.n_neighbors >= 1):
            raise InputError(f"n_neighbors={self.n_neighbors!r} must be a whole number of at least 1")
        if not (isinstance(self.threshold, Real) and 0 < self.threshold < inf):
            raise InputError(f"threshold={self.threshold!r} must be a positive number")
        if not (isinstance(self.pair_rate, Real) and 0 < self.pair_rate <= 1):
            raise InputError(f"pair_rate={self.pair_rate!r} must be a part of the edges, above 0 and at most 1")
        if not (isinstance(self.consistency, Real) and 0 <= self.consistency < inf):
            raise InputError(f"consistency={self.consistency!r} must be a number of at least 0")
        if self.distance_test not in ("paper", "program"):
            raise InputError(f"distance_test={self.distance_test!r} must be 'paper' or 'program'")

    def _check_n_clusters(self, views: Views) -> None:
        """The number of clusters is an answer here, and any is right."""
        if views.n_samples < 2:
            raise InputError(f"n_samples={views.n_samples} is too few to have neighbours; give at least 2")

    def _warn_if_fewer(self, found: int) -> None:
        """There is no number of clusters to fall short of."""
