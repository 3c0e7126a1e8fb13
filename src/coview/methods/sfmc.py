"""SFMC: the bipartite graphs of all views are fused into one that falls into as many pieces as there are clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.core.alternate import Alternation, alternate, steady
from coview.core.assign import Labels
from coview.errors import InputError
from coview.methods.anchors import AnchorPoints
from coview.methods.base import MultiViewClusterer
from coview.methods.bipartite import components, join_nearest, leading_triplets, n_components, normalise
from coview.methods.sfmc_simplex import project_segments, smallest_on_simplex
from coview.runtime import Workers
from coview.views import Array, Matrix, Views

_INNER = 50  # changes of the penalty in search of a graph with the right number of components
_PENALTY = 0.1


def salience(views: Views) -> Array:
    """How much each sample has of everything: features above their least, as parts of a view's largest, added up.

    Scaled to 1 and rounded, so that the order in which numbers are added does not matter: what follows is chaotic.
    """
    total = np.zeros(views.n_samples)
    for x in views.values():
        above_least = x.sum(axis=1, dtype=np.float64) - x.min(axis=0).sum(dtype=np.float64)
        largest = x.max() if x.max() > 0 else -x.min()
        total += above_least / (largest or 1.0)
    return np.round(np.maximum(total, 0.0) / (total.max() or 1.0), 9)


def alternate_sampling(scores: Array, count: int) -> Labels:
    """Choose the sample of the highest score, let every score s become s (1 - s), and so on; return them sorted.

    Samples like the chosen one fall back with it, so the next is unlike it. Equal samples fall out together; when all
    are out, those not chosen come in again.
    """
    chosen = np.zeros(len(scores), dtype=bool)
    left = scores
    for _ in range(count):
        if left.max() <= 0:
            left = np.where(chosen, 0.0, 1 + scores)
        left = left / left.max()
        best = left.argmax()
        chosen[best] = True
        left = left * (1 - left)
    return np.flatnonzero(chosen)


def bipartite_graphs(views: Views, anchors: Labels, n_neighbors: int) -> list[Matrix]:
    """B_v: weights d_(q+1) - d_ij of the q nearest anchors, scaled to sum 1 for each sample (samples, anchors).

    A view in which the q + 1 nearest anchors of a sample are equally far, as among copies of one point, says nothing
    about it, as in the authors' program. A sample about which no view says anything has equal weights in all of them.
    """
    points = [AnchorPoints(name, x[anchors]) for name, x in views.items()]
    nearest = [p.nearest(x, n_neighbors + 1) for p, x in zip(points, views.values(), strict=True)]
    weights = np.stack([d.max(axis=1, keepdims=True) - d for _, d in nearest])
    weights[:, weights.sum(axis=(0, 2)) == 0] = 1.0
    totals = weights.sum(axis=2, keepdims=True)
    weights /= np.where(totals > 0, totals, 1.0)
    graphs = [found.graph(w, len(anchors)) for found, w in zip(nearest, weights, strict=True)]
    for graph in graphs:
        graph.eliminate_zeros()
    return graphs


def fuse(graphs: Sequence[Matrix], weights: Array) -> Matrix:
    """Σ_v α_v B_v."""
    fused = sum(weight * graph for weight, graph in zip(weights, graphs, strict=True) if weight > 0)
    return sp.csr_array(fused)


@dataclass(frozen=True)
class Support:
    """Where a graph has edges: sample and anchor of each, in the order of its CSR arrays."""

    graph: Matrix

    @cached_property
    def samples(self) -> Labels:
        return np.repeat(np.arange(self.graph.shape[0]), np.diff(self.graph.indptr))

    @cached_property
    def by_anchor(self) -> Labels:
        """The edges in the order of their anchors."""
        return np.argsort(self.graph.indices, kind="stable")

    @cached_property
    def anchor_starts(self) -> Labels:
        return np.concatenate([[0], np.bincount(self.graph.indices, minlength=self.graph.shape[1]).cumsum()])

    def squared_distances(self, left: Array, right: Array) -> Array:
        """Between the two ends of each edge, for points (samples, k) and (anchors, k)."""
        distances = np.zeros(self.graph.nnz)
        for a, b in zip(left.T, right.T, strict=True):
            distances += np.square(a[self.samples] - b[self.graph.indices])
        return distances

    def project(self, values: Array) -> Array:
        """The mean of two projections: each sample's edges onto the simplex, and each anchor's."""
        projected = project_segments(values, self.graph.indptr)
        projected[self.by_anchor] += project_segments(values[self.by_anchor], self.anchor_starts)
        return projected / 2

    def with_values(self, values: Array) -> Matrix:
        """The graph with these values; edges of value zero are gone."""
        graph = sp.csr_array((values, self.graph.indices, self.graph.indptr), shape=self.graph.shape, copy=True)
        graph.eliminate_zeros()
        return graph


def structured_graph(fused: Matrix, n_clusters: int) -> Matrix:
    """P: a graph near the fused one, on its edges, with n_clusters components where that can be reached.

    Every pass takes λ/2 times the squared distance between its two ends from each edge, in the spectral embedding of
    the graph so far. λ doubles while there are too few components, and is halved when there are too many. A graph
    that has enough components from the start stays as it is.

    The authors' program counts the eigenvalues that are 1 up to 1e-7; counting components is exact, and cheaper.
    """
    if n_components(fused) >= n_clusters:
        return fused
    support, penalty, too_many = Support(fused), _PENALTY, None
    embedding = leading_triplets(normalise(fused)[0], n_clusters)
    sample_scale, anchor_scale = np.array(1.0), np.array(10.0)  # before there is a P, as in the authors' program
    for _ in range(_INNER):
        # Both parts of the embedding are orthonormal; together they are with a factor √½, hence 4 and not 2.
        distances = support.squared_distances(sample_scale * embedding.left, anchor_scale * embedding.right)
        graph = support.with_values(support.project(fused.data - penalty / 4 * distances))
        found = n_components(graph)
        if found == n_clusters:
            return graph
        normalised, sample_scale, anchor_scale = normalise(graph)
        if found < n_clusters:
            penalty *= 2
            embedding = leading_triplets(normalised, n_clusters, embedding.right)
        else:
            penalty /= 2
            too_many = graph
    return graph if too_many is None else too_many  # the components of one with too many can be joined


def learn_weights(graphs: Sequence[Matrix], n_clusters: int, *, max_iter: int, tol: float) -> Alternation[Array]:
    """α: alternate between P and the weights that bring Σ_v α_v B_v nearest to it, from equal weights."""
    products = np.array([[(a * b).sum() for a in graphs] for b in graphs])

    def step(weights: Array) -> tuple[Array, float]:
        graph = structured_graph(fuse(graphs, weights), n_clusters)
        with_graph = np.array([(b * graph).sum() for b in graphs])
        weights = smallest_on_simplex(products, with_graph)
        objective = weights @ products @ weights - 2 * weights @ with_graph + np.square(graph.data).sum()
        return weights, max(float(objective), 0.0)

    equal = np.full(len(graphs), 1 / len(graphs))
    return alternate(step, equal, max_iter=max_iter, settled=steady(tol))


class SFMC(MultiViewClusterer):
    """Cluster several views by one bipartite graph of samples and anchors that falls into n_clusters components.

    Every view v has a graph B_v of its samples and their nearest anchors, which are samples themselves. The graph P and
    the weights α of the views solve

        min ‖Σ_v α_v B_v − P‖²   with   α ≥ 0, Σ_v α_v = 1, P ≥ 0, and P has n_clusters components,

    and the components are the clusters: there is no k-means, and nothing is random. If the graphs of the views have
    more components from the start, the nearest are joined. Takes O(n m Σ_v d_v) time for m anchors, which is
    quadratic in n when the anchors are a fraction, then some hundred passes over the O(n V n_neighbors) edges, which
    are also what is kept in memory.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    anchors : float in (0, 1], int, or array of sample numbers
        A fraction of the samples (at least n_clusters), a number of them, or these samples. Unless they are given,
        anchors are chosen by the authors' alternate sampling, which is deterministic but chaotic: a change of the
        last digits of the data changes most of them, and the clusters where these overlap.
    n_neighbors : int
        AnchorPoints that each sample is linked with in each view.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.
    max_iter : int
        Rounds of updating P and α; the authors do ten, whether or not the weights have settled.
    tol : float
        Stop before that when the objective changes by less than this part of itself.
    random_state : ignored
        Here for a common interface.

    Attributes
    ----------
    labels_ : (n_samples,) clusters, numbered by decreasing size
    view_weights_ : by view name, α
    graph_ : csr_array (n_samples, n_anchors), P
    anchor_indices_ : samples that are the anchors, in the order of the columns of graph_
    objective_ : after every round
    n_iter_, view_names_, view_n_features_, n_features_in_, feature_names_in_

    References
    ----------
    Li, Zhang, Wang, Nie: Multiview clustering: a scalable and parameter-free bipartite graph fusion method, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = SFMC(n_clusters=3).fit({"text": text, "image": image})
    >>> np.bincount(model.labels_)
    array([20, 20, 20])
    >>> model.graph_.shape
    (60, 30)
    """

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        anchors: Any = 0.5,
        n_neighbors: int = 10,
        views: Any = None,
        max_iter: int = 10,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.anchors = anchors
        self.n_neighbors = n_neighbors
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        self._check_loop()
        if not (isinstance(self.n_neighbors, Integral) and self.n_neighbors >= 1):
            raise InputError(f"n_neighbors={self.n_neighbors!r} must be a whole number of at least 1")
        self.anchor_indices_ = self._choose_anchors(views)
        with Workers(1):  # many small products, in which more BLAS threads would wait for each other
            graphs = bipartite_graphs(views, self.anchor_indices_, self.n_neighbors)
            loop = learn_weights(graphs, self.n_clusters, max_iter=self.max_iter, tol=self.tol)
            self.graph_ = structured_graph(fuse(graphs, loop.state), self.n_clusters)
        self.view_weights_ = dict(zip(views.names, loop.state.tolist(), strict=True))
        # No warning when the weights have not settled: ten rounds are the published method, and more do not help.
        self.objective_, self.n_iter_ = loop.objective, len(loop.objective)
        self._keep_labels(join_nearest(components(self.graph_), views, self.n_clusters))

    def _choose_anchors(self, views: Views) -> Labels:
        given, n = np.asarray(self.anchors), views.n_samples
        if given.ndim == 0 and given.dtype.kind == "f" and 0 < given <= 1:
            return alternate_sampling(salience(views), max(int(given * n), self.n_clusters))
        if given.ndim == 0 and given.dtype.kind in "iu" and self.n_clusters <= given <= n:
            return alternate_sampling(salience(views), int(given))
        if given.ndim == 1 and given.dtype.kind in "iu" and len(given) >= self.n_clusters:
            anchors = np.unique(given).astype(np.int64)
            if len(anchors) == len(given) and anchors[0] >= 0 and anchors[-1] < n:
                return anchors
        raise InputError(
            f"anchors={self.anchors!r} must be a fraction between 0 and 1, a whole number from n_clusters="
            f"{self.n_clusters} to n_samples={n}, or that many different sample numbers"
        )
