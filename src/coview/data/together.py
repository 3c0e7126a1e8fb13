"""Validation of several tables together: the same samples, finite numbers, and which samples have which view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.data.view import Array, Matrix, View
from coview.errors import InputError, InputTypeError, kind_of


def checked_together(
    tables: Mapping[str, View], masks: Any, index: Any, may_have_empty_cells: Callable[[str], bool]
) -> dict[str, View]:
    """Return tables of the same samples with what is found about their rows; `masks` say which samples have a view.

    Raise an InputError if the views differ in their samples, are empty, hold NaN or infinity in rows that are present,
    or if a sample has no view.
    """
    n_samples = _same_samples(tables)
    given = {name: _checked_mask(name, mask, n_samples) for name, mask in _mapping_of_masks(masks).items()}
    if unknown := [name for name in given if name not in tables]:
        raise InputError(f"present names the view {unknown[0]!r}; expected names among {', '.join(tables)}")
    checked = {}
    for name, table in tables.items():
        rows = replace(table, present=given.get(name, table.present))
        checked[name] = checked_rows(name, rows, may_have_empty_cells=may_have_empty_cells(name))
    masks = [table.present for table in checked.values() if table.present is not None]
    if len(masks) == len(checked):
        _refuse_samples_without_views(checked, np.flatnonzero(~np.logical_or.reduce(masks)), index)
    return checked


def _same_samples(tables: Mapping[str, View]) -> int:
    """Return the number of samples, after the shapes are compared."""
    first = next(iter(tables))
    expected: int = tables[first].matrix.shape[0]
    for name, x in ((name, table.matrix) for name, table in tables.items()):
        if x.shape[0] != expected:
            for one, count in ((name, expected), (first, x.shape[0])):
                if tables[one].matrix.shape[1] == count:
                    raise InputError(
                        f"view {name!r} has {x.shape[0]} samples but view {first!r} has {expected}; view {one!r} has "
                        f"{count} columns, which may be the samples: transpose it, as in {one}.T"
                    )
            raise InputError(
                f"view {name!r} has {x.shape[0]} samples but view {first!r} has {expected}; "
                "every view needs the same samples in the same order (modalities of a MuData may have different cells; "
                "take the common ones from each, as in mdata['rna'][common])"
            )
        for what, count in zip(("sample", "feature"), x.shape, strict=True):
            if count == 0:
                raise InputError(f"view {name!r} has 0 {what}(s) (shape={x.shape}) while a minimum of 1 is required.")
    return expected


def _refuse_samples_without_views(tables: Mapping[str, View], without: Array, index: Any) -> None:
    if not len(without):
        return
    row = f"row {without[0]}" if index is None else f"{index[without[0]]!r}"
    matrices = [table.matrix for table in tables.values()]
    # One view with a value that is NaN is one case of this; scikit-learn expects the word NaN.
    is_nan = any(not sp.issparse(x) and np.isnan(x[without[0]]).all() for x in matrices)
    reason = ", because they are NaN throughout" if is_nan else ""
    n_samples = matrices[0].shape[0]
    raise InputError(f"{len(without)} of {n_samples} samples have no view{reason} (first: {row}); drop them")


def _mapping_of_masks(present: Any) -> dict[str, Any]:
    if present is None:
        return {}
    if not isinstance(present, Mapping):
        raise InputTypeError(
            f"present is {kind_of(present)}; give a mapping from view name to boolean array, as in {{'text': mask}}"
        )
    return {str(name): mask for name, mask in present.items()}


def _checked_mask(name: str, mask: Any, n_samples: int) -> Array:
    advice = f"give one boolean for each of the {n_samples} samples"
    try:
        found = np.array(mask)  # a copy: the caller may change the mask later
    except ValueError:
        raise InputError(f"present[{name!r}] has lists of different lengths; {advice}") from None
    if found.shape != (n_samples,) or found.dtype != bool:
        raise InputError(f"present[{name!r}] has shape {found.shape} and type {found.dtype}; {advice}")
    return found


def checked_rows(name: str, table: View, *, may_have_empty_cells: bool) -> View:
    """Return the table with the rows that are present, those that are not NaN throughout, and whether they hold NaN.

    Raise an InputError if they hold infinity, or NaN and it is not allowed. NaN is never allowed in sparse views, which
    no preprocessing step fills.
    """
    x, columns, mask = table.matrix, table.columns, table.present
    values = x.data if isinstance(x, sp.csr_array) else x
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass without a temporary array; enough in most cases
            return replace(table.among(mask), has_empty_cells=False)
    if not sp.issparse(x):
        some = np.flatnonzero(np.isnan(x[:, 0]))  # rows that may be NaN throughout
        empty = some[np.isnan(x[some]).all(axis=1)]
        if len(empty):
            mask = np.ones(x.shape[0], dtype=bool) if mask is None else mask.copy()
            mask[empty] = False
            with np.errstate(over="ignore", invalid="ignore"):
                if np.isfinite(x.sum(axis=1, dtype=np.float64)[mask]).all():  # as above, for the rows that are present
                    return replace(table.among(mask), has_empty_cells=False)
    empty_rows, _ = _present_places(np.isnan, x, mask)
    bad_rows, bad_columns = _present_places(np.isinf, x, mask)
    what, advice = "infinity (inf)", "replace them"
    if len(empty_rows) and (sp.issparse(x) or not may_have_empty_cells):
        what = "NaN and infinity (inf)" if len(bad_rows) else "NaN"
        bad_rows, bad_columns = _present_places(lambda each: ~np.isfinite(each), x, mask)
        advice = "impute them (preprocessing step 'median' or 'nearest')"
        if sp.issparse(x):
            advice = "give the view as a dense table and impute them (preprocessing step 'median' or 'nearest')"
    if not len(bad_rows):
        return replace(table.among(mask), has_empty_cells=len(empty_rows) > 0)
    first = bad_columns[0] if columns is None else repr(columns[bad_columns[0]])
    raise InputError(
        f"view {name!r} contains {what} in {len(np.unique(bad_rows))} of {x.shape[0]} samples and "
        f"{len(np.unique(bad_columns))} of {x.shape[1]} columns (cells in total: {len(bad_rows)}; first: row "
        f"{bad_rows[0]}, column {first}); {advice} or drop those samples"
    )


def _present_places(is_bad: Callable[[Any], Array], x: Matrix, mask: Array | None) -> tuple[Array, Array]:
    """Return the rows and the columns of all bad values in rows that are present."""
    rows, columns = places_of(is_bad, x)
    kept = slice(None) if mask is None else mask[rows]
    return rows[kept], columns[kept]


def places_of(is_bad: Callable[[Any], Array], x: Matrix) -> tuple[Array, Array]:
    """Return the rows and the columns of all bad values, row by row."""
    if not isinstance(x, sp.csr_array):
        rows, columns = np.nonzero(is_bad(x))
        return rows, columns
    at = np.flatnonzero(is_bad(x.data))
    return np.searchsorted(x.indptr, at, side="right") - 1, x.indices[at]


def with_names(data: Mapping[Any, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return the tables by name; those of a list are named view0, view1, …"""
    if len(data) == 0:
        raise InputError("no views were given; give at least one 2-D table")
    pairs = data.items() if isinstance(data, Mapping) else ((f"view{i}", x) for i, x in enumerate(data))
    named: dict[str, Any] = {}
    for key, table in pairs:
        if str(key) in named:
            raise InputError(f"two views are named {str(key)!r}; rename one")
        named[str(key)] = table
    return named


def common_index(named: Mapping[str, Any]) -> Any:
    """Return the row labels of the pandas tables, None without any; an InputError if they differ, also in order."""
    found, _ = labelled_and_numbered(named)
    for name, index in found.items():
        first = next(iter(found))
        if len(index) == len(found[first]) and not index.equals(found[first]):
            same = set(index) == set(found[first])
            what = "the same row labels in another order" if same else "other row labels"
            raise InputError(
                f"view {name!r} has {what} than view {first!r}; align them, for example {name}.loc[{first}.index], or "
                "drop the labels with reset_index(drop=True) if the rows are already aligned"
            )
    return next(iter(found.values()), None)


def labelled_and_numbered(named: Mapping[str, Any], any_integers: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Return the row labels of pandas tables, and those with row numbers (0, 1, 2, …) beside labels of another type."""
    found = {name: table.index for name, table in named.items() if hasattr(getattr(table, "index", None), "equals")}
    integers = {name: np.asarray(index) for name, index in found.items() if index.dtype.kind in "iu"}
    if len(integers) == len(found):
        return found, []
    numbered = [name for name, x in integers.items() if any_integers or np.array_equal(x, np.arange(len(x)))]
    return {name: index for name, index in found.items() if name not in numbered}, numbered
