"""Labels written to a file, block by block; the file appears once it is complete."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import numpy as np

from coview.errors import InputError
from coview.extras import load_extra
from coview.io.atomic import complete_or_absent
from coview.views import Array

CLUSTER = "cluster"

_Blocks = Iterable[tuple[Any, Array]]  # ids of some samples, as a list or an Arrow array, and their labels
_GROUP_ROWS = 2**17  # of a Parquet file: readers work by groups, and small ones are slow


def write_labels(
    path: str | os.PathLike[str], labels: Any, ids: Sequence[str] | None = None, *, name: str = "sample"
) -> Path:
    """Write the cluster of each sample and return the path; the file appears once it is complete.

    Parameters
    ----------
    path : path that ends in .csv, .tsv, .parquet or .npy
        Tables have the column `cluster` after that of the ids; `.npy` holds the labels alone.
    labels : array of int
    ids : sequence of str, optional
        One for each label; without them samples are counted from 0.
    name : str
        What the column of the ids is called.
    """
    clusters = np.asarray(labels)
    if clusters.ndim != 1 or clusters.dtype.kind not in "iu":
        raise InputError(f"labels must be one whole number for each sample, not {clusters.dtype} of {clusters.shape}")
    if ids is not None and len(ids) != len(clusters):
        raise InputError(f"there are {len(ids)} ids for {len(clusters)} labels; give one for each")
    return write_blocks(path, name, len(clusters), [(None if ids is None else list(ids), clusters)])


def write_blocks(path: str | os.PathLike[str], ids_name: str, n_samples: int, blocks: _Blocks) -> Path:
    """Write labels block by block, and return the path.

    Parameters
    ----------
    path : path that ends in .csv, .tsv, .parquet or .npy
        Tables have the column `cluster` after that of the ids; `.npy` holds the labels alone, as int64.
    ids_name : str
        What the column of the ids is called.
    n_samples : int
        How many labels there will be.
    blocks : iterable of (ids, labels)
        Ids may be None: then samples are counted from 0.
    """
    path = check_target(path)
    if ids_name == CLUSTER:
        raise InputError(f"the ids cannot be called {CLUSTER!r}, as the labels are; rename their column")
    with complete_or_absent(path) as file:
        _WRITERS[path.suffix.lower()](file, ids_name, n_samples, blocks)
    return path


def check_target(path: str | os.PathLike[str]) -> Path:
    """Refuse, before any work, a path that labels cannot be written to."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in _WRITERS:
        raise InputError(f"{path} has an unknown ending for labels; use one of {', '.join(_WRITERS)}")
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise InputError(f"{path} cannot be written: its folder must exist, and it must not be a folder itself")
    if ending == ".parquet":
        _arrow()
    return path


def _write_text(delimiter: str) -> Callable[[IO[bytes], str, int, _Blocks], None]:
    def write(file: IO[bytes], ids_name: str, n_samples: int, blocks: _Blocks) -> None:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        rows = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        rows.writerow([ids_name, CLUSTER])
        for ids, labels in _named(blocks):
            rows.writerows(zip(ids.to_pylist() if hasattr(ids, "to_pylist") else ids, labels.tolist(), strict=True))
        text.detach()

    return write


def _write_npy(file: IO[bytes], ids_name: str, n_samples: int, blocks: _Blocks) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.int64)), "fortran_order": False}
    np.lib.format.write_array_header_1_0(file, header | {"shape": (n_samples,)})
    for _, labels in blocks:
        file.write(labels.astype(np.int64).tobytes())


def _write_parquet(file: IO[bytes], ids_name: str, n_samples: int, blocks: _Blocks) -> None:
    pa, parquet = _arrow()
    writer = None
    try:
        for group in _groups(_named(blocks)):
            tables = [pa.table({ids_name: ids, CLUSTER: labels.astype(np.int64)}) for ids, labels in group]
            writer = writer or parquet.ParquetWriter(file, tables[0].schema)
            writer.write_table(pa.concat_tables(tables), row_group_size=_GROUP_ROWS)
    finally:
        if writer is not None:
            writer.close()


def _named(blocks: _Blocks) -> Iterator[tuple[Any, Array]]:
    """Blocks with their ids, or with the numbers of their samples."""
    start = 0
    for ids, labels in blocks:
        yield np.arange(start, start + len(labels)) if ids is None else ids, labels
        start += len(labels)


def _groups(blocks: _Blocks) -> Iterator[list[tuple[Any, Array]]]:
    """Blocks, as many together as make up a group of rows; fewer at the end."""
    group: list[tuple[Any, Array]] = []
    for block in blocks:
        group.append(block)
        if sum(len(labels) for _, labels in group) >= _GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group


_WRITERS: Mapping[str, Callable[[IO[bytes], str, int, _Blocks], None]] = {
    ".csv": _write_text(","),
    ".tsv": _write_text("\t"),
    ".parquet": _write_parquet,
    ".npy": _write_npy,
}


def _arrow() -> tuple[Any, Any]:
    pa, parquet = (load_extra(name, "io", "writing Parquet files") for name in ("pyarrow", "pyarrow.parquet"))
    return pa, parquet
