"""File formats by ending, and paths that name a variable."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coview.errors import InputError, InputTypeError, kind_of
from coview.io.arrays import read_npy, read_npz, variables_of_npz
from coview.io.arrow import read_ipc, read_parquet
from coview.io.delimited import read_delimited
from coview.io.excel import read_xlsx, sheets_of_xlsx
from coview.io.hdf5 import read_anndata, variables_of_anndata
from coview.io.jsonl import read_jsonl
from coview.io.matlab import read_mat, variables_of_mat
from coview.io.matrix_market import read_matrix_market
from coview.io.obs import read_obs
from coview.io.table import AsStrings, InputFile, RawTable, reading, refuse_placeholder, refuse_url
from coview.io.tenx import feature_types, is_10x, read_10x
from coview.registry import DECIMAL_MARKS


@dataclass(frozen=True)
class Format:
    """A file format: its name and its readers.

    `variables` lists the variables of files that may have several. `annotations` reads known classes from files that
    store them beside the features; its second argument is their column.
    """

    name: str
    read: Callable[[InputFile, AsStrings], RawTable]
    variables: Callable[[InputFile], dict[str, str]] | None = None
    may_be_gzipped: bool = False
    annotations: Callable[[InputFile, str | None], RawTable] | None = None


FORMATS = {
    ".csv": Format("CSV", read_delimited, may_be_gzipped=True),
    ".tsv": Format("TSV", read_delimited, may_be_gzipped=True),
    ".xlsx": Format("Excel", read_xlsx, sheets_of_xlsx),
    ".jsonl": Format("JSON lines", read_jsonl, may_be_gzipped=True),
    ".parquet": Format("Parquet", read_parquet),
    ".feather": Format("Feather", read_ipc),
    ".arrow": Format("Arrow", read_ipc),
    ".npy": Format("NumPy array", read_npy),
    ".npz": Format("NumPy archive", read_npz, variables_of_npz),
    ".mtx": Format("Matrix Market", read_matrix_market, may_be_gzipped=True),
    ".mat": Format("MATLAB", read_mat, variables_of_mat),
    ".h5ad": Format("AnnData", read_anndata, variables_of_anndata, annotations=read_obs),
    ".h5mu": Format("MuData", read_anndata, variables_of_anndata, annotations=read_obs),
}
_FOLDER_OF_10X = Format("10x Genomics", read_10x, feature_types)


def find(what: str, path: Any, variable: str | None = None, decimal: str | None = None) -> tuple[InputFile, Format]:
    """Return the file and its format; `what` names its purpose in messages, and `path` may end in ::VARIABLE."""
    if decimal is not None and decimal not in DECIMAL_MARKS:
        raise InputError(f"decimal={decimal!r}: expected '.' or ','")
    if not isinstance(path, (str, os.PathLike)):
        raise InputTypeError(f"{what} is {kind_of(path)}; expected the path of a file")
    written = os.fspath(path)
    refuse_url(what, written)
    before, mark, after = written.rpartition("::")
    if mark and not os.path.exists(written):
        written, variable = before, variable or after
    source = InputFile(what, Path(written), variable or None, decimal)
    with reading(source.where):
        if not source.path.exists():
            if any(letter in written for letter in "*?["):
                raise InputError(f"{source.where} does not exist; patterns are not expanded, so give one file per view")
            raise InputError(f"{source.where} does not exist; check the path")
        if source.path.is_dir():
            if is_10x(source.path):
                return source, _FOLDER_OF_10X
            raise InputError(f"{source.where} is a folder without a matrix.mtx of 10x Genomics; give a file")
        if not source.path.is_file():
            raise InputError(f"{source.where} cannot be read more than once; save it to disk first")
        refuse_placeholder(source)
    kind = FORMATS.get(source.ending)
    if kind is None or (source.gzipped and not kind.may_be_gzipped):
        known, zipped = ", ".join(FORMATS), ", ".join(name for name in FORMATS if FORMATS[name].may_be_gzipped)
        raise InputError(f"{source.where} has an unknown ending; expected {known}, or .gz after one of {zipped}")
    if source.gzipped:
        with reading(source.where):
            source.check_text()
    return source, kind


def read_table(source: InputFile, kind: Format, as_strings: AsStrings) -> RawTable:
    """Return the table of a file; any error names the file."""
    with reading(source.where):
        if kind.variables is None:
            source.refuse_variable()
        return kind.read(source, as_strings)


def read_class_table(source: InputFile, kind: Format, column: str | None) -> tuple[RawTable, str | None]:
    """Return the table that contains known classes, all columns as strings, and the column of the classes.

    In a file with several variables, `column` may also name the variable.
    """
    with reading(source.where):
        if kind.annotations is not None:
            return kind.annotations(source, column), column
        if kind.variables is not None and source.variable is None and column is not None:
            variables = kind.variables(source)
            if source.ending == ".xlsx" and column not in variables and len(variables) > 1:
                raise InputError(
                    f"{source.where} has the sheets {', '.join(variables)}; select one and its column as "
                    f"{source.path.name}::SHEET::{column}"
                )
            if column in variables or len(variables) > 1:
                source, column = replace(source, variable=column), None
    return read_table(source, kind, lambda name: True), column
