"""OPMC compared with the authors' program, with a reference implementation, and with k-means."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from coview import InputError
from coview.methods.opmc import (
    OPMC,
    assign,
    learnt_weights,
    nearest_centroids,
    one_pass,
    projection,
    random_labels,
    refine,
    spread_out_labels,
)
from coview.methods.opmc_rows import learn_scaling
from tests.conftest import make_blobs
from tests.golden import golden, inputs, load, needs_golden

STEMS = golden("opmc_*")
NORMALIZE = pytest.mark.parametrize("normalize", ["feature", "sample", None])
SPARSE = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def standardise(views, normalize):
    return [learn_scaling(x, normalize)(x) for x in views]


def equal_weights(views):
    weights = np.full(len(views), 1 / len(views))
    return lambda losses: weights


def loosely_clustered(n=80, n_clusters=4, widths=(5, 9, 3), seed=0):
    views, truth = make_blobs(n, n_clusters, widths, spread=1.2, seed=seed)
    return list(views.values()), truth


# ---------------------------------------------------------------------------------------- the authors' program


@needs_golden
@pytest.mark.parametrize("stem", STEMS)
@SPARSE
def test_the_authors_start_leads_to_the_authors_result(stem, sparse):
    answer = load(stem)
    views = [sp.csr_array(x) if sparse else x for x in inputs({"dataset": answer["dataset"]})]
    rows = standardise(views, stem.rsplit("_", 1)[-1])
    latent_centroids = [answer[f"C0_{v}"] for v in range(len(views))]
    run = refine(rows, answer["Y0"], latent_centroids, equal_weights(views), max_iter=500, tol=float(answer["tol"]))
    np.testing.assert_array_equal(run.state.labels, answer["labels"])
    np.testing.assert_allclose(run.objective, answer["objective"][1:], rtol=1e-10)
    assert run.settled
    for v, centroids in enumerate(run.state.centroids):
        np.testing.assert_allclose(centroids, answer[f"CW_{v}"], atol=1e-10 * np.abs(answer[f"CW_{v}"]).max())


@needs_golden
def test_the_published_scores_are_reached():
    views = inputs({"dataset": "synth1_authors"})
    truth = load("opmc_synth1_authors_feature")["y"]
    labels = OPMC(2, normalize="feature", init="random", n_init=20, random_state=0).fit(views).labels_
    assert round(adjusted_rand_score(truth, labels), 3) == 0.972
    assert round(normalized_mutual_info_score(truth, labels), 3) == 0.939


# ------------------------------------------------------------------------------------ reference implementation


def naive_pass(views, labels, latent_centroids, weights):
    """The authors' updates, literally: full matrices, thin decompositions, every distance on its own."""
    n_clusters = len(latent_centroids[0])
    indicator = np.eye(n_clusters)[labels]
    latent, centroids = [], []
    for x, c in zip(views, latent_centroids, strict=True):
        u, _, vt = np.linalg.svd(c.T @ (indicator.T @ x), full_matrices=False)
        w = u @ vt
        means = np.array([x[labels == j].mean(axis=0) for j in range(n_clusters)])
        latent.append(means @ w.T)
        centroids.append(latent[-1] @ w)
    distances = np.zeros((len(labels), n_clusters))
    for i in range(len(labels)):
        for j in range(n_clusters):
            for weight, x, a in zip(weights, views, centroids, strict=True):
                distances[i, j] += weight * ((x[i] - a[j]) ** 2).sum()
    labels = distances.argmin(axis=1)
    indicator = np.eye(n_clusters)[labels]
    losses = [((x - indicator @ a) ** 2).sum() for x, a in zip(views, centroids, strict=True)]
    return labels, latent, centroids, np.array(losses)


