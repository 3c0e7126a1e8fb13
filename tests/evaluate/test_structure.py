"""Structure without a gap: communities, their modularity compared with references, and the intrinsic dimension."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from coview import FuzzyGraph, Views
from coview.evaluate import structure
from coview.evaluate.structure import (
    communities,
    coordinates_of,
    excess_modularity,
    graph_of,
    intrinsic_dimension,
    modularity,
    sample_with_shapes,
    unimodal_quantiles,
    unimodal_shapes,
)
from tests import naive
from tests.conftest import make_blobs


def gaussian(n=200, width=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width))


@pytest.mark.parametrize("n_communities", [1, 3, 25])
def test_modularity_follows_the_definition(n_communities):
    graph = sp.csr_array(FuzzyGraph().against(gaussian(25)).gram)
    labels = np.arange(25) % n_communities
    assert modularity(graph, labels) == pytest.approx(naive.modularity(graph.toarray(), labels), abs=1e-12)


def test_modularity_of_separate_parts_is_one_minus_the_sum_of_squared_sizes():
    graph = sp.csr_array(np.kron(np.eye(4), np.ones((5, 5)) - np.eye(5)))
    assert modularity(graph, np.repeat(np.arange(4), 5)) == pytest.approx(1 - 4 / 16)
    assert modularity(graph, np.zeros(20, dtype=int)) == pytest.approx(0, abs=1e-12)


def test_communities_are_groups_and_the_same_at_each_call():
    views, truth = make_blobs(120, widths=(6,), spread=5.0)
    graph = graph_of([views["a"]])
    found = communities(graph, 0.85)
    assert adjusted_rand_score(found, truth) == 1.0
    noise = graph_of([gaussian(150, 3)])
    for _ in range(3):
        np.testing.assert_array_equal(communities(noise, 0.85), communities(noise, 0.85))
    assert len(np.unique(communities(noise, 1.5))) > len(np.unique(communities(noise, 0.5)))


def test_samples_without_edges_are_communities_of_their_own():
    graph = np.kron(np.eye(2), np.ones((5, 5)) - np.eye(5))
    graph = sp.csr_array(np.block([[graph, np.zeros((10, 1))], [np.zeros((1, 11))]]))
    assert adjusted_rand_score(communities(graph, 0.85), np.repeat([0, 1, 2], [5, 5, 1])) == 1.0


def test_the_graph_of_all_tables_has_the_weight_of_the_single_ones():
    tables = [gaussian(60, 3), gaussian(60, 5, seed=1)]
    expected = sum(FuzzyGraph().against(table).gram.toarray() for table in tables)
    expected = expected + 2 * FuzzyGraph().against(np.hstack(tables)).gram.toarray()
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(graph_of(tables).toarray(), expected, rtol=1e-9)
    alone = FuzzyGraph().against(tables[0]).gram.toarray()
    np.fill_diagonal(alone, 0)
    np.testing.assert_allclose(graph_of(tables[:1]).toarray(), alone, rtol=1e-9)


def samples_of(kind, n=400):
    rng = np.random.default_rng(0)
    return {
        "gaussian": rng.normal(size=n),
        "two groups": np.where(rng.random(n) < 0.3, 0, 8) + rng.normal(size=n),
        "three groups": 5.0 * rng.integers(3, size=n) + rng.normal(size=n),
        "uniform": rng.random(n),
        "exponential": rng.exponential(size=n),
        "few": rng.normal(size=5),
    }[kind]


@pytest.mark.parametrize("kind", ["gaussian", "two groups", "three groups", "uniform", "exponential", "few"])
def test_unimodal_quantiles_are_unimodal_and_keep_mean_and_deviation(kind):
    values = samples_of(kind)
    found = unimodal_quantiles(values)
    assert found.shape == values.shape
    assert found.mean() == pytest.approx(values.mean(), abs=1e-9 * values.std())
    assert found.std() == pytest.approx(values.std(), rel=1e-9)
    gaps = np.diff(found)  # the reciprocals of densities
    assert (gaps >= 0).all()
    mode = int(gaps.argmin())
    rounding = 1e-9 * values.std()
    assert (np.diff(gaps[: mode + 1]) <= rounding).all()
    assert (np.diff(gaps[mode:]) >= -rounding).all()


def test_unimodal_quantiles_of_unimodal_values_are_nearly_the_values():
    values = np.sort(samples_of("gaussian", 2000))
    # A bin of the histogram is 0.35 wide, and the quantiles are linear inside of it.
    np.testing.assert_allclose(unimodal_quantiles(values)[50:-50], values[50:-50], atol=0.15)
    apart = np.sort(samples_of("two groups"))
    assert np.abs(unimodal_quantiles(apart) - apart).max() > 1  # the valley between the groups is filled


def overlapping(n=200, distance=2.2, width=8, seed=0):
    """Return samples of four groups without a gap between them."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 4
    return distance * np.eye(4, width)[truth] * np.sqrt(2) + rng.normal(size=(n, width))


