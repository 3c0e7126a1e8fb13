import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coview import KPCA, KSC, RBF, Cosine, InputError, Linear, TMvKSCR
from tests import naive
from tests.conftest import make_blobs


def assert_equal_up_to_sign(ours, theirs, atol):
    np.testing.assert_allclose(ours * np.sign((ours * theirs).sum(axis=0)), theirs, atol=atol)


@pytest.mark.parametrize("regularization", [0.0, 0.7])
@pytest.mark.parametrize("n_samples", [40, 450])  # dense solver, Lanczos
@pytest.mark.parametrize("rho", [0.0, 0.25, 1.0])
def test_fit_matches_the_reference_implementation(rho, n_samples, regularization):
    views, _ = make_blobs(n_samples, spread=1.0)
    kernels = {"a": RBF(5.0), "b": RBF(9.0), "c": RBF(2.0)}
    kappa = {"a": 1.0, "b": 0.3, "c": 2.0}
    model = TMvKSCR(4, kernel=kernels, rho=rho, kappa=kappa, regularization=regularization, random_state=0).fit(views)
    grams = [np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / kernels[name].sigma2) for name, x in views.items()]
    values, latent, scores = naive.tmvkscr(grams, 3, list(kappa.values()), rho, regularization)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    assert_equal_up_to_sign(model.latent_, latent, atol=1e-9 * np.abs(latent).max() * 100)
    for ours, theirs in zip(model.transform(views, per_view=True).values(), scores, strict=True):
        assert_equal_up_to_sign(ours, theirs, atol=1e-7 * np.abs(theirs).max())


def test_scores_of_new_samples_match_the_reference_implementation():
    views, _ = make_blobs(30, spread=1.0)
    train, new = ({name: x[rows] for name, x in views.items()} for rows in (slice(20), slice(20, 30)))
    model = TMvKSCR(3, kernel=RBF(4.0), rho=0.5, random_state=0).fit(train)
    for name, scores in model.transform(new, per_view=True).items():
        gram = naive.rbf(train[name], train[name], 4.0)
        rows = naive.rbf(new[name], train[name], 4.0)
        expected = [naive.new_row_scores(row, gram, model.latent_) for row in rows]
        np.testing.assert_allclose(scores, expected, atol=1e-12)


def test_beta_weighs_the_views_in_the_ensemble():
    views, _ = make_blobs(spread=1.0)
    model = TMvKSCR(3, beta=[0.5, 0.0, 2.0], random_state=0).fit(views)
    per_view = model.transform(views, per_view=True)
    np.testing.assert_allclose(model.scores_, 0.5 * per_view["a"] + 2.0 * per_view["c"], atol=1e-13)
    equal = TMvKSCR(3, random_state=0).fit(views)
    np.testing.assert_allclose(equal.scores_, sum(equal.transform(views, per_view=True).values()) / 3, atol=1e-13)


def test_each_view_may_have_its_own_kernel():
    views, _ = make_blobs()
    positive = {name: np.abs(x) for name, x in views.items()}
    by_list = TMvKSCR(3, kernel=["rbf", Linear(), Cosine()], random_state=0).fit(positive)
    by_name = TMvKSCR(3, kernel={"c": "cosine", "a": RBF(), "b": "linear"}, random_state=0).fit(positive)
    np.testing.assert_array_equal(by_list.labels_, by_name.labels_)
    assert by_name.kernels_["b"] == Linear()
    assert by_name.kernels_["a"].sigma2 > 0


def test_individual_assignment_labels_every_view_by_its_own_scores():
    views, _ = make_blobs()
    views["noise"] = np.random.default_rng(5).normal(size=(90, 4))
    model = TMvKSCR(3, random_state=0).fit(views)
    assert set(model.view_labels_) == set(views)
    for name, labels in model.predict(views, per_view=True).items():
        np.testing.assert_array_equal(labels, model.view_labels_[name])
    assert not np.array_equal(model.view_labels_["noise"], model.labels_)


def test_kernel_pca_matches_the_reference_implementation():
    x = make_blobs(35, spread=1.0)[0]["a"]
    model = KPCA(4, kernel=RBF(3.0), random_state=0).fit(x)
    values, latent, scores = naive.kpca(naive.rbf(x, x, 3.0), 3)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    assert_equal_up_to_sign(model.latent_, latent, atol=1e-10)
    assert_equal_up_to_sign(model.scores_, scores, atol=1e-10)


