"""Rows of one view: from an array or from Parquet and Arrow files, in blocks or by row number."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coview.base.extras import load_extra
from coview.data.table import as_string, is_part_of_order
from coview.data.view import Array, Categories
from coview.errors import InputError, InputTypeError, kind_of
from coview.io.arrow import count_rows, index_columns, load_arrow, numbered_categories
from coview.io.table import check_names, reading, refuse_url

RowBlock = tuple[Array, Any]  # rows of one view, and their ids as an Arrow array or None

_TABLES = (".parquet", ".arrow", ".feather")
_ENDINGS = (".npy", ".npz", ".zarr", *_TABLES)
_SCAN_ROWS = 4096  # rows of a Parquet batch: a few megabytes for hundreds of columns


class RowReader(ABC):
    """The rows of one view; `where` names it in messages."""

    where: str
    n_samples: int
    n_features: int
    columns: tuple[str, ...] | None = None
    categories: Mapping[str, Categories] = {}
    id_type: Any = None
    index: str | None = None  # the column that stores the row names of a table
    files: tuple[Path, ...] = ()

    @abstractmethod
    def blocks(self, size: int) -> Iterator[RowBlock]:
        """Yield all rows in order, in blocks of this size and a smaller last one."""

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> RowBlock:
        """Return the selected rows, given in increasing order."""

    def _check_shape(self) -> None:
        for what, count in (("rows", self.n_samples), ("feature columns", self.n_features)):
            if count == 0:
                raise InputError(f"{self.where} has no {what}; at least one is needed")


class ArrayRows(RowReader):
    """An array in memory, or a map that is opened anew for each block, so that its pages can be released."""

    def __init__(self, where: str, array: Callable[[], Array], files: tuple[Path, ...] = ()) -> None:
        self.where, self.files, self._array = where, files, array
        with reading(where):
            opened = array()
        if opened.ndim != 2:
            raise InputError(f"{where} is {opened.ndim}-D; a view is 2-D, samples by features")
        if opened.dtype.kind not in "fiub":
            raise InputError(f"{where} has the type {opened.dtype}; expected real numbers")
        self.n_samples, self.n_features = opened.shape
        self._check_shape()

    def _opened(self) -> Array:
        with reading(self.where):
            array = self._array()
        if array.shape != (self.n_samples, self.n_features):
            raise _changed(self.where)
        return array

    def blocks(self, size: int) -> Iterator[RowBlock]:
        for start in range(0, self.n_samples, size):
            array = self._opened()
            with reading(f"{self.where}, rows {start} to {min(start + size, self.n_samples) - 1},"):
                block = array[start : start + size]
            yield block, None
            _release_pages(array)

    def take(self, rows: NDArray[np.int64]) -> RowBlock:
        array = self._opened()
        with reading(self.where):
            some: Array = array.oindex[rows] if hasattr(array, "oindex") else np.asarray(array[rows])  # oindex: zarr
        _release_pages(array)
        return some, None


def _release_pages(array: Any) -> None:
    """Release the pages of a memmap from memory; the file keeps the values."""
    pages = getattr(array, "_mmap", None)  # None for a copy of a memmap, which is a memmap, too
    # A private map ("c") may have changes that are not in the file.
    if pages is not None and array.mode != "c" and hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)


class CategoryCodes:
    """The codes of a column of categories, whose batches have dictionaries of their own."""

    def __init__(self, where: str, column: str, *, ordered: bool) -> None:
        self._where, self._column, self._ordered = where, column, ordered
        self._code: dict[str, int] = {}

    @property
    def categories(self) -> Categories:
        """The categories of all batches so far; codes do not change when more are read."""
        return Categories(tuple(self._code), self._ordered)

    def __call__(self, column: Any) -> Array:
        """Return the codes of a batch of this column, NaN for empty cells."""
        column = column if hasattr(column, "dictionary") else column.dictionary_encode()
        values = [as_string(value) for value in column.dictionary.to_pylist()]
        known = [value for value in values if value is not None]
        if self._ordered and self._code and not is_part_of_order(known, [*self._code]):
            raise InputError(
                f"{self._where} has ordered categories in the column {self._column!r} ({', '.join(known)}) that are "
                f"not a part of those before ({', '.join(self._code)}); store all of them in each file"
            )
        for value in known:
            self._code.setdefault(value, len(self._code))
        codes = np.array([*(np.nan if value is None else self._code[value] for value in values), np.nan])
        places = column.indices.to_numpy(zero_copy_only=False)
        found: Array = codes[np.where(np.isnan(places), len(values), places).astype(int)]
        return found


class _TableFile(NamedTuple):
    """A Parquet or Arrow file, and what its metadata state when the reader is made."""

    where: str
    path: Path
    schema: Any
    n_rows: int

    def batches(self) -> Iterator[Any]:
        with reading(self.where), _opened_table(self.path) as (schema, n_rows, batches):
            if n_rows != self.n_rows or not schema.equals(self.schema):
                raise _changed(self.where)
            for batch in batches:
                batch.validate(full=True)  # damaged offsets of strings would end the process, not raise
                yield batch


@contextmanager
def _opened_table(path: Path) -> Iterator[tuple[Any, int, Iterator[Any]]]:
    """Yield the schema, the number of rows, and the record batches, which are read one by one.

    Datasets of Arrow read ahead, so that memory grows with the rows, and wait forever if ARROW_IO_THREADS is 1.
    """
    if path.suffix.lower() == ".parquet":
        parquet = load_arrow("pyarrow.parquet")
        with parquet.ParquetFile(path, buffer_size=2**16, pre_buffer=False) as opened:
            yield opened.schema_arrow, opened.metadata.num_rows, opened.iter_batches(_SCAN_ROWS)
        return
    pa = load_arrow()
    with pa.OSFile(str(path)) as file:
        opened = pa.ipc.open_file(file)
        yield opened.schema, count_rows(opened), map(opened.get_batch, range(opened.num_record_batches))


def _changed(where: str) -> InputError:
    return InputError(f"{where} has changed since the reader was made; make a new ViewsReader")


class TableRows(RowReader):
    """Parquet or Arrow files, read by record batches."""

    def __init__(self, view: str, path: Path, files: tuple[Path, ...], ids: str | None) -> None:
        self.where, self.files, self._ids = f"view {view!r} ({path})", files, ids
        self._tables = []
        for file in files:
            where = f"view {view!r} ({file})"
            with reading(where), _opened_table(file) as (schema, n_rows, _):
                self._tables.append(_TableFile(where, file, schema, n_rows))
        index = index_columns(self._tables[0].schema)
        self.index = next(iter(index)) if len(index) == 1 else None
        self.columns = tuple(name for name in self._tables[0].schema.names if name not in {ids, *index})
        self._wanted = [*self.columns, *([] if ids is None else [ids])]
        self._codes: dict[str, CategoryCodes] = {}
        self._stored: dict[str, str] = {}  # what each column holds, in words
        for table in self._tables:
            self._check_columns(table.where, table.schema)
        self.n_samples, self.n_features = sum(table.n_rows for table in self._tables), len(self.columns)
        self._check_shape()
        numbers = [name for name in self.columns if name not in self._codes]
        common = np.result_type(
            *(table.schema.field(name).type.to_pandas_dtype() for table in self._tables for name in numbers),
            *([np.float64] if self._codes else []),
        )
        self._dtype = np.float32 if common.kind == "f" and common.itemsize <= 4 else np.float64  # as in Views

    def _check_columns(self, where: str, schema: Any) -> None:
        check_names(where, schema.names)
        missing = sorted({*self._wanted} - {*schema.names})
        unknown = sorted({*schema.names} - {*self._wanted} - index_columns(schema))
        if missing:
            raise InputError(f"{where} has no column {missing[0]!r}; every table of the view needs it")
        if unknown:
            raise InputError(f"{where} has the column {unknown[0]!r}, which {self.files[0]} does not have; drop it")
        types, numbered = load_arrow().types, numbered_categories(schema)
        for name in self.columns or ():
            kind = schema.field(name).type
            if types.is_dictionary(kind) or name in numbered:
                ordered = getattr(kind, "ordered", False)
                stored = "ordered categories" if ordered else "categories"
                self._codes.setdefault(name, CategoryCodes(where, name, ordered=ordered))
            elif types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
                stored = "numbers"
            else:
                raise InputError(
                    f"{where} has the column {name!r} of type {kind}; encode it as numbers, drop it, name it by ids=, "
                    "or store it as categories (dictionary in Arrow, category in pandas)"
                )
            if self._stored.setdefault(name, stored) != stored:
                raise InputError(
                    f"{where} has {stored} in the column {name!r}, but {self.files[0]} has {self._stored[name]}; store "
                    "it alike in all files"
                )
        if self._ids is not None:
            kind = schema.field(self._ids).type
            kind = getattr(kind, "value_type", kind)  # of a dictionary
            self.id_type = self.id_type or kind
            if kind != self.id_type:
                raise InputError(
                    f"{where} has the column {self._ids!r} of type {kind}, but it is {self.id_type} in "
                    f"{self.files[0]}; store ids as the same type"
                )

    def blocks(self, size: int) -> Iterator[RowBlock]:
        pieces, n_rows = [], 0
        for _, batch in self._batches(0, self.n_samples):
            while batch.num_rows:
                pieces.append(batch.slice(0, size - n_rows))
                batch = batch.slice(pieces[-1].num_rows)
                n_rows += pieces[-1].num_rows
                if n_rows == size:
                    yield self._converted(pieces)
                    pieces, n_rows = [], 0
        if pieces:
            yield self._converted(pieces)

    def take(self, rows: NDArray[np.int64]) -> RowBlock:
        pieces = []
        for start, batch in self._batches(int(rows[0]), int(rows[-1]) + 1):
            here = rows[slice(*np.searchsorted(rows, [start, start + batch.num_rows]))] - start
            pieces.append(batch.take(load_arrow().array(here)))
        return self._converted(pieces)

    def _batches(self, first: int, stop: int) -> Iterator[tuple[int, Any]]:
        """Yield record batches with their first row, of all files with rows from first up to stop."""
        end = 0
        for table in self._tables:
            at, end = end, end + table.n_rows
            if end <= first or at >= stop:
                continue
            for whole in table.batches():
                batch = whole.select(self._wanted)
                if self._ids is not None and (ids := batch.column(self.n_features)).null_count:
                    row = at + int(ids.is_null().to_numpy(zero_copy_only=False).argmax())
                    raise InputError(
                        f"{table.where} has no value in column {self._ids!r} in row {row} of the view; each sample "
                        "needs an id"
                    )
                yield at, batch
                at += batch.num_rows
                if at >= stop:
                    return

    def _converted(self, batches: list[Any]) -> RowBlock:
        """Return the rows of batches as one block; empty cells are NaN."""
        values = np.empty((sum(batch.num_rows for batch in batches), self.n_features), self._dtype)
        with reading(self.where):
            end = 0
            for batch in batches:
                start, end = end, end + batch.num_rows
                for j, name in enumerate(self.columns or ()):
                    convert = self._codes.get(name, _numbers_of)
                    values[start:end, j] = convert(batch.column(j))
            if self._ids is None:
                return values, None
            pa = load_arrow()
            columns = [batch.column(self.n_features) for batch in batches]
            return values, pa.concat_arrays([x.dictionary_decode() if hasattr(x, "dictionary") else x for x in columns])

    @property
    def categories(self) -> Mapping[str, Categories]:  # type: ignore[override]
        return {name: codes.categories for name, codes in self._codes.items()}


def _numbers_of(column: Any) -> Array:
    found: Array = column.to_numpy(zero_copy_only=False)
    return found


def open_rows(name: str, source: Any, ids: str | None) -> RowReader:
    """Return a reader of the rows of one view, whose source is a path or an array as in `ViewsReader`."""
    view = f"view {name!r}"
    if isinstance(source, (str, os.PathLike)):
        refuse_url(view, os.fspath(source))
        where = f"{view} ({source})"
        with reading(where):
            return _open_file(name, where, Path(source), ids)
    if not isinstance(source, np.ndarray):
        raise InputTypeError(f"{view} is {kind_of(source)}; expected a path or a NumPy array")
    if np.ma.isMaskedArray(source):
        raise InputError(f"{view} is a masked array; impute the masked values and give a plain array")
    file = getattr(source, "filename", None)  # of a memmap
    return ArrayRows(view, lambda: source, () if file is None else (Path(file),))


def _open_file(name: str, where: str, path: Path, ids: str | None) -> RowReader:
    ending = path.suffix.lower()
    if not path.exists():
        raise InputError(f"{where} does not exist; check the path")
    if ending == ".zarr":
        zarr = load_extra("zarr", "zarr", "reading zarr arrays")
        return ArrayRows(where, partial(zarr.open_array, str(path), mode="r"), (path,))
    if path.is_dir():
        return TableRows(name, path, _files_in(where, path), ids)
    if ending == ".npy":
        return ArrayRows(where, partial(np.lib.format.open_memmap, path, mode="r"), (path,))
    if ending == ".npz":
        array = _array_of_archive(name, where, path)
        return ArrayRows(where, lambda: array, (path,))
    if ending in _TABLES:
        return TableRows(name, path, (path,), ids)
    raise InputError(f"{where} has an unknown ending; expected one of {', '.join(_ENDINGS)}, or a folder of tables")


def _files_in(where: str, folder: Path) -> tuple[Path, ...]:
    """Return the table files of a folder and its subfolders, except names that start with a dot or underscore."""
    tables = (file for file in folder.rglob("*") if file.suffix.lower() in _TABLES and file.is_file())
    below = (file.relative_to(folder) for file in tables)
    files = sorted(folder / file for file in below if not any(part.startswith((".", "_")) for part in file.parts))
    endings = sorted({file.suffix.lower() for file in files})
    if len(endings) != 1:
        found = f"both {' and '.join(endings)} files" if endings else "no tables"
        raise InputError(f"{where} is a folder with {found}; expected files of one ending among {', '.join(_TABLES)}")
    return tuple(files)


def _array_of_archive(name: str, where: str, path: Path) -> Array:
    # NumPy leaves a file that it opened itself open if it is damaged.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        check_names(where, archive.files, "arrays")
        member = name if name in archive.files else archive.files[0] if len(archive.files) == 1 else None
        if member is None:
            raise InputError(
                f"{where} has {len(archive.files)} arrays ({', '.join(archive.files)}), none with the name of the "
                "view; name the view like its array, or save each view as a .npy file"
            )
        return archive[member]
