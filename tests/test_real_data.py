"""Real data sets with difficult numerics; skipped if the files are not available."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from benchmarks import data as datasets
from coview import RBF, TMvKSCR

DATA = datasets.data_folder()
pytestmark = pytest.mark.skipif(DATA is None, reason="real data sets absent: set COVIEW_DATA to their folder")


def load(name):
    """Views as they are in the file, without any scaling, and the true clusters."""
    views, labels, _ = datasets.load(name)
    return list(views.values()), labels


@pytest.mark.parametrize("rho", [0.0, 0.25, 1.0])
@pytest.mark.parametrize(
    "name",
    [
        "imgc",  # raw values of about 1e9
        "proteinfold",  # twelve views multiplied together
        "reuters600",  # sparse L2-normalised rows
        "mfeat",
    ],
)
def test_float32_gives_the_labels_of_float64_on_raw_views(name, rho):
    views, truth = load(name)
    k = len(np.unique(truth))
    narrow, wide = (
        TMvKSCR(k, kernel=RBF(), rho=rho, dtype=d, random_state=0).fit(views) for d in ("float32", "float64")
    )
    np.testing.assert_allclose(narrow.eigenvalues_, wide.eigenvalues_, rtol=1e-4)  # twelve factors of 1e-6 each
    assert adjusted_rand_score(narrow.labels_, wide.labels_) == 1


def test_real_rows_get_the_same_label_in_any_batch():
    views, truth = load("mfeat")
    order = np.random.default_rng(0).permutation(len(truth))
    for dtype in ("float32", "float64"):
        model = TMvKSCR(10, kernel=RBF(), rho=0.5, dtype=dtype, random_state=0).fit([x[order[:500]] for x in views])
        new = [x[order[500:700]] for x in views]
        single = np.concatenate([model.predict([x[[i]] for x in new]) for i in range(200)])
        np.testing.assert_array_equal(single, model.predict(new))