def test_ksc_matches_the_reference_implementation():
    x = make_blobs(35, spread=1.0)[0]["a"]
    model = KSC(4, kernel=RBF(3.0), random_state=0).fit(x)
    values, latent, scores = naive.tmvkscr([naive.rbf(x, x, 3.0)], 3, [1.0], 1.0)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    assert_equal_up_to_sign(model.latent_, latent, atol=1e-10)
    assert_equal_up_to_sign(model.scores_, scores[0], atol=1e-10)


def with_outliers(k, n_outliers=5, n=500):
    rng = np.random.default_rng(0)
    truth = rng.integers(k, size=n)
    views = {name: 3 * rng.normal(size=(k, d))[truth] + rng.normal(size=(n, d)) for name, d in (("a", 8), ("b", 15))}
    for x in views.values():
        x[:n_outliers] = 30 * rng.normal(size=(n_outliers, x.shape[1]))
    return views, truth


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_few_outliers_do_not_dominate_a_component(k):
    views, truth = with_outliers(k)
    model = TMvKSCR(k, kernel=RBF(), rho=0.5, random_state=0).fit(views)
    assert model.regularization_ == 1.0
    assert set(model.dominant_rows_) <= {0, 1, 2, 3, 4}
    assert adjusted_rand_score(truth[5:], model.labels_[5:]) > 0.97
    published = TMvKSCR.as_published(k, assigner="directions", random_state=0).fit(views)
    assert adjusted_rand_score(truth[5:], published.labels_[5:]) < 0.1
    assert published.regularization_ == 0.0
    assert published.dominant_rows_ == model.dominant_rows_
    clean = TMvKSCR(k, kernel=RBF(), rho=0.5, random_state=0).fit({name: x[5:] for name, x in views.items()})
    assert (clean.regularization_, clean.dominant_rows_) == (0.0, ())


@pytest.mark.parametrize("regularization", ["never", -1, True, np.nan, None])
def test_regularization_is_a_number_or_auto(regularization):
    views, _ = make_blobs(30)
    with pytest.raises(InputError, match=r"^regularization=.*: expected a number of at least 0, or 'auto'$"):
        TMvKSCR(3, regularization=regularization).fit(views)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_few_outliers_do_not_change_the_clusters_of_the_default_kernels(k):
    views, truth = with_outliers(k)
    model = TMvKSCR(k, random_state=0).fit(views)
    assert adjusted_rand_score(truth[5:], model.labels_[5:]) > 0.97


def test_as_published_has_the_setting_of_the_paper():
    views, _ = make_blobs(40, spread=1.0)
    model = TMvKSCR.as_published(4, kernel=RBF(5.0), random_state=0).fit(views)
    grams = [naive.rbf(x, x, 5.0) for x in views.values()]
    values, _, scores = naive.tmvkscr(grams, 3, [1.0, 1.0, 1.0], 0.5)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    assert_equal_up_to_sign(model.scores_, sum(scores) / 3, atol=1e-9)
    assert adjusted_rand_score(model.labels_, naive.codebook(model.scores_, 4)) == 1
    settings = TMvKSCR.as_published(4).get_params()
    assert {name: settings[name] for name in ("kernel", "rho", "regularization", "assigner")} == {
        "kernel": RBF(),
        "rho": 0.5,
        "regularization": 0,
        "assigner": "codebook",
    }


def test_as_published_takes_all_other_parameters():
    model = TMvKSCR.as_published(4, rho=0.2, kappa=[1, 2], assigner="directions", dtype="float32", random_state=3)
    assert (model.n_clusters, model.rho, model.kappa, model.assigner) == (4, 0.2, [1, 2], "directions")
    assert (model.kernel, model.regularization, model.dtype, model.random_state) == (RBF(), 0, "float32", 3)
    with pytest.raises(TypeError, match="regularization"):
        TMvKSCR.as_published(4, regularization=1.0)


@pytest.mark.parametrize("n_samples", [90, 900])
def test_labels_of_separate_clusters_do_not_depend_on_the_seed(n_samples):
    views, truth = make_blobs(n_samples, widths=(4, 12))
    first, *others = (TMvKSCR(3, random_state=seed).fit(views) for seed in (0, 1, 2, None))
    assert adjusted_rand_score(truth, first.labels_) == 1
    for other in others:
        np.testing.assert_array_equal(other.labels_, first.labels_)
        np.testing.assert_array_equal(other.scores_, first.scores_)


@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_rho_may_be_a_number_of_numpy(kernel):
    views, _ = make_blobs(60)
    ours, theirs = (TMvKSCR(3, kernel=kernel, rho=rho, random_state=0).fit(views) for rho in (np.float64(0.25), 0.25))
    np.testing.assert_array_equal(ours.scores_, theirs.scores_)
