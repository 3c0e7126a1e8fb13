"""Valid views that are probably a mistake: classes, distances or codes for missing values in place of features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.errors import InputError

_CLASSES = {"class", "label", "target", "cluster", "species", "celltype", "subtype", "diagnosis", "outcome", "group"}
_CLASSES |= {"kind", "category", "truth", "phenotype"}
_MISSING_CODES = (-9.0, *(sign * code for code in (99.0, 999.0, 9999.0, 99999.0) for sign in (-1, 1)))
_FEWEST_ROWS = 10  # fewer values may have such patterns by chance
_MOST_ROWS = 2000  # that are compared, so that the cost does not depend on the number of samples
_NEARLY_ALL = 0.95


def likely_mistakes(views: Views) -> list[str]:
    """Return a sentence for each part of the views that is probably not meant as features."""
    if views.n_samples < _FEWEST_ROWS:
        return []
    found = [*_same_values(views)]
    for name in views:
        where, columns, x = f"view {name!r}", views.columns[name], views.observed(name)
        if name in views.empty_cells:
            x = x[~np.isnan(x).any(axis=1)]
        if x.shape[0] < _FEWEST_ROWS:
            continue
        nearly_constant = [] if sp.issparse(x) else [*_nearly_constant(where, x)]
        found += nearly_constant or _class_columns(where, x, columns, alone=len(views) == 1)
        if not sp.issparse(x):
            found += [*_distance_matrix(where, x), *_missing_codes(where, x[:_MOST_ROWS], columns)]
            found += _dates(where, x, columns)
    return found


def check_classes(what: str, classes: Sequence[str]) -> None:
    """Refuse known classes that no clustering can be compared with: a single one, or a different one for each sample.

    `what` names them in messages.
    """
    n_classes = len({*classes})
    if n_classes == 1 and len(classes) > 1:
        raise InputError(
            f"{what} has the same class {classes[0]!r} for all {len(classes)} samples; a comparison needs at least two "
            "classes"
        )
    if n_classes == len(classes) > 2:
        raise InputError(
            f"{what} has a different class for each of the {len(classes)} samples, such as {classes[0]!r}, as ids and "
            "measurements have; name the column of the classes"
        )


def classes_among_features(views: Views, classes: Sequence[str]) -> list[str]:
    """Return a sentence for each view with columns that have one value for each known class."""
    known = np.asarray(classes, dtype=object).astype(str)
    found = []
    for name in views:
        x, present = views.observed(name), views.present.get(name, slice(None))
        _, first, of_sample = np.unique(known[present], return_index=True, return_inverse=True)
        if sp.issparse(x) or len(of_sample) < max(1, 2 * len(first)):  # few samples have equal values by chance
            continue
        columns = np.arange(x.shape[1])
        for rows in (slice(64), slice(_MOST_ROWS), slice(None)):  # the first rows exclude most columns cheaply
            same = x[np.ix_(first, columns)][of_sample[rows]] == x[rows][:, columns]
            columns = columns[same.all(axis=0)]
        columns = columns[np.ptp(x[np.ix_(first, columns)], axis=0) > 0]
        if len(columns):
            named = _first_names(views.columns[name], columns)
            found.append(
                f"view {name!r} has features with one value for each known class ({named}); drop them if they were "
                "derived from the classes"
            )
    return found


def _same_values(views: Views) -> Iterator[str]:
    every = np.ones(views.n_samples, dtype=bool)
    for one, other in combinations(views, 2):
        same_samples = np.array_equal(views.present.get(one, every), views.present.get(other, every))
        if views.n_present(one) < _FEWEST_ROWS or not same_samples:
            continue
        x, y = views.observed(one), views.observed(other)
        if x.shape == y.shape and sp.issparse(x) == sp.issparse(y) and _equal(x[:1], y[:1]) and _equal(x, y):
            yield (
                f"the views {one!r} and {other!r} have the same values, so they count twice and agree with each other; "
                "drop one of them, or check whether one table was given twice"
            )


def _equal(x: Matrix, y: Matrix) -> bool:
    if sp.issparse(x):
        return x.nnz == y.nnz and (x != y).nnz == 0
    return np.array_equal(x, y, equal_nan=True)  # empty cells are equal


def _class_columns(where: str, x: Matrix, columns: tuple[str, ...] | None, *, alone: bool) -> Iterator[str]:
    """Yield a sentence on columns of a few integers that are named like classes, or are all that one view has."""
    if columns is None:
        suspects = {} if alone or x.shape[1] > 1 else {"": 0}
    else:
        single = len(columns) == 1 and not alone
        suspects = {name: j for j, name in enumerate(columns) if single or _names_classes(name)}
    for name, j in suspects.items():
        values = np.unique(x[:, [j]].toarray() if sp.issparse(x) else x[:, j])
        if 2 <= len(values) <= x.shape[0] / 5 and np.array_equal(values, np.floor(values)):
            found = f"the column {name!r}" if name else "one column"
            yield (
                f"{where} has {found} with {len(values)} different values, which looks like classes "
                "or labels of an earlier clustering; drop it, unless it is a feature"
            )


def _names_classes(name: str) -> bool:
    """Return whether a column of this name probably has classes: class, cell_type, but not class_size."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]
    last = words[-1] if words else ""
    return last in _CLASSES or last.removesuffix("s") in _CLASSES or words[-2:] == ["cell", "type"]


