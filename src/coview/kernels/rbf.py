"""RBF: the Gaussian kernel, by products where these are exact enough and by differences elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.base.parameters import check_above
from coview.base.runtime import Map, serial_map
from coview.data.rows import (
    append_columns,
    as_float64,
    column,
    squared_norms,
)
from coview.data.view import Array, Matrix
from coview.errors import InputError
from coview.kernels.base import Similarity
from coview.kernels.products import InnerProductKernel, Products
from coview.neighbors.duplicates import Integers

# Squared norms of rows, in units of sigma², above which RBF does not use products: exponents lose 1e-12 and 1e-5.
_LARGEST_NORM: Mapping[Any, float] = {np.float64: 1e4, np.float32: 64.0}
_DENSE_BYTES = 2**25  # of sparse rows that are made dense at a time
_MEDIAN_ROWS = 500
_FACTOR_ROWS = 1024  # in blocks that stay in the cache, in half the time


@dataclass(frozen=True)
class RBF(InnerProductKernel):
    """Gaussian kernel exp(-|x - y|² / sigma2); there is no factor 2.

    Parameters
    ----------
    sigma2 : float, optional
        Squared bandwidth. By default the median squared distance between two training rows (of at most 500 rows,
        drawn with the estimator's `random_state`), or the mean if more than half of the pairs coincide.

    See Also
    --------
    NeighborGraph : A sparse kernel with local bandwidths.

    Examples
    --------
    >>> import numpy as np
    >>> RBF(sigma2=1.0)(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    sigma2: float | None = None

    bounded = True
    bandwidth = "sigma2"

    def __post_init__(self) -> None:
        if self.sigma2 is not None:
            check_above("RBF.sigma2", self.sigma2, 0, or_else=", or None")

    def resolve(self, x: Matrix, rng: np.random.Generator | None = None, name: str = "x") -> RBF:
        return self if self.sigma2 is not None else replace(self, sigma2=_median_squared_distance(x, rng, name))

    @property
    def nonnegative(self) -> bool:
        return True

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        # A translation of all rows does not change the kernel; near the origin the products lose the fewest digits.
        with np.errstate(over="ignore", invalid="ignore"):
            centre = None if sp.issparse(rows) else np.nan_to_num(rows.mean(axis=0, dtype=np.float64))
        factor = self.factor(rows, centre, dtype)
        norms = -column(factor, -1)
        far = np.flatnonzero(norms > _LARGEST_NORM[dtype])
        noise = float(np.delete(norms, far).max(initial=0))
        return GaussianProducts(self, factor, centre, far, rows[far], noise)

    def factor(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        if sp.issparse(x):
            scaled, exponents = self._scaled(x, centre, dtype)
            return append_columns(scaled, np.ones_like(exponents), exponents).astype(dtype, copy=False)
        factor = np.empty((x.shape[0], x.shape[1] + 2), dtype)
        for start in range(0, x.shape[0], _FACTOR_ROWS):
            rows = slice(start, start + _FACTOR_ROWS)
            factor[rows, :-2], factor[rows, -1] = self._scaled(x[rows], centre, dtype)
        factor[:, -2] = 1
        return factor

    def left_factor(self, factor: Matrix) -> Matrix:
        """Swap the last two columns, so that the product multiplies each row's exponent by the other row's 1."""
        last = factor.shape[1] - 1
        if sp.issparse(factor):
            swapped = factor.indices.copy()
            swapped[factor.indices == last] = last - 1
            swapped[factor.indices == last - 1] = last
            return sp.csr_array((factor.data, swapped, factor.indptr), shape=factor.shape)
        left = factor.copy()
        left[:, last - 1], left[:, last] = factor[:, last], factor[:, last - 1]
        return left

    def identifying_columns(self, factor: Matrix) -> Matrix:
        return factor[:, :-2]  # the rounding of exponents, which are sums, depends on the order in memory

    def finish(self, block: Array) -> None:
        with np.errstate(over="ignore"):  # of pairs that are far from the centre, which differences replace
            np.exp(block, out=block)

    def _scaled(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> tuple[Matrix, Array]:
        """Return rows times sqrt(2)/sigma, and minus half their squared norms: exponents are then plain products.

        Both are finite in this type.
        """
        assert self.sigma2 is not None
        with np.errstate(over="ignore"):
            moved = x.astype(np.float64) if centre is None else x - centre
            moved *= math.sqrt(2) / math.sqrt(self.sigma2)
            scaled, exponents = moved, -squared_norms(moved) / 2
        overflown = ~(exponents > -np.finfo(dtype).max / 4)  # a product adds four such numbers
        if overflown.any():
            # Rows whose squared norm overflows have similarity 0 to all others; inf - inf would be NaN.
            if sp.issparse(scaled):
                scaled.data[np.repeat(overflown, np.diff(scaled.indptr))] = 0
            else:
                scaled[overflown] = 0
            exponents[overflown] = -1e30
        return scaled, exponents


@dataclass(frozen=True)
class GaussianProducts(Products):
    """RBF similarities by products, and by differences for pairs of rows that are both far from the centre.

    If both rows have a large norm, the exponent is a small difference of large numbers, and products lose its digits.
    If one of them has a bounded norm, the loss is bounded.
    """

    kernel: RBF
    far: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    far_rows: Matrix = None
    noise: float = 0.0

    def __call__(self, x: Matrix) -> Array:
        factor = self.factor_of(x)
        block = self.of_factor(factor)
        if len(self.far):
            both = np.flatnonzero(-column(factor, -1) > _LARGEST_NORM[self.dtype])
            block[np.ix_(both, self.far)] = self._by_differences(x[both], self.far_rows)
        return block

    def _of_training(self, rows: Integers) -> Array:
        block, both = super()._of_training(rows), np.flatnonzero(np.isin(rows, self.far))
        block[np.ix_(both, self.far)] = self._by_differences(
            self.far_rows[np.searchsorted(self.far, rows[both])], self.far_rows
        )
        return block

    def tile(self, rows: slice, columns: slice, out: Array) -> None:
        super().tile(rows, columns, out)
        r, c = (slice(*np.searchsorted(self.far, (part.start, part.stop))) for part in (rows, columns))
        if r.stop > r.start and c.stop > c.start:
            place = np.ix_(self.far[r] - rows.start, self.far[c] - columns.start)
            out[place] = self._by_differences(self.far_rows[r], self.far_rows[c])

    def _by_differences(self, x: Matrix, y: Matrix) -> Array:
        from scipy.spatial.distance import cdist

        assert isinstance(self.kernel, RBF)
        assert self.kernel.sigma2 is not None
        sigma = math.sqrt(self.kernel.sigma2)
        squared = np.empty((x.shape[0], y.shape[0]))
        step = max(_DENSE_BYTES // (8 * x.shape[1]), 1)
        for i in range(0, x.shape[0], step):
            for j in range(0, y.shape[0], step):
                a, b = as_float64(x[i : i + step]), as_float64(y[j : j + step])
                # Differences are divided by sigma, not the rows: these could overflow.
                with np.errstate(over="ignore"):
                    squared[i : i + step, j : j + step] = np.square(cdist(a, b) / sigma)
        return np.exp(-squared)


def _median_squared_distance(x: Matrix, rng: np.random.Generator | None, name: str) -> float:
    if x.shape[0] > _MEDIAN_ROWS:
        rng = np.random.default_rng(0) if rng is None else rng
        x = x[rng.choice(x.shape[0], _MEDIAN_ROWS, replace=False)]
    largest = float(abs(x).max())
    if largest == 0 or x.shape[0] == 1:
        return 1.0
    x = x.astype(np.float64) / largest  # squares of very large or small values would leave the range of float64
    if not sp.issparse(x):
        x -= x.mean(axis=0)
    norms = squared_norms(x)
    pairs = np.triu_indices(x.shape[0], k=1)
    squared = (norms[:, None] + norms - 2 * as_float64(x @ x.T))[pairs]
    typical = float(np.median(squared))
    if typical <= 1e-6 * norms.max():  # an outlier or an offset: too many digits have cancelled
        from scipy.spatial.distance import pdist

        squared = pdist(as_float64(x), "sqeuclidean")
        typical = float(np.median(squared)) or float(squared.mean())
    if not typical:
        return 1.0
    with np.errstate(over="ignore", under="ignore"):
        sigma2 = float(np.float64(typical) * largest * largest)
    if not np.finfo(np.float64).tiny <= sigma2 < math.inf:
        raise InputError(
            f"view {name!r} has values of up to {largest:.0e}, so its median squared distance is outside the range of "
            "float64; rescale the view, for example with Preprocessed(…, steps='standard')"
        )
    return sigma2
