"""MvKSC: the published problem, stored reference results, and edge cases."""

import json

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coview import KSC, RBF, InputError, MvKSC, NeighborGraph, Precomputed
from tests import naive
from tests.conftest import make_blobs
from tests.golden import as_kernel, assert_equal_up_to_sign, golden, inputs, is_free_of_ties, load, needs_golden


def fitted(answer, **settings):
    kernel = [as_kernel(spec) for spec in json.loads(str(answer["kernel"]))]
    return MvKSC(int(answer["k"]), kernel=kernel, gamma=float(answer["gamma"]), **settings).fit(inputs(answer))


@needs_golden
@pytest.mark.parametrize("stem", golden("mvksc_*"))
def test_eigenvalues_and_scores_are_the_reference_numbers(stem):
    answer = load(stem)
    model = fitted(answer)
    np.testing.assert_allclose(model.eigenvalues_, answer["eigenvalues"], rtol=1e-8)
    scores = model.transform(inputs(answer), per_view=True)
    ours, theirs = np.vstack(list(scores.values())), np.vstack(list(answer["E"]))
    assert_equal_up_to_sign(ours, theirs, 1e-7)  # one sign for all views


@needs_golden
@pytest.mark.parametrize("stem", golden("mvksc_*"))
def test_labels_are_those_of_the_authors_program_if_its_rule_has_no_ties(stem):
    answer = load(stem)
    n_clusters = int(answer["k"])
    if is_free_of_ties(answer["E"].mean(axis=0), n_clusters):
        assert adjusted_rand_score(answer["labels_authors_mean"], fitted(answer, assigner="codebook").labels_) == 1
    views = list(fitted(answer, assigner="codebook").view_labels_.values())
    for labels, theirs, scores in zip(views, answer["labels_authors_uncoupled"].T, answer["E"], strict=True):
        if n_clusters < 10 and is_free_of_ties(scores, n_clusters):  # theirs has negative eigenvalues for ten clusters
            assert adjusted_rand_score(theirs, labels) == 1


@needs_golden
def test_some_reference_labels_are_free_of_ties():
    """Otherwise the test above would compare nothing."""
    free = [s for s in golden("mvksc_*") if is_free_of_ties(load(s)["E"].mean(axis=0), int(load(s)["k"]))]
    assert {"mvksc_synth1", "mvksc_synth2"} <= set(free)


@pytest.mark.parametrize("gamma", [[1.0, 1.0, 1.0], [0.0, 2.0, 5.0]])
def test_the_published_pencil_gives_the_same(gamma):
    views, _ = make_blobs(40, spread=1.0)
    model = MvKSC(4, kernel=RBF(5.0), gamma=gamma).fit(views)
    grams = [naive.rbf(x, x, 5.0) for x in views.values()]
    values, scores = naive.mvksc(grams, 3, gamma)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    ours = np.vstack(list(model.transform(views, per_view=True).values()))
    assert_equal_up_to_sign(
        ours / np.abs(ours).max(axis=0), np.vstack(scores) / np.abs(np.vstack(scores)).max(axis=0), 1e-8
    )


def test_hidden_features_solve_the_dual_problem():
    views, _ = make_blobs(40, spread=1.0)
    model = MvKSC(3, kernel=RBF(5.0)).fit(views)
    scores = model.transform(views, per_view=True)
    for name, x in views.items():
        gram = naive.rbf(x, x, 5.0)
        centring = naive.centring_matrix(gram)
        np.testing.assert_allclose(scores[name], centring @ gram @ centring.T @ model.latent_[name], atol=1e-10)


