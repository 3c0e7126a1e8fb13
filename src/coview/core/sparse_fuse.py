"""Fusion of sparse Gram matrices: what is left after a low-rank matrix is sparse as well, and nothing n×n is formed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.core.eigen import Problem
from coview.core.fuse import Fused, Fusion, settled
from coview.core.gram import Centering, Grams, SparseGram
from coview.core.sparse import SymmetricSparse, row_slabs
from coview.views import Array, Matrix

# The low-rank part has 2^views columns: beyond, tiles are no dearer.
_MOST_VIEWS = 8


def fusion_of(grams: Grams, rho: float, kappa: Mapping[str, float]) -> Fused:
    """Return a fusion for these Gram matrices: sparse where all of them are, for up to 8 views; otherwise in tiles."""
    if fuses_sparse([similarity.sparse for similarity in grams.similarities.values()]):
        return SparseFusion(grams, rho, kappa)
    return Fusion(grams, rho, kappa)


def fuses_sparse(sparse: list[bool]) -> bool:
    """Whether views, given whether each has a sparse Gram matrix, are fused without any n×n matrix."""
    return all(sparse) and len(sparse) <= _MOST_VIEWS


class SparseFusion(Fused):
    """Collect sparse Gram matrices K_v for rho Σ_v kappa_v Ω_v + (1 - rho) ⊙_v Ω_v.

    A centred entry is K_v(i, j) + c_v - a_v(i) - a_v(j). Where all K_v are zero, sum and product are of low rank:
    c_v - a_v(i) - a_v(j) is [1, a_v(i)] B_v [1, a_v(j)]ᵀ with B_v = [[c_v, -1], [-1, 0]], and a product over views has
    the Kronecker products of these. What the entries of the K_v change is sparse, on the union of their patterns.
    Together they are the fused matrix, without any approximation. Its product with a vector costs
    O(entries + 2^views n).
    """

    def __init__(self, grams: Grams, rho: float, kappa: Mapping[str, float]) -> None:
        self._grams = grams
        self._rho, self._kappa, self._kappa_exponent = settled(rho, kappa)
        self._views: list[tuple[float, Matrix, Centering]] = []

    def grams(self) -> Iterator[SparseGram]:
        return self._grams.sparse()

    def add(self, gram: SparseGram, centering: Centering) -> None:
        self._views.append((self._kappa[gram.name], gram.matrix.matrix, centering))

    def problem(self, degree: Array) -> Problem:
        # The weights of the sum may be of any size; entries of the product are at most a few.
        unit = max([self._kappa_exponent] * (self._rho > 0) + [0] * (self._rho < 1))
        for_sum = self._rho * 2.0 ** (self._kappa_exponent - unit) if self._rho > 0 else 0.0
        for_product = (1 - self._rho) * 2.0**-unit
        scale = 1 / np.sqrt(degree)
        rest = _on_the_union(self._views, for_sum, for_product, scale, self._grams)
        features, form = _low_rank(self._views, for_sum, for_product)
        features *= scale[:, None]
        matrix = SparsePlusLowRank(rest, features, form)

        added, multiplied = np.zeros(len(degree)), np.ones(len(degree))
        for kappa, gram, centering in self._views:
            diagonal = centering.centred_diagonal(gram.diagonal().astype(np.float64))
            added += kappa * diagonal
            multiplied *= diagonal
        trace = float(((for_sum * added + for_product * multiplied) * scale**2).sum())
        return Problem(matrix, exponent=unit, trace=trace)

    def ensemble(self, latent: Array, beta: Mapping[str, float]) -> None:
        """Say that scores have to be computed from similarities: sparse ones cost next to nothing."""


@dataclass(frozen=True)
class SparsePlusLowRank:
    """The symmetric matrix S + F C Fᵀ for a sparse S, features F (n, few) and a small symmetric C."""

    sparse: SymmetricSparse
    features: Array
    form: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.sparse.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.sparse.dtype

    def __matmul__(self, x: Array) -> Array:
        workers, places = self.sparse.workers, self.sparse.places
        parts = workers.map(lambda rows: self.features[rows].T @ x[rows], places)
        inner = self.form @ sum(parts, start=np.zeros_like(parts[0]))
        product = self.sparse @ x

        def add(rows: slice) -> None:
            product[rows] += self.features[rows] @ inner

        workers.map(add, places)
        return product

    def to_dense(self) -> Array:
        dense: Array = self.sparse.to_dense() + self.features @ self.form @ self.features.T
        return dense


def _on_the_union(
    views: list[tuple[float, Matrix, Centering]], for_sum: float, for_product: float, scale: Array, grams: Grams
) -> SymmetricSparse:
    """What the entries of the Gram matrices add to the low-rank part, between the scales."""
    n = len(scale)

    def slab(rows: slice) -> tuple[Array, Array, Array]:
        keys, entries = [], []
        for _, gram, _ in views:
            first, last = gram.indptr[rows.start], gram.indptr[rows.stop]
            sizes = np.diff(gram.indptr[rows.start : rows.stop + 1])
            keys.append(np.repeat(np.arange(rows.stop - rows.start) * n, sizes) + gram.indices[first:last])
            entries.append(gram.data[first:last].astype(np.float64))
        union = np.sort(np.concatenate(keys), kind="stable")  # runs in order already, which this sort merges
        union = union[np.diff(union, prepend=-1) > 0]
        i, j = np.divmod(union, n)
        i += rows.start
        added, full, low = np.zeros(len(union)), np.ones(len(union)), np.ones(len(union))
        for (kappa, _, centering), key, entry in zip(views, keys, entries, strict=True):
            place = np.searchsorted(union, key)
            added[place] += kappa * entry
            centred = centering.mean - centering.means[i] - centering.means[j]
            low *= centred
            centred[place] += entry
            full *= centred
        values = (for_sum * added + for_product * (full - low)) * scale[i] * scale[j]
        counts = np.bincount(i - rows.start, minlength=rows.stop - rows.start)
        return values.astype(grams.dtype), j.astype(views[0][1].indices.dtype), counts

    slabs = grams.workers.map(slab, row_slabs(n))
    data, indices, counts = (np.concatenate(parts) for parts in zip(*slabs, strict=True))
    starts = np.concatenate([[0], np.cumsum(counts)])
    if len(data) <= np.iinfo(np.int32).max:
        starts, indices = starts.astype(np.int32), indices.astype(np.int32)
    return SymmetricSparse(sp.csr_array((data, indices, starts), shape=(n, n)), grams.workers)


def _low_rank(views: list[tuple[float, Matrix, Centering]], for_sum: float, for_product: float) -> tuple[Array, Array]:
    """Features and form of the fused matrix where all Gram matrices are zero."""
    n = len(views[0][2].means)
    total = sum(kappa * centering.mean for kappa, _, centering in views)
    if for_product == 0:
        features = np.column_stack([np.ones(n), *(centering.means for _, _, centering in views)])
        alone, form = np.arange(1, len(views) + 1), np.zeros((len(views) + 1, len(views) + 1))
    else:
        features, form = np.ones((n, 1)), np.array([[for_product]])
        for _, _, centering in views:
            pair = np.column_stack([np.ones(n), centering.means])
            features = (features[:, :, None] * pair[:, None, :]).reshape(n, -1)
            form = np.kron(form, np.array([[centering.mean, -1.0], [-1.0, 0.0]]))
        alone = 2 ** np.arange(len(views))[::-1]  # columns that hold the means of one view only
    form[0, 0] += for_sum * total
    weights = np.array([kappa for kappa, _, _ in views])
    form[0, alone] -= for_sum * weights
    form[alone, 0] -= for_sum * weights
    return features, form
