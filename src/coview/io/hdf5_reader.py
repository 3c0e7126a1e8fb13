"""HDF5 files, read by a process of their own, because damaged ones can crash or stall the HDF5 library.

Two changed bytes can keep the library busy forever, in compiled code that no signal interrupts. A second process
therefore reads the file (`hdf5_process.py`) and sends the values in blocks through a pipe. It is killed if it sends
nothing for 30 seconds, and a second for each 10 MB of a block, or if this process is interrupted.
"""

from __future__ import annotations

import json
import os
import posixpath
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from coview.base.extras import load_extra
from coview.data.view import Array
from coview.errors import InputError
from coview.io.table import STRING_BYTES, InputFile

_SECONDS = 30.0  # without an answer
_BYTES_PER_SECOND = 10**7  # of a block; slow disks and compressed files are faster
_LONGEST_LINE = 2**26


class Dataset:
    """A dataset of the file: its shape, type and attributes; `read` returns its values."""

    def __init__(self, process: _Process, name: str, described: Mapping[str, Any]) -> None:
        self.name, self.attrs = name, described["attrs"]
        self._process, self._described = process, described
        self.shape: tuple[int, ...] = tuple(described["shape"] or ())
        # Types without an equivalent in NumPy, or of several fields, are described in words.
        self.dtype: Any = np.dtype("O" if described["content"] != "numbers" else described["dtype"])

    @property
    def parent(self) -> Group:
        return self._process.parent_of(self.name)

    @property
    def file(self) -> Group:
        return self._process.group("/")

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, source: InputFile) -> Array:
        """Return the values, if they are stored in the file itself and fit in memory; strings as bytes."""
        described = self._described
        if not described["is_own"]:
            raise InputError(
                f"{source.where} takes {self.name} from other files, which are not read; store all data in one file"
            )
        if described["content"] == "others" or described["shape"] is None:
            raise InputError(
                f"{source.where} has values of type {described['dtype']} in {self.name}; expected numbers or strings"
            )
        if described["content"] == "strings":
            source.require_memory(self.shape, STRING_BYTES)
            return self._strings(source)
        source.require_memory(self.shape, self.dtype.itemsize)
        source.require_memory((described["block_bytes"],), 1)
        values = np.empty(self.shape, self.dtype)
        content: Any = values.reshape(-1).view(np.uint8)
        to_fill, filled = memoryview(content), 0
        for block in self._process.blocks(self.name, described["block_bytes"]):
            part = to_fill[filled : filled + block["bytes"]]
            self._process.receive(part)
            filled += len(part)
        if filled != len(to_fill):
            raise EOFError(f"{self.name} has {filled} of {len(to_fill)} bytes")
        return values

    def _strings(self, source: InputFile) -> Array:
        cells: list[bytes] = []
        total = 0
        for block in self._process.blocks(self.name, self._described["block_bytes"]):
            total += 2 * block["bytes"] + STRING_BYTES * block["count"]
            source.require_memory((total,), 1)
            content = bytearray(block["bytes"])
            self._process.receive(memoryview(content))
            at = 8 * block["count"]
            for length in np.frombuffer(content[:at], np.int64).tolist():
                cells.append(bytes(content[at : at + length]))
                at += length
        values = np.empty(len(cells), object)
        values[:] = cells
        return values.reshape(self.shape)


