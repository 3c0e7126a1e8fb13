"""Streams: views that do not fit in memory, read from files in aligned blocks of rows and labelled on the way."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from coview.errors import InputError, InputTypeError
from coview.extras import load_extra
from coview.io.arrow import index_columns
from coview.io.label_writer import check_target, write_blocks
from coview.views import Array, Views

_Block = tuple[Array, Any]  # rows of one view, and their ids as an Arrow array or None
_Columns = tuple[str, ...] | None

_TABLES = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}
_ENDINGS = (".npy", ".npz", ".zarr", *_TABLES)
_SCAN_ROWS = 4096  # of a Parquet file at a time: some megabytes even where there are hundreds of columns


class ViewsReader:
    """Views on file: aligned blocks of rows of all views, or some chosen rows, without reading everything.

    Row counts are compared at once, from the files' own headers. The reader can be iterated over any number of times,
    and serves as the source of `FixedSize.train`.

    Parameters
    ----------
    sources : mapping from view name to path or array
        A `.npy` file or a `.zarr` array, read block by block; a `.npz` file with one array, or with one that has the
        name of the view (read into memory whole); a Parquet, Arrow or Feather file (`.parquet`, `.arrow`, `.feather`),
        or a folder of such files in the order of their names; or a NumPy array or memmap. What has been read does not
        stay in memory. An Arrow file is read by its own record batches, which should be small; a Parquet file takes
        about two of its pages for each column.
    ids : str, optional
        The column of the table files that holds the ids of the samples. It is no feature; ids must agree row by row.
        Arrays have no ids: their rows count.
    batch_size : int
        Largest number of rows in a block.

    Examples
    --------
    >>> import numpy as np
    >>> reader = ViewsReader({"text": np.ones((5, 3)), "image": np.ones((5, 2))}, batch_size=2)
    >>> for views in reader:
    ...     print(views)
    Views(2 samples; text: 3, image: 2)
    Views(2 samples; text: 3, image: 2)
    Views(1 samples; text: 3, image: 2)
    >>> reader.take([0, 4])
    Views(2 samples; text: 3, image: 2)
    """

    def __init__(self, sources: Mapping[str, Any], *, ids: str | None = None, batch_size: Any = 16384) -> None:
        if not isinstance(sources, Mapping):
            raise InputTypeError(f"sources={sources!r} must be a mapping from view name to a path or an array")
        if len(sources) == 0:
            raise InputError("there are no sources; give at least one view")
        if not (isinstance(batch_size, Integral) and int(batch_size) >= 1):
            raise InputError(f"batch_size={batch_size!r} must be a number of rows of at least 1")
        self.ids = ids
        self.batch_size = int(batch_size)
        if len({str(name) for name in sources}) < len(sources):
            raise InputError(f"two views have the same name among {', '.join(map(str, sources))}; rename one")
        self._sources = {str(name): _open(str(name), source, ids) for name, source in sources.items()}
        self._with_ids = [name for name, source in self._sources.items() if source.id_type is not None]
        self._check_together()

    def _check_together(self) -> None:
        first, *others = self._sources.values()
        for other in others:
            if other.n_samples != first.n_samples:
                raise InputError(
                    f"{other.where} has {other.n_samples} rows but {first.where} has {first.n_samples}; "
                    "every view needs the same samples in the same order"
                )
        if self.ids is not None and not self._with_ids:
            raise InputError(f"ids={self.ids!r} names a column, but no source is a table with columns; leave ids=None")
        for name in self._with_ids[1:]:
            expected, found = self._sources[self._with_ids[0]], self._sources[name]
            if _kind_of_id(found.id_type) != _kind_of_id(expected.id_type):
                raise InputError(
                    f"the ids in column {self.ids!r} are {found.id_type} in {found.where} but {expected.id_type} in "
                    f"{expected.where}; store them as the same type"
                )

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {width}" for name, width in self.n_features.items())
        return f"ViewsReader({self.n_samples} samples; {shapes})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._sources)

    @property
    def n_samples(self) -> int:
        return next(iter(self._sources.values())).n_samples

    @property
    def n_features(self) -> dict[str, int]:
        return {name: source.n_features for name, source in self._sources.items()}

    def __iter__(self) -> Iterator[Views]:
        for views, _ in self._blocks():
            yield views

    def take(self, rows: Any) -> Views:
        """Return the chosen rows of every view; memory is needed for these only.

        Parameters
        ----------
        rows : array of int
            Row numbers in increasing order. Tables are scanned up to the last of them.
        """
        wanted = np.asarray(rows)
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu" or not len(wanted):
            raise InputError("rows must be a list of row numbers")
        wanted = wanted.astype(np.int64)
        if wanted[0] < 0 or wanted[-1] >= self.n_samples or not (np.diff(wanted) > 0).all():
            raise InputError(f"rows must be different row numbers below {self.n_samples} in increasing order")
        return self._aligned({name: source.take(wanted) for name, source in self._sources.items()}, wanted)[0]

    def _blocks(self) -> Iterator[tuple[Views, Any]]:
        """Blocks of rows in order, with their ids."""
        streams = [source.blocks(self.batch_size) for source in self._sources.values()]
        start = 0
        for parts in zip(*streams, strict=True):
            rows = np.arange(start, start + len(parts[0][0]))
            yield self._aligned(dict(zip(self._sources, parts, strict=True)), rows)
            start += len(rows)

    def _aligned(self, parts: Mapping[str, _Block], rows: NDArray[np.int64]) -> tuple[Views, Any]:
        """Check the same rows of all views: their ids, and the values at the gate."""
        ids = parts[self._with_ids[0]][1] if self._with_ids else None
        for name in self._with_ids[1:]:
            self._check_ids(name, ids, parts[name][1], rows)
        values = {name: part for name, (part, _) in parts.items()}
        try:
            checked = Views(values)
        except InputError:
            raise self._not_finite(values, rows) from None
        return Views.trusted(checked, {name: source.columns for name, source in self._sources.items()}), ids

    def _check_ids(self, name: str, expected: Any, found: Any, rows: NDArray[np.int64]) -> None:
        differ = np.flatnonzero(found.to_numpy(zero_copy_only=False) != expected.to_numpy(zero_copy_only=False))
        if len(differ):
            i = int(differ[0])
            raise InputError(
                f"{self._sources[name].where} has the {self.ids} {found[i].as_py()!r} in row {rows[i]}, where "
                f"{self._sources[self._with_ids[0]].where} has {expected[i].as_py()!r}; "
                "bring both into the same order"
            )

    def _not_finite(self, values: Mapping[str, Array], rows: NDArray[np.int64]) -> InputError:
        """The gate's refusal, in rows of the file: sources are tables of numbers, so only their values can be wrong."""
        bad = {name: np.flatnonzero(~np.isfinite(x).all(axis=1)) for name, x in values.items()}
        name = next(name for name, found in bad.items() if len(found))
        first, count = rows[bad[name][0]], len(bad[name])
        return InputError(
            f"{self._sources[name].where} contains NaN or infinity in row {first} (and in {count} of the {len(rows)} "
            f"rows between {rows[0]} and {rows[-1]}); fill these values in or drop those samples from every view"
        )


