"""Real data sets in one folder, which is not part of coview because their licences are mixed."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.data.catalogue import KNOWN
from benchmarks.data.folder import data_folder, stored_names
from benchmarks.data.shapes import Labelled
from coview.errors import InputError
from coview.views import as_views


def load(name: str) -> Labelled:
    """Return a stored data set: its views as they are in the file, without any scaling, and the true clusters.

    Rows keep the order of the file, which is often that of the clusters: shuffle them before anything that could
    depend on it.

    Parameters
    ----------
    name : str
        The name of a file in the folder that `data_folder` finds, without its ending: an archive of `y` (the true
        clusters), `view_names`, and for each view v either `x{v}` or the parts of a sparse matrix `x{v}_data`,
        `x{v}_indices`, `x{v}_indptr` and `x{v}_shape`; `class_names` if there are any.

    Returns
    -------
    Labelled
        The three `views`, `labels` and `classes`, which can be taken apart as a tuple.
    """
    folder, names = data_folder(), stored_names()
    if folder is None:
        raise InputError(f"the data set {name!r} is not here: no folder of data sets was found; set COVIEW_DATA to one")
    if name not in names:
        raise InputError(f"{folder} has no data set {name!r}; {_advice(name, names)}")
    path = folder / f"{name}.npz"
    try:
        # NumPy leaves a damaged archive open unless the file is ours to close.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            views = {str(title): _matrix(file, v) for v, title in enumerate(file["view_names"])}
            labels = file["y"].astype(np.int64)
            stored = tuple(str(c) for c in file["class_names"]) if "class_names" in file.files else None
    except Exception as error:  # a damaged archive can fail anywhere
        raise InputError(f"{path} is not an archive of views ({error}); see benchmarks.data.load") from None
    checked = as_views(views)
    if labels.shape != (checked.n_samples,):
        raise InputError(f"{path} has {checked.n_samples} samples, but its y has the shape {labels.shape}")
    known = KNOWN.get(name)
    return Labelled(checked, labels, stored or (known.classes if known else None))


def _matrix(file: Any, v: int) -> Any:
    if f"x{v}" in file.files:
        return file[f"x{v}"]
    entries, columns, ends = (file[f"x{v}_{part}"] for part in ("data", "indices", "indptr"))
    # Indices are stored in as few bytes as possible, which SciPy's routines do not take.
    parts = (entries, columns.astype(np.int32), ends.astype(np.int32))
    return sp.csr_array(parts, shape=tuple(map(int, file[f"x{v}_shape"])))


def _advice(name: str, names: tuple[str, ...]) -> str:
    known = KNOWN.get(name)
    if known:
        return f"get it with {known.how}"
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names) or 'none at all'}"
