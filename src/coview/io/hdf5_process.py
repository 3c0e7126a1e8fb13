"""The process that reads an HDF5 file for `coview.io.hdf5_reader`; it imports NumPy and h5py only.

A request is a line of JSON on standard input. Its answer is a line of JSON on standard output, with the key `error` if
the file cannot be read. The values of a dataset follow in blocks, each with a line that states its number of bytes.
"""

import contextlib
import json
import math
import signal
import sys
from collections.abc import Iterator
from typing import IO, Any

import h5py
import numpy as np

_ATTRIBUTES = (
    "encoding-type",
    "shape",
    "column-order",
    "_index",
    "categories",
    "MATLAB_sparse",
    "MATLAB_class",
    "MATLAB_object_decode",
)
_BLOCK_BYTES = 2**24
_MOST_ENTRIES = 10**6  # of a group


def answer(path: str, requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer requests about a file until there are no more."""
    file = None
    for line in requests:
        request = json.loads(line)
        _limit(request["seconds"])
        try:
            file = h5py.File(path, "r") if file is None else file
            if "describe" in request:
                _send(replies, _describe(file, path, request["describe"]))
            else:
                for head, content in _blocks(file[request["read"]]):
                    _send(replies, head)
                    replies.write(content)
                    replies.flush()
                    _limit(request["seconds"])  # of the next block
                _send(replies, {})
        except Exception as error:  # damaged files raise errors of many types
            _send(replies, {"error": str(error) or type(error).__name__})
        replies.flush()


def _send(replies: IO[bytes], message: dict[str, Any]) -> None:
    replies.write(json.dumps(message).encode() + b"\n")


def _limit(seconds: float) -> None:
    """End this process after so many seconds of work even in compiled code, if the other one was killed meanwhile."""
    if hasattr(signal, "setitimer") and __name__ == "__main__":
        signal.setitimer(signal.ITIMER_PROF, seconds + 5)


def _describe(file: Any, path: str, name: str) -> dict[str, Any]:
    node = file.get(name)
    if node is None:
        return {"missing": True}
    described: dict[str, Any] = {"attrs": {}}
    for key in _ATTRIBUTES:
        with contextlib.suppress(Exception):  # attributes of types that h5py does not read
            if key in node.attrs:
                described["attrs"][key] = _plain(file, node.attrs[key])
    if isinstance(node, h5py.Dataset):
        strings = h5py.check_string_dtype(node.dtype) is not None
        described["dtype"] = node.dtype.str if node.dtype.fields is None else str(node.dtype)
        described["shape"] = None if node.shape is None else [int(side) for side in node.shape]
        described["content"] = "strings" if strings else "numbers" if node.dtype.kind in "fiubc" else "others"
        described["block_bytes"] = _rows_of_block(node) * _row_bytes(node)
        described["is_own"] = not (node.external or node.is_virtual) and node.file.filename == path
    else:
        if len(node) > _MOST_ENTRIES:
            raise ValueError(f"{name} has {len(node)} entries")
        described["keys"] = list(node)
    return described


def _plain(file: Any, value: Any) -> Any:
    """Return the value of an attribute as JSON."""
    if isinstance(value, h5py.Reference):
        return file[value].name
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, np.ndarray):
        return [_plain(file, each) for each in value.tolist()]
    return value.item() if isinstance(value, np.generic) else value


def _row_bytes(dataset: Any) -> int:
    return int(dataset.dtype.itemsize * math.prod((dataset.shape or ())[1:]))


def _rows_of_block(dataset: Any) -> int:
    """Return how many rows are read at once: whole chunks, because a part of one takes as long as all of it."""
    rows = dataset.chunks[0] if dataset.chunks else 1
    wanted = int(_BLOCK_BYTES // max(_row_bytes(dataset), 1) // rows * rows)
    return max(wanted, rows, 1)


def _blocks(dataset: Any) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the number of bytes of each block, and the block; strings as their lengths and their joined text."""
    size = _rows_of_block(dataset)
    starts = range(0, dataset.shape[0], size) if dataset.shape else [0]
    for start in starts:
        values = np.asarray(dataset[start : start + size] if dataset.shape else dataset[()])
        if h5py.check_string_dtype(dataset.dtype) is None:
            content = values.tobytes()
            yield {"bytes": len(content)}, content
            continue
        cells = [cell if isinstance(cell, bytes) else str(cell).encode() for cell in values.ravel().tolist()]
        content = np.array([len(cell) for cell in cells], np.int64).tobytes() + b"".join(cells)
        yield {"bytes": len(content), "count": len(cells)}, content


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one stops it
    with contextlib.suppress(BrokenPipeError):
        answer(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
