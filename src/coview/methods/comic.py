"""COMIC: cross-view matching clustering, which determines the number of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from coview.base.parameters import check_above, check_choice, check_integer, check_number
from coview.base.progress import Progress
from coview.base.runtime import Workers, require_memory
from coview.core.alternate import alternate
from coview.core.linalg import coordinates
from coview.data.as_views import Layout
from coview.data.rows import l2_normalize
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.errors import InputError, Note
from coview.methods.comic_graph import Numbers, cosine_neighbors, linked_by_majority, mutual_edges, squared_lengths
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

_SMOOTHING = 1e-5  # the authors add this to the square of every coordinate of an edge
_SHORT = 1e-2  # times the root of the number of features; shorter edges count as the longest, as in their program
_DENSE_UP_TO = 40  # samples
_STEADY_ITERATIONS = 10


@dataclass(frozen=True)
class CoordinateGraph:
    """The neighbour graph of a view and its constants, which do not change during the iterations."""

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


def neighbour_graph(samples: Array, n_features: int, edges: Numbers, pair_rate: float) -> CoordinateGraph:
    """Return the graph of L2-normalised samples (n, coordinates) of a view of n_features.

    The weight of an edge falls with the degrees of its ends.
    """
    i, j = edges.T
    degree = np.bincount(edges.ravel(), minlength=len(samples))
    weights = degree.mean() / np.sqrt(degree[i] * degree[j])
    lengths = np.sqrt(squared_lengths(edges, samples) + n_features * _SMOOTHING)
    longest = lengths.max()
    lengths[lengths < _SHORT * np.sqrt(n_features)] = longest
    shortest = np.sort(lengths)[: ceil(pair_rate * len(lengths))]
    norm = np.sqrt(max(0.0, np.linalg.eigvalsh(samples.T @ samples)[-1]))
    return CoordinateGraph(samples, edges, weights, float(shortest.mean()), float(longest**2), float(norm))


def largest_eigenvalue(laplacian: Matrix) -> float:
    """Return the largest eigenvalue of a Laplacian, from a fixed start.

    The eigenvector of the previous iteration is not a safe start: eigenvectors are localised on few samples, and the
    solver would return to one that no longer has the largest eigenvalue.
    """
    from scipy.sparse.linalg import eigsh

    n = laplacian.shape[0]
    if n <= _DENSE_UP_TO:
        return float(np.linalg.eigvalsh(laplacian.toarray())[-1])
    start = np.random.default_rng(0).standard_normal(n)
    # The error of the eigenvalue is quadratic in the residual: 1e-6 gives about ten digits.
    return float(eigsh(laplacian, k=1, which="LA", v0=start, tol=1e-6, return_eigenvectors=False)[0])


@dataclass(frozen=True)
class Matching:
    """The unknowns: every view's representation Z, its agreement S, and the strength λ of its graph.

    The agreement is stored for the pairs that are an edge in any view. All other pairs have the same value, because it
    does not depend on distances: it is the last column.
    """

    representations: list[Array]
    lengths: list[Array]  # squared lengths of the edges in Z
    agreement: Array  # (views, pairs + 1)
    strengths: Array  # (views,)


class Matcher:
    """The alternating updates for given graphs."""

    def __init__(self, graphs: Sequence[CoordinateGraph], consistency: float) -> None:
        self.graphs = graphs
        self.consistency = consistency
        self.scales = np.array([graph.scale for graph in graphs])[:, None]
        n = len(graphs[0].samples)
        numbers = [graph.edges[:, 0] * n + graph.edges[:, 1] for graph in graphs]
        pairs = np.unique(np.concatenate(numbers))
        self.places = [np.searchsorted(pairs, number) for number in numbers]
        # The fraction of the entries of S that each column stands for.
        self.fractions = np.append(np.full(len(pairs), 2.0), n * n - 2.0 * len(pairs)) / n**2

    def start(self) -> Matching:
        """Return the start: Z = X, and agreement on the edges only."""
        agreement = np.zeros((len(self.graphs), len(self.fractions)))
        strengths = []
        for own, places, graph in zip(agreement, self.places, self.graphs, strict=True):
            own[places] = 1.0
            strengths.append(graph.norm / largest_eigenvalue(graph.laplacian(own[places])))
        samples = [graph.samples for graph in self.graphs]
        return Matching(samples, self.lengths(samples), agreement, np.array(strengths))

    def iterate(self, now: Matching) -> tuple[Matching, float]:
        """Return the next unknowns and their objective."""
        agreement = self.match(now)
        views = [self.represent(v, agreement, now) for v in range(len(self.graphs))]
        representations = [z for z, _ in views]
        strengths = np.array([strength for _, strength in views])
        new = Matching(representations, self.lengths(representations), agreement, strengths)
        return new, self.objective(new)

    def match(self, now: Matching) -> Array:
        """Return S: near 1 if the edge is short or the other views agreed in the previous iteration."""
        others = now.agreement.sum(axis=0) - now.agreement
        tension = np.zeros_like(others)
        for v, graph in enumerate(self.graphs):
            tension[v, self.places[v]] = now.strengths[v] * graph.weights * now.lengths[v]
        return (self.consistency * others + self.scales) / (
            self.consistency * (len(others) - 1) + tension + self.scales
        )

    def represent(self, v: int, agreement: Array, now: Matching) -> tuple[Array, float]:
        """Return Z_v = (I + λ Laplacian)⁻¹ X_v, and the next λ from this Laplacian."""
        from scipy.sparse.linalg import splu

        graph = self.graphs[v]
        laplacian = graph.laplacian(agreement[v, self.places[v]])
        system = sp.csc_array(sp.eye_array(laplacian.shape[0]) + now.strengths[v] * laplacian)
        # The system is positive definite: no pivoting, and the order with the least fill-in.
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
            broken = self.fractions @ np.square(now.agreement[v] - 1)
            total += 0.5 * (moved + now.strengths[v] * (stretched + graph.scale * broken)) / len(self.graphs)
        apart = np.square(now.agreement - now.agreement.mean(axis=0)).sum(axis=0) * len(self.graphs)
        return float(total + 0.5 * self.consistency * self.fractions @ apart)


def is_steady(tol: float, trace: Sequence[float]) -> bool:
    """Return whether the objective changed by at most tol in each of the last ten iterations.

    The objective falls at first and may rise slowly later, so a single small change can be its turning point. (The
    authors' program tests one change, after at least 100 iterations.)
    """
    last = trace[-_STEADY_ITERATIONS - 1 :]
    return len(last) > _STEADY_ITERATIONS and bool((np.abs(np.diff(last)) <= tol).all())


class COMIC(Clusterer):
    """Cluster several views without a given number of clusters.

    With W_v the weighted neighbour graph of view v, L2-normalised samples x and μ_v the square of its longest edge, the
    method finds representations z near the samples, and graphs S_v on which the views agree, that minimise

        Σ_v ½ ‖X_v - Z_v‖² + ½ λ_v Σ_ij ( W_ij S_ij² ‖z_i - z_j‖² + μ_v (S_ij - 1)² ) + ½ γ Σ_{u≠v} ‖S_v - S_u‖².

    Two samples are linked if the distance of their representations is within reach in more than half of the views. The
    clusters are the connected components. Neighbours and links are searched among all pairs, in O(n² Σ_v d_v) time and
    bounded memory; an iteration solves one sparse system for each view. Representations are dense: a few times
    n Σ_v min(d_v, n) numbers.

    Parameters
    ----------
    n_neighbors : int
        Number of neighbours of each sample in a view's graph, by cosine.
    threshold : float
        Reach of a sample, in units of the typical edge length. Larger values give fewer clusters.
    pair_rate : float in (0, 1]
        Fraction of a view's edges, from the shortest on, whose mean length is the typical edge length.
    consistency : float
        γ, the weight of the agreement between views.
    distance_test : "paper" or "program"
        Whether the distance is compared with the reach or, as in the authors' program, the root of the distance.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    max_iter, tol : int, float
        Stop after max_iter iterations, or if the objective changed by at most tol in each of the last ten.
    random_state : ignored
        Present because all methods have this parameter.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.
    n_clusters_ : int
        Number of clusters.
    objective_, n_iter_ : array of shape (n_iter_,), int
        Objective after each iteration, with means in place of sums over samples, pairs and views, and number of
        iterations. The objective may rise, because λ_v depends on the graph.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    Coview : Selects the number of clusters as well, and labels new samples.

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
        views: Layout = None,
        max_iter: int = 1000,
        tol: float = 1e-8,
        random_state: Seed = None,
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

    def fit_model(self, views: Views, report: Progress) -> Model:
        check_iteration_limits(self)
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_above("threshold", self.threshold, 0)
        check_above("pair_rate", self.pair_rate, 0, 1)
        check_number("consistency", self.consistency, 0)
        check_choice("distance_test", self.distance_test, ("paper", "program"))
        as_generator(self.random_state)
        n = views.n_samples
        widths = [min(d, n) for d in views.n_features.values()]
        wide = any(d > n for d in views.n_features.values())
        require_memory(
            8 * n * (5 * sum(widths) + (3 * n if wide else 0)),
            f"representing {n} samples in {len(views)} views",
            "use fewer samples, or train another method on some of them, as in FixedSize(TMvKSCR(…), n_train=5000)",
        )
        power = 1 if self.distance_test == "paper" else 2
        with Workers(1):  # many small products, for which BLAS is faster in one thread
            matcher = Matcher([self._graph(x) for x in views.values()], self.consistency)
            settled = partial(is_steady, self.tol)
            loop = alternate(matcher.iterate, matcher.start(), max_iter=self.max_iter, settled=settled)
            reaches = [(self.threshold * graph.reach) ** power for graph in matcher.graphs]
            labels = linked_by_majority(loop.state.representations, reaches)
        found = len(np.unique(labels))
        notes = note_on_convergence(self, loop)
        if 2 * found > n:
            sentence = (
                f"found {found} clusters for {n} samples, so some clusters have only one sample; a threshold above "
                f"{self.threshold:g} gives fewer clusters"
            )
            notes = (*notes, Note(sentence, ConvergenceWarning))
        return model_of_labels(labels, found, {**objective_of(loop), "n_clusters_": found}, *notes)

    def _graph(self, x: Matrix) -> CoordinateGraph:
        samples = l2_normalize(x)
        edges = mutual_edges(*cosine_neighbors(samples, self.n_neighbors))
        return neighbour_graph(coordinates(samples), samples.shape[1], edges, self.pair_rate)

    def check_views(self, views: Views) -> tuple[Note, ...]:
        # The number of clusters is a result.
        if views.n_samples < 2:
            raise InputError(f"n_samples={views.n_samples} is too few to have neighbours; give at least 2")
        return ()
