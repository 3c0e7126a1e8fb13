"""The members of a consensus: k-means centres on coordinates of walks and columns, and missing labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from coview import Views
from coview.base.runtime import Workers
from coview.evaluate.graphs import Walk
from coview.evaluate.members import Columns, Multiscale, Spectral, k_means_centres
from coview.evaluate.pool import Pool, filled, n_components_for
from coview.evaluate.representations import representations_of
from tests import naive
from tests.conftest import make_blobs


def pool_of(views, n_clusters=3):
    with Workers(1) as workers:
        return Pool.learn(Views(views), n_clusters, workers)


def test_all_members_find_clear_groups():
    views, truth = make_blobs(90, widths=(6, 12), spread=8.0)
    pool = pool_of(views)
    with Workers(1) as workers:
        found = pool.cluster([3], 0, workers)
    assert len(pool.graphs.graphs) == 6  # two views and both side by side, by directions and by columns
    assert len(pool.walks) == 5
    assert found.labels.shape == (90, 2 + 4 + 5)
    for labels in found.labels.T:
        assert adjusted_rand_score(labels, truth) == 1.0


def test_the_last_walk_is_on_all_graphs():
    """The graph of all views side by side weighs as much as those of the single views together."""
    views, _ = make_blobs(60, widths=(6, 12))
    pool = pool_of(views)
    assert pool.walks[-1].weights == (1.0, 1.0, 2.0, 1.0, 1.0, 2.0)
    assert [walk.weights for walk in pool.walks[:-1]] == [
        (1.0, 1.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0, 1.0, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    ]
    assert [len(graph.views) for graph in pool.graphs.graphs] == [1, 1, 2, 1, 1, 2]


def test_views_without_directions_have_one_representation():
    rng = np.random.default_rng(0)
    narrow, wide = rng.normal(size=(40, 2)), rng.normal(size=(40, 9))
    counts = sp.csr_array(rng.poisson(0.2, size=(40, 30)).astype(float))
    assert representations_of(Views({"a": narrow})) == [{"a": "standard+block"}]
    assert representations_of(Views({"c": counts})) == [{"c": "l2+block"}]
    assert representations_of(Views({"a": narrow, "b": wide, "c": counts})) == [
        {"a": "standard+block", "b": "l2+block", "c": "l2+block"},
        {"a": "standard+block", "b": "standard+block", "c": "l2+block"},
    ]


def test_labels_are_the_nearest_centres():
    views, _ = make_blobs(90, spread=1.5)
    pool = pool_of(views)
    with Workers(1) as workers:
        _, members, labels, _ = pool.cluster([3], 0, workers)
    for member, found in zip(members, labels.T, strict=True):
        rows = member.coordinates.of(pool.samples)
        distances = [[sum((row - centre) ** 2) for centre in member.centres] for row in rows]
        np.testing.assert_array_equal(found, np.argmin(distances, axis=1))


def test_coordinates_of_walks_are_weighted_directions():
    views, _ = make_blobs(60, spread=1.0)
    pool = pool_of(views)
    components = pool.samples.components[1]
    for row, values in zip(Spectral(1, 3).of(pool.samples), components, strict=True):
        plain = np.array([1.0, *values[:2]])
        np.testing.assert_allclose(row, plain / np.sqrt(sum(plain**2)), rtol=1e-12)
    eigenvalues = pool.walks[1].eigenvalues
    for row, values in zip(Multiscale.learn(1, pool.walks[1]).of(pool.samples), components, strict=True):
        plain = np.array([v * e / (1.02 - e) for v, e in zip(values, eigenvalues, strict=True)])
        np.testing.assert_allclose(row, plain / np.sqrt(sum(plain**2)), rtol=1e-9)


def test_many_columns_become_principal_components():
    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(120, 150))}
    pool = pool_of(views)
    table = pool.samples.rows[0].table
    columns = Columns.learn(0, table)
    found = columns.of(pool.samples)
    assert found.shape == (120, 100)
    centred = table - table.mean(axis=0)
    sizes = np.linalg.svd(centred, compute_uv=False)[:100]
    np.testing.assert_allclose(np.linalg.norm(found - found.mean(axis=0), axis=0), sizes, rtol=1e-6)


def test_there_are_components_for_each_number_of_clusters():
    counts = [n_components_for(n_clusters) for n_clusters in range(1, 60)]
    assert counts[0] == 19
    assert (np.diff(counts) >= 0).all()
    assert all(count >= n_clusters - 1 for n_clusters, count in enumerate(counts, start=1))


def test_distinct_rows_are_the_centres_if_there_are_no_more():
    rows = np.repeat([[0.0, 1.0], [2.0, 3.0], [5.0, 0.0]], [30, 1, 2], axis=0)
    for n_clusters in (3, 4, 40):
        np.testing.assert_array_equal(k_means_centres(rows, n_clusters, 3, 0), np.unique(rows, axis=0))
    assert len(k_means_centres(rows, 2, 3, 0)) == 2


def test_missing_labels_are_the_most_frequent_among_the_neighbours():
    rng = np.random.default_rng(0)
    training = rng.integers(-1, 4, size=(30, 3))
    training[training[:, 1] == 2, 1] = -1
    labels = rng.integers(-1, 4, size=(20, 3))
    steps = rng.random((20, 30)) * (rng.random((20, 30)) < 0.3)
    labels[4], steps[4] = -1, 0  # no neighbours
    found = filled(labels, training, sp.csr_array(steps))
    assert (labels < 0).sum() > 10
    for i, j in np.ndindex(labels.shape):
        expected = labels[i, j] if labels[i, j] >= 0 else naive.missing_label(steps[i], training[:, j])
        assert found[i, j] == expected
    np.testing.assert_array_equal(labels[4], -1)  # the argument is unchanged


def test_samples_without_an_edge_have_no_coordinates():
    views, _ = make_blobs(40, widths=(4, 6))
    views["a"][:3] = np.nan
    pool = pool_of(views)
    together = [place for place, graph in enumerate(pool.graphs.graphs) if len(graph.views) == 2]
    assert together
    for place in together:
        assert not Columns.learn(place, pool.samples.rows[place].table).known(pool.samples)[:3].any()
    for place, walk in enumerate(pool.walks):
        only_both = all(place in together for place, weight in enumerate(walk.weights) if weight)
        space = Spectral(place, 3)
        assert space.known(pool.samples).sum() == (37 if only_both else 40)
        assert len(space.of(pool.samples)) == space.known(pool.samples).sum()


def test_a_walk_with_fewer_components_than_clusters_has_coordinates():
    walk = Walk((1.0,), np.array([0.9]), np.ones((2, 1)))
    assert Multiscale.learn(0, walk).weights == pytest.approx([0.9 / 0.12])
