"""Gram matrices of the training samples, one view at a time in one buffer, with their degrees and centring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.base.runtime import Workers
from coview.core.sparse import SymmetricSparse
from coview.core.tiles import SymmetricTiles
from coview.data.rows import stored_for_products
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.errors import InputError
from coview.kernels import GraphSimilarity, Kernel, Similarity, kernel_for

# Centred entries below this multiple of the rounding error of the largest entry count as zero.
_ROUNDING_ERRORS = 64


@dataclass(frozen=True)
class Gram:
    """The Gram matrix of one view; in tiles it is valid until the next view fills the buffer.

    Rows and columns of samples that lack the view are zero, and so are their degrees.
    """

    name: str
    kernel: Kernel
    degree: Array  # row sums of the matrix
    absolute_degree: Array  # and of its absolute values
    largest: float  # the largest absolute entry
    matrix: Any  # SymmetricTiles or SymmetricSparse
    present: Array | None = None  # which samples have the view; None for all

    def positive_degrees(self) -> Array:
        """Return the row sums, which must be positive because the methods divide by them."""
        # A sum that cancels down to its own rounding error counts as zero.
        rounding = 4 * np.finfo(self.matrix.dtype).eps * np.sqrt(len(self.degree)) * self.absolute_degree
        bad = np.where(self.absolute_degree > self.degree, self.degree <= rounding, self.degree <= 0)
        bad = bad if self.present is None else bad[self.present]
        if bad.any():
            raise InputError(
                f"view {self.name!r} has {bad.sum()} of {len(bad)} samples with degree <= 0 under {self.kernel}; "
                "scale the view to be non-negative, drop all-zero samples, or use RBF()"
            )
        return self.degree

    def regularized(self, multiple: float) -> Array:
        """Return the degrees, raised by a multiple of their mean for the samples that have the view."""
        degree = self.positive_degrees()
        if self.present is None:
            return degree + multiple * degree.mean()
        return np.where(self.present, degree + multiple * degree[self.present].mean(), 0.0)

    def centre_by(self, degree: Array) -> Centering:
        """Return the centring of KSC: by the mean of the training samples with weights 1 / degree."""
        if self.present is None:
            return Centering.learn(self.matrix, degree.min() / degree, self.largest)
        weights = np.zeros(len(degree))
        weights[self.present] = degree[self.present].min() / degree[self.present]
        return Centering.learn(self.matrix, weights, self.largest, self.present)

    @property
    def rounding_error(self) -> float:
        """The absolute value up to which a centred entry counts as zero."""
        return float(_ROUNDING_ERRORS * np.finfo(self.matrix.dtype).eps * self.largest)

    def is_zero_up_to_rounding(self, centred: Array) -> bool:
        """Return whether these centred entries are zero up to rounding, as in a view whose rows are all equal."""
        return bool(np.abs(centred).max() <= self.rounding_error)

    def normalised_similarity(self) -> SymmetricTiles:
        """Return D^{-1/2} K D^{-1/2}, with D the degrees, in the memory of the Gram matrix K."""
        tiles: SymmetricTiles = self.matrix
        return tiles.scale_both_sides(1 / np.sqrt(self.positive_degrees()))


@dataclass(frozen=True)
class Grams:
    """The Gram matrices of all views: one after the other in one buffer, each in its own memory, or sparse.

    The kernels have their data-driven parameters; `report` is called with a description after each view.
    """

    similarities: Mapping[str, Similarity]
    kernels: Mapping[str, Kernel]
    n_samples: int
    dtype: Any
    workers: Workers
    report: Callable[[str], object] = lambda stage: None
    present: Mapping[str, Array] = field(default_factory=dict)  # of views that some samples lack: which have them

    @classmethod
    def learn(
        cls,
        views: Views,
        kernels: Mapping[str, Kernel],
        dtype: Any,
        rng: np.random.Generator,
        workers: Workers,
        report: Callable[[str], object] = lambda stage: None,
    ) -> Grams:
        """Return the Gram matrices of these views, after the kernels have learnt their data-driven parameters.

        The similarities of a view are to the samples that have it.
        """
        seed = int(rng.integers(2**31))  # one for all views, so that their order does not matter
        similarities: dict[str, Similarity] = {}
        resolved: dict[str, Kernel] = {}
        # One view after the other: in threads their temporaries would add up, for 2 % of the time.
        for name in views:
            x = stored_for_products(views.observed(name))
            kernel = kernel_for(kernels[name], views, name)
            kernel.check_training(name, x, dtype)
            resolved[name] = kernel.resolve(x, np.random.default_rng(seed), name)
            similarities[name] = resolved[name].against(x, dtype, workers.map)
        return cls(similarities, resolved, views.n_samples, dtype, workers, report, views.present)

    @property
    def n_sparse(self) -> int:
        """The number of views whose similarities are sparse."""
        return sum(similarity.sparse for similarity in self.similarities.values())

    @property
    def bandwidth(self) -> str:
        """The parameters of the kernels that make more samples similar, for messages; empty if there are none."""
        return " or ".join(dict.fromkeys(each.bandwidth for each in self.kernels.values() if each.bandwidth))

    def __iter__(self) -> Iterator[Gram]:
        """Yield each view's matrix in tiles; all views share one buffer."""
        buffer = SymmetricTiles(self.n_samples, self.dtype, self.workers, allocate=self.workers.empty)
        for name in self.similarities:
            yield self._fill(name, buffer)

    def kept(self) -> list[Gram]:
        """Return all of them, each in memory of its own, for methods that visit every view repeatedly."""
        return [
            self._fill(name, SymmetricTiles(self.n_samples, self.dtype, self.workers)) for name in self.similarities
        ]

    def sparse(self) -> Iterator[Gram]:
        """Yield them as sparse matrices; all similarities must be sparse."""
        for name in self.similarities:
            matrix = self._sparse_matrix(name)
            degree = matrix @ np.ones(self.n_samples)
            self.report(f"similarities of {name}")
            yield Gram(name, self.kernels[name], degree, degree, 1.0, matrix, self.present.get(name))

    def _sparse_matrix(self, name: str) -> SymmetricSparse:
        similarity, present = self.similarities[name], self.present.get(name)
        assert isinstance(similarity, GraphSimilarity)
        gram = similarity.gram if present is None else embedded(similarity.gram, present)
        return SymmetricSparse.of(gram, self.workers)

    def _fill(self, name: str, buffer: SymmetricTiles) -> Gram:
        degree, absolute, largest = _fill_tiles(buffer, self.similarities[name], self.present.get(name))
        if not np.isfinite(absolute).all():
            raise InputError(
                f"view {name!r} has similarities too large to compute with under {self.kernels[name]}; scale the view"
            )
        self.report(f"similarities of {name}")
        return Gram(name, self.kernels[name], degree, absolute, largest, buffer, self.present.get(name))