@NORMALIZE
@SPARSE
@pytest.mark.parametrize("seed", range(3))
def test_a_pass_matches_the_reference_implementation(normalize, sparse, seed):
    rng = np.random.default_rng(seed)
    views, _ = loosely_clustered(seed=seed)
    rows = standardise([sp.csr_array(x) if sparse else x for x in views], normalize)
    matrices = [x.take(np.arange(80)) for x in rows]
    labels = rng.permutation(np.arange(80) % 4)
    latent = expected_latent = [rng.uniform(size=(4, 4)) for _ in views]
    weights = rng.uniform(size=3)
    for _ in range(4):
        after = one_pass(rows, labels, latent, weights)
        expected, expected_latent, centroids, losses = naive_pass(matrices, labels, expected_latent, weights)
        np.testing.assert_array_equal(after.labels, expected)
        np.testing.assert_allclose(after.losses, losses, rtol=1e-12)
        for ours, theirs in zip(after.centroids, centroids, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
        assert after.objective == pytest.approx(weights @ losses, rel=1e-12)
        labels, latent = after.labels, after.latent_centroids


# ------------------------------------------------------------------------------------------------ properties


@pytest.mark.parametrize("width", [2, 4, 11])
@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_the_span_contains_all_cluster_means_for_any_latent_centroids(width, rank):
    rng = np.random.default_rng(0)
    sums = rng.normal(size=(4, width))
    latent_centroids = rng.normal(size=(4, rank)) @ rng.normal(size=(rank, 4))
    w = projection(latent_centroids, sums)
    np.testing.assert_allclose(sums @ w.T @ w, sums, atol=1e-12)
    m = min(width, 4)
    np.testing.assert_allclose(np.linalg.svd(w, compute_uv=False)[:m], 1.0, atol=1e-12)
    # No other orthonormal matrix comes nearer to Cᵀ Yᵀ X: the trace of their product is the sum of singular values.
    product = latent_centroids.T @ sums
    assert np.trace(w @ product.T) == pytest.approx(np.linalg.svd(product, compute_uv=False).sum(), abs=1e-10)


@NORMALIZE
@pytest.mark.parametrize("seed", range(3))
def test_with_fixed_weights_the_result_is_a_fixed_point_of_k_means_on_all_columns(normalize, seed):
    views, _ = loosely_clustered(seed=seed)
    model = OPMC(4, normalize=normalize, init="random", n_init=1, tol=0, random_state=seed).fit(views)
    side_by_side = np.hstack([x.matrix / np.sqrt(len(views)) for x in standardise(views, normalize)])
    means = np.array([side_by_side[model.labels_ == j].mean(axis=0) for j in range(4)])
    cost = ((side_by_side - means[model.labels_]) ** 2).sum()
    assert model.objective_[-1] == pytest.approx(cost, rel=1e-12)
    again = KMeans(4, init=means, n_init=1, tol=0).fit(side_by_side)
    np.testing.assert_array_equal(again.labels_, model.labels_)


@pytest.mark.parametrize("learn_weights", [False, True])
@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_the_objective_never_rises(init, learn_weights):
    for seed in range(10):
        views, _ = loosely_clustered(seed=seed)
        model = OPMC(6, init=init, n_init=1, learn_weights=learn_weights, random_state=seed).fit(views)
        assert (np.diff(model.objective_) <= 1e-12 * model.objective_[0]).all()
        assert model.n_iter_ == len(model.objective_) >= 2


def test_the_start_that_ends_lowest_is_kept():
    views, _ = loosely_clustered(n=200)
    rng = np.random.default_rng(0)
    ends = [OPMC(8, init="random", n_init=1, random_state=rng).fit(views).objective_[-1] for _ in range(10)]
    best = OPMC(8, init="random", n_init=10, random_state=0).fit(views)
    assert best.objective_[-1] == pytest.approx(min(ends), rel=1e-12)
    assert np.argmin(ends) > 0
    assert len(set(np.round(ends, 6))) > 1


# -------------------------------------------------------------------------------------------------- the weights


def test_learnt_weights_minimise_the_objective():
    losses = np.array([3.0, 1.0, 7.0])
    best = learnt_weights(losses, totals=np.full(3, 10.0))
    assert np.sqrt(best).sum() == pytest.approx(1)
    for alpha in np.random.default_rng(0).dirichlet(np.ones(3), size=2000):
        assert best @ losses <= alpha**2 @ losses + 1e-12


def test_views_without_loss_have_all_the_weight_and_constant_views_none():
    totals = np.array([10.0, 10.0, 10.0, 0.0])
    np.testing.assert_allclose(learnt_weights(np.array([0.0, 2.0, 0.0, 0.0]), totals), [0.25, 0, 0.25, 0])
    np.testing.assert_allclose(learnt_weights(np.array([2.0, 2.0, 2.0, 0.0]), totals), [1 / 9, 1 / 9, 1 / 9, 0])
    np.testing.assert_allclose(learnt_weights(np.zeros(2), np.zeros(2)), [0.25, 0.25])


def test_learnt_weights_prefer_the_view_that_has_clusters():
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    informative, noise = np.eye(3)[truth] * 8 + rng.normal(size=(90, 3)), rng.normal(size=(90, 3))
    fixed, learnt = (
        OPMC(3, learn_weights=learn, random_state=0).fit(
            {"informative": informative, "noise": noise, "same": np.ones((90, 2))}
        )
        for learn in (False, True)
    )
    assert fixed.view_weights_ == pytest.approx(dict.fromkeys(["informative", "noise", "same"], 1 / 3))
    assert learnt.view_weights_["informative"] > 10 * learnt.view_weights_["noise"] > 0
    assert learnt.view_weights_["same"] == 0
    assert adjusted_rand_score(truth, learnt.labels_) == 1


# ---------------------------------------------------------------------------------------------------- the starts


def test_k_means_plus_plus_starts_in_every_distant_group():
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 6
    rows = standardise([np.eye(6)[truth] * 100 + rng.normal(size=(60, 6))], "feature")
    for seed in range(5):
        assert adjusted_rand_score(truth, spread_out_labels(rows, 6, np.random.default_rng(seed))) == 1


def test_random_labels_are_drawn_evenly():
    labels = random_labels(standardise([np.ones((3000, 1))], None), 3, np.random.default_rng(0))
    assert np.abs(np.bincount(labels) - 1000).max() < 100


def test_random_labels_leave_no_cluster_empty():
    rows = standardise([np.ones((9, 1))], None)
    for seed in range(20):
        assert len(set(random_labels(rows, 8, np.random.default_rng(seed)))) == 8


def test_empty_clusters_restart_at_the_farthest_samples():
    x = np.array([[0.0], [1.0], [10.0], [11.0], [300.0]])
    rows, mean = standardise([x], None), x.mean()
    for at, expected in (([0.5, 10.5, 1e4], [0, 0, 1, 1, 2]), ([0.5, 1e4, 2e4], [0, 0, 2, 2, 1])):
        centroids = [np.array(at)[:, None] - mean]
        labels, distances = assign(rows, centroids, np.ones(1))
        assert labels.tolist() == expected
        np.testing.assert_allclose(distances[:, 0], (x - mean - centroids[0][labels])[:, 0] ** 2, atol=1e-9)


def test_every_cluster_has_members_if_there_are_enough_distinct_samples():
    x = np.repeat(np.random.default_rng(0).normal(size=(12, 2)), 4, axis=0)
    for seed in range(10):
        labels = OPMC(12, init="random", n_init=1, random_state=seed).fit(x).labels_
        assert len(set(labels)) == 12


# -------------------------------------------------------------------------------------------------- new samples


def assert_same_in_any_batch(model, views):
    n = views[0].shape[0]
    whole = model.predict(views)
    single = np.concatenate([model.predict([x[[i]] for x in views]) for i in range(n)])
    pairs = np.concatenate([model.predict([x[i : i + 2] for x in views]) for i in range(0, n, 2)])
    np.testing.assert_array_equal(single, whole)
    np.testing.assert_array_equal(pairs, whole)


@NORMALIZE
@SPARSE
@pytest.mark.parametrize("learn_weights", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_ties_in_symmetric_data_have_the_same_label_in_any_batch(normalize, sparse, learn_weights, offset):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(20, 3)) + np.array([2.0, 0, 0])
    views = [np.vstack([half, half[:, [1, 0, 2]]]) + offset, np.vstack([half**2, half[:, [1, 0, 2]] ** 2])]
    new = rng.normal(size=(60, 3)) * 3
    new[:, 1] = new[:, 0]  # exact ties between a cluster and its mirror image
    tied = [new + offset, new**2]
    if sparse:
        views, tied = [sp.csr_array(x) for x in views], [sp.csr_array(x) for x in tied]
    model = OPMC(2, normalize=normalize, learn_weights=learn_weights, random_state=0).fit(views)
    assert_same_in_any_batch(model, tied)
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@NORMALIZE
@SPARSE
def test_few_distinct_values_have_the_same_label_in_any_batch(normalize, sparse):
    rng = np.random.default_rng(0)
    for seed in range(20):
        x = rng.choice([0.0, 0.1, 1.0, 1 / 3, -1.0], size=(24, 3))
        given = sp.csr_array(x) if sparse else np.asfortranarray(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # there may be fewer distinct samples than clusters
            model = OPMC(3, normalize=normalize, n_init=2, random_state=seed).fit([given, given[:, :2]])
        np.testing.assert_array_equal(model.predict([given, given[:, :2]]), model.labels_)
        assert_same_in_any_batch(model, [given, given[:, :2]])
        for row in np.unique(x, axis=0):
            assert len(set(model.labels_[(x == row).all(axis=1)])) == 1


def test_new_rows_join_the_nearest_centroid():
    views, _ = loosely_clustered()
    model = OPMC(4, learn_weights=True, random_state=0).fit([x[:60] for x in views])
    distances = np.zeros((20, 4))
    for (name, centroids), x in zip(model.centroids_.items(), views, strict=True):
        spread = x[:60].std(axis=0, ddof=1)
        gaps = (x[60:, None] - centroids) / spread
        distances += model.view_weights_[name] * (gaps**2).sum(axis=2)
    np.testing.assert_array_equal(model.predict([x[60:] for x in views]), distances.argmin(axis=1))


def test_ties_go_to_the_first_cluster():
    rows = standardise([np.array([[0.0], [1.0], [2.0]])], None)
    labels, distances, tied = nearest_centroids(rows, [np.array([[1.0], [-1.0], [-1.0]])], np.ones(1))
    assert labels.tolist() == [1, 0, 0]
    assert tied.tolist() == [True, True, False]
    np.testing.assert_allclose(distances[:, 0], [0, 1, 0])


def test_files_are_labelled_block_by_block(tmp_path):
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(60_000, d)).astype(np.float32) for d in (100, 60)]
    for i, x in enumerate(views):
        np.save(tmp_path / f"{i}.npy", x)
    model = OPMC(3, random_state=0, n_init=1).fit([x[:500] for x in views])
    mapped = [np.load(tmp_path / f"{i}.npy", mmap_mode="r") for i in range(2)]
    tracemalloc.start()
    labels = model.predict(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6  # one copy in float64 would take 77 MB
    np.testing.assert_array_equal(labels[:500], model.labels_)
    np.testing.assert_array_equal(labels[-900:], model.predict([x[-900:] for x in views]))


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_a_fit_takes_little_more_memory_than_one_copy_of_the_views(init):
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(20_000, d)) for d in (60, 40)]
    tracemalloc.start()
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        OPMC(10, init=init, n_init=2, max_iter=3, random_state=0).fit(views)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6 + 14e6


