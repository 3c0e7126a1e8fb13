"""Data sets that coview ships or generates."""

import numpy as np
import pytest

from coview import datasets
from coview.datasets import SYNTH1, SYNTH2
from tests.golden import GOLDEN


@pytest.mark.parametrize(
    ("make", "clusters", "sizes"),
    [(datasets.make_synth1, SYNTH1, [500, 500]), (datasets.make_synth2, SYNTH2, [800, 200])],
)
def test_synthetic_sets_have_the_sizes_means_and_covariances_of_the_appendix(make, clusters, sizes):
    views, labels = make(0)
    assert (np.bincount(labels) == sizes).all()
    assert labels.dtype == np.int64
    for x, of_view in zip(views.values(), clusters, strict=True):
        for number, cluster in enumerate(of_view):
            rows = x[labels == number]
            covariance = np.array(cluster.covariance)
            # Five standard errors of a mean and of a variance.
            error = 5 / np.sqrt(len(rows))
            assert (abs(rows.mean(axis=0) - cluster.mean) < error * np.sqrt(np.diag(covariance))).all()
            assert (abs(np.cov(rows.T) - covariance) < error * np.sqrt(2) * np.max(covariance)).all()


def test_the_parameters_are_those_of_the_appendix():
    """The parameters that the appendix prints, view by view, cluster by cluster."""
    printed = {
        "means1": [[(1, 1), (3, 4)], [(1, 2), (2, 2)], [(1, 1), (3, 3)]],
        "means2": [[(1, 1), (2, 2)], [(2, 2), (1, 1)]],
        "spread1": [
            [[[1, 0.5], [0.5, 1.5]], [[0.3, 0.2], [0.2, 0.6]]],
            [[[1, -0.2], [-0.2, 1]], [[0.6, 0.1], [0.1, 0.5]]],
            [[[1.2, 0.2], [0.2, 1]], [[1, 0.4], [0.4, 0.7]]],
        ],
        "spread2": [
            [[[0.1, 0], [0, 0.3]], [[1.5, 0.4], [0.4, 1.2]]],
            [[[0.3, 0], [0, 0.6]], [[1, 0.5], [0.5, 0.9]]],
        ],
    }
    for number, views in (("1", SYNTH1), ("2", SYNTH2)):
        assert [[c.mean for c in view] for view in views] == printed[f"means{number}"]
        np.testing.assert_array_equal([[c.covariance for c in view] for view in views], printed[f"spread{number}"])


@pytest.mark.parametrize("make", [datasets.make_synth1, datasets.make_synth2, datasets.make_synth2_unpaired])
def test_synthetic_sets_depend_on_the_seed_only_and_are_shuffled(make):
    (first, labels), (again, same), (other, _) = make(3), make(3), make(4)
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])
    np.testing.assert_array_equal(labels, same)
    assert ((np.diff(labels, axis=0) != 0).sum(axis=0) > 100).all()


def test_rows_of_synth2_are_aligned_unless_unpaired():
    """Outliers of one view are outliers of the other if a row is one sample of the loose cluster."""

    def together(make):
        views, _ = make(0)
        far = [((x - np.median(x, axis=0)) ** 2).sum(axis=1) for x in views.values()]
        return np.corrcoef([f > np.quantile(f, 0.8) for f in far])[0, 1]

    by_chance = 1 / np.sqrt(1000)  # the standard error of the correlation of independent values
    assert together(datasets.make_synth2) > 5 * by_chance
    assert abs(together(datasets.make_synth2_unpaired)) < 3 * by_chance


def test_unpaired_synth2_has_labels_for_each_view():
    views, labels = datasets.make_synth2_unpaired(0)
    assert labels.shape == (1000, 2)
    for v, (x, clusters) in enumerate(zip(views.values(), SYNTH2, strict=True)):
        for number, cluster in enumerate(clusters):
            np.testing.assert_allclose(x[labels[:, v] == number].mean(axis=0), cluster.mean, atol=0.3)
    assert np.mean(labels[:, 0] == labels[:, 1]) == pytest.approx(0.666)


@pytest.mark.skipif(GOLDEN is None, reason="reference input absent: set COVIEW_GOLDEN to its folder")
def test_synthetic_sets_are_those_of_the_reference_runs():
    for name, make in (("synth1", datasets.make_synth1), ("synth2", datasets.make_synth2)):
        views, labels = make(0)
        with np.load(GOLDEN / "inputs" / f"{name}.npz") as file:
            ours = np.column_stack([*views.values(), labels])
            theirs = np.column_stack([*(file[f"X{v}"] for v in range(len(views))), file["y"]])
        # Drawn with a matrix product, whose last bit depends on the processor.
        np.testing.assert_allclose(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)], rtol=0, atol=1e-14)
    views, labels = datasets.make_synth2_unpaired(0)
    with np.load(GOLDEN / "inputs" / "synth2_authors.npz") as file:
        np.testing.assert_allclose(views["view1"], file["X0"], rtol=0, atol=1e-14)
        np.testing.assert_allclose(views["view2"], file["X1"], rtol=0, atol=1e-14)
        np.testing.assert_array_equal(labels + 1, np.column_stack([file["y"], file["y2"]]))


def test_digits_have_three_views():
    views, digits = datasets.digits_views()
    assert dict(views.n_features) == {"pixels": 64, "fourier": 40, "gradients": 32}
    assert views.n_samples == len(digits) == 1797
