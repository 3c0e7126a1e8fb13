import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coview import RBF, InputError, Linear
from coview.core.linalg import polar
from coview.methods.op_lfmvc import (
    OPLFMVC,
    aligned_start,
    fuse_partitions,
    late_fusion,
    unit_diagonal,
    view_weights,
)
from tests.conftest import make_blobs
from tests.core.test_gram import gram_of
from tests.golden import assert_equal_up_to_sign, golden, inputs, load, needs_golden

GOLDEN = golden("oplfmvc_*")


def random_partitions(n_views=3, n_samples=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([np.linalg.qr(rng.normal(size=(n_samples, k)))[0] for _ in range(n_views)])


# The authors' program


@needs_golden
@pytest.mark.parametrize("stem", GOLDEN)
def test_fusion_from_the_authors_start_gives_their_result(stem):
    answer = load(stem)
    partitions = np.moveaxis(answer["HP"], 2, 0)
    rotations = np.stack([np.eye(int(answer["k"]))] * len(partitions))
    loop = late_fusion(partitions, rotations, answer["C0"], tol=float(answer["tol"]))
    np.testing.assert_array_equal(loop.state.labels, answer["labels"])
    np.testing.assert_allclose(loop.objective, answer["objective"], rtol=1e-10)
    np.testing.assert_allclose(loop.state.weights, answer["beta"], atol=1e-10)
    np.testing.assert_allclose(loop.state.centres, answer["C"], atol=1e-10)
    np.testing.assert_allclose(np.moveaxis(loop.state.rotations, 0, 2), answer["WP"], atol=1e-10)
    assert loop.settled


@needs_golden
@pytest.mark.parametrize("stem", GOLDEN)
def test_base_partitions_are_those_of_the_authors_kernels(stem):
    answer = load(stem)
    views = inputs(answer)
    if "digits" in stem:
        views = [(x - x.mean(axis=0)) / x.std(axis=0, ddof=1) for x in views]
    kernel = Linear() if "3sources" in stem else [RBF(np.median(pdist(x, "sqeuclidean"))) for x in views]
    model = OPLFMVC(int(answer["k"]), kernel=kernel, random_state=0).fit(views)
    for ours, theirs in zip(model.partitions_.values(), np.moveaxis(answer["HP"], 2, 0), strict=True):
        assert_equal_up_to_sign(ours, theirs, 1e-8)


# Reference implementations


def naive_iteration(partitions, labels, centres, weights, rotations):
    """One iteration with every matrix formed, in the paper's order; the labels come from the old M."""
    views, k = range(len(partitions)), len(centres)
    fused = sum(weights[p] * partitions[p] @ rotations[p] for p in views)
    labels = [max(range(k), key=lambda j: row @ centres[j]) for row in fused]
    indicator = np.array([[float(label == j) for j in range(k)] for label in labels])
    u, _, vt = np.linalg.svd(indicator.T @ fused)
    centres = u @ vt
    consensus = indicator @ centres
    agreement = np.array([np.trace(consensus.T @ partitions[p] @ rotations[p]) for p in views])
    weights = np.maximum(agreement / np.sqrt(sum(agreement**2)), 0)
    weights = weights / np.sqrt(sum(weights**2))
    for p in views:
        u, _, vt = np.linalg.svd(partitions[p].T @ consensus)
        rotations[p] = u @ vt
    fused = sum(weights[p] * partitions[p] @ rotations[p] for p in views)
    return labels, centres, weights, rotations, np.trace(consensus.T @ fused)


@pytest.mark.parametrize("seed", range(5))
def test_fusion_matches_the_reference_implementation(seed):
    partitions = random_partitions(seed=seed)
    rng = np.random.default_rng(seed)
    start = np.stack([polar(rng.normal(size=(3, 3))) for _ in range(3)])
    centres = polar(rng.normal(size=(3, 3)))
    loop = late_fusion(partitions, start, centres)
    labels, weights, rotations = [], np.full(3, 3**-0.5), list(start)
    for objective in loop.objective:
        labels, centres, weights, rotations, expected = naive_iteration(partitions, labels, centres, weights, rotations)
        assert objective == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(loop.state.labels, labels)
    np.testing.assert_allclose(loop.state.weights, weights, atol=1e-12)
    np.testing.assert_allclose(
        loop.state.partition, fuse_partitions(partitions, np.stack(rotations), weights), atol=1e-12
    )


@pytest.mark.parametrize("seed", range(10))
def test_the_objective_never_decreases_from_any_start(seed):
    rng = np.random.default_rng(seed)
    partitions = random_partitions(4, 60, 5, seed)
    rotations = np.stack([polar(rng.normal(size=(5, 5))) for _ in range(4)])
    loop = late_fusion(partitions, rotations, polar(rng.normal(size=(5, 5))), tol=1e-9)
    assert len(loop.objective) >= 3
    assert np.diff(loop.objective).min() > -1e-12
    assert (loop.state.weights >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(loop.state.weights), 1)


def test_kernels_are_centred_and_scaled_to_unit_diagonal():
    x = np.random.default_rng(0).normal(size=(700, 3))  # several tiles
    centring = np.eye(700) - 1 / 700
    expected = centring @ RBF(2.0)(x) @ centring
    expected = expected / np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    for n_jobs in (1, 2):
        kernel = unit_diagonal(gram_of(RBF(2.0), x, n_jobs=n_jobs)).to_dense()
        np.testing.assert_allclose(kernel, expected, atol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(), 1)


def test_kernels_can_be_left_without_centring():
    x = np.random.default_rng(0).normal(size=(60, 3))
    expected = Linear()(x) / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(x, axis=1))
    np.testing.assert_allclose(unit_diagonal(gram_of(Linear(), x), center=False).to_dense(), expected, atol=1e-12)
    centred, other = (OPLFMVC(3, kernel=RBF(4.0), center=c, random_state=0).fit([x]).partitions_ for c in (True, False))
    _, vectors = np.linalg.eigh(RBF(4.0)(x))
    (partition,) = other.values()
    assert_equal_up_to_sign(partition, vectors[:, ::-1][:, :3], 1e-8)  # the solver's tolerance
    assert abs(partition[:, 0].sum()) > 5 > abs(next(iter(centred.values()))[:, 0].sum())


