"""Encoding of views with categories: numbers are standardised, and categories become one-hot columns or ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from coview.base.html import first_few
from coview.base.runtime import require_memory
from coview.data.rows import column_statistics
from coview.data.table import as_string, encoded_cells, look_like_names
from coview.data.view import Array, Categories, Matrix, View
from coview.data.views import Views
from coview.errors import InputError, warn

_LISTED = 5


@dataclass(frozen=True, eq=False)
class Encoding:
    """What the columns of a view with categories become; learnt from the training rows.

    - Numbers, and the ranks 0, 1, … of ordered categories, are standardised: mean 0 and standard deviation 1.
    - Other categories become one column of zeros and ones for each category of the training rows (one-hot), divided by
      the square root of 1 - Σ p², where p are the fractions of the categories. The variances of these columns then add
      up to 1, so two random rows differ by the same mean squared distance as in one standardised column.

    Categories that no training row has become zeros: their squared distance to any other category is half of that
    between two different categories. As a rank they become the mean.
    """

    columns: tuple[str, ...]  # of the view
    categories: tuple[Categories | None, ...]  # of each column; None for numbers
    means: Array
    scales: Array

    @classmethod
    def learn(cls, views: Views, view: str) -> Self:
        """Return the encoding of a view."""
        x, columns, given = views.observed(view), views.columns[view] or (), views.categories[view]
        categories, means, scales = [], [], []
        for j, column in enumerate(columns):
            known = x[:, j][~np.isnan(x[:, j])]
            found = _occurring(view, column, given[column], known) if column in given else None
            categories.append(found)
            if found is None or found.ordered:
                mean, deviation = _statistics(known)
                means.append(mean)
                scales.append(deviation)
            else:
                fractions = np.unique(known, return_counts=True)[1] / len(known)
                means += [0.0] * len(fractions)
                scales += [float(np.sqrt(1 - (fractions**2).sum())) if len(fractions) > 1 else 1.0] * len(fractions)
        encoding = cls(tuple(columns), tuple(categories), np.array(means), np.array(scales))
        twice = next((name for name, count in Counter(encoding.names).items() if count > 1), None)
        if twice is not None:
            raise InputError(f"view {view!r} has two columns named {twice!r} after categories are encoded; rename one")
        return encoding

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the encoded columns, such as age and colour = red."""
        return tuple(name for column, found in self._pairs() for name in _names_of(column, found))

    @property
    def categorical(self) -> tuple[str, ...]:
        """The columns with categories."""
        return tuple(column for column, found in self._pairs() if found is not None)

    @property
    def in_words(self) -> str:
        """The encoding in words."""
        return (
            f"{len(self.categorical)} of {len(self.columns)} columns are categories "
            f"({first_few(self.categorical, _LISTED)}), encoded as {len(self.names)} columns in total."
        )

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns that each column becomes."""
        return tuple(len(_names_of(column, found)) for column, found in self._pairs())

    def _pairs(self) -> zip[tuple[str, Categories | None]]:
        return zip(self.columns, self.categories, strict=True)

    def __call__(self, views: Views, view: str) -> Array:
        """Return the encoded rows of the samples that have the view, and warn of unknown categories."""
        n_columns = len(self.names)
        if not views.n_present(view):
            return np.empty((0, n_columns))
        x: Array = views.observed(view)
        given = self._check_columns(views, view)
        require_memory(
            2 * 8 * len(x) * n_columns,
            f"view {view!r} with its categories encoded as {n_columns} columns of {len(x)} samples",
            "drop columns with many categories, or merge rare categories",
        )
        encoded, unknown, start = np.empty((len(x), n_columns)), [], 0
        for j, ((column, found), width) in enumerate(zip(self._pairs(), self.widths, strict=True)):
            stop = start + width
            if found is None:
                encoded[:, start] = x[:, j]
            else:
                codes, now = (
                    (x[:, j], given[column])
                    if column in given
                    else encoded_cells([as_string(cell) for cell in x[:, j].tolist()])
                )
                codes, others = _translated(codes, now, found)
                unknown += [f"{column} = {value}" for value in others]
                if found.ordered:
                    encoded[:, start] = np.where(codes < 0, self.means[start], codes)
                else:
                    encoded[:, start:stop] = codes[:, None] == np.arange(stop - start)
                    encoded[np.isnan(codes), start:stop] = np.nan
            start = stop
        if unknown:
            _warn_of_unknown(view, unknown)
        with np.errstate(over="ignore"):
            encoded -= self.means
            encoded /= self.scales
        too_large = np.flatnonzero(np.isinf(encoded).any(axis=0))
        if len(too_large):
            raise InputError(
                f"view {view!r} has numbers in the column {self.names[too_large[0]]!r} that are too far from those of "
                "the training samples to compute with; check their unit"
            )
        return encoded

    def in_units(self, encoded: Matrix) -> Array:
        """Return encoded rows in the units of the data: numbers as they were, ranks, and zeros and ones."""
        return encoded * self.scales + self.means

    def _check_columns(self, views: Views, view: str) -> Mapping[str, Categories]:
        """Return the categories of a view, after its columns are compared with those of the training rows."""
        columns, given = views.columns[view], views.categories.get(view, {})
        if columns is None:
            raise InputError(
                f"view {view!r} was fitted on a table with categories ({first_few(self.categorical, _LISTED)}); give "
                "a data frame with the same columns"
            )
        if columns != self.columns:
            missing = [name for name in self.columns if name not in columns]
            other = [name for name in columns if name not in self.columns]
            what = "has its columns in another order"
            if missing or other:
                what = f"lacks the column {missing[0]!r}" if missing else f"has the unknown column {other[0]!r}"
            raise InputError(f"view {view!r} {what}; use the columns of the training data in the same order")
        wrong = next((name for name, found in self._pairs() if found is None and name in given), None)
        if wrong is not None:
            raise InputError(f"view {view!r} has categories in the column {wrong!r}, which had numbers in training")
        return given


def encoded(views: Views, encodings: Mapping[str, Encoding]) -> Views:
    """Return the views with their categories encoded; views that have been encoded before are not changed."""
    todo = [name for name in views if name in encodings and name not in views.encoded]
    if not todo:
        return views

    def change(name: str, view: View) -> View:
        if name not in todo:
            return view
        own = encodings[name]
        found = view.with_observed(own(views, name))
        return replace(found, columns=own.names, widths=own.widths, has_empty_cells=view.has_empty_cells)

    return views.map(change)


def _names_of(column: str, found: Categories | None) -> list[str]:
    if found is None or found.ordered:
        return [column]
    return [f"{column} = {value}" for value in found.values]


def _occurring(view: str, column: str, given: Categories, codes: Array) -> Categories:
    """Return the categories of the training rows; all if they are ordered."""
    if not len(codes):
        raise InputError(f"view {view!r} has no value in the column {column!r}; drop it")
    occurring = np.unique(codes).astype(int)
    if given.ordered:
        return given
    if look_like_names(len(occurring), len(codes)):
        raise InputError(
            f"view {view!r} has {len(occurring)} different categories in the column {column!r} of {len(codes)} "
            "samples, which look like names; drop it, or use it as the ids of the samples"
        )
    return Categories(tuple(given.values[i] for i in occurring))


def _statistics(values: Array) -> tuple[float, float]:
    """Return the mean and the standard deviation of a column, 1 if it is constant or has no value."""
    if not len(values):
        return 0.0, 1.0
    (mean,), (deviation,) = column_statistics(values[:, None], ddof=0)
    return float(mean), float(deviation) if np.isfinite(deviation) else 1.0


def _translated(codes: Array, given: Categories, known: Categories) -> tuple[Array, list[str]]:
    """Return the codes in the known categories, -1 for others, which are listed."""
    position = {value: i for i, value in enumerate(known.values)}
    alike = {_spelling(value): i for value, i in reversed(position.items())}
    table = np.array([position.get(value, alike.get(_spelling(value), -1)) for value in given.values] or [-1])
    empty = np.isnan(codes)
    used = np.where(empty, 0, codes).astype(int)
    others = [given.values[i] for i in np.unique(used[~empty]) if table[i] < 0]
    return np.where(empty, np.nan, table[used]), others


def _spelling(value: str) -> str:
    """Return one spelling of a category that files write in several ways: True, true and 1, or 10 and 10.0."""
    value = {"true": "1", "false": "0"}.get(value.lower(), value)
    whole, _, fraction = value.partition(".")
    return whole if fraction.strip("0") == "" and whole.lstrip("-").isdigit() else value


def _warn_of_unknown(view: str, unknown: list[str]) -> None:
    warn(
        f"view {view!r} has categories that no training sample has ({first_few(list(map(repr, unknown)), _LISTED)}); "
        "they count as none of the known categories",
    )
