"""The fuzzy neighbour graph: its formula, its normalisation, and degenerate rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from coview import FuzzyGraph, InputError, TMvKSCR
from tests import naive
from tests.conftest import make_blobs
from tests.kernels.graphs import FORMATS, METRICS, WIDTHS, some_rows
from tests.test_properties import awkward_views

# The bandwidth is found by 30 bisections of an interval that is at most a thousand times as long, and a weight changes
# by up to 20 times as much if it is not smaller than this tolerance.
CLOSE = {"rtol": 2e-5, "atol": 1e-9}

NEIGHBOURS = pytest.mark.parametrize("near", [1, 2, 3, 4, 10, 15, 24, 100])


@FORMATS
@WIDTHS
@NEIGHBOURS
def test_the_gram_matrix_follows_the_plain_formula(near, width, make):
    rows = some_rows(25, width)
    expected, scales, radii, degrees = naive.fuzzy_graph(rows, near)
    similarity = FuzzyGraph(near).against(make(rows))
    np.testing.assert_allclose(similarity.gram.toarray(), expected, **CLOSE)
    np.testing.assert_allclose(np.column_stack([similarity.offsets, similarity.bandwidths]), scales, **CLOSE)
    np.testing.assert_allclose(similarity.radii, radii, rtol=1e-12)
    np.testing.assert_allclose(similarity.degrees, degrees, **CLOSE)


@FORMATS
@WIDTHS
@NEIGHBOURS
def test_new_rows_follow_the_plain_formula(near, width, make):
    rows, new = some_rows(25, width), some_rows(12, width, seed=1)
    block = FuzzyGraph(near)(make(new), make(rows))
    np.testing.assert_allclose(block, [naive.fuzzy_graph_row(x, rows, near) for x in new], **CLOSE)


@FORMATS
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_rows_follow_the_plain_formula(n, make):
    rows, new = some_rows(n, 2), some_rows(5, 2, seed=1)
    similarity = FuzzyGraph().against(make(rows))
    np.testing.assert_allclose(similarity.gram.toarray(), naive.fuzzy_graph(rows, 15)[0], **CLOSE)
    np.testing.assert_allclose(similarity(make(new)), [naive.fuzzy_graph_row(x, rows, 15) for x in new], **CLOSE)


@given(awkward_views(), st.integers(1, 5))
def test_duplicates_and_ties_follow_the_plain_formula(views, near):
    rows = views[0]
    similarity = FuzzyGraph(near).against(rows)
    np.testing.assert_allclose(similarity.gram.toarray(), naive.fuzzy_graph(rows, near)[0], **CLOSE)
    for x in (np.array([[0.5, 0.0]]), np.array([[9.0, -3.0]])):
        np.testing.assert_allclose(similarity(x)[0], naive.fuzzy_graph_row(x[0], rows, near), **CLOSE)


@FORMATS
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_bandwidth_of_many_duplicates_has_the_unit_of_the_rows(unit, make):
    rows, new = np.vstack([np.ones((20, 3)), some_rows(20, 3)]), some_rows(2, 3, seed=1)
    graph = FuzzyGraph(4)
    np.testing.assert_allclose(graph.against(make(rows * unit)).gram.toarray(), naive.fuzzy_graph(rows, 4)[0], **CLOSE)
    expected = [naive.fuzzy_graph_row(row, rows, 4) for row in new]
    np.testing.assert_allclose(graph(make(new * unit), make(rows * unit)), expected, **CLOSE)


@pytest.mark.parametrize("near", [3, 15])
def test_the_weights_of_a_row_sum_to_the_logarithm_of_the_number_of_neighbours(near):
    rows = some_rows(40, 5)
    similarity = FuzzyGraph(near).against(rows)
    distances = np.sort(np.linalg.norm(rows[:, None] - rows, axis=2), axis=1)[:, 1 : near + 1]
    weights = np.exp(-(distances - similarity.offsets[:, None]) / similarity.bandwidths[:, None])
    np.testing.assert_allclose(weights.sum(axis=1), np.log2(near), rtol=1e-6)


@FORMATS
@METRICS
@pytest.mark.parametrize("near", [1, 4, 15, 1000])
def test_eigenvalues_of_the_gram_matrix_are_at_most_one(near, metric, make):
    rows = some_rows(60, 12)
    rows[40:50] = rows[:10]
    similarity = FuzzyGraph(near, metric).against(make(rows))
    gram = similarity.gram.toarray()
    np.testing.assert_array_equal(gram, gram.T)
    values = np.linalg.eigvalsh(gram)
    assert values[-1] == pytest.approx(1, abs=1e-12)  # the eigenvector is the root of the degrees
    root = np.sqrt(similarity.degrees)
    np.testing.assert_allclose(gram @ root, root, rtol=1e-12)
    assert values[0] >= -1 - 1e-12


def test_views_of_different_density_have_degrees_of_one_size():
    views, _ = make_blobs(200, widths=(3, 30))
    few, many = (FuzzyGraph().against(x).gram.sum(axis=1) for x in views.values())
    assert 0.8 < few.mean() / many.mean() < 1.25
    assert max(few.mean(), many.mean()) <= 1


@FORMATS
@WIDTHS
def test_float32_graphs_agree_with_float64_graphs(width, make):
    rows, new = some_rows(60, width).astype(np.float32), some_rows(9, width, seed=1).astype(np.float32)
    single, double = (FuzzyGraph(6).against(make(rows), dtype) for dtype in (np.float32, np.float64))
    assert single.gram.dtype == np.float32
    assert single(make(new)).dtype == np.float32
    np.testing.assert_allclose(single.gram.toarray(), double.gram.toarray(), rtol=1e-6)
    np.testing.assert_allclose(single(make(new)), double(make(new)), rtol=1e-6)


@pytest.mark.parametrize("rows", [np.zeros((5, 2)), np.repeat(some_rows(3, 2), 30, axis=0)], ids=["one", "three"])
def test_duplicates_have_the_full_weight(rows):
    similarity = FuzzyGraph(4).against(rows)
    weights = similarity.gram.toarray() * np.sqrt(np.outer(similarity.degrees, similarity.degrees))
    assert set(np.unique(weights.round(12))) <= {0.0, 1.0}
    equal = (rows[:, None] == rows).all(axis=2)
    assert not weights[~equal].any()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [*(("n_neighbors", value) for value in (0, -1, 2.5, np.nan, "many", True)), ("recall", 0), ("metric", "manhattan")],
)
def test_parameters_out_of_range_are_refused_by_name(parameter, value):
    with pytest.raises(InputError, match=rf"^FuzzyGraph\.{parameter}={value!r}: expected "):
        FuzzyGraph(**{parameter: value})


@METRICS
def test_the_graph_of_a_sparse_view_is_that_of_the_dense_table(metric):
    rows = some_rows(80, 30) * (some_rows(80, 30, seed=1) > 0.7)
    np.testing.assert_allclose(FuzzyGraph(metric=metric)(sp.csr_array(rows)), FuzzyGraph(metric=metric)(rows), **CLOSE)


def test_no_matrix_of_all_pairs_is_formed():
    views, _ = make_blobs(3000, widths=(3, 12))
    model = TMvKSCR(3, kernel=FuzzyGraph(), random_state=0).fit(views)
    assert all(each.similarity.gram.nnz < 3000 * 31 for each in model.model_.predictor.score_maps.values())
