"""Contents of a file, as plain values."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.io.formats import find, read_table
from coview.io.table import RawTable, reading


def describe_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    r"""Return the contents of a file, as values that can be written as JSON.

    Parameters
    ----------
    path : path
        In any format that `read_views` reads; `::NAME` selects a variable. Without it, the variables of a file with
        several are listed.

    Returns
    -------
    dict
        Format and size, then the variables, or shape, notes on what the reader assumed, columns with type and range,
        and missing values.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.csv")
    ...     _ = path.write_text("sample,length\ns1,3\ns2,\n")
    ...     described = describe_file(path)
    >>> described["format"], described["shape"]
    ('CSV', [2, 2])
    >>> described["columns"][0]
    {'name': 'length', 'type': 'number', 'missing': 1, 'min': 3.0, 'max': 3.0}
    """
    source, kind = find("file", path)
    files = [file for file in source.path.iterdir() if file.is_file()] if source.path.is_dir() else [source.path]
    size = sum(file.stat().st_size for file in files)
    described: dict[str, Any] = {"path": str(source.path), "format": kind.name, "bytes": size}
    if kind.variables is not None:
        with reading(source.where):
            described["variables"] = kind.variables(source)
        has_default = source.ending == ".h5ad" and "X" in described["variables"]
        if source.variable is None and len(described["variables"]) != 1 and not has_default:
            return described
    return described | _describe_table(read_table(source, kind, lambda name: False))


def _describe_table(table: RawTable) -> dict[str, Any]:
    numbers, shape = table.numbers, list(table.numbers.shape)
    if len(shape) == 2:
        shape[1] += len(table.strings) + len(table.others)
    about: dict[str, Any] = {
        "shape": shape,
        "type": str(numbers.dtype),
        "sparse": bool(sp.issparse(numbers)),
        "row_names": None if table.row_names is None else list(table.row_names[:5]),
    }
    if table.notes:
        about["notes"] = "; ".join(table.notes)
    if sp.issparse(numbers):
        about["stored_values"] = int(numbers.nnz)
        about["columns"] = [{"name": name, "type": "number"} for name in table.names or ()]
        return about
    columns: list[dict[str, Any]] = [_numeric_column(name, numbers[:, j]) for j, name in enumerate(table.names or ())]
    for name, cells in table.strings.items():
        present = [cell for cell in cells if cell is not None]
        about_strings = {"missing": len(cells) - len(present), "different": len(set(present)), "examples": present[:3]}
        columns.append({"name": name, "type": "category" if name in table.categories else "string"} | about_strings)
    columns += [{"name": name, "type": what} for name, what in table.others.items()]
    about["columns"] = columns
    if numbers.dtype.kind == "f":
        about["missing"] = int(np.isnan(numbers).sum()) + sum(
            column.get("missing", 0) for column in columns if column["type"] == "string"
        )
    return about


def _numeric_column(name: str, values: Any) -> dict[str, Any]:
    finite = values[np.isfinite(values)]
    limits = {"min": float(finite.min()), "max": float(finite.max())} if len(finite) else {"min": None, "max": None}
    return {"name": name, "type": "number", "missing": int(np.isnan(values).sum())} | limits