# ------------------------------------------------------------------------------------------------- edge cases, errors


@NORMALIZE
@SPARSE
def test_fitted_attributes_agree_with_each_other(normalize, sparse):
    views, truth = make_blobs(spread=8.0)
    given = {name: sp.csr_array(x) if sparse else x for name, x in views.items()}
    model = OPMC(3, normalize=normalize, tol=0, random_state=0).fit(given)
    assert adjusted_rand_score(truth, model.labels_) == 1
    assert list(model.centroids_) == list(model.view_weights_) == ["a", "b", "c"]
    for name, x in views.items():
        members = learn_scaling(x, "sample")(x).matrix if normalize == "sample" else x
        means = [members[model.labels_ == j].mean(axis=0) for j in range(3)]
        np.testing.assert_allclose(model.centroids_[name], means, atol=1e-10)


@pytest.mark.parametrize("n_views", [1, 8])
def test_one_view_and_eight_views_are_accepted(n_views):
    views, truth = make_blobs(widths=(3,) * n_views, spread=8.0)
    assert adjusted_rand_score(truth, OPMC(3, random_state=0).fit(views).labels_) == 1


def test_sparse_and_dense_views_give_the_same_labels():
    rng = np.random.default_rng(0)
    for seed in range(5):
        x = rng.poisson(rng.gamma(0.3, size=(4, 40))[np.arange(100) % 4]).astype(np.float64)
        for settings in ({}, {"normalize": "sample"}, {"normalize": None}, {"learn_weights": True}):
            dense = OPMC(4, random_state=seed, **settings).fit([x[:, :25], x[:, 25:]])
            mixed = OPMC(4, random_state=seed, **settings).fit([sp.csr_array(x[:, :25]), x[:, 25:]])
            np.testing.assert_array_equal(mixed.labels_, dense.labels_)
            np.testing.assert_allclose(mixed.objective_, dense.objective_, rtol=1e-10)


