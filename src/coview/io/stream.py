"""Views that do not fit in memory: aligned blocks of rows from files, labelled one block at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from coview.base.parameters import check_integer
from coview.certainty.columns import SampleColumns, check_columns, sample_columns
from coview.data.source import BlocksOfViews, checked_block, rows_with_values
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, InputTypeError, kind_of
from coview.io.align import check_counts, check_ids, notes_on_order
from coview.io.arrow import load_arrow
from coview.io.identifiers import notes_on_identifiers, refuse_identifiers
from coview.io.labels import check_label_path, columns_in, write_description, write_label_blocks
from coview.io.row_readers import RowBlock, open_rows
from coview.io.table import RawTable

_HEAD_ROWS = 256  # enough to see that values are different or number the rows


class ViewsReader(BlocksOfViews):
    """Views on file, read as aligned blocks of rows or as selected rows.

    Row counts are compared at once, from the headers of the files. The reader can be iterated over any number of times,
    and is a source for `FixedSize.train`. Empty cells are refused, except by `label_file` and `FixedSize.train` with a
    model that fills them, and in the blocks of reader.filled_by(model).

    Parameters
    ----------
    sources : mapping from view name to path or array
        A `.npy` file or a `.zarr` array, read in blocks; a `.npz` file with one array, or with one that has the name of
        the view (read into memory whole); a Parquet, Arrow or Feather file (`.parquet`, `.arrow`, `.feather`), or a
        folder of such files in the order of their names; or a NumPy array or memmap. Blocks do not stay in memory. An
        Arrow file is read by its own record batches, which should be small; a Parquet file takes about two of its pages
        for each column.
    ids : str or False, optional
        The column of the table files with the ids of the samples. It is not a feature, and ids must agree row by row.
        Arrays have no ids. Without it, the index of pandas data frames is the ids if all sources have one, and columns
        whose first values look like ids are refused. False pairs samples by row order and reads such columns as any
        other.
    batch_size : int
        Largest number of rows in a block.

    Attributes
    ----------
    names : tuple of str
        The views.
    n_samples : int
    n_features : dict
        The number of features of each view.
    notes : tuple of str
        Notes if several views are paired by row order, and on columns that look like further ids.

    See Also
    --------
    label_file : Label all rows of a reader.
    FixedSize : Train on some rows of a reader.

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

    def __init__(
        self, sources: Mapping[str, Any], *, ids: str | Literal[False] | None = None, batch_size: Any = 16384
    ) -> None:
        if not isinstance(sources, Mapping):
            raise InputTypeError(f"sources={sources!r}: expected a mapping from view name to a path or an array")
        if len(sources) == 0:
            raise InputError("there are no sources; give at least one view")
        check_ids(ids)
        self.ids = ids or None
        self.batch_size = check_integer("batch_size", batch_size, 1)
        if len({str(name) for name in sources}) < len(sources):
            raise InputError(f"two views have the same name among {', '.join(map(str, sources))}; rename one")
        self._readers = {str(name): open_rows(str(name), source, self.ids) for name, source in sources.items()}
        where = {name: reader.where for name, reader in self._readers.items()}
        self._notes = notes_on_identifiers(where, self._heads()) if ids else []
        if ids is None:
            refuse_identifiers(where, self._heads(), {}, strings=False)
            self._read_indexes(sources)
        self._with_ids = [name for name, reader in self._readers.items() if reader.id_type is not None]
        check_counts({reader.where: reader.n_samples for reader in self._readers.values()})
        if self.ids is not None and not self._with_ids:
            raise InputError(f"ids={self.ids!r} names a column, but no source is a table with columns; leave ids=None")
        for name in self._with_ids[1:]:
            expected, found = self._readers[self._with_ids[0]], self._readers[name]
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
        return tuple(self._readers)

    @property
    def n_samples(self) -> int:
        return next(iter(self._readers.values())).n_samples

    @property
    def n_features(self) -> dict[str, int]:
        return {name: reader.n_features for name, reader in self._readers.items()}

    def __iter__(self) -> Iterator[Views]:
        return (views for views, _ in self._blocks())

    @property
    def notes(self) -> tuple[str, ...]:
        return (*notes_on_order(self.names, self._with_ids), *self._notes)

    def take(self, rows: Any) -> Views:
        """Return the selected rows of every view; only these are held in memory.

        Parameters
        ----------
        rows : array of int
            Row numbers in increasing order. Tables are read up to the last of them.

        Returns
        -------
        Views
        """
        wanted = np.asarray(rows)
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu" or not len(wanted):
            raise InputError(f"rows={rows!r}: expected a list of row numbers")
        wanted = wanted.astype(np.int64)
        if wanted[0] < 0 or wanted[-1] >= self.n_samples or not (np.diff(wanted) > 0).all():
            raise InputError(f"rows: expected different row numbers below {self.n_samples} in increasing order")
        return self._aligned({name: reader.take(wanted) for name, reader in self._readers.items()}, wanted)[0]

    def _rows_with(self, view: str) -> Iterator[NDArray[np.int64]]:
        start = 0
        for block, _ in self._readers[view].blocks(self.batch_size):
            yield rows_with_values(block) + start
            start += len(block)

    def _heads(self) -> dict[str, RawTable]:
        """Return the first values of the columns, by which ids are recognised; the others are not read for this."""
        return {
            name: RawTable(reader.take(np.arange(min(reader.n_samples, _HEAD_ROWS)))[0], reader.columns)
            if reader.columns is not None
            else RawTable(np.empty((0, 0)))
            for name, reader in self._readers.items()
        }

    def _read_indexes(self, sources: Mapping[Any, Any]) -> None:
        """Read the indexes of data frames as ids, if all tables have one and they can be compared."""
        if any(reader.index is None for reader in self._readers.values()):
            return
        readers = {str(name): open_rows(str(name), x, self._readers[str(name)].index) for name, x in sources.items()}
        if len({_kind_of_id(reader.id_type) for reader in readers.values()}) == 1:
            self._readers = readers

    def _blocks(self) -> Iterator[tuple[Views, Any]]:
        """Yield the blocks in order, with their ids."""
        streams = [reader.blocks(self.batch_size) for reader in self._readers.values()]
        start = 0
        for parts in zip(*streams, strict=True):
            rows = np.arange(start, start + len(parts[0][0]))
            yield self._aligned(dict(zip(self._readers, parts, strict=True)), rows)
            start += len(rows)

    def _aligned(self, parts: Mapping[str, RowBlock], rows: NDArray[np.int64]) -> tuple[Views, Any]:
        """Return the same rows of all views and their ids, after a check of ids and values."""
        ids: Any = parts[self._with_ids[0]][1] if self._with_ids else None
        for name in self._with_ids[1:]:
            found = parts[name][1]
            differ = np.flatnonzero(found.to_numpy(zero_copy_only=False) != ids.to_numpy(zero_copy_only=False))
            if len(differ):
                i = int(differ[0])
                raise InputError(
                    f"{self._readers[name].where} has the {self.ids or 'row name'} {found[i].as_py()!r} in row "
                    f"{rows[i]}, but {self._readers[self._with_ids[0]].where} has {ids[i].as_py()!r}; reorder one of "
                    "them"
                )
        values = {name: part for name, (part, _) in parts.items()}
        columns = {name: reader.columns for name, reader in self._readers.items()}
        where = {name: reader.where for name, reader in self._readers.items()}
        categories = {name: reader.categories for name, reader in self._readers.items()}
        return checked_block(values, columns, self._empty_cells, where, rows, categories), ids


