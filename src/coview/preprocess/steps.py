"""Preprocessing: what is done to the rows of a view before a method sees them, learnt from training rows.

A preparation is a chain of steps, written as names joined by "+": `parse_steps("tfidf+l2")`. What a step has learnt is
a few plain arrays, and it treats a row alone, in a block or among all rows alike (in products up to rounding).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from coview.errors import InputError, InputTypeError
from coview.rows import column_statistics, divide_rows, l2_normalize, largest_in_rows
from coview.state import CHAIN, FloatArray, Range, Sizes, require
from coview.views import Array, Matrix

_PCA = re.compile("pca([1-9][0-9]{0,8})")
_EXACT_NUMBERS = 2**20  # entries of a sparse view up to which its decomposition is that of a dense copy


class Step(ABC):
    """One step that has learnt what it needs: call it with any block of rows."""

    keeps_columns: ClassVar[bool] = True  # whether a column is still the same feature afterwards

    @abstractmethod
    def __call__(self, x: Matrix) -> Matrix:
        """Return these rows after the step; x stays as it is."""

    def width(self, n_features: int) -> int:
        """Return how many columns come out for so many that go in."""
        return n_features


class _Picky(Step):
    """A step that cannot take all values."""

    refused: ClassVar[str]  # in words

    @abstractmethod
    def takes(self, smallest: float) -> bool:
        """Return whether the step can take rows of which this is the smallest value."""


class _OfCounts(_Picky):
    """A step that takes no negative values."""

    refused = "negative values"

    def takes(self, smallest: float) -> bool:
        return smallest >= 0


@dataclass(frozen=True, eq=False)
class Standardize(Step):
    """Columns minus their mean, over their standard deviation; those of sparse views are only divided.

    A constant column is divided by 1.
    """

    means: Annotated[Array, FloatArray("features")]
    spreads: Annotated[Array, FloatArray("features", above=0)]

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        mean, deviation = column_statistics(x, ddof=0)
        deviation = np.where(np.isfinite(deviation), deviation, 1.0)
        return cls(np.zeros_like(mean) if sp.issparse(x) else mean, deviation)

    def __call__(self, x: Matrix) -> Matrix:
        if sp.issparse(x):
            if not self.means.any():
                return _with_copied_pattern(x, x.data / self.spreads[x.indices])
            x = x.toarray()  # the training rows were dense, and their means are no zeros
        return ((x - self.means) / self.spreads).astype(x.dtype, copy=False)


@dataclass(frozen=True)
class L2Normalize(Step):
    """Rows over their length; zero rows stay zero."""

    def __call__(self, x: Matrix) -> Matrix:
        return _like_input(l2_normalize(x), x)


@dataclass(frozen=True, eq=False)
class TfIdf(_OfCounts):
    """Columns times ln((1 + n) / (1 + m)) + 1, where m of n training rows have the column (smooth tf-idf)."""

    weights: Annotated[Array, FloatArray("features", above=0)]

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        # Not scikit-learn's transformer: it copies dense views, and counts zeros that a sparse view happens to store.
        present = np.bincount(x.indices[x.data != 0], minlength=x.shape[1]) if sp.issparse(x) else (x != 0).sum(axis=0)
        return cls(np.log((1 + x.shape[0]) / (1 + present)) + 1)

    def __call__(self, x: Matrix) -> Matrix:
        if sp.issparse(x):
            return _with_copied_pattern(x, x.data * self.weights[x.indices])
        return (x * self.weights).astype(x.dtype, copy=False)


@dataclass(frozen=True)
class Log1p(_Picky):
    """log(1 + x) of every value."""

    refused = "values of -1 or less"

    def takes(self, smallest: float) -> bool:
        return smallest > -1

    def __call__(self, x: Matrix) -> Matrix:
        return _with_copied_pattern(x, np.log1p(x.data)) if sp.issparse(x) else np.log1p(x)


@dataclass(frozen=True)
class NormalizeTotal(_OfCounts):
    """Rows times what gives each the same sum: the median sum of the training rows that are not zero."""

    total: Annotated[float, Range(above=0)]

    @classmethod
    def learn(cls, x: Matrix) -> Self:
        sums = _row_sums(x)
        return cls(float(np.median(sums[sums > 0])) if (sums > 0).any() else 1.0)

    def __call__(self, x: Matrix) -> Matrix:
        scaled = divide_rows(x, largest_in_rows(x))  # sums of large numbers overflow
        return _like_input(divide_rows(scaled, _row_sums(scaled)) * self.total, x)


@dataclass(frozen=True, eq=False)
class PrincipalComponents(Step):
    """Coordinates along the directions in which the training rows spread most, counted from `centre`.

    Dense views have their mean as the centre (principal components). Sparse views have zero (truncated singular value
    decomposition), as is usual for words.
    """

    centre: Annotated[Array, FloatArray("features")]
    directions: Annotated[Array, FloatArray("_directions", "features")]  # a row for each component

    keeps_columns = False

    @classmethod
    def learn(cls, x: Matrix, most: int) -> Self:
        centre, sizes, directions = _sparse_directions(x, most) if sp.issparse(x) else _dense_directions(x, most)
        # Where rows do not spread, directions are arbitrary, and new rows would be cast along them.
        noise = max(x.shape) * np.finfo(sizes.dtype).eps * sizes[0]
        keep = max(1, int((sizes > noise).sum()))
        return cls(centre, np.ascontiguousarray(directions[:keep]))

    def width(self, n_features: int) -> int:
        return len(self.directions)

    def __call__(self, x: Matrix) -> Matrix:
        if sp.issparse(x):
            found = x @ self.directions.T - self.directions @ self.centre
        else:
            # Row by row: a product of matrices rounds a row by how many others there are, and a row that was seen in
            # training would not be known again.
            found = np.matmul((x - self.centre)[:, None, :], self.directions.T)[:, 0, :]
        return found.astype(x.dtype, copy=False)


def _dense_directions(x: Array, most: int) -> tuple[Array, Array, Array]:
    from sklearn.decomposition import PCA

    # Centred here, because products of float32 numbers far from zero lose the digits that tell rows apart.
    centre = x.mean(axis=0, dtype=np.float64)
    moved = (x - centre).astype(x.dtype, copy=False)
    # The solver is scikit-learn's choice: exact for few columns or few rows, otherwise randomised, with this seed.
    found = PCA(min(most, x.shape[0] - 1, x.shape[1]), random_state=0).fit(moved)
    return centre, found.singular_values_, found.components_


def _sparse_directions(x: Matrix, most: int) -> tuple[Array, Array, Array]:
    from sklearn.utils.extmath import randomized_svd

    count = min(most, *x.shape)
    if x.shape[0] * x.shape[1] <= _EXACT_NUMBERS:
        _, sizes, directions = np.linalg.svd(x.toarray(), full_matrices=False)
    else:
        _, sizes, directions = randomized_svd(x, count, random_state=0)
    return np.zeros(x.shape[1], dtype=x.dtype), sizes[:count], directions[:count]


@dataclass(frozen=True)
class Recipe:
    """A step that has not learnt yet: what it will be, how it learns, and what it does in words."""

    kind: type[Step]
    learn: Callable[[Matrix], Step]
    words: str


_RECIPES: Mapping[str, Recipe] = {
    "standard": Recipe(Standardize, Standardize.learn, "columns standardised"),
    "l2": Recipe(L2Normalize, lambda x: L2Normalize(), "rows of length 1"),
    "tfidf": Recipe(TfIdf, TfIdf.learn, "tf-idf"),
    "log1p": Recipe(Log1p, lambda x: Log1p(), "log(1 + x)"),
    "total": Recipe(NormalizeTotal, NormalizeTotal.learn, "rows of equal sum"),
}
NAMES = ("none", *_RECIPES, "pcaN")


def recipe(name: str, said: str = "steps") -> Recipe:
    """Return the recipe of one step.

    Parameters
    ----------
    name : str
        One of NAMES but "none", with a number for N.
    said : str
        What the name was given as, for messages.
    """
    if name in _RECIPES:
        return _RECIPES[name]
    numbered = _PCA.fullmatch(name)
    if numbered is None:
        raise InputError(
            f"{said} {name!r} is unknown{_suggestion(name)} Known: {', '.join(NAMES)} (such as pca50), "
            "joined by + for one after another"
        )
    most = int(numbered[1])
    words = f"at most {most} principal components" if most > 1 else "the first principal component"
    return Recipe(PrincipalComponents, partial(PrincipalComponents.learn, most=most), words)


@dataclass(frozen=True)
class Preprocessing:
    """A chain of steps by their names; without steps, rows stay as they are.

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
    def name(self) -> str:
        return "+".join(self.steps) or "none"

    @property
    def words(self) -> str:
        """What is done, for people."""
        return ", ".join(recipe(step).words for step in self.steps) or "as it is"

    def learn(self, x: Matrix, view: str = "X") -> FittedPreprocessing:
        """Return the preparation with what it has learnt from these rows.

        Parameters
        ----------
        x : float array or csr_array of shape (n_samples, n_features)
        view : str
            Its name, for messages.
        """
        learnt: list[Step] = []
        x = _row_by_row(x)
        for i, name in enumerate(self.steps):
            if learnt:
                x = _applied(self.steps[i - 1], learnt[-1], x, view)
            learnt.append(_learn(name, x, view))
        return FittedPreprocessing(self, tuple(learnt))


