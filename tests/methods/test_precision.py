"""Labels of new samples in float32 are those of float64."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from coview import (
    KSC,
    RBF,
    Codebook,
    Cosine,
    Directions,
    FixedSize,
    Linear,
    MvKSC,
    NeighborGraph,
    NormalizedPolynomial,
    Preprocessed,
    TMvKSCR,
    load,
    save,
)
from coview.core.score import ScoreMap
from tests.conftest import make_blobs

ASSIGNER = pytest.mark.parametrize("assigner", [Codebook(), Directions(n_init=2)])
KERNEL = pytest.mark.parametrize("kernel", [RBF(), RBF(3.0), NormalizedPolynomial()], ids=repr)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def pair(views, **settings):
    """Return models of both precisions; those of "auto" have at most 2000 training samples."""
    settings = {"n_clusters": 4, "kernel": RBF(), "rho": 0.5, "random_state": 0, **settings}
    return [TMvKSCR(dtype=dtype, **settings).fit(views) for dtype in ("auto", "float64")]


def samples(n, seed=0, spread=1.0, widths=(4, 6, 3)):
    return list(make_blobs(n, 4, widths, spread, seed)[0].values())


def on_edges(model, views, n=300):
    """Return samples so near to the edges between clusters that float32 does not find their sides, by bisection.

    Samples exactly on an edge, to the last bit of float64, have no label that is independent of the batch.
    """
    labels, rng = model.predict(views), np.random.default_rng(0)
    first, second = rng.integers(len(labels), size=(2, 4 * n))
    differ = np.flatnonzero(labels[first] != labels[second])[:n]
    ends = [[x[rows[differ]] for x in views] for rows in (first, second)]
    for _ in range(24):
        middle = [(a + b) / 2 for a, b in zip(*ends, strict=True)]
        same = (model.predict(middle) == labels[first[differ]])[:, None]
        ends = [
            [np.where(same, m, a) for m, a in zip(middle, ends[0], strict=True)],
            [np.where(same, b, m) for m, b in zip(middle, ends[1], strict=True)],
        ]
    return [np.vstack([a, b]) for a, b in zip(*ends, strict=True)]


@pytest.fixture(scope="module", autouse=True)
def any_number_of_rows():
    """Score also single rows in float32."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coview.model.kernel_predictor._FEWEST_ROWS", 1)
        yield


@pytest.fixture
def float64_rows(monkeypatch):
    """The numbers of rows that are scored in float64."""
    counts = []
    original = ScoreMap.with_tolerance

    def counted(self, x):
        counts.append(x.shape[0])
        return original(self, x)

    monkeypatch.setattr(ScoreMap, "with_tolerance", counted)
    return counts


@ASSIGNER
@KERNEL
@pytest.mark.parametrize("spread", [0.3, 1.0, 5.0])
def test_labels_are_those_of_float64(assigner, kernel, spread, float64_rows):
    views, new = samples(300, spread=spread), samples(3000, seed=1, spread=spread)
    auto, wide = pair(views, kernel=kernel, assigner=assigner)
    float64_rows.clear()
    labels = auto.predict(new)
    assert sum(float64_rows) < 0.1 * len(new[0]) * len(new)
    np.testing.assert_array_equal(labels, wide.predict(new))
    membership = auto.predict_proba(new)
    np.testing.assert_array_equal(membership.argmax(axis=1), labels)
    # Scores of float32 have six digits, and a change of a direction is multiplied by at most ln(5) / 0.4 = 4.
    np.testing.assert_allclose(membership, wide.predict_proba(new), atol=1e-4)
    np.testing.assert_array_equal(auto.transform(new), wide.transform(new))


@ASSIGNER
@KERNEL
def test_labels_on_edges_between_clusters_are_those_of_float64(assigner, kernel):
    views = samples(300)
    auto, wide = pair(views, kernel=kernel, assigner=assigner)
    edges = on_edges(wide, views)
    expected = wide.predict(edges)
    np.testing.assert_array_equal(auto.predict(edges), expected)
    np.testing.assert_array_equal(auto.predict_proba(edges).argmax(axis=1), expected)
    single = np.concatenate([auto.predict([x[[i]] for x in edges]) for i in range(0, len(expected), 10)])
    np.testing.assert_array_equal(single, expected[::10])
    # Without the second pass they differ.
    predictor = auto.model_.predictor
    scores = sum(predictor.score_maps[f"view{v}"].in_float32()(x)[0] / 3 for v, x in enumerate(edges))
    assert (predictor.labels_of_scores(scores) != expected).any()


@ASSIGNER
def test_labels_of_samples_that_lack_views_are_those_of_float64(assigner):
    views, new = samples(300), samples(600, seed=1)
    rng = np.random.default_rng(0)
    for v in (0, 2):
        for table in (views, new):
            table[v][rng.random(len(table[v])) < 0.3] = np.nan
    auto, wide = pair(views, assigner=assigner)
    np.testing.assert_array_equal(auto.predict(new), wide.predict(new))
    edges = on_edges(wide, [x[~np.isnan(x).any(axis=1)][:60] for x in views], n=50)
    edges[1][::2] = np.nan
    np.testing.assert_array_equal(auto.predict(edges), wide.predict(edges))
    only_one = {"view1": new[1]}
    np.testing.assert_array_equal(auto.predict(only_one), wide.predict(only_one))


def test_other_outputs_are_those_of_float64():
    views, new = samples(300), samples(500, seed=1)
    auto, wide = pair(views)
    np.testing.assert_array_equal(auto.score_samples(new), wide.score_samples(new))
    np.testing.assert_array_equal(auto.predict(new, novel_below=0.1), wide.predict(new, novel_below=0.1))
    for name, labels in auto.predict(new, per_view=True).items():
        np.testing.assert_array_equal(labels, wide.predict(new, per_view=True)[name])


