import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coview import InputError
from coview.base import runtime
from coview.core.linalg import coordinates
from coview.data.rows import l2_normalize
from coview.methods.comic import COMIC, Matcher, is_steady, largest_eigenvalue, neighbour_graph
from coview.methods.comic_graph import cosine_neighbors, linked_by_majority, mutual_edges
from tests.conftest import make_blobs
from tests.golden import golden, inputs, load, needs_golden

STEMS = golden("comic_*")


def unit_samples(views):
    return [l2_normalize(x) for x in views]


def graphs_of(samples, edges, pair_rate=0.9):
    return [neighbour_graph(coordinates(x), x.shape[1], e, pair_rate) for x, e in zip(samples, edges, strict=True)]


def edges_of(samples, n_neighbors=10):
    return [mutual_edges(*cosine_neighbors(x, n_neighbors)) for x in samples]


def between_kinds(edges, x):
    """The edges between different samples, with duplicates counted as one."""
    kind = np.unique(np.round(x, 12), axis=0, return_inverse=True)[1].ravel()
    ends = np.sort(kind[edges], axis=1)
    return set(map(tuple, ends[ends[:, 0] < ends[:, 1]].tolist()))


@needs_golden
@pytest.mark.parametrize("stem", STEMS)
def test_edges_are_those_of_the_authors_program(stem):
    """Except among duplicates: the program may count a sample as its own neighbour, and drops edges of length zero."""
    answer = load(stem)
    for v, x in enumerate(unit_samples(inputs(answer))):
        (ours,), theirs = edges_of([x]), answer[f"edges{v}"]
        assert between_kinds(ours, x) == between_kinds(theirs, x)
        if len(np.unique(np.round(x, 12), axis=0)) == len(x):
            np.testing.assert_array_equal(ours, theirs[np.lexsort(theirs.T[::-1])])


@needs_golden
@pytest.mark.parametrize("stem", STEMS)
def test_iterations_agree_with_the_authors_program(stem):
    answer = load(stem)
    samples = unit_samples(inputs(answer))
    graphs = graphs_of(samples, [answer[f"edges{v}"].astype(np.int64) for v in range(len(samples))])
    matcher = Matcher(graphs, consistency=1.0)
    now = matcher.start()
    # The program prints six decimals; it computes these in single precision.
    strengths, _, scales = answer["init_lambda_eps_mu"].T
    np.testing.assert_allclose(now.strengths, strengths, atol=6e-7)
    np.testing.assert_allclose([graph.reach for graph in graphs], answer["epsilon"], rtol=3e-7)
    np.testing.assert_allclose([graph.scale for graph in graphs], scales, atol=6e-7)

    trace = [matcher.objective(now)]
    for _ in answer["objective"]:
        now, objective = matcher.iterate(now)
        trace.append(objective)
    # The program prints the objective before every iteration.
    np.testing.assert_allclose(trace[:-1], answer["objective"], atol=6e-7)
    for v, z in enumerate(now.representations):
        if f"Z{v}" in answer:
            np.testing.assert_allclose(z, answer[f"Z{v}"], atol=1e-6)
    labels = linked_by_majority(now.representations, [graph.reach**2 for graph in graphs])
    assert adjusted_rand_score(answer["labels"], labels) == 1


@needs_golden
@pytest.mark.parametrize("stem", STEMS)
def test_clusters_are_those_of_the_authors_program(stem):
    answer = load(stem)
    model = COMIC(distance_test="program").fit(inputs(answer))
    assert adjusted_rand_score(answer["labels"], model.labels_) == 1
    assert model.n_clusters_ == len(np.unique(answer["labels"]))


