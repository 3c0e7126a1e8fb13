"""Reading of stored results of the authors' programs (or their specification) on identical input."""

import numpy as np
import pytest

from coview import RBF, NormalizedPolynomial
from tests.conftest import shared_folder

GOLDEN = shared_folder("golden")
needs_golden = pytest.mark.skipif(GOLDEN is None, reason="reference numbers absent: set COVIEW_GOLDEN to their folder")


def golden(pattern):
    return sorted(path.stem for path in GOLDEN.glob(pattern)) if GOLDEN else []


def load(stem):
    return dict(np.load(GOLDEN / f"{stem}.npz", allow_pickle=False))


def inputs(answer):
    data = dict(np.load(GOLDEN / "inputs" / f"{answer['dataset']}.npz", allow_pickle=False))
    views = [data[f"X{v}"] for v in range(int(data["V"]))]
    if "z-score" in str(answer.get("preprocess", "")):
        views = [(x - x.mean(axis=0)) / x.std(axis=0, ddof=1) for x in views]
    return views


def as_kernel(spec):
    name, *numbers = spec
    return RBF(*numbers) if name == "rbf" else NormalizedPolynomial(offset=numbers[0], degree=numbers[1])


def assert_equal_up_to_sign(ours, theirs, rtol):
    scale = np.abs(theirs).max(axis=0)
    signs = np.sign((ours * theirs).sum(axis=0))
    np.testing.assert_allclose(ours * signs / scale, theirs / scale, atol=rtol)


def is_free_of_ties(scores, n_clusters):
    """Return whether the paper's codebook decides every label: no ties in the last count or in Hamming distance."""
    signs = np.where(scores >= 0, 1, -1)
    codes, counts = np.unique(signs, axis=0, return_counts=True)
    order = np.argsort(-counts)
    if len(counts) > n_clusters and counts[order[n_clusters - 1]] == counts[order[n_clusters]]:
        return False
    distances = (signs[:, None, :] != codes[order[:n_clusters]][None]).sum(axis=2)
    return ((distances == distances.min(axis=1, keepdims=True)).sum(axis=1) == 1).all()
