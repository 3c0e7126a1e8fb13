"""Arrays: NumPy's .npy and .npz (also with SciPy's sparse matrices). Nothing is unpickled."""

from __future__ import annotations

from math import prod
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
import scipy.sparse as sp

from coview.data.view import Matrix
from coview.errors import InputError
from coview.io.table import EXACT, TOO_LARGE, AsStrings, InputFile, RawTable, check_names, shape_text

_SPARSE = {"matrix": "sparse"}  # one matrix, which SciPy stores as several arrays


def from_array(source: InputFile, values: Any) -> RawTable:
    """Return an array as a table; sparse matrices become CSR after a check of their indices."""
    numbers = _as_csr(source, values) if sp.issparse(values) else np.asarray(values)
    stored = numbers.data if isinstance(numbers, sp.csr_array) else numbers
    if stored.dtype.kind in "iu" and stored.size and max(-int(stored.min()), int(stored.max())) > EXACT:
        raise InputError(f"{source.where} has {TOO_LARGE}; drop them")
    return RawTable(numbers)


def _as_csr(source: InputFile, matrix: Any) -> Matrix:
    """Return a CSR matrix; indices out of range are refused first, because compiled code does not check them."""
    if matrix.ndim != 2:
        raise InputError(f"{source.where} is {matrix.ndim}-D; a view is 2-D, samples by features")
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    source.require_memory((matrix.shape[0] + 1,))
    source.require_columns(matrix.shape[1])
    csr = sp.csr_array(matrix)
    csr.sum_duplicates()
    return csr


def read_npy(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the array of a .npy file; it is mapped first, so that a wrong header allocates nothing."""
    with source.path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise InputError(
                f"{source.where} is not a NumPy file; save the array with numpy.save (pickles are refused)"
            )
        file.seek(0)
        if _header(file)[1].hasobject:
            raise InputError(f"{source.where} contains pickled objects, which are refused")
    mapped = np.lib.format.open_memmap(source.path, mode="r")  # compares the header with the size of the file
    source.require_memory(mapped.shape, mapped.itemsize)
    return from_array(source, np.array(mapped))


def variables_of_npz(source: InputFile) -> dict[str, str]:
    """Return the names and shapes of the arrays of an archive."""
    with source.path.open("rb") as file, ZipFile(file) as archive:
        return _shapes(_members(source, archive))


def read_npz(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the selected array, or the sparse matrix that SciPy stored as several arrays."""
    with source.path.open("rb") as file, ZipFile(file) as archive:
        members = _members(source, archive)
        shapes = _shapes(members)
        if shapes == _SPARSE:
            source.refuse_variable()
            for shape, dtype in members.values():
                source.require_memory(shape, dtype.itemsize)
            file.seek(0)
            with np.load(file, allow_pickle=False) as stored:
                n_rows, n_columns = [*map(int, stored["shape"]), 0][:2]
                source.require_memory((max(n_rows, n_columns) + 1,))
                source.require_columns(n_columns)
            file.seek(0)
            return from_array(source, sp.load_npz(file))
        name = source.choose(shapes, "array")
        shape, dtype = members[name]
        source.require_memory(shape, dtype.itemsize)
        with archive.open(f"{name}.npy") as member:
            return from_array(source, np.lib.format.read_array(member, allow_pickle=False))


def _members(source: InputFile, archive: ZipFile) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Return shape and type of each array, from headers that agree with the stored sizes."""
    check_names(source.where, [name.removesuffix(".npy") for name in archive.namelist()], "arrays")
    members = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        with archive.open(info) as member:
            shape, dtype = _header(member)
            if dtype.hasobject:
                raise InputError(f"{source.where} contains pickled objects in {name!r}, which are refused")
            if prod(shape) * dtype.itemsize + member.tell() != info.file_size:
                raise InputError(
                    f"{source.where} cannot be read: the header of {name!r} claims {' x '.join(map(str, shape))} "
                    f"values, but {info.file_size} bytes are stored"
                )
        members[name] = (shape, dtype)
    return members


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    return shape, dtype


def _shapes(members: dict[str, tuple[tuple[int, ...], Any]]) -> dict[str, str]:
    if {"format", "shape", "data"} <= set(members):
        return _SPARSE
    return {name: shape_text(shape) if shape else "(one value)" for name, (shape, _) in members.items()}