def slow_iterations(samples, edges, gamma, n_iterations):
    """The published iterations with full matrices; returns representations, agreements, strengths and objectives."""
    n, n_views = len(samples[0]), len(samples)
    weights, agreements, scales = [], [], []
    for x, pairs in zip(samples, edges, strict=True):
        adjacency = np.zeros((n, n))
        for i, j in pairs:
            adjacency[i, j] = adjacency[j, i] = 1
        degree = adjacency.sum(axis=1)
        weights.append(adjacency * degree.mean() / np.sqrt(np.outer(degree, degree)))
        agreements.append(adjacency)
        scales.append(max(((x[i] - x[j]) ** 2 + 1e-5).sum() for i, j in pairs))

    def laplacian(v):
        flow = weights[v] * agreements[v] ** 2
        return np.diag(flow.sum(axis=1)) - flow

    def strength(v):
        return np.linalg.norm(samples[v], 2) / np.linalg.eigvalsh(laplacian(v))[-1]

    def squared_distances(z):
        return ((z[:, None] - z[None]) ** 2).sum(axis=2)

    z, strengths, objectives = list(samples), [strength(v) for v in range(n_views)], []
    for _ in range(n_iterations):
        old = list(agreements)
        for v in range(n_views):
            others = sum((old[u] for u in range(n_views) if u != v), np.zeros((n, n)))
            tension = strengths[v] * weights[v] * squared_distances(z[v])
            agreements[v] = (gamma * others + scales[v]) / (gamma * (n_views - 1) + tension + scales[v])
            z[v] = np.linalg.solve(np.eye(n) + strengths[v] * laplacian(v), samples[v])
            strengths[v] = strength(v)
        total = 0.0
        for v in range(n_views):
            stretched = (weights[v] * agreements[v] ** 2 * squared_distances(z[v])).mean()
            broken = scales[v] * ((agreements[v] - 1) ** 2).mean()
            moved = ((samples[v] - z[v]) ** 2).sum(axis=1).mean()
            total += (moved + strengths[v] * (stretched + broken)) / 2 / n_views
            total += sum(gamma / 4 * ((agreements[v] - s) ** 2).mean() for s in agreements)
        objectives.append(total)
    return z, agreements, strengths, objectives


@pytest.mark.parametrize(("widths", "gamma"), [((4, 6, 3), 1.0), ((5,), 1.0), ((60, 3), 0.3), ((4, 5, 6, 7), 0.0)])
def test_iterations_match_the_reference_implementation(widths, gamma):
    views, _ = make_blobs(n_samples=50, widths=widths, spread=1.0)
    samples = unit_samples(views.values())
    edges = edges_of(samples, n_neighbors=5)
    z, agreements, strengths, objectives = slow_iterations(samples, edges, gamma, n_iterations=6)
    matcher = Matcher(graphs_of(samples, edges), gamma)
    now, trace = matcher.start(), []
    for _ in range(6):
        now, objective = matcher.iterate(now)
        trace.append(objective)
    np.testing.assert_allclose(trace, objectives, rtol=1e-9)
    np.testing.assert_allclose(now.strengths, strengths, rtol=1e-9)
    for v, pairs in enumerate(edges):
        np.testing.assert_allclose(now.agreement[v, matcher.places[v]], agreements[v][tuple(pairs.T)], rtol=1e-9)
        assert now.agreement[v, -1] == pytest.approx(agreements[v][0, 0])  # the diagonal is not an edge
        ours = now.representations[v]
        np.testing.assert_allclose(ours @ ours.T, z[v] @ z[v].T, atol=1e-10)


def test_lengths_of_edges_give_the_reach_and_the_scale():
    samples = np.array([[1.0, 0.0], [0.9999, 0.0141], [0.6, 0.8], [0.0, 1.0]])
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    lengths = np.sqrt([((samples[i] - samples[j]) ** 2).sum() + 2e-5 for i, j in edges])
    assert lengths[0] < 0.01 * np.sqrt(2) * 1.1  # just long enough
    graph = neighbour_graph(samples, 2, edges, pair_rate=0.6)
    assert graph.reach == pytest.approx(np.sort(lengths)[:2].mean())
    assert graph.scale == pytest.approx(lengths.max() ** 2)
    assert graph.norm == pytest.approx(np.linalg.norm(samples, 2))
    # In a view of more features the same edge is too short, and counts as the longest.
    lengths = np.sqrt([((samples[i] - samples[j]) ** 2).sum() + 3e-5 for i, j in edges])
    wide = neighbour_graph(samples, 3, edges, pair_rate=0.3)
    assert wide.reach == pytest.approx(lengths[2])


