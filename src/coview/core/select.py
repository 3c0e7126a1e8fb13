"""Which rows to train on, when all would be too many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.errors import InputError
from coview.kernels import Kernel
from coview.registry import SELECTORS
from coview.rows import column_statistics
from coview.views import Array, Views

Rows = NDArray[np.int64]

_POOL = 20  # rows looked at for each row chosen, where a rule would otherwise look at all of them
_BLOCK = 256  # candidates at a time
_PATIENCE = 4  # blocks without a swap, after which there is little left to gain
_WIDTH = 64  # columns of a view that are enough to tell rows apart


class Source(Protocol):
    """Where rows come from: Views in memory, or files and clusters that hand out the rows asked for."""

    @property
    def n_samples(self) -> int: ...

    def take(self, rows: Any) -> Views:
        """Return the chosen rows, given in increasing order, of every view."""


class Selector(ABC):
    """A rule that chooses training rows."""

    @abstractmethod
    def rows(self, source: Source, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        """Return so many different rows in increasing order.

        Parameters
        ----------
        source : Views, or any other source of rows
        count : int
        rng : numpy.random.Generator
        kernels : mapping
            Kernel of each view in the method that will be trained; rules that compare rows use these.
        """


def draw_rows(n_samples: int, count: int, rng: np.random.Generator) -> Rows:
    """Return so many different rows, or all if there are fewer, at random and in increasing order.

    Memory grows with the count only: a permutation of a billion row numbers would need eight gigabytes.
    """
    return np.sort(rng.choice(n_samples, min(count, n_samples), replace=False))


@dataclass(frozen=True)
class Uniform(Selector):
    """Rows drawn at random, all with the same chance. The cheapest rule, and hard to beat."""

    def rows(self, source: Source, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        return draw_rows(source.n_samples, count, rng)


@dataclass(frozen=True, eq=False)
class Stratified(Selector):
    """Rows drawn at random within given groups, from each in proportion to its size.

    Parameters
    ----------
    groups : array of shape (n_samples,)
        The group of each row, such as a batch, a site or a day.
    """

    groups: Any

    def rows(self, source: Source, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        groups = np.asarray(self.groups)
        if groups.shape != (source.n_samples,):
            raise InputError(
                f"Stratified(groups=…) has shape {groups.shape}; it must have one entry for each of the "
                f"{source.n_samples} rows"
            )
        try:
            _, member, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        except TypeError:
            raise InputError(
                "Stratified(groups=…) mixes entries that cannot be compared, such as text and None; make them all text"
            ) from None
        exact = count * sizes / len(groups)
        parts = np.floor(exact).astype(int)
        largest_remainders = np.argsort(parts - exact, kind="stable")[: count - parts.sum()]
        parts[largest_remainders] += 1
        members = np.split(np.argsort(member, kind="stable"), np.cumsum(sizes)[:-1])
        chosen = [rng.choice(rows, part, replace=False) for rows, part in zip(members, parts, strict=True)]
        return np.sort(np.concatenate(chosen))


@dataclass(frozen=True)
class Entropy(Selector):
    """Rows that lie far apart: their quadratic Rényi entropy, -log of the mean similarity, is made large by swaps.

    The similarity of two rows is the sum over the views, under the kernels of the method. Starting from random rows,
    random candidates take the place of the row whose leaving gains most, as long as that helps. A candidate costs one
    row of similarities to the chosen ones, O(count) beside the kernel itself; there are at most `draws` of them for
    each chosen row.

    Parameters
    ----------
    draws : int
        Candidates for each chosen row.
    """

    draws: int = 10

    def __post_init__(self) -> None:
        _require_count("Entropy", "draws", self.draws)

    def rows(self, source: Source, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        pool = draw_rows(source.n_samples, count * (1 + self.draws), rng)
        views = source.take(pool)
        order = rng.permutation(len(pool))
        chosen, waiting = order[:count].copy(), order[count:]
        kernels = {name: kernel.resolve(views[name][chosen], rng) for name, kernel in kernels.items()}

        def similarities(a: Rows, b: Rows) -> Array:
            total = np.zeros((len(a), len(b)))
            for name, kernel in kernels.items():
                total += kernel.against(views[name][b])(views[name][a])
            return total

        among = similarities(chosen, chosen)
        without_change = 0
        for start in range(0, len(waiting), _BLOCK):
            some = waiting[start : start + _BLOCK]
            swapped = _swap(chosen, among, some, similarities(some, chosen), similarities(some, some))
            without_change = 0 if swapped else without_change + 1
            if without_change == _PATIENCE:
                break
        return np.sort(pool[chosen])


def _swap(chosen: Rows, among: Array, candidates: Rows, to_chosen: Array, to_each_other: Array) -> int:
    """Let candidates in one after the other where that lowers the sum of similarities; return how many came in.

    `chosen`, its similarities `among` each other and those of the candidates `to_chosen` are kept up to date.
    """
    sums, diagonal, swapped = among.sum(axis=1), among.diagonal().copy(), 0
    for i, candidate in enumerate(candidates):
        # The sum over all pairs once row p leaves and the candidate enters is lower by this much.
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
class KMeansRows(Selector):
    """Real rows nearest to the centres of k-means with as many clusters as rows are wanted.

    The views are standardised, put side by side with equal weight and, where wide, projected at random to 64 columns;
    a random pool of 20 rows for each wanted one is clustered.
    """

    def rows(self, source: Source, count: int, rng: np.random.Generator, kernels: Mapping[str, Kernel]) -> Rows:
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.metrics import pairwise_distances_argmin
        from threadpoolctl import threadpool_limits

        pool = draw_rows(source.n_samples, _POOL * count, rng)
        table = np.hstack([_standardised_projection(x, rng) for x in source.take(pool).values()])
        seed = int(rng.integers(2**31))
        with threadpool_limits(1):
            means = MiniBatchKMeans(count, n_init=1, batch_size=max(1024, 2 * count), random_state=seed).fit(table)
        nearest = np.unique(pairwise_distances_argmin(means.cluster_centers_, table))
        # Two centres may share their nearest row: rows drawn at random make up the number.
        others = np.setdiff1d(np.arange(len(pool)), nearest)
        more = rng.choice(others, count - len(nearest), replace=False)
        return np.sort(pool[np.concatenate([nearest, more])])


def _standardised_projection(x: Any, rng: np.random.Generator) -> Array:
    """Return the standardised columns of one view, randomly projected if there are many, with total variance 1."""
    mean, deviation = column_statistics(x)
    width = x.shape[1]
    if width <= _WIDTH:
        combinations = np.eye(width) / np.sqrt(width)
    else:
        combinations = rng.standard_normal((_WIDTH, width)) / np.sqrt(_WIDTH * width)
    if not sp.issparse(x):
        return np.asarray(((x - mean) / deviation) @ combinations.T)
    combinations = combinations / deviation  # a sparse view is never centred in place: it would become dense
    return np.asarray(x @ combinations.T - combinations @ mean)


def _require_count(selector: str, parameter: str, value: Any) -> None:
    if not (isinstance(value, Integral) and int(value) >= 1):
        raise InputError(f"{selector}({parameter}={value!r}): {parameter} must be a whole number of at least 1")


def as_selector(select: Any) -> Selector:
    """Return the selector, or the one of this name."""
    if isinstance(select, Selector):
        return select
    if isinstance(select, str) and select in SELECTORS:
        found: Selector = SELECTORS[select]()
        return found
    raise InputError(f"select={select!r} is unknown; use one of {', '.join(SELECTORS)}, or a value such as Entropy()")
