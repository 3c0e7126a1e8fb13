"""Label files: known classes are read, clusters are written in blocks."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Literal, TypeAlias

import numpy as np

from coview.base.atomic import complete_or_absent, write_complete
from coview.data.table import as_string
from coview.data.view import Array
from coview.errors import InputError, warn
from coview.io.align import Ids, check_ids, refuse_duplicates, take_ids
from coview.io.arrow import load_arrow
from coview.io.cells import as_numbers
from coview.io.features import listing
from coview.io.formats import find, read_class_table
from coview.io.identifiers import names_ids
from coview.io.table import InputFile, RawTable
from coview.registry import CLUSTER_COLUMN, LABEL_COLUMNS

# Ids of some samples, as a list or an Arrow array, and their values by column; None for columns without values.
LabelBlocks: TypeAlias = Iterable[tuple[Any, Mapping[str, Array | None]]]
_Tables: TypeAlias = Iterator[Mapping[str, Any]]  # the columns of each block, the ids first; None for a blank column
_DECIMALS = 4  # of numbers in text files
_GROUP_ROWS = 2**17  # rows of a Parquet row group; small groups are slow to read


def read_labels(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    ids: str | Literal[False] | None = None,
    order: Sequence[str] | None = None,
    decimal: str | None = None,
) -> tuple[str, ...]:
    r"""Return the known class of each sample, as strings.

    Warns if the classes are paired with the samples of `order` by row order.

    Parameters
    ----------
    path : path
        A table or an array, in any format that `read_views` reads. `::NAME` selects a sheet of an .xlsx file.
    column : str, optional
        The column of the classes; not needed if there is only one besides the ids, nor for the column `cluster` of a
        file of labels. In .h5ad and .h5mu files, a column
        of obs, such as `cell_type`, or `rna:cell_type` of one modality; in .mat and .npz files, the variable.
    ids : str or False, optional
        The column of the ids of the samples. By default, or if the file has no such column, the ids are the column that
        has those of `order`, or the row names. False pairs classes and samples by row order.
    order : sequence of str, optional
        The ids of the samples whose classes are returned; the file may have more. If the file has no ids, only the
        number of samples is compared; ids of the file that most samples do not have are refused.
    decimal : {".", ","}, optional
        The decimal mark of text tables, as in `read_views`.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "truth.csv")
    ...     _ = path.write_text("sample,class\ns2,1\ns1,0\n")
    ...     read_labels(path, ids="sample", order=["s1", "s2"])
    ('0', '1')
    """
    classes, notes = read_classes(path, column, ids, order, decimal)
    if order is not None and ids is not False:
        for note in notes:
            warn(note)
    return classes


def read_classes(
    path: str | os.PathLike[str],
    column: str | None,
    ids: str | Literal[False] | None,
    order: Sequence[str] | None,
    decimal: str | None = None,
) -> tuple[tuple[str, ...], list[str]]:
    """Return the known classes as `read_labels` does, and a note if they are paired by row order."""
    check_ids(ids)
    source, kind = find("file of known classes", path, decimal=decimal)
    table, column = read_class_table(source, kind, column)
    table, samples = (table, None) if ids is False else _sample_ids(source, table, column, ids, order)
    classes = _classes(source, table, column)
    for i, label in enumerate(classes):
        if label is None:
            raise InputError(f"{source.where} has no class in row {i}; give every sample a class")
    if order is not None and samples is not None:
        of_sample = dict(zip(samples, classes, strict=True))
        missing = [sample for sample in order if sample not in of_sample]
        if missing:
            raise InputError(
                f"{source.where} has no class for {listing('sample', missing)}; add the missing rows, or check the ids"
            )
        classes = [of_sample[sample] for sample in order]
    elif order is not None and len(order) != len(classes):
        raise InputError(
            f"{source.where} has {len(classes)} classes for {len(order)} samples; give one per sample below a line "
            "with the name of the column, or align them by ids"
        )
    notes = [] if samples is not None else [f"{source.where}: classes and samples are paired by row order"]
    return tuple(map(str, classes)), notes


def _sample_ids(
    source: InputFile, table: RawTable, column: str | None, ids: str | None, order: Sequence[str] | None
) -> tuple[RawTable, Ids | None]:
    """Return the table without the ids, and the ids: the named column, or the names that the samples have."""
    if column is not None and column == ids:
        raise InputError(f"{source.where}: the column {column!r} has the ids of the samples; name that of the classes")
    known = frozenset(order or ())
    if ids not in table.strings:
        # Names that fewer than half of the samples have are names of something else.
        for name, cells in table.strings.items():
            may_be_ids = name != column and (len({*cells}) == len(cells) or names_ids(name))
            if may_be_ids and 2 * len(known.intersection(map(str, cells))) > len(known):
                return take_ids(source, table, name)
        if table.row_ids is not None and 2 * len(known.intersection(table.row_ids)) > len(known):
            refuse_duplicates(source, table.row_ids)
            return table, table.row_ids
    if ids is None:
        _refuse_other_ids(source, table, column, order or ())
        return table, None
    if len(table.strings) == 1 and table.row_ids is None:
        only = next(iter(table.strings))
        raise InputError(
            f"{source.where} has the column {only!r} only; add a column {ids!r} with the ids of the samples"
        )
    table, samples = take_ids(source, table, ids)
    if samples is None:
        raise InputError(f"{source.where} has no column of ids {ids!r}; give a table")
    return table, samples


def _refuse_other_ids(source: InputFile, table: RawTable, column: str | None, order: Sequence[str]) -> None:
    """Refuse ids that most samples do not have, because row order would pair them although both sides have ids."""
    found = {f"column {name!r}": cells for name, cells in table.strings.items() if name != column and names_ids(name)}
    if table.row_ids is not None:
        found["row names"] = table.row_ids
    known = {*order}
    for place, cells in found.items():
        present = {*cells}
        if known and None not in present and len(present) == len(cells):
            unknown = next((cell for cell in cells if cell not in known), cells[0])
            missing = next(sample for sample in order if sample not in present)
            raise InputError(
                f"{source.where} has ids ({place}) such as {unknown!r}, but not those of most samples, such as "
                f"{missing!r}; correct the ids, or pair classes and samples by row order (ids=False)"
            )


def _classes(source: InputFile, table: RawTable, column: str | None) -> Sequence[str | None]:
    if not table.strings:  # an array
        if column is not None:
            raise InputError(f"{source.where} has no column {column!r}; give a table with a column of classes")
        values = table.numbers
        if not isinstance(values, np.ndarray) or values.ndim > 2 or values.size != max(values.shape, default=0):
            raise InputError(f"{source.where} is not a list of classes; give one row or column of them")
        return [as_string(value) for value in values.ravel().tolist()]
    if column is None and CLUSTER_COLUMN in table.strings and len({*table.strings} & {*LABEL_COLUMNS}) > 1:
        column = CLUSTER_COLUMN  # of a label file, whose other columns are no classes
    if column is None and len(table.strings) > 1:
        raise InputError(
            f"{source.where} has {listing('column', tuple(table.strings))}; name that of the classes, as in "
            f"{source.path.name}::{list(table.strings)[-1]}"
        )
    wanted = next(iter(table.strings)) if column is None else column
    if wanted not in table.strings:
        raise InputError(f"{source.where} has no column {wanted!r}; it has {listing('column', tuple(table.strings))}")
    return table.strings[wanted]


def write_labels(
    path: str | os.PathLike[str],
    labels: Any,
    ids: Sequence[str] | None = None,
    *,
    name: str = "sample",
    columns: Mapping[str, Any] | None = None,
) -> Path:
    """Write the cluster of each sample and return the path; the file appears once it is complete.

    Parameters
    ----------
    path : path that ends in .csv, .tsv, .parquet or .npy
        Tables have a column of ids, a column `cluster`, and further columns; `.npy` has the labels only.
    labels : array of int
    ids : sequence of str, optional
        One for each label; without them, samples are numbered from 0.
    name : str
        The name of the column of ids.
    columns : mapping from name to array, optional
        Further columns, with a value for each sample; None for a column that is blank.

    Returns
    -------
    Path
    """
    clusters = np.asarray(labels)
    if clusters.ndim != 1 or clusters.dtype.kind not in "iu":
        raise InputError(f"labels: expected one integer per sample, got {clusters.dtype} of shape {clusters.shape}")
    if ids is not None and len(ids) != len(clusters):
        raise InputError(f"there are {len(ids)} ids for {len(clusters)} labels; give one for each")
    further = {key: None if values is None else np.asarray(values) for key, values in (columns or {}).items()}
    for key, values in further.items():
        if values is not None and values.shape != clusters.shape:
            raise InputError(f"columns[{key!r}] has shape {values.shape} for {len(clusters)} labels; give one for each")
    block = {CLUSTER_COLUMN: clusters, **further}
    return write_label_blocks(path, name, len(clusters), [(None if ids is None else list(ids), block)])


def write_label_blocks(path: str | os.PathLike[str], ids_name: str, n_samples: int, blocks: LabelBlocks) -> Path:
    """Write the labels and further columns of n_samples in blocks, as `write_labels` does, and return the path."""
    path = check_label_path(path)
    check_ids_name(ids_name)
    # Otherwise a process that is killed here could leave new labels beside the description of other columns.
    with complete_or_absent(path, outdated=[description_path(path)]) as file:
        _WRITERS[path.suffix.lower()](file, n_samples, _tables(ids_name, blocks))
    return path


def check_ids_name(name: str, where: str = "") -> None:
    """Raise an InputError if the column of the ids has the name of another column of label files."""
    if name in LABEL_COLUMNS:
        raise InputError(f"{where}{name!r} is the name of a column of labels; rename the column of the ids")


def notes_on_formulas(path: Path, ids: Any) -> list[str]:
    """Return a note if a text file of labels has ids that spreadsheet programs run as formulas.

    The ids stay as they are: other names would not match those of the data.
    """
    if ids is None or path.suffix.lower() not in (".csv", ".tsv"):
        return []
    for sample in ids.to_pylist() if hasattr(ids, "to_pylist") else ids:
        if str(sample)[:1] in ("=", "+", "-", "@", "\t", "\r") and as_numbers([str(sample)]) is None:
            return [
                f"{path.name} has ids such as {str(sample)[:40]!r}, which spreadsheet programs run as formulas; import "
                "the column as text, or write the labels as .parquet"
            ]
    return []


def columns_in(path: Path, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return which of these columns a file of labels of this format has."""
    return (CLUSTER_COLUMN,) if path.suffix.lower() == ".npy" else wanted


