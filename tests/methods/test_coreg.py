import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from coview import RBF, InputError, Linear
from coview.methods.coreg import CoReg
from tests.conftest import make_blobs
from tests.golden import golden, inputs, load, needs_golden

SCHEMES = pytest.mark.parametrize("scheme", ["pairwise", "centroid"])


def fixed_sweeps(sweeps, views, n_clusters, **settings):
    """A model after this number of sweeps, converged or not."""
    model = CoReg(n_clusters, max_iter=sweeps, tol=0, random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(views)


def projection(vectors):
    """The projection onto a subspace, which does not depend on its basis."""
    return vectors @ vectors.T


# The authors' program


def authors_setting(stem):
    answer = load(stem)
    views = inputs(answer)
    if "zscore" in str(answer["preprocess"]):
        views = [(x - x.mean(axis=0)) / x.std(axis=0, ddof=1) for x in views]
    kernels = [RBF(2 * sigma**2) for sigma in answer["sigma"]]
    return (
        answer,
        views,
        {"n_clusters": len(np.unique(answer["y"])), "kernel": kernels, "coupling": answer["lam"].item()},
    )


@needs_golden
@SCHEMES
@pytest.mark.parametrize("stem", golden("coreg_*"))
def test_eigenvalue_sums_are_those_of_the_authors_program(stem, scheme):
    answer, views, setting = authors_setting(stem)
    sweeps = int(answer["sweeps"])
    ours = fixed_sweeps(sweeps, views, scheme=scheme, **setting).eigenvalue_sums_
    ours = np.pad(ours, ((0, 0), (0, 1 + sweeps - ours.shape[1])), mode="edge")  # it may converge earlier
    theirs = answer[f"eigsum_{scheme}"]
    if scheme == "centroid":  # the authors' program overwrites the first view's sums by those of the last
        theirs[0, 1:] = ours[0, 1:]
    np.testing.assert_allclose(ours, theirs, atol=1e-6, rtol=0)


@needs_golden
@pytest.mark.parametrize("stem", golden("coreg_synth*"))
def test_labels_of_the_first_view_score_as_in_the_authors_program(stem):
    answer, views, setting = authors_setting(stem)
    model = fixed_sweeps(int(answer["sweeps"]), views, embedding=0, **setting)
    # Theirs is a mean of 20 runs of k-means; with two clusters they all agree.
    theirs = answer["ari_pairwise_by_sweep"][-2]
    assert adjusted_rand_score(answer["y"], model.labels_) == pytest.approx(theirs, abs=1e-3)


@needs_golden
def test_the_published_figures_are_reached():
    answer, views, setting = authors_setting("coreg_synth1_authors_lam0.5")
    labels = fixed_sweeps(5, views, embedding=0, **setting).labels_
    assert round(adjusted_rand_score(answer["y"], labels), 3) == 0.996
    assert round(normalized_mutual_info_score(answer["y"], labels), 3) == 0.989


# The reference implementation


def naive_sweeps(kernels, k, scheme, weights, sweeps):
    """The equations with every matrix formed: projections and objectives after each sweep."""

    def top(matrix):
        return np.linalg.eigh(matrix)[1][:, -k:]

    roots = [np.diag(1 / np.sqrt(kernel.sum(axis=1))) for kernel in kernels]
    laplacians = [root @ kernel @ root for root, kernel in zip(roots, kernels, strict=True)]
    embeddings = [top(matrix) for matrix in laplacians]
    views, objectives = range(len(kernels)), []
    for _ in range(sweeps):
        if scheme == "pairwise":
            for v in [*views[1:], 0]:
                others = sum(projection(embeddings[u]) for u in views if u != v)
                embeddings[v] = top(laplacians[v] + weights[0] * others)
            agreement = sum(
                weights[0] * np.trace(projection(embeddings[u]) @ projection(embeddings[v]))
                for u in views
                for v in views
                if u < v
            )
        else:
            shared = top(sum(w * projection(u) for w, u in zip(weights, embeddings, strict=True)))
            embeddings = [top(laplacians[v] + weights[v] * projection(shared)) for v in views]
            agreement = sum(weights[v] * np.trace(projection(embeddings[v]) @ projection(shared)) for v in views)
        own = sum(np.trace(u.T @ matrix @ u) for u, matrix in zip(embeddings, laplacians, strict=True))
        objectives.append(own + agreement)
    return embeddings, objectives


@SCHEMES
@pytest.mark.parametrize(("n_samples", "sweeps"), [(40, 6), (720, 1)])  # dense, block Krylov
def test_fit_matches_the_reference_implementation(scheme, n_samples, sweeps):
    views, _ = make_blobs(n_samples, spread=1.0)
    weights = [0.3, 0.3, 0.3] if scheme == "pairwise" else [0.3, 0.1, 0.6]
    kernels = [np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / 9) for x in views.values()]
    embeddings, objectives = naive_sweeps(kernels, 3, scheme, weights, sweeps)
    coupling = 0.3 if scheme == "pairwise" else weights
    model = fixed_sweeps(sweeps, views, 3, kernel=RBF(9.0), scheme=scheme, coupling=coupling)
    np.testing.assert_allclose(model.objective_, objectives, rtol=1e-10)
    for ours, theirs in zip(model.embeddings_.values(), embeddings, strict=True):
        np.testing.assert_allclose(projection(ours), projection(theirs), atol=1e-8)