def label_file(
    model: Any, reader: ViewsReader, path: str | os.PathLike[str], *, columns: Sequence[str] | None = None
) -> Path:
    """Label all rows of a reader, write the labels in blocks, and return the path.

    Memory is needed for one or two blocks. The file appears once it is complete; if the run fails or is interrupted, an
    existing file stays.

    Parameters
    ----------
    model : fitted model with predict
    reader : ViewsReader
    path : path that ends in .csv, .tsv, .parquet or .npy
        Tables have a column of ids, or of the numbers of the samples, and further columns, which are blank if the model
        does not have them. A JSON file beside a table says what the columns mean. `.npy` has the labels only, as int64.
    columns : list of str, optional
        Names among `cluster`, `membership`, `second_cluster`, `novelty` and `best_view`; by default all.
        Labels with membership take as long as labels alone, `best_view` as long again, `novelty` one to three times.

    Returns
    -------
    Path

    See Also
    --------
    ViewsReader : The blocks of rows.
    coview.io.write_labels : Write labels that are in memory.

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
        raise InputTypeError(f"{type(model).__name__} has no predict; give a model that can label new samples")
    if not isinstance(reader, ViewsReader):
        raise InputTypeError(f"reader is {kind_of(reader)}; expected a ViewsReader")
    path = check_label_path(path)
    if path.exists() and any(path.samefile(file) for rows in reader._readers.values() for file in rows.files):
        raise InputError(f"{path} is one of the sources; write the labels to another file")
    ids_name, wanted = reader.ids or "sample", columns_in(path, check_columns("columns", columns))
    views_and_ids = reader.filled_by(model)._blocks()
    blocks = ((ids, _columns_of(model, views, wanted)) for views, ids in views_and_ids)
    write_label_blocks(path, ids_name, reader.n_samples, blocks)
    write_description(path, ids_name, wanted)
    return path


def _columns_of(model: Any, views: Views, wanted: tuple[str, ...]) -> Mapping[str, Array | None]:
    """Return the wanted columns of a block; a model of another library has labels only."""
    if hasattr(model, "model_"):
        return sample_columns(model.model_, model.check(views), wanted=wanted).in_file(wanted)
    labels = np.asarray(model.predict(views))
    if labels.shape != (views.n_samples,) or labels.dtype.kind not in "iu":
        raise InputError(
            f"{type(model).__name__}.predict returned {labels.dtype} of shape {labels.shape} for {views.n_samples} "
            "rows; expected one integer per row"
        )
    return SampleColumns(labels).in_file(wanted)


def _kind_of_id(kind: Any) -> str:
    """Return the kind of an Arrow type; ids of the same kind are comparable whatever their width."""
    types = load_arrow().types
    if types.is_integer(kind):
        return "integer"
    return "string" if types.is_string(kind) or types.is_large_string(kind) else str(kind)


def blocks_with_ids(reader: ViewsReader) -> Iterator[tuple[Views, Any]]:
    """Yield the blocks of a reader in order, with the ids of their samples."""
    return reader._blocks()
