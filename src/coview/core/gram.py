"""Gram matrices of the training rows, view by view in one buffer: degrees, and the centring they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coview.core.sparse import SymmetricSparse
from coview.core.tiles import SymmetricTiles
from coview.errors import InputError
from coview.kernels import Kernel, NeighborSimilarity, Similarity
from coview.runtime import Map, Workers, serial_map
from coview.views import Array, Views

# Centred entries of so many roundings are zero.
_NOISE = 64


@dataclass(frozen=True)
class GramFacts:
    """What is known of the kernel matrix of one view's training rows, in whatever form it is stored."""

    name: str
    kernel: Kernel
    degree: Array
    absolute_degree: Array
    largest: float
    dtype: Any

    def positive_degrees(self) -> Array:
        """Return the row sums; the methods divide by them, so they must be positive."""
        # A sum that cancels down to its own rounding error counts as zero.
        rounding = 4 * np.finfo(self.dtype).eps * np.sqrt(len(self.degree)) * self.absolute_degree
        bad = np.count_nonzero(np.where(self.absolute_degree > self.degree, self.degree <= rounding, self.degree <= 0))
        if bad:
            raise InputError(
                f"view {self.name!r} has {bad} of {len(self.degree)} samples with degree <= 0 under {self.kernel}; "
                "scale the view to be non-negative, drop all-zero samples, or use RBF()"
            )
        return self.degree

    @property
    def rounding(self) -> float:
        """The size of centred entries that are zero but for rounding."""
        return float(_NOISE * np.finfo(self.dtype).eps * self.largest)

    def is_rounding(self, centred: Array) -> bool:
        """Whether what centring left of (some of) the matrix is no more than rounding, as for rows all alike."""
        return bool(np.abs(centred).max() <= self.rounding)


@dataclass(frozen=True)
class Gram(GramFacts):
    """The kernel matrix in tiles, until the next view takes its place in the buffer."""

    matrix: SymmetricTiles


@dataclass(frozen=True)
class SparseGram(GramFacts):
    """The kernel matrix as a sparse one."""

    matrix: SymmetricSparse


class Grams:
    """The views' Gram matrices, one after the other in memory for one, all of them at once, or as sparse ones."""

    def __init__(
        self,
        similarities: Mapping[str, Similarity],
        kernels: Mapping[str, Kernel],
        n_samples: int,
        dtype: Any,
        workers: Workers,
        report: Callable[[str], None] = lambda stage: None,
    ) -> None:
        self.n_samples = n_samples
        self.dtype = dtype
        self.workers = workers
        self.report = report
        self.largest: dict[str, float] = {}
        self.similarities = similarities
        self._kernels = kernels

    def __iter__(self) -> Iterator[Gram]:
        buffer = self._memory()
        for name in self.similarities:
            yield self._gram(name, buffer)

    def kept(self) -> list[Gram]:
        """Return all of them, each in memory of its own, for methods that come back to every view."""
        return [self._gram(name, self._memory()) for name in self.similarities]

    def sparse(self) -> Iterator[SparseGram]:
        """Yield them as sparse matrices, where all similarities are sparse."""
        for name, similarity in self.similarities.items():
            assert isinstance(similarity, NeighborSimilarity)
            matrix = SymmetricSparse(similarity.gram, self.workers)
            degree = matrix @ np.ones(self.n_samples)
            self.largest[name] = 1.0
            self.report(f"similarities of {name}")
            yield SparseGram(name, self._kernels[name], degree, degree, 1.0, matrix.dtype, matrix)

    def _memory(self) -> SymmetricTiles:
        return SymmetricTiles(self.n_samples, self.dtype, self.workers)

    def _gram(self, name: str, buffer: SymmetricTiles) -> Gram:
        degree, absolute, largest = _fill(buffer, self.similarities[name])
        if not np.isfinite(absolute).all():
            raise InputError(
                f"view {name!r} gives similarities too large to compute with under {self._kernels[name]}; "
                "scale the view"
            )
        self.largest[name] = largest
        self.report(f"similarities of {name}")
        return Gram(name, self._kernels[name], degree, absolute, largest, buffer.dtype, buffer)


