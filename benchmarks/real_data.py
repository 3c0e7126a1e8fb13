"""Real data sets with labels, read from the folder that COVIEW_DATA names (by default beside the project)."""

import os
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler, normalize

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("COVIEW_DATA", ROOT.parent / "shared" / "data"))


def data_sets() -> list[Path]:
    """Return the files, or stop with a word about where they should be."""
    paths = sorted(DATA.glob("*.npz"))
    if not paths:
        sys.exit("no data sets found; set COVIEW_DATA to their folder")
    return paths


def load(path: Path) -> tuple[list, np.ndarray]:
    """Read one data set: views as arrays or CSR, and the true clusters."""
    with np.load(path, allow_pickle=False) as file:
        views = []
        for v in range(len(file["view_names"])):
            if f"x{v}" in file.files:
                views.append(file[f"x{v}"].astype(float))
            else:
                parts = [file[f"x{v}_{part}"] for part in ("data", "indices", "indptr")]
                views.append(sp.csr_array((parts[0].astype(float), *parts[1:]), shape=tuple(file[f"x{v}_shape"])))
        return views, file["y"].astype(int)


def prepared(path: Path, most_samples: int) -> tuple[list, np.ndarray]:
    """Read at most so many samples, drawn with one seed, with every view prepared the same way."""
    views, truth = load(path)
    rows = np.random.default_rng(0).permutation(len(truth))[:most_samples]
    return [_prepare(x[rows]) for x in views], truth[rows]


def _prepare(x):
    return normalize(x) if sp.issparse(x) else StandardScaler().fit_transform(x)
