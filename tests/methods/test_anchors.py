import numpy as np
import pytest
import scipy.sparse as sp

from coview import InputError
from coview.data import rows as row_operations
from coview.methods.anchors import AnchorPoints, NearestAnchors

FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32, np.asfortranarray])


def squared_distances(x, points):
    return np.array([[sum((a - b) ** 2) for b in points] for a in x])


def nearest_one_by_one(x, points, count):
    """Numbers of the nearest points, the first of equals, in increasing order."""
    return np.sort(np.argsort(squared_distances(x, points), axis=1, kind="stable")[:, :count], axis=1)


@FORMS
@pytest.mark.parametrize("block", [1, 60, 2**20])
def test_nearest_anchors_are_those_found_one_by_one(form, block, monkeypatch):
    monkeypatch.setattr(row_operations, "_BLOCK_NUMBERS", block)
    rng = np.random.default_rng(0)
    x, points = rng.normal(size=(23, 4)).round(3), rng.normal(size=(9, 4)).round(3)
    anchors = AnchorPoints("a", form(points))
    found = anchors.nearest(form(x), 3)
    np.testing.assert_array_equal(found.anchors, nearest_one_by_one(x, points, 3))
    expected = np.take_along_axis(squared_distances(x, points), found.anchors.astype(int), axis=1)
    np.testing.assert_allclose(found.distances * anchors.unit**2, expected, rtol=1e-6 if form is np.float32 else 1e-9)
    assert anchors.mean_distance(form(x)) * anchors.unit**2 == pytest.approx(
        squared_distances(x, points).mean(), rel=1e-6 if form is np.float32 else 1e-12
    )


def test_all_anchors_are_returned_if_more_are_requested():
    found = AnchorPoints("a", np.array([[0.0], [1.0]])).nearest(np.array([[0.0], [3.0]]), 5)
    np.testing.assert_array_equal(found.anchors, [[0, 1], [0, 1]])
    np.testing.assert_array_equal(found.distances, [[0, 1], [9, 4]])


def test_the_first_of_equally_near_anchors_are_returned():
    points = np.array([[3.0], [-1.0], [1.0], [1.0], [-1.0], [0.5]])
    anchors = AnchorPoints("a", points)
    found = anchors.nearest(np.zeros((2, 1)), 3)
    np.testing.assert_array_equal(found.anchors, [[1, 2, 5]] * 2)
    np.testing.assert_array_equal(found.distances * anchors.unit**2, [[1, 1, 0.25]] * 2)


@FORMS
def test_a_row_on_a_mirror_gets_the_same_anchors_in_any_batch(form):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(12, 5)) + 3
    points = np.vstack([half, half[:, ::-1]])  # on the mirror every anchor is as far as its image
    x = rng.normal(size=(60, 5))
    x = x + x[:, ::-1]
    anchors = AnchorPoints("a", form(points))
    whole = anchors.nearest(form(x), 5)
    for i in range(len(x)):
        alone = anchors.nearest(form(x[[i]]), 5)
        np.testing.assert_array_equal(alone.anchors[0], whole.anchors[i])
    assert (whole.anchors < 12).sum() == 60 * 3  # two pairs, and the first of the third


def test_dense_and_sparse_rows_can_be_compared_with_either_kind_of_anchors():
    rng = np.random.default_rng(0)
    x, points = rng.normal(size=(20, 3)), rng.normal(size=(6, 3))
    expected = nearest_one_by_one(x, points, 2)
    for anchors in (AnchorPoints("a", points), AnchorPoints("a", sp.csr_array(points))):
        for rows in (x, sp.csr_array(x)):
            np.testing.assert_array_equal(anchors.nearest(rows, 2).anchors, expected)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_the_scale_of_a_view_changes_only_the_unit(scale):
    rng = np.random.default_rng(0)
    x, points = rng.normal(size=(20, 3)), rng.normal(size=(6, 3))
    power = 2.0 ** np.round(np.log2(scale))
    plain, scaled = AnchorPoints("a", points), AnchorPoints("a", points * power)
    np.testing.assert_array_equal(scaled.nearest(x * power, 2).distances, plain.nearest(x, 2).distances)
    assert scaled.unit == plain.unit * power


def test_an_offset_or_a_distant_point_does_not_change_the_nearest_anchors():
    rng = np.random.default_rng(0)
    x, points = rng.normal(size=(20, 3)), rng.normal(size=(6, 3))
    points[5] = 1e9
    found = AnchorPoints("a", points + 1e6).nearest(x + 1e6, 2)
    np.testing.assert_array_equal(found.anchors, nearest_one_by_one(x, points, 2))


def test_anchors_may_be_zero():
    found = AnchorPoints("a", np.zeros((2, 3))).nearest(np.ones((1, 3)), 1)
    assert found.anchors.tolist() == [[0]]
    assert found.distances.tolist() == [[3]]


def test_rows_out_of_the_range_of_floats_are_refused():
    with pytest.raises(InputError, match=r"view 'text' has samples too far from the others.*scale the view"):
        AnchorPoints("text", np.eye(3)).nearest(np.full((1, 3), 1e200), 1)


def test_weights_become_a_sparse_graph():
    nearest = NearestAnchors(np.array([[0, 2], [1, 2]], dtype=np.int32), np.zeros((2, 2)))
    graph = nearest.graph(np.array([[0.5, 0.25], [1.0, 2.0]]), 4)
    np.testing.assert_array_equal(graph.toarray(), [[0.5, 0, 0.25, 0], [0, 1, 2, 0]])
