"""MVSCBP: large-scale spectral clustering of several views through bipartite graphs of samples and salient points."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from coview.core.alternate import Alternation, alternate, steady
from coview.core.assign import Directions, Labels
from coview.errors import InputError
from coview.methods.anchors import AnchorPoints, NearestAnchors
from coview.methods.base import MultiViewClusterer, ViewWeights
from coview.methods.bipartite import Triplets, leading_triplets
from coview.rows import l2_normalize
from coview.runtime import Workers
from coview.state import ByView, DenseOrSparse, FloatArray, IntegerArray, ListByView, Range, Size, Sizes, require
from coview.views import Array, Matrix, Views

_ROWS_PER_POINT = 10  # samples that k-means sees for each salient point; more cost much and change little
_FLOOR = 1e-12
_PREDICT_ROWS = 2**14
_DECIMALS = 9  # of what decides between equal votes


def salient_points(views: Views, count: int, rng: np.random.Generator) -> dict[str, Matrix]:
    """Centres of k-means on all views side by side, cut into views again; fewer where samples are equal."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    n_drawn = min(views.n_samples, _ROWS_PER_POINT * count)
    drawn = views.take(np.sort(rng.choice(views.n_samples, n_drawn, replace=False)))
    sparse = any(sp.issparse(x) for x in drawn.values())
    together = sp.hstack(list(drawn.values()), format="csr") if sparse else np.hstack(list(drawn.values()))
    # Random starts rather than k-means++, which would cost more than the rest when there are many centres.
    kmeans = KMeans(count, init="random", n_init=1, max_iter=30, random_state=int(rng.integers(2**31)))
    # One thread: sums come out in one order.
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct samples than centres
        centres = _distinct(kmeans.fit(together).cluster_centers_)
    parts = np.split(centres, np.cumsum(list(views.n_features.values()))[:-1], axis=1)
    named = zip(views.items(), parts, strict=True)
    return {name: sp.csr_array(part) if sp.issparse(x) else part for (name, x), part in named}


def _distinct(centres: Array) -> Array:
    """Centres without repetition; those of copies of one sample differ by rounding."""
    unit = np.abs(centres).max(axis=0)
    rounded = np.round(centres / np.where(unit > 0, unit, 1.0), 12) + 0.0  # + 0.0 makes -0.0 and 0.0 one number
    kept: Array = centres[np.unique(rounded, axis=0, return_index=True)[1]]
    return kept


def link(views: Views, points: Mapping[str, Matrix], count: int) -> tuple[list[AnchorPoints], list[NearestAnchors]]:
    """The salient points as anchors, and so many of the nearest to each sample in each view.

    Points that are near to no sample are left out: without a part in the graph they would have no cluster.
    """
    anchors = [AnchorPoints(name, points[name]) for name in views]
    nearest = [of_view.nearest(x, count) for of_view, x in zip(anchors, views.values(), strict=True)]
    used = np.unique(np.concatenate([found.anchors.ravel() for found in nearest]))
    if len(used) < len(anchors[0]):
        return link(views, {name: x[used] for name, x in points.items()}, count)
    return anchors, nearest


def salient_graph(nearest: NearestAnchors, spread: float, n_anchors: int) -> Matrix:
    """Z_v: weights exp(-distance / (2 spread)), of sum 1 for each sample, then divided by √ of each anchor's sum."""
    # The nearest one counts as distance zero, which changes nothing after scaling, and never underflows.
    distances = nearest.distances - nearest.distances.min(axis=1, keepdims=True)
    weights = np.exp(-distances / (2 * spread))
    z = nearest.graph(weights / weights.sum(axis=1, keepdims=True), n_anchors)
    z.data /= np.sqrt(np.maximum(z.sum(axis=0), _FLOOR))[z.indices]
    return z