class Group:
    """A group of the file, with its attributes."""

    def __init__(self, process: _Process, name: str, described: Mapping[str, Any]) -> None:
        self.name, self.attrs = name, described["attrs"]
        self._process, self._keys = process, described["keys"]

    @property
    def parent(self) -> Group:
        return self._process.parent_of(self.name)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def get(self, key: str, default: Any = None) -> Any:
        found = self._process.node(posixpath.join(self.name, key)) if key in self._keys else None
        return default if found is None else found

    def __getitem__(self, key: str) -> Any:
        """Return the node of this key, or of a path from the beginning of the file."""
        found = self._process.node(posixpath.join(self.name, key))
        if found is None:
            raise KeyError(key)
        return found

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the nodes by key, except links to nothing."""
        for key in self._keys:
            node = self.get(key)
            if node is not None:
                yield key, node


@contextmanager
def opened_hdf5(source: InputFile) -> Iterator[Group]:
    """Yield the root of an HDF5 file."""
    if find_spec("h5py") is None:
        load_extra("h5py", "scverse", "reading .h5ad, .h5mu and MATLAB 7.3 files")
    process = _Process(source.path)
    try:
        yield process.group("/")
    except (BrokenPipeError, EOFError) as error:
        raise InputError(process.why_it_ended(source.where, str(error))) from None
    finally:
        process.end()


class _Process:
    """The process that reads the file, and the messages to and from it."""

    def __init__(self, path: Path) -> None:
        program = Path(__file__).with_name("hdf5_process.py")
        self._child = subprocess.Popen(
            [sys.executable, "-P", str(program), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._seconds: float | None = None  # the limit that was exceeded

    def node(self, name: str) -> Dataset | Group | None:
        """Return the node of this path, None if it does not exist."""
        described = self._ask({"describe": name}, _SECONDS)
        if "missing" in described:
            return None
        kind: Any = Group if "keys" in described else Dataset
        return kind(self, name, described)

    def group(self, name: str) -> Group:
        found = self.node(name)
        if not isinstance(found, Group):
            raise KeyError(name)
        return found

    def parent_of(self, name: str) -> Group:
        return self.group(posixpath.dirname(name))

    def blocks(self, name: str, block_bytes: int) -> Iterator[dict[str, Any]]:
        """Yield the description of each block of a dataset; the caller receives its content."""
        seconds = _SECONDS + block_bytes / _BYTES_PER_SECOND
        block = self._ask({"read": name}, seconds)
        while "bytes" in block:
            yield block
            block = self._answer(seconds)

    def receive(self, part: memoryview) -> None:
        """Fill a part of the memory."""
        stream: Any = self._child.stdout
        with self._limit(_SECONDS):
            if stream.readinto(part) != len(part):
                raise EOFError("it ends too early")

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        stream: Any = self._child.stdin
        stream.write(json.dumps({**request, "seconds": seconds}).encode() + b"\n")
        stream.flush()
        return self._answer(seconds)

    def _answer(self, seconds: float) -> dict[str, Any]:
        stream: Any = self._child.stdout
        with self._limit(seconds):
            line = stream.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise EOFError("no answer")
        answer: dict[str, Any] = json.loads(line, object_hook=_as_bytes)
        if "error" in answer:
            raise OSError(answer["error"])
        return answer

    @contextmanager
    def _limit(self, seconds: float) -> Iterator[None]:
        """Kill the process if the block takes longer; then no more can be read from the pipe."""

        def stop() -> None:
            self._seconds = seconds
            self._child.kill()

        timer = Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def why_it_ended(self, where: str, otherwise: str) -> str:
        """Return a message on why the process sends nothing more."""
        if self._seconds is not None:
            return (
                f"{where} cannot be read: the HDF5 library gave no answer for {self._seconds:.0f} seconds and was "
                "stopped; the file may be damaged"
            )
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(_SECONDS)
        if self._child.returncode:
            code = self._child.returncode
            ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return f"{where} cannot be read: the HDF5 library crashed ({ended}); the file may be damaged"
        return f"{where} cannot be read ({otherwise}); it may be damaged, truncated or in another format"

    def end(self) -> None:
        """End the process at once, whatever it does."""
        self._child.kill()
        for stream in (self._child.stdin, self._child.stdout):
            with suppress(OSError):  # a request that was not read
                stream.close()  # type: ignore[union-attr]
        self._child.wait()


def _as_bytes(node: dict[str, Any]) -> Any:
    return node["bytes"].encode("latin-1") if [*node] == ["bytes"] and isinstance(node["bytes"], str) else node
