"""Alignment of the rows of the views: by ids, by row names, or by their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from coview.errors import InputError
from coview.io.features import Rows, listing
from coview.io.table import InputFile, RawTable
from coview.registry import suggestion

Ids = tuple[str, ...]
Alignment = tuple[dict[str, Rows], Ids | None, list[str]]  # rows of each view, ids of the samples, notes


def take_ids(source: InputFile, table: RawTable, column: str) -> tuple[RawTable, Ids | None]:
    """Return a table without this column of strings, and its ids: the column, or the row names; arrays have none."""
    if column in table.strings:
        cells = table.strings[column]
        table = replace(table, strings={name: strings for name, strings in table.strings.items() if name != column})
        missing = next((i for i, cell in enumerate(cells) if cell is None), None)
        if missing is not None:
            raise InputError(f"{source.where} has no id in row {missing}, column {column!r}; give every sample an id")
        found: Ids = tuple(str(cell) for cell in cells)
    elif table.row_ids is not None:
        found = table.row_ids
    elif table.names is not None:
        # Strings first, because ids are strings in most tables.
        columns = tuple(dict.fromkeys((*table.strings, *table.columns)))
        has = listing("column", columns) if columns else "no columns"
        raise InputError(f"{source.where} has no column {column!r} of ids{suggestion(column, columns)} It has {has}")
    else:
        return table, None
    first: dict[str, int] = {}
    for i, name in enumerate(found):
        if first.setdefault(name, i) != i:
            raise InputError(
                f"{source.where} has the id {name!r} in rows {first[name]} and {i}; every sample needs its own id"
            )
    return table, found


def by_order(sources: Mapping[str, InputFile], tables: Mapping[str, RawTable]) -> Alignment:
    """Return all rows in the order of the files, and the row names, which must agree if there are any."""
    check_counts({sources[name].where: table.numbers.shape[0] for name, table in tables.items()})
    labelled = [(sources[name], table.row_ids) for name, table in tables.items() if table.row_ids is not None]
    for source, names in labelled:
        first, ids = labelled[0]
        for i, (found, expected) in enumerate(zip(names, ids, strict=True)):
            if found != expected:
                raise InputError(
                    f"{source.where} has the row name {found!r} in row {i}, but {first.where} has {expected!r}; "
                    "reorder one of them, or align them by a column of ids"
                )
    rows = {name: np.arange(table.numbers.shape[0]) for name, table in tables.items()}
    return rows, labelled[0][1] if labelled else None, []


def by_ids(
    sources: Mapping[str, InputFile], tables: Mapping[str, RawTable], ids: Mapping[str, Ids | None], inner: bool
) -> Alignment:
    """Return the rows of all views in the order of the first view with ids; other samples are refused or dropped."""
    given = {name: found for name, found in ids.items() if found is not None}
    if not given:
        raise InputError(
            f"{sources[next(iter(sources))].where} has no column of ids, nor has any other view; leave out the ids"
        )
    first = next(iter(given))
    common = set(given[first])
    for name, found in given.items():
        common &= set(found)
        if not common:
            raise InputError(f"{sources[name].where} has no sample in common with the views before it; check the ids")
    pairs = [] if inner else [pair for name in given for pair in ((first, name), (name, first))]
    for one, other in pairs:
        known = set(given[other])
        missing = [sample for sample in given[one] if sample not in known]
        if missing:
            raise InputError(
                f"{sources[other].where} lacks {listing('sample', missing)} that {sources[one].where} has; add them, "
                "or keep only the common samples (align='inner', on the command line --align inner)"
            )
    order = tuple(sample for sample in given[first] if sample in common)
    rows, notes = {}, []
    for name, found in given.items():
        position = {sample: i for i, sample in enumerate(found)}
        rows[name] = np.array([position[sample] for sample in order])
        dropped = [sample for sample in found if sample not in common]
        if dropped:
            notes.append(
                f"{sources[name].where}: dropped {listing('sample', dropped)} of {len(found)}, not in every view"
            )
    unmoved = all(np.array_equal(rows[name], np.arange(len(found))) for name, found in given.items())
    for name in ids:
        if name not in given:
            if not unmoved:
                raise InputError(
                    f"{sources[name].where} has no ids, and cannot be aligned with the other views, whose samples "
                    "differ in order or number; save it as a table with ids"
                )
            rows[name] = np.arange(tables[name].numbers.shape[0])
    check_counts({sources[name].where: len(rows[name]) for name in sources})
    return rows, order, notes


def check_counts(counts: Mapping[str, int]) -> None:
    """Refuse different numbers of samples, given by the names of the files in messages."""
    first, expected = next(iter(counts.items()))
    for where, count in counts.items():
        if count != expected:
            raise InputError(
                f"{where} has {count} samples but {first} has {expected}; every view needs the same samples in the "
                "same order, unless read_views aligns them by ids (ids=…, on the command line --ids)"
            )
