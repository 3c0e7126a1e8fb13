"""MVSCBP: large-scale multi-view spectral clustering through bipartite graphs of samples and salient points."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from coview.base.parameters import check_above, check_choice, check_integer, is_integer
from coview.base.progress import Progress
from coview.base.runtime import Workers, one_sklearn_thread
from coview.core.alternate import Alternation, alternate, steady
from coview.core.assign import Directions, Labels, label_and_tie, new_numbers, number_by_size
from coview.data.as_views import Layout
from coview.data.rows import l2_normalize, largest_value, safe_unit
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.errors import InputError
from coview.methods.anchors import AnchorPoints, NearestAnchors
from coview.methods.bipartite import Triplets, leading_triplets, weighted_graph
from coview.model.clusterer import PREDICTS, Clusterer
from coview.model.fitting import (
    Seed,
    as_generator,
    check_iteration_limits,
    note_on_convergence,
    note_on_fewer,
    objective_of,
)
from coview.model.model import Model, Predictor, Renumbered

_ROWS_PER_POINT = 10  # samples of k-means for each salient point; more cost much and change little
_SMALLEST = 1e-12  # traces and degrees below are replaced by this value
_PREDICT_ROWS = 2**14
_DECIMALS = 9  # of the distances that decide between equal votes
_FAR = 1e290  # larger distances are treated as equal


def salient_points(views: Views, count: int, rng: np.random.Generator) -> dict[str, Matrix]:
    """Return the centres of k-means on the concatenated views, split into views; fewer if there are duplicate rows."""
    from sklearn.cluster import KMeans

    n_drawn = min(views.n_samples, _ROWS_PER_POINT * count)
    drawn = views.take(np.sort(rng.choice(views.n_samples, n_drawn, replace=False)))
    sparse = any(sp.issparse(x) for x in drawn.values())
    together = sp.hstack(list(drawn.values()), format="csr") if sparse else np.hstack(list(drawn.values()))
    # Random starts, because k-means++ would cost more than the rest if there are many centres.
    unit = safe_unit(max(map(largest_value, drawn.values())), together.dtype)
    together = together if unit == 1 else together.astype(np.float64) * unit
    kmeans = KMeans(count, init="random", n_init=1, max_iter=30, random_state=int(rng.integers(2**31)))
    # One thread, so that sums have one order.
    with one_sklearn_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct samples than centres
        centres = kmeans.fit(together).cluster_centers_ / unit
    # Centres of duplicate rows differ by rounding; one of them is kept. + 0.0 makes -0.0 and 0.0 one number.
    largest = np.abs(centres).max(axis=0)
    rounded = np.round(centres / np.where(largest > 0, largest, 1.0), 12) + 0.0
    centres = centres[np.unique(rounded, axis=0, return_index=True)[1]]
    parts = np.split(centres, np.cumsum(list(views.n_features.values()))[:-1], axis=1)
    named = zip(views.items(), parts, strict=True)
    return {name: sp.csr_array(part) if sp.issparse(x) else part for (name, x), part in named}


def link(views: Views, points: Mapping[str, Matrix], count: int) -> tuple[list[AnchorPoints], list[NearestAnchors]]:
    """Return the salient points as anchors, and the nearest `count` of them to each sample in each view.

    Points that are not among the nearest of any sample are left out, because no edge of the graph leads to them.
    """
    anchors = [AnchorPoints(name, points[name]) for name in views]
    nearest = [of_view.nearest(x, count) for of_view, x in zip(anchors, views.values(), strict=True)]
    used = np.unique(np.concatenate([found.anchors.ravel() for found in nearest]))
    if len(used) < len(anchors[0]):
        return link(views, {name: x[used] for name, x in points.items()}, count)
    return anchors, nearest


def salient_graph(nearest: NearestAnchors, spread: float, n_anchors: int) -> Matrix:
    """Return Z_v: weights exp(-distance / (2 spread)) with sum 1 for each sample, divided by √ of each anchor's sum."""
    # Distances are taken relative to the nearest anchor: scaling cancels the difference, and nothing underflows.
    distances = nearest.distances - nearest.distances.min(axis=1, keepdims=True)
    weights = np.exp(-distances / (2 * spread))
    z = nearest.graph(weights / weights.sum(axis=1, keepdims=True), n_anchors)
    z.data /= np.sqrt(np.maximum(z.sum(axis=0), _SMALLEST))[z.indices]
    return z