def _fill_tiles(matrix: SymmetricTiles, similarity: Similarity, present: Array | None) -> tuple[Array, Array, float]:
    """Compute the tiles; return the row sums of entries and of absolute entries, and the largest absolute entry."""
    largest = [1.0 if similarity.bounded else 0.0]

    def one(t: int, rows: slice, columns: slice) -> list[Array]:
        tile = matrix.tiles[t]
        with np.errstate(over="ignore", invalid="ignore"):
            if present is None:
                similarity.tile(rows, columns, out=tile)
            else:
                _fill_present(tile, rows, columns, similarity, present)
            sums = [_tile_row_sums(tile), _tile_row_sums(tile.T)]
            if not similarity.bounded:
                largest.append(float(max(tile.max(), -tile.min())))
            if similarity.nonnegative:
                return sums * 2
            absolute = np.abs(tile)
            return [*sums, _tile_row_sums(absolute), _tile_row_sums(absolute.T)]

    degree, absolute = np.zeros(matrix.shape[0]), np.zeros(matrix.shape[0])
    for (rows, columns), sums in zip(matrix.places, matrix.for_each(one), strict=True):
        degree[rows] += sums[0]
        absolute[rows] += sums[2]
        if rows != columns:
            degree[columns] += sums[1]
            absolute[columns] += sums[3]
    return degree, absolute, max(largest)


