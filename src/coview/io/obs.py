"""Columns of obs in AnnData and MuData files, as known classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coview.data.table import as_string
from coview.errors import InputError
from coview.io.features import listing
from coview.io.hdf5 import nodes_of, open_hdf5, read_index, values_of
from coview.io.isolate import isolated
from coview.io.table import InputFile, RawTable
from coview.registry import suggestion


@isolated
def read_obs(source: InputFile, column: str | None = None) -> RawTable:
    """Return a column of obs as strings, with the row names; the column of a modality is named as in `rna:kind`."""
    column = ":".join(filter(None, (source.variable, column))) or None
    with open_hdf5(source) as file:
        found = _obs_columns(source, file)
        listed = listing("column", tuple(found))
        if not found:
            raise InputError(f"{source.where} has no columns in obs; give a table of the classes")
        if column is None and len(found) > 1:
            raise InputError(f"{source.where} has {listed} in obs; name that of the classes")
        column = next(iter(found)) if column is None else column
        if column not in found:
            close = suggestion(column, found)
            raise InputError(f"{source.where} has no column {column!r} in obs{close} It has {listed}")
        home, node = found[column]
        cells = _as_strings(source, node)
        row_names = read_index(source, home, "obs", len(cells))
    return RawTable(np.empty((len(cells), 0)), (), {column: cells}, row_names=row_names)


def _obs_columns(source: InputFile, file: Any) -> dict[str, tuple[Any, Any]]:
    """Return the columns of obs by name, each with the group that has this obs.

    MuData also stores columns for all modalities together. Those of a modality replace a column of the same name,
    because that has no values for samples of other modalities.
    """
    found = {name: (file, node) for name, node in _frame(source, file).items()}
    for modality, group in nodes_of(file["mod"]).items() if "mod" in file else ():
        found |= {f"{modality}:{name}": (group, node) for name, node in _frame(source, group).items()}
    return found


def _frame(source: InputFile, home: Any) -> dict[str, Any]:
    obs = home.get("obs")
    if obs is None:
        return {}
    if hasattr(obs, "dtype"):
        raise InputError(f"{source.where} stores obs as versions of anndata before 0.7 did; save it with a newer one")
    index = obs.attrs.get("_index", "_index")
    return {name: node for name, node in nodes_of(obs).items() if name not in (index, "__categories")}


def _as_strings(source: InputFile, node: Any) -> Sequence[str | None]:
    """Return a column of any encoding of anndata as strings, None if a value is missing."""
    if hasattr(node, "dtype"):
        values = values_of(source, node)
        if values.ndim != 1:
            raise InputError(f"{source.where} has {values.ndim}-D values in {node.name}; expected one per sample")
        categories = node.attrs.get("categories")  # a reference, in versions of anndata before 0.8
        if categories is not None:
            return _decoded(source, values, _as_strings(source, node.file[categories]))
        return [as_string(value) for value in values.tolist()]
    if "codes" in node and "categories" in node:
        return _decoded(source, values_of(source, node["codes"]), _as_strings(source, node["categories"]))
    if "values" in node and "mask" in node:
        pairs = zip(*(values_of(source, node[part]).tolist() for part in ("values", "mask")), strict=True)
        return [None if hidden else as_string(value) for value, hidden in pairs]
    raise InputError(f"{source.where} has no classes in {node.name}; select a column of strings, categories or numbers")


def _decoded(source: InputFile, codes: Any, categories: Sequence[str | None]) -> list[str | None]:
    if codes.ndim != 1 or (len(codes) and not -1 <= int(codes.min()) <= int(codes.max()) < len(categories)):
        raise InputError(f"{source.where} has codes of categories that do not exist; it may be damaged")
    by_code = [*categories, None]  # the code -1 is a missing value
    return [by_code[code] for code in codes.tolist()]
