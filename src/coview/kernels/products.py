"""Kernels of one inner product per pair of (suitably prepared) rows.

That is the whole trick: preparing costs a pass over the rows, and a block of similarities is one matrix product
finished in place.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.kernels.base import Kernel, Similarity, require_number
from coview.rows import append_columns, as_array, as_float64, column, l2_normalize, squared_norms
from coview.runtime import Map, serial_map
from coview.state import PARAMETER, DenseOrSparse, FloatArray, IntegerArray, Range, Sizes, require
from coview.views import Array, Matrix

# Squared lengths of rows, in units of sigma², beyond which RBF does not trust products: exponents lose 1e-12 and 1e-5.
_FAR: Mapping[Any, float] = {np.float64: 1e4, np.float32: 64.0}
_SLAB_BYTES = 2**25
_MEDIAN_ROWS = 500


@dataclass(frozen=True)
class Products(Similarity):
    """Similarities by one matrix product of prepared rows, finished in place."""

    kernel: Annotated[InnerProductKernel, PARAMETER]
    prepared: Annotated[Matrix, DenseOrSparse("train", "_columns")]
    centre: Annotated[Array, FloatArray("features")] | None = None

    def _check_state(self, sizes: Sizes) -> None:
        sizes.agree("features", self.prepared.shape[1] - self.kernel.n_extra_columns)

    @property
    def dtype(self) -> type[np.floating[Any]]:  # type: ignore[override]
        kind: type[np.floating[Any]] = self.prepared.dtype.type
        return kind

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        return self.kernel.nonnegative

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.kernel.bounded

    def __call__(self, x: Matrix) -> Array:
        left = self.kernel.turned(self.kernel.prepared(x, self.centre, self.dtype))
        block = as_array(left @ self.prepared.T)
        self.kernel.finish(block)
        return block

    def tile(self, rows: slice, columns: slice, out: Array) -> None:
        left, right = self.kernel.turned(self.prepared[rows]), self.prepared[columns]
        if sp.issparse(right) or self.dtype != out.dtype:
            block = as_array(left @ right.T)
            self.kernel.finish(block)
            out[...] = block
        else:
            np.matmul(left, right.T, out=out)
            self.kernel.finish(out)


class InnerProductKernel(Kernel):
    """A kernel that is an elementwise function of inner products of prepared rows."""

    @property
    def n_extra_columns(self) -> int:
        """Number of columns that prepared rows have beyond those of the view."""
        return 0

    @property
    def nonnegative(self) -> bool:
        """Whether no similarity is negative."""
        return False

    @abstractmethod
    def prepared(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        """Prepare rows for the product; this is the form they have on its right."""

    def turned(self, prepared: Matrix) -> Matrix:
        """Return prepared rows in the form they have on the left of the product."""
        return prepared

    def finish(self, block: Array) -> None:
        """Turn inner products into similarities, in place."""

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        prepared = self.prepared(rows, None, dtype)
        return Products(self, rows.copy() if prepared is rows else prepared)  # the caller's rows may change later


@dataclass(frozen=True)
class RBF(InnerProductKernel):
    """Gaussian kernel exp(-|x - y|² / sigma2); there is no factor 2.

    Parameters
    ----------
    sigma2 : float, optional
        Squared bandwidth. By default the median squared distance between two training rows (of at most 500 rows
        drawn with the estimator's `random_state`); where more than half of all pairs coincide, the mean instead.

    Examples
    --------
    >>> import numpy as np
    >>> RBF(sigma2=1.0)(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    sigma2: float | None = None

    def __post_init__(self) -> None:
        if self.sigma2 is not None:
            require_number(self, "sigma2", lambda value: value > 0, "a positive number or None")

    def _check_state(self, sizes: Sizes) -> None:
        require(self.sigma2 is not None, "expected a bandwidth")

    @property
    def n_extra_columns(self) -> int:
        return 2

    def resolve(self, x: Matrix, rng: np.random.Generator | None = None) -> RBF:
        return self if self.sigma2 is not None else replace(self, sigma2=_median_squared_distance(x, rng))

    @property
    def bounded(self) -> bool:
        return True

    @property
    def nonnegative(self) -> bool:
        return True

    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        # The kernel does not change when all rows move together: near the origin the products cancel least.
        with np.errstate(over="ignore", invalid="ignore"):
            centre = None if sp.issparse(rows) else np.nan_to_num(rows.mean(axis=0, dtype=np.float64))
        prepared = self.prepared(rows, centre, dtype)
        lengths = -column(prepared, -1)
        far = np.flatnonzero(lengths > _FAR[dtype])
        noise = float(np.delete(lengths, far).max(initial=0))
        return GaussianProducts(self, prepared, centre, far, rows[far], noise)

    def prepared(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        scaled, lengths = self._scaled(x, centre)
        return append_columns(scaled, np.ones_like(lengths), lengths).astype(dtype, copy=False)

    def turned(self, prepared: Matrix) -> Matrix:
        """Swap the last two columns: each row's length meets the other's 1."""
        last = prepared.shape[1] - 1
        if sp.issparse(prepared):
            swapped = prepared.indices.copy()
            swapped[prepared.indices == last] = last - 1
            swapped[prepared.indices == last - 1] = last
            return sp.csr_array((prepared.data, swapped, prepared.indptr), shape=prepared.shape)
        turned = prepared.copy()
        turned[:, [last - 1, last]] = prepared[:, [last, last - 1]]
        return turned

    def finish(self, block: Array) -> None:
        np.exp(block, out=block)

    def _scaled(self, x: Matrix, centre: Array | None) -> tuple[Matrix, Array]:
        """Rows times sqrt(2)/sigma, and minus half their squared lengths: exponents are then plain products."""
        assert self.sigma2 is not None
        moved = x.astype(np.float64) if centre is None else x - centre
        with np.errstate(over="ignore"):
            scaled = moved * (math.sqrt(2) / math.sqrt(self.sigma2))
            lengths = -squared_norms(scaled) / 2
        lost = ~np.isfinite(lengths)
        if lost.any():
            # So far away that the square overflows: similarity 0 with everything, without inf - inf on the way.
            if sp.issparse(scaled):
                scaled.data[np.repeat(lost, np.diff(scaled.indptr))] = 0
            else:
                scaled[lost] = 0
            lengths[lost] = -1e30
        return scaled, lengths


@dataclass(frozen=True)
class GaussianProducts(Products):
    """RBF similarities by products, and by differences between rows that both lie far out.

    The exponent of a product is the small difference of large numbers when both rows are long, and then loses digits.
    With one of them within bounds the loss is bounded as well.
    """

    kernel: Annotated[RBF, PARAMETER]
    far: Annotated[NDArray[np.intp], IntegerArray("_far", least=0, below="train", increasing=True, empty=True)] = field(
        default_factory=lambda: np.empty(0, np.intp)
    )
    far_rows: Annotated[Matrix, DenseOrSparse("_far", "features", empty=True)] = None
    noise: Annotated[float, Range(least=0)] = 0.0

    def __call__(self, x: Matrix) -> Array:
        prepared = self.kernel.prepared(x, self.centre, self.dtype)
        block = as_array(self.kernel.turned(prepared) @ self.prepared.T)
        self.kernel.finish(block)
        if len(self.far):
            both = np.flatnonzero(-column(prepared, -1) > _FAR[self.dtype])
            block[np.ix_(both, self.far)] = self._by_differences(x[both], self.far_rows)
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
        step = max(_SLAB_BYTES // (8 * x.shape[1]), 1)  # sparse rows are made dense a slab at a time
        for i in range(0, x.shape[0], step):
            for j in range(0, y.shape[0], step):
                a, b = as_float64(x[i : i + step]), as_float64(y[j : j + step])
                # Differences first, sigma after: huge rows by a tiny sigma could overflow on both sides.
                with np.errstate(over="ignore"):
                    squared[i : i + step, j : j + step] = np.square(cdist(a, b) / sigma)
        similarities: Array = np.exp(-squared)
        return similarities


@dataclass(frozen=True)
class Linear(InnerProductKernel):
    """Inner product of the rows. Views need a non-negative tendency: degrees must be positive."""

    def prepared(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        return x.astype(dtype, copy=False)


@dataclass(frozen=True)
class Polynomial(InnerProductKernel):
    """Polynomial kernel (xᵀy + offset²)^degree."""

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        _require_polynomial(self)

    def prepared(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        return x.astype(dtype, copy=False)

    def _check_state(self, sizes: Sizes) -> None:
        # Beyond, powers leave the range of floats for any rows.
        require(self.degree < 2**31 and self.offset < 1e150, "expected a smaller degree and offset")

    @property
    def nonnegative(self) -> bool:
        return self.degree % 2 == 0

    def finish(self, block: Array) -> None:
        block += self.offset**2
        _power(block, self.degree)


@dataclass(frozen=True)
class NormalizedPolynomial(InnerProductKernel):
    """Polynomial kernel divided by the self-similarities, so that every row has similarity 1 with itself.

    It is the cosine of the rows with one more column, the offset, to the power of the degree.
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        _require_polynomial(self)

    @property
    def bounded(self) -> bool:
        return True

    @property
    def nonnegative(self) -> bool:
        return self.degree % 2 == 0

    @property
    def n_extra_columns(self) -> int:
        return int(self.offset > 0)

    def prepared(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        x = x.astype(np.float64, copy=False)
        if self.offset > 0:
            x = append_columns(x, np.full(x.shape[0], float(self.offset)))
        return l2_normalize(x).astype(dtype, copy=False)

    def finish(self, block: Array) -> None:
        _power(block, self.degree)


@dataclass(frozen=True)
class Cosine(InnerProductKernel):
    """Cosine of the angle between rows; an all-zero row has similarity 0 with everything."""

    @property
    def bounded(self) -> bool:
        return True

    def prepared(self, x: Matrix, centre: Array | None, dtype: type[np.floating[Any]]) -> Matrix:
        return l2_normalize(x).astype(dtype, copy=False)


def _require_polynomial(kernel: Kernel) -> None:
    require_number(kernel, "degree", lambda value: value >= 1 and value == int(value), "a whole number of at least 1")
    require_number(kernel, "offset", lambda value: value >= 0, "zero or a positive number")


def _power(block: Array, degree: int) -> None:
    if degree == 2:
        np.square(block, out=block)  # several times faster than the general power
    elif degree != 1:
        np.power(block, degree, out=block)


def _median_squared_distance(x: Matrix, rng: np.random.Generator | None) -> float:
    if x.shape[0] > _MEDIAN_ROWS:
        rng = np.random.default_rng(0) if rng is None else rng
        x = x[rng.choice(x.shape[0], _MEDIAN_ROWS, replace=False)]
    largest = float(abs(x).max())
    if largest == 0 or x.shape[0] == 1:
        return 1.0
    x = x.astype(np.float64) / largest  # squares of very large or small values would leave the range of floats
    if not sp.issparse(x):
        x -= x.mean(axis=0)
    lengths = squared_norms(x)
    pairs = np.triu_indices(x.shape[0], k=1)
    squared = (lengths[:, None] + lengths - 2 * as_float64(x @ x.T))[pairs]
    typical = float(np.median(squared))
    if typical <= 1e-6 * lengths.max():  # an outlier or an offset: too many digits cancelled
        from scipy.spatial.distance import pdist

        squared = pdist(as_float64(x), "sqeuclidean")
        typical = float(np.median(squared)) or float(squared.mean())
    limits = np.finfo(np.float64)
    with np.errstate(over="ignore"):
        return float(np.clip(np.float64(typical) * largest * largest, limits.tiny, limits.max)) if typical else 1.0
