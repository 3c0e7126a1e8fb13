"""Kernels as frozen values: a few numbers that turn rows into similarities.

Every kernel but `Precomputed` is a function of one inner product per pair of (suitably prepared) rows. That is the
whole trick: preparing costs a pass over the rows, and a block of similarities is one matrix product finished in place.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.errors import InputError
from coview.views import Array, Matrix, as_views

# Where a squared length in units of sigma exceeds this, the products of RBF would lose more than 1e-9 to cancellation.
_FAR = 1e6
_MEDIAN_ROWS = 1000


class Kernel(ABC):
    """A similarity between rows of one view; `kernel(x, y)` is its block of Gram matrix."""

    def __call__(self, x: Matrix, y: Matrix | None = None) -> Array:
        """Return the similarities of the rows of x with the rows of y (by default: of x itself)."""
        x = _one_table("x", x)
        y = x if y is None else _one_table("y", y)
        if x.shape[1] != y.shape[1] and not isinstance(self, Precomputed):
            raise InputError(f"x has {x.shape[1]} columns and y has {y.shape[1]}; they must be the same columns")
        return self.resolve(y).against(y)(x)

    def resolve(self, x: Matrix, rng: np.random.Generator | None = None) -> Kernel:
        """Return this kernel with what it leaves open filled in from the rows of x."""
        return self

    @abstractmethod
    def against(self, rows: Matrix) -> Similarity:
        """Prepare the rows that others will be compared with, normally the training rows."""


class Similarity(ABC):
    """A kernel and the prepared rows it compares with: call it with any block of rows."""

    @abstractmethod
    def __call__(self, x: Matrix) -> Array:
        """Return the similarities, shape (rows of x, prepared rows), each row independent of the others."""


@dataclass(frozen=True)
class Products(Similarity):
    """Similarities by one matrix product: finish(left(x) @ right.T)."""

    kernel: InnerProductKernel
    right: Matrix
    centre: Array | None = None

    def __call__(self, x: Matrix) -> Array:
        left = self.kernel.left(x, self.centre)
        block = _dense(left @ self.right.T)
        self.kernel.finish(block)
        return block


class InnerProductKernel(Kernel):
    """A kernel that is an elementwise function of inner products of prepared rows."""

    @abstractmethod
    def left(self, x: Matrix, centre: Array | None) -> Matrix:
        """Prepare the rows on the left of the product."""

    def right(self, x: Matrix, centre: Array | None) -> Matrix:
        """Prepare the rows on the right of the product."""
        return self.left(x, centre)

    def finish(self, block: Array) -> None:
        """Turn inner products into similarities, in place."""

    def against(self, rows: Matrix) -> Similarity:
        return Products(self, self.right(rows, None))


@dataclass(frozen=True)
class RBF(InnerProductKernel):
    """Gaussian kernel exp(-|x - y|² / sigma2); there is no factor 2.

    Parameters
    ----------
    sigma2 : float, optional
        Squared bandwidth. By default the median squared distance between two training rows (of at most 1000 rows
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
            _require(self, "sigma2", lambda value: value > 0, "a positive number or None")

    def resolve(self, x: Matrix, rng: np.random.Generator | None = None) -> RBF:
        return self if self.sigma2 is not None else replace(self, sigma2=_median_squared_distance(x, rng))

    def against(self, rows: Matrix) -> Similarity:
        if self.sigma2 is None:
            return self.resolve(rows).against(rows)
        # The kernel does not change when all rows move together: near the origin the products cancel least.
        with np.errstate(over="ignore", invalid="ignore"):
            centre = None if sp.issparse(rows) else np.nan_to_num(rows.mean(axis=0, dtype=np.float64))
            right = self.right(rows, centre)
            farthest = -_column(right, -1).min()
        if farthest <= _FAR:
            return Products(self, right, centre)
        return Differences(self, rows)

    def left(self, x: Matrix, centre: Array | None) -> Matrix:
        scaled, lengths = self._scaled(x, centre)
        return _hstack(scaled, lengths, np.ones_like(lengths))

    def right(self, x: Matrix, centre: Array | None) -> Matrix:
        scaled, lengths = self._scaled(x, centre)
        return _hstack(scaled, np.ones_like(lengths), lengths)

    def finish(self, block: Array) -> None:
        np.minimum(block, 0, out=block)  # rounding may leave a tiny positive exponent
        np.exp(block, out=block)

    def _scaled(self, x: Matrix, centre: Array | None) -> tuple[Matrix, Array]:
        """Rows times sqrt(2)/sigma, and minus half their squared lengths: exponents are then plain products."""
        assert self.sigma2 is not None
        moved = x.astype(np.float64) if centre is None else x - centre
        with np.errstate(over="ignore"):
            scaled = moved * (math.sqrt(2) / math.sqrt(self.sigma2))
            lengths = -_squared_lengths(scaled) / 2
        lost = ~np.isfinite(lengths)
        if lost.any():
            # So far away that the square overflows: similarity 0 with everything, without inf - inf on the way.
            if sp.issparse(scaled):
                scaled.data[np.repeat(lost, np.diff(scaled.indptr))] = 0
            else:
                scaled[lost] = 0
            lengths[lost] = -1e300
        return scaled, lengths


@dataclass(frozen=True)
class Differences(Similarity):
    """RBF from differences of rows: slower than products, and exact where rows lie millions of sigma apart."""

    kernel: RBF
    rows: Matrix

    def __call__(self, x: Matrix) -> Array:
        from scipy.spatial.distance import cdist

        assert self.kernel.sigma2 is not None
        # Differences first, sigma after: dividing huge rows by a tiny sigma could overflow on both sides.
        with np.errstate(over="ignore"):
            distances = cdist(_dense(x), _dense(self.rows), "euclidean")
            similarities: Array = np.exp(-np.square(distances / math.sqrt(self.kernel.sigma2)))
        return similarities


@dataclass(frozen=True)
class Linear(InnerProductKernel):
    """Inner product of the rows. Views need a non-negative tendency: degrees must be positive."""

    def left(self, x: Matrix, centre: Array | None) -> Matrix:
        return x.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Polynomial(InnerProductKernel):
    """Polynomial kernel (xᵀy + offset²)^degree."""

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        _require_polynomial(self)

    def left(self, x: Matrix, centre: Array | None) -> Matrix:
        return x.astype(np.float64, copy=False)

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

    def left(self, x: Matrix, centre: Array | None) -> Matrix:
        if self.offset == 0:
            return _unit_rows(x)
        return _unit_rows(_hstack(x.astype(np.float64, copy=False), np.full(x.shape[0], float(self.offset))))

    def finish(self, block: Array) -> None:
        _power(block, self.degree)


@dataclass(frozen=True)
class Cosine(InnerProductKernel):
    """Cosine of the angle between rows; an all-zero row has similarity 0 with everything."""

    def left(self, x: Matrix, centre: Array | None) -> Matrix:
        return _unit_rows(x)


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The view is itself a block of Gram matrix: samples by samples to fit, samples by training samples to predict."""

    def against(self, rows: Matrix) -> Similarity:
        return Given()


@dataclass(frozen=True)
class Given(Similarity):
    """Similarities that the caller computed."""

    def __call__(self, x: Matrix) -> Array:
        return _dense(x)


KERNELS: Mapping[str, type[Kernel]] = {
    "rbf": RBF,
    "linear": Linear,
    "poly": Polynomial,
    "normpoly": NormalizedPolynomial,
    "cosine": Cosine,
    "precomputed": Precomputed,
}


def kernel_per_view(kernel: Any, names: tuple[str, ...]) -> dict[str, Kernel]:
    """Give every view its kernel: one for all, a list in the order of the views, or a mapping by view name."""
    if isinstance(kernel, Mapping):
        return {name: _as_kernel(value) for name, value in by_view_name("kernel", kernel, names).items()}
    if isinstance(kernel, (list, tuple)):
        if len(kernel) != len(names):
            raise InputError(f"kernel lists {len(kernel)} kernels for {len(names)} views ({', '.join(names)})")
        return dict(zip(names, map(_as_kernel, kernel), strict=True))
    return dict.fromkeys(names, _as_kernel(kernel))


def by_view_name(parameter: str, values: Mapping[Any, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return a parameter given by view name in the order of the views."""
    given = {str(name): value for name, value in values.items()}
    if set(given) != set(names):
        raise InputError(f"{parameter} names the views {', '.join(given)}, but the views are {', '.join(names)}")
    return {name: given[name] for name in names}


def _one_table(label: str, x: Any) -> Matrix:
    views = as_views(x)
    if len(views) > 1:
        raise InputError(f"{label} holds {len(views)} views; a kernel compares the rows of one")
    return next(iter(views.values()))


def _as_kernel(kernel: Any) -> Kernel:
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    raise InputError(f"kernel={kernel!r} is not a kernel; use one of {', '.join(KERNELS)}, or a value such as RBF(0.5)")


def _require(kernel: Kernel, parameter: str, holds: Callable[[Any], bool], wanted: str) -> None:
    value = getattr(kernel, parameter)
    if not (isinstance(value, Real) and math.isfinite(value) and holds(value)):
        raise InputError(f"{type(kernel).__name__}({parameter}={value!r}): {parameter} must be {wanted}")


def _require_polynomial(kernel: Kernel) -> None:
    _require(kernel, "degree", lambda value: value >= 1 and value == int(value), "a whole number of at least 1")
    _require(kernel, "offset", lambda value: value >= 0, "zero or a positive number")


def _power(block: Array, degree: int) -> None:
    if degree == 2:
        np.square(block, out=block)  # several times faster than the general power
    elif degree != 1:
        np.power(block, degree, out=block)


def _dense(x: Matrix) -> Array:
    dense: Array = x.toarray() if sp.issparse(x) else x
    return dense.astype(np.float64, copy=False)


def _column(x: Matrix, j: int) -> Array:
    column: Array = x[:, [j]].toarray().ravel() if sp.issparse(x) else x[:, j]
    return column


def _hstack(x: Matrix, *columns: Array) -> Matrix:
    if sp.issparse(x):
        return sp.csr_array(sp.hstack([x, sp.csr_array(np.column_stack(columns))], format="csr"))
    return np.column_stack([x, *columns])


def _squared_lengths(x: Matrix) -> Array:
    if sp.issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1)).ravel()
    lengths: Array = np.einsum("ij,ij->i", x, x)
    return lengths


