"""MATLAB files of versions 5 to 7, read by NumPy because SciPy's reader can crash on damaged ones; 7.3 is HDF5."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from coview.errors import InputError
from coview.io.arrays import from_array
from coview.io.hdf5 import is_hdf5, matlab_variables, read_matlab_hdf5
from coview.io.table import AsStrings, InputFile, RawTable, shape_text

# The codes of the format for types of stored values, and for classes of variables.
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_SPARSE, _OPAQUE = 5, 17
_NOT_NUMERIC = {1: "cell array", 2: "structure", 3: "object", 4: "string", 16: "function", _OPAQUE: "object"}
_COMPLEX = 0x800
_START = 8192  # bytes of a variable that include its name and shape


@dataclass(frozen=True)
class _Variable:
    flags: int
    shape: tuple[int, ...]
    at: int  # offset in the file
    n_bytes: int  # decompressed

    @property
    def about(self) -> str:
        kind = self.flags & 0xFF
        return shape_text(self.shape, "sparse" if kind == _SPARSE else _NOT_NUMERIC.get(kind, ""))


def variables_of_mat(source: InputFile) -> dict[str, str]:
    """Return the names and shapes of the variables of a MATLAB file."""
    if is_hdf5(source.path):
        return matlab_variables(source)
    with source.path.open("rb") as file:
        return {name: variable.about for name, variable in _variables(source, file, _byte_order(source, file)).items()}


def read_mat(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the selected variable, or the only numeric one."""
    if is_hdf5(source.path):
        return read_matlab_hdf5(source)
    with source.path.open("rb") as file:
        order = _byte_order(source, file)
        variables = _variables(source, file, order)
        usable = {name: v.about for name, v in variables.items() if (v.flags & 0xFF) not in _NOT_NUMERIC}
        listed = {name: v.about for name, v in variables.items()}
        name = source.choose(listed if source.variable is not None or len(usable) != 1 else usable, "variable")
        chosen = variables[name]
        kind = chosen.flags & 0xFF
        if kind in _NOT_NUMERIC or chosen.flags & _COMPLEX:
            what = _NOT_NUMERIC.get(kind, "complex numbers")
            raise InputError(f"{source.where}: expected real numbers in the variable {name!r}, got {what}")
        source.require_memory((chosen.n_bytes,), 3)
        file.seek(chosen.at)
        body, _ = _begin(source, file, order, chosen.n_bytes + 8)
        return from_array(source, _decode(source, body, order))


def _byte_order(source: InputFile, file: IO[bytes]) -> str:
    order = {b"IM": "<", b"MI": ">"}.get(file.read(128)[126:])
    if order is None:
        raise InputError(f"{source.where} is not a MATLAB file of version 5 or later; save it with -v7 or -v7.3")
    return order


def _variables(source: InputFile, file: IO[bytes], order: str) -> dict[str, _Variable]:
    found = {}
    size = file.seek(0, 2)
    at = 128
    while at < size:
        file.seek(at)
        _, length = struct.unpack(f"{order}II", file.read(8))
        if at + 8 + length > size:
            raise InputError(f"{source.where} is truncated: it ends within a variable")
        file.seek(at)
        start, n_bytes = _begin(source, file, order)
        flags, shape, name, _ = _head(start, order)
        if name:  # MATLAB's own data have no name
            found[name] = _Variable(flags, shape, at, n_bytes)
        at += 8 + length
    return found


def _begin(source: InputFile, file: IO[bytes], order: str, most: int = _START) -> tuple[bytes, int]:
    """Return at most this many bytes of the variable that begins here, decompressed, and its size in bytes."""
    at = file.tell()
    kind, n_bytes = struct.unpack(f"{order}II", file.read(8))
    start = file.read(min(n_bytes, 2 * most))  # compression may enlarge incompressible values a little
    if kind == _COMPRESSED:
        start = zlib.decompressobj().decompress(start, most)
        kind, n_bytes = struct.unpack(f"{order}II", start[:8])
        start = start[8:]
    if kind != _MATRIX:
        raise InputError(f"{source.where} is damaged at byte {at}: no variable begins there")
    return start, n_bytes


def _head(body: bytes, order: str) -> tuple[int, tuple[int, ...], str, int]:
    """Return flags, shape and name of a variable, and the offset of its values."""
    flags, at = _element(body, 0, order)
    shape: Any = ()
    if int(flags[0]) & 0xFF != _OPAQUE:
        shape, at = _element(body, at, order)
    name, at = _element(body, at, order)
    return int(flags[0]), tuple(int(n) for n in shape), name.tobytes().decode("latin-1"), at


def _element(body: bytes, at: int, order: str) -> tuple[Any, int]:
    """Return the array that begins here, and the offset of the next one."""
    (word,) = struct.unpack_from(f"{order}I", body, at)
    if word >> 16:  # values of up to four bytes are stored in place of their length
        kind, length, start, end = word & 0xFFFF, word >> 16, at + 4, at + 8
    else:
        kind, (length,), start = word, struct.unpack_from(f"{order}I", body, at + 4), at + 8
        end = start + length + -length % 8
    return np.frombuffer(body[start : start + length], np.dtype(order + _STORED[kind])), end


def _decode(source: InputFile, body: bytes, order: str) -> Any:
    flags, shape, _, at = _head(body, order)
    if flags & 0xFF != _SPARSE:
        stored, _ = _element(body, at, order)
        return stored.reshape(shape, order="F").astype(_CLASSES[flags & 0xFF])
    rows, at = _element(body, at, order)
    ends, at = _element(body, at, order)
    entries, _ = _element(body, at, order)
    used = int(ends[-1])  # more may be allocated
    source.require_memory((max(shape) + 1,))
    plain = (entries[:used].astype(np.float64), rows[:used].astype(np.int64), ends.astype(np.int64))
    return sp.csc_array(plain, shape=shape)
