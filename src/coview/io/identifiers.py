"""Columns that look like ids of the samples: as features they are noise, and rows in another order are not noticed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.errors import InputError
from coview.io.table import RawTable
from coview.views import Array

_IDS = {"id", "ids", "identifier", "uid", "uuid", "guid", "idx", "barcode"}
_SAMPLES = {"sample", "patient", "subject", "participant", "donor", "individual", "person", "cell", "specimen", "case"}
_SAMPLES |= {"observation", "obs", "record", "row", "index"}
_NUMBERS = {"number", "no", "nr", "num", "name", "key", "code", "label"}
_FEWEST_ROWS = 10
_HEAD_ROWS = 64  # rows that exclude most columns of numbers cheaply

_Values = Array | frozenset[str]


def names_ids(name: str) -> bool:
    """Return whether a column of this name probably has ids: patient_id, SampleID, cell.barcode, but not cell_count."""
    words = [word.lower() for word in re.split(r"[\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)) if word]
    if not words or words[0] == "unnamed":  # pandas reads a column without a name as "Unnamed: 0"
        return True
    if any(word.isdigit() for word in words):  # sample_1 and sample_2 are columns of a transposed table
        return False
    if any(word in _IDS or (word.endswith("id") and word[:-2] in _SAMPLES) for word in words):
        return True
    return bool(_SAMPLES & {*words}) and {*words} <= _SAMPLES | _NUMBERS


def different_integers(values: Array) -> NDArray[np.bool_]:
    """Return which columns have integers that are all different."""
    with np.errstate(invalid="ignore"):
        whole = (values == np.floor(values)).all(axis=0) & np.isfinite(values).all(axis=0)
        return whole & (np.diff(np.sort(values, axis=0), axis=0) > 0).all(axis=0)


def refuse_identifiers(
    where: Mapping[str, str],
    tables: Mapping[str, RawTable],
    features: Mapping[str, Collection[str] | None],
    *,
    strings: bool,
) -> None:
    """Refuse a column that looks like ids, unless it is among the features that a model was trained on.

    `where` names each table in messages. A column is a candidate if its values are integers that are all different, or
    with `strings` different strings. In addition, its name must name ids, or in tables of ten rows or more, it must be
    the only candidate that numbers the rows, or the only one that another table has with the same values.
    """
    if len(tables) == 1 and any(features.values()):
        return  # columns that are not features are dropped, and there is nothing to pair
    candidates = {name: dict(_candidates(table, features.get(name) or (), strings)) for name, table in tables.items()}
    found: list[tuple[str, str, str]] = []  # view, column and reason
    for name, columns in candidates.items():
        named = [column for column in columns if names_ids(column)]
        numbering = [column for column, values in columns.items() if _numbers_rows(values)]
        others = [candidates[other] for other in candidates if other != name]
        shared = [
            column
            for column, values in columns.items()
            if any(column in other and _same(values, other[column]) for other in others)
        ]
        found += [(name, column, "all its values are different") for column in named]
        # Few values may be different by chance, all ranked features number the rows, and a view may have one feature.
        if tables[name].numbers.shape[0] >= _FEWEST_ROWS and len(tables[name].columns) > 1:
            if len(numbering) == 1:
                found.append((name, numbering[0], "it numbers the rows"))
            if len(shared) == 1:
                found.append((name, shared[0], "another view has the same values"))
    if found:
        in_all = [each for each in found if all(each[1] in table.columns for table in tables.values())]
        name, column, reason = (in_all or found)[0]
        raise _looks_like_ids(where[name], column, reason, len(tables))


def _looks_like_ids(where: str, column: str, reason: str, n_views: int) -> InputError:
    """Return the error about a column that looks like ids, which offers both uses of it."""
    found = f"{where} has the column {column!r}, which looks like ids of the samples ({reason})"
    if n_views == 1:
        return InputError(f"{found}; use it as the ids (ids={column!r}), or as any other column (ids=False)")
    return InputError(
        f"{found}; align the samples by it (ids={column!r}), or pair them by row order and use it as any other column "
        "(ids=False)"
    )


def _candidates(table: RawTable, features: Collection[str], strings: bool) -> Iterator[tuple[str, _Values]]:
    """Yield the columns of different integers, or of different strings, that are not features of a model."""
    n_samples = table.numbers.shape[0]
    if table.names is None or n_samples < 2 or sp.issparse(table.numbers):
        return
    for j in np.flatnonzero(different_integers(table.numbers[:_HEAD_ROWS])):
        column = table.numbers[:, j]
        if table.names[j] not in features and different_integers(column[:, None])[0]:
            yield table.names[j], np.sort(column)
    for name, cells in table.strings.items() if strings else ():
        encoded = any(feature.startswith(f"{name}=") for feature in features)
        if not encoded and None not in cells and len({*cells}) == n_samples:
            yield name, frozenset(map(str, cells))


def _numbers_rows(values: _Values) -> bool:
    """Return whether the values are 0, 1, 2, … or 1, 2, 3, … in any order."""
    return isinstance(values, np.ndarray) and values[0] in (0, 1) and values[-1] - values[0] == len(values) - 1


def _same(one: _Values, other: _Values) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and one == other