def test_a_sample_at_the_mean_has_similarity_zero():
    x = np.array([[-1.3, 0.1], [0.3, -0.4], [1.0, 0.3], [0.0, 0.0]]) + 0.7
    kernel = unit_diagonal(gram_of(Linear(), x)).to_dense()
    np.testing.assert_array_equal(kernel[3], 0)
    np.testing.assert_allclose(kernel.diagonal()[:3], 1)


@pytest.mark.parametrize("kernel", [RBF(), Linear()])
def test_the_kernel_of_a_constant_view_is_zero(kernel):
    gram = gram_of(kernel.resolve(np.full((50, 7), 3.7)), np.full((50, 7), 3.7))
    np.testing.assert_array_equal(unit_diagonal(gram).to_dense(), 0)


# The start


def test_the_start_does_not_depend_on_the_signs_of_eigenvectors():
    rng = np.random.default_rng(0)
    partitions = random_partitions()
    average = partitions[0] + 0.3 * partitions[1]
    signs = rng.choice([-1.0, 1.0], size=(3, 1, 3))
    labels, objectives = [], []
    for given in (partitions, partitions * signs):
        loop = late_fusion(given, *aligned_start(given, average, 3, np.random.default_rng(0)))
        labels.append(loop.state.labels)
        objectives.append(loop.objective)
    np.testing.assert_array_equal(*labels)
    np.testing.assert_allclose(*objectives, rtol=1e-12)


def test_rotations_align_every_view_with_the_average():
    reference = random_partitions(1)[0]
    turned = np.stack([reference @ polar(np.random.default_rng(p).normal(size=(3, 3))) for p in range(3)])
    rotations, _ = aligned_start(turned, reference, 3, np.random.default_rng(0))
    np.testing.assert_allclose(turned @ rotations, np.stack([reference] * 3), atol=1e-12)


def test_centres_start_at_the_clusters_of_the_average_kernel():
    turn = polar(np.random.default_rng(0).normal(size=(3, 3)))
    average = np.eye(3)[np.arange(40) % 3] @ turn
    _, centres = aligned_start(average[None], average, 3, np.random.default_rng(0))
    np.testing.assert_allclose(centres @ centres.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.abs(centres @ turn.T).max(axis=1), 1)  # the clusters, in some order


