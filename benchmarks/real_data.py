"""Real data sets with labels, read from the folder that COVIEW_DATA names (by default beside the project)."""

import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.data import data_folder, load, stored_names

ROOT = Path(__file__).parents[1]


def data_sets() -> list[Path]:
    """Return the files, or stop with a word about where they should be."""
    folder = data_folder()
    if folder is None or not stored_names():
        sys.exit("no data sets found; set COVIEW_DATA to their folder")
    return [folder / f"{name}.npz" for name in stored_names()]


def prepared(path: Path, most_samples: int) -> tuple[list, np.ndarray]:
    """Read at most so many samples, drawn with one seed, with every view prepared the same way."""
    views, truth, _ = load(path.stem)
    rows = np.random.default_rng(0).permutation(len(truth))[:most_samples]
    return [_prepare(x.astype(float)[rows]) for x in views.values()], truth[rows]


def _prepare(x):
    return normalize(x) if sp.issparse(x) else StandardScaler().fit_transform(x)
