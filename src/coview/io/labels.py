"""Labels on file: known classes that are read, and clusters that are written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coview.errors import InputError
from coview.io.align import take_ids
from coview.io.features import listing
from coview.io.formats import find, read_table
from coview.io.table import Source, Table, spelt
from coview.labels import write_blocks


def read_labels(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    ids: str | None = None,
    order: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Read the known class of each sample, as text.

    Parameters
    ----------
    path : path
        A table or an array, in any format that `read_views` reads.
    column : str, optional
        The column that holds the classes; not needed if there is only one besides the ids.
    ids : str, optional
        The column that holds the ids of the samples.
    order : sequence of str, optional
        The samples whose classes are wanted, by their ids; more may be on file. Without ids, only their number counts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_labels(f"{folder}/truth.csv", [1, 0], ids=["s2", "s1"])
    ...     read_labels(written, ids="sample", order=["s1", "s2"])
    ('0', '1')
    """
    source, kind = find("known classes", path)
    table = read_table(source, kind, lambda name: True)
    samples = None
    if ids is not None:
        table, samples = take_ids(source, table, ids)
        if samples is None:
            raise InputError(f"{source.where} has no columns to take the ids {ids!r} from; give a table")
    classes = _classes(source, table, column)
    for i, label in enumerate(classes):
        if label is None:
            raise InputError(f"{source.where} has no class in row {i}; give every sample its class")
    if order is not None and samples is not None:
        of_sample = dict(zip(samples, classes, strict=True))
        missing = [sample for sample in order if sample not in of_sample]
        if missing:
            raise InputError(f"{source.where} has no class for {listing('sample', missing)}")
        classes = [of_sample[sample] for sample in order]
    elif order is not None and len(order) != len(classes):
        raise InputError(
            f"{source.where} has {len(classes)} classes for {len(order)} samples; give one for each, below a line with "
            "the column's name, or align them by ids"
        )
    return tuple(map(str, classes))


def _classes(source: Source, table: Table, column: str | None) -> Sequence[str | None]:
    if not table.texts:  # an array
        values = table.numbers
        if not isinstance(values, np.ndarray) or values.ndim > 2 or values.size != max(values.shape, default=0):
            raise InputError(f"{source.where} is no list of classes; give one row or column of them")
        return [spelt(value) for value in values.ravel().tolist()]
    if column is None and len(table.texts) > 1:
        raise InputError(
            f"{source.where} has {listing('column', tuple(table.texts))}; say which of them holds the classes"
        )
    wanted = next(iter(table.texts)) if column is None else column
    if wanted not in table.texts:
        raise InputError(f"{source.where} has no column {wanted!r}; it has {listing('column', tuple(table.texts))}")
    return table.texts[wanted]


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
