"""HDF5 files: AnnData (.h5ad), MuData (.h5mu) and MATLAB 7.3; only the selected table is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.base.extras import load_extra
from coview.data.table import as_string
from coview.errors import InputError
from coview.io.arrays import from_array
from coview.io.features import check_numbers
from coview.io.isolate import isolated, require_array
from coview.io.table import STRING_BYTES, InputFile, RawTable, check_names, shape_text

_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def is_hdf5(path: Path) -> bool:
    """Return whether the file begins as HDF5 does; MATLAB puts a header of 512 bytes before."""
    with path.open("rb") as file:
        start = file.read(520)
    return _SIGNATURE in (start[:8], start[512:])


@isolated
def variables_of_anndata(source: InputFile) -> dict[str, str]:
    """Return the names and shapes of the tables of an AnnData or MuData file."""
    with open_hdf5(source) as file:
        return {name: _node_shape(node) for name, node in _tables(file).items()}


@isolated
def read_anndata(source: InputFile) -> RawTable:
    """Return X, or the selected entry of obsm or layers; in MuData, of a modality."""
    with open_hdf5(source) as file:
        tables = _tables(file)
        given = source.variable is not None
        listed = {name: _node_shape(node) for name, node in tables.items() if given or "/" not in name}
        node = tables["X" if "X" in tables and not given else source.choose(listed, "table")]
        home = node.parent if node.name.endswith("/X") else node.parent.parent
        values, names = _read_node(source, node)
        check_numbers(source, RawTable(values))
        row_names = read_index(source, home, "obs", values.shape[0])
        if names is None and node.parent.name.rsplit("/", 1)[-1] != "obsm":
            names = read_index(source, home, "var", values.shape[1])
    check_names(source.where, names or ())
    return RawTable(values, names, row_names=row_names)


def _tables(file: Any) -> dict[str, Any]:
    """Return all tables of the file by the name that selects them."""
    tables: dict[str, Any] = {}
    for name, group in nodes_of(file["mod"]).items() if "mod" in file else [("", file)]:
        if "X" in group:
            tables[name or "X"] = group["X"]
        for folder in ("obsm", "layers"):
            for key, node in nodes_of(group.get(folder, {})).items():
                tables.setdefault(f"{name}/{key}" if name else key, node)
    return tables


def nodes_of(group: Any) -> dict[str, Any]:
    """Return the datasets and groups in a group by name, except links to nothing."""
    return {name: node for name, node in group.items() if node is not None}


def _node_shape(node: Any, transposed: bool = False) -> str:
    if hasattr(node, "shape"):
        sides = node.shape or ()
        return shape_text(sides[::-1] if transposed else sides)
    if "MATLAB_sparse" in node.attrs:
        return shape_text((node.attrs["MATLAB_sparse"], len(node["jc"]) - 1), "sparse")
    shape = node.attrs.get("shape")
    return "(data frame)" if shape is None else shape_text(shape, "sparse")


def _read_node(source: InputFile, node: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return a dense array, a sparse matrix, or a data frame with its column names."""
    if hasattr(node, "shape"):
        return from_array(source, values_of(source, node)).numbers, None
    kind = str(node.attrs.get("encoding-type", ""))
    if kind in ("csr_matrix", "csc_matrix"):
        shape = tuple(int(n) for n in node.attrs["shape"])
        require_array(source, (max(shape) + 1,), 8, source.path.stat().st_size)
        stored = tuple(values_of(source, node[part]) for part in ("data", "indices", "indptr"))
        make = sp.csr_array if kind == "csr_matrix" else sp.csc_array
        return from_array(source, make(stored, shape=shape)).numbers, None
    if kind == "dataframe":
        names = [str(name) for name in node.attrs["column-order"]]
        if not all(hasattr(node[name], "dtype") and node[name].dtype.kind in "fiub" for name in names):
            raise InputError(f"{source.where} has columns in {node.name} that are not numeric; encode or drop them")
        columns = [from_array(source, values_of(source, node[name])).numbers for name in names]
        return np.column_stack(columns), tuple(names)
    raise InputError(f"{source.where} has a {kind or 'group'} in {node.name}, which is not a table of numbers")


def read_index(source: InputFile, home: Any, axis: str, count: int) -> tuple[str, ...] | None:
    """Return the names of the rows (obs) or columns (var), if there are any; of so many rows or columns."""
    group = home.get(axis)
    names = None if group is None else group.get(group.attrs.get("_index", "_index"))
    if names is None:
        return None
    found = tuple(as_string(name) or "" for name in values_of(source, names))
    if len(found) != count:
        what = "rows" if axis == "obs" else "columns"
        raise InputError(f"{source.where} has {len(found)} names for {count} {what}; it may be damaged")
    return found


def matlab_variables(source: InputFile) -> dict[str, str]:
    """Return the names and shapes of the variables of a MATLAB 7.3 file."""
    with open_hdf5(source) as file:
        return {name: _node_shape(node, transposed=True) for name, node in _matlab_tables(file).items()}


def read_matlab_hdf5(source: InputFile) -> RawTable:
    """Return a variable of a MATLAB 7.3 file; it is stored by columns, so h5py sees it transposed."""
    with open_hdf5(source) as file:
        tables = _matlab_tables(file)
        shapes = {name: _node_shape(node, transposed=True) for name, node in tables.items()}
        node = tables[source.choose(shapes, "variable")]
        if "MATLAB_sparse" not in node.attrs:
            return from_array(source, values_of(source, node).T)
        n_rows, ends = int(node.attrs["MATLAB_sparse"]), values_of(source, node["jc"])
        require_array(source, (n_rows + 1,), 8, source.path.stat().st_size)
        stored = (values_of(source, node[part]) if part in node else np.empty(0) for part in ("data", "ir"))
        return from_array(source, sp.csc_array((*stored, ends), shape=(n_rows, len(ends) - 1)))


def _matlab_tables(file: Any) -> dict[str, Any]:
    """Return the numeric variables; MATLAB stores strings and objects as numbers, and its own data under #."""
    return {
        name: node
        for name, node in nodes_of(file).items()
        if not name.startswith("#")
        and ("MATLAB_sparse" in node.attrs or (hasattr(node, "dtype") and node.dtype.kind in "fiubc"))
        and "MATLAB_object_decode" not in node.attrs
        and node.attrs.get("MATLAB_class") != b"char"
    }


def values_of(source: InputFile, node: Any) -> Any:
    """Return the values of a dataset, if they are stored in the file itself and fit in memory; strings as bytes."""
    from h5py import check_string_dtype

    if node.external or node.is_virtual or node.file.filename != str(source.path):
        raise InputError(
            f"{source.where} takes {node.name} from other files, which are not read; store all data in one file"
        )
    is_text = check_string_dtype(node.dtype) is not None
    if node.shape is None or not (is_text or node.dtype.kind in "fiubc"):
        raise InputError(f"{source.where} has values of type {node.dtype} in {node.name}; expected numbers or strings")
    itemsize = node.dtype.itemsize
    for shape in (node.shape, node.chunks or ()):
        require_array(source, shape, max(itemsize, STRING_BYTES * is_text), node.id.get_storage_size())
    return node[()]


@contextmanager
def open_hdf5(source: InputFile) -> Iterator[Any]:
    """Yield the root of the file, or refuse one that is not HDF5."""
    if not is_hdf5(source.path):
        raise InputError(f"{source.where} is not an HDF5 file; give it the ending of its format")
    h5py = load_extra("h5py", "scverse", "reading .h5ad, .h5mu and MATLAB 7.3 files")
    with h5py.File(source.path, "r") as file:
        yield file