def test_clusters_of_unequal_size_are_not_split():
    rng = np.random.default_rng(1)
    truth = rng.permutation(np.repeat([0, 1, 2], [10, 40, 25]))
    views = [np.eye(3)[truth] * 9 + rng.normal(size=(75, 3))]
    model = OPLFMVC(3, random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    # The reason for a single start: others can reach a higher objective by splitting such clusters.
    (partition,) = model.partitions_.values()
    loops = [
        late_fusion(partition[None], np.eye(3)[None], polar(np.random.default_rng(seed).normal(size=(3, 3))))
        for seed in range(20)
    ]
    best = max(loops, key=lambda loop: loop.objective[-1])
    assert best.objective[-1] > model.objective_[-1]
    assert adjusted_rand_score(truth, best.state.labels) < 0.9


def test_weights_do_not_change_if_no_view_agrees():
    before = np.array([0.6, 0.8])
    np.testing.assert_array_equal(view_weights(np.array([-1.0, 0.0]), before), before)
    np.testing.assert_allclose(view_weights(np.array([3.0, 4.0]), before), [0.6, 0.8])
    np.testing.assert_array_equal(view_weights(np.array([-1.0, 5.0]), before), [0.0, 1.0])


# The estimator


def test_fitted_attributes_agree_with_each_other():
    views, truth = make_blobs()
    model = OPLFMVC(3, random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    assert list(model.partitions_) == list(model.view_weights_) == list(model.kernels_) == ["a", "b", "c"]
    for partition in model.partitions_.values():
        np.testing.assert_allclose(partition.T @ partition, np.eye(3), atol=1e-10)
    assert model.consensus_.shape == (90, 3)
    assert len(model.objective_) == model.n_iter_ >= 3
    np.testing.assert_allclose(np.linalg.norm(list(model.view_weights_.values())), 1)
    means = np.stack([model.consensus_[model.labels_ == j].mean(axis=0) for j in range(3)])
    distances = np.linalg.norm(model.consensus_[:, None] - means, axis=2)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)


def test_a_noisy_view_has_less_weight_and_a_constant_view_none():
    views, truth = make_blobs()
    views["noise"] = np.random.default_rng(5).normal(size=(90, 4))
    views["constant"] = np.full((90, 2), 7.0)
    model = OPLFMVC(3, random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) == 1
    assert model.view_weights_["noise"] < min(model.view_weights_[name] for name in "abc")
    assert model.view_weights_["constant"] == 0


def test_precomputed_sparse_and_dense_views_give_the_same_labels():
    views, _ = make_blobs(spread=1.0)
    model = OPLFMVC(3, kernel=RBF(9.0), random_state=0)
    expected = model.fit(views).labels_
    sparse = {name: sp.csr_array(x) for name, x in views.items()}
    np.testing.assert_array_equal(model.fit(sparse).labels_, expected)
    given = {name: RBF(9.0)(x) for name, x in views.items()}
    before = {name: x.copy() for name, x in given.items()}
    model.set_params(kernel="precomputed").fit(given)
    np.testing.assert_array_equal(model.labels_, expected)
    for name, x in given.items():
        np.testing.assert_array_equal(x, before[name])


def test_labels_do_not_depend_on_the_number_of_threads():
    views, _ = make_blobs(1300, spread=1.0)
    one, two = (OPLFMVC(3, n_jobs=n_jobs, random_state=0).fit(views) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.objective_, two.objective_)


@pytest.mark.parametrize("n_views", [1, 8])
def test_one_view_and_eight_views_are_accepted(n_views):
    views, truth = make_blobs(widths=(4, 6, 3, 2, 5, 4, 3, 4)[:n_views])
    views["a"][5] = 1e6 if n_views > 1 else views["a"][5]  # one sample far away in one view
    assert adjusted_rand_score(truth, OPLFMVC(3, random_state=0).fit(views).labels_) == 1


def test_identical_samples_are_one_cluster():
    with pytest.warns(ConvergenceWarning, match="found 1 distinct clusters instead of n_clusters=3"):
        model = OPLFMVC(3, random_state=0).fit([np.ones((12, 4)), np.zeros((12, 2))])
    assert model.labels_.tolist() == [0] * 12


def test_fewer_clusters_are_found_if_no_more_exist():
    line = np.array([-3.0, -2.0, -2.5, -2.0, 3.0, 4.0, 2.5])[:, None]  # centred and scaled: two directions
    with pytest.warns(ConvergenceWarning, match="found 2 distinct clusters instead of n_clusters=3"):
        model = OPLFMVC(3, kernel=Linear(), random_state=0).fit(line)
    assert model.labels_.tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_too_few_iterations_give_a_warning():
    views, _ = make_blobs(spread=1.0)
    with pytest.warns(ConvergenceWarning, match="OPLFMVC has not converged after max_iter=2 iterations"):
        assert OPLFMVC(3, max_iter=2, random_state=0).fit(views).n_iter_ == 2


INDEFINITE = np.ones((90, 90)) - 3 * np.eye(90)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"max_iter": 0}, "max_iter=0: expected"),
        ({"tol": -1}, "tol=-1: expected"),
        ({"n_clusters": 1}, "n_clusters=1: expected an integer of at least 2 for 2 views"),
        ({"kernel": "gauss"}, "kernel='gauss': expected one of"),
        (
            {"kernel": ["rbf", "precomputed"]},
            r"view 'b' has 90 of 90 samples with a negative self-similarity after centring under Precomputed\(\)",
        ),
    ],
)
def test_invalid_parameters_are_refused(setting, message):
    with pytest.raises(InputError, match=message):
        OPLFMVC(**{"n_clusters": 3, **setting}).fit({"a": make_blobs()[0]["a"], "b": INDEFINITE})


@pytest.mark.filterwarnings("ignore:the views .* have the same values")
def test_memory_does_not_grow_with_the_views_and_is_checked_before_it_is_allocated(monkeypatch):
    x = np.random.default_rng(0).normal(size=(900, 2))
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 12 * 2**20)
    OPLFMVC(2, random_state=0).fit([x, x, x])
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 10 * 2**20)
    with pytest.raises(MemoryError, match=r"fitting 900 samples needs .* use fewer samples"):
        OPLFMVC(2).fit([x])
