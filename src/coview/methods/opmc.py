"""OPMC: one-pass multi-view clustering, k-means with one set of labels and centroids in a subspace of every view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from coview.core.alternate import Alternation, alternate, steady
from coview.core.assign import Labels
from coview.core.linalg import polar
from coview.errors import InputError
from coview.methods.base import MultiViewClusterer, ViewWeights
from coview.methods.opmc_rows import SCALINGS, Scaling, StandardisedRows, learn_scaling
from coview.rows import row_blocks
from coview.state import ByView, FloatArray, ListByView, Size
from coview.views import Array, Views

# Squared distances that differ by less than this part of what they are computed from are equal: far above rounding,
# far below anything meaningful. So a tie is a tie in any batch, and a row gets the same label alone and among others.
_TIE = 1e-12


@dataclass(frozen=True)
class Pass:
    """What one pass over the unknowns leaves; lists are in the order of the views."""

    labels: Labels  # Y
    latent_centroids: Sequence[Array]  # C_v, (n_clusters, n_clusters)
    centroids: Sequence[Array]  # C_v W_v, (n_clusters, n_features); the labels are those of the nearest one
    weights: Array  # β_v
    losses: Array  # ℓ_v = ‖X_v − Y C_v W_v‖²

    @property
    def objective(self) -> float:
        return float(self.weights @ self.losses)


def projection(latent_centroids: Array, sums: Array) -> Array:
    """W_v: the matrix with orthonormal rows nearest to C_vᵀ (Yᵀ X_v), with the sums Yᵀ X_v of each cluster.

    That product loses rank when two clusters have just had the same mean. Then W_v is not unique, and the cluster means
    need not lie in its span, but they do when it is taken inside an orthonormal basis of their span. With fewer
    features than clusters no orthonormal rows exist: the columns are orthonormal then, as in the authors' program.
    """
    basis, coordinates = np.linalg.qr(sums.T)
    factor: Array = polar(latent_centroids.T @ coordinates.T) @ basis.T
    return factor


def latent_means(sums: Array, counts: Array, projection: Array) -> Array:
    """C_v: the cluster means in the latent space; an empty cluster has mean zero."""
    means: Array = sums / np.maximum(counts, 1)[:, None]
    return means @ projection.T


def nearest(views: Sequence[StandardisedRows], centroids: Sequence[Array], weights: Array) -> tuple[Labels, Array]:
    """Y: the cluster with the least Σ_v β_v ‖x_v − (C_v W_v)_j‖², the first of equals; and that distance per view."""
    n, k = views[0].n_rows, len(centroids[0])
    squared_norms = np.column_stack([x.squared_norms for x in views])
    squared_lengths = np.column_stack([np.einsum("ij,ij->i", a, a) for a in centroids])
    row_sizes, centroid_sizes = np.sqrt(squared_norms @ weights), np.sqrt(squared_lengths @ weights)
    labels, distances = np.empty(n, dtype=np.int64), squared_norms.copy()
    for rows in row_blocks(n, len(views) * k):
        # ‖x‖² is the same for all clusters: what is left is compared, and the larger is the nearer.
        per_view = [2 * x.products(rows, a) - q for x, a, q in zip(views, centroids, squared_lengths.T, strict=True)]
        nearness = sum(weight * part for weight, part in zip(weights, per_view, strict=True))
        error = _TIE * centroid_sizes * (row_sizes[rows, None] + centroid_sizes)
        labels[rows] = np.argmax(nearness + error >= (nearness - error).max(axis=1, keepdims=True), axis=1)
        for v, part in enumerate(per_view):
            distances[rows, v] -= np.take_along_axis(part, labels[rows, None], axis=1)[:, 0]
    distances[distances <= 4 * _TIE * squared_norms] = 0.0  # rounding alone, of a sample on its centroid
    return labels, distances


def assign(views: Sequence[StandardisedRows], centroids: list[Array], weights: Array) -> tuple[Labels, Array]:
    """Y, with the centroids of empty clusters moved (in place) to the samples that are farthest from their own."""
    k = len(centroids[0])
    labels, distances = nearest(views, centroids, weights)
    for _ in range(k):
        empty = np.flatnonzero(np.bincount(labels, minlength=k) == 0)
        if len(empty) == 0:
            break
        farness = distances @ weights
        farthest = np.argsort(-farness, kind="stable")[: len(empty)]
        farthest = farthest[farness[farthest] > 0]
        if len(farthest) == 0:  # every sample lies on its centroid
            break
        for v, x in enumerate(views):
            centroids[v][empty[: len(farthest)]] = x.take(farthest)
        labels, distances = nearest(views, centroids, weights)
    return labels, distances


def learnt_weights(losses: Array, totals: Array) -> Array:
    """β_v = (ℓ_v⁻¹ / Σ_u ℓ_u⁻¹)², which minimises Σ_v β_v ℓ_v over β = α² with Σ_v α_v = 1.

    Views without loss share all the weight. A constant one (total ‖X_v‖² = 0) is not among them: it tells nothing.
    """
    telling = totals > 0 if totals.any() else np.ones(len(totals), dtype=bool)
    shares = (telling & (losses == 0)).astype(np.float64)
    if not shares.any():
        shares[telling] = losses[telling].min() / losses[telling]
    weights: Array = (shares / shares.sum()) ** 2
    return weights


def one_pass(
    views: Sequence[StandardisedRows], labels: Labels, latent_centroids: Sequence[Array], weights: Array
) -> Pass:
    """Update W_v, C_v and Y once, in this order."""
    counts = np.bincount(labels, minlength=len(latent_centroids[0]))
    members = sp.csc_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)), shape=(len(counts), len(labels)))
    latent, centroids = [], []
    for x, previous in zip(views, latent_centroids, strict=True):
        sums = x.sums(members)
        w = projection(previous, sums)
        latent.append(latent_means(sums, counts, w))
        centroids.append(latent[-1] @ w)
    labels, distances = assign(views, centroids, weights)
    return Pass(labels, latent, centroids, weights, distances.sum(axis=0))


def refine(
    views: Sequence[StandardisedRows],
    labels: Labels,
    latent_centroids: Sequence[Array],
    weigh: Callable[[Array], Array],
    *,
    max_iter: int,
    tol: float,
) -> Alternation[Pass]:
    """Repeat passes from these labels; `weigh` gives the weights of a pass from the losses of the one before."""

    def step(previous: Pass) -> tuple[Pass, float]:
        # The weights come first, not last: the cycle is the same, and the labels go with the weights.
        after = one_pass(views, previous.labels, previous.latent_centroids, weigh(previous.losses))
        return after, after.objective

    losses = np.ones(len(views))  # not known yet: all views weigh the same
    start = Pass(labels, latent_centroids, [], weigh(losses), losses)
    return alternate(step, start, max_iter=max_iter, settled=steady(tol))


def random_labels(views: Sequence[StandardisedRows], n_clusters: int, rng: np.random.Generator) -> Labels:
    """Draw every label by itself, as the authors do, but leave no cluster empty."""
    n = views[0].n_rows
    labels = rng.integers(n_clusters, size=n)
    labels[rng.choice(n, n_clusters, replace=False)] = np.arange(n_clusters)
    return labels


def spread_out_labels(views: Sequence[StandardisedRows], n_clusters: int, rng: np.random.Generator) -> Labels:
    """Draw samples far from each other (greedy k-means++ on all views); every sample joins the nearest of them."""
    squared_norms = np.sum([x.squared_norms for x in views], axis=0)
    n, rounding = len(squared_norms), _TIE * squared_norms.sum()
    chances, closest = np.ones(n), np.full(n, np.inf)
    seeds = []
    for _ in range(n_clusters):
        heaped = np.cumsum(chances)
        drawn = np.searchsorted(heaped, rng.random(2 + int(np.log(n_clusters))) * heaped[-1], side="right")
        drawn = np.minimum(drawn, n - 1)
        products = np.sum([x.products(slice(None), x.take(drawn)) for x in views], axis=0)
        distances = np.maximum(squared_norms[:, None] + squared_norms[drawn] - 2 * products, 0.0)
        left = np.minimum(distances, closest[:, None]).sum(axis=0)
        best = np.argmax(left <= left.min() + rounding)  # the first of equals
        seeds.append(drawn[best])
        chances = closest = np.minimum(distances[:, best], closest)
    labels, _ = nearest(views, [x.take(np.array(seeds)) for x in views], np.ones(len(views)))
    return labels


STARTS: Mapping[str, Callable[[Sequence[StandardisedRows], int, np.random.Generator], Labels]] = {
    "k-means++": spread_out_labels,
    "random": random_labels,
}


class OPMC(MultiViewClusterer):
    """Cluster several views, large ones too, by labels and centroids that are found together.

    The labels Y (one-hot rows) and, for each view, centroids C_v in a latent space of n_clusters dimensions with its
    orthonormal map W_v minimise

        Σ_v β_v ‖X_v − Y C_v W_v‖².

    The latent space has room for all cluster means, so with fixed weights β_v = 1/V this is k-means on the standardised
    views side by side. With learn_weights=True the views' weights are unknowns as well, which is a different method.
    One pass costs O(n Σ_v d_v n_clusters) time. Dense views are copied once, in float64, when they are standardised;
    sparse views stay sparse. Beyond that, memory is O(n V) and does not depend on n_init.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    normalize : "feature", "sample" or None
        Standardise every column over the samples, every sample over its own columns of a view, or nothing. The
        authors' program does "sample", which tells little about a view of a few columns.
    init : "k-means++" or "random"
        First labels: by samples drawn far from each other, or drawn at random as the authors do.
    n_init : int
        Number of starts; the one with the lowest objective is kept.
    learn_weights : bool
        Learn the weights, β_v = (ℓ_v⁻¹ / Σ_u ℓ_u⁻¹)² with ℓ_v the loss of view v, instead of 1/V each.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.
    max_iter : int
        Most passes of one start.
    tol : float
        A start ends when a pass changes the objective by less than this part of it.
    random_state : int, Generator, RandomState or None
        Source of randomness of the starts.

    Attributes
    ----------
    labels_ : (n_samples,) clusters, numbered by decreasing size
    centroids_ : by view name, C_v W_v in the units of the view (n_clusters, n_features); with normalize="sample" in
        those of the standardised samples
    view_weights_ : by view name, β_v
    objective_ : (n_iter_,) objective after every pass of the best start
    n_iter_ : number of its passes
    view_names_, view_n_features_, n_features_in_, feature_names_in_

    References
    ----------
    Liu, Liu, Yang, Liu, Wang, Liang, Shi: One-pass multi-view clustering for large-scale data, ICCV 2021.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], [30, 20, 10])
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = OPMC(n_clusters=3, random_state=0).fit({"text": text, "image": image})
    >>> np.bincount(model.labels_)
    array([30, 20, 10])
    >>> model.predict({"text": text[:2], "image": image[:2]})
    array([0, 0])
    """

    objective_: Annotated[Array, FloatArray("iterations")]
    n_iter_: Annotated[int, Size("iterations")]
    view_weights_: ViewWeights
    centroids_: ByView[Annotated[Array, FloatArray("clusters", "features")]]
    _scalings: ByView[Scaling]
    _weights: Annotated[Array, FloatArray("views", least=0)]
    _centroids: ListByView[Annotated[Array, FloatArray("clusters", "features")]]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        normalize: str | None = "feature",
        init: str = "k-means++",
        n_init: int = 10,
        learn_weights: bool = False,
        views: Any = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.normalize = normalize
        self.init = init
        self.n_init = n_init
        self.learn_weights = learn_weights
        self.views = views
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        self._check_loop()
        self._check_settings()
        rng = self._generator()
        self._scalings = {name: learn_scaling(x, self.normalize) for name, x in views.items()}
        best = self._best_start(self._standardised(views), rng)
        self._keep_loop(best)
        order = self._keep_labels(best.state.labels)
        self._centroids = [centroids[order] for centroids in best.state.centroids]
        self._weights = best.state.weights
        self.view_weights_ = dict(zip(views.names, self._weights.tolist(), strict=True))
        self.centroids_ = {
            name: self._scalings[name].restore(centroids)
            for name, centroids in zip(views.names, self._centroids, strict=True)
        }

    def _check_settings(self) -> None:
        if self.normalize is not None and not (isinstance(self.normalize, str) and self.normalize in SCALINGS):
            raise InputError(f"normalize={self.normalize!r} must be {', '.join(map(repr, SCALINGS))} or None")
        if not (isinstance(self.init, str) and self.init in STARTS):
            raise InputError(f"init={self.init!r} must be {' or '.join(map(repr, STARTS))}")
        if not (isinstance(self.n_init, Integral) and self.n_init >= 1):
            raise InputError(f"n_init={self.n_init!r} must be a whole number of at least 1")
        if not isinstance(self.learn_weights, (bool, np.bool_)):
            raise InputError(f"learn_weights={self.learn_weights!r} must be True or False")

    def _standardised(self, views: Views) -> list[StandardisedRows]:
        with np.errstate(over="ignore", invalid="ignore"):
            standardised = [self._scalings[name](x) for name, x in views.items()]
            for name, x in zip(views.names, standardised, strict=True):
                if not np.isfinite(x.squared_norms).all():
                    raise InputError(f"view {name!r} has numbers too large to compute distances with; scale it down")
        return standardised

    def _best_start(self, views: list[StandardisedRows], rng: np.random.Generator) -> Alternation[Pass]:
        totals = np.array([x.squared_norms.sum() for x in views])
        equal = np.full(len(views), 1 / len(views))
        weigh = partial(learnt_weights, totals=totals) if self.learn_weights else lambda losses: equal
        # The authors draw C_v at random; whatever it is, the same centroids come out of the first pass.
        latent_centroids = [np.eye(self.n_clusters)] * len(views)

        def start() -> Alternation[Pass]:
            labels = STARTS[self.init](views, self.n_clusters, rng)
            return refine(views, labels, latent_centroids, weigh, max_iter=self.max_iter, tol=self.tol)

        best = start()
        for _ in range(1, self.n_init):
            other = start()
            # Starts that end alike differ by rounding: the first of them stays, whatever form the views came in.
            if other.state.objective < best.state.objective - _TIE * (other.state.weights @ totals):
                best = other
        return best

    def predict(self, X: Any) -> Labels:
        """Return the cluster whose centroids are nearest; a sample gets the same label alone and in any batch.

        Parameters
        ----------
        X : views, as in `as_views`
        """
        views = self._views_to_predict(X)
        labels = np.empty(views.n_samples, dtype=np.int64)
        width = self.n_clusters * len(views) + sum(x.shape[1] for x in views.values() if not sp.issparse(x))
        for rows in row_blocks(views.n_samples, width):
            labels[rows], _ = nearest(self._standardised(views.take(rows)), self._centroids, self._weights)
        return labels
