"""Tables with features in rows and samples in columns: transposed on request, and recognised in error messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

import scipy.sparse as sp

from coview.errors import InputError
from coview.io.features import listing
from coview.io.table import InputFile, RawTable, check_names


def transposed(source: InputFile, table: RawTable) -> RawTable:
    """Return the table with samples in rows: the column names become row names, and the row names column names.

    A column of strings takes the place of row names.
    """
    if table.others:
        name, what = next(iter(table.others.items()))
        raise InputError(f"{source.where} has the column {name!r} of {what}; a table to transpose has numbers only")
    names = [table.row_names] if table.row_names is not None else []
    for column, cells in table.strings.items():
        missing = next((i for i, cell in enumerate(cells) if cell is None), None)
        if missing is not None and not names:
            raise InputError(f"{source.where} has no name of a feature in row {missing}, column {column!r}; name it")
        names.append(tuple(map(str, cells)))
    if len(names) > 1:
        found = listing("column", tuple(table.strings))
        raise InputError(
            f"{source.where} has {found} of strings; a table to transpose has at most one, the names of the features"
        )
    features = names[0] if names else None
    check_names(source.where, features or (), "rows (features)")
    numbers = sp.csr_array(table.numbers.T) if sp.issparse(table.numbers) else table.numbers.T
    return RawTable(numbers, features, row_names=table.names, notes=table.notes)


def check_orientation(
    sources: Mapping[str, InputFile],
    tables: Mapping[str, RawTable],
    transpose: Collection[str],
    ids: str | None,
    columns: Mapping[str, Sequence[str] | None],
) -> None:
    """Refuse a view that does not fit the others, or the columns of a model, but would in the other orientation."""
    found = chain(
        _rows_of_a_model(tables, columns),
        _columns_of_ids(sources, tables, ids),
        _columns_of_samples(sources, tables, ids),
    )
    for view, what in sorted(found, key=lambda suspect: suspect[0] not in transpose):
        remedy = "do not transpose it: leave out" if view in transpose else "transpose it:"
        raise InputError(f"{sources[view].where} {what}; {remedy} transpose=[{view!r}]")


_Suspects = Iterator[tuple[str, str]]  # a view, and what it has


def _rows_of_a_model(tables: Mapping[str, RawTable], columns: Mapping[str, Sequence[str] | None]) -> _Suspects:
    for view, table in tables.items():
        wanted = columns.get(view)
        n_rows, n_columns = table.numbers.shape
        present = {*table.columns} if table.names is not None else {*map(str, range(n_columns))}
        if wanted is None or present & {*wanted}:
            continue
        labels = (table.row_names or (), *table.strings.values())
        fits = table.names is None and n_columns != len(wanted) == n_rows
        if fits or any({*wanted} <= {*label} for label in labels):
            yield view, f"has {n_rows} rows that may be the {len(wanted)} columns of the model"


def _columns_of_ids(sources: Mapping[str, InputFile], tables: Mapping[str, RawTable], ids: str | None) -> _Suspects:
    samples_of = {view: {*table.strings.get(ids or "", table.row_ids or ())} for view, table in tables.items()}
    for view, table in tables.items():
        columns = {*table.columns}
        for other, samples in samples_of.items():
            # A Gram matrix has the ids in its rows as well, and a correlation matrix the features.
            if {*tables[other].columns} == {*table.columns}:
                continue
            if len(samples & columns) > len(samples) / 2 and not samples & samples_of[view]:
                yield view, f"has the ids of {sources[other].where} as column names"


def _columns_of_samples(sources: Mapping[str, InputFile], tables: Mapping[str, RawTable], ids: str | None) -> _Suspects:
    with_ids = bool(ids) or all(table.row_ids is not None for table in tables.values())
    counts = {view: table.numbers.shape[0] for view, table in tables.items()}
    for expected, _ in Counter(counts.values()).most_common():
        like = next(view for view, count in counts.items() if count == expected)
        for view, table in tables.items():
            by_order = not with_ids or table.names is None  # arrays have no ids
            same_features = table.names is not None and table.names == tables[like].names
            if by_order and not same_features and table.numbers.shape[1] == expected != counts[view]:
                found = f"has {counts[view]} samples but {sources[like].where} has {expected}"
                yield view, f"{found}, as many as its columns, which may be the samples"
