"""The self-tuning neighbour graph: its formula, parameters, and degenerate rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from coview import InputError, NeighborGraph, TMvKSCR
from tests import naive
from tests.conftest import make_blobs
from tests.kernels.graphs import FORMATS, WIDTHS, some_rows
from tests.test_properties import awkward_views

# Exponents of a few units, each exact up to a few rounding errors.
CLOSE = {"rtol": 1e-12, "atol": 1e-14}


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


def test_close_pairs_are_resolved_among_distant_rows():
    place = np.repeat([0.0, 1e9, -3e12], 10)
    rows = np.tile(some_rows(10, 20), (3, 1)) + place[:, None]
    gram = NeighborGraph(3, 2).against(rows).gram.toarray()
    np.testing.assert_allclose(gram, naive.neighbour_graph(rows, 3, 2)[0], **CLOSE)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *((name, value) for name in ("n_neighbors", "scale_neighbor") for value in (0, -1, 2.5, np.nan, "many", True)),
        *(("recall", value) for value in (0, -0.5, 1.01, np.nan, "most", True)),
        ("metric", "manhattan"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameter, value):
    with pytest.raises(InputError, match=rf"^NeighborGraph\.{parameter}={value!r}: expected "):
        NeighborGraph(**{parameter: value})


def test_integers_from_a_command_line_become_int():
    assert (
        repr(NeighborGraph(5.0, 3.0))
        == "NeighborGraph(n_neighbors=5, scale_neighbor=3, metric='euclidean', recall=0.95)"
    )


def test_rows_with_many_duplicates_are_similar_to_duplicates_only():
    rows = np.repeat(some_rows(3, 2), 30, axis=0)
    gram = NeighborGraph(5, 3).against(rows).gram.toarray()
    assert set(np.unique(gram)) == {0.0, 1.0}
    for start in (0, 30, 60):
        assert gram[start : start + 30].sum() == gram[start : start + 30, start : start + 30].sum()


def test_a_single_row_is_similar_to_itself():
    similarity = NeighborGraph().against(np.ones((1, 2)))
    assert similarity(np.ones((1, 2))).tolist() == [[1.0]]
    assert similarity(np.zeros((1, 2)))[0, 0] == pytest.approx(np.exp(-np.sqrt(2)))


def test_isolated_points_are_separate_clusters_without_regularization():
    views, truth = make_blobs(150)
    isolated = {name: np.vstack([x, 1e4 * np.eye(x.shape[1])[:2]]) for name, x in views.items()}
    model = TMvKSCR(5, kernel=NeighborGraph(), rho=1.0, regularization=0, random_state=0).fit(isolated)
    assert adjusted_rand_score(np.r_[truth, 3, 4], model.labels_) == 1
    np.testing.assert_array_equal(model.predict(isolated), model.labels_)
