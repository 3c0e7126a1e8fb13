"""Structure without a gap: communities, compared with those of data of the same covariance without groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from coview.core.assign import Labels
from coview.core.select import draw_rows
from coview.data.rows import as_float64, l2_normalize
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.kernels import FuzzyGraph
from coview.preprocess.profile import ViewProfile
from coview.preprocess.steps import PrincipalComponents

_AXES = 50  # principal components of each view
_SHAPED = 20  # principal components of all views that get a unimodal distribution
_BINS = 20
_FEWEST_REFERENCES = 4  # of each kind, if they show that there is no structure
_LEAST_REFERENCES, _MOST_REFERENCES = 6, 30  # otherwise
_ROWS_OF_REFERENCES = 3000  # of all references: the modularities of few samples vary more
_ZERO = 1e-8  # of a singular value, relative to the largest
_HEAVY = 1.0  # skewness or excess kurtosis of a column above which its ranks are used
_NEIGHBOURS, _WIDE_NEIGHBOURS = 15, 60

# For each resolution of the communities, the least excess of the modularity above the references, and the number of
# their standard deviations that it also needs. Few large communities, at the low resolution, are found in some
# references and not in others.
_NEEDED = {0.85: (0.02, 2.0), 0.5: (0.05, 3.0)}
_CLEARLY = 3.0  # standard errors
LEAST_DIMENSION = 4.0  # a curve or a surface has communities anywhere, and valleys show its gaps
_LEAST_SAMPLES, _MOST_SAMPLES = 30, 1000  # that are compared


@dataclass(frozen=True)
class Structure:
    """Whether samples without a valley among them have groups that overlap.

    Attributes
    ----------
    dimension : float or None
        Intrinsic dimension; None if there are fewer than 30 samples with all views.
    excess, needed : float or None
        Modularity of the communities minus that of references without groups, and the least excess that is structure;
        None if the dimension is None or below 4.
    """

    dimension: float | None
    excess: float | None
    needed: float | None

    @property
    def is_found(self) -> bool:
        """Whether the modularity exceeds that of the references."""
        return self.excess is not None and self.needed is not None and self.excess >= self.needed


def structure_of(views: Views, samples: Labels) -> Structure:
    """Return the structure of some samples, given by their rows.

    The dimension is the lesser one of all samples and of those that are compared: fewer samples are too far apart on a
    long curve, and more show the noise around a curve.
    """
    complete = samples[views.has_all()[samples]]
    if len(complete) < _LEAST_SAMPLES:
        return Structure(None, None, None)
    drawn = complete[draw_rows(len(complete), _MOST_SAMPLES, np.random.default_rng(0))]
    tables = coordinates_of(views.take(drawn))
    dimension = intrinsic_dimension(np.hstack(tables)) if tables else 0.0
    if dimension >= LEAST_DIMENSION and len(drawn) < len(complete):
        dimension = min(dimension, intrinsic_dimension(np.hstack(coordinates_of(views.take(complete)))))
    if dimension < LEAST_DIMENSION:
        return Structure(dimension, None, None)
    return Structure(dimension, *excess_modularity(tables, np.random.default_rng(0)))


def communities(graph: Matrix, resolution: float) -> Labels:
    """Return the Leiden communities of a graph; the same graph has the same communities."""
    from graspologic_native import leiden_csr

    parts = (graph.indptr.astype(np.int64), graph.indices.astype(np.int32), graph.data.astype(np.float64))
    found = leiden_csr(*parts, graph.shape[0], resolution=resolution, iterations=4, seed=0)[1]
    return np.array([found[i] for i in range(graph.shape[0])])


def modularity(graph: Matrix, labels: Labels) -> float:
    """Return the fraction of the weights inside of communities, minus that expected from the degrees."""
    degrees, total = graph.sum(axis=1), float(graph.sum())
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    inside = graph.data[labels[row] == labels[graph.indices]].sum()
    return float(inside / total - np.square(np.bincount(labels, degrees) / total).sum())


def coordinates_of(views: Views) -> list[Array]:
    """Return the columns of each view with a mean squared norm of 1; constant views are left out.

    Columns are standardised. Those with heavy tails are replaced by normal scores, because outliers would dominate the
    covariance. Word counts are L2-normalised. If there are many columns, their first principal components are used.
    """
    from scipy import stats  # takes long to import

    found = []
    for x in views.values():
        if sp.issparse(x) or ViewProfile.of(x).word_counts:
            table: Matrix = l2_normalize(x)
        else:
            table = as_float64(x)[:, np.ptp(x, axis=0) > 0]
            if table.shape[1] == 0:
                continue
            table = table / np.abs(table).max(axis=0)  # squares of huge numbers overflow
            table = (table - table.mean(axis=0)) / table.std(axis=0)
            heavy = (np.abs(stats.skew(table)) > _HEAVY) | (stats.kurtosis(table) > _HEAVY)
            ranks = stats.rankdata(table[:, heavy], axis=0)
            table[:, heavy] = stats.norm.ppf((ranks - 0.5) / len(table))
        if table.shape[1] > _AXES:
            table = PrincipalComponents.learn(table, _AXES)(table)
        table = as_float64(table)
        table = table - table.mean(axis=0)
        size = np.sqrt(np.square(table).sum() / len(table))
        if size > 0:
            found.append(table / size)
    return found


def graph_of(tables: Sequence[Array]) -> Matrix:
    """Return the sum of the graphs of each table and, with the same weight, the graph of all tables side by side."""
    grams = [FuzzyGraph(_NEIGHBOURS).against(table).gram for table in tables]
    together = FuzzyGraph(_NEIGHBOURS).against(np.hstack(tables)).gram if len(tables) > 1 else 0 * grams[0]
    total = sp.csr_array(sum(grams) + len(tables) * together)
    total.setdiag(0)
    total.eliminate_zeros()
    return total


def excess_modularity(tables: Sequence[Array], rng: np.random.Generator) -> tuple[float, float]:
    """Return the modularity of the communities minus its mean for references without groups, and the least excess.

    The references have the covariance of the data, and unimodal distributions of the columns or of the first joint
    principal components. The kind that the data exceed less is compared: a uniform distribution in a cube is one of
    columns, and a gradient one of a component. Communities have two resolutions, and the one at which the data exceed
    the references more is compared: two large groups that overlap are not seen among many small communities.

    No more references are drawn as soon as they are clearly enough to find no structure.
    """
    joint = np.hstack(tables)
    _, sizes, axes = np.linalg.svd(joint, full_matrices=False)
    axes = axes[sizes > _ZERO * sizes[0]]
    places = np.cumsum([table.shape[1] for table in tables])[:-1]
    n_references = int(np.clip(_ROWS_OF_REFERENCES // len(joint), _LEAST_REFERENCES, _MOST_REFERENCES))
    of_data, (least, deviations) = _modularities(graph_of(tables)), np.array([*_NEEDED.values()]).T
    kinds = []
    for n_shaped, basis in ((joint.shape[1], np.eye(joint.shape[1])), (_SHAPED, axes)):
        values = joint @ basis.T
        shapes = unimodal_shapes(values, n_shaped)
        references: list[Array] = []
        none = False
        while not none and len(references) < n_references:
            drawn = sample_with_shapes(values, shapes, rng) @ basis
            references.append(_modularities(graph_of(np.split(drawn, places, axis=1))))
            excess, deviation = of_data - np.mean(references, axis=0), np.std(references, axis=0)
            error = deviation / np.sqrt(len(references))
            none = len(references) >= _FEWEST_REFERENCES and bool((excess + _CLEARLY * error < least).all())
        needed = np.maximum(least, deviations * deviation)
        kinds.append([(float(each), float(its)) for each, its in zip(excess, needed, strict=True)])
        if none:
            break
    by_resolution = (min(each, key=_relative_excess) for each in zip(*kinds, strict=True))
    return max(by_resolution, key=_relative_excess)


def _relative_excess(found: tuple[float, float]) -> float:
    excess, needed = found
    return excess / needed


def unimodal_shapes(values: Array, n_shaped: int) -> Array:
    """Return the values of each column in increasing order; the first columns are made unimodal."""
    shapes = np.sort(values, axis=0)
    for column in range(min(n_shaped, values.shape[1])):
        shapes[:, column] = unimodal_quantiles(values[:, column])
    return shapes


def sample_with_shapes(values: Array, shapes: Array, rng: np.random.Generator) -> Array:
    """Return as many samples with the covariance of the values, and with these distributions of the columns.

    Columns of a Gaussian sample are matched by ranks with the shapes. Its covariance is that of a sample, and not
    exactly that of the values: data have sampling noise as well.
    """
    n = len(values)
    drawn = rng.normal(size=(n, n)) @ (values - values.mean(axis=0)) / np.sqrt(n)
    ranks = np.argsort(np.argsort(drawn, axis=0), axis=0)
    spread = np.maximum(values.std(axis=0), np.finfo(float).tiny)
    matched: Array = np.take_along_axis(shapes, ranks, axis=0) * (drawn.std(axis=0) / spread)
    return matched


def _modularities(graph: Matrix) -> Array:
    return np.array([modularity(graph, communities(graph, resolution)) for resolution in _NEEDED])


def unimodal_quantiles(values: Array) -> Array:
    """Return quantiles of the unimodal histogram nearest to that of the values, with their mean and deviation."""
    from scipy.optimize import isotonic_regression

    counts, edges = np.histogram(values, _BINS)
    counts = counts.astype(np.float64)

    def with_mode(mode: int) -> Array:
        rising, falling = counts[: mode + 1], counts[mode:]
        return np.append(isotonic_regression(rising).x, isotonic_regression(falling, increasing=False).x[1:])

    nearest = min(map(with_mode, range(_BINS)), key=lambda each: float(np.square(each - counts).sum()))
    cumulative = np.append(0, np.cumsum(nearest))
    levels = (np.arange(len(values)) + 0.5) / len(values)
    quantiles = np.interp(levels, cumulative / cumulative[-1], edges)
    spread = max(float(quantiles.std()), np.finfo(float).tiny)
    return np.asarray(values.mean() + (quantiles - quantiles.mean()) * values.std() / spread)


def intrinsic_dimension(table: Array) -> float:
    """Return the estimate of Levina and Bickel, the median over the samples and the lesser of two scales.

    Noise around a curve has many dimensions at the scale of the nearest neighbours, and one at that of a tenth of the
    samples, at most 60. The mean over the samples would be small if there are duplicates.
    """
    from sklearn.neighbors import NearestNeighbors

    n = len(table)
    wide = min(max(_NEIGHBOURS, min(n // 10, _WIDE_NEIGHBOURS)), n - 2)
    distances = NearestNeighbors(n_neighbors=wide).fit(table).kneighbors()[0].clip(1e-12)
    found = []
    for k in {min(_NEIGHBOURS, wide), wide}:
        logarithms = np.log(distances[:, k - 1 : k] / distances[:, : k - 1]).mean(axis=1)
        found.append(1 / max(float(np.median(logarithms)), 1e-2))
    return min(found)
