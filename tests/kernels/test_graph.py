"""What graph kernels share: metrics, independence of batches, duplicates, files, and degenerate views."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from coview import (
    RBF,
    FixedSize,
    FuzzyGraph,
    InputError,
    NeighborGraph,
    Precomputed,
    TMvKSCR,
    ViewsReader,
    label_file,
    load,
    save,
)
from coview.preprocess.steps import parse_steps
from tests.conftest import make_blobs
from tests.kernels.graphs import FORMATS, KINDS, METRICS, WIDTHS, some_rows
from tests.test_properties import awkward_views, random_views

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # fewer clusters, or few gaps

# Distances differ by rounding errors; the bandwidths of FuzzyGraph are exact to nine digits.
CLOSE = {"rtol": 1e-7, "atol": 1e-12}


def same(a, b):
    return a.shape == b.shape and (a != b).nnz == 0


# Metrics, units and formats


@KINDS
@FORMATS
def test_cosine_is_the_graph_of_l2_normalised_rows(make, kind):
    rows = some_rows(30, 5)
    expected = kind(4)(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    np.testing.assert_allclose(kind(4, metric="cosine")(make(7 * rows)), expected, **CLOSE)


@KINDS
def test_an_outlier_does_not_change_the_neighbours_of_other_sparse_rows(kind):
    rows = (np.random.default_rng(0).random((400, 60)) < 0.05).astype(float)
    rows[7, 3] = 1e5
    dense_graph, sparse_graph = kind().against(rows).gram, kind().against(sp.csr_array(rows)).gram
    np.testing.assert_allclose(sparse_graph.toarray(), dense_graph.toarray(), **CLOSE)


@KINDS
@pytest.mark.parametrize("steps", ["l2", "total", "pca5", "standard+l2"])
def test_training_rows_are_recognised_after_preprocessing_in_any_memory_layout(steps, kind):
    rows = np.asfortranarray(abs(some_rows(150, 23)))
    preprocess = parse_steps(steps).learn(rows)
    for kernel in (kind(), kind(metric="cosine")):
        similarity = kernel.against(preprocess(rows))
        whole = similarity.block(preprocess(rows)).toarray()
        alone = np.vstack([similarity.block(preprocess(rows[i : i + 1])).toarray() for i in range(150)])
        np.testing.assert_array_equal(whole, similarity.gram.toarray())
        np.testing.assert_array_equal(alone, whole)


@KINDS
@FORMATS
@METRICS
@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-3, 1e8, 1e200, 1e300])
def test_graphs_do_not_depend_on_the_unit_of_the_rows(unit, metric, make, kind):
    rows, new = some_rows(30, 3), some_rows(5, 3, seed=1)
    graph = kind(4, metric=metric)
    np.testing.assert_allclose(graph(make(new * unit), make(rows * unit)), graph(new, rows), **CLOSE)


@KINDS
def test_seuclidean_is_the_graph_of_standardised_rows(kind):
    units, places = np.array([1.0, 1e-3, 1e5, 7.0]), np.array([0.0, 5.0, -1e4, 0.3])
    rows, new = some_rows(40, 4) * units + places, some_rows(6, 4, seed=1) * units + places
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    expected = kind(4)((new - mean) / deviation, (rows - mean) / deviation)
    np.testing.assert_allclose(kind(4, metric="seuclidean")(new, rows), expected, **CLOSE)
    assert not np.allclose(kind(4)(new, rows), expected)


@KINDS
def test_sparse_columns_are_divided_by_their_standard_deviation(kind):
    rng = np.random.default_rng(0)
    rows, new = (rng.poisson(0.7, size=(n, 12)) * 10.0 ** rng.integers(-3, 4, size=12) for n in (60, 7))
    expected = kind(4)(new / rows.std(axis=0), rows / rows.std(axis=0))
    similarity = kind(4, metric="seuclidean").against(sp.csr_array(rows))
    assert sp.issparse(similarity.rows)
    np.testing.assert_allclose(similarity(sp.csr_array(new)), expected, **CLOSE)


@KINDS
@FORMATS
@pytest.mark.parametrize("value", [0.0, 1.0, 1e9])
def test_columns_that_are_constant_in_training_do_not_count_under_seuclidean(value, make, kind):
    rows, new = some_rows(40, 3), some_rows(6, 3, seed=1)
    graph = kind(4, metric="seuclidean")
    expected = graph(make(new), make(rows))
    more, others = (np.column_stack([x, np.full(len(x), c)]) for x, c in ((rows, value), (new, value + 5)))
    np.testing.assert_allclose(graph(make(others), make(more)), expected, **CLOSE)


@KINDS
def test_new_rows_are_divided_by_the_standard_deviation_of_the_training_rows(kind):
    rows, new = some_rows(40, 3), 1e3 * some_rows(6, 3, seed=1)
    graph = kind(4, metric="seuclidean")
    deviation = rows.std(axis=0)
    np.testing.assert_allclose(graph(new, rows), kind(4)(new / deviation, rows / deviation), **CLOSE)


@KINDS
@FORMATS
def test_training_rows_and_new_rows_may_differ_in_format(make, kind):
    rows, new = some_rows(30, 3), some_rows(5, 3, seed=1)
    for other in (np.array, sp.csr_array):
        similarity = kind(4).against(make(rows))
        np.testing.assert_allclose(similarity(other(new)), kind(4)(new, rows), **CLOSE)
        assert same(similarity.block(other(rows)), similarity.gram)


@KINDS
@FORMATS
@pytest.mark.parametrize("metric", ["euclidean", "seuclidean"])
@pytest.mark.parametrize(("unit", "far"), [(1, 1e12), (1, 1e200), (1, 1e308), (1e-300, 1e308), (1e-200, 1e-150)])
def test_a_new_row_far_away_has_similarity_zero_to_all_rows(unit, far, metric, make, kind):
    rows = some_rows(30, 3) * unit
    new = np.vstack([np.full((1, 3), far), rows[:1] + 0.01 * unit])
    graph = kind(4, metric=metric)
    block = graph(make(new), make(rows))
    assert not block[0].any()
    assert block[1].any()
    np.testing.assert_array_equal(block[1], graph(make(new[1:]), make(rows))[0])


@KINDS
@FORMATS
@METRICS
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_rows_have_finite_similarities(n, metric, make, kind):
    rows, new = some_rows(n, 3), some_rows(4, 3, seed=1)
    similarity = kind(metric=metric).against(make(rows))
    gram = similarity.gram.toarray()
    assert (np.diag(gram) > 0).all()
    np.testing.assert_array_equal(gram, gram.T)
    block = similarity(make(new))
    assert np.isfinite(block).all()
    assert (block.max(axis=1) > 0).all()
    np.testing.assert_array_equal(similarity(make(rows)), gram)


@KINDS
def test_duplicate_entries_of_csr_rows_are_summed(kind):
    parts = (np.array([1.0, 2.0, 5.0, 1.0]), np.array([1, 1, 0, 0]), np.array([0, 2, 3, 4]))
    rows = sp.csr_array(parts, shape=(3, 2))
    np.testing.assert_array_equal(kind(1)(rows), kind(1)(rows.toarray()))


# Duplicates


@KINDS
@FORMATS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_equal_to_a_training_row_is_treated_as_that_row(dtype, make, kind):
    rows = some_rows(60, 12).astype(dtype)
    rows[40:50] = rows[:10]
    similarity = kind(4).against(make(rows), dtype)
    assert similarity.gram.dtype == dtype
    expected = similarity.gram[np.r_[0:40, 0:10, 50:60]]
    assert same(similarity.block(make(rows)), expected)
    assert same(similarity.training_block(slice(30, 60), 60), expected[30:])


# Batches, threads, files


@KINDS
@FORMATS
@WIDTHS
@METRICS
def test_similarities_of_a_row_are_bitwise_equal_in_any_batch(metric, width, make, kind):
    rows, new = make(some_rows(700, width)), some_rows(300, width, seed=1)
    new[5] = some_rows(700, width)[3]
    similarity = kind(6, metric=metric).against(rows)
    whole = similarity.block(make(new))
    parts = [similarity.block(make(new)[start : start + 7]) for start in range(0, 300, 7)]
    assert same(sp.vstack(parts), whole)


@KINDS
@given(random_views() | awkward_views(), st.sampled_from([0.0, 0.25, 1.0]), st.integers(1, 12), st.data())
def test_predict_gives_a_row_the_same_label_in_any_batch(kind, views, rho, near, data):
    try:
        model = TMvKSCR(3, kernel=kind(near), rho=rho, random_state=0).fit(views)
    except InputError as error:
        assert "has the same values in all" in str(error)
        assume(False)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    batch = [np.vstack([x, x + rng.integers(-1, 2, size=x.shape) / 2]) for x in views]
    labels = model.predict(batch)
    np.testing.assert_array_equal(labels[: len(views[0])], model.labels_)
    one_by_one = [model.predict([x[i : i + 1] for x in batch])[0] for i in range(len(labels))]
    np.testing.assert_array_equal(one_by_one, labels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "kernel",
    [NeighborGraph(), FuzzyGraph(), [NeighborGraph(5), RBF(), FuzzyGraph(metric="cosine")]],
    ids=["NeighborGraph", "FuzzyGraph", "some dense"],
)
def test_models_predict_their_own_labels_before_and_after_saving(kernel, dtype, tmp_path):
    views, truth = make_blobs(160)
    repeated = {name: np.vstack([x[:120], x[:9]]) for name, x in views.items()}
    model = TMvKSCR(3, kernel=kernel, rho=0.5, dtype=dtype, random_state=0).fit(repeated)
    np.testing.assert_array_equal(model.predict(repeated), model.labels_)
    np.testing.assert_array_equal(model.transform(repeated), model.scores_)
    assert adjusted_rand_score(truth, model.predict(views)) == 1
    assert all(adjusted_rand_score(truth[:120], labels[:120]) > 0.9 for labels in model.view_labels_.values())
    same_model = load(save(model, tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(same_model.transform(views), model.transform(views))
    np.testing.assert_array_equal(same_model.predict(views), model.predict(views))
    np.testing.assert_array_equal(same_model.predict(repeated, per_view=True)["a"], model.view_labels_["a"])


@KINDS
@METRICS
def test_labels_do_not_depend_on_the_number_of_threads(kind, metric):
    views, _ = make_blobs(2100, widths=(12, 3), spread=1.0)
    one, two = (TMvKSCR(3, kernel=kind(metric=metric), rho=0.5, n_jobs=n, random_state=0).fit(views) for n in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)


@KINDS
def test_fixed_size_labels_all_rows_from_the_graph_of_some(kind):
    views, truth = make_blobs(400)
    model = FixedSize(TMvKSCR(3, kernel=kind(), random_state=0), n_train=120, random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@KINDS
def test_streams_label_rows_as_predict_does(tmp_path, kind):
    views, _ = make_blobs(300, spread=1.0)
    model = TMvKSCR(3, kernel=kind(), random_state=0).fit({name: x[:100] for name, x in views.items()})
    labels = np.load(label_file(model, ViewsReader(views, batch_size=37), tmp_path / "labels.npy"))
    np.testing.assert_array_equal(labels, model.predict(views))


@KINDS
def test_dask_chunks_get_the_labels_that_predict_gives(kind):
    da = pytest.importorskip("dask.array", reason='Dask is missing; run pip install "coview[dask]"')
    from coview import distributed

    views, _ = make_blobs(300, spread=1.0)
    model = TMvKSCR(3, kernel=kind(), random_state=0).fit({name: x[:100] for name, x in views.items()})
    chunks = {name: da.from_array(x, chunks=(70, -1)) for name, x in views.items()}
    np.testing.assert_array_equal(distributed.predict(model, chunks).compute(), model.predict(views))


@KINDS
def test_entropy_selection_works_on_graphs(kind):
    views, truth = make_blobs(200)
    inner = TMvKSCR(3, kernel=kind(3), random_state=0)
    model = FixedSize(inner, n_train=60, select="entropy", random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1


@KINDS
def test_a_graph_and_a_precomputed_gram_matrix_can_be_combined(kind):
    views, truth = make_blobs(90)
    views = {"a": views["a"], "b": RBF()(views["b"])}
    kernel = {"a": kind(), "b": Precomputed()}
    model = TMvKSCR(3, kernel=kernel, random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(views), model.labels_)


# Degenerate views


@KINDS
def test_a_constant_view_is_refused_by_name(kind):
    views, _ = make_blobs(40)
    views["b"] = np.ones((40, 3))
    with pytest.raises(
        InputError, match="view 'b' has the same values in all of its 40 samples under " + kind.__name__
    ):
        TMvKSCR(3, kernel=kind()).fit(views)
    with pytest.raises(InputError, match="view 'b' has the same values"):
        TMvKSCR(3, kernel=kind(metric="cosine")).fit({**views, "b": np.arange(1.0, 41)[:, None]})


@KINDS
@FORMATS
def test_multiples_of_a_row_are_constant_under_cosine(make, kind):
    rows = np.outer(np.arange(1.0, 41.0), [1.0, 2.0, 3.3])
    with pytest.raises(InputError, match="view 'a' has the same values in all of its 40 samples"):
        kind(metric="cosine").check_training("a", make(rows))
    kind().check_training("a", make(rows))


@KINDS
def test_a_view_that_varies_only_within_rounding_is_constant_under_seuclidean(kind):
    rows = 1e9 + 1e-7 * np.round(some_rows(40, 2))
    with pytest.raises(InputError, match="view 'a' has the same values in all of its 40 samples"):
        kind(metric="seuclidean").check_training("a", rows)


@KINDS
def test_a_view_with_one_different_row_is_not_constant(kind):
    x = np.zeros((40, 2))
    x[33] = 1
    assert kind().check_training("x", x) is None
    assert kind().check_training("x", x[:1]) is None


@KINDS
def test_the_components_of_disconnected_graphs_are_clusters(kind):
    truth = np.repeat([0, 1, 2], 40)
    views = [some_rows(120, d) + 1000 * truth[:, None] for d in (2, 12)]
    for rho in (0.25, 1.0):  # the product keeps only edges of both graphs, and would have more components
        model = TMvKSCR(3, kernel=kind(5), rho=rho, random_state=0).fit(views)
        assert adjusted_rand_score(truth, model.labels_) == 1


@KINDS
def test_as_many_neighbours_as_there_are_rows_give_a_full_graph(kind):
    views, truth = make_blobs(60)
    for near in (59, 60, 1000):
        model = TMvKSCR(3, kernel=kind(near), random_state=0).fit(views)
        assert model.model_.predictor.score_maps["a"].similarity.gram.nnz == 60**2
        assert adjusted_rand_score(truth, model.labels_) == 1


@KINDS
def test_many_duplicates_of_a_row_are_one_cluster(kind):
    views, truth = make_blobs(120)
    views["a"][truth == 0] = views["a"][np.flatnonzero(truth == 0)[0]]
    model = TMvKSCR(3, kernel=kind(), random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(views), model.labels_)
