"""The neighbour graph as a kernel: against its plain formula, in any batch, and where rows are awkward."""

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
from coview.neighbors import nearest, projected
from coview.neighbors.cells import Cells
from coview.neighbors.duplicates import Duplicates, fingerprints
from coview.neighbors.exact import ExactSearch
from coview.preprocess.steps import parse_steps
from coview.runtime import Workers
from tests import naive
from tests.conftest import make_blobs
from tests.test_properties import awkward_views, random_views

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # fewer clusters, or few gaps

FORMATS = pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "csr"])
WIDTHS = pytest.mark.parametrize("width", [2, 20], ids=["narrow", "wide"])

# Exponents of a few units, each good to some roundings.
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
def test_copies_and_equal_distances_follow_the_plain_formula(views, near, scale):
    rows = views[0]
    similarity = NeighborGraph(near, scale).against(rows)
    np.testing.assert_allclose(similarity.gram.toarray(), naive.neighbour_graph(rows, near, scale)[0], **CLOSE)
    for x in (np.array([[0.5, 0.0]]), np.array([[9.0, -3.0]])):
        expected = naive.neighbour_graph_row(x[0], rows, near, scale)
        np.testing.assert_allclose(similarity(x)[0], expected, **CLOSE)


@FORMATS
def test_cosine_is_the_graph_of_rows_of_length_one(make):
    rows = some_rows(30, 5)
    expected = NeighborGraph(4, 3)(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    np.testing.assert_allclose(NeighborGraph(4, 3, metric="cosine")(make(7 * rows)), expected, **CLOSE)


@FORMATS
def test_an_all_zero_row_is_one_away_from_all_others_by_cosine(make):
    rows = np.vstack([some_rows(30, 5), np.zeros((2, 5))])
    similarity = NeighborGraph(4, 3, metric="cosine").against(make(rows))
    assert similarity.bandwidths[-2:] == pytest.approx([1, 1])
    assert similarity(make(np.zeros((1, 5))))[0, -2:].tolist() == [1, 1]


@FORMATS
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_scale_of_many_copies_has_the_unit_of_the_rows(unit, make):
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


def test_one_long_row_does_not_hide_who_is_near_among_sparse_rows():
    rows = (np.random.default_rng(0).random((400, 60)) < 0.05).astype(float)
    rows[7, 3] = 1e5
    dense_graph, sparse_graph = NeighborGraph().against(rows).gram, NeighborGraph().against(sp.csr_array(rows)).gram
    np.testing.assert_allclose(sparse_graph.toarray(), dense_graph.toarray(), **CLOSE)


def test_a_grid_is_searched_by_the_tree(monkeypatch):
    rows = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    expected = naive.neighbour_graph(rows, 10, 7)[0]
    monkeypatch.setattr(ExactSearch, "near", None)  # by products it would take a time that is quadratic in the rows
    np.testing.assert_allclose(NeighborGraph().against(rows).gram.toarray(), expected, **CLOSE)


@pytest.mark.parametrize("how", ["l2", "total", "pca5", "standard+l2"])
def test_rows_are_known_again_however_they_were_prepared_and_lie_in_memory(how):
    rows = np.asfortranarray(abs(some_rows(150, 23)))
    prepare = parse_steps(how).learn(rows)
    for kernel in (NeighborGraph(), NeighborGraph(metric="cosine")):
        similarity = kernel.against(prepare(rows))
        whole = similarity.block(prepare(rows)).toarray()
        alone = np.vstack([similarity.block(prepare(rows[i : i + 1])).toarray() for i in range(150)])
        np.testing.assert_array_equal(whole, similarity.gram.toarray())
        np.testing.assert_array_equal(alone, whole)


@FORMATS
@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e8, 1e200])
def test_graphs_do_not_depend_on_the_unit_of_the_rows(unit, make):
    rows, new = some_rows(30, 3), some_rows(5, 3, seed=1)
    expected = NeighborGraph(4, 3)(new, rows)
    np.testing.assert_allclose(NeighborGraph(4, 3)(make(new * unit), make(rows * unit)), expected, rtol=1e-9)


