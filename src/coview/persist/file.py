"""The file around a saved model: arrays and one JSON text in the safetensors format, with digests of both.

The text lists every array with its type, shape and SHA-256, and ends with its own digest. The beginning of a file can
therefore be trusted by itself, and a change of any bit that matters is noticed before a model is made.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from coview._version import __version__
from coview.base.atomic import FULL_DISK, write_complete
from coview.base.records import Json, StateError, entries, refuse_nan, require
from coview.data.view import Array
from coview.errors import InputError, ModelFileError

FORMAT = 2
_LARGEST_HEADER = 100_000_000  # bytes; safetensors itself reads no more
_MOST_VALUES = 4_000_000  # names, numbers, lists and objects in the text; each takes about 100 bytes of memory
_DEEPEST = 100  # levels of lists and objects in the text; a wrapper takes eight
_MOST_SIDES = 8  # of an array
_LONGEST_MESSAGE = 300
# Types of arrays, and their names in a safetensors header.
DTYPES = {f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
DTYPES |= {"bool": "BOOL", "float32": "F32", "float64": "F64"}


class Tensors:
    """The arrays of a file; an array used twice is stored once. Those that are skipped are not read."""

    def __init__(self, arrays: Mapping[str, Array] | None = None, *, skipped: bool = False) -> None:
        self.skipped = skipped
        self.arrays: dict[str, Array] = dict(arrays or {})
        self._nodes: dict[int, tuple[Json, Array]] = {}  # with the array, because the id of a deleted one is used again

    def write(self, array: Array) -> Json:
        """Add an array; return its node in the JSON text."""
        if id(array) not in self._nodes:
            by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
            name = str(len(self.arrays))
            native = array.dtype.newbyteorder("=")
            self.arrays[name] = np.asarray(array.T if by_columns else array, native, order="C")
            # Products of matrices may be rounded differently in another layout, so the layout is kept.
            node = {"tensor": name, "by_columns": True} if by_columns else {"tensor": name}
            self._nodes[id(array)] = node, array
        return self._nodes[id(array)][0]

    def read(self, node: Json) -> Array:
        """Return the array of this node."""
        given = entries(node, ["tensor"], ["by_columns"])
        name = given["tensor"]
        if self.skipped:
            return np.empty(0)
        require(isinstance(name, str) and name in self.arrays, "expected the name of a tensor in this file")
        require(given.get("by_columns", True) is True, "expected a known layout")
        return self.arrays[name].T if "by_columns" in given else self.arrays[name]


def write_file(path: Path, tree: Json, arrays: Mapping[str, Array]) -> None:
    """Write a model, given as JSON and arrays; the file appears when it is complete."""
    from safetensors.numpy import save

    document = {"format": FORMAT, "coview": __version__, "model": tree, "tensors": _tensor_list(arrays)}
    text = json.dumps({**document, "digest": digest(document)})
    require(2 * len(text) <= _LARGEST_HEADER, f"names and parameters of {len(text)} characters are too many")
    n_values = _n_values(text.encode())
    require(2 * n_values <= _MOST_VALUES, f"{n_values} names and parameters are too many")
    require(len([*_levels(tree)]) + 1 <= _DEEPEST, f"models within models of more than {_DEEPEST} levels are too deep")
    content = save(dict(arrays), {"coview": text})
    try:
        write_complete(path, content)
    except (OSError, ValueError) as error:  # ValueError: paths that no file can have
        if getattr(error, "errno", None) in FULL_DISK:
            raise
        raise InputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from None


@contextmanager
def open_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file; every fault found while it is open becomes one error that names the file."""
    path = Path(path)
    try:
        require(path.exists(), "there is no such file")
        require(not path.is_dir(), "it is a folder; give the file of the model, such as model.safetensors in it")
        require(path.is_file(), "it is not a file")  # others, such as devices, may have no end
        with path.open("rb") as file:
            yield file
    except StateError as error:
        reason = str(error)
    except OSError as error:
        reason = str(error.strerror or error)
    except RecursionError:
        reason = "it is damaged: it is nested too deeply"
    else:
        return
    raise ModelFileError(f"{path} cannot be loaded: {reason[:_LONGEST_MESSAGE]}")


