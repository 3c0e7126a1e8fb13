"""Alignment of the rows of the views: by ids, by row names, or by their order."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coview.data.view import Array
from coview.errors import InputError, InputTypeError
from coview.io.features import Rows, listing
from coview.io.identifiers import names_ids
from coview.io.table import InputFile, RawTable
from coview.registry import suggestion

Ids = tuple[str, ...]


class Alignment(NamedTuple):
    """Rows of each view in the order of the samples, their ids, notes, and which samples have a view that some lack."""

    rows: dict[str, Rows]
    ids: Ids | None
    notes: list[str]
    present: dict[str, Array] = {}  # noqa: RUF012 - never changed


def check_ids(ids: Any) -> None:
    """Refuse anything but the name of a column, False or None."""
    if ids is not None and ids is not False and not (isinstance(ids, str) and ids):
        raise InputTypeError(f"ids={ids!r}: expected the name of a column, or ids=False to pair samples by row order")


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
        close = suggestion(column, columns)
        likely = next((name for name in columns if names_ids(name)), None) if close == "." else None
        close = close if likely is None else f"; did you mean {likely!r}?"
        # A table of genes by samples has the names of the genes in its only column of strings.
        if close == "." and len(table.strings) == 1:
            has += "; if its columns are samples, transpose it (transpose=…)"
        raise InputError(f"{source.where} has no column {column!r} of ids{close} It has {has}")
    else:
        return table, None
    refuse_duplicates(source, found)
    return table, found


def refuse_duplicates(source: InputFile, ids: Ids) -> None:
    """Refuse ids that two rows have."""
    first: dict[str, int] = {}
    for i, name in enumerate(ids):
        if first.setdefault(name, i) != i:
            raise InputError(
                f"{source.where} has the id {name!r} in rows {first[name]} and {i}; every sample needs its own id"
            )


def row_names_of_all(tables: Mapping[str, RawTable]) -> dict[str, Ids] | None:
    """Return the row names if they can be ids: every table has them, and none has a name twice.

    Names that only number the rows are ids if another table has the same names in another order.
    """
    named = {name: table.row_names for name, table in tables.items() if table.row_names is not None}
    numbered = [name for name in named if tables[name].row_ids is None]
    if len(named) < len(tables) or len(numbered) == len(tables):
        return None
    if any(len({*names}) < len(names) for names in named.values()):
        return None
    return named if not numbered or len({frozenset(names) for names in named.values()}) == 1 else None


def by_order(sources: Mapping[str, InputFile], tables: Mapping[str, RawTable], *, compare: bool) -> Alignment:
    """Return all rows in the order of the files, and the row names; with `compare` they must agree if there are any."""
    check_counts({sources[name].where: table.numbers.shape[0] for name, table in tables.items()})
    labelled = {name: table.row_ids for name, table in tables.items() if table.row_ids is not None}
    first = next(iter(labelled), "")
    other = next((name for name in labelled if labelled[name] != labelled[first]), None)
    if compare and other is not None:
        pairs = zip(labelled[other], labelled[first], strict=True)
        i, (found, expected) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
        raise InputError(
            f"{sources[other].where} has the row name {found!r} in row {i}, but {sources[first].where} has "
            f"{expected!r}; reorder one of them, align them by a column of ids (ids=…), or pair the samples by row "
            "order (ids=False)"
        )
    rows = {name: np.arange(table.numbers.shape[0]) for name, table in tables.items()}
    notes = notes_on_order(tables, [name for name in labelled if compare])
    return Alignment(rows, labelled.get(first) if other is None else None, notes)


def notes_on_order(views: Collection[str], with_ids: Collection[str]) -> list[str]:
    """Return a note if any of several views has no ids, so that its samples are paired by row order."""
    without = [name for name in views if name not in with_ids]
    if len(views) == 1 or not without:
        return []
    if len(without) == len(views):
        return ["the samples of all views are paired by row order"]
    has, their = ("has", "its") if len(without) == 1 else ("have", "their")
    return [f"{listing('view', without)} {has} no ids: {their} samples are paired by row order"]


_SPELLINGS: dict[str, Callable[[str], str]] = {
    "upper and lower case": str.casefold,
    "leading zeros": lambda name: re.sub(r"(?<!\d)0+(?=\d)", "", name),
    "a decimal point": lambda name: re.sub(r"\.0+$", "", name),
    "spaces": lambda name: "".join(name.split()),
    "hyphens, points and underscores": lambda name: re.sub(r"[-._]", "", name),
}
_ALL_SPELLINGS = _SPELLINGS | {  # ids of different samples may differ in these, too
    "their endings": lambda name: re.sub(r"[-._:][^-._:]*$", "", name),
    "the text around the number": lambda name: re.sub(r"^\D*0*|\D*$", "", name),
}


def _difference(ids: Ids, others: Ids, spellings: Mapping[str, Callable[[str], str]] = _SPELLINGS) -> str:
    """Return what most ids of a view that another view lacks differ in from the ids of that view, if anything."""
    own, lacking = [[name for name in a if name not in b] for a, b in ((ids, {*others}), (others, {*ids}))]
    for what, spelt in spellings.items():
        same = {spelt(name): name for name in reversed(lacking)}
        found = [name for name in own if same.get(spelt(name)) and spelt(name)]
        if 2 * len(found) > min(len(own), len(lacking)):
            pair = f"{found[0]!r} and {same[spelt(found[0])]!r}"
            return f": its ids differ in {what}, as in {pair}; write the ids in the same way"
    return ""


def by_ids(
    sources: Mapping[str, InputFile], tables: Mapping[str, RawTable], ids: Mapping[str, Ids | None], align: str
) -> Alignment:
    """Return the rows of all views in the order of the first view with ids.

    Samples that are not in all views are refused ("strict"), dropped ("inner"), or kept ("outer").
    """
    given = {name: found for name, found in ids.items() if found is not None}
    without = [name for name in ids if name not in given]
    if not given:
        raise InputError(
            f"{sources[next(iter(sources))].where} has no column of ids, nor has any other view; leave out the ids"
        )
    if without and align == "outer":
        raise InputError(
            f"{sources[without[0]].where} has no ids, which align='outer' needs in every view; save it as a table with "
            "ids"
        )
    first, *others = given
    position = {name: {sample: i for i, sample in enumerate(found)} for name, found in given.items()}
    common = {*given[first]}
    for name in others if align == "outer" else given:
        if align == "outer":
            shared = {sample for other in given if other != name for sample in given[other]} & {*given[name]}
        else:
            shared = common = common & {*given[name]}
        if not shared:
            raise _nothing_in_common(sources[name], given[name], given[first])
    pairs = [pair for name in given for pair in ((first, name), (name, first))] if align == "strict" else []
    for one, other in pairs:
        missing = [sample for sample in given[one] if sample not in position[other]]
        if missing:
            raise InputError(
                f"{sources[other].where} lacks {listing('sample', missing)} that {sources[one].where} has"
                f"{_difference(given[other], given[one]) or '; add them'}, keep only the common samples "
                "(align='inner'), or all samples (align='outer')"
            )
    every = dict.fromkeys(sample for found in given.values() for sample in found)
    order = tuple(every if align == "outer" else (sample for sample in given[first] if sample in common))
    rows, present, notes = {}, {}, []
    for name, found in given.items():
        rows[name] = np.array([position[name][sample] for sample in order if sample in position[name]])
        missing = [sample for sample in order if sample not in position[name]]
        dropped = [sample for sample in found if sample not in common and align != "outer"]
        if missing:
            present[name] = np.array([sample in position[name] for sample in order])
        if missing or dropped:
            what = f": dropped {listing('sample', dropped)} of {len(found)}, not in every view"
            if missing:
                what = f" lacks {listing('sample', missing)} of {len(order)}"
            notes.append(f"{sources[name].where}{what}{_difference(found, given[first])}")
    for name in without:
        if any(not np.array_equal(rows[other], np.arange(len(found))) for other, found in given.items()):
            raise InputError(
                f"{sources[name].where} has no ids, and cannot be aligned with the other views, whose samples "
                "differ in order or number; save it as a table with ids"
            )
        rows[name] = np.arange(tables[name].numbers.shape[0])
    if without:
        check_counts({sources[name].where: len(rows[name]) for name in sources})
    return Alignment(rows, order, notes + notes_on_order(ids, given), present)


def _nothing_in_common(source: InputFile, ids: Ids, others: Ids) -> InputError:
    first = f": its first id is {ids[0]!r}, that of the first view {others[0]!r}" if ids and others else ""
    found = _difference(ids, others, _ALL_SPELLINGS) or f"{first}; write the ids in the same way"
    return InputError(
        f"{source.where} has no sample in common with the views before it{found}, or pair the samples by row order "
        "(ids=False) if the rows are already aligned"
    )


def check_counts(counts: Mapping[str, int]) -> None:
    """Refuse different numbers of samples, given by the names of the files in messages."""
    first, expected = next(iter(counts.items()))
    for where, count in counts.items():
        if count != expected:
            raise InputError(
                f"{where} has {count} samples but {first} has {expected}; every view needs the same samples in the "
                "same order, unless they are aligned by ids (ids=…)"
            )
