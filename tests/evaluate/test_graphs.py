"""Neighbour graphs of representations with missing views, and random walks on sums of graphs."""

import numpy as np
import pytest
import scipy.sparse as sp

from coview import Views
from coview.base.runtime import Workers
from coview.evaluate.graphs import RepresentationGraph, Walk, weighted_sum
from tests import naive
from tests.conftest import make_blobs

# Residuals are at most 1e-4 of the largest eigenvalue, 1. Eigenvalues have at most this error. The error of an
# eigenvector is the residual divided by the distance to the other eigenvalues, which is at least 0.02 in the tests that
# compare vectors.
TOLERANCE = 1e-4
OF_VECTORS = TOLERANCE / 0.02


def random_graph(n, density=0.3, seed=0):
    """Return a symmetric graph with random weights and no loops."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    return weights + weights.T


def path_graph(n=24, seed=0):
    """Return a path with random weights, whose first eigenvalues are far apart."""
    rng = np.random.default_rng(seed)
    graph = np.zeros((n, n))
    for i in range(n - 1):
        graph[i, i + 1] = graph[i + 1, i] = 1 + rng.random()
    return graph


def learn(weights, graphs, n_components):
    with Workers(1) as workers:
        return Walk.learn([sp.csr_array(graph) for graph in graphs], n_components, weights, workers)


def learn_graph(views, steps):
    with Workers(1) as workers:
        return RepresentationGraph.learn(views, steps, workers)


@pytest.mark.parametrize("weights", [(1.0, 2.0), (0.5, 0.0)])
@pytest.mark.parametrize("n", [5, 40, 150])
def test_eigenvalues_and_spaces_are_those_of_the_transition_matrix(weights, n):
    graphs = [random_graph(n, seed=i, density=0.6) + 1e-3 for i in (0, 1)]
    for graph in graphs:
        np.fill_diagonal(graph, 0)
    count = min(6, n - 1)
    walk = learn(weights, graphs, count)
    values, _ = naive.walk(weights, graphs, count)
    np.testing.assert_allclose(walk.eigenvalues, values, atol=TOLERANCE)
    total = weights[0] * graphs[0] + weights[1] * graphs[1]
    degrees = total.sum(axis=1)
    stationary = degrees / degrees.sum()
    residuals = total @ walk.vectors / degrees[:, None] - walk.vectors * walk.eigenvalues
    assert np.sqrt(stationary @ residuals**2).max() < 2 * TOLERANCE
    products = walk.vectors.T @ (stationary[:, None] * walk.vectors)
    np.testing.assert_allclose(products, np.eye(count), atol=1e-5)  # the operator is float32
    np.testing.assert_allclose(stationary @ walk.vectors, 0, atol=TOLERANCE)  # the constant vector is left out


def test_vectors_are_the_eigenvectors_up_to_sign():
    graph = path_graph()
    walk = learn([1.0], [graph], 5)
    values, vectors = naive.walk([1.0], [graph], 6)
    assert (-np.diff(values)).min() > 0.02
    assert 1 - values[0] > 0.005
    signs = np.sign((vectors[:, :5] * walk.vectors).sum(axis=0))
    np.testing.assert_allclose(walk.vectors, vectors[:, :5] * signs, atol=OF_VECTORS)


def test_an_eigenvalue_of_one_remains_for_a_graph_of_two_parts():
    first, second = path_graph(14), 3 * path_graph(9, seed=1)
    graph = np.block([[first, np.zeros((14, 9))], [np.zeros((9, 14)), second]])
    walk = learn([1.0], [graph], 3)
    assert walk.eigenvalues[0] == pytest.approx(1, abs=TOLERANCE)
    assert walk.eigenvalues[1] < 0.99
    # It is constant in each part, and its mean by degrees is 0.
    weights = [first.sum(), second.sum()]
    expected = np.repeat([np.sqrt(weights[1] / weights[0]), -np.sqrt(weights[0] / weights[1])], [14, 9])
    vector = walk.vectors[:, 0] * np.sign(walk.vectors[0, 0])
    np.testing.assert_allclose(vector, expected, atol=OF_VECTORS * 2)


def test_a_graph_of_three_parts_keeps_two_eigenvalues_of_one():
    graph = np.kron(np.eye(3), random_graph(8, density=0.9))
    walk = learn([1.0], [graph], 4)
    np.testing.assert_allclose(walk.eigenvalues[:2], 1, atol=TOLERANCE)
    assert walk.eigenvalues[2] < 0.9
    spread = [walk.vectors[8 * i : 8 * i + 8, :2].std(axis=0).max() for i in range(3)]
    np.testing.assert_allclose(spread, 0, atol=OF_VECTORS)
    assert np.linalg.matrix_rank(walk.vectors[::8, :2], tol=0.1) == 2


def test_there_are_fewer_components_than_samples():
    walk = learn([1.0], [random_graph(4, density=1.0)], 19)
    assert walk.vectors.shape == (4, 3)
    assert walk.eigenvalues.shape == (3,)


def test_the_first_components_are_those_of_a_smaller_walk():
    walk = learn([1.0], [random_graph(40)], 9)
    few = walk.first(3)
    np.testing.assert_array_equal(few.vectors, walk.vectors[:, :3])
    np.testing.assert_array_equal(few.eigenvalues, walk.eigenvalues[:3])
    assert few.weights == walk.weights


def test_steps_are_probabilities_and_rows_without_edges_stay_empty():
    views, _ = make_blobs(40, widths=(4, 6))
    views["a"][3] = np.nan
    views = Views(views)
    graphs = [learn_graph(views, {name: "standard+block"}) for name in views]
    rows = [graph.of_training(views) for graph in graphs]
    for weights in ((1.0, 1.0), (1.0, 3.0)):
        walk = Walk(weights, np.ones(1), np.ones((40, 1)))
        steps = walk.steps([each.similarities for each in rows]).toarray()
        total = sum(w * each.similarities.toarray() for w, each in zip(weights, rows, strict=True))
        np.testing.assert_allclose(steps, total / total.sum(axis=1, keepdims=True), rtol=1e-12)
    alone = Walk((1.0, 0.0), np.ones(1), np.ones((40, 1))).steps([each.similarities for each in rows])
    assert np.flatnonzero(np.diff(alone.indptr) == 0).tolist() == [3]
    np.testing.assert_allclose(np.delete(alone.sum(axis=1), 3), 1, rtol=1e-12)


@pytest.mark.parametrize("missing", [False, True])
def test_the_components_of_training_samples_are_their_vectors(missing):
    views, _ = make_blobs(60, widths=(4, 6), spread=1.0)
    if missing:
        views["a"][:9] = np.nan
        views["b"][50:] = np.nan
    views = Views(views)
    graphs = [learn_graph(views, {name: "standard+block"}) for name in views]
    with Workers(1) as workers:
        walk = Walk.learn([graph.adjacency() for graph in graphs], 5, (1.0, 1.0), workers)
    assert walk.eigenvalues.min() > 0.2
    components = walk.components(walk.steps([graph.training_similarities() for graph in graphs]))
    # A residual of 1e-4 in the norm by degrees, divided by the eigenvalue and by the root of a sample's part of all
    # degrees, which is about 1 / 60.
    np.testing.assert_allclose(components, walk.vectors, atol=1e-4 / 0.2 * 10)
    assert np.abs(components).max() > 0.5


def test_components_of_small_eigenvalues_are_not_magnified():
    walk = Walk((1.0,), np.array([0.5, 0.01, -0.3]), np.array([[1.0, 1.0, 1.0], [3.0, 2.0, 0.0]]))
    steps = sp.csr_array(np.array([[0.5, 0.5]]))
    np.testing.assert_allclose(walk.components(steps), [[2 / 0.5, 1.5 / 0.05, 0.5 / 0.05]])


def test_the_sum_of_graphs_has_memory_of_its_own():
    graph = sp.csr_array(random_graph(6))
    before = graph.toarray()
    for graphs in ([graph], [graph, graph]):
        total = weighted_sum([1.0, 0.0][: len(graphs)], graphs)
        total.data *= 2
        np.testing.assert_array_equal(graph.toarray(), before)


def test_the_indices_of_a_sum_of_graphs_are_sorted():
    graph = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3, 3])), shape=(3, 3))
    total = weighted_sum([2.0], [graph])
    assert total.indices.tolist() == [0, 2, 1]
    assert total.data.tolist() == [4.0, 2.0, 6.0]


def incomplete(n=40):
    """Return views that some samples lack, and which samples have each of them."""
    views, _ = make_blobs(n, widths=(4, 6))
    views["a"][[2, 7, 8]] = np.nan
    views["b"][[0, 11]] = np.nan
    return Views(views)


@pytest.mark.parametrize("names", [["a"], ["b"], ["a", "b"]])
def test_samples_that_lack_a_view_have_empty_rows_and_columns(names):
    views = incomplete()
    graph = learn_graph(views, dict.fromkeys(names, "standard+block"))
    lacking = {"a": [2, 7, 8], "b": [0, 11]}
    absent = sorted(row for name in names for row in lacking[name])
    present = np.setdiff1d(np.arange(40), absent)
    assert graph.views == tuple(names)
    for matrix in (graph.adjacency(), graph.of_training(views).similarities, graph.of(views).similarities):
        dense = matrix.toarray()
        assert dense.shape == (40, 40)
        assert not dense[absent].any()
        assert not dense[:, absent].any()
        assert (dense[present].sum(axis=1) > 0).all()
    rows = graph.of_training(views)
    assert np.flatnonzero(rows.present).tolist() == present.tolist()
    assert rows.table.shape[0] == len(present)


def test_the_adjacency_is_the_graph_of_the_samples_that_have_the_view():
    views = incomplete()
    whole = learn_graph(views, {"a": "standard+block"}).adjacency().toarray()
    kept = np.setdiff1d(np.arange(40), [2, 7, 8])
    alone = views.take(kept).alone("a")
    part = learn_graph(alone, {"a": "standard+block"}).adjacency().toarray()
    np.testing.assert_array_equal(whole[np.ix_(kept, kept)], part)
    table = np.array(alone["a"])
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    expected = naive.fuzzy_graph(table, 15)[0]
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(part, expected, rtol=2e-5, atol=1e-9)  # as in the tests of the kernel
    np.testing.assert_array_equal(part, part.T)


@pytest.mark.parametrize("kind", ["distinct", "duplicates", "sparse", "missing", "float32"])
@pytest.mark.parametrize("steps", ["l2+block", "standard+block"])
def test_training_samples_are_the_same_as_new_samples(kind, steps):
    views, _ = make_blobs(40, widths=(4, 6))
    if kind == "duplicates":
        views = {name: np.vstack([x, x[:10], x[5:8]]) for name, x in views.items()}
    if kind == "sparse":
        views["b"] = sp.csr_array(np.abs(views["b"]) * (np.abs(views["b"]) > 2) + np.eye(40, 6))
        steps = "l2+block"
    if kind == "float32":
        views = {name: x.astype(np.float32) for name, x in views.items()}
    views = incomplete() if kind == "missing" else Views(views)
    graph = learn_graph(views, dict.fromkeys(views, steps))
    training, new = graph.of_training(views), graph.of(views)
    np.testing.assert_array_equal(training.present, new.present)
    as_dense = [x.toarray() if sp.issparse(x) else x for x in (training.table, new.table)]
    np.testing.assert_array_equal(*as_dense)
    # Distances of new rows and of training rows are rounded in other places, by about 1e-7 in float32.
    close = 1e-5 if kind == "float32" else 1e-9
    np.testing.assert_allclose(training.similarities.toarray(), new.similarities.toarray(), atol=close)
    assert training.similarities.diagonal().max() == 0 or kind == "duplicates"


def test_new_samples_without_the_view_have_no_similarities():
    views = incomplete()
    graph = learn_graph(views, {"a": "standard+block"})
    some = graph.of(views.take([2, 5, 7]))
    assert some.present.tolist() == [False, True, False]
    assert (some.similarities.toarray().sum(axis=1) > 0).tolist() == [False, True, False]
    nothing = graph.of(views.take([2, 7, 8]))
    assert nothing.similarities.shape == (3, 40)
    assert nothing.similarities.nnz == 0
