"""OPMC: one-pass multi-view clustering, k-means with joint labels and centroids in a subspace of every view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.base.parameters import check_boolean, check_choice, check_integer
from coview.base.progress import Progress
from coview.core.alternate import Alternation, alternate, steady
from coview.core.assign import Labels, new_numbers, number_by_size
from coview.core.linalg import polar
from coview.data.as_views import Layout
from coview.data.rows import row_blocks, squared_norms
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError
from coview.methods.opmc_rows import SCALINGS, Scaling, StandardisedRows, learn_scaling
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

# Squared distances are equal if they differ by less than this fraction of their terms, which is far above rounding
# errors and far below real differences. So ties are the same in any batch, and a row gets the same label alone.
_TIE = 1e-12


@dataclass(frozen=True)
class Pass:
    """The unknowns after one pass; sequences are in the order of the views."""

    labels: Labels  # Y
    latent_centroids: Sequence[Array]  # C_v, (n_clusters, n_clusters)
    centroids: Sequence[Array]  # C_v W_v, (n_clusters, n_features); the labels are those of the nearest one
    weights: Array  # β_v
    losses: Array  # ℓ_v = ‖X_v − Y C_v W_v‖²

    @property
    def objective(self) -> float:
        return float(self.weights @ self.losses)


def projection(latent_centroids: Array, sums: Array) -> Array:
    """Return W_v, the matrix with orthonormal rows nearest to C_vᵀ (Yᵀ X_v), with the sums Yᵀ X_v of each cluster.

    The product is singular if two clusters have the same mean. Then W_v is not unique, and it is taken in an
    orthonormal basis of the cluster means, so that its span contains them. With fewer features than clusters the
    columns are orthonormal instead of the rows, as in the authors' program.
    """
    basis, coordinates = np.linalg.qr(sums.T)
    return polar(latent_centroids.T @ coordinates.T) @ basis.T


def nearest_centroids(
    views: Sequence[StandardisedRows], centroids: Sequence[Array], weights: Array
) -> tuple[Labels, Array, Array]:
    """Return Y, the cluster with the least Σ_v β_v ‖x_v − (C_v W_v)_j‖² (the first of equals), and its distances.

    The third array says which samples have several such clusters.
    """
    n, k = views[0].n_rows, len(centroids[0])
    of_rows = np.column_stack([x.squared_norms for x in views])
    of_centroids = np.column_stack([squared_norms(a) for a in centroids])
    row_sizes, centroid_sizes = np.sqrt(of_rows @ weights), np.sqrt(of_centroids @ weights)
    labels, distances, tied = np.empty(n, dtype=np.int64), of_rows.copy(), np.empty(n, dtype=bool)
    for rows in row_blocks(n, len(views) * k):
        # ‖x‖² is the same for all clusters; of the remaining terms, larger means nearer.
        per_view = [2 * x.products(rows, a) - q for x, a, q in zip(views, centroids, of_centroids.T, strict=True)]
        nearness = sum(weight * part for weight, part in zip(weights, per_view, strict=True))
        error = _TIE * centroid_sizes * (row_sizes[rows, None] + centroid_sizes)
        nearest = nearness + error >= (nearness - error).max(axis=1, keepdims=True)
        labels[rows], tied[rows] = nearest.argmax(axis=1), np.count_nonzero(nearest, axis=1) > 1
        for v, part in enumerate(per_view):
            distances[rows, v] -= np.take_along_axis(part, labels[rows, None], axis=1)[:, 0]
    distances[distances <= 4 * _TIE * of_rows] = 0.0  # rounding errors of a sample on its centroid
    return labels, distances, tied


def assign(views: Sequence[StandardisedRows], centroids: list[Array], weights: Array) -> tuple[Labels, Array]:
    """Return Y and distances; centroids of empty clusters move (in place) to the samples farthest from their own."""
    k = len(centroids[0])
    labels, distances, _ = nearest_centroids(views, centroids, weights)
    for _ in range(k):
        empty = np.flatnonzero(np.bincount(labels, minlength=k) == 0)
        if len(empty) == 0:
            break
        total = distances @ weights
        farthest = np.argsort(-total, kind="stable")[: len(empty)]
        farthest = farthest[total[farthest] > 0]
        if len(farthest) == 0:  # every sample lies on its centroid
            break
        for v, x in enumerate(views):
            centroids[v][empty[: len(farthest)]] = x.take(farthest)
        labels, distances, _ = nearest_centroids(views, centroids, weights)
    return labels, distances


def learnt_weights(losses: Array, totals: Array) -> Array:
    """Return β_v = (ℓ_v⁻¹ / Σ_u ℓ_u⁻¹)², which minimises Σ_v β_v ℓ_v over β = α² with Σ_v α_v = 1.

    If some views have no loss, all weight is divided between them. A constant view (total ‖X_v‖² = 0) has weight zero,
    because it is uninformative.
    """
    informative = totals > 0 if totals.any() else np.ones(len(totals), dtype=bool)
    alpha = (informative & (losses == 0)).astype(np.float64)
    if not alpha.any():
        alpha[informative] = losses[informative].min() / losses[informative]
    return (alpha / alpha.sum()) ** 2


def one_pass(
    views: Sequence[StandardisedRows], labels: Labels, latent_centroids: Sequence[Array], weights: Array
) -> Pass:
    """Return the unknowns after one update of W_v, C_v and Y, in this order."""
    counts = np.bincount(labels, minlength=len(latent_centroids[0]))
    members = sp.csc_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)), shape=(len(counts), len(labels)))
    latent, centroids = [], []
    for x, previous in zip(views, latent_centroids, strict=True):
        sums = x.sums(members)
        w = projection(previous, sums)
        latent.append((sums / np.maximum(counts, 1)[:, None]) @ w.T)  # means; those of empty clusters are zero
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
    """Return the unknowns after passes from these labels; `weigh` gives weights from the losses of the last pass."""

    def step(previous: Pass) -> tuple[Pass, float]:
        # The weights are updated first, not last, so that the labels belong to the final weights.
        after = one_pass(views, previous.labels, previous.latent_centroids, weigh(previous.losses))
        return after, after.objective

    losses = np.ones(len(views))  # before the first pass all views have the same weight
    start = Pass(labels, latent_centroids, [], weigh(losses), losses)
    return alternate(step, start, max_iter=max_iter, settled=steady(tol))


def random_labels(views: Sequence[StandardisedRows], n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return labels drawn independently, as the authors do, but without empty clusters."""
    n = views[0].n_rows
    labels = rng.integers(n_clusters, size=n)
    labels[rng.choice(n, n_clusters, replace=False)] = np.arange(n_clusters)
    return labels


