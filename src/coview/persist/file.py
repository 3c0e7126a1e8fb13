"""The file around a saved model: arrays and one JSON text in the safetensors format, with digests of all.

The text lists every array with its type, shape and SHA-256, and ends with the digest of itself. So the beginning of a
file can be trusted by itself, and a change of any bit that matters is noticed before anything is made of it.
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
from coview.errors import InputError, ModelFileError
from coview.io.atomic import complete_or_absent
from coview.persist.kinds import Json, MisfitError, Tensors, fields_of, require
from coview.views import Array

FORMAT = 1
_LARGEST_HEADER = 100_000_000  # bytes; safetensors itself reads no more
_LONGEST_MESSAGE = 300
_DTYPES = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {"bool", "float32", "float64"}


def write_file(path: Path, tree: Json, tensors: Tensors) -> None:
    """Write a model, given as JSON and arrays; the file appears when it is complete."""
    from safetensors.numpy import save

    document = {"format": FORMAT, "coview": __version__, "model": tree, "tensors": _listed(tensors.arrays)}
    text = json.dumps({**document, "digest": digest(document)})
    require(2 * len(text) <= _LARGEST_HEADER, f"names and settings of {len(text)} characters are too many")
    content = save(tensors.arrays, {"coview": text})
    try:
        with complete_or_absent(path) as file:
            file.write(content)
    except (OSError, ValueError) as error:  # the latter of paths that no file can have
        raise InputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from None


@contextmanager
def open_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file; whatever is found wrong with it on the way gives one error that names it."""
    path = Path(path)
    try:
        require(path.exists(), "there is no such file")
        require(path.is_file(), "it is not a file")  # others, such as devices, may have no end
        with path.open("rb") as file:
            yield file
    except MisfitError as misfit:
        reason = str(misfit)
    except OSError as error:
        reason = str(error.strerror or error)
    except RecursionError:
        reason = "it is damaged: it is nested too deeply"
    else:
        return
    raise ModelFileError(f"{path} cannot be loaded: {reason[:_LONGEST_MESSAGE]}")


def read_document(file: IO[bytes]) -> dict[str, Json]:
    """Return the JSON text from the beginning of a file, whole and of a format that is known."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    require(2 <= length <= min(size - 8, _LARGEST_HEADER), "it is not a model saved by coview, or is cut off")
    header = _parsed(file.read(length))
    notes = header.get("__metadata__") if isinstance(header, dict) else None
    text = notes.get("coview") if isinstance(notes, dict) else None
    if not isinstance(text, str):
        raise MisfitError("it is not a model saved by coview")
    document = _parsed(text)
    version = document.get("format") if isinstance(document, dict) else None
    if type(version) is int and version > FORMAT:
        raise MisfitError(f"it was made by coview {str(document.get('coview'))[:20]}, in a newer format; update coview")
    document = fields_of(document, ["format", "coview", "model", "tensors", "digest"])
    require(version == FORMAT and isinstance(document["coview"], str), "it is of an unknown format")
    claimed = document.pop("digest")
    require(claimed == digest(document), "it is damaged: its text has changed since it was saved")
    return document


def read_arrays(file: IO[bytes], document: Mapping[str, Json]) -> dict[str, Array]:
    """Return the arrays that follow the text and that it lists, unchanged since they were saved."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    expected = document["tensors"]
    require(isinstance(expected, dict), "it is damaged: it lists no tensors")
    # Before anything large is read: a file is as long as it says.
    nbytes = file.tell() + sum(_nbytes(entry) for entry in expected.values())
    require(os.fstat(file.fileno()).st_size == nbytes, "it is damaged: it is too short or too long")
    file.seek(0)
    try:
        arrays: dict[str, Array] = load(file.read(nbytes))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise MisfitError(f"it is damaged: {error}") from None
    require(_listed(arrays) == expected, "it is damaged: its tensors have changed since it was saved")
    return arrays


def digest(document: Mapping[str, Json]) -> str:
    """SHA-256 of a document as JSON."""
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()


def _listed(arrays: Mapping[str, Array]) -> dict[str, Json]:
    """The type, shape and SHA-256 of every array."""
    return {
        name: [array.dtype.name, list(array.shape), hashlib.sha256(array.data).hexdigest()]
        for name, array in sorted(arrays.items())
    }


def _nbytes(entry: Json) -> int:
    require(isinstance(entry, list) and len(entry) == 3, "it is damaged: it lists no tensors")
    dtype, shape, _ = entry
    require(isinstance(dtype, str) and dtype in _DTYPES, "it is damaged: it has tensors of an unknown type")
    sides = isinstance(shape, list) and all(type(side) is int and side >= 0 for side in shape)
    require(sides, "it is damaged: it has tensors without a shape")
    return int(math.prod(shape, start=np.dtype(dtype).itemsize))


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_no_constant)
    except ValueError as error:
        raise MisfitError(f"it is not a model saved by coview, or is damaged: {error}") from None


def _without_repetition(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name is given twice")
    return fields


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