@pytest.mark.parametrize("seed", range(3))
def test_a_gaussian_has_no_excess_modularity(seed):
    covariance = np.diag([3, 2, 1.5, 1, 1, 1, 0.5, 0.5])
    excess, needed = excess_modularity([gaussian(200, 8, seed) @ covariance], np.random.default_rng(0))
    assert excess < needed
    assert 0.02 <= needed < 0.1


@pytest.mark.parametrize("seed", range(3))
def test_overlapping_groups_have_excess_modularity(seed):
    tables = [overlapping(seed=seed), overlapping(seed=seed + 10)]
    excess, needed = excess_modularity(tables, np.random.default_rng(0))
    assert excess > 2 * needed


def test_two_large_groups_among_many_columns_are_structure(monkeypatch):
    """At the high resolution alone, communities of references are as modular."""
    axis = 3.5 * np.eye(200)[0]
    tables = [np.outer(np.arange(600) % 2, axis) + gaussian(600, 200, seed) for seed in (0, 1)]
    excess, needed = excess_modularity(tables, np.random.default_rng(0))
    assert excess > 2 * needed
    for without in ([gaussian(600, 200, seed) for seed in (0, 1)], [gaussian(600, 30, 2)]):
        excess, needed = excess_modularity(without, np.random.default_rng(0))
        assert excess < needed
    monkeypatch.setattr(structure, "_NEEDED", {0.85: (0.02, 2.0)})
    excess, needed = excess_modularity(tables, np.random.default_rng(0))
    assert excess < needed


def test_a_long_series_has_the_dimension_of_a_curve():
    """If two thirds of its samples are left out, the others are too far apart."""
    steps = np.random.default_rng(0).normal(size=(3000, 14))
    for i in range(1, 3000):
        steps[i] += 0.95 * steps[i - 1]
    views = Views({"a": steps[:, :6], "b": steps[:, 6:]})
    some = views.take(np.arange(0, 3000, 3))
    assert structure.structure_of(views, np.arange(3000)).dimension < structure.LEAST_DIMENSION
    assert structure.structure_of(some, np.arange(1000)).dimension > structure.LEAST_DIMENSION


def test_references_are_not_drawn_once_they_show_no_structure(monkeypatch):
    """A few references of one kind are enough for data that are clearly less modular than these."""
    drawn = []
    monkeypatch.setattr(structure, "sample_with_shapes", lambda *given: drawn.append(1) or sample_with_shapes(*given))
    excess_modularity([gaussian(100, 40)], np.random.default_rng(0))
    few = len(drawn)
    excess_modularity([overlapping(100)], np.random.default_rng(0))
    assert 4 <= few <= 10
    assert len(drawn) - few == 2 * 30


def test_the_excess_is_that_of_the_modularity_above_the_references():
    """The references depend on the generator only; the same generator gives the same numbers."""
    tables = [overlapping(100)]
    first, second = (excess_modularity(tables, np.random.default_rng(7)) for _ in range(2))
    assert first == second
    graph = graph_of(tables)
    assert 0 < first[0] < modularity(graph, communities(graph, 0.85))