def spread_out_labels(views: Sequence[StandardisedRows], n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return the nearest of some distant samples for each sample (greedy k-means++ on all views)."""
    norms = np.sum([x.squared_norms for x in views], axis=0)
    n, rounding = len(norms), _TIE * norms.sum()
    chances, closest = np.ones(n), np.full(n, np.inf)
    seeds = []
    for _ in range(n_clusters):
        cumulated = np.cumsum(chances)
        drawn = np.searchsorted(cumulated, rng.random(2 + int(np.log(n_clusters))) * cumulated[-1], side="right")
        drawn = np.minimum(drawn, n - 1)
        products = np.sum([x.products(slice(None), x.take(drawn)) for x in views], axis=0)
        distances = np.maximum(norms[:, None] + norms[drawn] - 2 * products, 0.0)
        left = np.minimum(distances, closest[:, None]).sum(axis=0)
        best = np.argmax(left <= left.min() + rounding)  # the first of equals
        seeds.append(drawn[best])
        chances = closest = np.minimum(distances[:, best], closest)
    return nearest_centroids(views, [x.take(np.array(seeds)) for x in views], np.ones(len(views)))[0]


STARTS: Mapping[str, Callable[[Sequence[StandardisedRows], int, np.random.Generator], Labels]] = {
    "k-means++": spread_out_labels,
    "random": random_labels,
}


class OPMC(Clusterer):
    """Cluster several views, also with many samples, by joint labels and centroids in a subspace of each view.

    The labels Y (one-hot rows) and, for each view, centroids C_v in a latent space of n_clusters dimensions with
    orthonormal map W_v minimise

        Σ_v β_v ‖X_v − Y C_v W_v‖².

    The latent space contains all cluster means, so with fixed weights β_v = 1/V the method is k-means on the
    concatenated standardised views. With learn_weights=True the weights of the views are unknowns as well, which is a
    different method. One pass costs O(n Σ_v d_v n_clusters) time. Memory is one standardised copy of the dense views in
    float64 (sparse views stay sparse) and O(n V), independent of n_init.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    normalize : "feature", "sample" or None
        Standardise every column over the samples, every sample over the columns of its view, or nothing. The authors'
        program uses "sample", which leaves little information in a view of a few columns.
    init : "k-means++" or "random"
        First labels: by the nearest of distant samples, or at random as the authors do.
    n_init : int
        Number of starts; the result with the lowest objective is kept.
    learn_weights : bool
        Learn the weights, β_v = (ℓ_v⁻¹ / Σ_u ℓ_u⁻¹)² with ℓ_v the loss of view v, instead of 1/V each.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    max_iter, tol : int, float
        Each start stops after max_iter passes, or if the relative change of the objective is at most tol.
    random_state : int, Generator, RandomState or None
        Seed of the starts.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.
    centroids_ : dict
        C_v W_v in the units of the view (with normalize="sample", of the standardised samples), arrays of shape
        (n_clusters, n_features) by view name.
    view_weights_ : dict
        β_v, by view name.
    objective_, n_iter_ : array of shape (n_iter_,), int
        Objective after each pass of the best start, and number of its passes.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    MVSCBP : Spectral clustering in linear time.
    Concat : k-means of all columns side by side, as Concat(KMeans(k)).

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

    abilities = PREDICTS
    objective_: Array
    n_iter_: int
    view_weights_: dict[str, float]
    centroids_: dict[str, Array]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        normalize: str | None = "feature",
        init: str = "k-means++",
        n_init: int = 10,
        learn_weights: bool = False,
        views: Layout = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: Seed = None,
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

    def fit_model(self, views: Views, report: Progress) -> Model:
        check_iteration_limits(self)
        check_choice("normalize", self.normalize, SCALINGS)
        check_choice("init", self.init, STARTS)
        check_integer("n_init", self.n_init, 1)
        check_boolean("learn_weights", self.learn_weights)
        rng = as_generator(self.random_state)
        scalings = {name: learn_scaling(x, self.normalize) for name, x in views.items()}
        best = self._best_start(standardised(scalings, views), rng)
        labels, order = number_by_size(best.state.labels)
        centroids = dict(zip(views, (each[order] for each in best.state.centroids), strict=True))
        learnt = {
            **objective_of(best),
            "view_weights_": dict(zip(views.names, best.state.weights.tolist(), strict=True)),
            "centroids_": {name: scalings[name].restore(each) for name, each in centroids.items()},
        }
        predictor = CentroidPredictor(scalings, centroids, best.state.weights)
        k = int(self.n_clusters)
        return Model(labels, learnt, predictor, notes=(*note_on_convergence(self, best), *note_on_fewer(len(order), k)))

    def _best_start(self, views: list[StandardisedRows], rng: np.random.Generator) -> Alternation[Pass]:
        totals, k = np.array([x.squared_norms.sum() for x in views]), int(self.n_clusters)
        equal = np.full(len(views), 1 / len(views))
        weigh = partial(learnt_weights, totals=totals) if self.learn_weights else lambda losses: equal
        # The authors draw C_v at random; the centroids after the first pass do not depend on it.
        latent_centroids = [np.eye(k)] * len(views)

        def start() -> Alternation[Pass]:
            labels = STARTS[self.init](views, k, rng)
            return refine(views, labels, latent_centroids, weigh, max_iter=self.max_iter, tol=self.tol)

        best = start()
        for _ in range(1, self.n_init):
            other = start()
            # Starts with equal results differ by rounding errors, so the first of them is kept.
            if other.state.objective < best.state.objective - _TIE * (other.state.weights @ totals):
                best = other
        return best


@dataclass(frozen=True)
class CentroidPredictor(Predictor):
    """The nearest centroids of standardised rows; of a cluster that has no training samples there are none."""

    scalings: Mapping[str, Scaling]
    centroids: Mapping[str, Array]  # C_v W_v, (n_clusters, n_features)
    weights: Array

    @property
    def n_clusters(self) -> int:
        return len(next(iter(self.centroids.values())))

    def labels_and_ties(self, views: Views) -> Labels:
        found = np.empty((views.n_samples, 2), dtype=np.int64)
        width = self.n_clusters * len(views) + sum(x.shape[1] for x in views.values() if not sp.issparse(x))
        centroids = list(self.centroids.values())
        for rows in row_blocks(views.n_samples, width):
            some = standardised(self.scalings, views.take(rows))
            found[rows, 0], _, found[rows, 1] = nearest_centroids(some, centroids, self.weights)
        return found

    def renumbered(self, order: Labels, labels: Labels, learnt: Mapping[str, Any]) -> Renumbered:
        order, numbers = new_numbers(order, self.n_clusters)
        changed = {name: centroids[order] for name, centroids in self.centroids.items()}
        in_units = {name: centroids[order] for name, centroids in learnt["centroids_"].items()}
        return Renumbered(replace(self, centroids=changed), numbers[labels], {"centroids_": in_units})


def standardised(scalings: Mapping[str, Scaling], views: Views) -> list[StandardisedRows]:
    """Return the rows of each view as they are clustered."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = [scalings[name](x) for name, x in views.items()]
        for name, x in zip(views.names, found, strict=True):
            if not np.isfinite(x.squared_norms).all():
                raise InputError(f"view {name!r} has numbers too large to compute distances with; scale it down")
    return found