def label_file(model: Any, reader: ViewsReader, path: str | os.PathLike[str]) -> Path:
    """Label all rows of a reader and write the labels as they are made; return the path.

    Memory is needed for a block or two. The file appears when it is complete: a run that fails or is interrupted
    leaves what was there before.

    Parameters
    ----------
    model : fitted model with predict
    reader : ViewsReader
    path : path that ends in .csv, .tsv, .parquet or .npy
        Tables have the column `cluster` after the ids of the reader, or after the numbers of the samples; `.npy` holds
        the labels alone, as int64.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from coview import TMvKSCR
    >>> x = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> model = TMvKSCR(2, random_state=0).fit({"height": x, "weight": 50 * x})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     labels = label_file(model, ViewsReader({"height": x, "weight": 50 * x}), f"{folder}/labels.npy")
    ...     np.load(labels)
    array([0, 0, 0, 1, 1])
    """
    if not hasattr(model, "predict"):
        raise InputTypeError(f"{type(model).__name__} has no predict, and labels of new rows need a model that has")
    if not isinstance(reader, ViewsReader):
        raise InputTypeError(f"reader is a {type(reader).__name__}; give a ViewsReader of the files to label")
    path = check_target(path)
    if path.exists() and any(path.samefile(file) for source in reader._sources.values() for file in source.files):
        raise InputError(f"{path} is one of the sources; write the labels to another file")
    return write_blocks(path, reader.ids or "sample", reader.n_samples, _labelled(model, reader))


