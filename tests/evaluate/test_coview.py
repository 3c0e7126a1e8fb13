"""Coview: groups of all kinds, data without groups, refused input, and the interface of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from coview import InputError, load, save
from coview.evaluate.coview import Coview
from tests.conftest import make_blobs
from tests.preprocess.test_encode import TRUTH, cohort


def groups(sizes, distance=14.0, widths=(5, 8), seed=0):
    """Return views of Gaussians with standard deviation 1, each two groups at this distance, and the groups."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = [distance / np.sqrt(2) * np.eye(len(sizes), width) for width in widths]
    return [each[truth] + rng.normal(size=(len(truth), each.shape[1])) for each in centres], truth


@pytest.mark.parametrize("sizes", [(588, 12), (480, 90, 30), (20, 60, 300)], ids=str)
@pytest.mark.parametrize("auto", [False, True], ids=["given", "auto"])
def test_groups_of_different_sizes_are_found(sizes, auto):
    views, truth = groups(sizes)
    model = Coview("auto" if auto else len(sizes), random_state=0).fit(views)
    assert model.n_clusters_ == len(sizes)
    assert adjusted_rand_score(model.labels_, truth) >= 0.98


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [(60, 60), (100, 40, 12), (30, 30, 30, 30, 30)], ids=str)
def test_groups_are_found_for_each_seed(sizes, seed):
    views, truth = groups(sizes, distance=8.0, seed=seed)
    model = Coview(len(sizes), random_state=seed).fit(views)
    assert adjusted_rand_score(model.labels_, truth) >= 0.98