def fuse(graphs: Sequence[Matrix], weights: Array, exponent: float) -> Matrix:
    """Z = Σ_v α_v^r Z_v, with the factors scaled to sum 1: of many views a large r would leave nothing."""
    factors = (weights / weights.max()) ** exponent
    total = sum(factor * graph for factor, graph in zip(factors / factors.sum(), graphs, strict=True))
    return sp.csr_array(total)


def laplacian_traces(graphs: Sequence[Matrix], embedding: Triplets) -> Array:
    """h_v = tr(Gᵀ L_v G) = k - tr(Uᵀ Z_v V) of the graph's Laplacian, with G = [U; V] / √2: small where v agrees."""
    u, _, v = embedding
    return np.array([u.shape[1] - np.vdot(u, z @ v) for z in graphs])


def affinity_traces(graphs: Sequence[Matrix], embedding: Triplets) -> Array:
    """h_v = ‖Z_vᵀ U‖² with rows of U of length 1, as in the authors' program: large where v agrees."""
    return np.array([np.square(z.T @ embedding.left).sum() for z in graphs])


def without_trivial(z: Matrix, k: int, start: Array | None = None) -> Triplets:
    """The k triplets after the first, with rows of length 1, as in the authors' program."""
    left, values, right = leading_triplets(z, k + 1, start)
    return Triplets(l2_normalize(left[:, 1:]), values[1:], l2_normalize(right[:, 1:]))


def until_it_falls_less(tol: float) -> Callable[[Sequence[float]], bool]:
    """The authors' rule: stop when the objective falls by less than this, or rises."""
    return lambda trace: len(trace) > 1 and trace[-2] - trace[-1] < tol


class Weighting(NamedTuple):
    """What is taken from the fused graph, what that says of every view, and when to stop."""

    embed: Callable[[Matrix, int, Array | None], Triplets]
    traces: Callable[[Sequence[Matrix], Triplets], Array]
    settled: Callable[[float], Callable[[Sequence[float]], bool]]


WEIGHTINGS: Mapping[str, Weighting] = {
    "laplacian": Weighting(leading_triplets, laplacian_traces, steady),
    "affinity": Weighting(without_trivial, affinity_traces, until_it_falls_less),
}


class Fusion(NamedTuple):
    """Weights α of the views, and the embedding G of samples and anchors that they were learnt from."""

    weights: Array
    embedding: Triplets


def learn_weights(
    graphs: Sequence[Matrix], n_clusters: int, exponent: float, weighting: Weighting, *, max_iter: int, tol: float
) -> Alternation[Fusion]:
    """Alternate between G, the embedding of the fused graph, and α_v ∝ h_v^(1 / (1 - r)), from equal weights."""

    def step(state: Fusion) -> tuple[Fusion, float]:
        embedding = weighting.embed(fuse(graphs, state.weights, exponent), n_clusters, state.embedding.right)
        traces = np.maximum(weighting.traces(graphs, embedding), _FLOOR)
        weights = (traces / traces.min()) ** (1 / (1 - exponent))
        weights /= weights.sum()
        return Fusion(weights, embedding), float(weights**exponent @ traces)

    n, m = graphs[0].shape
    nothing = Triplets(np.empty((n, 0)), np.empty(0), np.empty((m, 0)))
    equal = np.full(len(graphs), 1 / len(graphs))
    return alternate(step, Fusion(equal, nothing), max_iter=max_iter, settled=weighting.settled(tol))


def vote(nearest: Sequence[NearestAnchors], spreads: Sequence[float], anchor_labels: Labels) -> Labels:
    """The cluster of most of a sample's nearest anchors in all views; of equals, the one whose anchors are nearer.

    Distances are added up over the views, each in units of its spread.
    """
    n, k = len(nearest[0].anchors), int(anchor_labels.max()) + 1
    votes, distances = np.zeros((n, k)), np.zeros((n, k))
    for (anchors, squared), spread in zip(nearest, spreads, strict=True):
        places = (k * np.arange(n)[:, None] + anchor_labels[anchors]).ravel()
        votes += np.bincount(places, minlength=n * k).reshape(n, k)
        distances += np.bincount(places, weights=squared.ravel() / spread, minlength=n * k).reshape(n, k)
    most = votes == votes.max(axis=1, keepdims=True)
    labels: Labels = np.where(most, np.round(distances, _DECIMALS), np.inf).argmin(axis=1)
    return labels