def _distance_matrix(where: str, x: Array) -> Iterator[str]:
    n = x.shape[0]
    if x.shape[1] == n and not np.diagonal(x).any() and (x[0, 1:] > 0).all() and np.array_equal(x, x.T):
        yield (
            f"{where} is a symmetric table of {n} x {n} values with zeros on its diagonal, such as distances between "
            "the samples; give the features, or similarities (kernel='precomputed')"
        )


def _nearly_constant(where: str, x: Array) -> Iterator[str]:
    rows = x[:_MOST_ROWS]
    for candidate in rows[[0, len(rows) // 2, -1]]:  # one of them is very probably among nearly all
        if (rows[:, 0] == candidate[0]).mean() < _NEARLY_ALL:
            continue
        usual = (rows == candidate).all(axis=1)
        if not _NEARLY_ALL <= usual.mean() < 1:
            continue
        among = f"{usual.sum()} of {len(x)}" if len(rows) == len(x) else f"{usual.mean():.1%} of the"
        yield f"{where} has the same values in {among} samples, so it separates the other samples only; drop the view"
        return


def _missing_codes(where: str, x: Array, columns: tuple[str, ...] | None) -> Iterator[str]:
    """Yield a sentence on columns with a value such as -999 in several samples, far from all other values."""
    by_code: dict[float, list[int]] = {}
    for code, ends in ((x.min(axis=0), "least"), (x.max(axis=0), "most")):
        for j in np.flatnonzero(np.isin(code, _MISSING_CODES)).tolist():
            others = x[x[:, j] != code[j], j]
            n_coded = len(x) - len(others)
            if len(others) < 2 or not 2 <= n_coded <= len(x) / 2:
                continue
            gap = others.min() - code[j] if ends == "least" else code[j] - others.max()
            if gap > np.ptp(others) > 0:
                by_code.setdefault(float(code[j]), []).append(j)
    for value, found in by_code.items():
        yield (
            f"{where} has the value {value:g} far from all others ({_first_names(columns, found)}), as codes for "
            "missing values are; impute them, or drop those samples, if it is one"
        )


def _dates(where: str, x: Array, columns: tuple[str, ...] | None) -> Iterator[str]:
    """Yield a sentence on columns of integers that are all dates of the years 1900 to 2099, such as 20231231."""
    found = np.arange(x.shape[1])
    for rows in (x[:_FEWEST_ROWS], x):  # the first rows exclude most columns cheaply
        years, days = np.divmod(rows[:, found], 10_000)
        months, days = np.divmod(days, 100)
        is_date = (years >= 1900) & (years < 2100) & np.isin(months, range(1, 13)) & np.isin(days, range(1, 32))
        found = found[is_date.all(axis=0)]
    if len(found):
        yield (
            f"{where} has dates that are written as numbers such as {x[0, found[0]]:.0f} "
            f"({_first_names(columns, found)}), whose differences are not days; encode them as days since the first "
            "date, or drop them"
        )


def _first_names(names: Sequence[str] | None, positions: Any) -> str:
    """Return the names of the first columns, or their positions, and the number of the others."""
    shown = ", ".join(repr(names[j] if names else str(j)) for j in list(positions)[:3])
    more = f" and {len(positions) - 3} more" if len(positions) > 3 else ""
    return f"{'column' if len(positions) == 1 else 'columns'} {shown}{more}"