def test_the_largest_eigenvalue_is_found_by_both_solvers():
    x = unit_samples([np.random.default_rng(0).normal(size=(120, 4))])[0]
    for n in (30, 120):
        (graph,) = graphs_of([x[:n]], edges_of([x[:n]]))
        laplacian = graph.laplacian(np.full(len(graph.edges), 0.7))
        expected = np.linalg.eigvalsh(laplacian.toarray())[-1]
        assert largest_eigenvalue(laplacian) == pytest.approx(expected, rel=1e-9)


def test_the_objective_is_steady_after_ten_small_changes_in_a_row():
    steady = [1.0 + 1e-9 * t for t in range(11)]
    assert is_steady(1e-8, steady)
    assert not is_steady(1e-8, steady[1:])
    assert not is_steady(1e-8, [1.1, *steady[1:]])
    turning = [1e-7 * (t - 6) ** 2 for t in range(13)]
    assert not is_steady(1e-8, turning)


def test_well_separated_clusters_are_counted():
    for n_samples in (60, 90):
        views, truth = make_blobs(n_samples)
        model = COMIC().fit(views)
        assert model.n_clusters_ == 3
        assert adjusted_rand_score(truth, model.labels_) == 1
        assert model.objective_.shape == (model.n_iter_,)


@pytest.mark.filterwarnings("ignore:found .* clusters for 90 samples:sklearn.exceptions.ConvergenceWarning")
def test_a_larger_threshold_never_gives_more_clusters():
    views, _ = make_blobs(spread=1.0)
    counts = [COMIC(threshold=t).fit(views).n_clusters_ for t in (0.01, 0.7, 10.0)]
    assert counts[0] == 90 > counts[1] > counts[2] == 1


def test_the_programs_test_compares_the_root_of_the_distance():
    x = make_blobs(spread=1.0)[0]["b"]
    (graph,) = graphs_of(unit_samples([x]), edges_of(unit_samples([x])))
    program = COMIC(threshold=0.9, distance_test="program").fit(x)
    paper = COMIC(threshold=(0.9 * graph.reach) ** 2 / graph.reach).fit(x)
    np.testing.assert_array_equal(program.labels_, paper.labels_)
    assert 1 < program.n_clusters_ < 90


def test_the_order_of_samples_and_of_views_does_not_matter():
    views, _ = make_blobs(spread=2.0)
    order = np.random.default_rng(0).permutation(90)
    labels = COMIC(threshold=0.8).fit(views).labels_
    assert 1 < labels.max() < 60
    turned = {name: x[order] for name, x in reversed(views.items())}
    assert adjusted_rand_score(labels[order], COMIC(threshold=0.8).fit(turned).labels_) == 1


def test_wide_views_are_the_same_dense_and_sparse():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 15)
    topics = rng.random((3, 400)) < 0.1
    counts = [rng.poisson(0.01 + 3.0 * topics[truth][:, :width]).astype(float) for width in (400, 200, 30)]
    dense = COMIC().fit(counts)
    sparse = COMIC().fit([sp.csr_array(x) for x in counts])
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
    np.testing.assert_allclose(dense.objective_, sparse.objective_, rtol=1e-9)
    assert adjusted_rand_score(truth, dense.labels_) == 1


