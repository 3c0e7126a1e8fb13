"""The neighbour graph as a kernel: its formula, independence of batches, and degenerate views."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from coview import (
    KSC,
    RBF,
    FixedSize,
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
from tests import naive
from tests.conftest import make_blobs
from tests.test_properties import awkward_views, random_views

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # fewer clusters, or few gaps

FORMATS = pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "csr"])
WIDTHS = pytest.mark.parametrize("width", [2, 20], ids=["narrow", "wide"])

# Exponents of a few units, each exact up to a few rounding errors.
CLOSE = {"rtol": 1e-12, "atol": 1e-14}


def some_rows(n, width, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width))


def same(a, b):
    return a.shape == b.shape and (a != b).nnz == 0


# Formulas


@FORMATS
@WIDTHS
@pytest.mark.parametrize(("near", "scale"), [(1, 1), (3, 2), (2, 5), (10, 7), (100, 100)])
def test_the_gram_matrix_follows_the_plain_formula(near, scale, width, make):
    rows = some_rows(25, width)
    expected, scales, radii = naive.neighbour_graph(rows, near, scale)
    similarity = NeighborGraph(near, scale).against(make(rows))
    np.testing.assert_allclose(similarity.gram.toarray(), expected, **CLOSE)
    np.testing.assert_allclose(similarity.bandwidths, scales, **CLOSE)
    np.testing.assert_allclose(similarity.radii, radii, **CLOSE)


@FORMATS
@WIDTHS
@pytest.mark.parametrize(("near", "scale"), [(1, 1), (3, 2), (2, 5), (100, 100)])
def test_new_rows_follow_the_plain_formula(near, scale, width, make):
    rows, new = some_rows(25, width), some_rows(12, width, seed=1)
    block = NeighborGraph(near, scale)(make(new), make(rows))
    expected = [naive.neighbour_graph_row(x, rows, near, scale) for x in new]
    np.testing.assert_allclose(block, expected, **CLOSE)


@given(awkward_views(), st.integers(1, 4), st.integers(1, 4))
def test_duplicates_and_ties_follow_the_plain_formula(views, near, scale):
    rows = views[0]
    similarity = NeighborGraph(near, scale).against(rows)
    np.testing.assert_allclose(similarity.gram.toarray(), naive.neighbour_graph(rows, near, scale)[0], **CLOSE)
    for x in (np.array([[0.5, 0.0]]), np.array([[9.0, -3.0]])):
        expected = naive.neighbour_graph_row(x[0], rows, near, scale)
        np.testing.assert_allclose(similarity(x)[0], expected, **CLOSE)


@FORMATS
def test_cosine_is_the_graph_of_l2_normalised_rows(make):
    rows = some_rows(30, 5)
    expected = NeighborGraph(4, 3)(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    np.testing.assert_allclose(NeighborGraph(4, 3, metric="cosine")(make(7 * rows)), expected, **CLOSE)


@FORMATS
def test_an_all_zero_row_has_cosine_distance_one_from_all_others(make):
    rows = np.vstack([some_rows(30, 5), np.zeros((2, 5))])
    similarity = NeighborGraph(4, 3, metric="cosine").against(make(rows))
    assert similarity.bandwidths[-2:] == pytest.approx([1, 1])
    assert similarity(make(np.zeros((1, 5))))[0, -2:].tolist() == [1, 1]


@FORMATS
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_bandwidth_of_many_duplicates_has_the_unit_of_the_rows(unit, make):
    rows = np.vstack([np.ones((20, 3)), some_rows(20, 3)])
    graph = NeighborGraph(4, 3)
    expected = naive.neighbour_graph(rows, 4, 3)[0]
    np.testing.assert_allclose(graph.against(make(rows * unit)).gram.toarray(), expected, **CLOSE)
    new = some_rows(2, 3, seed=1)
    np.testing.assert_allclose(
        graph(make(new * unit), make(rows * unit)),
        [naive.neighbour_graph_row(row, rows, 4, 3) for row in new],
        **CLOSE,
    )


def test_an_outlier_does_not_change_the_neighbours_of_other_sparse_rows():
    rows = (np.random.default_rng(0).random((400, 60)) < 0.05).astype(float)
    rows[7, 3] = 1e5
    dense_graph, sparse_graph = NeighborGraph().against(rows).gram, NeighborGraph().against(sp.csr_array(rows)).gram
    np.testing.assert_allclose(sparse_graph.toarray(), dense_graph.toarray(), **CLOSE)


@pytest.mark.parametrize("steps", ["l2", "total", "pca5", "standard+l2"])
def test_training_rows_are_recognised_after_preprocessing_in_any_memory_layout(steps):
    rows = np.asfortranarray(abs(some_rows(150, 23)))
    preprocess = parse_steps(steps).learn(rows)
    for kernel in (NeighborGraph(), NeighborGraph(metric="cosine")):
        similarity = kernel.against(preprocess(rows))
        whole = similarity.block(preprocess(rows)).toarray()
        alone = np.vstack([similarity.block(preprocess(rows[i : i + 1])).toarray() for i in range(150)])
        np.testing.assert_array_equal(whole, similarity.gram.toarray())
        np.testing.assert_array_equal(alone, whole)


@FORMATS
@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e8, 1e200])
def test_graphs_do_not_depend_on_the_unit_of_the_rows(unit, make):
    rows, new = some_rows(30, 3), some_rows(5, 3, seed=1)
    expected = NeighborGraph(4, 3)(new, rows)
    np.testing.assert_allclose(NeighborGraph(4, 3)(make(new * unit), make(rows * unit)), expected, rtol=1e-9)


@FORMATS
def test_training_rows_and_new_rows_may_differ_in_format(make):
    rows, new = some_rows(30, 3), some_rows(5, 3, seed=1)
    for kind in (np.array, sp.csr_array):
        similarity = NeighborGraph(4, 3).against(make(rows))
        np.testing.assert_allclose(similarity(kind(new)), NeighborGraph(4, 3)(new, rows), **CLOSE)
        assert same(similarity.block(kind(rows)), similarity.gram)


@FORMATS
@pytest.mark.parametrize("far", [1e12, 1e200, 1e308])
def test_a_new_row_far_away_has_similarity_zero_to_all_rows(far, make):
    rows = some_rows(30, 3)
    new = np.vstack([np.full((1, 3), far), rows[:1] + 0.01])
    block = NeighborGraph(4, 3)(make(new), make(rows))
    assert not block[0].any()
    np.testing.assert_array_equal(block[1], NeighborGraph(4, 3)(make(new[1:]), make(rows))[0])


def test_close_pairs_are_resolved_among_distant_rows():
    place = np.repeat([0.0, 1e9, -3e12], 10)
    rows = np.tile(some_rows(10, 20), (3, 1)) + place[:, None]
    gram = NeighborGraph(3, 2).against(rows).gram.toarray()
    np.testing.assert_allclose(gram, naive.neighbour_graph(rows, 3, 2)[0], **CLOSE)


def test_duplicate_entries_of_csr_rows_are_summed():
    parts = (np.array([1.0, 2.0, 5.0, 1.0]), np.array([1, 1, 0, 0]), np.array([0, 2, 3, 4]))
    rows = sp.csr_array(parts, shape=(3, 2))
    np.testing.assert_array_equal(NeighborGraph(1, 1)(rows), NeighborGraph(1, 1)(rows.toarray()))


# Parameters


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *((name, value) for name in ("n_neighbors", "scale_neighbor") for value in (0, -1, 2.5, np.nan, "many", True)),
        ("metric", "manhattan"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameter, value):
    with pytest.raises(InputError, match=rf"^NeighborGraph\.{parameter}={value!r}: expected "):
        NeighborGraph(**{parameter: value})


def test_integers_from_a_command_line_become_int():
    assert repr(NeighborGraph(5.0, 3.0)) == "NeighborGraph(n_neighbors=5, scale_neighbor=3, metric='euclidean')"


# Duplicates


@FORMATS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_equal_to_a_training_row_is_treated_as_that_row(dtype, make):
    rows = some_rows(60, 12).astype(dtype)
    rows[40:50] = rows[:10]
    similarity = NeighborGraph(4, 3).against(make(rows), dtype)
    assert similarity.gram.dtype == dtype
    expected = similarity.gram[np.r_[0:40, 0:10, 50:60]]
    assert same(similarity.block(make(rows)), expected)
    assert same(similarity.training_block(slice(30, 60), 60), expected[30:])


def test_rows_with_many_duplicates_are_similar_to_duplicates_only():
    rows = np.repeat(some_rows(3, 2), 30, axis=0)
    gram = NeighborGraph(5, 3).against(rows).gram.toarray()
    assert set(np.unique(gram)) == {0.0, 1.0}
    for start in (0, 30, 60):
        assert gram[start : start + 30].sum() == gram[start : start + 30, start : start + 30].sum()


# Batches, threads, files


@FORMATS
@WIDTHS
def test_similarities_of_a_row_are_bitwise_equal_in_any_batch(width, make):
    rows, new = make(some_rows(700, width)), some_rows(300, width, seed=1)
    new[5] = some_rows(700, width)[3]
    similarity = NeighborGraph(6, 4).against(rows)
    whole = similarity.block(make(new))
    parts = [similarity.block(make(new)[start : start + 7]) for start in range(0, 300, 7)]
    assert same(sp.vstack(parts), whole)


@given(random_views() | awkward_views(), st.sampled_from([0.0, 0.25, 1.0]), st.integers(1, 12), st.data())
def test_predict_gives_a_row_the_same_label_in_any_batch(views, rho, near, data):
    try:
        model = TMvKSCR(3, kernel=NeighborGraph(near, 3), rho=rho, random_state=0).fit(views)
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
    [NeighborGraph(), [NeighborGraph(5), RBF(), NeighborGraph(metric="cosine")]],
    ids=["graphs", "some dense"],
)
def test_models_predict_their_own_labels_before_and_after_saving(kernel, dtype, tmp_path):
    views, truth = make_blobs(160)
    repeated = {name: np.vstack([x[:120], x[:9]]) for name, x in views.items()}
    model = TMvKSCR(3, kernel=kernel, dtype=dtype, random_state=0).fit(repeated)
    np.testing.assert_array_equal(model.predict(repeated), model.labels_)
    np.testing.assert_array_equal(model.transform(repeated), model.scores_)
    assert adjusted_rand_score(truth, model.predict(views)) == 1
    assert all(adjusted_rand_score(truth[:120], labels[:120]) > 0.9 for labels in model.view_labels_.values())
    same_model = load(save(model, tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(same_model.transform(views), model.transform(views))
    np.testing.assert_array_equal(same_model.predict(views), model.predict(views))
    np.testing.assert_array_equal(same_model.predict(repeated, per_view=True)["a"], model.view_labels_["a"])


def test_an_invalid_graph_is_not_saved(tmp_path):
    x = make_blobs(40)[0]["a"]
    for change, message in (
        (lambda gram: gram.toarray(), "expected a csr_array, got ndarray"),
        (lambda gram: -gram, "expected a number at least 0"),
        (lambda gram: 2 * gram, "expected a number at most 1"),
    ):
        model = KSC(3, kernel=NeighborGraph(), random_state=0).fit(x)
        similarity = model._score_maps["view0"].similarity
        vars(similarity)["gram"] = change(similarity.gram)
        with pytest.raises(InputError, match=message):
            save(model, tmp_path / "model.safetensors")


@pytest.mark.parametrize("kernel", [NeighborGraph(), NeighborGraph(metric="cosine")], ids=["euclidean", "cosine"])
def test_labels_do_not_depend_on_the_number_of_threads(kernel):
    views, _ = make_blobs(2100, widths=(12, 3), spread=1.0)
    one, two = (TMvKSCR(3, kernel=kernel, n_jobs=n, random_state=0).fit(views) for n in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)


def test_fixed_size_labels_all_rows_from_the_graph_of_some():
    views, truth = make_blobs(400)
    model = FixedSize(TMvKSCR(3, kernel=NeighborGraph(), random_state=0), n_train=120, random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_streams_label_rows_as_predict_does(tmp_path):
    views, _ = make_blobs(300, spread=1.0)
    model = TMvKSCR(3, kernel=NeighborGraph(), random_state=0).fit({name: x[:100] for name, x in views.items()})
    labels = np.load(label_file(model, ViewsReader(views, batch_size=37), tmp_path / "labels.npy"))
    np.testing.assert_array_equal(labels, model.predict(views))


def test_dask_chunks_get_the_labels_that_predict_gives():
    da = pytest.importorskip("dask.array", reason='Dask is missing; run pip install "coview[dask]"')
    from coview import distributed

    views, _ = make_blobs(300, spread=1.0)
    model = TMvKSCR(3, kernel=NeighborGraph(), random_state=0).fit({name: x[:100] for name, x in views.items()})
    chunks = {name: da.from_array(x, chunks=(70, -1)) for name, x in views.items()}
    np.testing.assert_array_equal(distributed.predict(model, chunks).compute(), model.predict(views))


def test_entropy_selection_works_on_graphs():
    views, truth = make_blobs(200)
    inner = TMvKSCR(3, kernel=NeighborGraph(3), random_state=0)
    model = FixedSize(inner, n_train=60, select="entropy", random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1


def test_a_graph_and_a_precomputed_gram_matrix_can_be_combined():
    views, truth = make_blobs(90)
    views = {"a": views["a"], "b": RBF()(views["b"])}
    kernel = {"a": NeighborGraph(), "b": Precomputed()}
    model = TMvKSCR(3, kernel=kernel, random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(views), model.labels_)


# Degenerate views


def test_a_constant_view_is_refused_by_name():
    views, _ = make_blobs(40)
    views["b"] = np.ones((40, 3))
    with pytest.raises(InputError, match="view 'b' has the same values in all of its 40 samples under NeighborGraph"):
        TMvKSCR(3, kernel=NeighborGraph()).fit(views)
    with pytest.raises(InputError, match="view 'b' has the same values"):
        TMvKSCR(3, kernel=NeighborGraph(metric="cosine")).fit({**views, "b": np.arange(1.0, 41)[:, None]})


@FORMATS
def test_multiples_of_a_row_are_constant_under_cosine(make):
    rows = np.outer(np.arange(1.0, 41.0), [1.0, 2.0, 3.3])
    with pytest.raises(InputError, match="view 'a' has the same values in all of its 40 samples"):
        NeighborGraph(metric="cosine").check_training("a", make(rows))
    NeighborGraph().check_training("a", make(rows))


def test_a_view_with_one_different_row_is_not_constant():
    x = np.zeros((40, 2))
    x[33] = 1
    assert NeighborGraph().check_training("x", x) is None
    assert NeighborGraph().check_training("x", x[:1]) is None


def test_a_single_row_is_similar_to_itself():
    similarity = NeighborGraph().against(np.ones((1, 2)))
    assert similarity(np.ones((1, 2))).tolist() == [[1.0]]
    assert similarity(np.zeros((1, 2)))[0, 0] == pytest.approx(np.exp(-np.sqrt(2)))


def test_the_components_of_disconnected_graphs_are_clusters():
    truth = np.repeat([0, 1, 2], 40)
    views = [some_rows(120, d) + 1000 * truth[:, None] for d in (2, 12)]
    for rho in (0.25, 1.0):  # the product keeps only edges of both graphs, and would have more components
        model = TMvKSCR(3, kernel=NeighborGraph(5), rho=rho, random_state=0).fit(views)
        assert adjusted_rand_score(truth, model.labels_) == 1


def test_isolated_points_are_separate_clusters_without_regularization():
    views, truth = make_blobs(150)
    isolated = {name: np.vstack([x, 1e4 * np.eye(x.shape[1])[:2]]) for name, x in views.items()}
    model = TMvKSCR(5, kernel=NeighborGraph(), rho=1.0, regularization=0, random_state=0).fit(isolated)
    assert adjusted_rand_score(np.r_[truth, 3, 4], model.labels_) == 1
    np.testing.assert_array_equal(model.predict(isolated), model.labels_)


def test_as_many_neighbours_as_there_are_rows_give_a_full_graph():
    views, truth = make_blobs(60)
    for near in (59, 60, 1000):
        model = TMvKSCR(3, kernel=NeighborGraph(near), random_state=0).fit(views)
        assert model._score_maps["a"].similarity.gram.nnz == 60**2
        assert adjusted_rand_score(truth, model.labels_) == 1


def test_many_duplicates_of_a_row_are_one_cluster():
    views, truth = make_blobs(120)
    views["a"][truth == 0] = views["a"][np.flatnonzero(truth == 0)[0]]
    model = TMvKSCR(3, kernel=NeighborGraph(), random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(views), model.labels_)