def _labelled(model: Any, reader: ViewsReader) -> Iterator[tuple[Any, Array]]:
    """Ids of each block, and its labels."""
    for views, ids in reader._blocks():
        labels = np.asarray(model.predict(views))
        if labels.shape != (views.n_samples,) or labels.dtype.kind not in "iu":
            raise InputError(
                f"{type(model).__name__}.predict gave {labels.dtype} of shape {labels.shape} for {views.n_samples} "
                "rows; one whole number for each row is needed"
            )
        yield ids, labels


class _Source(ABC):
    """The rows of one view; `where` is how messages name it."""

    where: str
    n_samples: int
    n_features: int
    columns: _Columns = None
    id_type: Any = None
    files: tuple[Path, ...] = ()

    @abstractmethod
    def blocks(self, size: int) -> Iterator[_Block]:
        """All rows in order, in blocks of this size and a smaller last one."""

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> _Block:
        """The chosen rows, given in increasing order."""

    def _check_shape(self) -> None:
        for what, count in (("rows", self.n_samples), ("feature columns", self.n_features)):
            if count == 0:
                raise InputError(f"{self.where} has no {what}; at least one is needed")


class _ArraySource(_Source):
    """An array in memory, or one that is opened anew for each block: pages of a map dropped leave the memory."""

    def __init__(self, where: str, array: Callable[[], Array], files: tuple[Path, ...] = ()) -> None:
        self.where, self.files, self._array = where, files, array
        opened = array()
        if opened.ndim != 2:
            raise InputError(f"{where} is {opened.ndim}-D and must be 2-D, samples by features")
        if opened.dtype.kind not in "fiub":
            raise InputError(f"{where} holds {opened.dtype}, which are not real numbers; encode or drop them")
        self.n_samples, self.n_features = opened.shape
        self._check_shape()

    def _opened(self) -> Array:
        array = self._array()
        if array.shape != (self.n_samples, self.n_features):
            raise _changed(self.where)
        return array

    def blocks(self, size: int) -> Iterator[_Block]:
        for start in range(0, self.n_samples, size):
            array = self._opened()
            with _reading(f"{self.where}, rows {start} to {min(start + size, self.n_samples) - 1},"):
                block = array[start : start + size]
            yield block, None
            _forget_pages(array)

    def take(self, rows: NDArray[np.int64]) -> _Block:
        array = self._opened()
        with _reading(self.where):
            some: Array = array.oindex[rows] if hasattr(array, "oindex") else np.asarray(array[rows])  # zarr's word
        _forget_pages(array)
        return some, None


def _forget_pages(array: Any) -> None:
    """Let what was read of the caller's map leave the memory; it stays in the file."""
    pages = getattr(array, "_mmap", None)  # a copy of a map is called a map, too, and has none
    # A private map ("c") may hold changes that are nowhere else.
    if pages is not None and array.mode != "c" and hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)


