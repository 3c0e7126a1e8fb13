"""Known classes on file, read as text."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from coview.errors import InputError
from coview.io.align import take_ids
from coview.io.features import listing
from coview.io.formats import find, read_table
from coview.io.table import Source, Table, spelt


def read_labels(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    ids: str | None = None,
    order: Sequence[str] | None = None,
) -> tuple[str, ...]:
    r"""Read the known class of each sample, as text.

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
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "truth.csv")
    ...     _ = path.write_text("sample,class\ns2,1\ns1,0\n")
    ...     read_labels(path, ids="sample", order=["s1", "s2"])
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