@pytest.mark.parametrize("kernels", [[RBF(), NeighborGraph(), Linear()], [NormalizedPolynomial(), RBF(), RBF()]])
def test_views_of_several_kernels(kernels, float64_rows):
    """Views without a bound of the error are scored in float64."""
    views, new = ([np.abs(x) for x in samples(n, seed=n)] for n in (300, 400))
    auto, wide = pair(views, kernel=kernels)
    float64_rows.clear()
    labels = auto.predict(new)
    assert 0 < sum(float64_rows) < 400 * 3 or Linear() not in kernels
    np.testing.assert_array_equal(labels, wide.predict(new))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_outliers_and_huge_rows(scale):
    views, new = samples(300), samples(300, seed=1)
    for table in (views, new):
        table[0][::7] *= 1e3
        table[1] += 1e6
        table[2][::5] *= 1e150
    kernels = [RBF(scale), RBF(scale), RBF(1e250)]
    auto, wide = pair(views, kernel=kernels)
    np.testing.assert_array_equal(auto.predict(new), wide.predict(new))


def test_float64_is_used_if_most_rows_need_it(float64_rows):
    """A nearly constant kernel: differences between rows are smaller than the rounding errors of float32."""
    views, new = samples(100), samples(5000, seed=1)
    auto, wide = pair(views, kernel=RBF(1e7))
    float64_rows.clear()
    labels = auto.predict(new)
    assert sum(float64_rows) == 3 * 5000
    np.testing.assert_array_equal(labels, wide.predict(new))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_given_precision_is_used_for_all_rows(dtype, float64_rows):
    views, new = samples(100), samples(200, seed=1)
    model = TMvKSCR(4, kernel=RBF(), dtype=dtype, random_state=0).fit(views)
    float64_rows.clear()
    model.predict(new)
    assert float64_rows == [200] * 3


def test_few_rows_are_scored_in_float64(float64_rows, monkeypatch):
    monkeypatch.setattr("coview.model.kernel_predictor._FEWEST_ROWS", 50)
    views, new = samples(100, spread=5.0), samples(60, seed=1, spread=5.0)
    model = KSC(4, kernel=RBF(), random_state=0).fit(views[0])
    float64_rows.clear()
    model.predict(new[0][:49])
    assert float64_rows == [49]
    model.predict(new[0])
    assert sum(float64_rows) < 60 + 49


def test_sparse_new_rows_of_dense_training_rows():
    x, new = samples(200)[0], samples(100, seed=1)[0]
    auto, wide = (KSC(4, kernel=RBF(), dtype=dtype, random_state=0).fit(x) for dtype in ("auto", "float64"))
    np.testing.assert_array_equal(auto.predict(sp.csr_array(new)), wide.predict(new))


@pytest.mark.parametrize("assigner", ["codebook", "directions"])
def test_labels_of_fixed_size_saved_and_preprocessed_models_are_those_of_float64(assigner, tmp_path):
    views = samples(4000, spread=0.7)
    found = []
    for dtype in ("auto", "float64"):
        method = TMvKSCR(4, kernel=RBF(), rho=0.5, assigner=assigner, dtype=dtype, random_state=0)
        model = FixedSize(Preprocessed(method, "standard"), n_train=300, random_state=0).fit(views)
        save(model, tmp_path / dtype)
        loaded = load(tmp_path / dtype)
        np.testing.assert_array_equal(loaded.predict(views), model.labels_)
        found.append(model.labels_)
    np.testing.assert_array_equal(*found)
    sizes = [(tmp_path / dtype).stat().st_size for dtype in ("auto", "float64")]
    assert abs(sizes[0] - sizes[1]) < 100  # the name of the precision


def test_each_view_with_its_own_hidden_features():
    views, new = samples(200), samples(500, seed=1)
    auto, wide = (MvKSC(4, kernel=RBF(), dtype=dtype, random_state=0).fit(views) for dtype in ("auto", "float64"))
    np.testing.assert_array_equal(auto.predict(new), wide.predict(new))


@given(
    st.sampled_from([RBF(), RBF(0.05), RBF(50.0), NormalizedPolynomial(), Cosine()]),
    st.sampled_from([Codebook(), Directions(n_init=1)]),
    st.integers(2, 4),
    st.integers(0, 2**32 - 1),
    st.floats(-3, 3),
)
def test_labels_of_any_rows_are_those_of_float64(kernel, assigner, n_clusters, seed, scale):
    rng = np.random.default_rng(seed)
    views = [10.0**scale * rng.uniform(0.01, 1, size=(60, d)) for d in rng.integers(1, 5, size=2)]
    train = [x[:30] for x in views]
    auto, wide = pair(train, kernel=kernel, assigner=assigner, n_clusters=n_clusters)
    np.testing.assert_array_equal(auto.predict(views), wide.predict(views))
    if len(set(wide.predict(views))) > 1:
        edges = on_edges(wide, views, n=20)
        np.testing.assert_array_equal(auto.predict(edges), wide.predict(edges))


def test_a_view_of_weight_zero_with_rows_out_of_bounds_gives_no_warning():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    a, b = (4 * rng.normal(size=(2, d))[truth] + rng.normal(size=(400, d)) for d in (5, 8))
    model = TMvKSCR(2, kernel=RBF(), beta={"a": 1, "b": 0}, random_state=0).fit({"a": a[:100], "b": b[:100]})
    b[300] = 1e6
    exact = TMvKSCR(2, kernel=RBF(), beta={"a": 1, "b": 0}, dtype="float64", random_state=0)
    expected = exact.fit({"a": a[:100], "b": b[:100]}).predict({"a": a, "b": b})
    assert np.array_equal(model.predict({"a": a, "b": b}), expected)