@FORMATS
def test_rows_of_one_batch_may_be_dense_and_of_another_sparse(make):
    rows, new = some_rows(30, 3), some_rows(5, 3, seed=1)
    for kind in (np.array, sp.csr_array):
        similarity = NeighborGraph(4, 3).against(make(rows))
        np.testing.assert_allclose(similarity(kind(new)), NeighborGraph(4, 3)(new, rows), **CLOSE)
        assert same(similarity.block(kind(rows)), similarity.gram)


@FORMATS
@pytest.mark.parametrize("far", [1e12, 1e200, 1e308])
def test_a_new_row_far_away_has_no_similarity_with_any(far, make):
    rows = some_rows(30, 3)
    new = np.vstack([np.full((1, 3), far), rows[:1] + 0.01])
    block = NeighborGraph(4, 3)(make(new), make(rows))
    assert not block[0].any()
    np.testing.assert_array_equal(block[1], NeighborGraph(4, 3)(make(new[1:]), make(rows))[0])


def test_close_pairs_are_told_apart_among_rows_far_apart():
    place = np.repeat([0.0, 1e9, -3e12], 10)
    rows = np.tile(some_rows(10, 20), (3, 1)) + place[:, None]
    gram = NeighborGraph(3, 2).against(rows).gram.toarray()
    np.testing.assert_allclose(gram, naive.neighbour_graph(rows, 3, 2)[0], **CLOSE)


def test_neighbours_are_found_among_more_rows_than_one_tile_holds():
    from sklearn.neighbors import NearestNeighbors

    rows = some_rows(6000, 12) + np.repeat([0.0, 50.0, 1000.0], 2000)[:, None]  # tiles that hold nobody near, too
    found, distances, _ = nearest.nearest_neighbors(rows, Duplicates(rows), 5)
    expected = NearestNeighbors(n_neighbors=5, algorithm="kd_tree").fit(rows).kneighbors()
    np.testing.assert_array_equal(found, expected[1])
    np.testing.assert_allclose(distances, expected[0], rtol=1e-12)


def test_csr_rows_with_entries_in_parts_are_their_sums():
    parts = (np.array([1.0, 2.0, 5.0, 1.0]), np.array([1, 1, 0, 0]), np.array([0, 2, 3, 4]))
    rows = sp.csr_array(parts, shape=(3, 2))
    np.testing.assert_array_equal(NeighborGraph(1, 1)(rows), NeighborGraph(1, 1)(rows.toarray()))


# Values


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *((name, value) for name in ("n_neighbors", "scale_neighbor") for value in (0, -1, 2.5, np.nan, "many")),
        ("metric", "manhattan"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameter, value):
    with pytest.raises(InputError, match=rf"^NeighborGraph\({parameter}={value!r}\): {parameter} must be "):
        NeighborGraph(**{parameter: value})


def test_whole_numbers_from_a_command_line_are_whole_numbers():
    assert repr(NeighborGraph(5.0, 3.0)) == "NeighborGraph(n_neighbors=5, scale_neighbor=3, metric='euclidean')"


# Duplicates


@FORMATS
def test_equal_rows_are_found_whatever_their_form(make):
    rows = np.array([[0.0, 1.0], [2.0, 0.0], [-0.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]])
    duplicates = Duplicates(make(rows))
    assert duplicates.first.tolist() == [0, 1, 3]
    assert duplicates.of_row.tolist() == [0, 1, 0, 2, 1, 0]
    assert duplicates.find(rows[[4, 3]].astype(np.float32)).tolist() == [1, 2]
    assert duplicates.find(sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]))).tolist() == [0, -1, -1]
    position, row = duplicates.members(np.array([1, 0]), np.array([9, 2]))
    assert position.tolist() == [0, 0, 1, 1]
    assert row.tolist() == [1, 4, 0, 2]


