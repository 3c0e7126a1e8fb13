"""Views of very large and very small numbers: a right answer that can be saved, or one error that names the view."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from coview import (
    KPCA,
    KSC,
    METHODS,
    MVSCBP,
    RBF,
    Concat,
    Coview,
    FixedSize,
    InputError,
    Linear,
    PerView,
    Polynomial,
    Precomputed,
    Preprocessed,
    TMvKSCR,
    load,
    save,
)
from coview.methods.kernel_method import OneViewKernelMethod
from tests.conftest import make_blobs

ESTIMATORS = {
    **{
        name: method(**({"n_clusters": 3} if name != "comic" else {}), random_state=0)
        for name, method in METHODS.items()
    },
    "rbf": TMvKSCR(3, kernel=RBF(), random_state=0),
    "rbf, float32": TMvKSCR(3, kernel=RBF(), dtype="float32", random_state=0),
    "linear": KPCA(3, kernel=Linear(), random_state=0),
    "linear, float32": KPCA(3, kernel=Linear(), dtype="float32", random_state=0),
    "polynomial": KPCA(3, kernel=Polynomial(degree=4, offset=0.0), random_state=0),
    "concat": Concat(KSC(3, random_state=0)),
    "concat of k-means": Concat(KMeans(3, random_state=0)),
    "per view": PerView(KSC(3, random_state=0)),
    "per view of k-means": PerView(KMeans(3, random_state=0)),
    "standardised": Preprocessed(TMvKSCR(3, random_state=0), "standard"),
    "fixed size": FixedSize(TMvKSCR(3, random_state=0), n_train=40, select="kmeans", random_state=0),
    "entropy": FixedSize(
        Concat(KPCA(3, kernel=Linear(), random_state=0)), n_train=40, select="entropy", random_state=0
    ),
    "coview, selected": Coview("auto", random_state=0),
}
# Their squared distances or similarities are numbers of the model, or squares are computed in another library.
NOT_AT_ANY_SCALE = {
    *("ksc", "kpca", "mvksc", "coreg", "oplfmvc", "rbf", "rbf, float32", "concat", "per view"),
    *("linear", "linear, float32", "polynomial", "concat of k-means", "per view of k-means", "entropy"),
}
FORMS = {
    "dense": np.asarray,
    "sparse": sp.csr_array,
    "float32": lambda x: x.astype(np.float32),
    "sparse float32": lambda x: sp.csr_array(x.astype(np.float32)),
}
UNITS = {"float64": [1e-300, 1e10, 1e155, 1e305], "float32": [1e-37, 1e-10, 1e37]}


def blobs(model, unit, form):
    views, truth = make_blobs(spread=8.0)
    if isinstance(model, OneViewKernelMethod):
        views = {"a": views["a"]}
    return {name: form(x * unit) for name, x in views.items()}, truth


def answer(ask, views):
    """Return the answer, or None if it is one sentence that names a view."""
    try:
        return ask(views)
    except InputError as error:
        assert "view '" in str(error), error
        assert "scale" in str(error), error
        assert "\n" not in str(error)
        return None


@pytest.mark.parametrize(
    ("name", "form"),
    [(name, form) for name in ESTIMATORS for form in FORMS if name != "comic" or form == "dense"],  # which is slow
)
def test_any_scale_gives_the_clusters_or_one_error(name, form, tmp_path):
    model = ESTIMATORS[name]
    units = UNITS["float32" if "float32" in form else "float64"]
    fitted = []
    for unit in units:
        views, truth = blobs(model, unit, FORMS[form])
        if answer(model.fit, views) is None:
            continue
        fitted.append(unit)
        assert adjusted_rand_score(truth, model.labels_) == 1
        if not hasattr(model, "predict"):
            continue
        if "k-means" not in name:
            file = tmp_path / f"{len(fitted)}.safetensors"
            save(model, file)
            np.testing.assert_array_equal(load(file).predict(views), model.labels_)
        for other in (0.0, units[0], units[-1]):
            new, _ = blobs(model, other, FORMS[form])
            for method in filter(partial(hasattr, model), ("predict", "transform", "predict_proba")):
                found = answer(getattr(model, method), new)
                assert found is None or np.isfinite(found).all()
    assert fitted
    if name not in NOT_AT_ANY_SCALE:
        assert fitted == units


@pytest.mark.parametrize("unit", [1e-160, 1e155])
def test_a_bandwidth_outside_the_range_of_floats_is_refused(unit):
    x = make_blobs()[0]["a"] * unit
    with pytest.raises(
        InputError, match=r"view 'view0' has values of up to \de.* outside the range of float64; rescale"
    ):
        KSC(3, kernel=RBF()).fit(x)


@pytest.mark.parametrize(("dtype", "unit"), [("float64", 1e-160), ("float32", 1e-20)])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(offset=0.0), Precomputed()])
def test_similarities_without_digits_are_refused(kernel, dtype, unit):
    x = make_blobs()[0]["a"] * unit
    rows = x @ x.T if kernel == Precomputed() else x
    with pytest.raises(InputError, match=r"view 'view0' has values of up to .* too small to compute with under"):
        KPCA(3, kernel=kernel, dtype=dtype).fit(rows)


def test_new_samples_far_from_all_anchors_get_the_largest_cluster_of_equal_votes():
    views, _ = make_blobs(spread=8.0)
    model = MVSCBP(3, random_state=0).fit(views)
    labels = model.predict({name: x * 1e152 for name, x in views.items()})  # distances of about 1e306
    assert set(labels) <= {0, 1, 2}
    np.testing.assert_array_equal(model.predict({name: x[:1] * 1e152 for name, x in views.items()}), labels[:1])


def test_scores_outside_the_range_of_float32_are_float64():
    x = make_blobs()[0]["a"].astype(np.float32)
    ordinary, large = (KPCA(3, kernel=Linear(), random_state=0).fit(x * unit) for unit in (1.0, np.float32(1e30)))
    assert ordinary.scores_.dtype == np.float32
    assert large.scores_.dtype == np.float64
    assert large.transform(x[:5] * np.float32(1e30)).dtype == np.float64
    np.testing.assert_array_equal(large.labels_, ordinary.labels_)
