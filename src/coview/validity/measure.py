"""The measures of validity: stability between halves, agreement of views clustered alone, silhouette in the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from coview.compose import Consensus
from coview.core.agreement import adjusted_rand, jaccard_indices
from coview.core.assign import FEW_STARTS, Directions, Labels, OneCluster, as_assigner
from coview.core.select import draw_rows
from coview.errors import InputError
from coview.kernels import AutoKernel, Graph, Kernel, Precomputed, kernel_for, kernel_per_view
from coview.methods.kernel_clusterer import KernelClusterer
from coview.methods.nested import nested_models
from coview.methods.tmvkscr import TMvKSCR
from coview.preprocess.profile import varies
from coview.rows import as_float64
from coview.runtime import Map, Workers
from coview.validity.reference import DISTRIBUTIONS, Reference, compressed
from coview.validity.refits import labels_by_part, rows_of, without_warnings
from coview.validity.values import STRONG, Validity
from coview.views import Array, Matrix, Views

_SAMPLES = 400  # there may be more than 30 refits
_SLOW_SAMPLES = 200  # for methods that cannot label new samples: they cost n³
_SAMPLES_PER_CLUSTER = 10
_LEAST_SAMPLES = 16  # halves of fewer are not informative
LEAST_MEMBERS = 5  # of a cluster, for its own stability
_SPLITS = 3
_REFERENCE_DATA = 3  # of each distribution
_CLEAR = 0.2  # above the bound of the highest level: then one reference of each distribution suffices
_MOST_COLUMNS = 3000  # of all views together, up to which their covariance is computed
_PAIRINGS = 99


def measure_validity(
    model: Any, views: Views, labels: Labels, seed: int = 0, n_jobs: int | None = None
) -> Validity | None:
    """Return the validity of the clusters of a fitted model.

    The method is fitted again on halves of a random subset of the samples, and on data without clusters.

    Parameters
    ----------
    model : fitted estimator of this library
    views : Views
        The samples.
    labels : array of shape (n_samples,)
        Their clusters.
    seed : int
        Seed of everything that is drawn at random.
    n_jobs : int, optional
        Number of threads that fit models; by default as many as BLAS may use. The result does not depend on it.

    Returns
    -------
    Validity, or None if there is one cluster, or if the method cannot be fitted on halves of the samples
    """
    rng = np.random.default_rng(seed)
    *wrappers, method = nested_models(model)
    names = np.unique(labels)
    predicts = hasattr(method, "predict")
    limit = _SAMPLES if predicts else _SLOW_SAMPLES
    rows = draw_rows(views.n_samples, max(limit, _SAMPLES_PER_CLUSTER * len(names)), rng)
    if len(names) < 2 or len(rows) < max(_LEAST_SAMPLES, 4 * len(names)):
        return None
    own_kernels = _kernels(method)
    if _precomputed(own_kernels) and any(x.shape[1] != views.n_samples for x in views.values()):
        return None  # similarities between new and training samples
    given = samples = of_views = rows_of(views, rows, own_kernels)
    for wrapper in wrappers:
        samples = wrapper.inner_views(samples)
        of_views = samples if len(samples) == len(of_views) else of_views
    with (
        without_warnings(method),  # about parts of the samples
        config_context(transform_output="default"),
        Workers(n_jobs) as workers,
    ):
        splits = [_Split.draw(samples, predicts, rng) for _ in range(_SPLITS)]
        found_again = _refits(_unfitted(method, seed), own_kernels, splits, workers.map)
        refits = [refit for refit in found_again if refit is not None]
        if not refits:
            return None
        reference: list[list[float]] = []
        permuted: list[float] = []
        if not _precomputed(own_kernels):
            found = _mean_stability(refits)
            reference, permuted = _reference_stability(
                _unfitted(method, seed), wrappers, given, samples, found, rng, workers.map
            )
        kernels = own_kernels if set(own_kernels) == set(of_views) else dict.fromkeys(of_views, AutoKernel())
        by_view = _models_by_view(of_views, kernels, len(names), seed, workers.map)
        agreement = _agreement_of_views([_of_all(each.labels_, of_views, name) for name, each in by_view.items()], rng)
    validity = Validity(
        n_samples=len(rows),
        stability=_mean_stability(refits),
        # The distribution with the more stable clusters is the stricter comparison.
        reference_stability=max((float(np.mean(each)) for each in reference), default=None),
        reference_maximum=max((float(np.max(each)) for each in reference), default=None),
        permuted_stability=float(np.mean(permuted)) if permuted else None,
        views_agreement=agreement[0] if agreement else None,
        agreement_ratio=agreement[1] if agreement else None,
        random_ratio=agreement[2] if agreement else None,
        stable_views=None,
        stable_agreement=None,
        silhouette=_input_silhouette(of_views, kernels, labels[rows]),
        cluster_stability=_cluster_stability(refits, labels[rows], names),
    )
    if not validity.is_stable or validity.views_agree:
        return validity
    alone = {
        name: measure_validity(one, of_views.alone(name), one.labels_, seed, n_jobs) for name, one in by_view.items()
    }
    stable = tuple(name for name, each in alone.items() if each and each.is_stable)
    if len(stable) != 1:
        return replace(validity, stable_views=stable)
    own, joint = by_view[stable[0]].labels_, labels[rows][of_views.present.get(stable[0], slice(None))]
    return replace(validity, stable_views=stable, stable_agreement=adjusted_rand(joint, own))


def _kernels(method: Any) -> dict[str, Kernel]:
    """Return the kernels that the method was given, by view; none for other methods."""
    return kernel_per_view(method.kernel, method.view_names_) if isinstance(method, KernelClusterer) else {}


def _precomputed(kernels: Mapping[str, Kernel]) -> bool:
    return any(isinstance(kernel, Precomputed) for kernel in kernels.values())


def _unfitted(method: Any, seed: int) -> Any:
    """Return the method with the same parameters, silent, deterministic and with few starts of k-means."""
    fixed: dict[str, Any] = {"progress": None, "random_state": seed, "n_jobs": 1}
    if hasattr(method, "assigner") and isinstance(as_assigner(method.assigner), Directions):
        fixed["assigner"] = FEW_STARTS
    copy = clone(method)
    if isinstance(method, Consensus):  # whose models are used for their scores only
        inner = {"progress": None, "n_jobs": 1, "assigner": OneCluster()}
        for model in copy.estimators:
            names = [name for name in model.get_params() if name.rpartition("__")[2] in inner]
            model.set_params(**{name: inner[name.rpartition("__")[2]] for name in names})
    return copy.set_params(**{name: value for name, value in fixed.items() if name in method.get_params()})


# The rows that two models label, and their labels.
_Refit = tuple[Array, Labels, Labels]


class _Split(NamedTuple):
    """Two random parts of some samples, and the rows that the models of both parts label.

    The parts are halves, whose models label all samples. If the method cannot label new samples, the parts are random
    two thirds, which share a third.
    """

    samples: Views
    parts: tuple[Array, Array]
    shared: Array

    @classmethod
    def draw(cls, samples: Views, predicts: bool, rng: np.random.Generator) -> _Split:
        order = rng.permutation(samples.n_samples)
        third = len(order) // 3
        parts = (order[::2], order[1::2]) if predicts else (order[: 2 * third], order[third:])
        return cls(samples, parts, np.arange(len(order)) if predicts else np.intersect1d(*parts))


def _refits(
    method: Any, kernels: Mapping[str, Kernel], splits: Sequence[_Split], map_models: Map
) -> list[_Refit | None]:
    """Fit a model on each part of the samples, and return the labels by both parts; None if the method fails."""

    def numbered(task: tuple[_Split, Array]) -> Labels | None:
        split, part = task
        try:
            labels = labels_by_part(method, split.samples, kernels, np.sort(part), split.shared)
        except ValueError:  # also of methods of other libraries
            return None
        return np.unique(labels, return_inverse=True)[1]

    found = map_models(numbered, [(split, part) for split in splits for part in split.parts])
    pairs = zip(splits, found[::2], found[1::2], strict=True)
    return [
        None if first is None or second is None else (split.shared, first, second) for split, first, second in pairs
    ]


def _mean_stability(refits: Sequence[_Refit]) -> float:
    return float(np.mean([adjusted_rand(first, second) for _, first, second in refits]))


def _reference_stability(
    method: Any,
    wrappers: Sequence[Any],
    given: Views,
    samples: Views,
    found: float,
    rng: np.random.Generator,
    map_models: Map,
) -> tuple[list[list[float]], list[float]]:
    """Return the stability on data without clusters by distribution, and on a single view with permuted columns.

    The data are drawn like the views that are given, and preprocessed as these; if the views are wide or have empty
    cells, they are drawn like the preprocessed samples. Data that the method cannot use are left out. No more are drawn
    if the stability that was found is not above all so far, so that the level is the lowest, or far above the first of
    each kind.

    If samples lack views, the data are drawn like the samples with all views, and lack the same views.
    """
    wide = sum(given.n_features.values()) > _MOST_COLUMNS or bool(given.empty_cells)
    known = (samples if wide else given).take(np.flatnonzero(given.has_all()))
    if known.n_samples < _LEAST_SAMPLES:
        return [], []
    reference = Reference(compressed(known) if wide else known, given.n_samples)

    def split(data: Views) -> _Split | None:
        data = Views.trusted(data, data.columns, present=given.present, encoded=given.encoded)
        try:
            for wrapper in () if wide else wrappers:
                data = wrapper.inner_views(data)
        except InputError:  # a preprocessing step that refuses the values
            return None
        return _Split.draw(data, hasattr(method, "predict"), rng)

    drawn: dict[str, list[float]] = {name: [] for name in DISTRIBUTIONS}
    permuted: list[float] = []
    for _ in range(_REFERENCE_DATA):
        splits = [(values, split(reference.draw(name, rng))) for name, values in drawn.items()]
        if len(given) == 1:
            splits.append((permuted, split(reference.permute(rng))))
        usable = [(values, each) for values, each in splits if each is not None]
        refits = _refits(method, {}, [each for _, each in usable], map_models)
        for (values, _), refit in zip(usable, refits, strict=True):
            if refit is not None:
                values.append(_mean_stability([refit]))
        largest = max([*permuted, *(value for values in drawn.values() for value in values)], default=1.0)
        if found <= largest or found - largest >= (STRONG + _CLEAR) * (1 - largest):
            break
    return [values for values in drawn.values() if values], permuted


def _models_by_view(
    views: Views, kernels: Mapping[str, Kernel], n_clusters: int, seed: int, map_models: Map
) -> dict[str, TMvKSCR]:
    """Return a model of each view alone; a view that cannot be clustered is left out."""

    def one(name: str) -> TMvKSCR | None:
        model = TMvKSCR(n_clusters, kernel=kernels[name], assigner=FEW_STARTS, n_jobs=1, random_state=seed)
        try:
            return model.fit(views.alone(name))
        except InputError:
            return None

    names = [name for name in views if varies(views.observed(name))]
    models = zip(names, map_models(one, names), strict=True)
    return {name: model for name, model in models if model is not None}


def _of_all(labels: Labels, views: Views, name: str) -> Labels:
    """Return the labels of the samples that have a view among those of all samples; -1 for the others."""
    if name not in views.present:
        return labels
    everything = np.full(views.n_samples, -1)
    everything[views.present[name]] = labels
    return everything


def _agreement_of_views(labels: Sequence[Labels], rng: np.random.Generator) -> tuple[float, float, float] | None:
    """Return the mean agreement of two views, the largest ratio to its deviation, and the same for random pairings.

    Two views are compared on the samples that have both.
    """
    both = {(i, j): np.flatnonzero((labels[i] >= 0) & (labels[j] >= 0)) for i, j in combinations(range(len(labels)), 2)}
    both = {pair: rows for pair, rows in both.items() if len(rows) > 1}
    if not both:
        return None

    def agreements(some: Sequence[Labels]) -> list[float]:
        return [adjusted_rand(some[i][rows], some[j][rows]) for (i, j), rows in both.items()]

    def paired_at_random(each: Labels) -> Labels:
        shuffled, known = each.copy(), np.flatnonzero(each >= 0)
        shuffled[known] = rng.permutation(each[known])
        return shuffled

    observed = np.array(agreements(labels))
    random = np.array([agreements([paired_at_random(each) for each in labels]) for _ in range(_PAIRINGS)])
    deviation = np.maximum(random.std(axis=0), 1 / len(labels[0]))
    return float(observed.mean()), float((observed / deviation).max()), float((random / deviation).max())


def _input_silhouette(views: Views, kernels: Mapping[str, Kernel], labels: Labels) -> float | None:
    """Return the mean silhouette of the labels in the input, averaged over the views."""
    from sklearn.metrics import silhouette_score

    found = []
    for name in views:
        of_view = labels[views.present.get(name, slice(None))]
        if 1 < len(np.unique(of_view)) < len(of_view):
            distances = _distances(views.observed(name), kernel_for(kernels[name], views, name))
            found.append(silhouette_score(distances, of_view, metric="precomputed"))
    return float(np.mean(found)) if found else None


def _distances(x: Matrix, kernel: Kernel) -> Array:
    """Return the distances between rows: those of a Gram matrix, those of a neighbour graph, or Euclidean ones."""
    from sklearn.metrics import euclidean_distances

    if isinstance(kernel, AutoKernel):
        kernel = kernel.resolve(x)
    if isinstance(kernel, Graph):
        return euclidean_distances(kernel.normalized(x, kernel.column_scales(x)))
    if not isinstance(kernel, Precomputed):
        return euclidean_distances(x)
    gram = as_float64(x)
    squares = np.maximum(gram.diagonal()[:, None] + gram.diagonal() - 2 * gram, 0)
    np.fill_diagonal(squares, 0)
    return np.sqrt(squares)


def _cluster_stability(refits: Sequence[_Refit], labels: Labels, names: Labels) -> tuple[float | None, ...]:
    """Return for each cluster the mean Jaccard index with the most similar cluster of a refitted model."""
    numbers, indices = np.searchsorted(names, labels), []
    for rows, *by_model in refits:
        indices += [jaccard_indices(numbers[rows], other, len(names)).max(axis=1) for other in by_model]
    known = [[index for index in of_cluster if not np.isnan(index)] for of_cluster in zip(*indices, strict=True)]
    sizes = [int((labels == name).sum()) for name in names]
    return tuple(
        float(np.mean(found)) if found and size >= LEAST_MEMBERS else None
        for found, size in zip(known, sizes, strict=True)
    )