@SCHEMES
def test_the_objective_never_decreases_and_converges(scheme):
    views, _ = make_blobs(spread=0.7)
    model = CoReg(3, scheme=scheme, coupling=0.5, random_state=0).fit(views)
    assert 2 < model.n_iter_ < 100
    assert len(model.objective_) == model.n_iter_
    assert model.eigenvalue_sums_.shape == (3, 1 + model.n_iter_)
    assert np.diff(model.objective_).min() > -1e-12
    assert abs(model.objective_[-1] - model.objective_[-2]) <= 1e-6 * model.objective_[-1]


def test_a_stronger_coupling_makes_the_views_agree_more():
    views, _ = make_blobs(spread=0.7)

    def agreement(coupling):
        u, v, w = CoReg(3, coupling=coupling, random_state=0).fit(views).embeddings_.values()
        return np.square(u.T @ v).sum() + np.square(u.T @ w).sum() + np.square(v.T @ w).sum()

    assert agreement(0.01) < agreement(0.1) < agreement(1.0)


# The embedding that is clustered


def test_consensus_holds_all_views_side_by_side_in_the_pairwise_scheme():
    views, _ = make_blobs()
    model = CoReg(3, random_state=0).fit(views)
    assert list(model.embeddings_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.consensus_, np.hstack(list(model.embeddings_.values())))


def test_consensus_belongs_to_the_final_embeddings_in_the_centroid_scheme():
    views, _ = make_blobs(spread=1.0)
    weights = {"c": 0.5, "a": 0.2, "b": 0.1}
    model = CoReg(3, scheme="centroid", coupling=weights, random_state=0).fit(views)
    shared = sum(weights[name] * projection(u) for name, u in model.embeddings_.items())
    expected = np.linalg.eigh(shared)[1][:, -3:]
    np.testing.assert_allclose(projection(model.consensus_), projection(expected), atol=1e-9)
    in_order = CoReg(3, scheme="centroid", coupling=[0.2, 0.1, 0.5], random_state=0).fit(views)
    np.testing.assert_array_equal(model.consensus_, in_order.consensus_)


def test_a_view_of_no_weight_keeps_its_own_embedding():
    views, _ = make_blobs(spread=1.0)
    model = CoReg(3, scheme="centroid", coupling=[0.2, 0.0, 0.2], random_state=0).fit(views)
    alone = CoReg(3, kernel=model.kernels_["b"], random_state=0).fit([views["b"]])
    np.testing.assert_allclose(projection(model.embeddings_["b"]), projection(alone.embeddings_["view0"]), atol=1e-9)


@SCHEMES
def test_labels_may_come_from_one_view(scheme):
    views, truth = make_blobs()
    views["noise"] = np.random.default_rng(5).normal(size=(90, 4))
    settings = {"scheme": scheme, "coupling": 0.01, "random_state": 0}
    by_name = CoReg(3, embedding="noise", **settings).fit(views).labels_
    np.testing.assert_array_equal(by_name, CoReg(3, embedding=3, **settings).fit(views).labels_)
    assert adjusted_rand_score(truth, by_name) < 0.5
    assert adjusted_rand_score(truth, CoReg(3, embedding=0, **settings).fit(views).labels_) == 1
    assert adjusted_rand_score(truth, CoReg(3, **settings).fit(views).labels_) > 0.9


