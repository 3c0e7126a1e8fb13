"""Kernels, and the similarities that they become for given training rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from coview.base.parameters import check_integer
from coview.base.runtime import Map, serial_map
from coview.data.as_views import as_views
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.errors import InputError
from coview.neighbors.duplicates import Integers
from coview.registry import KERNELS, as_instance

_MOST_SIMILAR = 10  # training rows of which a row has the mean similarity
_BLOCK_ROWS = 512
_ROUNDINGS = 16  # in a product and its sum, in units of the precision


class Kernel(ABC):
    """A similarity between rows of one view; `kernel(x, y)` is a block of the Gram matrix."""

    of_features: ClassVar[bool] = True  # whether the columns of a view are features, the same for all rows
    bounded: ClassVar[bool] = False  # whether |similarity| <= 1, so that float32 holds it at any scale of the rows
    sparse: ClassVar[bool] = False  # whether most pairs of rows have similarity 0, and Gram matrices are sparse
    bandwidth: ClassVar[str] = ""  # the parameter that makes more pairs of rows similar, if there is one

    def __call__(self, x: Matrix, y: Matrix | None = None) -> Array:
        """Return the similarities between the rows of x and the rows of y.

        Parameters
        ----------
        x : table of shape (n_rows, n_features)
        y : table of shape (n_other_rows, n_features)
            By default x. Parameters that depend on the data are computed from these rows.

        Returns
        -------
        array of shape (n_rows, n_other_rows)
        """
        x = _one_view("x", x)
        y = x if y is None else _one_view("y", y)
        if x.shape[1] != y.shape[1] and self.of_features:
            raise InputError(f"x has {x.shape[1]} columns and y has {y.shape[1]}; give both the same columns")
        return self.resolve(y).against(y)(x)

    def resolve(self, x: Matrix, rng: np.random.Generator | None = None, name: str = "x") -> Kernel:
        """Return this kernel with the parameters that depend on the data computed from the rows of the view `name`.

        If there are many rows, `rng` draws some of them; by default it has a fixed seed.
        """
        return self

    def on_common_scale(self) -> Kernel:
        """Return the kernel for a view whose columns have a common scale, and are not standardised again."""
        return self

    def check_training(self, name: str, x: Matrix, dtype: type[np.floating[Any]] = np.float64) -> None:
        """Raise an InputError if this kernel cannot use the training rows x of the view `name` in this precision."""

    @abstractmethod
    def against(
        self, rows: Matrix, dtype: type[np.floating[Any]] = np.float64, map_blocks: Map = serial_map
    ) -> Similarity:
        """Return the similarity to these rows, normally the training rows, in this precision."""


class Similarity(ABC):
    """A kernel together with its training rows: call it with any block of rows."""

    dtype: type[np.floating[Any]] = np.float64
    nonnegative: bool = False
    bounded: bool = False
    sparse: bool = False
    informative: bool = True  # whether the training rows differ
    noise: float = 0.0  # relative error of a similarity, in units of rounding, in addition to that of a product

    @abstractmethod
    def __call__(self, x: Matrix) -> Array:
        """Return the similarities, shape (rows of x, training rows); each row is independent of the others."""

    @abstractmethod
    def tile(self, rows: slice, columns: slice, out: Array) -> None:
        """Write the similarities between two ranges of training rows to `out`."""

    def block(self, x: Matrix) -> Matrix:
        """Return the same similarities, as a sparse matrix if most of them are 0."""
        return self(x)

    def training_block(self, rows: slice, n: int) -> Matrix:
        """Return the similarities of a range of the n training rows to all of them, sparse if most of them are 0."""
        block = np.empty((rows.stop - rows.start, n), self.dtype)
        self.tile(rows, slice(0, n), out=block)
        return block

    def training_product(self, coefficients: Array, map_blocks: Map = serial_map) -> Array:
        """Return the similarities of the training rows times coefficients (n, columns), block by block."""
        n = len(coefficients)

        def one(start: int) -> Array:
            product: Array = self.training_block(slice(start, min(start + _BLOCK_ROWS, n)), n) @ coefficients
            return product

        return np.concatenate(map_blocks(one, range(0, n, _BLOCK_ROWS)))

    @abstractmethod
    def closeness(self, x: Matrix) -> Array:
        """Return how close each row is to the training rows that are most similar to it; larger is closer.

        A row that is equal to a training row is treated as that row, whose similarity to itself is left out.
        """

    @abstractmethod
    def training_closeness(self, rows: Integers) -> Array:
        """Return the same for the training rows of these numbers."""

    @property
    def closeness_tolerance(self) -> float:
        """The relative difference of two values of closeness that may be a rounding error."""
        return float((_ROUNDINGS + self.noise) * np.finfo(self.dtype).eps)

    def forget_training(self) -> Similarity:
        """Return the part of this similarity that new rows need."""
        return self


def mean_of_largest(similarities: Array, itself: Any = False) -> Array:
    """Return the mean of the largest similarities of each row; of the rows `itself`, the very largest is left out."""
    width = min(_MOST_SIMILAR + 1, similarities.shape[1])
    largest = np.sort(np.partition(similarities, -width, axis=1)[:, -width:], axis=1)[:, ::-1].astype(np.float64)
    first = np.where(np.broadcast_to(itself, len(largest)) & (width > 1), 1, 0)  # a single row has no others
    ranks = np.arange(width)
    counted = (ranks >= first[:, None]) & (ranks < first[:, None] + _MOST_SIMILAR)
    sums: Array = np.sum(largest, axis=1, where=counted)
    return sums / counted.sum(axis=1)


def refuse_underflow(
    kernel: Kernel, name: str, largest: float, similarity: float, dtype: type[np.floating[Any]]
) -> None:
    """Raise an InputError if the largest similarity of a view with this largest absolute value has too few digits.

    Numbers below `tiny` have a fixed spacing, which is its rounding error. So larger similarities, and their
    differences, have all digits; the factor leaves room for their reciprocals.
    """
    limits = np.finfo(dtype)
    if largest > 0 and similarity < 1024 * float(limits.tiny):
        raise InputError(
            f"view {name!r} has values of up to {largest:.0e}, and similarities too small to compute with under "
            f"{kernel} in {limits.dtype}; scale the view"
        )


def check_integer_parameter(kernel: Kernel, parameter: str) -> None:
    """Replace a parameter by the positive integer that it is equal to, or raise an InputError."""
    value = getattr(kernel, parameter)
    if isinstance(value, float) and value.is_integer():  # a command line has 10.0
        value = int(value)
    object.__setattr__(kernel, parameter, check_integer(f"{type(kernel).__name__}.{parameter}", value, least=1))


def _one_view(label: str, x: Any) -> Matrix:
    views = as_views(x)
    if len(views) > 1:
        raise InputError(f"{label} holds {len(views)} views; give the rows of one view")
    return next(iter(views.values()))


KernelParameter: TypeAlias = Kernel | str | Sequence[Kernel | str] | Mapping[str, Kernel | str]


def kernel_per_view(kernel: Any, names: tuple[str, ...]) -> dict[str, Kernel]:
    """Return the kernel of every view, from one kernel or name for all, a list of these, or a mapping by view name."""
    if isinstance(kernel, Mapping):
        kernels = by_view_name("kernel", kernel, names)
    elif isinstance(kernel, (list, tuple)):
        if len(kernel) != len(names):
            raise InputError(
                f"kernel lists {len(kernel)} kernels for {len(names)} views ({', '.join(names)}); give one for each"
            )
        kernels = dict(zip(names, kernel, strict=True))
    else:
        kernels = dict.fromkeys(names, kernel)
    return {name: as_instance("kernel", each, Kernel, KERNELS, "RBF(0.5)") for name, each in kernels.items()}


def kernel_for(kernel: Kernel, views: Views, name: str) -> Kernel:
    """Return the kernel for one of the views; the columns of an encoded view are not standardised again."""
    return kernel.on_common_scale() if name in views.encoded else kernel


def by_view_name(parameter: str, values: Mapping[Any, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of a parameter that is given by view name, in the order of the views."""
    given = {str(name): value for name, value in values.items()}
    if set(given) != set(names):
        raise InputError(
            f"{parameter} names the views {', '.join(given)}, but the views are {', '.join(names)}; name each view once"
        )
    return {name: given[name] for name in names}
