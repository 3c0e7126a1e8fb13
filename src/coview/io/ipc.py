"""Sizes of the record batches of Arrow and Feather files, from their metadata.

pyarrow decompresses a batch before it tells its size, and a batch of zeros can be ten thousand times larger than its
file. The metadata are FlatBuffers (Message.fbs, File.fbs and Schema.fbs of Arrow); only the fields used here are read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

_MAGIC = b"ARROW1"
_CONTINUATION = b"\xff\xff\xff\xff"
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_LARGEST_METADATA = 2**28  # bytes


class BatchSize(NamedTuple):
    """The size of one batch in memory."""

    n_rows: int  # 0 for a batch of categories
    n_bytes: int  # decompressed


def batch_sizes(path: Path) -> Iterator[BatchSize]:
    """Yield the size of each batch of rows or categories, in the file format or the stream format."""
    with path.open("rb") as file:
        is_file = file.read(len(_MAGIC)) == _MAGIC
        for message, body in _in_footer(file) if is_file else _in_stream(file):
            kind = message.number("B", 1)
            batch = message.table(2)
            if kind == _DICTIONARY_BATCH:
                batch = batch.table(1)
            if kind in (_DICTIONARY_BATCH, _RECORD_BATCH):
                n_rows = batch.number("q", 0) if kind == _RECORD_BATCH else 0
                yield BatchSize(n_rows, _n_bytes(file, batch, body))


class _Table(NamedTuple):
    """A table of a FlatBuffer; its fields have numbers."""

    content: bytes
    at: int

    def _place(self, field: int) -> int | None:
        fields = self.at - self._read("i", self.at)
        if 6 + 2 * field > self._read("H", fields):
            return None
        offset = self._read("H", fields + 4 + 2 * field)
        return self.at + offset if offset else None

    def _read(self, kind: str, at: int) -> int:
        if at < 0:
            raise ValueError("an offset is negative")
        (number,) = struct.unpack_from(f"<{kind}", self.content, at)
        return int(number)

    def number(self, kind: str, field: int) -> int:
        place = self._place(field)
        return 0 if place is None else self._read(kind, place)

    def has(self, field: int) -> bool:
        return self._place(field) is not None

    def table(self, field: int) -> _Table:
        place = self._place(field)
        if place is None:
            raise ValueError("a part of the metadata is missing")
        return _Table(self.content, place + self._read("I", place))

    def structs(self, form: str, field: int) -> list[tuple[int, ...]]:
        """Return a list of records of numbers."""
        place = self._place(field)
        if place is None:
            return []
        start = place + self._read("I", place)
        count, size = self._read("I", start), struct.calcsize(f"<{form}")
        end = start + 4 + count * size
        if end > len(self.content):
            raise ValueError("a list is longer than the metadata")
        return list(struct.iter_unpack(f"<{form}", self.content[start + 4 : end]))


def _root(content: bytes) -> _Table:
    return _Table(content, int(struct.unpack_from("<I", content)[0]))


def _in_footer(file: IO[bytes]) -> Iterator[tuple[_Table, int]]:
    """Yield the messages that the footer of a file lists, and where their bodies begin."""
    end = file.seek(0, 2) - len(_MAGIC) - 4
    file.seek(end)
    (length,) = struct.unpack("<i", file.read(4))
    if not 0 < length <= min(end, _LARGEST_METADATA):
        raise ValueError("the footer has no length")
    file.seek(end - length)
    footer = _root(file.read(length))
    for at, n_metadata, _ in (*footer.structs("qi4xq", 2), *footer.structs("qi4xq", 3)):
        file.seek(at)
        message = _next_message(file)
        if message is None:
            raise ValueError("the footer names a message that does not exist")
        yield message, at + n_metadata


def _in_stream(file: IO[bytes]) -> Iterator[tuple[_Table, int]]:
    """Yield the messages of a stream, and where their bodies begin."""
    file.seek(0)
    while (message := _next_message(file)) is not None:
        body = file.tell()
        yield message, body
        n_body = message.number("q", 3)
        if n_body < 0:
            raise ValueError("a length is negative")
        file.seek(body + n_body)


def _next_message(file: IO[bytes]) -> _Table | None:
    start = file.read(4)
    if start == _CONTINUATION:  # absent in files of Arrow before 0.15
        start = file.read(4)
    length = int.from_bytes(start, "little")
    if len(start) < 4 or length == 0:
        return None
    if length > _LARGEST_METADATA:
        raise ValueError(f"metadata of {length} bytes")
    return _root(file.read(length))


def _n_bytes(file: IO[bytes], batch: _Table, body: int) -> int:
    """Return the size of all buffers; a compressed one begins with its size, or with -1 if it is not compressed."""
    total, is_compressed = 0, batch.has(3)
    for at, length in batch.structs("qq", 2):
        size = length
        if is_compressed and length >= 8:
            file.seek(body + at)
            (size,) = struct.unpack("<q", file.read(8))
        total += max(size if size >= 0 else length, 0)
    return total