def test_small_whole_numbers_have_fingerprints_of_their_own():
    rows = np.stack(np.meshgrid(*[np.arange(-4.0, 5.0)] * 5), axis=-1).reshape(-1, 5)
    assert len(np.unique(fingerprints(rows))) == 9**5


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


def test_rows_that_are_all_copies_of_a_few_are_similar_to_their_copies():
    rows = np.repeat(some_rows(3, 2), 30, axis=0)
    gram = NeighborGraph(5, 3).against(rows).gram.toarray()
    assert set(np.unique(gram)) == {0.0, 1.0}
    for start in (0, 30, 60):
        assert gram[start : start + 30].sum() == gram[start : start + 30, start : start + 30].sum()


# Batches, threads, files


@FORMATS
@WIDTHS
def test_similarities_of_a_row_are_the_same_bits_in_any_batch(width, make):
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
def test_models_predict_their_own_labels_and_come_back_from_files(kernel, dtype, tmp_path):
    views, truth = make_blobs(160)
    copied = {name: np.vstack([x[:120], x[:9]]) for name, x in views.items()}
    model = TMvKSCR(3, kernel=kernel, dtype=dtype, random_state=0).fit(copied)
    np.testing.assert_array_equal(model.predict(copied), model.labels_)
    np.testing.assert_array_equal(model.transform(copied), model.scores_)
    assert adjusted_rand_score(truth, model.predict(views)) == 1
    assert all(adjusted_rand_score(truth[:120], labels[:120]) > 0.9 for labels in model.view_labels_.values())
    same_model = load(save(model, tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(same_model.transform(views), model.transform(views))
    np.testing.assert_array_equal(same_model.predict(views), model.predict(views))
    np.testing.assert_array_equal(same_model.predict(copied, per_view=True)["a"], model.view_labels_["a"])


def test_a_file_with_a_graph_that_is_none_is_refused(tmp_path):
    x = make_blobs(40)[0]["a"]
    for change, message in (
        (lambda gram: gram.toarray(), "is not sparse"),
        (lambda gram: -gram, "negative similarities"),
        (lambda gram: 2 * gram, "similarities above 1"),
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


def test_a_graph_beside_a_given_gram_matrix():
    views, truth = make_blobs(90)
    given = {"a": views["a"], "b": RBF()(views["b"])}
    kernel = {"a": NeighborGraph(), "b": Precomputed()}
    model = TMvKSCR(3, kernel=kernel, random_state=0).fit(given)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(given), model.labels_)


# Awkward views


def test_a_constant_view_is_refused_by_name():
    views, _ = make_blobs(40)
    views["b"] = np.ones((40, 3))
    with pytest.raises(InputError, match="view 'b' has the same values in all of its 40 samples under NeighborGraph"):
        TMvKSCR(3, kernel=NeighborGraph()).fit(views)
    with pytest.raises(InputError, match="view 'b' has the same values"):
        TMvKSCR(3, kernel=NeighborGraph(metric="cosine")).fit({**views, "b": np.arange(1.0, 41)[:, None]})


@FORMATS
def test_multiples_of_a_row_are_constant_by_cosine(make):
    rows = np.outer(np.arange(1.0, 41.0), [1.0, 2.0, 3.3])
    with pytest.raises(InputError, match="view 'a' has the same values in all of its 40 samples"):
        NeighborGraph(metric="cosine").check_training("a", make(rows))
    NeighborGraph().check_training("a", make(rows))


def test_a_view_with_one_row_that_differs_is_no_constant_view():
    x = np.zeros((40, 2))
    x[33] = 1
    assert NeighborGraph().check_training("x", x) is None
    assert NeighborGraph().check_training("x", x[:1]) is None


def test_a_single_row_is_similar_to_itself():
    similarity = NeighborGraph().against(np.ones((1, 2)))
    assert similarity(np.ones((1, 2))).tolist() == [[1.0]]
    assert similarity(np.zeros((1, 2)))[0, 0] == pytest.approx(np.exp(-np.sqrt(2)))


def test_graphs_that_fall_apart_show_their_components():
    truth = np.repeat([0, 1, 2], 40)
    views = [some_rows(120, d) + 1000 * truth[:, None] for d in (2, 12)]
    for rho in (0.25, 1.0):  # of a product of graphs only the edges that all have are left, too few to hold together
        model = TMvKSCR(3, kernel=NeighborGraph(5), rho=rho, random_state=0).fit(views)
        assert adjusted_rand_score(truth, model.labels_) == 1


def test_isolated_points_are_clusters_of_their_own():
    views, truth = make_blobs(150)
    lonely = {name: np.vstack([x, 1e4 * np.eye(x.shape[1])[:2]]) for name, x in views.items()}
    model = TMvKSCR(5, kernel=NeighborGraph(), rho=1.0, random_state=0).fit(lonely)
    assert adjusted_rand_score(np.r_[truth, 3, 4], model.labels_) == 1
    np.testing.assert_array_equal(model.predict(lonely), model.labels_)


def test_as_many_neighbours_as_there_are_rows_give_a_full_graph():
    views, truth = make_blobs(60)
    for near in (59, 60, 1000):
        model = TMvKSCR(3, kernel=NeighborGraph(near), random_state=0).fit(views)
        assert model._score_maps["a"].similarity.gram.nnz == 60**2
        assert adjusted_rand_score(truth, model.labels_) == 1


def test_many_copies_of_a_row_are_one_place():
    views, truth = make_blobs(120)
    views["a"][truth == 0] = views["a"][np.flatnonzero(truth == 0)[0]]
    model = TMvKSCR(3, kernel=NeighborGraph(), random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(views), model.labels_)


# Very many rows


def shares_found(exact, found):
    return np.mean([len(set(a) & set(b)) / len(a) for a, b in zip(exact, found, strict=True)])


def flat_rows(n, width=100, seed=0):
    """Rows on a curved surface of five dimensions."""
    rng = np.random.default_rng(seed)
    return np.tanh(rng.normal(size=(n, 5)) @ rng.normal(size=(5, width)))


def both_searches(monkeypatch, rows, k=10):
    """The exact neighbours and distances, and those by a projected."""
    duplicates = Duplicates(rows)
    exact = nearest.nearest_neighbors(rows, duplicates, k)[:2]
    monkeypatch.setattr(nearest, "EXACT_ROWS", 1000)
    monkeypatch.setattr(projected, "_LEAST_AROUND", 1000)
    return exact, nearest.nearest_neighbors(rows, duplicates, k)[:2]


def test_cells_hold_every_row_once_and_are_the_same_in_threads():
    points = some_rows(3000, 12).astype(np.float32)
    cells = Cells(points)
    members = [cells.rows[cells.members(cell)] for cell in range(len(cells))]
    np.testing.assert_array_equal(np.sort(np.concatenate(members)), np.arange(3000))
    assert all((cells.of_row[rows] == cell).all() for cell, rows in enumerate(members))
    with Workers(2) as workers:
        again = Cells(points, workers.map)
    np.testing.assert_array_equal(again.of_row, cells.of_row)


def test_rows_around_a_cell_are_those_of_the_nearest_cells():
    points = some_rows(3000, 12).astype(np.float32)
    cells = Cells(points)
    for cell, n_rows in ((0, 1), (4, 900), (len(cells) - 1, 3000)):
        np.testing.assert_array_equal(cells.around(cell, n_rows), naive.rows_around(cells, cell, n_rows))


def test_a_cell_that_loses_its_points_keeps_its_centre():
    points = np.repeat(some_rows(2, 12), [2000, 1], axis=0).astype(np.float32)
    cells = Cells(points)
    assert sum(len(cells.members(cell)) for cell in range(len(cells))) == 2001


@pytest.mark.parametrize("width", [20, 100], ids=["all columns", "flat"])
@pytest.mark.parametrize("whole", [False, True], ids=["any numbers", "whole numbers"])
def test_a_sketch_finds_nearly_all_neighbours(monkeypatch, width, whole):
    rows = flat_rows(4000, width)
    rows = np.round(1000 * rows) if whole else rows  # float32 holds these
    rows[3990:] = rows[:10]
    (exact, distances), (found, further) = both_searches(monkeypatch, rows)
    assert 0.85 < shares_found(exact, found) < 1  # so that it was this search
    assert (further >= distances * (1 - 1e-6)).all()
    assert (np.diff(further, axis=1) >= 0).all()
    assert further.sum() < 1.05 * distances.sum()
    assert (found != np.arange(4000)[:, None]).all()
    gaps = np.linalg.norm(rows[:, None] - rows[found], axis=2)
    np.testing.assert_allclose(further, gaps, rtol=1e-6)  # sums of squares in float32


@pytest.mark.parametrize("unit", [1e-150, 1e-25, 1e25, 1e150])
def test_a_sketch_does_not_hang_on_the_unit(monkeypatch, unit):
    rows = flat_rows(2000)
    unit = 2.0 ** np.round(np.log2(unit))
    (_, _), (expected, distances) = both_searches(monkeypatch, rows)
    found, scaled, _ = nearest.nearest_neighbors(rows * unit, Duplicates(rows * unit), 10)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(scaled, distances * unit, rtol=1e-12)


def test_the_search_does_not_hang_on_how_rows_lie_in_memory(monkeypatch):
    rows = flat_rows(2000)
    exact, sketched = both_searches(monkeypatch, rows)
    by_column = np.asfortranarray(rows)
    np.testing.assert_array_equal(nearest.nearest_neighbors(by_column, Duplicates(by_column), 10)[0], sketched[0])
    monkeypatch.undo()
    np.testing.assert_array_equal(nearest.nearest_neighbors(by_column, Duplicates(by_column), 10)[0], exact[0])


def test_a_sketch_is_the_same_on_any_number_of_threads(monkeypatch):
    rows = flat_rows(3000)
    _, one = both_searches(monkeypatch, rows)
    with Workers(2) as workers:
        two = nearest.nearest_neighbors(rows, Duplicates(rows), 10, workers.map)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_rows_that_a_far_one_makes_look_alike_are_told_apart(monkeypatch):
    rows = np.round(1000 * flat_rows(2000)).astype(np.float32)
    rows[1999] = 2.0**80  # squares of the others are beyond float32 in its unit
    (exact, distances), (found, further) = both_searches(monkeypatch, rows)
    assert shares_found(exact[:1999], found[:1999]) > 0.85
    assert (further[:1999] > 0).all()
    assert further[:1999].sum() < 1.05 * distances[:1999].sum()


def test_a_sketch_copes_with_cells_that_hold_nobody(monkeypatch):
    # Rows so near to each other that float32 puts them all into one of the cells around them.
    rows = np.vstack([np.full((1190, 64), 1e-26) * np.arange(1, 1191)[:, None], flat_rows(10, 64)])
    assert np.count_nonzero(np.bincount(projected.ProjectedSearch(ExactSearch(rows))._cells.of_row)) < 10
    (exact, _), (found, _) = both_searches(monkeypatch, rows)
    assert shares_found(exact, found) > 0.85


@given(st.integers(1, 5), st.integers(1, 12), st.sampled_from([np.float32, np.float64]), st.integers(0, 99))
def test_the_smallest_numbers_of_each_query_are_found_in_order(k, n_queries, dtype, seed):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), rng.integers(k, 9, size=n_queries))
    unit = 2.0 ** rng.integers(-1000 if dtype == np.float64 else -120, 100)
    numbers = (rng.integers(0, 5, size=len(query)) * unit).astype(dtype)
    found = projected.smallest_of_each(query, numbers, k, n_queries)
    np.testing.assert_array_equal(found, naive.smallest_of_each(query, numbers, k, n_queries))


def test_numbers_that_hardly_differ_are_told_apart():
    numbers = 1 + 1e-6 * np.random.default_rng(0).permutation(50)
    found = projected.smallest_of_each(np.zeros(50, dtype=np.int64), numbers, 50, 1)
    np.testing.assert_array_equal(found[0], np.argsort(numbers))
