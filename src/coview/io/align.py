"""Which rows of the views belong to the same sample: by ids, by row names, or by their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from coview.errors import InputError
from coview.io.features import Rows, listing
from coview.io.table import Source, Table, is_counting

Ids = tuple[str, ...]


def take_ids(source: Source, table: Table, column: str) -> tuple[Table, Ids | None]:
    """Take the ids out of a table; arrays have none, row names serve where there is no such column.

    Parameters
    ----------
    source : Source
    table : Table, read with this column as text
    column : str
    """
    if column in table.texts:
        cells = table.texts[column]
        table = replace(table, texts={name: texts for name, texts in table.texts.items() if name != column})
        missing = next((i for i, cell in enumerate(cells) if cell is None), None)
        if missing is not None:
            raise InputError(f"{source.where} has no id in row {missing}, column {column!r}; give every sample its own")
        found: Ids = tuple(str(cell) for cell in cells)
    elif table.row_names is not None and not is_counting(table.row_names):
        found = table.row_names
    elif table.names is not None:
        has = listing("column", table.columns) if table.columns else "no columns"
        raise InputError(f"{source.where} has no column {column!r} to take the ids from; it has {has}")
    else:
        return table, None
    _check_unique(source, found)
    return table, found


def _check_unique(source: Source, ids: Ids) -> None:
    first: dict[str, int] = {}
    for i, name in enumerate(ids):
        if first.setdefault(name, i) != i:
            raise InputError(
                f"{source.where} has the id {name!r} in rows {first[name]} and {i}; every sample needs its own id"
            )


def by_order(sources: Mapping[str, Source], tables: Mapping[str, Table]) -> tuple[dict[str, Rows], Ids | None]:
    """Take the rows as they come; where views have row names, these must agree."""
    _check_counts(sources, {name: table.numbers.shape[0] for name, table in tables.items()})
    labelled = [
        (sources[name], table.row_names)
        for name, table in tables.items()
        if table.row_names is not None and not is_counting(table.row_names)
    ]
    for source, names in labelled:
        first, ids = labelled[0]
        for i, (found, expected) in enumerate(zip(names, ids, strict=True)):
            if found != expected:
                raise InputError(
                    f"{source.where} has the row name {found!r} in row {i}, where {first.where} has {expected!r}; "
                    "bring both into the same order, or align them by an ids column"
                )
    rows = {name: np.arange(table.numbers.shape[0]) for name, table in tables.items()}
    return rows, labelled[0][1] if labelled else None


def by_ids(
    sources: Mapping[str, Source], tables: Mapping[str, Table], ids: Mapping[str, Ids | None], inner: bool
) -> tuple[dict[str, Rows], Ids, list[str]]:
    """Bring all views into the order of the first one with ids; samples that are not in all are refused or dropped."""
    given = {name: found for name, found in ids.items() if found is not None}
    if not given:
        raise InputError(
            f"{sources[next(iter(sources))].where} has no columns to take the ids from, nor has any other view; leave "
            "the ids away"
        )
    first = next(iter(given))
    common = set(given[first])
    for name, found in given.items():
        common &= set(found)
        if not common:
            raise InputError(f"{sources[name].where} has no sample in common with the views before it; look at the ids")
    if not inner:
        for name, found in given.items():
            _check_same(sources[first], given[first], sources[name], found)
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
                    f"{sources[name].where} has no ids, so that its rows cannot follow those of the other views, which "
                    "differ in order or number; save it as a table with ids"
                )
            rows[name] = np.arange(tables[name].numbers.shape[0])
    _check_counts(sources, {name: len(rows[name]) for name in sources})
    return rows, order, notes


def _check_same(first: Source, expected: Ids, source: Source, found: Ids) -> None:
    for one, has, other, lacks in ((first, expected, source, found), (source, found, first, expected)):
        known = set(lacks)
        missing = [sample for sample in has if sample not in known]
        if missing:
            raise InputError(
                f"{other.where} lacks {listing('sample', missing)} that {one.where} has; add what is missing, or keep "
                "the common samples only (align 'inner')"
            )


def _check_counts(sources: Mapping[str, Source], counts: Mapping[str, int]) -> None:
    first = next(iter(counts))
    for name, count in counts.items():
        if count != counts[first]:
            raise InputError(
                f"{sources[name].where} has {count} samples but {sources[first].where} has {counts[first]}; every view "
                "needs the same samples in the same order, or ids to align them by"
            )
