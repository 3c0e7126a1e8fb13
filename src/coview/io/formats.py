"""File formats by ending, and paths that name a variable."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coview.errors import InputError, InputTypeError, kind_of
from coview.io.arrays import read_npy, read_npz, variables_of_npz
from coview.io.arrow import read_ipc, read_parquet
from coview.io.delimited import read_delimited
from coview.io.hdf5 import read_anndata, variables_of_anndata
from coview.io.matlab import read_mat, variables_of_mat
from coview.io.matrix_market import read_matrix_market
from coview.io.table import AsStrings, InputFile, RawTable, reading, refuse_url


@dataclass(frozen=True)
class Format:
    """A file format: its name, its reader and, if files may have several variables, how they are listed."""

    name: str
    read: Callable[[InputFile, AsStrings], RawTable]
    variables: Callable[[InputFile], dict[str, str]] | None = None
    may_be_gzipped: bool = False


FORMATS = {
    ".csv": Format("CSV", read_delimited, may_be_gzipped=True),
    ".tsv": Format("TSV", read_delimited, may_be_gzipped=True),
    ".parquet": Format("Parquet", read_parquet),
    ".feather": Format("Feather", read_ipc),
    ".arrow": Format("Arrow", read_ipc),
    ".npy": Format("NumPy array", read_npy),
    ".npz": Format("NumPy archive", read_npz, variables_of_npz),
    ".mtx": Format("Matrix Market", read_matrix_market, may_be_gzipped=True),
    ".mat": Format("MATLAB", read_mat, variables_of_mat),
    ".h5ad": Format("AnnData", read_anndata, variables_of_anndata),
    ".h5mu": Format("MuData", read_anndata, variables_of_anndata),
}


def find(what: str, path: Any, variable: str | None = None) -> tuple[InputFile, Format]:
    """Return the file and its format; `what` names its purpose in messages, and `path` may end in ::VARIABLE."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputTypeError(f"{what} is {kind_of(path)}; expected the path of a file")
    written = os.fspath(path)
    refuse_url(what, written)
    before, mark, after = written.rpartition("::")
    if mark and not os.path.exists(written):
        written, variable = before, variable or after
    source = InputFile(what, Path(written), variable or None)
    with reading(source.where):
        if not source.path.exists():
            raise InputError(f"{source.where} does not exist; check the path")
        if source.path.is_dir():
            raise InputError(f"{source.where} is a folder; give a file")
        if not source.path.is_file():
            raise InputError(f"{source.where} cannot be read more than once; save it to disk first")
    kind = FORMATS.get(source.ending)
    if kind is None or (source.gzipped and not kind.may_be_gzipped):
        known = ", ".join(FORMATS)
        raise InputError(f"{source.where} has an unknown ending; expected {known}, or .gz after .csv, .tsv or .mtx")
    return source, kind


def read_table(source: InputFile, kind: Format, as_strings: AsStrings) -> RawTable:
    """Return the table of a file; any error names the file."""
    with reading(source.where):
        if kind.variables is None:
            source.refuse_variable()
        return kind.read(source, as_strings)