@dataclass(frozen=True, eq=False)
class FittedPreprocessing:
    """A preparation that treats any rows like those that it has learnt from."""

    preprocessing: Preprocessing
    steps: Annotated[tuple[Step, ...], CHAIN]

    def _check_state(self, sizes: Sizes) -> None:
        expected = [recipe(name).kind for name in self.preprocessing.steps]
        require([type(step) for step in self.steps] == expected, f"expected the steps {self.preprocessing.name}")

    def __call__(self, x: Matrix, view: str = "X") -> Matrix:
        """Return prepared rows; x stays as it is, and is returned itself where there is nothing to do.

        Parameters
        ----------
        x : float array or csr_array of shape (n_samples, n_features)
        view : str
            Its name, for messages.
        """
        if self.steps:
            x = _row_by_row(x)
        for name, step in zip(self.preprocessing.steps, self.steps, strict=True):
            x = _applied(name, step, x, view)
        return x

    @property
    def keeps_columns(self) -> bool:
        """Whether a column is still the same feature afterwards."""
        return all(step.keeps_columns for step in self.steps)

    def width(self, n_features: int) -> int:
        """Return how many columns come out for so many that go in."""
        for step in self.steps:
            n_features = step.width(n_features)
        return n_features


def parse_steps(name: Any, said: str = "steps") -> Preprocessing:
    """Read the name of a preparation, such as "standard", "tfidf+l2" or "total+log1p+pca50".

    Parameters
    ----------
    name : str
        Names of steps, joined by "+".
    said : str
        What the name was given as, for messages.
    """
    if not isinstance(name, str):
        raise InputTypeError(f"{said}={name!r} must be the name of a preparation, such as 'standard' or 'tfidf+l2'")
    steps = [step for step in map(str.strip, name.split("+")) if step != "none"]
    for step in steps:
        recipe(step, said)  # complains if there is none
    return Preprocessing(tuple(steps))


