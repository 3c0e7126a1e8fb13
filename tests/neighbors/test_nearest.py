"""The nearest neighbours of all rows."""

import numpy as np

from coview.neighbors.duplicates import Duplicates
from coview.neighbors.nearest import nearest_neighbors


def some_rows(n, width, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width))


def test_neighbours_are_found_among_more_rows_than_one_tile_holds():
    from sklearn.neighbors import NearestNeighbors

    rows = some_rows(6000, 12) + np.repeat([0.0, 50.0, 1000.0], 2000)[:, None]  # some tiles hold no neighbours
    found, distances, _ = nearest_neighbors(rows, Duplicates(rows), 5)
    expected = NearestNeighbors(n_neighbors=5, algorithm="kd_tree").fit(rows).kneighbors()
    np.testing.assert_array_equal(found, expected[1])
    np.testing.assert_allclose(distances, expected[0], rtol=1e-12)