def test_zero_rows_and_zero_views_are_accepted():
    views, truth = make_blobs()
    views = {name: x.copy() for name, x in views.items()}
    for x in views.values():
        x[:5] = 0
    views["a"][5:9] = 0
    labels = COMIC().fit(views).labels_
    assert adjusted_rand_score(truth[9:], labels[9:]) == 1
    assert len(set(labels[:5].tolist())) == 1  # zeros are equal to each other
    views["wide and zero"] = np.zeros((90, 100))
    assert adjusted_rand_score(truth[9:], COMIC().fit(views).labels_[9:]) == 1


def test_duplicates_share_a_cluster():
    views, _ = make_blobs(n_samples=40)
    labels = COMIC().fit({name: x.repeat(3, axis=0) for name, x in views.items()}).labels_
    np.testing.assert_array_equal(labels.reshape(-1, 3), labels[::3, None].repeat(3, axis=1))


@pytest.mark.parametrize("n_samples", [2, 3, 7])
def test_few_samples_have_few_neighbours(n_samples):
    x = np.random.default_rng(0).normal(size=(n_samples, 3))
    assert COMIC().fit(x).labels_.shape == (n_samples,)
    assert COMIC().fit(np.ones((n_samples, 3))).n_clusters_ == 1


def test_one_sample_is_too_few():
    with pytest.raises(InputError, match="n_samples=1 is too few to have neighbours"):
        COMIC().fit(np.ones((1, 3)))


def test_the_number_of_clusters_is_not_a_parameter():
    assert "n_clusters" not in COMIC().get_params()
    assert not hasattr(COMIC(), "n_clusters")
    with pytest.raises(TypeError):
        COMIC(3)


def test_too_few_iterations_give_a_warning():
    views, _ = make_blobs()
    with pytest.warns(ConvergenceWarning, match="COMIC has not converged after max_iter=15 iterations"):
        assert COMIC(max_iter=15).fit(views).n_iter_ == 15


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("n_neighbors", 0, "expected an integer of at least 1"),
        ("n_neighbors", 2.5, "expected an integer of at least 1"),
        ("threshold", 0, "expected a number above 0"),
        ("threshold", np.nan, "expected a number above 0"),
        ("threshold", True, "expected a number above 0"),
        ("pair_rate", True, "expected a number above 0 and at most 1"),
        ("consistency", True, "expected a number of at least 0"),
        ("n_neighbors", True, "expected an integer of at least 1"),
        ("max_iter", True, "expected an integer of at least 1"),
        ("tol", True, "expected a number of at least 0"),
        ("random_state", True, "expected an integer of at least 0, a NumPy Generator or RandomState, or None"),
        ("threshold", "far", "expected a number above 0"),
        ("pair_rate", 0, "expected a number above 0 and at most 1"),
        ("pair_rate", 1.2, "expected a number above 0 and at most 1"),
        ("consistency", -1, "expected a number of at least 0"),
        ("consistency", np.inf, "expected a number of at least 0"),
        ("distance_test", "root", "expected 'paper' or 'program'"),
        ("max_iter", 0, "expected an integer of at least 1"),
        ("tol", -1.0, "expected a number of at least 0"),
        ("random_state", "lucky", "expected an integer of at least 0, a NumPy Generator or RandomState, or None"),
    ],
)
def test_invalid_parameters_are_refused(parameter, value, message):
    with pytest.raises(InputError, match=f"^{parameter}=.*: {message}"):
        COMIC(**{parameter: value}).fit(np.eye(5))


def test_a_fit_that_exceeds_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(runtime, "available_memory", lambda: 10**4)
    with pytest.raises(MemoryError, match="representing 100 samples in 1 views needs about"):
        COMIC().fit(np.random.default_rng(0).normal(size=(100, 200)))


def test_more_clusters_than_half_of_the_samples_give_a_warning():
    views, _ = make_blobs()
    with pytest.warns(ConvergenceWarning, match="found 90 clusters for 90 samples, .* a threshold above 0.01"):
        COMIC(threshold=0.01).fit(views)