def test_references_have_unimodal_columns_and_the_covariance_of_the_data():
    rng = np.random.default_rng(0)
    groups, noise = 8.0 * rng.integers(3, size=(300, 2)), gaussian(300, 3)
    data = np.column_stack([groups + noise[:, :2], noise[:, 1:] + 0.1 * groups])
    data -= data.mean(axis=0)
    assert np.corrcoef(np.sort(data[:, 0]), unimodal_quantiles(data[:, 0]))[0, 1] < 0.995
    shapes = unimodal_shapes(data, 1)
    samples = [sample_with_shapes(data, shapes, rng) for _ in range(8)]
    for sample in samples:
        for column, found in enumerate(np.sort(sample, axis=0).T):
            shape = unimodal_quantiles(data[:, 0]) if column == 0 else np.sort(data[:, column])
            assert np.corrcoef(found, shape)[0, 1] == pytest.approx(1, abs=1e-9)
    # Eight samples of 300 rows: a variance has a standard error of 3 %, correlations of 2 %. Ranks instead of values
    # change correlations by a few percent.
    expected = np.cov(data.T)
    scales = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    found = np.mean([np.cov(sample.T) for sample in samples], axis=0)
    np.testing.assert_allclose(found / scales, expected / scales, atol=0.12)
    assert np.abs(expected / scales - np.eye(4)).max() > 0.3


@pytest.mark.parametrize("width", [2, 4, 8])
def test_the_intrinsic_dimension_of_a_gaussian_is_its_dimension(width):
    rows = gaussian(200, width)
    # The estimate is too low in many dimensions, because neighbours are far away.
    assert 0.65 * width < intrinsic_dimension(rows) < 1.35 * width
    embedded = rows @ np.linalg.qr(gaussian(20, width, seed=1))[0].T
    assert intrinsic_dimension(embedded) == pytest.approx(intrinsic_dimension(rows), rel=1e-6)


def test_the_intrinsic_dimension_of_a_noisy_curve_is_about_one():
    place = np.sort(np.random.default_rng(0).random(300)) * 6
    curve = np.column_stack([place, np.sin(place), np.cos(place)])
    assert 0.7 < intrinsic_dimension(curve) < 1.4
    for noise, most in ((0.02, 1.6), (0.05, 2.5)):  # at the scale of the nearest neighbours, there are more
        noisy = np.hstack([curve, np.zeros((300, 7))]) + noise * gaussian(300, 10)
        assert intrinsic_dimension(noisy) < most


@pytest.mark.parametrize("n", [10, 40])
def test_the_intrinsic_dimension_of_few_or_duplicate_samples_is_finite(n):
    rows = gaussian(n, 3)
    assert np.isfinite(intrinsic_dimension(rows))
    assert np.isfinite(intrinsic_dimension(np.repeat(rows, 3, axis=0)))


def test_coordinates_have_a_mean_squared_norm_of_one_and_mean_zero():
    rng = np.random.default_rng(0)
    counts = sp.csr_array(rng.poisson(0.3, size=(60, 30)).astype(float) + np.eye(60, 30))
    views = Views({"a": 1e3 + 50 * gaussian(60, 4), "b": counts, "c": np.zeros((60, 2))})
    found = coordinates_of(views)
    assert len(found) == 2  # the constant view is left out
    for table in found:
        np.testing.assert_allclose(table.mean(axis=0), 0, atol=1e-9)
        assert (table**2).sum(axis=1).mean() == pytest.approx(1, rel=1e-9)


def test_an_outlier_does_not_dominate_the_coordinates():
    rows = gaussian(100, 3)
    rows[0] = 1e6
    (table,) = coordinates_of(Views({"a": rows}))
    assert (table**2).sum(axis=1).max() < 15


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e9 + 0.1])
def test_constant_columns_do_not_change_the_coordinates(value):
    rows = gaussian(60, 3)
    (expected,) = coordinates_of(Views({"a": rows}))
    (found,) = coordinates_of(Views({"a": np.column_stack([rows, np.full(60, value)])}))
    np.testing.assert_allclose(np.abs(found[:, :3]), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(found[:, 3:], 0, atol=1e-9)
    assert coordinates_of(Views({"a": np.full((60, 2), value)})) == []


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e160, 1e300])
def test_the_unit_of_a_view_does_not_change_its_coordinates(scale):
    rows = gaussian(60, 4)
    (expected,), (found,) = coordinates_of(Views({"a": rows})), coordinates_of(Views({"a": rows * scale}))
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)