def read_document(file: IO[bytes]) -> dict[str, Json]:
    """Return the JSON text from the beginning of a file, complete, of a known format, and about the arrays after it."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    require(2 <= length <= min(size - 8, _LARGEST_HEADER), "it is not a model saved by coview, or is cut off")
    text_of_header = file.read(length)
    n_values = _n_values(text_of_header)
    require(n_values <= _MOST_VALUES, f"its text has {n_values} values, and at most {_MOST_VALUES} are read")
    header = _parsed(text_of_header)
    notes = header.get("__metadata__") if isinstance(header, dict) else None
    text = notes.get("coview") if isinstance(notes, dict) else None
    if not isinstance(text, str):
        raise StateError("it is not a model saved by coview")
    document = _parsed(text)
    require(len([*_levels(document)]) <= _DEEPEST, f"it is nested more than {_DEEPEST} levels deep")
    version = document.get("format") if isinstance(document, dict) else None
    if type(version) is int and version > FORMAT:
        raise StateError(f"it was made by coview {str(document.get('coview'))[:20]}, in a newer format; update coview")
    document = entries(document, ["format", "coview", "model", "tensors", "digest"])
    require(version == FORMAT and isinstance(document["coview"], str), "it is of an unknown format")
    claimed = document.pop("digest")
    require(claimed == digest(document), "it is damaged: its text has changed since it was saved")
    _check_tensors(file, header, document)
    return document


def _check_tensors(file: IO[bytes], header: Mapping[str, Json], document: Mapping[str, Json]) -> None:
    """Refuse arrays that are not as the text lists them, or that the model does not use, before any is read."""
    from safetensors import SafetensorError, safe_open

    expected = document["tensors"]
    require(isinstance(expected, dict), "it is damaged: it lists no tensors")
    nbytes = file.tell() + sum(_nbytes(entry) for entry in expected.values())
    require(os.fstat(file.fileno()).st_size == nbytes, "it is damaged: it is too short or too long")
    nodes = (node for level in _levels(document["model"]) for node in level if isinstance(node, dict))
    unused = {*expected} - {name for node in nodes if isinstance(name := node.get("tensor"), str)}
    require(not unused, f"unused tensors: {', '.join(sorted(unused))}")
    try:
        with safe_open(file.name, "numpy"):  # checks the header
            found = {name: (entry["dtype"], entry["shape"]) for name, entry in header.items() if name != "__metadata__"}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise StateError(f"it is damaged: {error}") from None
    listed = {name: (DTYPES[dtype], shape) for name, (dtype, shape, _) in expected.items()}
    require(found == listed, "it is damaged: its tensors have changed since it was saved")


def read_arrays(file: IO[bytes], document: Mapping[str, Json]) -> dict[str, Array]:
    """Return the arrays that follow the text and that it lists, unchanged since they were saved."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    file.seek(0)
    try:
        arrays: dict[str, Array] = load(file.read())
    except (SafetensorError, KeyError, TypeError, ValueError) as error:  # it has changed since its header was read
        raise StateError(f"it is damaged: {error}") from None
    require(_tensor_list(arrays) == document["tensors"], "it is damaged: its tensors have changed since it was saved")
    return arrays


def digest(document: Mapping[str, Json]) -> str:
    """Return the SHA-256 of a document as JSON."""
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()


def _tensor_list(arrays: Mapping[str, Array]) -> dict[str, Json]:
    """Return type, shape and SHA-256 of every array."""
    return {
        name: [array.dtype.name, list(array.shape), hashlib.sha256(array.data).hexdigest()]
        for name, array in sorted(arrays.items())
    }


def _nbytes(entry: Json) -> int:
    require(isinstance(entry, list) and len(entry) == 3, "it is damaged: it lists no tensors")
    dtype, shape, _ = entry
    require(isinstance(dtype, str) and dtype in DTYPES, "it is damaged: it has tensors of an unknown type")
    few = isinstance(shape, list) and len(shape) <= _MOST_SIDES  # a product of many takes minutes
    sides = few and all(type(side) is int and 0 <= side < 2**63 for side in shape)
    require(sides, "it is damaged: it has tensors without a shape")
    return int(math.prod(shape, start=np.dtype(dtype).itemsize))


def _n_values(text: bytes) -> int:
    """Return the number of values in JSON, or more if there are commas and brackets in strings."""
    return 1 + sum(map(text.count, (b",", b"[", b"{", b":")))


def _levels(node: Json) -> Iterator[list[Json]]:
    """Yield the lists and objects of each level, after the node itself."""
    level = [node]
    while level:
        yield level
        level = [
            inner
            for each in level
            if isinstance(each, (list, dict))
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (list, dict))
        ]


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_repetition, parse_constant=refuse_nan)
    except ValueError as error:
        raise StateError(f"it is not a model saved by coview, or is damaged: {error}") from None


def _without_repetition(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name is given twice")
    return fields