def test_one_view_is_ksc():
    views, _ = make_blobs(spread=1.0)
    one = {"a": views["a"]}
    ours, ksc = MvKSC(3, random_state=0).fit(one), KSC(3, random_state=0).fit(one)
    np.testing.assert_allclose(ours.eigenvalues_, ksc.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(ours.scores_, ksc.scores_, atol=1e-12)
    np.testing.assert_array_equal(ours.labels_, ksc.labels_)


def test_one_view_beside_a_constant_one_is_ksc():
    views, truth = make_blobs()
    model = MvKSC(3, random_state=0).fit({"constant": np.full((90, 2), 7.0), "a": views["a"]})
    ksc = KSC(3, random_state=0).fit({"a": views["a"]})
    np.testing.assert_allclose(model.eigenvalues_, ksc.eigenvalues_, rtol=1e-12)
    np.testing.assert_array_equal(model.labels_, ksc.labels_)
    assert adjusted_rand_score(truth, model.labels_) == 1


def test_float32_gives_the_labels_of_float64():
    views, truth = make_blobs(900, spread=2.0)
    narrow, wide = (MvKSC(3, dtype=dtype, random_state=0).fit(views) for dtype in ("float32", "float64"))
    np.testing.assert_allclose(narrow.eigenvalues_, wide.eigenvalues_, rtol=1e-4)
    assert adjusted_rand_score(narrow.labels_, wide.labels_) == 1
    assert adjusted_rand_score(truth, wide.labels_) > 0.9


@pytest.mark.parametrize("n_clusters", [3, 10])
def test_large_fits_in_float32_converge(n_clusters):
    """Above 2000 samples "auto" takes float32; a warning would be an error here."""
    views, _ = make_blobs(2100, n_clusters, widths=(4, 6), spread=2.0)
    auto, wide = (MvKSC(n_clusters, dtype=dtype, random_state=0).fit(views) for dtype in ("auto", "float64"))
    np.testing.assert_allclose(auto.eigenvalues_, wide.eigenvalues_, rtol=1e-4)
    assert adjusted_rand_score(auto.labels_, wide.labels_) > 0.99


@pytest.mark.parametrize("n_samples", [60, 450])  # dense, and by products
def test_indefinite_kernels_are_refused(n_samples):
    views, _ = make_blobs(n_samples)
    grams = [RBF(10.0)(x) - 0.5 * np.eye(n_samples) for x in views.values()]
    with pytest.raises(InputError, match="not positive semi-definite"):
        MvKSC(3, kernel=Precomputed()).fit(grams)


def test_precomputed_kernel_matrices_give_the_same_result():
    views, _ = make_blobs(spread=1.0)
    rbf = MvKSC(3, kernel=RBF(5.0), random_state=0).fit(views)
    grams = {name: RBF(5.0)(x) for name, x in views.items()}
    precomputed = MvKSC(3, kernel=Precomputed(), random_state=0).fit(grams)
    np.testing.assert_allclose(precomputed.scores_, rbf.scores_, atol=1e-9)
    np.testing.assert_array_equal(precomputed.predict(grams), rbf.labels_)


def test_an_uninformative_view_changes_nothing():
    views, _ = make_blobs(spread=1.0)
    alone = MvKSC(3, kernel=RBF(5.0), random_state=0).fit(views)
    more = MvKSC(3, kernel=RBF(5.0), random_state=0).fit({**views, "constant": np.ones((90, 2))})
    np.testing.assert_allclose(more.eigenvalues_, alone.eigenvalues_, rtol=1e-9)
    assert not more.transform({**views, "constant": np.ones((90, 2))}, per_view=True)["constant"].any()
    assert adjusted_rand_score(more.labels_, alone.labels_) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 200.0}, "gamma is too large"),
        ({"gamma": -1.0}, r"gamma\['a'\]=-1.0: expected a number of at least 0"),
        ({"gamma": True}, "gamma=True: expected a number, or one number for each view"),
        ({"beta": [1.0, True, 1.0]}, r"beta\['b'\]=True: expected a number of at least 0"),
        ({"gamma": [1.0, 2.0]}, "gamma has 2 numbers for 3 views"),
        ({"beta": 0.0}, r"beta=\[0.0, 0.0, 0.0\]: expected weights that are not all zero"),
    ],
)
def test_invalid_weights_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        MvKSC(3, **settings).fit(make_blobs()[0])


@pytest.mark.parametrize(
    ("kernel", "parameter"), [(RBF(1e-4), "sigma2"), (NeighborGraph(1, scale_neighbor=1), "n_neighbors")]
)
def test_advice_on_nearly_equal_eigenvalues_names_the_parameter_of_the_kernel(kernel, parameter):
    views = [np.random.default_rng(seed).normal(size=(500, 2)) for seed in range(2)]
    with pytest.warns(ConvergenceWarning, match=f"; used the dense solver; another {parameter} may separate them$"):
        MvKSC(3, kernel=kernel, random_state=0).fit(views)
