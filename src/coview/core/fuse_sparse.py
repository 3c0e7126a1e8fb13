"""Fusion of sparse Gram matrices: a sparse matrix plus one of low rank, and no n×n matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from coview.core.eigen import Problem
from coview.core.gram import Centering, Gram, Grams
from coview.core.sparse import PlusLowRank, SymmetricSparse
from coview.data.rows import row_of_entries
from coview.data.view import Array, Matrix

# The weight of a view in the sum, its sparse Gram matrix and its centring.
_SparseView: TypeAlias = tuple[float, SymmetricSparse, Centering]


class SparseFusion:
    """The views added so far, and rho Σ_v kappa_v Ω_v + (1 - rho) ⊙_v Ω_v of sparse Gram matrices K_v, exactly.

    A centred entry is K_v(i, j) + c_v - a_v(i) - a_v(j). If all K_v are zero there, sum and product are of low rank:
    c_v - a_v(i) - a_v(j) is [1, a_v(i)] B_v [1, a_v(j)]ᵀ with B_v = [[c_v, -1], [-1, 0]], and a product over views has
    the Kronecker products of these. The nonzero entries of the K_v add a sparse matrix on the union of their patterns.
    A product with a vector costs O(entries + 2^views n). The weights are kappa × 2^kappa_exponent.

    If samples lack the view v, the indicator p_v of those that have it takes the place of 1 in [1, a_v(i)]. A pair of
    which one sample lacks the view has the factor s_v in the product, the mean absolute centred entry:
    [p_v(i), a_v(i), 1] B_v [p_v(j), a_v(j), 1]ᵀ with B_v = [[c_v - s_v, -1, 0], [-1, 0, 0], [0, 0, s_v]].
    """

    def __init__(self, grams: Grams, kappa: Mapping[str, float], kappa_exponent: int, rho: float) -> None:
        self._grams, self._kappa, self._kappa_exponent, self._rho = grams, kappa, kappa_exponent, rho
        self._views: list[_SparseView] = []

    def add(self, gram: Gram, centering: Centering) -> None:
        """Add the next view."""
        self._views.append((self._kappa[gram.name], gram.matrix, centering))

    def finish(self, degree: Array) -> tuple[Problem, None]:
        """Return the symmetric problem D^{-1/2} M D^{-1/2}; training scores come from the sparse similarities."""
        rho = self._rho
        # The weights of the sum may have any size; entries of the product are small numbers.
        unit = max([self._kappa_exponent] * (rho > 0) + [0] * (rho < 1))
        for_sum = rho * 2.0 ** (self._kappa_exponent - unit) if rho > 0 else 0.0
        for_product = (1 - rho) * 2.0**-unit
        scale = 1 / np.sqrt(degree)
        missing = [_mean_absolute(view) if for_product and view[2].present is not None else 0.0 for view in self._views]
        (_, first, _), *others = self._views
        difference = UnionOfGraphs.of(self._views, for_sum, for_product, scale, self._grams.dtype, missing)
        sparse = first.combined([matrix for _, matrix, _ in others], difference)
        features, form = _low_rank(self._views, for_sum, for_product, missing)
        features *= scale[:, None]

        added, multiplied = np.zeros(len(degree)), np.ones(len(degree))
        for (weight, matrix, centering), factor in zip(self._views, missing, strict=True):
            diagonal = centering.centred_diagonal(matrix.diagonal())
            added += weight * diagonal
            multiplied *= diagonal if centering.present is None else np.where(centering.present, diagonal, factor)
        trace = float(((for_sum * added + for_product * multiplied) * scale**2).sum())
        return Problem(PlusLowRank(sparse, features, form), unit, trace, self._grams.workers.map), None


@dataclass(frozen=True)
class UnionOfGraphs:
    """Slabs of the difference to the low-rank part, on the nonzero entries of any Gram matrix, scaled on both sides.

    A value with a few numbers for each sample, which other processes can call as well.
    """

    weights: tuple[float, ...]  # of each view in the sum
    mean: tuple[float, ...]
    means: tuple[Array, ...]
    present: tuple[Array | None, ...]
    missing: tuple[float, ...]  # factors of pairs of samples of which one lacks the view
    for_sum: float
    for_product: float
    scale: Array
    dtype: Any

    @classmethod
    def of(
        cls,
        views: Sequence[_SparseView],
        for_sum: float,
        for_product: float,
        scale: Array,
        dtype: Any,
        missing: Sequence[float],
    ) -> UnionOfGraphs:
        """Return the difference of these views."""
        weights, _, centerings = zip(*views, strict=True)
        mean, means, present = zip(*((each.mean, each.means, each.present) for each in centerings), strict=True)
        return cls(weights, mean, means, present, tuple(missing), for_sum, for_product, scale, dtype)

    def __call__(self, rows: slice, slabs: Sequence[Matrix]) -> Matrix:
        """Return these rows of the difference, from the same rows of each Gram matrix."""
        n = len(self.scale)
        keys = [row_of_entries(slab) * n + slab.indices for slab in slabs]
        union = np.sort(np.concatenate(keys), kind="stable")  # merges runs that are already sorted
        union = union[np.diff(union, prepend=-1) > 0]
        within, j = np.divmod(union, n)
        i = within + rows.start
        added, full, low = np.zeros(len(union)), np.ones(len(union)), np.ones(len(union))
        for v, (slab, key) in enumerate(zip(slabs, keys, strict=True)):
            place, entry = np.searchsorted(union, key), slab.data.astype(np.float64)
            added[place] += self.weights[v] * entry
            centred = self.mean[v] - self.means[v][i] - self.means[v][j]
            present = self.present[v]
            if present is not None:
                centred[~(present[i] & present[j])] = self.missing[v]
            low *= centred
            centred[place] += entry
            full *= centred
        values = (self.for_sum * added + self.for_product * (full - low)) * self.scale[i] * self.scale[j]
        starts = np.searchsorted(within, np.arange(rows.stop - rows.start + 1))
        index = np.int32 if max(n, len(union)) <= np.iinfo(np.int32).max else np.int64
        parts = values.astype(self.dtype), j.astype(index), starts.astype(index)
        return sp.csr_array(parts, shape=(rows.stop - rows.start, n))


def _low_rank(
    views: Sequence[_SparseView], for_sum: float, for_product: float, missing: Sequence[float]
) -> tuple[Array, Array]:
    """Return features F and form C of F C Fᵀ, the fused matrix at entries that are zero in all Gram matrices."""
    if any(centering.present is not None for _, _, centering in views):
        return _low_rank_of_some(views, for_sum, for_product, missing)
    centerings, weights = [centering for _, _, centering in views], np.array([weight for weight, _, _ in views])
    n = len(centerings[0].means)
    if for_product == 0:
        features = np.column_stack([np.ones(n), *(centering.means for centering in centerings)])
        alone, form = np.arange(1, len(views) + 1), np.zeros((len(views) + 1, len(views) + 1))
    else:
        features, form = np.ones((n, 1)), np.array([[for_product]])
        for centering in centerings:
            pair = np.column_stack([np.ones(n), centering.means])
            features = (features[:, :, None] * pair[:, None, :]).reshape(n, -1)
            form = np.kron(form, np.array([[centering.mean, -1.0], [-1.0, 0.0]]))
        alone = 2 ** np.arange(len(views))[::-1]  # columns with the means of a single view
    form[0, 0] += for_sum * sum(weight * centering.mean for weight, _, centering in views)
    form[0, alone] -= for_sum * weights
    form[alone, 0] -= for_sum * weights
    return features, form


def _low_rank_of_some(
    views: Sequence[_SparseView], for_sum: float, for_product: float, missing: Sequence[float]
) -> tuple[Array, Array]:
    """Return the same if samples lack views: the features of the sum, and those of the product if there is one."""
    n = len(views[0][2].means)
    ones = np.ones(n)
    features, form = [], np.zeros((2 * len(views), 2 * len(views)))
    for v, (weight, _, centering) in enumerate(views):
        features += [ones if centering.present is None else centering.present.astype(np.float64), centering.means]
        block = slice(2 * v, 2 * v + 2)
        form[block, block] = for_sum * weight * np.array([[centering.mean, -1.0], [-1.0, 0.0]])
    if for_product == 0:
        return np.column_stack(features), form

    multiplied, of_product = np.ones((n, 1)), np.array([[for_product]])
    for v, ((_, _, centering), factor) in enumerate(zip(views, missing, strict=True)):
        pair: list[Array] = features[2 * v : 2 * v + 2]
        block_of_pair: Array = np.array([[centering.mean, -1.0], [-1.0, 0.0]])
        if centering.present is not None:
            pair = [*pair, ones]
            block_of_pair = np.array([[centering.mean - factor, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, factor]])
        multiplied = (multiplied[:, :, None] * np.column_stack(pair)[:, None, :]).reshape(n, -1)
        of_product = np.kron(of_product, block_of_pair)
    return np.column_stack([*features, multiplied]), scipy.linalg.block_diag(form, of_product)


def _mean_absolute(view: _SparseView) -> float:
    """Return the mean absolute centred entry, of pairs of samples that have the view, without forming the matrix."""
    _, matrix, centering = view
    assert centering.present is not None
    # Where the Gram matrix is zero, an entry is x_i + x_j with x = c / 2 - a.
    x = np.sort(centering.mean / 2 - centering.means[centering.present])
    sums = np.concatenate([[0.0], np.cumsum(x)])
    negative = np.searchsorted(x, -x)  # for each i, the number of j with x_j < -x_i
    total = (sums[-1] - 2 * sums[negative] + x * (len(x) - 2 * negative)).sum()
    for rows, slab in zip(matrix.places, matrix.slabs, strict=True):
        i = row_of_entries(slab) + rows.start
        without = centering.mean - centering.means[i] - centering.means[slab.indices]
        total += (np.abs(without + slab.data) - np.abs(without)).sum()
    return float(total) / len(x) ** 2
