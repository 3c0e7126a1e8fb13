"""Columns that look like ids of the samples: as features they are noise, and rows in another order are not noticed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.data.view import Array
from coview.errors import InputError
from coview.io.table import RawTable

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

    `where` names each table in messages.
    """
    if len(tables) == 1 and any(features.values()):
        return  # columns that are not features are dropped, and there is nothing to pair
    if found := _like_ids(where, tables, features, strings):
        in_all = [each for each in found if all(each[1] in table.columns for table in tables.values())]
        name, column, sentence = (in_all or found)[0]
        raise InputError(f"{sentence}; {_both_uses(column, name, tables)}")


def notes_on_identifiers(where: Mapping[str, str], tables: Mapping[str, RawTable]) -> list[str]:
    """Return a note on each column that looks like ids beside those by which the tables are aligned."""
    found = {each[:2]: each[2] for each in _like_ids(where, tables, {}, strings=False)}
    how = {view: "" if table.names is None else " (drop=… of read_views)" for view, table in tables.items()}
    return [f"{sentence}; drop it{how[view]}, unless it is a feature" for (view, _), sentence in found.items()]


def _like_ids(
    where: Mapping[str, str],
    tables: Mapping[str, RawTable],
    features: Mapping[str, Collection[str] | None],
    strings: bool,
) -> list[tuple[str, str, str]]:
    """Return view and name of each column that looks like ids, and the beginning of a sentence about it.

    A column is a candidate if its values are integers that are all different, or with `strings` different strings. In
    addition, its name must name ids, or in tables of ten rows or more, it must be the only candidate that numbers the
    rows, or another table must have most of its values under the same name.
    """
    candidates = {
        name: {}  # a model takes columns without names by their positions
        if table.names is None and name in features
        else dict(_candidates(table, features.get(name) or (), strings))
        for name, table in tables.items()
    }
    found = []
    for name, columns in candidates.items():
        n_samples, n_columns = tables[name].numbers.shape
        n_columns = len(tables[name].columns) or n_columns
        found += [(name, column, "all its values are different") for column in columns if names_ids(column)]
        # Few values may be different by chance, and a view may have one feature.
        if n_samples < _FEWEST_ROWS or n_columns == 1:
            continue
        numbering = [column for column, values in columns.items() if _numbers_rows(values)]
        if len(numbering) == 1:  # all ranked features number the rows
            found.append((name, numbering[0], "it numbers the rows"))
        if tables[name].names is None:
            continue  # the same position says less than the same name
        shared = _shared(columns, [candidates[other] for other in candidates if other != name])
        if len(shared) < n_columns:  # features that are ranks among more samples have most values in common
            found += [(name, column, "another view has most of its values") for column in shared]
    like = "which looks like ids of the samples"
    return [(name, column, f"{where[name]} has the column {column!r}, {like} ({why})") for name, column, why in found]


def _both_uses(column: str, name: str, tables: Mapping[str, RawTable]) -> str:
    """Return how the column of the table of this name becomes the ids, and how it becomes a feature."""
    if tables[name].names is None:
        as_ids = "drop it, store the table with column names and use it as the ids (ids=…), or"
    elif len(tables) == 1:
        as_ids = f"use it as the ids (ids={column!r}), or"
    else:
        same = {each for table in tables.values() for each in table.columns if each.casefold() == column.casefold()}
        others = ", ".join(map(repr, sorted(same - {column})))
        rename = f"rename {others} in the other views and " if others else ""
        as_ids = f"{rename}align the samples by it (ids={column!r}), or pair them by row order and"
    return f"{as_ids} use it as any other column (ids=False)"


def _candidates(table: RawTable, features: Collection[str], strings: bool) -> Iterator[tuple[str, _Values]]:
    """Yield the columns of different integers, or of different strings, that are not features of a model.

    Columns without names are named by their positions.
    """
    n_samples = table.numbers.shape[0]
    if n_samples < 2 or sp.issparse(table.numbers):
        return
    names = table.names if table.names is not None else tuple(map(str, range(table.numbers.shape[1])))
    for j in np.flatnonzero(different_integers(table.numbers[:_HEAD_ROWS])):
        column = table.numbers[:, j]
        if names[j] not in features and different_integers(column[:, None])[0]:
            yield names[j], np.sort(column)
    for name, cells in table.strings.items() if strings else ():
        if name not in features and None not in cells and len({*cells}) == n_samples:
            yield name, frozenset(map(str, cells))


def _shared(columns: Mapping[str, _Values], others: Sequence[Mapping[str, _Values]]) -> list[str]:
    """Return the columns of which another table has most values; names may differ in case.

    Columns that have the same values as another one are left out: they are ranks.
    """
    folded = [{name.casefold(): values for name, values in other.items()} for other in others]
    shared = {
        name: values
        for name, values in columns.items()
        if any(_most_in(values, other.get(name.casefold())) for other in folded)
    }
    digest = {name: hash(x.tobytes() if isinstance(x, np.ndarray) else x) for name, x in shared.items()}
    times = Counter(digest.values())
    return [name for name in shared if times[digest[name]] == 1]


def _numbers_rows(values: _Values) -> bool:
    """Return whether the values are 0, 1, 2, … or 1, 2, 3, … in any order."""
    return isinstance(values, np.ndarray) and values[0] in (0, 1) and values[-1] - values[0] == len(values) - 1


def _most_in(values: _Values, other: _Values | None) -> bool:
    """Return whether the other column has more than half of these values."""
    if isinstance(values, np.ndarray) and isinstance(other, np.ndarray):
        return 2 * len(np.intersect1d(values, other, assume_unique=True)) > len(values)
    return isinstance(values, frozenset) and isinstance(other, frozenset) and 2 * len(values & other) > len(values)