class MVSCBP(MultiViewClusterer):
    """Cluster many samples of several views through sparse graphs between the samples and a few salient points.

    Salient points (anchors) are centres of k-means on all views. In every view v a sample is linked to its nearest
    anchors. The shared embedding G of samples and anchors and the weights α of the views solve

        min Σ_v α_v^r tr(Gᵀ L_v G)   with   GᵀG = I, α ≥ 0, Σ_v α_v = 1,

    where L_v is the normalised Laplacian of view v's graph, and k-means on the directions of G gives the clusters.
    The objective falls in every round. New samples get the cluster that most of their nearest anchors have; for a
    training sample between clusters that need not be its label. Takes O(n m Σ_v d_v) time for m anchors, linear in n;
    memory is O(n V n_neighbors) beside the anchors and one block of rows.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_anchors : "auto" or int
        Number of salient points, more than n_clusters. "auto" takes 5 √n_samples, but at most 1000 and half of the
        samples.
    n_neighbors : int
        AnchorPoints that each sample is linked with in each view.
    weight_exponent : float above 1
        The paper's r. With h_v the trace of view v in the objective, the view counts by α_v^r ∝ h_v^(-r / (r - 1)):
        towards 1 a single view takes all, and for large r none counts by more than its 1 / h_v.
    weighting : "laplacian" or "affinity"
        The paper's weights, or those of the authors' program, in which a view weighs less the better it agrees.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.
    max_iter, tol : int, float
        Rounds of updating G and α at most; stop when the objective changes by less than this part of itself (with
        "affinity", when it falls by less than this, or rises).
    random_state : int, Generator, RandomState or None
        Source of randomness of both k-means.

    Attributes
    ----------
    labels_ : (n_samples,) clusters, numbered by decreasing size
    view_weights_ : by view name, α
    anchors_ : by view name, the salient points (m, n_features)
    anchor_labels_ : (m,) their clusters
    embedding_ : (n_samples, n_clusters) the samples' part of G
    objective_ : after every round
    n_iter_, view_names_, view_n_features_, n_features_in_, feature_names_in_

    References
    ----------
    Li, Nie, Huang, Huang: Large-scale multi-view spectral clustering via bipartite graph, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = MVSCBP(n_clusters=3, random_state=0).fit({"text": text, "image": image})
    >>> np.bincount(model.labels_)
    array([20, 20, 20])
    >>> bool((model.predict({"text": text[:1], "image": image[:1]}) == model.labels_[0]).all())
    True
    """

    objective_: Annotated[Array, FloatArray("iterations")]
    n_iter_: Annotated[int, Size("iterations")]
    view_weights_: ViewWeights
    embedding_: Annotated[Array, FloatArray("train", "dimensions")]
    anchors_: ByView[Annotated[Matrix, DenseOrSparse("anchors", "features")]]
    anchor_labels_: Annotated[Labels, IntegerArray("anchors", least=0, below="anchors")]
    _anchors: ListByView[AnchorPoints]
    _spreads: ListByView[Annotated[float, Range(above=0)]]
    _n_links: Annotated[int, Range(least=1)]
    _n_votes: Annotated[int, Range(least=1)]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        n_anchors: Any = "auto",
        n_neighbors: int = 5,
        weight_exponent: float = 10**0.7,
        weighting: str = "laplacian",
        views: Any = None,
        max_iter: int = 50,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.weight_exponent = weight_exponent
        self.weighting = weighting
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        views, rng = self._views_to_fit(X), self._generator()
        self._check_parameters()
        points = salient_points(views, self._count_anchors(views.n_samples), rng)
        with Workers(1):  # many small products, in which more BLAS threads would wait for each other
            loop = self._learn(views, points)
        self._keep_loop(loop)
        self.view_weights_ = dict(zip(views.names, loop.state.weights.tolist(), strict=True))
        self.embedding_, _, anchor_embedding = loop.state.embedding
        clusters = Directions().fit(np.vstack([self.embedding_, anchor_embedding]), self.n_clusters, rng)
        order = self._keep_labels(clusters.assign(self.embedding_))
        # Clusters without samples are closed to anchors, and so to new samples.
        self.anchor_labels_ = replace(clusters, centres=clusters.centres[order]).assign(anchor_embedding)
        # With more votes than a cluster has anchors, larger clusters would outvote it on its own ground.
        self._n_votes = min(self._n_links, int(np.unique(self.anchor_labels_, return_counts=True)[1].min()))
        self.anchors_ = {anchors.name: anchors.points for anchors in self._anchors}

    def _learn(self, views: Views, points: Mapping[str, Matrix]) -> Alternation[Fusion]:
        """Keep the anchors and what predict needs besides; learn weights and embedding from the graphs of all views."""
        self._anchors, nearest = link(views, points, self.n_neighbors)
        self._n_links = nearest[0].anchors.shape[1]
        self._spreads = [a.mean_distance(x) or 1.0 for a, x in zip(self._anchors, views.values(), strict=True)]
        graphs = [salient_graph(*view, len(self._anchors[0])) for view in zip(nearest, self._spreads, strict=True)]
        weighting = WEIGHTINGS[self.weighting]
        return learn_weights(
            graphs, self.n_clusters, self.weight_exponent, weighting, max_iter=self.max_iter, tol=self.tol
        )

    def predict(self, X: Any) -> Labels:
        """Return the cluster that most of each sample's nearest anchors have.

        Parameters
        ----------
        X : views, as in `as_views`
            Any samples; each gets the same cluster alone and in any company. They are read in blocks of rows.
        """
        views = self._views_to_predict(X)
        labels = np.empty(views.n_samples, dtype=np.int64)
        for start in range(0, views.n_samples, _PREDICT_ROWS):
            rows = slice(start, start + _PREDICT_ROWS)
            block = views.take(rows).values()
            nearest = [a.nearest(x, self._n_votes) for a, x in zip(self._anchors, block, strict=True)]
            labels[rows] = vote(nearest, self._spreads, self.anchor_labels_)
        return labels

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        named = tuple(anchors.name for anchors in self._anchors) == self.view_names_
        require(named, "expected the anchors of each view, in the order of the views")
        require(self._n_votes <= len(self.anchor_labels_), "expected at most one vote per anchor")

    def _check_parameters(self) -> None:
        self._check_loop()
        if not (isinstance(self.n_neighbors, Integral) and self.n_neighbors >= 1):
            raise InputError(f"n_neighbors={self.n_neighbors!r} must be a whole number of at least 1")
        if not (isinstance(self.weight_exponent, Real) and 1 < self.weight_exponent < np.inf):
            raise InputError(
                f"weight_exponent={self.weight_exponent!r} must be a number above 1; near 1 it selects one view"
            )
        if not (isinstance(self.weighting, str) and self.weighting in WEIGHTINGS):
            raise InputError(f"weighting={self.weighting!r} is unknown; use one of {', '.join(WEIGHTINGS)}")

    def _count_anchors(self, n_samples: int) -> int:
        least = min(self.n_clusters + 1, n_samples)
        if isinstance(self.n_anchors, str) and self.n_anchors == "auto":
            return max(least, min(int(5 * np.sqrt(n_samples)), n_samples // 2, 1000))
        if not (isinstance(self.n_anchors, Integral) and least <= int(self.n_anchors) <= n_samples):
            raise InputError(
                f'n_anchors={self.n_anchors!r} must be "auto" or a whole number from {least} (n_clusters + 1) to '
                f"n_samples={n_samples}"
            )
        return int(self.n_anchors)
