"""Preprocessing of views: steps that are learnt from training rows and applied to any rows.

A preprocessing is a chain of steps, written as their names joined by "+": `parse_steps("tfidf+l2")`. A learnt step
holds a few arrays. It transforms a row in the same way alone, in a block or among all rows (in products up to
rounding).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from coview.base.text import shortened
from coview.data.rows import column_statistics, divide_rows, l2_normalize, l2_norms, largest_in_rows
from coview.data.view import Array, Matrix
from coview.errors import InputError, InputTypeError
from coview.registry import STEPS, suggestion

NAMES = ("none", *(name for name in STEPS if name != "pca"), "pcaN")
_PCA = re.compile("pca([1-9][0-9]{0,8})")
_EXACT_ENTRIES = 2**20  # largest size of a sparse view that is decomposed as a dense copy


class Step(ABC):
    """A learnt step: call it with any block of rows."""

    keeps_columns: ClassVar[bool] = True  # whether the columns are the same features afterwards
    keeps_scale: ClassVar[bool] = False  # whether the standard deviations of columns keep their ratios
    fills_cells: ClassVar[bool] = False  # whether the rows may have empty cells, that is, NaN
    refused: ClassVar[str] = ""  # values that the step cannot transform, for messages

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        """Return the step learnt from these rows; by default there is nothing to learn."""
        return cls()

    @abstractmethod
    def __call__(self, x: Matrix) -> Matrix:
        """Return the rows after the step; x is not changed."""

    def accepts(self, smallest: float) -> bool:
        """Return whether the step can transform rows of which this is the smallest value."""
        return True

    def width(self, n_features: int) -> int:
        """Return the number of columns after the step, given the number of columns before it."""
        return n_features


class _CountStep(Step):
    """A step that does not accept negative values."""

    refused = "negative values"

    def accepts(self, smallest: float) -> bool:
        return smallest >= 0


@dataclass(frozen=True, eq=False)
class Standardize(Step):
    """Columns minus their mean, divided by their standard deviation; columns of sparse views are only divided.

    A constant column is divided by 1.
    """

    means: Array
    spreads: Array

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        mean, deviation = column_statistics(x, ddof=0)
        deviation = np.where(np.isfinite(deviation), deviation, 1.0)
        return cls(np.zeros_like(mean) if sp.issparse(x) else mean, deviation)

    @classmethod
    def identity(cls, n_features: int) -> Self:
        """Return the step that does not change rows with so many columns."""
        return cls(np.zeros(n_features), np.ones(n_features))

    def __call__(self, x: Matrix) -> Matrix:
        if sp.issparse(x):
            if not self.means.any():
                return _with_copied_pattern(x, x.data / self.spreads[x.indices])
            x = x.toarray()  # the training rows were dense, and their means are not zero
        return ((x - self.means) / self.spreads).astype(x.dtype, copy=False)


@dataclass(frozen=True)
class L2Normalize(Step):
    """Rows divided by their L2 norm; zero rows stay zero."""

    def __call__(self, x: Matrix) -> Matrix:
        return _like_input(l2_normalize(x), x)


@dataclass(frozen=True, eq=False)
class TfIdf(_CountStep):
    """Columns times ln((1 + n) / (1 + m)) + 1, where m of n training rows have the column (smooth tf-idf)."""

    weights: Array

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        # Not scikit-learn's transformer: it makes a copy of dense views, and counts zeros that a sparse view stores.
        present = np.bincount(x.indices[x.data != 0], minlength=x.shape[1]) if sp.issparse(x) else (x != 0).sum(axis=0)
        return cls(np.log((1 + x.shape[0]) / (1 + present)) + 1)

    def __call__(self, x: Matrix) -> Matrix:
        if sp.issparse(x):
            return _with_copied_pattern(x, x.data * self.weights[x.indices])
        return (x * self.weights).astype(x.dtype, copy=False)


@dataclass(frozen=True)
class Log1p(Step):
    """log(1 + x) of every value."""

    refused = "values of -1 or less"

    def accepts(self, smallest: float) -> bool:
        return smallest > -1

    def __call__(self, x: Matrix) -> Matrix:
        return _with_copied_pattern(x, np.log1p(x.data)) if sp.issparse(x) else np.log1p(x)


@dataclass(frozen=True)
class NormalizeTotal(_CountStep):
    """Rows scaled to the same sum: the median sum of the training rows that are not zero."""

    total: float

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        sums = _row_sums(x)
        return cls(float(np.median(sums[sums > 0])) if (sums > 0).any() else 1.0)

    def __call__(self, x: Matrix) -> Matrix:
        scaled = divide_rows(x, largest_in_rows(x))  # sums of large numbers overflow
        return _like_input(divide_rows(scaled, _row_sums(scaled)) * self.total, x)


@dataclass(frozen=True)
class BlockScale(Step):
    """All values divided by the root mean square of the norms of the training rows.

    Views that are stacked then have the same weight in distances, whatever their number of columns.
    """

    size: float

    keeps_scale = True

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        norms = l2_norms(x)
        largest = float(norms.max(initial=0.0)) or 1.0  # squares of large numbers overflow
        return cls(largest * float(np.sqrt(np.mean((norms / largest) ** 2))) or 1.0)

    def __call__(self, x: Matrix) -> Matrix:
        if sp.issparse(x):
            return _with_copied_pattern(x, x.data / self.size)
        return (x / self.size).astype(x.dtype, copy=False)


@dataclass(frozen=True, eq=False)
class PrincipalComponents(Step):
    """Coordinates relative to `centre` along the directions of largest variance of the training rows.

    For dense views the centre is the mean (principal component analysis). For sparse views it is zero (truncated
    singular value decomposition), as is usual for word counts.
    """

    centre: Array
    directions: Array  # a row for each component

    keeps_columns = False

    @classmethod
    def learn(cls, x: Matrix, most: int = 50) -> Self:
        centre, sizes, directions = _sparse_directions(x, most) if sp.issparse(x) else _dense_directions(x, most)
        # Directions without variance are arbitrary, and new rows could have large coordinates along them.
        noise = max(x.shape) * np.finfo(sizes.dtype).eps * sizes[0]
        keep = max(1, int((sizes > noise).sum()))
        return cls(centre, np.ascontiguousarray(directions[:keep]))

    def width(self, n_features: int) -> int:
        return len(self.directions)

    def __call__(self, x: Matrix) -> Matrix:
        if sp.issparse(x):
            found = x @ self.directions.T - self.directions @ self.centre
        else:
            # Row by row: the rounding of a matrix product depends on the number of rows, and a training row that comes
            # alone would differ from its duplicate among the training rows.
            found = np.matmul((x - self.centre)[:, None, :], self.directions.T)[:, 0, :]
        return found.astype(x.dtype, copy=False)


def _dense_directions(x: Array, most: int) -> tuple[Array, Array, Array]:
    from sklearn.decomposition import PCA

    # Centred here, because products of float32 numbers far from zero lose the digits in which rows differ.
    centre = x.mean(axis=0, dtype=np.float64)
    moved = (x - centre).astype(x.dtype, copy=False)
    # scikit-learn chooses the solver: exact for few columns or few rows, otherwise randomised, with this seed.
    found = PCA(min(most, x.shape[0] - 1, x.shape[1]), random_state=0).fit(moved)
    return centre, found.singular_values_, found.components_


def _sparse_directions(x: Matrix, most: int) -> tuple[Array, Array, Array]:
    from sklearn.utils.extmath import randomized_svd

    count = min(most, *x.shape)
    if x.shape[0] * x.shape[1] <= _EXACT_ENTRIES:
        _, sizes, directions = np.linalg.svd(x.toarray(), full_matrices=False)
    else:
        _, sizes, directions = randomized_svd(x, count, random_state=0)
    return np.zeros(x.shape[1], dtype=x.dtype), sizes[:count], directions[:count]


class StepSpec(NamedTuple):
    """A step before it is learnt: its class, the options of its `learn`, and a description."""

    kind: type[Step]
    options: dict[str, int]
    description: str


def step_spec(name: str, parameter: str = "steps") -> StepSpec:
    """Return the specification of the step of this name: one of NAMES except "none", with a number for N."""
    if name in NAMES and name in STEPS:
        return StepSpec(STEPS[name], {}, STEPS.entries[name].summary)
    numbered = _PCA.fullmatch(name)
    if numbered is None:
        number = "".join(filter(str.isdigit, name)).lstrip("0") or "50"
        raise InputError(
            f"{parameter} {shortened(name)!r} is unknown{suggestion(name, [*NAMES[:-1], f'pca{number}'])} "
            f"Known: {', '.join(NAMES)} (such as pca50); join several with +"
        )
    most = int(numbered[1])
    description = f"at most {most} principal components" if most > 1 else "the first principal component"
    return StepSpec(PrincipalComponents, {"most": most}, description)


@dataclass(frozen=True)
class Preprocessing:
    """A chain of steps, by name; without steps, rows are not changed.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[1.0, 3.0], [0.0, 8.0], [2.0, 2.0]])
    >>> parse_steps("total").learn(counts)(counts)
    array([[1., 3.],
           [0., 4.],
           [2., 2.]])
    """

    steps: tuple[str, ...]

    @property
    def fills_cells(self) -> bool:
        """Whether empty cells are filled, by the first step."""
        return bool(self.steps) and step_spec(self.steps[0]).kind.fills_cells

    @property
    def name(self) -> str:
        """The names of the steps joined by "+", or "none"."""
        return "+".join(self.steps) or "none"

    @property
    def description(self) -> str:
        """The steps in words."""
        return ", ".join(step_spec(step).description for step in self.steps) or "as it is"

    def learn(self, x: Matrix, view: str = "X", *, standardised: bool = False) -> FittedPreprocessing:
        """Return the preprocessing with all steps learnt from the rows of a view.

        If its columns are standardised already, as those of encoded categories, "standard" does not change them.
        """
        learnt: list[Step] = []
        x = _in_row_order(x)
        for i, name in enumerate(self.steps):
            if learnt:
                x = _applied(self.steps[i - 1], learnt[-1], x, view)
            if standardised and step_spec(name).kind is Standardize:
                learnt.append(Standardize.identity(x.shape[1]))
            else:
                learnt.append(_learn(name, x, view))
                standardised &= learnt[-1].keeps_scale
        return FittedPreprocessing(self, tuple(learnt))


@dataclass(frozen=True, eq=False)
class FittedPreprocessing:
    """A chain of learnt steps, which transforms any rows as it transforms the training rows."""

    preprocessing: Preprocessing
    steps: tuple[Step, ...]

    def __call__(self, x: Matrix, view: str = "X") -> Matrix:
        """Return the preprocessed rows of a view; x is not changed, and is itself returned if there are no steps."""
        if self.steps:
            x = _in_row_order(x)
        for name, step in zip(self.preprocessing.steps, self.steps, strict=True):
            x = _applied(name, step, x, view)
        return x

    @property
    def keeps_columns(self) -> bool:
        """Whether the columns are the same features afterwards."""
        return all(step.keeps_columns for step in self.steps)

    def width(self, n_features: int) -> int:
        """Return the number of columns after all steps, given the number of columns before them."""
        for step in self.steps:
            n_features = step.width(n_features)
        return n_features


def parse_steps(name: Any, parameter: str = "steps") -> Preprocessing:
    """Return the preprocessing of this name, such as "standard", "tfidf+l2" or "total+log1p+pca50"."""
    if not isinstance(name, str):
        raise InputTypeError(f"{parameter}={name!r}: expected names of steps, such as 'standard' or 'tfidf+l2'")
    steps = [step for step in map(str.strip, name.split("+")) if step != "none"]
    for step in steps:
        step_spec(step, parameter)  # raises an error for an unknown name
    return Preprocessing(tuple(steps))


def preprocessing_per_view(steps: Any, names: Sequence[str], parameter: str = "steps") -> dict[str, Preprocessing]:
    """Return the preprocessing of every view, from one string for all views, a list, or a mapping by view name.

    Views that a mapping does not list are not preprocessed.
    """
    if isinstance(steps, Mapping):
        given = {str(view): name for view, name in steps.items()}
        for view in given:
            if view not in names:
                raise InputError(
                    f"{parameter} names the view {view!r}{suggestion(view, names)} Views: {', '.join(names)}"
                )
        return {view: parse_steps(given.get(view, "none"), parameter) for view in names}
    if isinstance(steps, (list, tuple)):
        if len(steps) != len(names):
            raise InputError(
                f"{parameter} has {len(steps)} entries for {len(names)} views ({', '.join(names)}); give one for each"
            )
        return {view: parse_steps(name, parameter) for view, name in zip(names, steps, strict=True)}
    return dict.fromkeys(names, parse_steps(steps, parameter))


def _learn(name: str, x: Matrix, view: str) -> Step:
    spec = step_spec(name)
    if spec.kind.fills_cells:
        _check_columns(name, x, view)
    if spec.kind is PrincipalComponents and x.shape[0] < 2:
        raise InputError(f"view {view!r} has 1 sample and {name!r} needs at least 2; give more samples")
    try:
        with np.errstate(all="ignore"):  # rows without variance, and overflow: the result is checked
            step = spec.kind.learn(x, **spec.options)
    except ValueError:  # of a decomposition of infinite numbers
        raise _too_large(name, view) from None
    _check_values(name, step, x, view)
    return step


def _check_columns(name: str, x: Matrix, view: str) -> None:
    """Refuse sparse views, and columns from which no value can be learnt."""
    if sp.issparse(x):
        raise InputError(f"view {view!r} is sparse, and {name!r} fills cells of dense tables; leave out {name!r}")
    without = np.flatnonzero(np.isnan(x).all(axis=0))
    if len(without):
        raise InputError(
            f"view {view!r} has no value in {len(without)} of {x.shape[1]} columns (first: column {without[0]}), so "
            f"{name!r} cannot fill them; drop these columns"
        )


def _applied(name: str, step: Step, x: Matrix, view: str) -> Matrix:
    _check_values(name, step, x, view)
    with np.errstate(all="ignore"):
        x = step(x)
    if not np.isfinite(x.data if sp.issparse(x) else x).all():
        raise _too_large(name, view)
    return x


def _check_values(name: str, step: Step, x: Matrix, view: str) -> None:
    if step.refused and not step.accepts(float(x.min())):
        raise InputError(
            f"view {view!r} has the value {x.min():g} before {name!r}, which does not accept {step.refused}; put "
            f"{name!r} before steps that centre, or use another step for this view, such as 'standard'"
        )


def _too_large(name: str, view: str) -> InputError:
    return InputError(f"view {view!r} holds numbers too large for {name!r}; scale them down")


def _in_row_order(x: Matrix) -> Matrix:
    """Return dense rows in C order: sums over a row are then rounded alike in any block."""
    return x if sp.issparse(x) else np.ascontiguousarray(x)


def _row_sums(x: Matrix) -> Array:
    """Return the sums of the rows, in float64."""
    return np.asarray(x.sum(axis=1, dtype=np.float64)).ravel()


def _like_input(result: Matrix, x: Matrix) -> Matrix:
    """Return the result in the precision of x, without memory in common with x."""
    if sp.issparse(x):
        return _with_copied_pattern(x, result.data)
    return result.astype(x.dtype, copy=False)


def _with_copied_pattern(x: Matrix, entries: Array) -> Matrix:
    # A model may keep these arrays, and the caller may change the arrays of x in place, as by eliminate_zeros().
    places = x.indices.copy(), x.indptr.copy()
    return sp.csr_array((entries.astype(x.dtype, copy=False), *places), shape=x.shape)
