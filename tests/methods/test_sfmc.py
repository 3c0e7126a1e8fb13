import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from coview import InputError, as_views
from coview.methods import sfmc
from coview.methods.bipartite import n_components, weighted_graph
from coview.methods.sfmc import (
    SFMC,
    alternate_sampling,
    bipartite_graphs,
    learn_graph_weights,
    salience,
    structured_graph,
)
from tests.conftest import make_blobs
from tests.golden import golden, inputs, load, needs_golden

GOLDEN = pytest.mark.parametrize("stem", golden("sfmc_*"))


def their_graph(answer):
    return sp.csr_array((answer["P_val"], (answer["P_row"], answer["P_col"])), shape=tuple(answer["P_shape"]))


@needs_golden
@GOLDEN
def test_with_the_authors_anchors_the_clusters_and_weights_are_the_same(stem):
    answer = load(stem)
    k = len(np.unique(answer["labels"]))
    model = SFMC(k, anchors=answer["anchor_idx"], tol=0.0).fit(inputs(answer))
    assert adjusted_rand_score(answer["labels"], model.labels_) == 1
    assert model.n_iter_ == answer["outer"]
    # Their quadratic solver stops early, by 2e-4 in every iteration.
    np.testing.assert_allclose(list(model.view_weights_.values()), answer["alpha_trace"][:, -1], atol=5e-3)
    if stem == "sfmc_synth1_authors":  # the paper's table
        assert round(adjusted_rand_score(answer["y"], model.labels_), 3) == 0.968
        assert round(normalized_mutual_info_score(answer["y"], model.labels_), 3) == 0.936


@needs_golden
@pytest.mark.parametrize("stem", ["sfmc_3sources", "sfmc_digits500"])
def test_stopping_at_convergence_gives_the_same_clusters(stem):
    answer = load(stem)
    model = SFMC(len(np.unique(answer["labels"])), anchors=answer["anchor_idx"]).fit(inputs(answer))
    assert adjusted_rand_score(answer["labels"], model.labels_) == 1


@needs_golden
@GOLDEN
def test_with_the_authors_weights_the_graph_is_the_same(stem):
    answer = load(stem)
    fused = weighted_graph(
        bipartite_graphs(as_views(inputs(answer)), answer["anchor_idx"], 10), answer["alpha_trace"][:, -1]
    )
    if stem == "sfmc_3sources":
        # Raw counts have exact ties: sample 119 is as far from its 10th anchor as from its 11th (number 79), an edge of
        # weight zero. In their program rounding left a weight of 1e-17, which the projections amplified to 2e-4.
        assert fused[119, 79] == 0
        fused = fused.tolil()
        fused[119, 79] = 1e-17
    graph = structured_graph(sp.csr_array(fused), len(np.unique(answer["labels"])))
    atol = {"sfmc_digits500": 1e-6, "sfmc_3sources": 3e-7}.get(stem, 1e-8)
    np.testing.assert_allclose(graph.toarray(), their_graph(answer).toarray(), rtol=0, atol=atol)


@needs_golden
@GOLDEN
def test_the_first_anchors_are_those_of_the_authors_program(stem):
    """Only the first twenty: rounding errors double with every anchor, so later ones are arbitrary."""
    answer = load(stem)
    first = alternate_sampling(salience(as_views(inputs(answer))), 20)
    assert set(first) <= set(answer["anchor_idx"])


def slow_graph(x, anchors, q):
    """B of one view, with the paper's formula row by row."""
    graph = np.zeros((len(x), len(anchors)))
    for i, row in enumerate(x):
        distances = np.array([((row - x[a]) ** 2).sum() for a in anchors])
        order = np.argsort(distances)
        near, beyond = distances[order[:q]], distances[order[q]]
        graph[i, order[:q]] = (beyond - near) / (q * beyond - near.sum())
    return graph


def slow_projection(v):
    """Bisection for the threshold."""
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(v - low, 0)


def slow_structured_graph(a, k):
    """The authors' loop with dense matrices, and eigenvalues to count components by."""

    def embed(p):
        r, c = p.sum(axis=1) ** -0.5, p.sum(axis=0) ** -0.5
        u, s, vt = np.linalg.svd(r[:, None] * p * c)
        return u[:, :k] * 0.5**0.5, vt[:k].T * 0.5**0.5, s**2, r, c

    u, v, _, _, _ = embed(a)
    r, c, penalty = np.ones(len(a)), np.full(a.shape[1], 10.0), 0.1
    for _ in range(50):
        pull = np.array([[((u[i] * r[i] - v[j] * c[j]) ** 2).sum() for j in range(len(c))] for i in range(len(r))])
        target = a - penalty / 2 * pull
        rows, columns = np.zeros(a.shape), np.zeros(a.shape)
        for i in range(len(r)):
            rows[i, a[i] > 0] = slow_projection(target[i, a[i] > 0])
        for j in range(len(c)):
            columns[a[:, j] > 0, j] = slow_projection(target[a[:, j] > 0, j])
        p = (rows + columns) / 2
        new_u, new_v, values, r, c = embed(p)
        if values[:k].sum() < k - 1e-7:
            penalty, u, v = 2 * penalty, new_u, new_v
        elif values[: k + 1].sum() > k + 1 - 1e-7:
            penalty /= 2
        else:
            return p
    raise AssertionError