class _TableSource(_Source):
    """Parquet or Arrow files, read by record batches."""

    def __init__(self, where: str, files: tuple[Path, ...], ids: str | None) -> None:
        self.where, self.files, self._ids = where, files, ids
        self._format = _TABLES[files[0].suffix.lower()]
        schemas, self._counts = [], []
        for file in files:
            with _reading(file):
                data = _arrow("pyarrow.dataset").dataset(str(file), format=self._format)
                schemas.append(data.schema)
                self._counts.append(data.count_rows())
        self.columns = tuple(name for name in schemas[0].names if name not in {ids, *index_columns(schemas[0])})
        for file, schema in zip(files, schemas, strict=True):
            self._check_columns(file, schema)
        self._types = [{name: schema.field(name).type for name in self._wanted} for schema in schemas]
        if ids is not None:
            self.id_type = self._common_id_type(schemas)
        self.n_samples, self.n_features = sum(self._counts), len(self.columns)
        self._check_shape()
        kinds = [schema.field(name).type.to_pandas_dtype() for schema in schemas for name in self.columns]
        common = np.result_type(*kinds)
        self._dtype = np.float32 if common.kind == "f" and common.itemsize <= 4 else np.float64  # as the gate has it

    @property
    def _wanted(self) -> list[str]:
        """The columns to read: features, and then ids."""
        return [*(self.columns or ()), *([] if self._ids is None else [self._ids])]

    def _check_columns(self, file: Path, schema: Any) -> None:
        types, wanted = _arrow("pyarrow").types, set(self._wanted)
        missing, unknown = sorted(wanted - set(schema.names)), sorted({*schema.names} - wanted - index_columns(schema))
        if missing:
            raise InputError(f"{file} has no column {missing[0]!r}; every table of {self.where} needs it")
        if unknown:
            raise InputError(f"{file} has the column {unknown[0]!r}, which {self.files[0]} has not; drop it")
        for name in self.columns or ():
            kind = schema.field(name).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                raise InputError(
                    f"{file} has the column {name!r} of type {kind}; encode it as numbers, drop it, or name it by ids="
                )

    def _common_id_type(self, schemas: list[Any]) -> Any:
        types = [schema.field(self._ids).type for schema in schemas]
        types = [getattr(kind, "value_type", kind) for kind in types]  # of dictionaries
        for file, kind in zip(self.files, types, strict=True):
            if kind != types[0]:
                raise InputError(
                    f"{file} has the column {self._ids!r} of type {kind}, but it is {types[0]} in {self.files[0]}; "
                    "store ids as the same type"
                )
        return types[0]

    def blocks(self, size: int) -> Iterator[_Block]:
        values, ids, filled = self._empty(size), [], 0
        for _, batch in self._batches(0, self.n_samples):
            at = 0
            while at < batch.num_rows:
                piece = batch.slice(at, size - filled)
                self._fill(values[filled : filled + piece.num_rows], piece)
                ids.append(piece)
                at, filled = at + piece.num_rows, filled + piece.num_rows
                if filled == size:
                    yield values, self._ids_of(ids)
                    values, ids, filled = self._empty(size), [], 0
        if filled:
            yield values[:filled], self._ids_of(ids)

    def take(self, rows: NDArray[np.int64]) -> _Block:
        values, ids, filled = self._empty(len(rows)), [], 0
        for start, batch in self._batches(int(rows[0]), int(rows[-1]) + 1):
            here = rows[slice(*np.searchsorted(rows, [start, start + batch.num_rows]))] - start
            chosen = batch.take(_arrow("pyarrow").array(here))
            self._fill(values[filled : filled + len(here)], chosen)
            ids.append(chosen)
            filled += len(here)
        return values, self._ids_of(ids)

    def _empty(self, n_rows: int) -> Array:
        return np.empty((min(n_rows, self.n_samples), self.n_features), self._dtype)

    def _batches(self, first: int, stop: int) -> Iterator[tuple[int, Any]]:
        """Record batches with the row that each starts at, of all files that have rows from first up to stop."""
        ends = np.cumsum(self._counts)
        for file, types, end, count in zip(self.files, self._types, ends.tolist(), self._counts, strict=True):
            at = end - count
            if end <= first or at >= stop:
                continue
            batches = _BATCHES[self._format](file)
            while at < stop:
                with _reading(file):
                    batch = next(batches, None)
                if batch is None:
                    break
                if any(
                    name not in batch.schema.names or batch.schema.field(name).type != types[name] for name in types
                ):
                    raise _changed(file)
                batch = batch.select(self._wanted)
                self._check_nulls(file, batch, at)
                yield at, batch
                at += batch.num_rows
            if at < min(end, stop) or at > end:
                raise _changed(file)

    def _check_nulls(self, file: Path, batch: Any, start: int) -> None:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if column.null_count:
                row = start + int(column.is_null().to_numpy(zero_copy_only=False).argmax())
                raise InputError(
                    f"{file} has no value in column {name!r} in row {row} of {self.where}; fill it in or drop that "
                    "sample from every view"
                )

    def _fill(self, values: Array, batch: Any) -> None:
        for j in range(self.n_features):
            values[:, j] = batch.column(j).to_numpy(zero_copy_only=False)

    def _ids_of(self, batches: list[Any]) -> Any:
        if self._ids is None:
            return None
        pa = _arrow("pyarrow")
        columns = [batch.column(self.n_features) for batch in batches]
        plain = [x.dictionary_decode() if pa.types.is_dictionary(x.type) else x for x in columns]
        return pa.concat_arrays(plain)


def _changed(where: Path | str) -> InputError:
    return InputError(f"{where} has changed since the reader was made; make a new ViewsReader")


