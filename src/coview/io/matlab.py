"""MATLAB files, read by SciPy, and of version 7.3, which is HDF5, by h5py."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from coview.errors import InputError
from coview.io.arrays import from_array
from coview.io.hdf5 import is_hdf5, matlab_variables, read_matlab_hdf5
from coview.io.isolate import isolated, require_array
from coview.io.table import InputFile, RawTable, shape_text

_NOT_NUMERIC = {"cell": "cell array", "struct": "structure", "object": "object", "char": "string"}
_NOT_NUMERIC |= {"function": "function", "opaque": "object", "unknown": "object"}


class _Variable(NamedTuple):
    """A variable of a file, or by itself as a file."""

    file: str | BytesIO
    shape: tuple[int, ...]
    kind: str

    @property
    def about(self) -> str:
        return shape_text(self.shape, "sparse" if self.kind == "sparse" else _NOT_NUMERIC.get(self.kind, ""))


@isolated
def variables_of_mat(source: InputFile) -> dict[str, str]:
    """Return the names and shapes of the variables of a MATLAB file."""
    if is_hdf5(source.path):
        return matlab_variables(source)
    return {name: variable.about for name, variable in _variables(source).items()}


@isolated
def read_mat(source: InputFile) -> RawTable:
    """Return the selected variable, or the only numeric one."""
    if is_hdf5(source.path):
        return read_matlab_hdf5(source)
    from scipy.io import loadmat

    variables = _variables(source)
    listed = {name: variable.about for name, variable in variables.items()}
    usable = {name: about for name, about in listed.items() if variables[name].kind not in _NOT_NUMERIC}
    name = source.choose(listed if source.variable is not None or len(usable) != 1 else usable, "variable")
    file, shape, kind = variables[name]
    what = _NOT_NUMERIC.get(kind)
    if what is None:
        # A logical matrix may be sparse, too.
        sides = (max(shape) + 1,) if kind in ("sparse", "logical") else shape
        require_array(source, sides, 8, source.path.stat().st_size)
        values = loadmat(file, variable_names=[name])[name]
        what = "complex numbers" if values.dtype.kind == "c" else None
    if what is not None:
        raise InputError(f"{source.where}: expected real numbers in the variable {name!r}, got {what}")
    # Values are stored in a smaller type than that of the variable if they fit.
    dtype = "float64" if sp.issparse(values) else {"logical": "uint8"}.get(kind, kind)
    return from_array(source, values.astype(np.dtype(dtype), copy=False))


def _variables(source: InputFile) -> dict[str, _Variable]:
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import varmats_from_mat

    with source.path.open("rb") as file:
        if file.read(128)[126:] not in (b"IM", b"MI"):
            raise InputError(f"{source.where} is not a MATLAB file of version 5 or later; save it with -v7 or -v7.3")
        file.seek(0)
        with suppress(TypeError):  # SciPy cannot list objects of newer versions
            path, listed = str(source.path), whosmat(file)
            return {name: _Variable(path, tuple(shape), kind) for name, shape, kind in listed if name[:2] != "__"}
        file.seek(0)
        parts = varmats_from_mat(file)
    found = {}
    for name, part in parts:
        try:
            [(name, shape, kind)] = whosmat(part)
        except TypeError:
            if name != "None":
                raise
            with suppress(Exception):  # an object of a newer version, which SciPy may not read
                found[loadmat(part)[name]["s0"].item().decode("latin-1")] = _Variable(part, (), "opaque")
        else:
            if not name.startswith("__"):  # MATLAB's own data
                found[name] = _Variable(part, tuple(shape), kind)
    return found