def fused_graph(graphs: Sequence[Matrix], weights: Array, exponent: float) -> Matrix:
    """Return Z = Σ_v α_v^r Z_v, with the factors scaled to sum 1 because a large r would underflow."""
    factors = (weights / weights.max()) ** exponent
    return weighted_graph(graphs, factors / factors.sum())


def laplacian_traces(graphs: Sequence[Matrix], embedding: Triplets) -> Array:
    """Return h_v = tr(Gᵀ L_v G) = k - tr(Uᵀ Z_v V) of each Laplacian, G = [U; V] / √2; small if view v agrees."""
    u, _, v = embedding
    return np.array([u.shape[1] - np.vdot(u, z @ v) for z in graphs])


def affinity_traces(graphs: Sequence[Matrix], embedding: Triplets) -> Array:
    """Return h_v = ‖Z_vᵀ U‖² with L2-normalised rows of U, as in the authors' program; large if view v agrees."""
    return np.array([np.square(z.T @ embedding.left).sum() for z in graphs])


def without_trivial(z: Matrix, k: int, start: Array | None = None) -> Triplets:
    """Return the k triplets after the first, with L2-normalised rows, as in the authors' program."""
    left, values, right = leading_triplets(z, k + 1, start)
    return Triplets(l2_normalize(left[:, 1:]), values[1:], l2_normalize(right[:, 1:]))


def until_it_falls_less(tol: float) -> Callable[[Sequence[float]], bool]:
    """Return the authors' stopping rule: the objective falls by less than tol, or rises."""
    return lambda trace: len(trace) > 1 and trace[-2] - trace[-1] < tol


class Weighting(NamedTuple):
    """A rule for the weights: the embedding of the fused graph, the trace of each view, and the stopping rule."""

    embed: Callable[[Matrix, int, Array | None], Triplets]
    traces: Callable[[Sequence[Matrix], Triplets], Array]
    settled: Callable[[float], Callable[[Sequence[float]], bool]]


WEIGHTINGS: Mapping[str, Weighting] = {
    "laplacian": Weighting(leading_triplets, laplacian_traces, steady),
    "affinity": Weighting(without_trivial, affinity_traces, until_it_falls_less),
}


class WeightedEmbedding(NamedTuple):
    """Weights α of the views, and the embedding G of samples and anchors that they were learnt from."""

    weights: Array
    embedding: Triplets


def learn_embedding(
    graphs: Sequence[Matrix], n_clusters: int, exponent: float, weighting: Weighting, *, max_iter: int, tol: float
) -> Alternation[WeightedEmbedding]:
    """Alternate between G, the embedding of the fused graph, and α_v ∝ h_v^(1 / (1 - r)), from equal weights."""

    def step(state: WeightedEmbedding) -> tuple[WeightedEmbedding, float]:
        embedding = weighting.embed(fused_graph(graphs, state.weights, exponent), n_clusters, state.embedding.right)
        traces = np.maximum(weighting.traces(graphs, embedding), _SMALLEST)
        weights = (traces / traces.min()) ** (1 / (1 - exponent))
        weights /= weights.sum()
        return WeightedEmbedding(weights, embedding), float(weights**exponent @ traces)

    n, m = graphs[0].shape
    nothing = Triplets(np.empty((n, 0)), np.empty(0), np.empty((m, 0)))
    start = WeightedEmbedding(np.full(len(graphs), 1 / len(graphs)), nothing)
    return alternate(step, start, max_iter=max_iter, settled=weighting.settled(tol))