# Batches are pulled one by one: Arrow's dataset scanner reads ahead, and memory would grow with the rows.
def _parquet_batches(file: Path) -> Iterator[Any]:
    with _arrow("pyarrow.parquet").ParquetFile(file, buffer_size=2**16, pre_buffer=False) as opened:
        yield from opened.iter_batches(_SCAN_ROWS)


def _ipc_batches(file: Path) -> Iterator[Any]:
    pa = _arrow("pyarrow")
    with pa.OSFile(str(file)) as opened:
        reader = pa.ipc.open_file(opened)
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            batch.validate(full=True)  # texts whose offsets are damaged would end the process, not raise
            yield batch


_BATCHES: Mapping[str, Callable[[Path], Iterator[Any]]] = {"parquet": _parquet_batches, "ipc": _ipc_batches}


def _open(name: str, source: Any, ids: str | None) -> _Source:
    """Find out what a source is."""
    if isinstance(source, np.ndarray):
        if np.ma.isMaskedArray(source):
            raise InputError(f"view {name!r} is a masked array; fill the masked values in")
        file = getattr(source, "filename", None)  # of a map
        return _ArraySource(f"view {name!r}", lambda: source, () if file is None else (Path(file),))
    if not isinstance(source, (str, os.PathLike)):
        raise InputTypeError(f"view {name!r} is a {type(source).__name__}; give a path or a NumPy array")
    path = Path(source)
    where = f"view {name!r} ({path})"
    if not path.exists():
        raise InputError(f"{where} does not exist")
    ending = path.suffix.lower()
    if ending == ".zarr":
        return _ArraySource(where, partial(_zarr_array, path), (path,))
    if path.is_dir():
        return _TableSource(where, _files_in(where, path), ids)
    if ending == ".npy":
        return _ArraySource(where, partial(_mapped, path), (path,))
    if ending == ".npz":
        array = _array_of_archive(name, where, path)
        return _ArraySource(where, lambda: array, (path,))
    if ending in _TABLES:
        return _TableSource(where, (path,), ids)
    raise InputError(f"{where} has an unknown ending; known are {', '.join(_ENDINGS)}, and folders of tables")


def _files_in(where: str, folder: Path) -> tuple[Path, ...]:
    """The table files of a folder and its subfolders; names that start with a dot or underscore are no data."""
    tables = (file for file in folder.rglob("*") if file.suffix.lower() in _TABLES and file.is_file())
    below = (file.relative_to(folder) for file in tables)
    files = sorted(folder / file for file in below if not any(part.startswith((".", "_")) for part in file.parts))
    endings = sorted({file.suffix.lower() for file in files})
    if len(endings) != 1:
        found = f"both {' and '.join(endings)} files" if endings else "no tables"
        raise InputError(f"{where} is a folder with {found}; it needs files of one kind among {', '.join(_TABLES)}")
    return tuple(files)


def _mapped(path: Path) -> Array:
    with _reading(path):
        array: Array = np.lib.format.open_memmap(path, mode="r")
        return array


def _array_of_archive(name: str, where: str, path: Path) -> Array:
    # NumPy leaves a file that it opened itself open when it turns out to be damaged.
    with _reading(path), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        member = name if name in archive.files else archive.files[0] if len(archive.files) == 1 else None
        if member is None:
            raise InputError(
                f"{where} holds {len(archive.files)} arrays ({', '.join(archive.files)}), and none has the name of the "
                "view; name the view like its array, or save each view as a .npy file"
            )
        array: Array = archive[member]
        return array


def _zarr_array(path: Path) -> Any:
    zarr = load_extra("zarr", "zarr", "reading zarr arrays")
    with _reading(path):
        return zarr.open_array(str(path), mode="r")


def _kind_of_id(kind: Any) -> str:
    """Ids of the same kind can be compared whatever their width."""
    types = _arrow("pyarrow").types
    if types.is_integer(kind):
        return "integer"
    if types.is_string(kind) or types.is_large_string(kind):
        return "string"
    return str(kind)


@contextmanager
def _reading(file: Path | str) -> Iterator[None]:
    """Name the file that cannot be read."""
    try:
        yield
    except (InputError, ImportError):
        raise
    # Arrow's errors are among them, and those of zarr's codecs.
    except (OSError, ValueError, EOFError, RuntimeError, BadZipFile) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{file} cannot be read ({reason}); it may be damaged, cut short or of another kind") from None


def _arrow(module: str) -> Any:
    return load_extra(module, "io", "reading tables")
