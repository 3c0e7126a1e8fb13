"""MATLAB files with several views in cell arrays, the usual format of multi-view data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.data.shapes import PAPER_TABLE, Labelled, Shape
from coview.data.as_views import as_views
from coview.data.view import Matrix
from coview.errors import InputError

# Names of the variables in distributed files; the authors' own names are first.
_TRAIN, _TEST = ("Xs", "X", "data", "fea", "views"), ("Xts", "Xt")
_LABELS = ("Ys", "Y", "GND", "truth", "gt", "gnd", "y", "labels", "label", "truelabel", "true_label")
_TEST_LABELS = ("Yts", "Yt")


def read_cells(name: str, path: str | Path, *separate: tuple[str, ...]) -> Labelled:
    """Read a MATLAB file of several views, and check it against the paper's table of data sets.

    Three layouts are supported: a cell array with one matrix per view, and the labels; the same in two parts for
    training and testing, which are joined (a cell array of such cell arrays holds several random splits of the same
    samples, and the first is used); or one variable per view.

    Parameters
    ----------
    name : str
        The name of the data set in `PAPER_TABLE`.
    path : str or Path
        A MATLAB file up to version 7.
    separate : tuples of str
        Names of the variables if each view has its own, one tuple per spelling.
    """
    path, shape = Path(path), PAPER_TABLE[name]
    variables = _variables(path)
    for names in separate:
        if all(part in variables for part in names):
            parts = [[variables[part] for part in names]]
            break
    else:
        parts = [_views_of(path, shape, variables, names) for names in (_TRAIN, _TEST)]
    labels = [_first(variables, names) for names in (_LABELS, _TEST_LABELS)]
    found = [part for part in parts if part]
    if not parts[0] or any(label is None for label in labels[: len(found)]):
        raise _unlike(path, shape, f"the variables {', '.join(sorted(variables)) or '(none)'}")
    matrices = [_joined(path, shape, pieces) for pieces in zip(*found, strict=True)]
    truth = np.concatenate([_label_vector(path, shape, label) for label in labels[: len(found)]])
    return checked(path, shape, matrices, truth)


def checked(
    path: Path, shape: Shape, matrices: list[Matrix], truth: Any, classes: tuple[str, ...] | None = None
) -> Labelled:
    """Return the views in the order of the paper's table, after comparing all sizes with it."""
    upright = [x if x.shape[0] == shape.samples else x.T for x in matrices]  # some files have samples in columns
    values, labels = np.unique(truth, return_inverse=True)
    found = f"views of {', '.join(map(_size, matrices))}, {len(labels)} labels and {len(values)} clusters"
    if len(labels) != shape.samples or len(values) != shape.clusters:
        raise _unlike(path, shape, found)
    tables, left = {}, list(upright)
    for title, width in shape.widths.items():
        fits = next((i for i, x in enumerate(left) if x.shape == (shape.samples, width)), None)
        if fits is None:
            raise _unlike(path, shape, found)
        tables[title] = left.pop(fits)
    return Labelled(as_views(tables), labels.astype(np.int64), classes)


def require_file(path: Path) -> None:
    """Raise an InputError if there is no file at the path."""
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the path of the data set's file")


def _variables(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    require_file(path)
    try:
        contents = loadmat(path)
    except NotImplementedError:
        raise InputError(f"{path} is a MATLAB file of version 7.3; save it with -v7") from None
    except Exception as error:  # SciPy's reader raises many errors for damaged files
        raise InputError(f"{path} cannot be read as a MATLAB file ({error})") from None
    return {name: value for name, value in contents.items() if not name.startswith("__")}


def _first(variables: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((variables[name] for name in names if name in variables), None)


def _views_of(path: Path, shape: Shape, variables: dict[str, Any], names: tuple[str, ...]) -> list[Any]:
    """Return the matrices of one part; the list is empty if the file does not have this part."""
    cells = _first(variables, names)
    if cells is None:
        return []
    if _is_cell(cells) and cells.size and _is_cell(cells.flat[0]):
        cells = cells.flat[0]  # the first split
    if not _is_cell(cells) or cells.size != len(shape.widths):
        what = f"a cell array of {cells.size}" if _is_cell(cells) else f"a plain variable of {_size(cells)}"
        raise _unlike(path, shape, f"{what} in place of the views")
    return list(cells.flat)


def _is_cell(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _joined(path: Path, shape: Shape, pieces: tuple[Any, ...]) -> Matrix:
    """Return one view: its training rows, then its test rows."""
    if any(not sp.issparse(p) and (not isinstance(p, np.ndarray) or p.ndim != 2) for p in pieces):
        raise _unlike(path, shape, "a view that is not a numeric matrix")
    if len(pieces) == 1:
        return pieces[0]
    if len({p.shape[1] for p in pieces}) > 1:
        raise _unlike(path, shape, f"parts of one view of {' and '.join(str(p.shape[1]) for p in pieces)} columns")
    return sp.vstack(pieces, format="csr") if any(map(sp.issparse, pieces)) else np.vstack(pieces)


def _label_vector(path: Path, shape: Shape, labels: Any) -> Any:
    """Return labels as a vector; files repeat them per view, have one vector per split, or an indicator matrix."""
    if _is_cell(labels) and labels.size:
        first, *others = labels.flat
        if np.size(first) == shape.samples and not all(np.array_equal(first, other) for other in others):
            raise _unlike(path, shape, "labels that differ between views")
        labels = first
    plain = labels.toarray() if sp.issparse(labels) else np.asarray(labels)
    if plain.dtype == object:
        raise _unlike(path, shape, "labels that are neither numbers nor strings")
    if plain.ndim == 2 and min(plain.shape) > 1:  # one column, or one row, per cluster
        plain = plain.argmax(axis=int(np.argmin(plain.shape)))
    return plain.ravel()


def _size(x: Any) -> str:
    return " by ".join(map(str, x.shape))


def _unlike(path: Path, shape: Shape, found: str) -> InputError:
    return InputError(f"{path} is not the file of {shape.paper_name}: expected {shape}, found {found}")
