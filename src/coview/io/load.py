"""Views from files: read each file, align the samples, and select the columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from coview.data.as_views import views_of_tables
from coview.data.mistakes import likely_mistakes
from coview.data.table import as_table
from coview.data.view import View, among_all
from coview.data.views import Views
from coview.errors import InputError, InputTypeError
from coview.io.align import Ids, by_ids, by_order, check_ids, row_names_of_all, take_ids
from coview.io.features import Features, check_numbers, with_columns
from coview.io.formats import find, read_table
from coview.io.identifiers import notes_on_identifiers, refuse_identifiers
from coview.io.table import reading
from coview.io.transpose import check_orientation, transposed
from coview.registry import ALIGNMENTS, CATEGORIES, check_name


@dataclass(frozen=True)
class Loaded:
    """Views read from files.

    Attributes
    ----------
    views : Views
    ids : tuple of str, or None
        The ids of the samples, if there are any.
    notes : tuple of str
        Columns and samples that were dropped, constant columns, and assumptions about the files.
    """

    views: Views
    ids: tuple[str, ...] | None
    notes: tuple[str, ...]


def read_views(
    sources: Mapping[str, Any],
    *,
    ids: str | Literal[False] | None = None,
    align: str = "strict",
    categories: str | Mapping[str, Collection[str]] = "refuse",
    variables: Mapping[str, str] | None = None,
    columns: Mapping[str, Sequence[str] | None] | None = None,
    decimal: str | None = None,
    transpose: Sequence[str] = (),
    empty_cells: Collection[str] = (),
    keep: Mapping[str, Collection[str]] | None = None,
    drop: Collection[str] = (),
) -> Loaded:
    r"""Return the views from one file each, with the ids of their samples and notes.

    Parameters
    ----------
    sources : mapping from view name to path
        CSV, TSV, JSON lines and Matrix Market (also .gz), .xlsx, Parquet, Feather, Arrow, .npy, .npz, MATLAB, .h5ad and
        .h5mu, by their endings, or a folder of 10x Genomics. A path may end in `::NAME` to select a variable of the
        file.
    ids : str or False, optional
        The column with the ids of the samples; all views get the order of the first. Without it, row names are the ids
        if all files have them (`.h5ad`, `.h5mu`, the index of a pandas data frame); otherwise samples are paired by row
        order, and columns that look like ids are refused. False pairs samples by row order and reads such columns as
        any other.
    align : {"strict", "inner", "outer"}
        With ids: refuse samples that are not in every view, drop them with a note, or keep them, with a note on how
        many samples lack each view.
    categories : {"refuse", "onehot"}, or mapping from view name to columns
        Refuse columns of strings, or read them as categories, which estimators encode as one-hot columns; or the
        columns of each view that are categories, also if their cells are numbers. Columns that a Parquet, Arrow or
        Feather file stores as categories are read as such in any case.
    variables : mapping from view name to variable, optional
        The same as `::NAME`.
    columns : mapping from view name to column names, optional
        The columns that a model was trained on, selected by name.
    decimal : {".", ","}, optional
        The decimal mark of text tables; without it, a decimal comma is detected.
    transpose : sequence of view names
        Views whose files have features in rows and samples in columns.
    empty_cells : collection of view names
        Views that may have cells without a value, which the steps "median" and "nearest" of `Preprocessed` fill. Others
        are refused if they have any, except for rows without any value, which are samples that lack the view.
    keep : mapping from view name to column names, optional
        The only columns of these views that are read, beside the ids. Columns without names are always read.
    drop : collection of str
        Columns that are not read: "COLUMN" of all views that have it, or "VIEW=COLUMN" of one view.

    Returns
    -------
    Loaded

    See Also
    --------
    Views.join : Join data frames with different samples.
    ViewsReader : Read blocks of rows of large files.
    coview.io.read_labels : Read known classes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, image = Path(folder, "text.csv"), Path(folder, "image.csv")
    ...     _ = text.write_text("sample,length\ns1,3\ns2,5\n")
    ...     _ = image.write_text("sample,red,green\ns2,4,5\ns1,1,2\n")
    ...     loaded = read_views({"text": text, "image": image}, ids="sample")
    >>> loaded.views, loaded.ids
    (Views(2 samples; text: 1, image: 2), ('s1', 's2'))
    >>> loaded.views["image"]
    array([[1., 2.],
           [4., 5.]])
    """
    check_name("align", align, ALIGNMENTS)
    categorical = categories if isinstance(categories, Mapping) else {}
    if not isinstance(categories, (Mapping, str)):
        raise InputTypeError(
            f"categories={categories!r}: expected 'refuse', 'onehot', or a mapping from view name to columns"
        )
    if isinstance(categories, str):
        check_name("categories", categories, CATEGORIES)
    for name, listed in categorical.items():
        if isinstance(listed, str):
            raise InputTypeError(f"categories[{name!r}]={listed!r}: expected a list of columns, such as [{listed!r}]")
    check_ids(ids)
    if isinstance(transpose, str):
        raise InputTypeError(f"transpose={transpose!r}: expected a list of views, such as [{transpose!r}]")
    if not isinstance(sources, Mapping):
        raise InputTypeError(f"sources={sources!r}: expected a mapping from view name to the path of a file")
    if not sources:
        raise InputError("there are no views; give at least one file")
    given_names = {
        "categories": categorical,
        "variables": variables,
        "columns": columns,
        "transpose": transpose,
        "empty_cells": empty_cells,
        "keep": keep,
    }
    for parameter, given in given_names.items():
        for name in given or ():
            if name not in sources:
                raise InputError(f"{parameter} names the view {name!r}, which has no file")
    for name, path in sources.items():
        if columns is not None and name not in columns:
            raise InputError(f"view {name!r} ({path}) is not a view of the model; its views: {', '.join(columns)}")
    found, tables = {}, {}
    ids_of: dict[str, Ids | None] = {}
    for name, path in sources.items():
        strings = {*categorical.get(name, ()), *((ids,) if ids else ())}
        found[name], kind = find(f"view {name!r}", path, (variables or {}).get(name), decimal)
        tables[name] = read_table(found[name], kind, strings.__contains__)
        check_numbers(found[name], tables[name])
        unknown = [column for column in categorical.get(name, ()) if column not in tables[name].columns]
        if unknown and columns is None:  # a missing column of a model is reported with the others
            raise InputError(f"{found[name].where} has no column {unknown[0]!r}, which categories names")
        if name in transpose:
            tables[name] = transposed(found[name], tables[name])
    if keep or drop:
        tables = with_columns(found, tables, keep or {}, drop, ids)
    check_orientation(found, tables, transpose, ids or None, columns or {})
    for name, source in found.items() if ids else ():
        tables[name], ids_of[name] = take_ids(source, tables[name], str(ids))
    where = {name: source.where for name, source in found.items()}
    beside = notes_on_identifiers(where, tables) if ids and columns is None else []
    if ids is None:
        stored = any(table.categories for table in tables.values())
        strings_too = stored or categories != "refuse" or columns is not None  # otherwise strings are refused anyway
        refuse_identifiers(where, tables, columns or {}, strings=strings_too)
        ids_of |= row_names_of_all(tables) or {}
    if ids_of:
        aligned = by_ids(found, tables, ids_of, align)
    elif align != "strict":
        raise InputError(f"align={align!r} matches samples by their ids; name the column of the ids (ids=…)")
    else:
        aligned = by_order(found, tables, compare=ids is None)
    chosen: dict[str, View] = {}
    notes = aligned.notes + beside
    for name, source in found.items():
        with reading(source.where):
            empty = name in empty_cells
            features = Features(source, tables.pop(name), aligned.rows[name], may_have_empty_cells=empty)
            of_view = {*categorical.get(name, ())}
            is_categorical = of_view.__contains__ if categories != "onehot" else lambda column: True
            wanted = (columns or {}).get(name)
            table = features.all(is_categorical) if wanted is None else features.chosen(wanted, is_categorical)
            notes += features.notes
            matrix = as_table(source.where, table.matrix).matrix  # of floats
            present = aligned.present.get(name)
            whole = matrix if present is None else among_all(matrix, present)
            chosen[name] = replace(table, matrix=whole, present=present)
    views = views_of_tables(chosen, may_have_empty_cells=empty_cells.__contains__)
    return Loaded(views, aligned.ids, (*notes, *likely_mistakes(views)))