@NORMALIZE
def test_a_distant_sample_has_its_own_cluster_and_does_not_change_the_others(normalize):
    views, truth = make_blobs(spread=6.0, widths=(6, 8))
    far = [
        np.vstack([x, np.full((1, x.shape[1]), 1e5) * np.where(np.arange(x.shape[1]) % 2, 1, -1)])
        for x in views.values()
    ]
    if normalize == "feature":  # it would dominate the spread of the columns
        far = [np.vstack([x[:-1], x[-1:] / 1e3]) for x in far]
    labels = OPMC(4, normalize=normalize, random_state=0).fit(far).labels_
    if normalize != "sample":  # which keeps only the direction of a sample
        assert (labels == labels[-1]).sum() == 1
    assert adjusted_rand_score(truth, labels[:-1]) > 0.9


@pytest.mark.parametrize("value", [0.0, 0.1, 1e150])
@NORMALIZE
@pytest.mark.parametrize("learn_weights", [False, True])
@pytest.mark.filterwarnings("ignore:the views .* have the same values")
def test_identical_samples_are_one_cluster(value, normalize, learn_weights):
    x = np.full((12, 4), value)
    x[:, 0] *= 2
    for given in (x, sp.csr_array(x)):
        with pytest.warns(ConvergenceWarning, match="found 1 distinct clusters instead of n_clusters=3"):
            model = OPMC(3, normalize=normalize, learn_weights=learn_weights, random_state=0).fit([given, given])
        assert model.labels_.tolist() == [0] * 12
        assert model.predict([given[:2], given[:2]]).tolist() == [0, 0]