def test_one_view_is_plain_spectral_clustering():
    views, truth = make_blobs(spread=2.0)
    model = CoReg(3, kernel=RBF(20.0), random_state=0).fit(views["a"])
    kernel = RBF(20.0)(views["a"])
    root = np.sqrt(kernel.sum(axis=1))
    values, vectors = np.linalg.eigh(kernel / root[:, None] / root)
    np.testing.assert_allclose(projection(model.embeddings_["view0"]), projection(vectors[:, -3:]), atol=1e-10)
    np.testing.assert_allclose(model.eigenvalue_sums_, values[-3:].sum() * np.ones((1, 3)), rtol=1e-12)
    assert model.n_iter_ == 2
    assert adjusted_rand_score(truth, model.labels_) > 0.9


# Input


@SCHEMES
def test_precomputed_sparse_and_dense_views_give_the_same_labels(scheme):
    views, _ = make_blobs(spread=1.0)
    model = CoReg(3, kernel=RBF(9.0), scheme=scheme, random_state=0)
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
    one, two = (CoReg(3, n_jobs=n_jobs, random_state=0).fit(views) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.objective_, two.objective_)


@SCHEMES
def test_an_uninformative_view_and_a_distant_sample_do_no_harm(scheme):
    views, truth = make_blobs()
    views["constant"] = np.full((90, 2), 7.0)
    views["a"][5] = 1e6
    assert adjusted_rand_score(truth, CoReg(3, scheme=scheme, random_state=0).fit(views).labels_) == 1


@SCHEMES
def test_identical_samples_are_one_cluster(scheme):
    with pytest.warns(ConvergenceWarning, match="found 1 distinct clusters instead of n_clusters=3"):
        model = CoReg(3, scheme=scheme, random_state=0).fit([np.ones((12, 4)), np.zeros((12, 2))])
    assert model.labels_.tolist() == [0] * 12


def test_too_few_sweeps_give_a_warning():
    views, _ = make_blobs(spread=1.0)
    with pytest.warns(ConvergenceWarning, match="CoReg has not converged after max_iter=1 iterations"):
        assert CoReg(3, max_iter=1, random_state=0).fit(views).n_iter_ == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"scheme": "mean"}, "scheme='mean': expected 'pairwise' or 'centroid'"),
        ({"coupling": [0.1, 0.2, 0.3]}, r"coupling=\[0.1, 0.2, 0.3\]: expected one number .* scheme='centroid'"),
        ({"coupling": -1.0}, r"coupling\['a'\]=-1.0: expected a number of at least 0"),
        ({"coupling": 0}, "coupling=.*: expected weights that are not all zero"),
        ({"coupling": [0.1], "scheme": "centroid"}, r"coupling has 1 numbers for 3 views \(a, b, c\)"),
        ({"coupling": {"a": 1}, "scheme": "centroid"}, "coupling names the views a, but the views are a, b, c"),
        ({"coupling": True}, "coupling=True: expected one number"),
        ({"coupling": True, "scheme": "centroid"}, "coupling=True: expected a number, or one number for each view"),
        ({"coupling": [True, 1, 1], "scheme": "centroid"}, r"coupling\['a'\]=True: expected a number"),
        ({"embedding": "text"}, "embedding='text' is not a view; .* a, b, c, or a number from 0 to 2"),
        ({"embedding": 3}, "embedding=3 is not a view"),
        ({"embedding": -1}, "embedding=-1 is not a view"),
        ({"max_iter": 0}, "max_iter=0: expected"),
        ({"tol": -1}, "tol=-1: expected"),
        ({"n_clusters": 1}, "n_clusters=1: expected an integer of at least 2 for 3 views"),
        ({"kernel": "gauss"}, "kernel='gauss': expected one of"),
        ({"kernel": Linear()}, r"view 'a' has .* samples with degree <= 0 under Linear\(\)"),
    ],
)
def test_invalid_parameters_are_refused(setting, message):
    views, _ = make_blobs()
    views["a"] = views["a"] - views["a"].mean(axis=0)
    with pytest.raises(InputError, match=message):
        CoReg(**{"n_clusters": 3, **setting}).fit(views)


@pytest.mark.filterwarnings("ignore:the views .* have the same values")
def test_memory_for_all_views_is_checked_before_it_is_allocated(monkeypatch):
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 9 * 2**20)
    x = np.random.default_rng(0).normal(size=(900, 2))
    CoReg(2, random_state=0).fit([x])
    with pytest.raises(
        MemoryError, match=r"keeping the similarities of 900 samples in 2 views needs .* FixedSize\(TMvKSCR"
    ):
        CoReg(2).fit([x, x])