def small_graphs(spread=1.0, n_neighbors=5, seed=0):
    views, _ = make_blobs(40, spread=spread, seed=seed)
    anchors = np.arange(0, 40, 2)
    return bipartite_graphs(as_views(views), anchors, n_neighbors), views, anchors


def skipping_graph():
    """Of 4 components: λ goes up to 5, back to 2, and up again."""
    graphs, _, _ = small_graphs(n_neighbors=3, seed=33)
    return weighted_graph(graphs, np.full(3, 1 / 3))


def test_graphs_of_the_views_match_the_reference_implementation():
    graphs, views, anchors = small_graphs()
    for graph, x in zip(graphs, views.values(), strict=True):
        np.testing.assert_allclose(graph.toarray(), slow_graph(x, anchors, 5), atol=1e-9)
        assert (graph.data > 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_structured_graph_matches_the_reference_implementation(seed):
    graphs, _, _ = small_graphs(seed=seed)
    fused = weighted_graph(graphs, np.array([0.5, 0.3, 0.2]))
    graph = structured_graph(fused, 3)
    assert n_components(fused) == 1
    assert n_components(graph) == 3
    np.testing.assert_allclose(graph.toarray(), slow_structured_graph(fused.toarray(), 3), atol=1e-8)


def test_the_structured_graph_matches_the_reference_implementation_after_too_large_a_penalty():
    graph = structured_graph(skipping_graph(), 4)
    assert n_components(graph) == 4
    np.testing.assert_allclose(graph.toarray(), slow_structured_graph(skipping_graph().toarray(), 4), atol=1e-8)


def test_a_search_that_ends_early_prefers_too_many_components(monkeypatch):
    monkeypatch.setattr(sfmc, "_INNER", 12)
    assert n_components(structured_graph(skipping_graph(), 4)) == 5  # the nearest of which can be joined
    monkeypatch.setattr(sfmc, "_INNER", 9)
    assert n_components(structured_graph(skipping_graph(), 4)) == 2


def test_weights_minimise_the_distance_to_the_graph():
    graphs, _, _ = small_graphs()
    loop = learn_graph_weights(graphs, 3, max_iter=1, tol=0.0)
    graph = structured_graph(weighted_graph(graphs, np.full(3, 1 / 3)), 3).toarray()

    def distance(weights):
        return ((sum(w * b.toarray() for w, b in zip(weights, graphs, strict=True)) - graph) ** 2).sum()

    assert loop.objective[0] == pytest.approx(distance(loop.state), rel=1e-10)
    rng = np.random.default_rng(0)
    assert all(distance(w) >= loop.objective[0] for w in rng.dirichlet(np.ones(3), size=200))
    assert all(distance(0.999 * loop.state + 0.001 * w) > loop.objective[0] for w in np.eye(3))


def test_alternate_sampling_is_the_authors_recurrence():
    rng = np.random.default_rng(0)
    scores = rng.random(30)
    s, expected = list(scores / max(scores)), []
    for _ in range(10):
        expected.append(max(range(30), key=lambda i: s[i]))
        s = [value * (1 - value) for value in s]
        s = [value / max(s) for value in s]
    np.testing.assert_array_equal(alternate_sampling(scores, 10), sorted(expected))


@pytest.mark.parametrize("scores", [np.zeros(6), np.ones(6), np.array([1.0, 1.0, 0.5, 0.5, 0.0, 0.0])])
def test_equal_scores_still_give_different_anchors(scores):
    for count in range(1, 7):
        assert len(np.unique(alternate_sampling(scores, count))) == count


def test_salience_is_the_sum_of_features_above_their_minima():
    a, b = np.array([[1.0, -2], [3, 0], [2, 4]]), np.array([[-1.0], [-3], [-2]])
    expected = np.array([0 + 0, 2 + 2, 1 + 6]) / 4 + np.array([2, 0, 1]) / 3  # the largest absolute value of b is 3
    np.testing.assert_allclose(salience(as_views([a, b])), (expected / expected.max()).round(9))
    np.testing.assert_array_equal(salience(as_views([sp.csr_array(a), b])), salience(as_views([a, b])))
    np.testing.assert_array_equal(salience(as_views([np.zeros((2, 2))])), [0, 0])


def test_a_view_has_no_edges_of_duplicates_unless_all_views_have_them():
    duplicates = np.concatenate([np.zeros((8, 2)), np.arange(8.0).reshape(4, 2) + 5])
    distinct = np.arange(24.0).reshape(12, 2)
    anchors = np.arange(12)
    without_edges, complete = bipartite_graphs(as_views([duplicates, distinct]), anchors, 3)
    assert np.flatnonzero(without_edges.sum(axis=1) == 0).tolist() == list(range(8))
    np.testing.assert_allclose(complete.sum(axis=1), 1)
    (alone,) = bipartite_graphs(as_views([duplicates]), anchors, 3)
    np.testing.assert_allclose(alone.toarray()[0], [0.25] * 4 + [0] * 8)


def test_fitted_attributes_agree_with_each_other():
    views, truth = make_blobs(spread=2.0)
    model = SFMC(3).fit(views)
    assert model.graph_.shape == (90, 45)
    assert isinstance(model.graph_, sp.csr_array)
    assert len(np.unique(model.anchor_indices_)) == 45
    assert list(model.view_weights_) == ["a", "b", "c"]
    assert sum(model.view_weights_.values()) == pytest.approx(1)
    assert len(model.objective_) == model.n_iter_ <= 10
    assert n_components(model.graph_) == 3
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    rows, columns = model.graph_.nonzero()
    np.testing.assert_array_equal(model.labels_[rows], model.labels_[model.anchor_indices_[columns]])


def test_anchors_may_be_a_fraction_a_number_or_samples():
    views, _ = make_blobs()
    half, number = SFMC(3).fit(views), SFMC(3, anchors=45).fit(views)
    given = SFMC(3, anchors=half.anchor_indices_[::-1].tolist()).fit(views)
    for model in (number, given):
        np.testing.assert_array_equal(model.anchor_indices_, half.anchor_indices_)
        np.testing.assert_array_equal(model.labels_, half.labels_)
    assert len(SFMC(3, anchors=1.0).fit(views).anchor_indices_) == 90
    assert len(SFMC(3, anchors=0.01).fit(views).anchor_indices_) == 3  # no fewer than clusters


def test_a_graph_that_has_the_right_number_of_components_is_not_changed():
    views, truth = make_blobs(spread=30.0)
    model = SFMC(3).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    np.testing.assert_allclose(list(model.view_weights_.values()), 1 / 3, atol=1e-6)
    np.testing.assert_allclose(model.objective_, 0, atol=1e-12)


def test_surplus_components_are_joined_to_the_nearest():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 30)
    centres = np.array([[0.0], [100.0], [1000.0], [1120.0]])
    x = centres[truth] + rng.normal(size=(120, 1))
    for form in (np.asarray, sp.csr_array):
        model = SFMC(2).fit([form(x), form(-x)])
        assert n_components(model.graph_) == 4
        assert adjusted_rand_score(truth // 2, model.labels_) == 1
    assert adjusted_rand_score(truth, SFMC(4).fit([x, -x]).labels_) == 1


def test_a_small_neighbourhood_leaves_many_components_to_join():
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    x = 9 * np.eye(3)[truth] + rng.normal(size=(90, 3))
    model = SFMC(3, n_neighbors=1).fit([x])
    assert n_components(model.graph_) == 45  # every sample with its nearest anchor only
    assert adjusted_rand_score(truth, model.labels_) == 1


def test_identical_samples_give_one_cluster_and_a_warning():
    with pytest.warns(ConvergenceWarning, match="found 1 distinct clusters instead of n_clusters=3"):
        model = SFMC(3).fit([np.ones((12, 4)), np.zeros((12, 2))])
    assert model.labels_.tolist() == [0] * 12


def test_an_uninformative_view_gets_less_weight():
    views, _ = make_blobs(spread=1.5)
    views["noise"] = np.random.default_rng(5).normal(size=(90, 4))
    model = SFMC(3).fit(views)
    assert model.view_weights_["noise"] == min(model.view_weights_.values())


def test_too_few_iterations_give_no_warning():
    """The published method stops after ten iterations, converged or not."""
    views, _ = make_blobs(spread=0.5)
    model = SFMC(3, tol=0.0, max_iter=2).fit(views)
    assert model.n_iter_ == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"anchors": 0.0}, ["anchors=0.0", "fraction"]),
        ({"anchors": 1.5}, ["anchors=1.5", "fraction"]),
        ({"anchors": 2}, ["anchors=2", "n_clusters=3"]),
        ({"anchors": 91}, ["anchors=91", "n_samples=90"]),
        ({"anchors": True}, ["anchors=True"]),
        ({"anchors": "half"}, ["anchors='half'"]),
        ({"anchors": [0, 1]}, ["anchors=[0, 1]", "n_clusters=3"]),
        ({"anchors": [0, 1, 1]}, ["different"]),
        ({"anchors": [0, 1, 90]}, ["n_samples=90"]),
        ({"anchors": [-1, 1, 2]}, ["sample numbers"]),
        ({"n_neighbors": 0}, ["n_neighbors=0", "at least 1"]),
        ({"n_neighbors": 2.5}, ["n_neighbors=2.5"]),
        ({"n_neighbors": True}, ["n_neighbors=True"]),
        ({"max_iter": 0}, ["max_iter=0"]),
        ({"tol": -1}, ["tol=-1"]),
    ],
)
def test_invalid_parameters_are_refused(settings, words):
    views, _ = make_blobs()
    with pytest.raises(InputError) as caught:
        SFMC(3, **settings).fit(views)
    assert all(word in str(caught.value) for word in words)