@pytest.mark.parametrize("sizes", [(30, 6), (30, 30, 5)], ids=str)
def test_groups_of_fewer_samples_than_neighbours_are_found_if_their_number_is_given(sizes):
    views, truth = groups(sizes, distance=40.0)
    model = Coview(len(sizes), random_state=0).fit(views)
    assert model.n_clusters_ == len(sizes)
    assert adjusted_rand_score(model.labels_, truth) == 1.0
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def rotated(x, angle, noise, seed):
    """Return the rows in other axes, with noise of their own."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return x @ turn + noise * np.random.default_rng(seed).normal(size=x.shape)


SHAPES = {
    "moons": lambda seed: make_moons(600, noise=0.04, random_state=seed),
    "rings": lambda seed: make_circles(300, factor=0.4, noise=0.05, random_state=seed),
}


@pytest.mark.parametrize("n_clusters", [2, "auto"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("shape", "n_views"), [("moons", 2), ("rings", 1), ("rings", 2)])
def test_groups_that_are_curves_are_found(shape, seed, n_views, n_clusters):
    x, truth = SHAPES[shape](seed)
    views = [x, rotated(x, 0.6, 0.02, 1)][:n_views]
    model = Coview(n_clusters, random_state=0).fit(views)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(model.labels_, truth) >= 0.95


def gaussian(rng, n=150):
    return [rng.normal(size=(n, 5)), rng.normal(size=(n, 8))]


def one_gaussian_in_two_views(rng, n=150):
    latent = rng.normal(size=(n, 6))
    return [latent @ rng.normal(size=(6, width)) + 0.3 * rng.normal(size=(n, width)) for width in (10, 15)]


def plane(rng, n=150):
    return [rng.normal(size=(n, 2))]


def uniform(rng, n=150):
    return [rng.random((n, 2)), rng.random((n, 3))]


def cube(rng, n=150):
    return [rng.random((n, 5))]


def open_curve(rng, n=150):
    place = 4 * rng.random(n)
    curve = np.column_stack([place, np.sin(place), np.cos(place)])
    return [curve + 0.05 * rng.normal(size=(n, 3)), curve[:, :2] + 0.05 * rng.normal(size=(n, 2))]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", [gaussian, one_gaussian_in_two_views, plane, uniform, cube, open_curve])
def test_data_without_groups_are_one_cluster(make, seed):
    model = Coview(random_state=0).fit(make(np.random.default_rng(seed)))
    assert model.n_clusters_ == 1
    assert not model.labels_.any()


@pytest.mark.parametrize(("width", "n_clusters"), [(1, 3), (1, "auto"), (2, 3), (2, "auto"), (12, 3)])
def test_one_view_suffices(width, n_clusters):
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    x = 12.0 * np.array([[0.0], [1.0], [2.0]])[truth] * rng.choice([-1, 1], width) + rng.normal(size=(90, width))
    model = Coview(n_clusters, random_state=0).fit([x])
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(model.labels_, truth) == 1.0
    np.testing.assert_array_equal(model.predict([x]), model.labels_)


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_views_with_categories_are_clustered(n_clusters):
    clinic, image = cohort()
    views = {"clinic": clinic, "image": image}
    model = Coview(n_clusters, random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(model.labels_, TRUTH) > 0.95
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_a_view_of_categories_only_is_clustered(n_clusters):
    """Each part has the same category in a column, so columns are constant inside of it."""
    rng = np.random.default_rng(0)
    columns = np.where(rng.random((6, 90)) < 0.95, TRUTH, rng.integers(3, size=(6, 90)))
    frame = pd.DataFrame({f"c{i}": pd.Categorical(np.array(list("xyz"))[codes]) for i, codes in enumerate(columns)})
    frame["same"] = pd.Categorical(np.array(list("uvw"))[TRUTH])
    model = Coview(n_clusters, random_state=0).fit({"c": frame})
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(model.labels_, TRUTH) > 0.95


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_a_view_that_two_samples_lack_does_not_change_the_result(n_clusters):
    views, truth = groups((120, 80, 40))
    views[0][[3, 100]] = np.nan
    model = Coview(n_clusters, random_state=0).fit(views)
    assert adjusted_rand_score(model.labels_, truth) == 1.0
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_many_missing_samples_of_each_view_are_placed_by_the_other_views():
    views, truth = groups((60, 40, 20), widths=(4, 5, 6))
    rng = np.random.default_rng(1)
    lacking = rng.integers(3, size=120)  # each sample lacks one of three views
    for place, x in enumerate(views):
        x[lacking == place] = np.nan
    model = Coview(3, random_state=0).fit(views)
    assert adjusted_rand_score(model.labels_, truth) == 1.0


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_a_constant_column_does_no_harm(n_clusters):
    views, truth = make_blobs(90, spread=8.0)
    views["a"] = np.column_stack([views["a"], np.full(90, 0.1)])
    model = Coview(n_clusters, random_state=0).fit(views)
    assert adjusted_rand_score(model.labels_, truth) == 1.0


@pytest.mark.parametrize("n_clusters", [4, "auto"])
def test_groups_of_duplicate_samples_are_found(n_clusters):
    truth = np.arange(120) % 4
    x = (np.random.default_rng(0).normal(size=(4, 6)) * 5)[truth]
    model = Coview(n_clusters, random_state=0).fit([x])
    assert adjusted_rand_score(model.labels_, truth) == 1.0


@pytest.mark.parametrize("n_clusters", [3, "auto"])
@pytest.mark.parametrize("scale", [1e-9, 1e6, 1e160])
def test_the_unit_of_the_views_does_not_matter(scale, n_clusters):
    views, truth = make_blobs(90)
    model = Coview(n_clusters, random_state=0).fit({name: x * scale for name, x in views.items()})
    assert adjusted_rand_score(model.labels_, truth) == 1.0


def test_sparse_word_counts_are_clustered_by_direction():
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    rates = 0.05 + 0.8 * (np.arange(60) // 20 == truth[:, None])
    counts = rng.poisson(rates * rng.uniform(1, 6, size=(120, 1))).astype(float)
    for view in (sp.csr_array(counts), counts):
        model = Coview(random_state=0).fit([view])
        assert model.n_clusters_ == 3
        assert adjusted_rand_score(model.labels_, truth) > 0.95
        np.testing.assert_array_equal(model.predict([view]), model.labels_)


@pytest.mark.filterwarnings("ignore:.*are requested for:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n", [2, 3, 5, 12])
@pytest.mark.parametrize("n_clusters", [1, 2, "auto"])
def test_few_samples_are_clustered(n, n_clusters):
    truth = (np.arange(n) >= n // 2 + n % 2).astype(int)
    rng = np.random.default_rng(0)
    views = [20.0 * truth[:, None] + rng.normal(size=(n, width)) for width in (3, 4)]
    model = Coview(n_clusters, random_state=0).fit(views)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    if n_clusters != "auto":
        assert adjusted_rand_score(model.labels_, truth if n_clusters == 2 else np.zeros(n)) == 1.0


def test_as_many_clusters_as_samples_are_found():
    views, _ = make_blobs(15)
    with pytest.warns(ConvergenceWarning, match="15 clusters are requested for 15"):
        model = Coview(15, random_state=0).fit(views)
    assert sorted(model.labels_) == list(range(15))


@pytest.mark.parametrize("wanted", [0, -1, 2.5, "many", None, True, np.nan])
def test_a_number_of_clusters_that_is_none_is_refused(wanted):
    with pytest.raises(InputError, match=rf"^n_clusters={wanted!r}: expected an integer of at least 1, 'auto', or"):
        Coview(wanted).fit(make_blobs(30)[0])


def test_more_clusters_than_samples_are_refused():
    views, _ = make_blobs(30)
    for wanted in (31, range(2, 32)):
        with pytest.raises(InputError, match=r"^n_samples=30 is too few for n_clusters=31; give more samples or ask"):
            Coview(wanted).fit(views)


@pytest.mark.parametrize("n_clusters", [1, 2, "auto"])
def test_a_constant_view_is_refused_by_name(n_clusters):
    views, _ = make_blobs(30)
    views["b"][:] = 0.1
    with pytest.raises(InputError, match=r"^view 'b' has the same values in all 30 samples; drop the view"):
        Coview(n_clusters).fit(views)
    views["b"][3:] = np.nan
    with pytest.raises(InputError, match=r"^view 'b' has the same values in all 3 samples; drop the view"):
        Coview(n_clusters).fit(views)


def test_a_view_without_samples_is_refused_by_name():
    views, _ = make_blobs(30)
    views["b"][:] = np.nan
    with pytest.raises(InputError, match=r"^view 'b' has no samples"):
        Coview(3).fit(views)


def test_views_that_no_sample_connects_are_refused():
    views, _ = make_blobs(30, widths=(3, 4))
    views["a"][:15] = np.nan
    views["b"][15:] = np.nan
    with pytest.raises(InputError, match="no sample has one of the views a and also one of b"):
        Coview(3).fit(views)


def test_one_sample_is_refused():
    with pytest.raises(InputError, match="n_samples=1 is too few"):
        Coview().fit([np.ones((1, 3))])


@pytest.mark.parametrize("value", [-0.1, 1.1, "low", np.nan])
def test_a_limit_of_novelty_is_a_fraction(value):
    views, _ = make_blobs(30)
    model = Coview(3, random_state=0).fit(views)
    with pytest.raises(InputError, match="novel_below"):
        model.predict(views, novel_below=value)


def test_predict_needs_a_fit():
    with pytest.raises(NotFittedError):
        Coview(3).predict(make_blobs(30)[0])


def test_blocks_of_rows_do_not_change_the_result(monkeypatch):
    views, _ = make_blobs(60, spread=1.0)
    model = Coview(3, random_state=0).fit(views)
    expected = [model.predict_proba(views), *model.view_contributions(views).values(), model.score_samples(views)]
    monkeypatch.setattr("coview.evaluate.consensus._BLOCK_ROWS", 7)
    found = [model.predict_proba(views), *model.view_contributions(views).values(), model.score_samples(views)]
    for before, after in zip(expected, found, strict=True):
        np.testing.assert_allclose(after, before, atol=2e-9)  # memberships are rounded to 9 decimals
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_a_clone_has_the_same_result():
    views, _ = make_blobs(60, spread=1.0)
    model = Coview(4, random_state=3).fit(views)
    np.testing.assert_array_equal(clone(model).fit_predict(views), model.labels_)
    np.testing.assert_allclose(clone(model).fit_transform(views), model.transform(views), atol=1e-9)


def test_the_views_are_unchanged_by_a_fit():
    views, _ = make_blobs(60)
    before = {name: x.copy() for name, x in views.items()}
    Coview(random_state=0).fit(views).predict(views)
    for name, x in views.items():
        np.testing.assert_array_equal(x, before[name])


def test_scikit_learns_checks_pass(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # so that no check is skipped
    check_estimator(Coview(2, random_state=0), on_skip=None)


@pytest.mark.parametrize("n_clusters", [1, 3, "auto"])
def test_a_saved_model_predicts_the_same(n_clusters, tmp_path):
    views, _ = groups((60, 30, 20))
    views[0][::7] = np.nan  # samples that lack a view
    model = Coview(n_clusters, random_state=0).fit(views)
    loaded = load(save(model, tmp_path / "model.safetensors"))
    assert loaded.number_ == model.number_
    np.testing.assert_array_equal(loaded.predict_proba(views), model.predict_proba(views))
    np.testing.assert_array_equal(loaded.score_samples(views), model.score_samples(views))
