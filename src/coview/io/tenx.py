"""Folders of 10x Genomics: a matrix of features by cells, with files of the barcodes and the features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from coview.errors import InputError
from coview.io.matrix_market import read_matrix_market
from coview.io.table import AsStrings, InputFile, RawTable, check_names

_MATRIX, _BARCODES = ("matrix.mtx.gz", "matrix.mtx"), ("barcodes.tsv.gz", "barcodes.tsv")
_FEATURES = ("features.tsv.gz", "features.tsv", "genes.tsv.gz", "genes.tsv")
_Feature = tuple[str, str, str]  # id, name and type


def is_10x(folder: Path) -> bool:
    """Return whether the folder has the matrix of 10x Genomics."""
    return any((folder / name).is_file() for name in _MATRIX)


def feature_types(source: InputFile) -> dict[str, str]:
    """Return the types of the features, such as Gene Expression, and the number of features of each."""
    return _type_counts(_read_features(source))


def read_10x(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the counts of cells by features; the barcodes are the row names."""
    features = _read_features(source)
    barcodes = [cells[0] for cells in _lines_of(_part(source, _BARCODES))]
    wanted = source.choose(_type_counts(features), "feature type")
    matrix = _part(source, _MATRIX)
    counts = read_matrix_market(matrix, as_strings).numbers
    if counts.shape != (len(features), len(barcodes)):
        raise InputError(
            f"{matrix.where} has {counts.shape[0]} rows and {counts.shape[1]} columns, but its folder has "
            f"{len(features)} features and {len(barcodes)} barcodes; expected a row for each feature and a column for "
            "each barcode"
        )
    kept = np.array([kind == wanted for *_, kind in features])
    names, notes = _unique_names([feature for feature in features if feature[2] == wanted])
    check_names(source.where, names)
    counts = (counts if kept.all() else counts[kept]).T
    cells = sp.csr_array(counts) if sp.issparse(counts) else counts
    return RawTable(cells, tuple(names), row_names=tuple(barcodes), notes=tuple(notes))


def _unique_names(features: list[_Feature]) -> tuple[list[str], list[str]]:
    """Return the names of the features, those that occur more than once with their ids, and a note on these."""
    times = Counter(name for _, name, _ in features)
    names = [name if times[name] == 1 else f"{name} ({key})" for key, name, _ in features]
    changed = [name for name, (_, plain, _) in zip(names, features, strict=True) if name != plain]
    if not changed:
        return names, []
    return names, [f"{len(changed)} features have the name of another and are named with their ids, as {changed[0]!r}"]


def _read_features(source: InputFile) -> list[_Feature]:
    """Return id, name and type of each feature; older versions store no type, and some programs only ids."""
    rows = ([*cells, "", ""][:3] for cells in _lines_of(_part(source, _FEATURES)))
    return [(key, name or key, kind or "features") for key, name, kind in rows]


def _type_counts(features: list[_Feature]) -> dict[str, str]:
    return {kind: f"({count})" for kind, count in Counter(kind for *_, kind in features).items()}


def _part(source: InputFile, names: tuple[str, ...]) -> InputFile:
    """Return the first of these files that is in the folder."""
    for name in names:
        if (source.path / name).is_file():
            part = InputFile(source.what, source.path / name)
            if part.gzipped:
                part.check_text()
            return part
    raise InputError(f"{source.where} lacks {' or '.join(names)}; a folder of 10x has a matrix, barcodes and features")


def _lines_of(part: InputFile) -> Iterator[list[str]]:
    """Yield the cells of the lines that are not empty; these files have no line of column names."""
    with part.opened() as file:
        for number, line in enumerate(file, start=1):
            try:
                cells = [cell.strip() for cell in line.decode("utf-8").split("\t")]
            except UnicodeDecodeError:
                raise InputError(f"{part.where} is not UTF-8 in line {number}; save it as UTF-8") from None
            if any(cells):
                yield cells
