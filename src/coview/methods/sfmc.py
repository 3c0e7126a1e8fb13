"""SFMC: scalable and parameter-free multi-view clustering by fusion of bipartite graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from coview.base.parameters import check_integer
from coview.base.progress import Progress
from coview.base.runtime import Workers
from coview.core.alternate import Alternation, alternate, steady
from coview.core.assign import Labels
from coview.data.as_views import Layout
from coview.data.rows import in_safe_unit, row_of_entries
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.errors import InputError
from coview.methods.anchors import AnchorPoints
from coview.methods.bipartite import components, join_nearest, leading_triplets, n_components, normalise, weighted_graph
from coview.methods.sfmc_simplex import project_segments, smallest_on_simplex
from coview.model.clusterer import Clusterer
from coview.model.fitting import Seed, as_generator, check_iteration_limits, model_of_labels, objective_of
from coview.model.model import Model

_INNER = 50  # changes of the penalty until the graph has the right number of components
_PENALTY = 0.1


def salience(views: Views) -> Array:
    """Return the salience of each sample: the sum of its features minus their minima, over the largest of the view.

    The result is scaled to a maximum of 1 and rounded, because alternate sampling amplifies rounding errors.
    """
    total = np.zeros(views.n_samples)
    for x in map(in_safe_unit, views.values()):  # the scale does not matter
        above_least = x.sum(axis=1, dtype=np.float64) - x.min(axis=0).sum(dtype=np.float64)
        largest = x.max() if x.max() > 0 else -x.min()
        total += above_least / (largest or 1.0)
    return np.round(np.maximum(total, 0.0) / (total.max() or 1.0), 9)


def alternate_sampling(scores: Array, count: int) -> Labels:
    """Return `count` samples, sorted: each is the one of the highest score, after which s becomes s (1 - s) for all.

    Samples with scores near that of the chosen one get low scores with it, so the next one differs from it. If all
    scores are zero, which duplicate samples cause, the samples not yet chosen start again.
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
    """Return B_v (samples, anchors): weights d_(q+1) - d_ij of the q nearest anchors, with sum 1 for each sample.

    If the q + 1 nearest anchors of a sample are equally far, as among duplicates, the view has no edges of it, as in
    the authors' program. A sample without edges in any view gets equal weights in all of them.
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


class Edges:
    """The edges of a graph: sample and anchor of each, in the order of its CSR arrays."""

    def __init__(self, graph: Matrix) -> None:
        self.graph = graph
        self.samples = row_of_entries(graph)
        self.by_anchor = np.argsort(graph.indices, kind="stable")  # the edges in the order of their anchors
        self.anchor_starts = np.concatenate([[0], np.bincount(graph.indices, minlength=graph.shape[1]).cumsum()])

    def squared_distances(self, left: Array, right: Array) -> Array:
        """Return the squared distance between the ends of each edge, for points (samples, k) and (anchors, k)."""
        distances = np.zeros(self.graph.nnz)
        for a, b in zip(left.T, right.T, strict=True):
            distances += np.square(a[self.samples] - b[self.graph.indices])
        return distances

    def project(self, values: Array) -> Array:
        """Return the mean of two projections onto simplices: of the edges of each sample, and of each anchor."""
        projected = project_segments(values, self.graph.indptr)
        projected[self.by_anchor] += project_segments(values[self.by_anchor], self.anchor_starts)
        return projected / 2

    def with_values(self, values: Array) -> Matrix:
        """Return the graph with these values, without edges of value zero."""
        graph = sp.csr_array((values, self.graph.indices, self.graph.indptr), shape=self.graph.shape, copy=True)
        graph.eliminate_zeros()
        return graph


def structured_graph(fused: Matrix, n_clusters: int) -> Matrix:
    """Return P, a graph near the fused one and on its edges, with n_clusters components if that is possible.

    Every iteration subtracts from each edge λ/2 times the squared distance between its ends in the spectral embedding
    of the current graph. λ doubles if there are too few components, and is halved if there are too many. A graph that
    has at least n_clusters components is returned unchanged.

    The authors' program counts the eigenvalues that are 1 up to 1e-7; counting components is exact and cheaper.
    """
    if n_components(fused) >= n_clusters:
        return fused
    edges, penalty, too_many = Edges(fused), _PENALTY, None
    embedding = leading_triplets(normalise(fused)[0], n_clusters)
    sample_scale, anchor_scale = np.array(1.0), np.array(10.0)  # for the first iteration, as in the authors' program
    for _ in range(_INNER):
        # Both parts of the embedding are orthonormal; the whole is so with a factor √½, hence 4 and not 2.
        distances = edges.squared_distances(sample_scale * embedding.left, anchor_scale * embedding.right)
        graph = edges.with_values(edges.project(fused.data - penalty / 4 * distances))
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
    return graph if too_many is None else too_many  # surplus components can be joined


def learn_graph_weights(graphs: Sequence[Matrix], n_clusters: int, *, max_iter: int, tol: float) -> Alternation[Array]:
    """Return α: alternate between P and the weights with Σ_v α_v B_v nearest to it, from equal weights."""
    products = np.array([[(a * b).sum() for a in graphs] for b in graphs])

    def step(weights: Array) -> tuple[Array, float]:
        graph = structured_graph(weighted_graph(graphs, weights), n_clusters)
        with_graph = np.array([(b * graph).sum() for b in graphs])
        weights = smallest_on_simplex(products, with_graph)
        objective = weights @ products @ weights - 2 * weights @ with_graph + np.square(graph.data).sum()
        return weights, max(float(objective), 0.0)

    equal = np.full(len(graphs), 1 / len(graphs))
    return alternate(step, equal, max_iter=max_iter, settled=steady(tol))


class SFMC(Clusterer):
    """Cluster several views by one bipartite graph of samples and anchors that has n_clusters components.

    Every view v has a graph B_v between its samples and their nearest anchors, which are samples as well. The graph P
    and the weights α of the views solve

        min ‖Σ_v α_v B_v − P‖²   with   α ≥ 0, Σ_v α_v = 1, P ≥ 0, and P has n_clusters components,

    and the components are the clusters; the method does not use k-means and is deterministic. If the graphs of the
    views have more components than that, the nearest ones are joined. Fitting takes O(n m Σ_v d_v) time for m anchors,
    which is quadratic in n if the anchors are a fraction of the samples, and then about a hundred passes over the
    O(n V n_neighbors) edges, which also determine the memory.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    anchors : float in (0, 1], int, or array of sample numbers
        A fraction of the samples (at least n_clusters), a number of samples, or the anchors themselves. A fraction or
        number of anchors is selected by the authors' alternate sampling, which is deterministic but chaotic: changes in
        the last digits of the data change most anchors, and clusters that overlap.
    n_neighbors : int
        Number of anchors that each sample is linked to in each view.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    max_iter, tol : int, float
        Stop after max_iter iterations (the authors do ten), or if the relative change of the objective is at most tol.
    random_state : ignored
        Present because all methods have this parameter.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.
    view_weights_ : dict
        α, by view name.
    graph_ : csr_array of shape (n_samples, n_anchors)
        P.
    anchor_indices_ : array of shape (n_anchors,)
        The samples that are anchors, in the order of the columns of graph_.
    objective_, n_iter_ : array of shape (n_iter_,), int
        Objective after each iteration, and number of iterations.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    MVSCBP : Graphs between samples and anchors, with labels of new samples.

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
        anchors: float | Sequence[int] | Array = 0.5,
        n_neighbors: int = 10,
        views: Layout = None,
        max_iter: int = 10,
        tol: float = 1e-4,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.anchors = anchors
        self.n_neighbors = n_neighbors
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit_model(self, views: Views, report: Progress) -> Model:
        check_iteration_limits(self)
        as_generator(self.random_state)
        check_integer("n_neighbors", self.n_neighbors, 1)
        k, anchors = int(self.n_clusters), self._choose_anchors(views)
        with Workers(1):  # many small products, for which BLAS is faster in one thread
            graphs = bipartite_graphs(views, anchors, self.n_neighbors)
            loop = learn_graph_weights(graphs, k, max_iter=self.max_iter, tol=self.tol)
            graph = structured_graph(weighted_graph(graphs, loop.state), k)
        learnt = {
            **objective_of(loop),
            "view_weights_": dict(zip(views.names, loop.state.tolist(), strict=True)),
            "anchor_indices_": anchors,
            "graph_": graph,
        }
        # No warning if the weights have not converged: ten iterations are the published method, and more do not help.
        return model_of_labels(join_nearest(components(graph), views, k), k, learnt)

    def _choose_anchors(self, views: Views) -> Labels:
        given, n, k = np.asarray(self.anchors), views.n_samples, int(self.n_clusters)
        if given.ndim == 0 and given.dtype.kind == "f" and 0 < given <= 1:
            return alternate_sampling(salience(views), max(int(given * n), k))
        if given.ndim == 0 and given.dtype.kind in "iu" and k <= given <= n:
            return alternate_sampling(salience(views), int(given))
        if given.ndim == 1 and given.dtype.kind in "iu" and len(given) >= k:
            anchors = np.unique(given).astype(np.int64)
            if len(anchors) == len(given) and anchors[0] >= 0 and anchors[-1] < n:
                return anchors
        raise InputError(
            f"anchors={self.anchors!r}: expected a fraction above 0 and at most 1, an integer from n_clusters="
            f"{k} to n_samples={n}, or as many different sample numbers"
        )