def preprocessing_per_view(steps: Any, names: Sequence[str], said: str = "steps") -> dict[str, Preprocessing]:
    """Read steps given as one name, as a list in the order of the views, or as a mapping by view.

    Views that a mapping does not list stay as they are.

    Parameters
    ----------
    steps : str, list of str, or mapping from view name to str
    names : the names of the views
    said : str
        What they were given as, for messages.
    """
    if isinstance(steps, Mapping):
        given = {str(view): name for view, name in steps.items()}
        for view in given:
            if view not in names:
                close = get_close_matches(view, names, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else "."
                raise InputError(f"{said} names the view {view!r}{hint} Views: {', '.join(names)}")
        return {view: parse_steps(given.get(view, "none"), said) for view in names}
    if isinstance(steps, (list, tuple)):
        if len(steps) != len(names):
            raise InputError(f"{said} has {len(steps)} names for {len(names)} views ({', '.join(names)})")
        return {view: parse_steps(name, said) for view, name in zip(names, steps, strict=True)}
    return dict.fromkeys(names, parse_steps(steps, said))


def _learn(name: str, x: Matrix, view: str) -> Step:
    known = recipe(name)
    if known.kind is PrincipalComponents and x.shape[0] < 2:
        raise InputError(f"view {view!r} has 1 sample, from which {name!r} learns nothing; give more samples")
    try:
        with np.errstate(all="ignore"):  # rows without variance, and numbers that are too large: see what comes out
            step = known.learn(x)
    except ValueError:  # of decompositions that meet infinite numbers
        raise _too_large(name, view) from None
    _require_values(name, step, x, view)
    return step


def _applied(name: str, step: Step, x: Matrix, view: str) -> Matrix:
    _require_values(name, step, x, view)
    with np.errstate(all="ignore"):
        x = step(x)
    if not np.isfinite(x.data if sp.issparse(x) else x).all():
        raise _too_large(name, view)
    return x


def _require_values(name: str, step: Step, x: Matrix, view: str) -> None:
    if isinstance(step, _Picky) and not step.takes(float(x.min())):
        raise InputError(
            f"view {view!r} has the value {x.min():g} where {name!r} comes, which takes no {step.refused}; put "
            f"{name!r} before steps that centre, or prepare this view in another way, such as 'standard'"
        )


def _too_large(name: str, view: str) -> InputError:
    return InputError(f"view {view!r} holds numbers too large for {name!r}; scale them down")


def _suggestion(step: str) -> str:
    digits = "".join(filter(str.isdigit, step)) or "50"
    close = get_close_matches(step.lower(), [*NAMES[:-1], f"pca{digits}"], n=1)
    return f"; did you mean {close[0]!r}?" if close else "."


def _row_by_row(x: Matrix) -> Matrix:
    """In one order of memory: sums over a row are then rounded alike, whatever rows it comes with."""
    return x if sp.issparse(x) else np.ascontiguousarray(x)


def _row_sums(x: Matrix) -> Array:
    """Return the sums of the rows, in float64."""
    return np.asarray(x.sum(axis=1, dtype=np.float64)).ravel()


def _like_input(result: Matrix, x: Matrix) -> Matrix:
    """Return the result in the precision of x, and with a pattern of its own."""
    if sp.issparse(x):
        return _with_copied_pattern(x, result.data)
    return result.astype(x.dtype, copy=False)


def _with_copied_pattern(x: Matrix, entries: Array) -> Matrix:
    # A model may keep these arrays, and callers may change theirs in place, as by eliminate_zeros().
    places = x.indices.copy(), x.indptr.copy()
    return sp.csr_array((entries.astype(x.dtype, copy=False), *places), shape=x.shape)
