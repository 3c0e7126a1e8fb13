"""Selectors: rules that choose the training rows if there are too many to train on all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.base.parameters import check_integer
from coview.base.runtime import one_sklearn_thread
from coview.data.rows import column_statistics, in_safe_unit
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError
from coview.kernels import Kernel, kernel_for
from coview.registry import SELECTORS, as_instance

Rows = NDArray[np.int64]

_POOL = 20  # rows that KMeansRows clusters for each row chosen
_BLOCK = 256  # candidates at a time
_PATIENCE = 4  # blocks without a swap after which Entropy stops
_LARGEST = 1e280  # similarity, so that sums stay finite
_WIDTH = 64  # columns that KMeansRows projects a view to


class RowSource(Protocol):
    """A source of rows: Views in memory, or files and Dask collections that load the requested rows."""

    @property
    def n_samples(self) -> int: ...

    def take(self, rows: Any) -> Views:
        """Return the chosen rows, given in increasing order, of every view."""


class Selector(ABC):
    """A rule that chooses training rows."""

    @abstractmethod
    def rows(self, source: RowSource, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        """Return the numbers of `count` different rows in increasing order.

        Rules that compare rows use the kernels of the method that will be trained, by view name.
        """


def draw_rows(n_samples: int, count: int, rng: np.random.Generator) -> Rows:
    """Return the numbers of `count` random rows, or of all if there are fewer, in increasing order.

    Memory grows with the count only: a permutation of a billion row numbers takes 8 GB.
    """
    return np.sort(rng.choice(n_samples, min(count, n_samples), replace=False))


@dataclass(frozen=True)
class Uniform(Selector):
    """Rows drawn uniformly at random. This is the fastest rule, and is rarely worse than the others.

    See Also
    --------
    FixedSize : Trains on the selected rows.
    KMeansRows : Rows near k-means centres, for few training samples.

    Examples
    --------
    Train on 2,000 rows that are selected in this way, and label all rows:

    >>> from coview import FixedSize, TMvKSCR
    >>> model = FixedSize(TMvKSCR(10), n_train=2000, select=Uniform())
    """

    def rows(self, source: RowSource, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        return draw_rows(source.n_samples, count, rng)


@dataclass(frozen=True, eq=False)
class Stratified(Selector):
    """Rows drawn at random within groups, from each in proportion to its size.

    Parameters
    ----------
    groups : array of shape (n_samples,)
        The group of each row, such as a batch, a site or a day.

    See Also
    --------
    FixedSize : Trains on the selected rows.
    Uniform : The default.

    Examples
    --------
    Train on rows of all sites, in proportion to their numbers:

    >>> from coview import FixedSize, TMvKSCR
    >>> sites = ["A", "A", "B", "A", "B", "B"]
    >>> model = FixedSize(TMvKSCR(2), n_train=4, select=Stratified(sites))
    """

    groups: Any

    def rows(self, source: RowSource, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        groups = np.asarray(self.groups)
        if groups.shape != (source.n_samples,):
            raise InputError(
                f"Stratified(groups=…) has shape {groups.shape}; give one entry for each of the {source.n_samples} rows"
            )
        try:
            _, member, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        except TypeError:
            raise InputError(
                "Stratified(groups=…) mixes entries that cannot be compared, such as str and None; make them all str"
            ) from None
        exact = count * sizes / len(groups)
        parts = np.floor(exact).astype(int)
        largest_remainders = np.argsort(parts - exact, kind="stable")[: count - parts.sum()]
        parts[largest_remainders] += 1
        members = np.split(np.argsort(member, kind="stable"), np.cumsum(sizes)[:-1])
        chosen = [rng.choice(rows, part, replace=False) for rows, part in zip(members, parts, strict=True)]
        return np.sort(np.concatenate(chosen))


class ComparingSelector(Selector):
    """A rule that compares the rows of a random pool.

    Rows that lack a view or have empty cells cannot be compared; they are chosen, at random, only if there are too few
    others.
    """

    @abstractmethod
    def _pool_size(self, count: int) -> int:
        """Return how many rows are drawn to choose `count` of them."""

    @abstractmethod
    def _choose(self, views: Views, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        """Return the numbers of `count` different rows, fewer than there are; no value is NaN."""

    def rows(self, source: RowSource, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        pool = draw_rows(source.n_samples, self._pool_size(count), rng)
        views = source.take(pool)
        whole = views.has_all()
        for name in views.empty_cells:
            whole &= ~np.isnan(views[name]).any(axis=1)
        comparable, others = np.flatnonzero(whole), np.flatnonzero(~whole)
        if len(comparable) <= count:
            more = rng.choice(others, count - len(comparable), replace=False)
            return np.sort(pool[np.concatenate([comparable, more])])
        if len(others):
            pool, views = pool[comparable], views.take(comparable)
        return np.sort(pool[self._choose(views, count, rng, kernels)])


@dataclass(frozen=True)
class Entropy(ComparingSelector):
    """Rows with a large quadratic Rényi entropy, -log of their mean similarity: such rows are far apart.

    The similarity of two rows is the sum over the views, under the kernels of the method. The search starts from random
    rows. A random candidate replaces the row whose removal lowers the sum of similarities most, if the sum then falls.
    Each candidate takes one row of similarities to the chosen rows.

    Parameters
    ----------
    draws : int
        Largest number of candidates for each chosen row.

    See Also
    --------
    FixedSize : Trains on the selected rows.
    Uniform : The default.

    Examples
    --------
    Train on 2,000 rows that are selected in this way, and label all rows:

    >>> from coview import FixedSize, TMvKSCR
    >>> model = FixedSize(TMvKSCR(10), n_train=2000, select=Entropy(draws=20))
    """

    draws: int = 10

    def __post_init__(self) -> None:
        check_integer("Entropy.draws", self.draws, least=1)

    def _pool_size(self, count: int) -> int:
        return count * (1 + self.draws)

    def _choose(self, views: Views, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        order = rng.permutation(views.n_samples)
        chosen, waiting = order[:count].copy(), order[count:]
        kernels = {
            name: kernel_for(kernel, views, name).resolve(views[name][chosen], rng, name)
            for name, kernel in kernels.items()
        }

        def similarities(a: Rows, b: Rows) -> Array:
            total = np.zeros((len(a), len(b)))
            with np.errstate(over="ignore", invalid="ignore"):
                for name, kernel in kernels.items():
                    total += kernel.against(views[name][b])(views[name][a])
            # Similarities that overflow are large; the fit refuses them if their rows are chosen.
            return np.nan_to_num(total, copy=False, nan=_LARGEST, posinf=_LARGEST, neginf=-_LARGEST)

        among = similarities(chosen, chosen)
        without_change = 0
        for start in range(0, len(waiting), _BLOCK):
            some = waiting[start : start + _BLOCK]
            swapped = _swap(chosen, among, some, similarities(some, chosen), similarities(some, some))
            without_change = 0 if swapped else without_change + 1
            if without_change == _PATIENCE:
                break
        return chosen


def _swap(chosen: Rows, among: Array, candidates: Rows, to_chosen: Array, to_each_other: Array) -> int:
    """Swap candidates in, one after the other, if that lowers the sum of similarities; return the number of swaps.

    `chosen`, its similarities `among` each other and those of the candidates `to_chosen` are updated in place.
    """
    sums, diagonal, swapped = among.sum(axis=1), among.diagonal().copy(), 0
    for i, candidate in enumerate(candidates):
        # The decrease of the sum over all pairs if the candidate replaces row p.
        gains = 2 * sums - diagonal + 2 * to_chosen[i] - 2 * to_chosen[i].sum() - to_each_other[i, i]
        p = int(gains.argmax())
        if gains[p] <= 1e-12 * sums[p]:
            continue
        entering = to_chosen[i].copy()
        entering[p] = to_each_other[i, i]
        sums += entering - among[p]
        among[p], among[:, p] = entering, entering
        sums[p], diagonal[p] = entering.sum(), entering[p]
        chosen[p] = candidate
        to_chosen[:, p] = to_each_other[:, i]
        swapped += 1
    return swapped


@dataclass(frozen=True)
class KMeansRows(ComparingSelector):
    """The rows nearest to the centres of k-means, with one cluster for each row.

    The views are standardised, randomly projected to 64 columns if they have more, and concatenated with equal weight.
    k-means clusters a random sample of 20 rows for each chosen row.

    See Also
    --------
    FixedSize : Trains on the selected rows.
    Uniform : The default.

    Examples
    --------
    Train on 2,000 rows that are selected in this way, and label all rows:

    >>> from coview import FixedSize, TMvKSCR
    >>> model = FixedSize(TMvKSCR(10), n_train=2000, select=KMeansRows())
    """

    def _pool_size(self, count: int) -> int:
        return _POOL * count

    def _choose(self, views: Views, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.metrics import pairwise_distances_argmin

        table = np.hstack([_standardised_projection(x, rng) for x in views.values()])
        seed = int(rng.integers(2**31))
        with one_sklearn_thread():
            means = MiniBatchKMeans(count, n_init=1, batch_size=max(1024, 2 * count), random_state=seed).fit(table)
        nearest = np.unique(pairwise_distances_argmin(means.cluster_centers_, table))
        # Two centres may have the same nearest row; random rows then complete the number.
        others = np.setdiff1d(np.arange(views.n_samples), nearest)
        more = rng.choice(others, count - len(nearest), replace=False)
        return np.concatenate([nearest, more])


def _standardised_projection(x: Any, rng: np.random.Generator) -> Array:
    """Return the standardised columns of one view, randomly projected if there are many, with total variance 1."""
    x = in_safe_unit(x)  # the scale does not matter
    mean, deviation = column_statistics(x)
    width = x.shape[1]
    if width <= _WIDTH:
        combinations = np.eye(width) / np.sqrt(width)
    else:
        combinations = rng.standard_normal((_WIDTH, width)) / np.sqrt(_WIDTH * width)
    if not sp.issparse(x):
        return np.asarray(((x - mean) / deviation) @ combinations.T)
    combinations = combinations / deviation  # the projection is centred instead: a centred view would be dense
    return np.asarray(x @ combinations.T - combinations @ mean)


def as_selector(select: Any) -> Selector:
    """Return the selector, or the selector of this name with default parameters."""
    return as_instance("select", select, Selector, SELECTORS, "Entropy()")