def test_empty_rows_and_constant_columns_do_no_harm():
    views, truth = make_blobs(spread=8.0)
    views = [np.column_stack([x, np.full(len(x), 7.0)]) for x in views.values()]
    views[0][:10] = 0.0
    for normalize in ("feature", "sample"):
        labels = OPMC(3, normalize=normalize, random_state=0).fit(views).labels_
        assert adjusted_rand_score(truth[10:], labels[10:]) == 1


def test_units_of_a_view_do_not_matter():
    views, _ = loosely_clustered()
    expected = OPMC(4, random_state=0).fit(views).labels_
    for factor in (1e-150, 1e150):
        np.testing.assert_array_equal(OPMC(4, random_state=0).fit([x * factor for x in views]).labels_, expected)


def test_the_same_seed_gives_the_same_labels():
    views, _ = loosely_clustered()
    for init in ("random", "k-means++"):
        first, second = (OPMC(6, init=init, n_init=2, random_state=5).fit(views) for _ in range(2))
        np.testing.assert_array_equal(first.labels_, second.labels_)
        np.testing.assert_array_equal(first.objective_, second.objective_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"normalize": "columns"}, ["normalize='columns'", "'feature' or 'sample' or None"]),
        ({"normalize": 1}, ["normalize=1"]),
        ({"init": "best"}, ["init='best'", "'k-means++' or 'random'"]),
        ({"init": None}, ["init=None"]),
        ({"n_init": 0}, ["n_init=0", "at least 1"]),
        ({"n_init": 1.5}, ["n_init=1.5"]),
        ({"n_init": True}, ["n_init=True"]),
        ({"learn_weights": 1}, ["learn_weights=1"]),
        ({"learn_weights": "yes"}, ["learn_weights='yes'", "True or False"]),
        ({"max_iter": 0}, ["max_iter=0"]),
        ({"tol": -1}, ["tol=-1"]),
        ({"n_clusters": 1}, ["n_clusters=1"]),
        ({"n_clusters": 100}, ["n_samples=90", "n_clusters=100"]),
    ],
)
def test_invalid_parameters_are_refused(settings, words):
    with pytest.raises(InputError) as caught:
        OPMC(**settings).fit(make_blobs()[0])
    for word in words:
        assert word in str(caught.value)


@SPARSE
def test_numbers_too_large_are_refused_with_the_name_of_their_view(sparse):
    views, _ = make_blobs()
    huge = {name: x * 1e160 if name == "b" else x for name, x in views.items()}
    if sparse:
        views, huge = ({name: sp.csr_array(x) for name, x in given.items()} for given in (views, huge))
    with pytest.raises(InputError, match="view 'b' has numbers too large"):
        OPMC(3, normalize=None).fit(huge)
    model = OPMC(3, random_state=0).fit(views)
    with pytest.raises(InputError, match="view 'b' has numbers too large"):
        model.predict(huge)
