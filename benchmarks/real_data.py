"""Subsets of the stored real data sets, as they are or preprocessed as in the fixed protocol."""

import sys

import numpy as np

from benchmarks.data import HOW_TO_SET, load, stored_names
from benchmarks.sweep import preprocessed, standard_or_l2
from coview.data.as_views import as_views
from coview.data.views import Views

MAX_SAMPLES = 3000  # of a random sample


def require_data_sets() -> tuple[str, ...]:
    """Return the names of the stored data sets, or exit with a message that says how to set their folder."""
    names = stored_names()
    if not names:
        sys.exit(f"no data sets found; {HOW_TO_SET}")
    return names


def sampled(name: str, seed: int) -> tuple[Views, np.ndarray]:
    """Return at most 3,000 random samples of a stored data set in random order, and their classes."""
    views, truth, _ = load(name)
    rows = np.random.default_rng(seed).permutation(len(truth))[:MAX_SAMPLES]
    return views.take(rows), truth[rows]


def load_float64(name: str, rows: np.ndarray) -> Views:
    """Return some rows of a stored data set in float64, without preprocessing."""
    views = load(name).views.take(rows)
    return as_views({view: x.astype(np.float64) for view, x in views.items()})


def load_preprocessed(name: str, max_samples: int) -> tuple[list, np.ndarray]:
    """Return at most this many samples, drawn with one seed: dense views standardised, sparse views L2-normalised."""
    truth = load(name).labels
    rows = np.random.default_rng(0).permutation(len(truth))[:max_samples]
    views = load_float64(name, rows)
    return list(preprocessed(views, standard_or_l2(views)).values()), truth[rows]