def description_path(path: Path) -> Path:
    """Return the path of the description of a table, by the convention of the W3C for metadata of CSV files."""
    return path.with_name(f"{path.name}-metadata.json")


def write_description(path: Path, ids_name: str, written: Collection[str] = tuple(LABEL_COLUMNS)) -> Path | None:
    """Write what these columns of a table of labels mean to a JSON file beside it; None for an array."""
    if path.suffix.lower() == ".npy":
        return None
    meanings = {ids_name: "The id of the sample, or its number from 0."}
    meanings |= {name: meaning for name, meaning in LABEL_COLUMNS.items() if name in written}
    columns = [{"name": name, "dc:description": meaning} for name, meaning in meanings.items()]
    document = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": path.name,
        "dc:description": "One row for each sample. Cells are blank if the model has no such value.",
        "tableSchema": {"columns": columns},
    }
    described = description_path(path)
    write_complete(described, json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n")
    return described


def check_label_path(path: str | os.PathLike[str]) -> Path:
    """Return the path, or refuse, before any work, one that labels cannot be written to."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in _WRITERS:
        raise InputError(f"{path} has an unknown ending for labels; expected one of {', '.join(_WRITERS)}")
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise InputError(f"{path} cannot be written: its folder must exist, and it must not be a folder itself")
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path} is a symbolic link to {os.readlink(path)}, which does not exist; remove the link")
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written: no permission to write in {path.absolute().parent}")
    require_writer(ending)
    return path


def require_writer(ending: str) -> None:
    """Raise an ImportError that names the extra if labels of this format need a library that is missing."""
    if ending == ".parquet":
        load_arrow("pyarrow.parquet", "writing Parquet files")


@contextmanager
def delimited_rows(file: IO[bytes], delimiter: str = ",") -> Iterator[Any]:
    """Yield a `csv.writer` of UTF-8 text whose lines end in a line feed."""
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    # Before Python 3.13, a carriage return in a cell is quoted only if lines end in one, as they do by default.
    yield csv.writer(SimpleNamespace(write=lambda row: text.write(f"{row[:-2]}\n")), delimiter=delimiter)
    text.detach()


def _tables(ids_name: str, blocks: LabelBlocks) -> _Tables:
    """Yield the tables of blocks; samples without ids are numbered."""
    start = 0
    for ids, columns in blocks:
        labels = columns[CLUSTER_COLUMN]
        assert labels is not None
        end = start + len(labels)
        yield {ids_name: np.arange(start, end) if ids is None else ids, **columns}
        start = end


def _write_delimited(delimiter: str, file: IO[bytes], n_samples: int, tables: _Tables) -> None:
    with delimited_rows(file, delimiter) as rows:
        for i, table in enumerate(tables):
            if i == 0:
                rows.writerow(table)
            n_rows = len(table[CLUSTER_COLUMN])
            rows.writerows(zip(*(_text_cells(values, n_rows) for values in table.values()), strict=True))


def _text_cells(values: Any, n_rows: int) -> Iterable[Any]:
    if values is None:
        return repeat("", n_rows)
    if hasattr(values, "to_pylist"):  # of Arrow
        return values.to_pylist()
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind != "f":
        return values.tolist()
    return ["" if math.isnan(value) else f"{value:.{_DECIMALS}f}" for value in values.tolist()]


def _write_npy(file: IO[bytes], n_samples: int, tables: _Tables) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.int64)), "fortran_order": False}
    np.lib.format.write_array_header_1_0(file, header | {"shape": (n_samples,)})
    for table in tables:
        file.write(table[CLUSTER_COLUMN].astype(np.int64).tobytes())


def _write_parquet(file: IO[bytes], n_samples: int, tables: _Tables) -> None:
    pa, parquet = load_arrow(), load_arrow("pyarrow.parquet")

    def arrow_cells(values: Any, n_rows: int) -> Any:
        if values is None:
            return pa.nulls(n_rows)
        if not isinstance(values, np.ndarray):
            return values
        kind = {"i": np.int64, "u": np.int64, "f": np.float64}.get(values.dtype.kind, values.dtype)
        return pa.array(values.astype(kind, copy=False), from_pandas=True)  # NaN is null

    converted = (
        pa.table({name: arrow_cells(values, len(table[CLUSTER_COLUMN])) for name, values in table.items()})
        for table in tables
    )
    waiting = next(converted)
    with parquet.ParquetWriter(file, waiting.schema) as writer:
        for table in converted:
            if waiting.num_rows >= _GROUP_ROWS:
                writer.write_table(waiting, row_group_size=_GROUP_ROWS)
                waiting = waiting.slice(waiting.num_rows)
            waiting = pa.concat_tables([waiting, table])
        writer.write_table(waiting, row_group_size=_GROUP_ROWS)


_WRITERS: Mapping[str, Callable[[IO[bytes], int, _Tables], None]] = {
    ".csv": partial(_write_delimited, ","),
    ".tsv": partial(_write_delimited, "\t"),
    ".parquet": _write_parquet,
    ".npy": _write_npy,
}
