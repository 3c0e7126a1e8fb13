"""Arrays: NumPy's .npy and .npz (also with SciPy's sparse matrices). Nothing is unpickled."""

from __future__ import annotations

from math import prod
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
import scipy.sparse as sp

from coview.errors import InputError
from coview.io.table import EXACT, TOO_LARGE, AsText, Source, Table
from coview.views import Matrix


def from_array(source: Source, values: Any) -> Table:
    """Wrap what a format calls an array; sparse ones become CSR once their indices are known to be inside."""
    numbers = _as_csr(source, values) if sp.issparse(values) else np.asarray(values)
    stored = numbers.data if isinstance(numbers, sp.csr_array) else numbers
    if stored.dtype.kind in "iu" and stored.size and max(-int(stored.min()), int(stored.max())) > EXACT:
        raise InputError(f"{source.where} holds {TOO_LARGE}; leave them out")
    return Table(numbers)


def _as_csr(source: Source, matrix: Any) -> Matrix:
    """Convert to CSR; indices that point outside are refused first, because compiled code trusts them."""
    if matrix.ndim != 2:
        raise InputError(f"{source.where} is {matrix.ndim}-D and must be 2-D, samples by features")
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    source.require_memory((matrix.shape[0] + 1,))
    csr = sp.csr_array(matrix)
    csr.sum_duplicates()
    return csr


def read_npy(source: Source, as_text: AsText) -> Table:
    """Read one array; it is mapped first, so that a header that claims too much allocates nothing."""
    source.refuse_variable()
    with source.path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise InputError(
                f"{source.where} is no NumPy file; save the array with numpy.save (pickles are never opened)"
            )
        file.seek(0)
        if _header(file)[1].hasobject:
            raise InputError(f"{source.where} holds pickled objects, which are never opened")
    mapped = np.lib.format.open_memmap(source.path, mode="r")  # compares what the header claims with the file's size
    source.require_memory(mapped.shape, mapped.itemsize)
    return from_array(source, np.array(mapped))


def variables_of_npz(source: Source) -> dict[str, str]:
    """Name the arrays of an archive and their shapes."""
    with source.path.open("rb") as file, ZipFile(file) as archive:
        members = _members(source, archive)
    if _is_sparse(members):
        return {"matrix": "sparse"}
    return _shapes(members)


def read_npz(source: Source, as_text: AsText) -> Table:
    """Read the array that is asked for, or the sparse matrix that SciPy stored as several."""
    with source.path.open("rb") as file, ZipFile(file) as archive:
        members = _members(source, archive)
        if _is_sparse(members):
            source.refuse_variable()
            for shape, dtype in members.values():
                source.require_memory(shape, dtype.itemsize)
            file.seek(0)
            with np.load(file, allow_pickle=False) as stored:
                source.require_memory((max(map(int, stored["shape"])) + 1,))
            file.seek(0)
            return from_array(source, sp.load_npz(file))
        name = source.choose(_shapes(members), "array")
        shape, dtype = members[name]
        source.require_memory(shape, dtype.itemsize)
        with archive.open(f"{name}.npy") as member:
            return from_array(source, np.lib.format.read_array(member, allow_pickle=False))


def _members(source: Source, archive: ZipFile) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and type of each array, from headers that agree with the size that the archive states."""
    members = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        with archive.open(info) as member:
            shape, dtype = _header(member)
            if dtype.hasobject:
                raise InputError(f"{source.where} holds pickled objects in {name!r}, which are never opened")
            if prod(shape) * dtype.itemsize + member.tell() != info.file_size:
                raise InputError(
                    f"{source.where} cannot be read: the array {name!r} claims {' x '.join(map(str, shape))} values, "
                    f"but {info.file_size} bytes are stored"
                )
        members[name] = (shape, dtype)
    return members


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    return shape, dtype


def _shapes(members: dict[str, tuple[tuple[int, ...], Any]]) -> dict[str, str]:
    return {name: f"({'x'.join(map(str, shape))})" if shape else "(one value)" for name, (shape, _) in members.items()}


def _is_sparse(members: dict[str, Any]) -> bool:
    return {"format", "shape", "data"} <= set(members)