def _unit_rows(x: Matrix) -> Matrix:
    """Rows scaled to length 1; zero rows stay zero. The largest entry comes out first, so nothing overflows."""
    x = x.astype(np.float64, copy=False)
    largest = abs(x).max(axis=1)
    largest = largest.toarray().ravel() if sp.issparse(largest) else largest
    scaled = _scale_rows(x, largest)
    return _scale_rows(scaled, np.sqrt(_squared_lengths(scaled)))


def _scale_rows(x: Matrix, divisors: Array) -> Matrix:
    divisors = np.where(divisors > 0, divisors, 1.0)
    if sp.issparse(x):
        data = x.data / np.repeat(divisors, np.diff(x.indptr))
        return sp.csr_array((data, x.indices, x.indptr), shape=x.shape)
    return x / divisors[:, None]


def _median_squared_distance(x: Matrix, rng: np.random.Generator | None) -> float:
    n = x.shape[0]
    if n > _MEDIAN_ROWS:
        rng = np.random.default_rng(0) if rng is None else rng
        x = x[np.sort(rng.choice(n, _MEDIAN_ROWS, replace=False))]
        n = _MEDIAN_ROWS
    if n == 1:
        return 1.0
    x = x.astype(np.float64)
    largest = float(abs(x).max())
    if largest == 0:
        return 1.0
    x = x / largest  # squares of very large or small values would leave the range of floats
    if not sp.issparse(x):
        x = x - x.mean(axis=0)
    lengths = _squared_lengths(x)
    products = _dense(x @ x.T)
    pairs = (lengths[:, None] + lengths - 2 * products)[np.triu_indices(n, k=1)]
    typical = float(np.median(pairs))
    if typical <= 1e-6 * lengths.max():  # an outlier or an offset: too many digits cancelled
        from scipy.spatial.distance import pdist

        pairs = pdist(_dense(x), "sqeuclidean")
        typical = float(np.median(pairs)) or float(pairs.mean())
    limits = np.finfo(np.float64)
    with np.errstate(over="ignore"):
        return float(np.clip(np.float64(typical) * largest * largest, limits.tiny, limits.max)) if typical else 1.0
