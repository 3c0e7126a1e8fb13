"""Real data sets in one folder, which is not part of coview because the licences are mixed."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.data.catalogue import KNOWN
from benchmarks.data.folder import HOW_TO_SET, data_folder, stored_names
from benchmarks.data.shapes import Labelled
from coview.data.as_views import as_views
from coview.errors import InputError


def load(name: str) -> Labelled:
    """Return a stored data set: its views without preprocessing, and the true labels.

    Rows keep the order of the file, which is often sorted by class. Shuffle them before any method that may depend on
    the order.

    Parameters
    ----------
    name : str
        The name of a file in the folder of `data_folder`, without its suffix. The archive holds `y` (the true
        labels), `view_names`, for each view v either `x{v}` or the parts of a sparse matrix `x{v}_data`,
        `x{v}_indices`, `x{v}_indptr` and `x{v}_shape`, and optionally `class_names`.

    Returns
    -------
    Labelled
        A named tuple of `views`, `labels` and `classes`.
    """
    folder, names = data_folder(), stored_names()
    if folder is None:
        raise InputError(f"data set {name!r}: the folder of data sets does not exist; {HOW_TO_SET}")
    if name not in names:
        raise InputError(f"data set {name!r} is not in {folder}; {_advice(name, names)}")
    path = folder / f"{name}.npz"
    try:
        # NumPy leaves a damaged archive open, so the file is opened and closed here.
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
    # Indices are stored in the smallest integer type, which SciPy's routines do not accept.
    parts = (entries, columns.astype(np.int32), ends.astype(np.int32))
    return sp.csr_array(parts, shape=tuple(map(int, file[f"x{v}_shape"])))


def _advice(name: str, names: tuple[str, ...]) -> str:
    known = KNOWN.get(name)
    if known:
        return f"get it with {known.call}"
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known data sets: {', '.join(names) or 'none'}"