def vote(nearest: Sequence[NearestAnchors], spreads: Sequence[float], anchor_labels: Labels) -> Labels:
    """Return the most frequent cluster among a sample's nearest anchors in all views; of equals, the nearer one.

    Distances to the anchors of a cluster are added over the views, each in units of its spread. A second column is 1
    if another cluster is as frequent and as near, otherwise 0; (n_samples, 2).
    """
    n, k = len(nearest[0].anchors), int(anchor_labels.max()) + 1
    votes, distances = np.zeros((n, k)), np.zeros((n, k))
    for (anchors, squared), spread in zip(nearest, spreads, strict=True):
        places = (k * np.arange(n)[:, None] + anchor_labels[anchors]).ravel()
        votes += np.bincount(places, minlength=n * k).reshape(n, k)
        with np.errstate(over="ignore"):
            relative = np.minimum(squared.ravel() / spread, _FAR)
        distances += np.bincount(places, weights=relative, minlength=n * k).reshape(n, k)
    most = votes == votes.max(axis=1, keepdims=True)
    return label_and_tie(np.where(most, -np.round(distances, _DECIMALS), -np.inf))


class MVSCBP(Clusterer):
    """Cluster many samples of several views through sparse graphs between the samples and a few salient points.

    The salient points (anchors) are centres of k-means on all views. In every view v, edges link each sample to its
    nearest anchors. The shared embedding G of samples and anchors and the weights α of the views solve

        min Σ_v α_v^r tr(Gᵀ L_v G)   with   GᵀG = I, α ≥ 0, Σ_v α_v = 1,

    where L_v is the normalised Laplacian of view v's graph, and k-means on the directions of G gives the clusters.
    The objective falls in every iteration. New samples get the most frequent cluster among their nearest anchors; for
    a training sample between clusters this may differ from its label. Fitting takes O(n m Σ_v d_v) time for m anchors,
    linear in n, and O(n V n_neighbors) memory in addition to the anchors and one block of rows.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_anchors : "auto" or int
        Number of salient points, more than n_clusters. "auto" is 5 √n_samples, but at most 1000 and half of the
        samples.
    n_neighbors : int
        Number of anchors that each sample is linked to in each view.
    weight_exponent : float above 1
        The paper's r. With h_v the trace of view v in the objective, the fused graph weights the view by
        α_v^r ∝ h_v^(-r / (r - 1)): near 1 a single view has all the weight, and for large r the weight is 1 / h_v.
    weighting : "laplacian" or "affinity"
        The paper's weights, or those of the authors' program, in which views that agree better have less weight.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    max_iter, tol : int, float
        Stop after max_iter iterations, or if the relative change of the objective is at most tol (with "affinity", if
        the objective falls by less than tol).
    random_state : int, Generator, RandomState or None
        Seed of both k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.
    view_weights_ : dict
        α, by view name.
    anchors_ : dict
        The salient points, arrays of shape (m, n_features) by view name.
    anchor_labels_ : array of shape (m,)
        Clusters of the anchors.
    embedding_ : array of shape (n_samples, n_clusters)
        The rows of G that belong to samples.
    objective_, n_iter_ : array of shape (n_iter_,), int
        Objective after each iteration, and number of iterations.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    SFMC : Fused graph with exactly as many components as clusters.
    OPMC : k-means with one set of labels for all views.

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

    abilities = PREDICTS
    objective_: Array
    n_iter_: int
    view_weights_: dict[str, float]
    embedding_: Array
    anchors_: dict[str, Matrix]
    anchor_labels_: Labels

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        n_anchors: int | Literal["auto"] = "auto",
        n_neighbors: int = 5,
        weight_exponent: float = 10**0.7,
        weighting: str = "laplacian",
        views: Layout = None,
        max_iter: int = 50,
        tol: float = 1e-6,
        random_state: Seed = None,
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

    def fit_model(self, views: Views, report: Progress) -> Model:
        k, rng = int(self.n_clusters), as_generator(self.random_state)
        check_iteration_limits(self)
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_above("weight_exponent", self.weight_exponent, 1)
        check_choice("weighting", self.weighting, WEIGHTINGS)
        points = salient_points(views, self._count_anchors(views.n_samples), rng)
        weighting = WEIGHTINGS[self.weighting]
        with Workers(1):  # many small products, for which BLAS is faster in one thread
            anchors, nearest = link(views, points, self.n_neighbors)
            spreads = [each.mean_distance(x) or 1.0 for each, x in zip(anchors, views.values(), strict=True)]
            graphs = [salient_graph(*view, len(anchors[0])) for view in zip(nearest, spreads, strict=True)]
            loop = learn_embedding(graphs, k, self.weight_exponent, weighting, max_iter=self.max_iter, tol=self.tol)
        embedding, _, anchor_embedding = loop.state.embedding
        clusters = Directions().fit(np.vstack([embedding, anchor_embedding]), k, rng)
        labels, order = number_by_size(clusters.assign(embedding))
        # Anchors and new samples are assigned only to clusters that have training samples.
        anchor_labels = replace(clusters, centres=clusters.centres[order]).assign(anchor_embedding)
        # With more votes than a cluster has anchors, other clusters would outvote it even at its centre.
        n_votes = min(nearest[0].anchors.shape[1], int(np.unique(anchor_labels, return_counts=True)[1].min()))
        learnt = {
            **objective_of(loop),
            "view_weights_": dict(zip(views.names, loop.state.weights.tolist(), strict=True)),
            "embedding_": embedding,
            "anchor_labels_": anchor_labels,
            "anchors_": {each.name: each.points for each in anchors},
        }
        predictor = AnchorPredictor(tuple(anchors), tuple(spreads), anchor_labels, n_votes)
        notes = (*note_on_convergence(self, loop), *note_on_fewer(len(order), k))
        return Model(labels, learnt, predictor, notes=notes)

    def _count_anchors(self, n_samples: int) -> int:
        least = min(int(self.n_clusters) + 1, n_samples)
        if isinstance(self.n_anchors, str) and self.n_anchors == "auto":
            return max(least, min(int(5 * np.sqrt(n_samples)), n_samples // 2, 1000))
        if not (is_integer(self.n_anchors) and least <= self.n_anchors <= n_samples):
            raise InputError(
                f"n_anchors={self.n_anchors!r}: expected 'auto' or an integer from {least} (n_clusters + 1) to "
                f"n_samples={n_samples}"
            )
        return int(self.n_anchors)


@dataclass(frozen=True)
class AnchorPredictor(Predictor):
    """The most frequent cluster among the nearest anchors of a sample in all views."""

    anchors: tuple[AnchorPoints, ...]
    spreads: tuple[float, ...]
    anchor_labels: Labels
    n_votes: int

    @property
    def n_clusters(self) -> int:
        return 1 + int(self.anchor_labels.max())

    def labels_and_ties(self, views: Views) -> Labels:
        found = np.empty((views.n_samples, 2), dtype=np.int64)
        for start in range(0, views.n_samples, _PREDICT_ROWS):
            rows = slice(start, start + _PREDICT_ROWS)
            block = views.take(rows).values()
            nearest = [each.nearest(x, self.n_votes) for each, x in zip(self.anchors, block, strict=True)]
            found[rows] = vote(nearest, self.spreads, self.anchor_labels)
        return found

    def renumbered(self, order: Labels, labels: Labels, learnt: Mapping[str, Any]) -> Renumbered:
        numbers = new_numbers(order, 1 + int(max(self.anchor_labels.max(), labels.max())))[1]
        changed = numbers[self.anchor_labels]
        return Renumbered(replace(self, anchor_labels=changed), numbers[labels], {"anchor_labels_": changed})