def _fill_present(tile: Array, rows: slice, columns: slice, similarity: Similarity, present: Array) -> None:
    """Write the similarities between samples that have the view, and zeros for all others."""
    has_rows, has_columns = present[rows], present[columns]
    starts = [int(np.count_nonzero(present[: part.start])) for part in (rows, columns)]
    counts = [int(np.count_nonzero(mask)) for mask in (has_rows, has_columns)]
    if not all(counts):
        tile.fill(0)
        return
    some = np.empty(counts, tile.dtype)
    some_rows, some_columns = (slice(a, a + count) for a, count in zip(starts, counts, strict=True))
    similarity.tile(some_rows, some_columns, out=some)
    # A column of a sample that lacks the view is first a copy of the one before, which is faster than writing the
    # others to their places.
    wide = some.take(np.maximum(np.cumsum(has_columns) - 1, 0), axis=1)
    wide *= has_columns.astype(tile.dtype)
    tile[has_rows] = wide
    tile[~has_rows] = 0


def embedded(gram: Matrix, present: Array) -> Matrix:
    """Return a sparse matrix with zero rows and columns for the samples that lack the view."""
    places, n = np.flatnonzero(present), len(present)
    indptr = np.zeros(n + 1, dtype=gram.indptr.dtype)
    indptr[1:][present] = np.diff(gram.indptr)
    np.cumsum(indptr, out=indptr)
    return sp.csr_array((gram.data, places.astype(gram.indices.dtype)[gram.indices], indptr), shape=(n, n))


def _tile_row_sums(tile: Array) -> Array:
    """Return the row sums by BLAS, three times faster than a reduction; sums of tiles are added in float64."""
    return tile @ np.ones(tile.shape[1], tile.dtype)


@dataclass(frozen=True)
class Centering:
    """Weighted centring in feature space, learnt from training samples and applied to any block of rows.

    Subtracting the mean of the training samples, weighted by w, from both sides turns a block K into
    K - (K w) 1ᵀ - 1 aᵀ + c, where a = Ω w and c = wᵀ Ω w come from the training Gram matrix Ω. No statistic of the
    block itself is used, so a row gets the same result alone and in any batch.

    Samples that lack the view have the weight 0, and zero rows and columns after centring: they are at the mean.
    """

    weights: Array  # w
    means: Array  # a
    mean: float  # c
    largest: float  # the largest absolute similarity of training samples: rounding errors are relative to it
    present: Array | None = None  # which samples have the view; None for all

    @classmethod
    def learn(cls, matrix: Any, weights: Array, largest: float = 1.0, present: Array | None = None) -> Centering:
        """Return the centring of a training Gram matrix with this largest entry; weights are scaled to sum 1."""
        weights = weights / weights.sum()
        means = matrix @ weights
        return cls(weights, means, float(weights @ means), largest, present)

    def centre(self, tile: Array, rows: slice, columns: slice) -> None:
        """Centre these rows and columns of the training Gram matrix, in place."""
        tile[...] = self.centred(tile, rows, columns)

    def centred(self, tile: Array, rows: slice, columns: slice) -> Array:
        """Return these rows and columns of the training Gram matrix, centred."""
        # A product with two columns is written faster than two vectors are subtracted, row by row.
        left, right = np.ones((len(tile), 2), tile.dtype), np.ones((2, tile.shape[1]), tile.dtype)
        left[:, 0], right[1] = self.mean - self.means[rows], -self.means[columns]
        centred: Array = left @ right
        centred += tile
        if self.present is not None:  # a product is faster than a selection of columns
            centred *= self.present[columns].astype(tile.dtype)
            centred[~self.present[rows]] = 0
        return centred

    def fill_missing(self, tile: Array, rows: slice, columns: slice, value: float) -> None:
        """Write a value to the pairs of samples of which one lacks the view, in place; they are zero before."""
        if self.present is not None:
            tile += np.where(self.present[columns], 0, value).astype(tile.dtype)
            tile[~self.present[rows]] = value

    def centred_diagonal(self, diagonal: Array) -> Array:
        """Return the diagonal of the centred training Gram matrix."""
        centred = diagonal - 2 * self.means + self.mean
        return centred if self.present is None else np.where(self.present, centred, 0.0)

    def of_present(self) -> Centering:
        """Return the same centring for the Gram matrix of the samples that have the view."""
        if self.present is None:
            return self
        return Centering(self.weights[self.present], self.means[self.present], self.mean, self.largest)

    def fold(self, latent: Array) -> tuple[Array, Array]:
        """Return coefficients and bias that score a block K of rows: K_c H = K coefficients + bias."""
        total = latent.sum(axis=0)
        return latent - np.outer(self.weights, total), self.mean * total - self.means @ latent