def learn_similarities(
    views: Views, kernels: Mapping[str, Kernel], dtype: Any, rng: np.random.Generator, map_blocks: Map = serial_map
) -> tuple[dict[str, Kernel], dict[str, Similarity]]:
    """Fill in what the kernels take from the data, and return them with the similarities to the training rows."""
    for name, x in views.items():
        kernels[name].check_training(name, x)
    seed = int(rng.integers(2**31))  # one for all, so that the order of the views does not matter
    resolved = {name: kernels[name].resolve(x, np.random.default_rng(seed)) for name, x in views.items()}
    # One view after the other: in threads their temporaries would add up, for a fiftieth of the time.
    return resolved, {name: resolved[name].against(x, dtype, map_blocks) for name, x in views.items()}


def _fill(matrix: SymmetricTiles, similarity: Similarity) -> tuple[Array, Array, float]:
    """Compute the tiles; return the row sums of the matrix and of its sizes, and the largest entry in size."""
    largest = [1.0 if similarity.bounded else 0.0]

    def one(t: int, rows: slice, columns: slice) -> list[Array]:
        tile = matrix.tiles[t]
        with np.errstate(over="ignore", invalid="ignore"):
            similarity.tile(rows, columns, out=tile)
            sums = [_row_sums(tile), _row_sums(tile.T)]
            if not similarity.bounded:
                largest.append(float(max(tile.max(), -tile.min())))
            if similarity.nonnegative:
                return sums * 2
            sizes = np.abs(tile)
            return [*sums, _row_sums(sizes), _row_sums(sizes.T)]

    degree, absolute = np.zeros(matrix.shape[0]), np.zeros(matrix.shape[0])
    for (rows, columns), sums in zip(matrix.places, matrix.for_each(one), strict=True):
        degree[rows] += sums[0]
        absolute[rows] += sums[2]
        if rows != columns:
            degree[columns] += sums[1]
            absolute[columns] += sums[3]
    return degree, absolute, max(largest)


def _row_sums(tile: Array) -> Array:
    """Sums of a few hundred numbers by BLAS, three times faster than a reduction; tiles are added up in float64."""
    sums: Array = tile @ np.ones(tile.shape[1], tile.dtype)
    return sums


@dataclass(frozen=True)
class Centering:
    """Weighted centring in feature space, learnt from training rows and applied to any block of rows.

    Subtracting the weighted mean w of the training rows from both sides turns a block K into
    K - (K w) 1ᵀ - 1 aᵀ + c, where a = Ω w and c = wᵀ Ω w come from the training Gram matrix Ω. No statistic of the
    block itself is used, so a row gets the same answer alone and in any batch.
    """

    weights: Array
    means: Array
    mean: float

    @classmethod
    def learn(cls, gram: SymmetricTiles | SymmetricSparse | Array, weights: Array) -> Centering:
        """Learn from a training Gram matrix; the weights are scaled to sum to 1."""
        weights = weights / weights.sum()
        means = gram @ weights
        return cls(weights, means, float(weights @ means))

    def centre(self, tile: Array, rows: slice, columns: slice) -> None:
        """Centre these rows and columns of the training Gram matrix, in place."""
        tile -= (self.means[rows] - self.mean).astype(tile.dtype)[:, None]
        tile -= self.means[columns].astype(tile.dtype)

    def centred_diagonal(self, diagonal: Array) -> Array:
        """Return the diagonal of the centred training Gram matrix."""
        centred: Array = diagonal - 2 * self.means + self.mean
        return centred

    def fold(self, latent: Array) -> tuple[Array, Array]:
        """Return coefficients and bias that score a block K of rows: K_c H = K coefficients + bias."""
        total = latent.sum(axis=0)
        return latent - np.outer(self.weights, total), self.mean * total - self.means @ latent
